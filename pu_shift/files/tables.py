"""Tables in files: CSV text, plain or packed, read by pandas in chunks, and ``.npy`` matrices.

Memory does not grow with the file. What a packed file unpacks to, how long its lines are and how
many columns it has are bounded.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pu_shift._checks import one_line, shown
from pu_shift._labels import MISSING
from pu_shift.files.columns import check_names, missing_column
from pu_shift.files.pipes import opened, shown_path
from pu_shift.files.unpacking import DataError, decompressed, may_unpack, reading

if TYPE_CHECKING:
    from pu_shift.files.preparation import TablePreparation

# Large enough that reading is fast, small beside what a process needs anyway.
BLOCK_CELLS, BLOCK_BYTES = 655_360, 16 << 20
# One chunk may take more, where rows become longer; a quote that nothing closes does not.
MOST_CHUNK_BYTES = 256 << 20
MAX_COLUMNS, MAX_LINE = 1 << 16, 1 << 22

# pandas tells upper from lower case; spellings that it does not know are looked up later.
_NA_VALUES = sorted({form(text) for text in MISSING for form in (str, str.upper, str.title)})


class Block(NamedTuple):
    """Some consecutive rows, and how many bytes of the file's size have been read with them.

    ``unseen`` counts per column what the fit has not seen, see `TablePreparation.convert`.
    """

    rows: np.ndarray
    position: int
    size: int
    kept: tuple[Any, ...] = ()
    unseen: Any = 0


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
            raise not_text(error) from None
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
        texts: Collection[int] = (),
        keep: Collection[int] = (),
        chunk_rows: int | None = None,
    ) -> Iterator[tuple[Any, tuple[list[str], ...]]]:
        """Yield data frames of some columns, and texts of others to keep.

        pandas finds the types of the columns that are not among the texts.
        """
        width, done, texts = len(self.first), 0, {*texts, *keep}
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
            done += len(frame)
            yield frame[list(columns)], tuple(frame[column].tolist() for column in keep)

    def _frames(
        self, text: _Text, columns: set[int], texts: Collection[int], chunk_rows: int | None
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
            raise not_text(error) from None


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


def not_text(error: UnicodeDecodeError) -> DataError:
    """Return the error for a file that is not in UTF-8."""
    return DataError(f"is not text: {one_line(error)}; --encoding tells another, say latin-1")


class _Recoded(io.RawIOBase):
    """A stream of text in UTF-8, of one in another encoding."""

    def __init__(self, stream: Any, encoding: str) -> None:
        self._stream, self._left = stream, b""
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            read = self._stream.read(1 << 16)
            try:
                self._left = self._decoder.decode(read, final=not read).encode("utf-8")
            except UnicodeDecodeError as error:
                raise not_text(error) from None
            if not read:
                break
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def column_names(path: str, encoding: str = "utf-8") -> tuple[list[str], str]:
    """Read the line of column names of a CSV file; return it and the separator."""
    with _table(path, encoding) as (table, _, names):
        return names, table.separator


def read_csv(path: str, names: Sequence[str], encoding: str = "utf-8", texts: bool = False) -> Any:
    """Read columns of a whole CSV file as a data frame, at least one row of them.

    A column in which there is a cell that pandas takes for no number is read once more, as texts:
    no cell of it is changed. With `texts` all are.
    """
    import pandas as pd

    kept: dict[str, list[Any]] = {} if texts else {name: [] for name in names}
    n_rows = 0
    for frame in _frames(path, names, encoding, names if texts else ()):
        n_rows += len(frame)
        for name in list(kept):
            if frame[name].dtype.kind in "biuf":
                kept[name].append(frame[name].to_numpy(np.float64))
            else:
                del kept[name]
    if not n_rows:
        raise DataError(f"data: {shown_path(path)} has no rows")
    columns: dict[str, Any] = {name: np.concatenate(parts) for name, parts in kept.items()}
    rest = [name for name in names if name not in kept]
    if rest:
        read = pd.concat(list(_frames(path, rest, encoding, rest)), ignore_index=True)
        columns.update((name, read[name]) for name in rest)
    return pd.DataFrame({name: columns[name] for name in names})


def _frames(path: str, names: Sequence[str], encoding: str, texts: Sequence[str]) -> Iterator[Any]:
    with _table(path, encoding) as (table, _, present):
        for name in names:
            if name not in present:
                raise missing_column(name, present)
        places = [present.index(name) for name in names]
        for frame, _ in table.chunks(places, [present.index(name) for name in texts]):
            yield frame.set_axis(list(names), axis=1)


def read_blocks(
    path: str,
    names: Sequence[str] | None,
    preparation: TablePreparation,
    block_rows: int | None = None,
    keep: Sequence[str] = (),
    encoding: str = "utf-8",
) -> Iterator[Block]:
    """Read the features of a file block by block, prepared, and the texts of columns to keep.

    The file is CSV with the columns `names`, among others, or a ``.npy`` matrix whose
    columns are the features in this order; without names it must be a matrix.
    """
    is_matrix = Path(path).suffix == ".npy"
    if names is None and not is_matrix:
        raise DataError(
            f"data: {shown_path(path)} must be a .npy file, the model's features have no names"
        )
    if is_matrix and keep:
        raise DataError(f"data: {shown_path(path)} has no column {shown(keep[0])}, it is a matrix")
    first = 0
    if is_matrix:
        blocks = _matrix_blocks(path, preparation.n_features_in_, block_rows)
    else:
        blocks = _csv_blocks(path, names or (), preparation, block_rows, keep, encoding)
    for rows, position, size, kept in blocks:
        with reading(f"data: {shown_path(path)}", mark=""):
            converted, unseen = preparation.convert(rows, first, names)
        yield Block(converted, position, size, kept, unseen)
        first += len(rows)
    if first == 0:
        raise DataError(f"data: {shown_path(path)} has no rows")


@contextmanager
def _table(path: str, encoding: str) -> Iterator[tuple[Table, Any, list[str]]]:
    """Open a CSV file; yield the table, the file that is read, and the names of the columns."""
    with opened(path) as file, reading(f"data: {shown_path(path)}", mark=""):
        stream: Any = decompressed(file)
        if codecs.lookup(encoding).name not in ("utf-8", "ascii"):
            stream = io.BufferedReader(_Recoded(stream, encoding), 1 << 18)
        table = Table(stream)
        if all(is_number(name) for name in table.first):
            raise DataError("must begin with a line of column names")
        names = table.names()
        check_names(names)
        yield table, file, names


def _csv_blocks(
    path: str,
    names: Sequence[str],
    preparation: TablePreparation,
    block_rows: int | None,
    keep: Sequence[str],
    encoding: str,
) -> Iterator[tuple[Any, ...]]:
    with _table(path, encoding) as (table, file, present):
        size = os.fstat(file.fileno()).st_size
        for name in (*names, *keep):
            if name not in present:
                raise missing_column(name, present)
        columns, kept = ([present.index(name) for name in group] for group in (names, keep))
        texts = [place for place, own in zip(columns, preparation.columns_) if not own.is_plain]
        for rows, cells in table.chunks(columns, texts, kept, block_rows):
            yield rows, file.tell(), size, cells


def _matrix_blocks(
    path: str, n_features: int, block_rows: int | None
) -> Iterator[tuple[np.ndarray, int, int, tuple[()]]]:
    if not os.path.isfile(path):
        raise DataError(f"data: no such file: {one_line(repr(path))}")
    size = os.path.getsize(path)
    with reading(f"data: {shown_path(path)}", mark=""):
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
        yield rows, offset + (start + len(rows)) * row_bytes, size, ()


def is_number(cell: str) -> bool:
    """Tell whether a cell is a number to Python."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
