"""Tables in files: CSV text, plain or packed, read by pandas in chunks, and ``.npy`` matrices.

Memory does not grow with the file. What a packed file unpacks to, how long its lines are and how
many columns it has are bounded.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, dropwhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pu_shift._checks import LARGEST, check_scales, one_line, shown
from pu_shift.files.columns import check_names, missing_column
from pu_shift.files.unpacking import DataError, decompressed, may_unpack, reading

# Large enough that reading is fast, small beside what a process needs anyway.
BLOCK_CELLS, BLOCK_BYTES = 655_360, 16 << 20
# One chunk may take more, where rows become longer; a quote that nothing closes does not.
MOST_CHUNK_BYTES = 256 << 20
MAX_COLUMNS, MAX_LINE = 1 << 16, 1 << 22

_MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none")
_NUMBERS = {"true": 1.0, "false": 0.0, **dict.fromkeys(_MISSING, np.nan)}
# pandas tells upper from lower case; spellings that it does not know are looked up later.
_NA_VALUES = sorted({form(text) for text in _MISSING for form in (str, str.upper, str.title)})


class CellError(DataError):
    """A cell that is no number where there has to be one."""


class Block(NamedTuple):
    """Some consecutive rows, and how many bytes of the file's size have been read with them."""

    rows: np.ndarray
    position: int
    size: int
    kept: tuple[list[str], ...] = ()


