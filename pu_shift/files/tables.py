"""Tables of numbers in files: the one reader of CSV text, plain or packed, and of ``.npy``.

Rows come block by block, so that memory does not grow with the file. What a packed
file unpacks to, how long its lines are and how many columns it has are bounded.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from itertools import chain, dropwhile, islice, repeat
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pu_shift._checks import one_line, shown

# Large enough that reading is fast, small beside what a process needs anyway.
BLOCK_CELLS, BLOCK_CHARACTERS = 655_360, 16 << 20
LARGEST = 1e150
MAX_COLUMNS, MAX_LINE = 1 << 16, 1 << 22
# Tables compress up to 50-fold (SUSY 3, MNIST as CSV 9), a bomb thousands of times. The
# floor lets small files of equal rows pass.
UNPACKED_FLOOR, UNPACKED_RATIO = 16 << 20, 250
# Other methods of the zip format are unpacked by the standard library without a bound.
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_COMPRESSIONS: tuple[tuple[bytes, Callable[[Any], Any]], ...] = (
    (b"\x1f\x8b", lambda stream: gzip.GzipFile(fileobj=stream)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)
_WORDS = {"true": 1.0, "false": 0.0}
_WORDS.update(dict.fromkeys(("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"), np.nan))


Converters = dict[int | str, Callable[[str], Any]]


class DataError(ValueError):
    """Data that cannot be had, or that is not what it should be."""


class CellError(DataError):
    """A cell that is no number where there has to be one."""


class Block(NamedTuple):
    """Some consecutive rows, and how many bytes of the file's size have been read with them."""

    rows: np.ndarray
    position: int
    size: int
    kept: tuple[list[str], ...] = ()


def decompressed(stream: Any, member: str | None = None) -> io.BufferedReader:
    """Open a binary stream, or a member of the zip archive it is, for reading its content.

    Compression is told by the first bytes, not by a name.
    """
    source = _Counted(stream)
    if member is None:
        content = _layer(io.BufferedReader(source, 1 << 18))
    else:
        archive = zipfile.ZipFile(source)
        _check_method(archive.getinfo(member).compress_type)
        content = _layer(archive.open(member))
    return io.BufferedReader(_Bounded(content, source), 1 << 18)


def may_unpack(total: int, read: int) -> bool:
    """Tell whether so many bytes may come out of so many that were read."""
    return total <= UNPACKED_FLOOR + UNPACKED_RATIO * read


def _layer(stream: Any) -> Any:
    head = stream.peek(6)
    for magic, opener in _COMPRESSIONS:
        if head.startswith(magic):
            return opener(stream)
    if head.startswith(b"PK\x03\x04"):
        return _layer(io.BufferedReader(_FirstMember(stream), 1 << 18))
    return stream


def _check_method(method: int) -> None:
    if method not in ZIP_METHODS:
        raise DataError(f"expected a deflated zip archive, found method {method}")


class _Raw(io.RawIOBase):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True


class _Counted(_Raw):
    """A stream that knows how much was read of it."""

    count = 0

    def seekable(self) -> bool:
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        size = self._stream.readinto(buffer) or 0
        self.count += size
        return size


class _Bounded(_Raw):
    """What a stream unpacks to, as long as it is in proportion to what was read of it."""

    def __init__(self, stream: Any, source: _Counted) -> None:
        super().__init__(stream)
        self._source, self._total = source, 0

    def readinto(self, buffer: Any) -> int:
        size = self._stream.readinto(buffer)
        self._total += size
        if not may_unpack(self._total, self._source.count):
            raise DataError(
                f"unpacks to more than {UNPACKED_RATIO} times its size: if that is right, unpack "
                "it first"
            )
        return size


