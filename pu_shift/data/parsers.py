"""From the bytes of a file to features and labels: LIBSVM text, tables, idx.

Compression (gzip, bzip2, xz, zip) is recognised by the first bytes, not by the
name. Every failure is a `DataError` of one line.
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
import lzma
import math
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from pu_shift.data.dataset import DataError, show

SUFFIXES = ("", ".gz", ".bz2", ".xz", ".zip")
MAX_BYTES = 256 << 20
"""No file of the six datasets unpacks to more; a bomb would."""

SAMPLE_ROWS, SAMPLE_SHARE, SAMPLE_SEED = 30_000, 0.03, 279

_COMPRESSIONS = (
    (b"\x1f\x8b", lambda stream: gzip.GzipFile(fileobj=stream)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)
_DENSE_VALUES = 1 << 30


def decompressed(stream: Any) -> Any:
    """Unpack a gzip, bzip2 or xz stream while it is read; pass others through.

    Examples
    --------
    >>> decompressed(io.BufferedReader(io.BytesIO(gzip.compress(b"1 1:2")))).read()
    b'1 1:2'
    """
    head = stream.peek(6)
    for magic, opener in _COMPRESSIONS:
        if head.startswith(magic):
            return opener(stream)
    if head.startswith(b"PK\x03\x04"):
        return decompressed(io.BufferedReader(_FirstMember(stream), 1 << 18))
    return stream


class _FirstMember(io.RawIOBase):
    """The first file of a zip archive that streams by; its index comes only at the end."""

    def __init__(self, stream: Any) -> None:
        header = stream.read(30)
        if len(header) < 30:
            raise EOFError("the archive ends in its first header")
        method, names = struct.unpack_from("<H", header, 8)[0], struct.unpack("<HH", header[26:])
        if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError(f"expected a deflated zip archive, found method {method}")
        stream.read(sum(names))
        self._stream = stream
        self._inflate = zlib.decompressobj(-15) if method else None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._inflate is None:
            chunk = self._stream.read(len(buffer))
        else:
            chunk = b""
            while not chunk and not self._inflate.eof:
                packed = self._inflate.unconsumed_tail or self._stream.read(1 << 16)
                if not packed:
                    raise EOFError("the archive ends before its first file does")
                chunk = self._inflate.decompress(packed, len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)


@contextlib.contextmanager
def reading(label: str) -> Iterator[None]:
    """Turn what a damaged file makes the readers raise into one `DataError`.

    Examples
    --------
    >>> with reading("a.gz"):
    ...     _ = gzip.decompress(gzip.compress(b"1 1:2")[:-4])
    Traceback (most recent call last):
    ...
    pu_shift.data.dataset.DataError: a.gz is truncated or corrupt: Compressed file ended ...
    """
    try:
        yield
    except DataError as error:
        raise DataError(f"{label}: {error}") from None
    except (
        EOFError,
        OSError,
        zlib.error,
        lzma.LZMAError,
        zipfile.BadZipFile,
        # zipfile: a password, or a compression it does not know
        RuntimeError,
    ) as error:
        raise DataError(f"{label} is truncated or corrupt: {one_line(error)}") from None


def one_line(error: object) -> str:
    r"""Return an exception's message without line breaks.

    Examples
    --------
    >>> one_line(ValueError("two\nlines"))
    'two lines'
    """
    return " ".join(str(error).split()) or type(error).__name__


def members(path: Path) -> list[str]:
    """List the files in a zip archive; none when the file is something else.

    Examples
    --------
    >>> members(Path(__file__))
    []
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return [n for n in archive.namelist() if not n.endswith("/") and "__MACOSX" not in n]
    except (zipfile.BadZipFile, OSError):
        return []


def read_content(
    path: Path, member: str | None = None, sample: bool = False, limit: int = MAX_BYTES
) -> bytes:
    r"""Read the unpacked content of a file or of one named member of a zip.

    Nothing is extracted to a path. With `sample`, only the lines that
    `sample_lines` keeps are ever held in memory.

    Examples
    --------
    >>> read_content(Path(__file__))[3:11]
    b'From the'
    """
    label = path.name if member is None else f"{path.name}[{member}]"
    with reading(label), contextlib.ExitStack() as stack:
        stream: IO[bytes]
        if member is None:
            stream = stack.enter_context(open(path, "rb"))
        else:
            archive = stack.enter_context(zipfile.ZipFile(path))
            stream = stack.enter_context(archive.open(member))
        stream = stack.enter_context(decompressed(stream))
        content = b"".join(sample_lines(stream) if sample else _blocks(stream, limit))
        start = content[:512].lstrip().lower()
        if start.startswith((b"<!doctype", b"<html", b"<?xml")):
            raise DataError("expected data, found an HTML page")
        if path.suffix == ".zip" and member is None:
            raise DataError("expected a zip archive, found part of one or something else")
        return content


