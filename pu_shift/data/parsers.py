"""From the bytes of a file to features and labels: LIBSVM text, tables, idx."""

from __future__ import annotations

import io
import math
import random
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from pu_shift._checks import one_line
from pu_shift.data.dataset import DataError, show
from pu_shift.files.preparation import TablePreparation
from pu_shift.files.tables import Table, is_number
from pu_shift.files.unpacking import decompressed, may_unpack, reading

Labelled = tuple[np.ndarray, np.ndarray]
SUFFIXES = ("", ".gz", ".bz2", ".xz", ".zip")
MAX_BYTES = 256 << 20
"""No file of the six datasets is larger."""

SAMPLE_ROWS, SAMPLE_SHARE, SAMPLE_SEED = 30_000, 0.03, 279


def members(path: Path) -> list[str]:
    """List the files in a zip archive; none when the file is something else."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [n for n in archive.namelist() if not n.endswith("/") and "__MACOSX" not in n]
    except (zipfile.BadZipFile, OSError):
        return []


def read_content(path: Path, member: str | None = None, sample: bool = False) -> bytes:
    """Read the unpacked content of a file, or of one named member of a zip.

    Nothing is extracted to a path. With `sample`, only the lines that
    `sample_lines` keeps are ever held in memory.
    """
    label = path.name if member is None else f"{path.name}[{member}]"
    with reading(label), open(path, "rb") as file, decompressed(file, member) as stream:
        # In blocks: one read of all would take twice the memory of what is refused in the end.
        blocks = sample_lines(stream) if sample else iter(lambda: stream.read(1 << 20), b"")
        content = b"".join(blocks)
        start = content[:512].lstrip().lower()
        if start.startswith((b"<!doctype", b"<html", b"<?xml")):
            raise DataError("expected data, found an HTML page")
        if path.suffix == ".zip" and member is None:
            raise DataError("expected a zip archive, found part of one or something else")
        return content


def sample_lines(stream: IO[bytes]) -> Iterator[bytes]:
    r"""Keep a fixed random subset of a stream's lines and stop when it is full.

    Each line is kept with probability 0.03, decided by Python's Mersenne
    Twister with seed 279 (the same on every version), until 30,000 are kept;
    of SUSY's 5,000,000 rows about the first million are read. The rows are
    independent simulated collisions in no order, so this is a random sample.
    """
    # The same rows for every user; this needs no cryptographic generator.
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
    _check_dense(X.shape, len(content))
    return X.toarray(), labels


def _check_dense(shape: tuple[int, int], read: int) -> None:
    """Refuse a sparse text that would be far larger as an array."""
    if not may_unpack(4 * math.prod(shape), read):
        raise DataError(f"is too large as a dense array: {shape[0]:,} × {shape[1]:,}")


def parse_table(content: bytes, label: int | str = -1) -> tuple[np.ndarray, np.ndarray]:
    """Parse a CSV, KEEL or ARFF table into float32 features and labels.

    A header line is recognised from its cells; of KEEL and ARFF files the part
    after ``@data`` is read. `label` is a position (from 0; negative from the end)
    or a name in the header.
    """
    content = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    has_preamble = content.startswith((b"@", b"%"))
    if has_preamble:
        preamble, *rest = re.split(rb"(?im)^[ \t]*@data\b[^\n]*\n", content, maxsplit=1)
        content = re.sub(rb"(?m)^[ \t]*%[^\n]*\n?", b"", (rest or [content])[0]).lstrip()
        if not rest or content.startswith(b"@"):
            raise DataError("has a KEEL or ARFF header but no @data line")
        if content.startswith(b"{"):
            return _parse_sparse(
                content.decode(errors="replace"), preamble.decode(errors="replace")
            )
    if not content:
        raise DataError("expected a table, found nothing")
    table = Table(io.BytesIO(content))
    column = _column(label, table.first)
    others = [cell for place, cell in enumerate(table.first) if place != column]
    # A row with one number is data: a "?" in it does not make it a header.
    header = isinstance(label, str) or not (
        has_preamble or any(not cell or is_number(cell) for cell in others)
    )
    if header:
        table.names()
    features = [place for place in range(len(table.first)) if place != column]
    names = [table.first[place] if header else place + 1 for place in features]
    preparation = TablePreparation.plain(names, missing=True)
    rows: list[np.ndarray] = []
    labels: list[str] = []
    with np.errstate(over="ignore"):  # the caller rejects what is not finite
        for frame, (texts,) in table.chunks(features, keep=[column]):
            numbers, _ = preparation.convert(frame, len(labels))
            rows.append(numbers.astype(np.float32))
            labels.extend(texts)
    if not rows:
        raise DataError("has a header but no rows")
    # The names that pandas gives to columns without one, unless the label comes again.
    numbered = not header and others == [str(i) for i in range(len(others))] and len(labels) > 1
    start = int(numbered and labels[0] not in labels[1:])
    return np.concatenate(rows)[start:], _labels(labels[start:])


def _labels(texts: list[str]) -> np.ndarray:
    """Return the labels as numbers, if all of them are, or as they stand."""
    if "" in texts:
        row = texts.index("") + 1
        raise DataError(f"expected a label in every row, found none in row {row}")
    names, places = np.unique(np.array(texts, dtype=object), return_inverse=True)
    numbers = [_as_number(name) for name in names]
    if all(map(is_number, numbers)):
        names = np.array(numbers, dtype=np.float64)
    return names[places]


def _parse_sparse(text: str, preamble: str) -> tuple[np.ndarray, np.ndarray]:
    """Parse the rows of a sparse ARFF file, ``{index value, ...}``; its label is nominal."""
    kinds = re.findall(r"(?im)^@attribute\s+(?:'[^']*'|\"[^\"]*\"|\S+)\s+(.+?)\s*$", preamble)
    nominal = [position for position, kind in enumerate(kinds) if kind.startswith("{")]
    if len(nominal) != 1:
        raise DataError(f"expected one nominal attribute, the label, found {len(nominal)}")
    # What a row leaves out is the first of the values, by the format's rule.
    default = kinds[nominal[0]].strip("{} ").split(",")[0].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    _check_dense((len(lines), len(kinds)), len(text) + len(preamble))
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


def parse_idx(content: bytes) -> np.ndarray:
    """Parse an idx file of unsigned bytes, the format of MNIST."""
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise DataError(f"expected an idx file of bytes, found the first bytes {content[:4]!r}")
    start = 4 + 4 * content[3]
    shape = np.frombuffer(content[4:start].ljust(start - 4, b"\0"), dtype=">u4").tolist()
    expected = start + math.prod(shape)
    if len(content) != expected:
        raise DataError(f"expected {expected:,} bytes, found {len(content):,}")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _images(contents: Iterable[bytes]) -> list[Labelled]:
    """Read pairs of files: images, then their labels."""
    arrays = [parse_idx(content) for content in contents]
    return [(image.reshape(len(image), -1), y) for image, y in zip(arrays[::2], arrays[1::2])]


# Each takes the contents of the files, the number of features and the place of the label, and
# returns features and labels of each part. A new format is a function and a line here.
FORMATS: dict[str, Callable[[Iterable[bytes], int, int | str], list[Labelled]]] = {
    "idx": lambda contents, features, label: _images(contents),
    "libsvm": lambda contents, features, label: [parse_libsvm(c, features) for c in contents],
    "table": lambda contents, features, label: [parse_table(c, label) for c in contents],
}


def to_signs(
    labels: np.ndarray, positive: Sequence[Any], negative: Sequence[Any] | None = None
) -> np.ndarray:
    """Turn labels into +1 and −1; by default all that is not positive is negative."""
    positives = _among(labels, positive)
    if negative is not None:
        unknown = ~(positives | _among(labels, negative))
        if unknown.any():
            raise DataError(
                f"expected the labels {show([*positive, *negative], 10)}, "
                f"found {show(np.unique(labels[unknown]))}"
            )
    return np.where(positives, 1, -1).astype(np.int8)


def _among(labels: np.ndarray, values: Sequence[Any]) -> np.ndarray:
    if labels.dtype.kind == "O":
        return np.isin(labels.astype(str), [str(value) for value in values])
    return np.isin(
        labels, [float(number) for number in map(_as_number, values) if is_number(number)]
    )


def _as_number(label: Any) -> str:
    """Return a label as text, truth values as 1 and 0."""
    return {"true": "1", "false": "0"}.get(str(label).lower(), str(label))