class Table:
    """Text of cells between commas, semicolons or tabs, whose first row may be names."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        read = iter(partial(stream.readline, MAX_LINE + 1), b"")
        lines = map(_bounded, dropwhile(bytes.isspace, read))
        head = [line.removeprefix(b"\xef\xbb\xbf") for line in _up_to_second(lines)]
        written = [line for line in head if not line.isspace()]
        if not written:
            raise DataError("is empty")
        # A name may hold a comma, and a number a decimal one, but not both lines alike.
        counts = {mark: [line.count(mark.encode()) for line in written] for mark in ",;\t"}
        self.separator = max(counts, key=lambda mark: (min(counts[mark]), counts[mark][0]))
        self._first_lines: list[bytes] = []
        try:
            rows = csv.reader(
                self._noted(chain(head, lines)), delimiter=self.separator, skipinitialspace=True
            )
            self.first = [cell.strip() for cell in next(rows)]
        except csv.Error as error:
            raise DataError(f"is not a table: {one_line(error)}") from None
        except UnicodeDecodeError as error:
            raise DataError(f"is not text: {one_line(error)}") from None
        self._other_lines = head[len(self._first_lines) :]
        if len(self.first) > MAX_COLUMNS:
            raise DataError(f"has {len(self.first):,} columns, more than {MAX_COLUMNS:,}")
        self._names: list[Any] = list(range(1, len(self.first) + 1))

    def _noted(self, lines: Iterator[bytes]) -> Iterator[str]:
        """Decode the lines of the first row, and keep them."""
        for line in lines:
            self._first_lines.append(line)
            yield line.decode("utf-8")

    def names(self) -> list[str]:
        """Take the first row as names of the columns."""
        for place, name in enumerate(self.first):
            if not name:
                raise DataError(
                    f"has no name for column {place + 1}: if it numbers the rows, write the table "
                    "without it"
                )
        self._names, self._first_lines = list(self.first), []
        return self.first

    def chunks(
        self,
        columns: Sequence[int],
        texts: Sequence[int] = (),
        categories: Collection[int] = (),
        chunk_rows: int | None = None,
    ) -> Iterator[tuple[np.ndarray, tuple[list[str], ...]]]:
        """Yield rows: numbers of some columns, NaN where one is missing, and texts of others.

        Where `categories` among the columns hold texts, the array has objects: numbers and texts.
        """
        width, done = len(self.first), 0
        # An empty row with a cell more tells pandas of the column that is there in long rows only.
        extra = self.separator.encode() * width + b"\n"
        text = _Text(self._stream, b"".join([extra, *self._first_lines, *self._other_lines]))
        for frame in self._frames(text, {*columns, *texts}, texts, chunk_rows):
            long = frame[width].notna().to_numpy()
            if long.any():
                row = done + int(long.argmax()) + 1
                raise DataError(f"expected {width} columns, found more in row {row}")
            for column in texts:
                frame[column] = [cell for (cell,) in frame[column]]
            rows = self._rows(frame, columns, categories, done)
            done += len(frame)
            yield rows, tuple(frame[column].tolist() for column in texts)

    def _rows(
        self, frame: Any, columns: Sequence[int], categories: Collection[int], done: int
    ) -> np.ndarray:
        """Return columns of a chunk as an array, or say which cell is no number."""
        chosen = frame[list(columns)]
        if all(dtype.kind in "biuf" for dtype in chosen.dtypes):
            return chosen.to_numpy(np.float64)
        values, wrong = [], []
        for column in columns:
            numbers, place = _numbers(frame[column], column in categories)
            values.append(numbers)
            if place is not None:
                wrong.append((place, column))
        if wrong:
            place, column = min(wrong, key=lambda found: found[0])
            raise wrong_cell(done + place + 1, self._names[column], frame[column].iloc[place])
        mixed = any(part.dtype == object for part in values)
        rows = np.empty((len(frame), len(values)), dtype=object if mixed else np.float64)
        for place, part in enumerate(values):
            rows[:, place] = part
        return rows

    def _frames(
        self, text: _Text, columns: set[int], texts: Sequence[int], chunk_rows: int | None
    ) -> Iterator[Any]:
        """Yield chunks as data frames; a column more than there should be tells rows too long."""
        import pandas as pd  # slow to import, and not needed by a user of arrays

        width, rows = len(self.first), 0
        longest = max(map(len, [*self._first_lines, *self._other_lines]), default=1)
        # No number may change, whatever reads it; since 3.1 pandas knows no other way.
        old = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
        exact: Any = {"float_precision": "round_trip"} if old else {}
        try:
            reader = pd.read_csv(
                io.TextIOWrapper(io.BufferedReader(text, 1 << 18), encoding="utf-8", newline=""),
                sep=self.separator,
                header=None,
                names=range(width + 1),
                # Without it pandas itself refuses long rows.
                usecols=sorted({*columns, width}) if len(columns) < width else None,
                index_col=False,
                # A text alone might be taken for a missing value.
                converters=dict.fromkeys(texts, lambda cell: (cell.strip(),)),
                na_values=_NA_VALUES,
                keep_default_na=False,
                skipinitialspace=True,
                # An empty line of a single column is a missing value.
                skip_blank_lines=width > 1,
                low_memory=False,
                iterator=True,
                **exact,
            )
            reader.get_chunk(1)
            while True:
                most = min(max(BLOCK_CELLS // width, 100), BLOCK_BYTES // longest)
                frame = reader.get_chunk(chunk_rows or max(1, most))
                rows += len(frame)
                longest, text.since_chunk = 1 + text.total // rows, 0
                # Short rows are filled up: many of them would take any memory.
                if not may_unpack(8 * len(columns) * rows, text.total):
                    raise DataError("has rows with far fewer cells than columns")
                yield frame
        except (StopIteration, pd.errors.EmptyDataError):
            return
        except pd.errors.ParserError as error:
            found = re.search(r"fields in line (\d+), saw (\d+)", str(error))
            if found is None:
                raise DataError(f"is not a table: {one_line(error)}") from None
            # The row that is put before the others counts as a line.
            raise DataError(
                f"expected {width} columns, found {found[2]} in row {int(found[1]) - 1}"
            ) from None
        except UnicodeDecodeError as error:
            raise DataError(f"is not text: {one_line(error)}") from None


class _Text(io.RawIOBase):
    """A stream whose lines are of bounded length, without the empty ones at its end."""

    total = since_chunk = _line = 0

    def __init__(self, stream: Any, start: bytes) -> None:
        self._stream, self._start, self._blank = stream, start, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size, text = len(buffer), b""
        while not text:
            read = self._start[:size] or self._stream.read(size)
            self._start = self._start[size:]
            if not read:
                return 0
            read = self._blank + read
            text = read.rstrip(b" \r\n")
            self._blank = read[len(text) :]
        # What was held back may be more than there is room for.
        self._start, text = text[size:] + self._start, text[:size]
        buffer[: len(text)] = text
        self._check(text)
        return len(text)

    def _check(self, text: bytes) -> None:
        self.total += len(text)
        self.since_chunk += len(text)
        if self.since_chunk > MOST_CHUNK_BYTES:
            raise DataError("has a quote that is not closed, or lines far longer than the first")
        end = text.find(b"\n")
        if self._line + (len(text) if end < 0 else end) > MAX_LINE:
            raise DataError(f"has a line of more than {MAX_LINE:,} characters")
        self._line = self._line + len(text) if end < 0 else len(text) - text.rfind(b"\n") - 1


def _bounded(line: bytes) -> bytes:
    if len(line) > MAX_LINE:
        raise DataError(f"has a line of more than {MAX_LINE:,} characters")
    return line


def _up_to_second(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield lines up to the second that is not empty."""
    written = 0
    for line in lines:
        yield line
        written += not line.isspace()
        if written == 2:
            return