def _blocks(stream: IO[bytes], limit: int) -> Iterator[bytes]:
    # In blocks: one read of the limit would take as much memory for the smallest file.
    total = 0
    for block in iter(lambda: stream.read(1 << 20), b""):
        total += len(block)
        if total > limit:
            raise DataError(f"unpacks to more than {limit:,} bytes")
        yield block


def sample_lines(stream: IO[bytes]) -> Iterator[bytes]:
    r"""Keep a fixed random subset of a stream's lines and stop when it is full.

    Each line is kept with probability 0.03, decided by Python's Mersenne
    Twister with seed 279 (the same on every version), until 30,000 are kept;
    of SUSY's 5,000,000 rows about the first million are read. The rows are
    independent simulated collisions in no order, so this is a random sample.

    Examples
    --------
    >>> sum(1 for _ in sample_lines(io.BytesIO(b"x\n" * 10_000)))
    307
    """
    # The same rows for everyone, and no secret.
    generator = random.Random(SAMPLE_SEED)  # nosec B311
    kept = 0
    # A bounded readline: a file without line breaks must not fill the memory.
    for line in iter(lambda: stream.readline(1 << 16), b""):
        if generator.random() < SAMPLE_SHARE:
            yield line
            kept += 1
            if kept == SAMPLE_ROWS:
                return