class _FirstMember(_Raw):
    """The first file of a zip archive that streams by; its index comes only at the end."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        header = stream.read(30)
        if len(header) < 30:
            raise EOFError("the archive ends in its first header")
        method, size, *names = struct.unpack_from("<H8xI4xHH", header, 8)
        _check_method(method)
        stream.read(sum(names))
        # Not every writer knows the size in advance, and 4 GB do not fit.
        self._left = size if 0 < size < 2**32 - 1 else sys.maxsize
        self._inflate = zlib.decompressobj(-15) if method else None

    def readinto(self, buffer: Any) -> int:
        if self._inflate is None:
            chunk = self._stream.read(min(len(buffer), self._left))
            self._left -= len(chunk)
        else:
            chunk = b""
            while not chunk and not self._inflate.eof:
                packed = self._inflate.unconsumed_tail or self._stream.read(1 << 16)
                if not packed:
                    raise EOFError("the archive ends before its first file does")
                chunk = self._inflate.decompress(packed, len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)


@contextmanager
def reading(label: str, mark: str = ":") -> Iterator[None]:
    """Turn what a damaged file makes the readers raise into one `DataError` of one line."""
    try:
        yield
    except DataError as error:
        raise type(error)(f"{label}{mark} {error}") from None
    # zipfile raises RuntimeError for a password, or a compression it does not know.
    except (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError) as e:
        raise DataError(f"{label} is truncated or corrupt: {one_line(e)}") from None


class Table:
    """Text of cells between commas, semicolons or tabs, whose first row may be names."""

    def __init__(self, stream: Any) -> None:
        lines: Iterator[str] = dropwhile(
            str.isspace, _lines(io.TextIOWrapper(stream, encoding="utf-8-sig"))
        )
        # Empty lines among them are rows, if there is but one column.
        head = list(islice(lines, 1))
        for line in lines:
            head.append(line)
            if not line.isspace():
                break
        written = [line for line in head if not line.isspace()]
        if not written:
            raise DataError("is empty")
        # A name may hold a comma, and a number a decimal one, but not both lines alike.
        self.separator = max(
            ",;\t",
            key=lambda mark: (min(line.count(mark) for line in written), written[0].count(mark)),
        )
        lines = chain(head, lines)
        self._head: list[str] = []
        (cells,) = self._cells(_noted(lines, self._head))
        if len(cells) > MAX_COLUMNS:
            raise DataError(f"has {len(cells):,} columns, more than {MAX_COLUMNS:,}")
        self.first = [cell.strip() for cell in cells]
        self._names: list[Any] = list(range(1, len(cells) + 1))
        self._lines: Iterator[str] = filter(str.strip, lines)
        if len(cells) == 1:
            self._lines = ("nan\n" if line.isspace() else line for line in lines)

    def names(self) -> list[str]:
        """Take the first row as names of the columns."""
        for place, name in enumerate(self.first):
            if not name:
                raise DataError(
                    f"has no name for column {place + 1}: if it numbers the rows, write the table "
                    "without it"
                )
        self._names, self._head = list(self.first), []
        return self.first

    def blocks(
        self,
        columns: Sequence[int],
        coded: Mapping[int, dict[str, int]] | None = None,
        words: Collection[int] = (),
        block_rows: int | None = None,
    ) -> Iterator[np.ndarray]:
        """Yield the rows' numbers in these columns; NaN where one is missing.

        A coded column comes with a dictionary that receives the codes of its texts. Where
        columns in `words` hold texts, a block has objects: numbers, and those texts.
        """
        block_rows = block_rows or max(1, BLOCK_CELLS // len(self.first))
        convert: Converters = {
            column: partial(_code, codes) for column, codes in (coded or {}).items()
        }
        careful: Converters = {**convert, **dict.fromkeys(words, _number_or_word)}
        lines, done = chain(self._head, self._lines), 0
        while chunk := _chunk(lines, block_rows):
            rows = self._quickly(chunk, columns, convert)
            if rows is None:
                rows = self._carefully(chunk, lines, columns, careful, done)
            done += len(rows)
            yield rows

    def _quickly(
        self,
        lines: list[str],
        columns: Sequence[int],
        convert: Converters,
    ) -> np.ndarray | None:
        """Parse plain rows of numbers; None if they are not of this kind."""
        marks = set(map(methodcaller("count", self.separator), lines))
        if marks != {len(self.first) - 1} or '"' in "".join(lines):
            return None
        try:
            return np.loadtxt(
                lines,
                delimiter=self.separator,
                usecols=columns,
                converters=convert,
                comments=None,
                ndmin=2,
                encoding="utf-8",
            )
        except ValueError:
            return None

    def _carefully(
        self,
        lines: list[str],
        more: Iterator[str],
        columns: Sequence[int],
        convert: Converters,
        done: int,
    ) -> np.ndarray:
        """Parse rows with quotes, words and gaps, the last one to its end; say which is wrong."""
        width = len(self.first)
        rows: list[list[Any]] = []
        for cells in self._cells(chain(lines, more), len(lines)):
            row = done + len(rows) + 1
            if len(cells) > width:
                raise DataError(f"expected {width} columns, found {len(cells)} in row {row}")
            if len(cells) < width:
                # Refused at once: filled up, many short rows would take any memory.
                for column in columns:
                    if column >= len(cells):
                        raise wrong_cell(row, self._names[column], np.nan)
            values = [convert.get(column, _number)(cells[column]) for column in columns]
            if None in values:
                column = columns[values.index(None)]
                raise wrong_cell(row, self._names[column], cells[column])
            rows.append(values)
        words = any(isinstance(value, str) for values in rows for value in values)
        return np.array(rows, dtype=object if words else np.float64).reshape(-1, len(columns))

    def _cells(self, lines: Iterator[str], n_lines: int = 1) -> Iterator[list[str]]:
        """Yield the cells of the rows that begin in so many lines."""
        reader = csv.reader(lines, delimiter=self.separator, skipinitialspace=True)
        try:
            while reader.line_num < n_lines:
                yield next(reader)
        except csv.Error as error:
            raise DataError(f"is not a table: {one_line(error)}") from None


def wrong_cell(row: int, column: Any, found: Any) -> CellError:
    """Return the error for a cell that is no number; the column by its name or from 1."""
    found = found[:100] if isinstance(found, str) else found
    hint = ""
    if isinstance(found, float) and np.isfinite(found):
        hint = f", above {LARGEST:g}"
    elif isinstance(found, str) and re.fullmatch(r"[-+]?\d*,\d+", found.strip()):
        hint = " (decimals need a point, not a comma)"
    return CellError(
        f"needs a finite number in row {row} of column {shown(column)}, found {shown(found)}{hint}"
    )


def missing_column(name: str, names: Sequence[str]) -> DataError:
    """Return the error for a column that a table with other names has not."""
    close = get_close_matches(name, names, 1, 0.85)
    hint = f", did you mean {shown(close[0])}?" if close else separator_hint(names)
    return DataError(
        f"has no column {shown(name)}{hint or f', its columns are {shown(list(names))}'}"
    )


def check_drop(
    path: str, drop: Sequence[str], label: str | None, tables: Sequence[Sequence[str]]
) -> None:
    """Refuse to leave out the label, or a column that none of the tables has."""
    for name in drop:
        if name == label:
            raise DataError(f"drop: {path} needs its label {shown(name)}")
        if not any(name in names for names in tables):
            raise DataError(f"drop: {path} {missing_column(name, tables[0])}")


def separator_hint(names: Sequence[str]) -> str:
    """Say that a table has another separator, if its only name looks like several."""
    marks = [mark for mark in "|: " if len(names) == 1 and mark in names[0]]
    if not marks:
        return ""
    return (
        f", its only one is {shown(names[0])}: columns must be separated by commas, semicolons or "
        f"tabs, not by {marks[0]!r}"
    )


def check_finite(
    rows: np.ndarray, names: Sequence[Any] | None, first: int = 0, gaps: bool = False
) -> None:
    """Refuse rows with a value that is too large or, unless there may be gaps, missing.

    `first` rows come before them.
    """
    if rows.dtype == object:
        rows = np.where(np.frompyfunc(lambda cell: isinstance(cell, str), 1, 1)(rows), 0.0, rows)
        rows = rows.astype(np.float64)
    # Squares are summed: they have to be finite too.
    wrong = ~((np.abs(rows) <= LARGEST) | (gaps & np.isnan(rows)))
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        name = column + 1 if names is None else names[column]
        raise wrong_cell(first + row + 1, name, float(rows[row, column]))


def check_features(
    path: str, names: Sequence[str], rows: np.ndarray, gaps: bool = False
) -> np.ndarray:
    """Return the rows of a file if there are features and all are finite, or words."""
    with reading(f"data: {one_line(path)}", mark=""):
        if not names:
            raise DataError("has no column of features")
        check_finite(rows, names, gaps=gaps)
    return rows


def column_names(path: str) -> list[str]:
    """Read the line of column names of a CSV file."""
    with _opened(path) as file:
        return _header(Table(decompressed(file)))


def read_csv(path: str, names: Sequence[str], words: Collection[str] = ()) -> np.ndarray:
    """Read columns of a whole CSV file, at least one row of them.

    Where columns in `words` hold texts, the rows are objects: numbers, and those texts.
    """
    with _opened(path) as file:
        table = Table(decompressed(file))
        places = {name: place for place, name in enumerate(_header(table))}
        columns, wordy = ([places[name] for name in group] for group in (names, words))
        if not columns:
            raise DataError("has no column of features")
        blocks = list(table.blocks(columns, words=wordy))
        if not blocks:
            raise DataError("has no rows")
        return np.concatenate(blocks)


def read_blocks(
    path: str,
    names: Sequence[str] | None,
    n_features: int,
    block_rows: int | None = None,
    keep: Sequence[str] = (),
    words: Collection[str] | None = None,
) -> Iterator[Block]:
    """Read the finite features of a file block by block, and the texts of columns to keep.

    The file is CSV with the columns `names`, among others, or a ``.npy`` matrix whose
    columns are the features in this order; without names it must be a matrix. Given the
    columns that may hold words, any cell may be missing as well.
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
                file, () if names is None else list(names), block_rows, keep, words or ()
            )
        for rows, position, *kept in blocks:
            check_finite(rows, names, first, gaps=words is not None)
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
    words: Collection[str],
) -> Iterator[tuple[Any, ...]]:
    table = Table(decompressed(file))
    present = _header(table)
    for name in (*names, *keep):
        if name not in present:
            raise missing_column(name, present)
    columns = [present.index(name) for name in names]
    kept = [present.index(name) for name in keep]
    coded: dict[int, dict[str, int]] = {place: {} for place in kept if place not in columns}
    wordy = {place for place, name in zip(columns, names) if name in words}
    read = [*columns, *coded]
    for rows in table.blocks(read, coded, wordy, block_rows):
        texts = {place: list(codes) for place, codes in coded.items()}
        cells = ((place, rows[:, read.index(place)].tolist()) for place in kept)
        yield (
            rows[:, : len(columns)],
            file.tell(),
            *(_texts(values, texts.get(place)) for place, values in cells),
        )
        for codes in coded.values():
            codes.clear()  # names of cases are new in every block