def _numbers(column: Any, categories: bool) -> tuple[np.ndarray, int | None]:
    """Return a column of a data frame in numbers, or texts too, and the place of a bad cell."""
    if column.dtype.kind in "biuf":
        return column.to_numpy(np.float64), None
    cells = column.tolist()
    values: list[Any] = [_number(cell) for cell in cells]
    if None not in values:
        return np.array(values, dtype=np.float64), None
    if not categories:
        return np.array([]), values.index(None)
    mixed = np.empty(len(cells), dtype=object)
    mixed[:] = [cell.strip() if value is None else value for cell, value in zip(cells, values)]
    return mixed, None


def _number(cell: Any) -> float | None:
    text = str(cell).strip().lower()
    if text in _NUMBERS:
        return _NUMBERS[text]
    # Python would take 1_000 for a number.
    return float(text) if is_number(text) and "_" not in text else None


def wrong_cell(row: int, column: Any, found: Any) -> DataError:
    """Return the error for a cell that is no number; the column by its name or from 1."""
    found = found[:100] if isinstance(found, str) else found
    if isinstance(found, float) and np.isfinite(found):
        return DataError(
            f"has {found:.3g} in row {row} of column {shown(column)}, whose square leaves the "
            "range of floating-point numbers: divide the column by a power of ten"
        )
    hint = ""
    if isinstance(found, str) and re.fullmatch(r"[-+]?\d*,\d+", found.strip()):
        hint = " (decimals need a point, not a comma)"
    return CellError(
        f"needs a finite number in row {row} of column {shown(column)}, found {shown(found)}{hint}"
    )


def check_finite(
    rows: np.ndarray, names: Sequence[Any] | None, first: int = 0, missing: bool = False
) -> None:
    """Refuse rows with a value that is too large or, unless some may be, missing.

    `first` rows come before them.
    """
    if rows.dtype == object:
        rows = np.where(np.frompyfunc(lambda cell: isinstance(cell, str), 1, 1)(rows), 0.0, rows)
        rows = rows.astype(np.float64)
    # Squares are summed: they have to be finite too.
    wrong = ~((np.abs(rows) <= LARGEST) | (missing & np.isnan(rows)))
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        name = column + 1 if names is None else names[column]
        raise wrong_cell(first + row + 1, name, float(rows[row, column]))


def check_features(
    path: str, names: Sequence[str], rows: np.ndarray, missing: bool = False
) -> np.ndarray:
    """Return the rows of a file if there are features and all are finite, or categories."""
    with reading(f"data: {one_line(path)}", mark=""):
        if not names:
            raise DataError("has no column of features")
        check_finite(rows, names, missing=missing)
    if rows.dtype != object:
        check_scales(np.fmin.reduce(rows), np.fmax.reduce(rows), names)
    return rows


def column_names(path: str) -> list[str]:
    """Read the line of column names of a CSV file."""
    with _opened(path) as file:
        return _header(Table(decompressed(file)))