def parse_libsvm(content: bytes, features: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    r"""Parse LIBSVM text: ``label index:value ...``.

    Indices start from 1; also from 0 when the number of features is not given.

    Examples
    --------
    >>> parse_libsvm(b"+1 2:0.5\n-1 1:3\n")
    (array([[0. , 0.5], [3. , 0. ]], dtype=float32), array([ 1., -1.]))
    """
    if not content.strip():
        raise DataError("expected LIBSVM text, found nothing")
    # Slow to import, and not needed to map arrays that were parsed before.
    from sklearn.datasets import load_svmlight_file

    try:
        X, labels = load_svmlight_file(
            io.BytesIO(content),
            n_features=features,
            dtype=np.float32,
            zero_based="auto" if features is None else False,
        )
    except (ValueError, OverflowError) as error:
        raise DataError(f"is not LIBSVM text: {one_line(error)}") from None
    if X.shape[0] * X.shape[1] > _DENSE_VALUES:
        raise DataError(f"is too large as a dense array: {X.shape[0]:,} × {X.shape[1]:,}")
    return X.toarray(), labels


def parse_table(content: bytes, label: int | str = -1) -> tuple[np.ndarray, np.ndarray]:
    r"""Parse a CSV, KEEL or ARFF table into float32 features and labels.

    The separator (comma, semicolon or tab) and a header line are recognised
    from the first line; of KEEL and ARFF files the part after ``@data`` is read.
    `label` is a position (from 0; negative from the end) or a name in the header.

    Examples
    --------
    >>> parse_table(b"size,class\n1.5,g\n2.5,h\n", label="class")
    (array([[1.5], [2.5]], dtype=float32), array(['g', 'h'], dtype=object))
    """
    try:
        text = content.decode("utf-8-sig").lstrip()
    except UnicodeDecodeError as error:
        raise DataError(f"is not text: {one_line(error)}") from None
    has_preamble = text.startswith(("@", "%"))
    if has_preamble:
        preamble, *rest = re.split(r"(?im)^@data[^\n]*\n", text, maxsplit=1)
        text = (rest or [text])[0].lstrip()
        if text.startswith(("@", "%")):
            raise DataError("has a KEEL or ARFF header but no @data line")
        if text.startswith("{"):
            return _parse_sparse(text, preamble)
    if not text:
        raise DataError("expected a table, found nothing")
    first = text.split("\n", 1)[0].rstrip("\r")
    separator = max(",;\t", key=first.count)
    try:
        cells = [cell.strip() for cell in next(csv.reader([first], delimiter=separator))]
    except csv.Error as error:
        raise DataError(f"is not a table: {one_line(error)}") from None
    column = _column(label, cells)
    # One number is enough for a row of data: a "?" in it must not pass for a header.
    header = isinstance(label, str) or not (
        has_preamble or any(_is_number(cell) for i, cell in enumerate(cells) if i != column)
    )
    if header and "" in cells:
        raise DataError(
            f"has no name for column {cells.index('') + 1}: if it numbers the rows, write the "
            "table without it"
        )
    import pandas as pd  # late, as above

    def read(skip: int) -> pd.DataFrame:
        try:
            frame = pd.read_csv(
                io.StringIO(text),
                sep=separator,
                header=None,
                skiprows=skip,
                skipinitialspace=True,
                low_memory=False,
                # Marked, so that "None" and "True" are labels like any other.
                converters={column: lambda cell: f"={cell.strip()}"},
            )
        except pd.errors.EmptyDataError:
            raise DataError("has a header but no rows") from None
        except pd.errors.ParserError as error:
            raise DataError(f"is not a table: {one_line(error)}") from None
        if frame.shape[1] != len(cells):
            raise DataError(f"expected {len(cells)} columns, found {frame.shape[1]}")
        return frame

    frame = read(int(header))
    others = cells[:column] + cells[column + 1 :]
    if not header and others == [str(i) for i in range(len(others))] and len(frame) > 1:
        # The names that pandas gives to columns without one, unless the label comes again.
        header = not (frame[column].iloc[1:] == f"={cells[column]}").any()
        frame = read(1) if header else frame
    labels = frame.pop(column).str[1:]
    if (labels == "").any():
        row = int((labels == "").to_numpy().argmax()) + 1
        raise DataError(f"expected a label in every row, found none in row {row}")
    numbers = pd.to_numeric(labels.map(_as_number), errors="coerce")
    labels = numbers if numbers.notna().all() else labels
    for position, values in frame.items():
        if not pd.api.types.is_numeric_dtype(values):
            wrong = values[pd.to_numeric(values, errors="coerce").isna() & values.notna()]
            raise DataError(
                f"column {cells[position] if header else position + 1} is not numeric: "
                f"found {show(wrong.unique(), 3)}"
            )
    with np.errstate(over="ignore"):  # the caller rejects what is not finite
        X = frame.to_numpy(dtype=np.float32)
    if pd.api.types.is_numeric_dtype(labels):
        return X, labels.to_numpy(dtype=np.float64)
    return X, labels.to_numpy(dtype=object)


def _parse_sparse(text: str, preamble: str) -> tuple[np.ndarray, np.ndarray]:
    """Parse the rows of a sparse ARFF file, ``{index value, ...}``; its label is nominal."""
    kinds = re.findall(r"(?im)^@attribute\s+(?:'[^']*'|\"[^\"]*\"|\S+)\s+(.+?)\s*$", preamble)
    nominal = [position for position, kind in enumerate(kinds) if kind.startswith("{")]
    if len(nominal) != 1:
        raise DataError(f"expected one nominal attribute, the label, found {len(nominal)}")
    # What a row leaves out is the first of the values, by the format's rule.
    default = kinds[nominal[0]].strip("{} ").split(",")[0].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    values = np.zeros((len(lines), len(kinds)), dtype=np.float32)
    labels = np.full(len(lines), float(default))
    try:
        for row, line in enumerate(lines):
            for entry in filter(None, line.strip("{}").split(",")):
                position, value = entry.split()
                if int(position) == nominal[0]:
                    labels[row] = float(value)
                else:
                    values[row, int(position)] = float(value)
    except (ValueError, IndexError):
        raise DataError(f"is not sparse ARFF: row {row + 1}") from None
    return np.delete(values, nominal[0], axis=1), labels


def _column(label: int | str, cells: Sequence[str]) -> int:
    if isinstance(label, str):
        if label not in cells:
            raise DataError(f"label must name a column, got {label!r}; there are {show(cells)}")
        return cells.index(label)
    if not hasattr(label, "__index__"):
        raise DataError(f"label must be a column's position or name, got {label!r}")
    if not -len(cells) <= label < len(cells) or len(cells) < 2:
        raise DataError(f"has {len(cells)} column(s): label {label} and a feature do not fit")
    return label % len(cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def parse_idx(content: bytes) -> np.ndarray:
    r"""Parse an idx file of unsigned bytes, the format of MNIST.

    Examples
    --------
    >>> parse_idx(b"\0\0\x08\x01\0\0\0\x03abc")
    array([97, 98, 99], dtype=uint8)
    """
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise DataError(f"expected an idx file of bytes, found the first bytes {content[:4]!r}")
    start = 4 + 4 * content[3]
    shape = np.frombuffer(content[4:start].ljust(start - 4, b"\0"), dtype=">u4").tolist()
    expected = start + math.prod(shape)
    if len(content) != expected:
        raise DataError(f"expected {expected:,} bytes, found {len(content):,}")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def to_signs(
    labels: np.ndarray, positive: Sequence[Any], negative: Sequence[Any] | None = None
) -> np.ndarray:
    """Turn labels into +1 and −1; by default all that is not positive is negative.

    Examples
    --------
    >>> to_signs(np.array([0.0, 1.0]), positive=[1])
    array([-1,  1], dtype=int8)
    """
    positives = _among(labels, positive)
    if negative is not None:
        strange = ~(positives | _among(labels, negative))
        if strange.any():
            raise DataError(
                f"expected the labels {show([*positive, *negative], 10)}, "
                f"found {show(np.unique(labels[strange]))}"
            )
    return np.where(positives, 1, -1).astype(np.int8)


def _among(labels: np.ndarray, values: Sequence[Any]) -> np.ndarray:
    if labels.dtype.kind == "O":
        return np.isin(labels.astype(str), [str(value) for value in values])
    return np.isin(
        labels, [float(number) for number in map(_as_number, values) if _is_number(number)]
    )


def _as_number(label: Any) -> str:
    """Return a label as text, truth values as 1 and 0."""
    return {"true": "1", "false": "0"}.get(str(label).lower(), str(label))