def _texts(cells: list[Any], coded: list[str] | None) -> list[str]:
    """Return cells as they stand in the file; those of a feature may be numbers by now."""
    if coded is not None:
        return [coded[int(cell)] for cell in cells]
    return [cell if isinstance(cell, str) else f"{cell:.15g}" for cell in cells]


def _header(table: Table) -> list[str]:
    if all(is_number(name) for name in table.first):
        raise DataError("must begin with a line of column names")
    names = table.names()
    seen = set()
    for name in names:
        if name in seen:
            raise DataError(f"has two columns {shown(name)}")
        seen.add(name)
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


def _lines(text: Any) -> Iterator[str]:
    """Yield the lines, of bounded length, without empty ones at the end."""
    empty = 0
    try:
        for line in iter(partial(text.readline, MAX_LINE + 1), ""):
            if line.isspace():
                empty += 1
                continue
            if len(line) > MAX_LINE:
                raise DataError(f"has a line of more than {MAX_LINE:,} characters")
            if empty:
                yield from repeat("\n", empty)
                empty = 0
            yield line
    except UnicodeDecodeError as error:
        raise DataError(f"is not text: {one_line(error)}") from None


def _chunk(lines: Iterator[str], most: int) -> list[str]:
    """Take some lines, few if they are long."""
    chunk, size = [], 0
    for line in islice(lines, most):
        chunk.append(line)
        size += len(line)
        if size > BLOCK_CHARACTERS:
            break
    return chunk


def _noted(lines: Iterator[str], seen: list[str]) -> Iterator[str]:
    for line in lines:
        seen.append(line)
        yield line


def _code(codes: dict[str, int], cell: str) -> int:
    return codes.setdefault(cell.strip(), len(codes))


def _number_or_word(cell: str) -> float | str:
    number = _number(cell)
    return cell.strip() if number is None else number


def _number(cell: str) -> float | None:
    word = cell.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    # Python would take 1_000 for a number.
    return float(word) if is_number(word) and "_" not in word else None


def is_number(cell: str) -> bool:
    """Tell whether a cell is a number to Python."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