def read_csv(path: str, names: Sequence[str], categories: Collection[str] = ()) -> np.ndarray:
    """Read columns of a whole CSV file, at least one row of them.

    Where columns in `categories` hold texts, the rows are objects: numbers, and those texts.
    """
    with _opened(path) as file:
        table = Table(decompressed(file))
        places = {name: place for place, name in enumerate(_header(table))}
        columns, nominal = ([places[name] for name in group] for group in (names, categories))
        if not columns:
            raise DataError("has no column of features")
        chunks = [rows for rows, _ in table.chunks(columns, categories=nominal)]
        if not chunks:
            raise DataError("has no rows")
        return np.concatenate(chunks)


def read_blocks(
    path: str,
    names: Sequence[str] | None,
    n_features: int,
    block_rows: int | None = None,
    keep: Sequence[str] = (),
    categories: Collection[str] | None = None,
) -> Iterator[Block]:
    """Read the finite features of a file block by block, and the texts of columns to keep.

    The file is CSV with the columns `names`, among others, or a ``.npy`` matrix whose
    columns are the features in this order; without names it must be a matrix. Given the
    columns that may hold categories, any cell may be missing as well.
    """
    is_matrix = Path(path).suffix == ".npy"
    if names is None and not is_matrix:
        raise DataError(
            f"data: {one_line(path)} must be a .npy file, the model's features have no names"
        )
    if is_matrix and keep:
        raise DataError(f"data: {one_line(path)} has no column {shown(keep[0])}, it is a matrix")
    first = 0
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        blocks: Iterator[Any]
        if is_matrix:
            blocks = _matrix_blocks(path, file, n_features, block_rows)
        else:
            blocks = _csv_blocks(
                file, () if names is None else list(names), block_rows, keep, categories or ()
            )
        for rows, position, *kept in blocks:
            check_finite(rows, names, first, missing=categories is not None)
            yield Block(rows, position, size, tuple(kept))
            first += len(rows)
        if first == 0:
            raise DataError("has no rows")


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    if not os.path.isfile(path):
        raise DataError(f"data must be a file, got {one_line(repr(path))}")
    with reading(f"data: {one_line(path)}", mark=""), open(path, "rb", buffering=0) as file:
        yield file


def _csv_blocks(
    file: Any,
    names: Sequence[str],
    block_rows: int | None,
    keep: Sequence[str],
    categories: Collection[str],
) -> Iterator[tuple[Any, ...]]:
    table = Table(decompressed(file))
    present = _header(table)
    for name in (*names, *keep):
        if name not in present:
            raise missing_column(name, present)
    columns, kept = ([present.index(name) for name in group] for group in (names, keep))
    nominal = {present.index(name) for name in names if name in categories}
    for rows, texts in table.chunks(columns, kept, nominal, block_rows):
        yield rows, file.tell(), *texts


def _header(table: Table) -> list[str]:
    if all(is_number(name) for name in table.first):
        raise DataError("must begin with a line of column names")
    names = table.names()
    check_names(names)
    return names


def _matrix_blocks(
    path: str, file: Any, n_features: int, block_rows: int | None
) -> Iterator[tuple[np.ndarray, int]]:
    try:
        matrix = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # whatever a damaged header leads to
        raise DataError(f"is not a NumPy matrix: {one_line(error)}") from None
    if matrix.ndim != 2 or matrix.shape[1] != n_features or matrix.dtype.kind not in "fiub":
        raise DataError(
            f"is not a NumPy matrix of (rows, {n_features}) numbers, it has {matrix.shape} "
            f"{matrix.dtype}"
        )
    n, offset, row_bytes = len(matrix), matrix.offset, n_features * matrix.itemsize
    block_rows = block_rows or max(1, BLOCK_CELLS // n_features)
    for start in range(0, n, block_rows):
        # Mapped anew: pages of an old map would count as memory of the process.
        matrix = np.lib.format.open_memmap(path, mode="r")
        rows = np.array(matrix[start : start + block_rows], dtype=np.float64)
        del matrix
        yield rows, offset + (start + len(rows)) * row_bytes


def is_number(cell: str) -> bool:
    """Tell whether a cell is a number to Python."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
