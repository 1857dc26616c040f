"""Files of rows for the command line: CSV with a header, and ``.npy`` matrices.

A file to fit is read whole, one to predict block by block: memory stays the
same for any number of rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pu_shift.data.dataset import DataError

# Large enough that reading is fast, small beside what a process needs anyway.
BLOCK_ROWS = 65536
LARGEST = 1e150
_FORMAT: dict[str, Any] = {"encoding": "utf-8-sig", "skipinitialspace": True}


class Block(NamedTuple):
    """Some consecutive rows, and how many bytes of the file's size have been read with them."""

    rows: Any
    position: int
    size: int


def read_csv(path: str) -> pd.DataFrame:
    r"""Read a CSV file with a line of column names; commas, semicolons or tabs.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    pandas.DataFrame
        At least one row.

    Raises
    ------
    DataError
        When it is no such file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "rows.csv")
    ...     _ = file.write_text("size;weight\n1,5;2\n3;4\n")
    ...     read_csv(str(file)).columns.tolist()
    ['size', 'weight']
    """
    names, options = _layout(path)
    with _reading(path):
        frame = pd.read_csv(path, **options)
    if len(names) == 1:
        frame = frame[: len(frame) - _empty_at_the_end(frame)]
    if len(frame) == 0:
        raise DataError(f"data: {path} has no rows")
    return frame


def read_blocks(
    path: str, names: Sequence[str] | None, n_features: int, block_rows: int = BLOCK_ROWS
) -> Iterator[Block]:
    r"""Read the features of a file block by block.

    Parameters
    ----------
    path
        A CSV file with the columns ``names``, among others, or a ``.npy``
        matrix whose columns are the features in this order.
    names
        The features; ``None`` when they have no names, which a CSV file needs.
    n_features
        How many there are.
    block_rows
        Rows of a block.

    Yields
    ------
    Block
        Finite float64 rows: a data frame, or a matrix when there are no names.

    Raises
    ------
    DataError
        When the file is not of this kind, in one line that says where.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "rows.csv")
    ...     _ = file.write_text("id,a\nx,1\ny,2\nz,3\n")
    ...     [block.rows["a"].tolist() for block in read_blocks(str(file), ["a"], 1, 2)]
    [[1.0, 2.0], [3.0]]
    """
    is_matrix = Path(path).suffix == ".npy"
    if names is None and not is_matrix:
        raise DataError(f"data: {path} must be a .npy file, the model's features have no names")
    read = _npy_blocks if is_matrix else _csv_blocks
    first = 0
    for rows, position in read(path, () if names is None else names, n_features, block_rows):
        yield Block(finite(path, rows, first), position, os.path.getsize(path))
        first += len(rows)
    if first == 0:
        raise DataError(f"data: {path} has no rows")


def finite(path: str, rows: Any, first: int = 0) -> Any:
    """Return rows as float64, or say which cell is no number.

    Parameters
    ----------
    path
        The file they come from.
    rows
        A data frame or a matrix.
    first
        How many rows of the file come before.

    Returns
    -------
    pandas.DataFrame or numpy.ndarray
        The same rows.

    Examples
    --------
    >>> finite("a.csv", pd.DataFrame({"b": ["1", "x"]}))
    Traceback (most recent call last):
    ...
    pu_shift.data.dataset.DataError: data: a.csv needs a finite number in row 2 of column 'b', ...
    """
    is_frame = isinstance(rows, pd.DataFrame)
    if rows.shape[1] == 0:
        raise DataError(f"data: {path} has no column of features")
    numbers = rows.apply(pd.to_numeric, errors="coerce") if is_frame else rows
    numbers = numbers.astype(np.float64)
    # Squares are summed: they have to be finite too.
    wrong = ~(np.abs(np.asarray(numbers)) <= LARGEST)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        name = rows.columns[column] if is_frame else int(column)
        found = rows.iloc[row, column] if is_frame else rows[row, column]
        found = found.item() if isinstance(found, np.generic) else found
        limit = f", above {LARGEST:g}" if np.isfinite(np.asarray(numbers)[row, column]) else ""
        raise DataError(
            f"data: {path} needs a finite number in row {first + row + 1} of column {name!r}, "
            f"found {found!r}{limit}"
        )
    return numbers


def _csv_blocks(
    path: str, names: Sequence[str], n_features: int, block_rows: int
) -> Iterator[tuple[pd.DataFrame, int]]:
    present, options = _layout(path)
    missing = [name for name in names if name not in present]
    if missing:
        raise DataError(f"data: {path} has no column {missing[0]!r}")
    with (
        _reading(path),
        open(path, "rb") as file,
        pd.read_csv(file, chunksize=block_rows, **options) as reader,
    ):
        # All columns: with some left out pandas would accept lines that are too long.
        held = None
        for frame in reader:
            if len(present) == 1:
                # Empty lines are rows, unless the file ends with them.
                frame = pd.concat([held, frame], ignore_index=True)
                full = len(frame) - _empty_at_the_end(frame)
                frame, held = frame[:full], frame[full:]
            if len(frame):
                yield frame[list(names)], file.tell()


def _npy_blocks(
    path: str, names: Sequence[str], n_features: int, block_rows: int
) -> Iterator[tuple[Any, int]]:
    with _reading(path, "NumPy matrix"):
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
        if matrix.ndim != 2 or matrix.shape[1] != n_features or matrix.dtype.kind not in "fiub":
            raise ValueError(
                f"it must hold (rows, {n_features}) numbers, has {matrix.shape} {matrix.dtype}"
            )
        n, offset = len(matrix), matrix.offset
        row_bytes = n_features * matrix.itemsize
        for start in range(0, n, block_rows):
            # Mapped anew: pages of an old map would count as memory of the process.
            matrix = np.load(path, mmap_mode="r", allow_pickle=False)
            rows = np.array(matrix[start : start + block_rows])
            del matrix
            position = offset + (start + len(rows)) * row_bytes
            yield (pd.DataFrame(rows, columns=list(names)) if len(names) else rows), position


@contextmanager
def _reading(path: str, kind: str = "CSV file") -> Iterator[None]:
    if not Path(path).is_file():
        raise DataError(f"data must be a file, got {path!r}")
    try:
        yield
    except DataError:
        raise
    except (ValueError, EOFError) as error:  # pandas' parser errors are ValueErrors
        reason = " ".join(str(error).split())
        raise DataError(f"data: {path} is not a {kind}: {reason}") from None


def _layout(path: str) -> tuple[list[str], dict[str, Any]]:
    """Check the line of names; return the names, and how pandas has to read the file."""
    with _reading(path):
        options = {"sep": _separator(path), **_FORMAT}
        # As it stands: pandas would rename what is repeated or empty, and would take the
        # first field of rows that have one too many as their name.
        lines = pd.read_csv(path, header=None, nrows=2, dtype=str, keep_default_na=False, **options)
    names = lines.iloc[0].tolist()
    if all(_is_number(name) for name in names):
        raise DataError(f"data: {path} must begin with a line of column names")
    for place, name in enumerate(names):
        if not name.strip():
            raise DataError(
                f"data: {path} has no name for column {place + 1}: if it numbers the rows, write "
                "the file without it"
            )
        if name in names[:place]:
            raise DataError(f"data: {path} has two columns {name!r}")
    # With one column, an empty line is a row whose value is missing.
    return names, {**options, "skip_blank_lines": len(names) > 1}


def _separator(path: str) -> str:
    with open(path, encoding="utf-8-sig") as file:
        # A name may hold a comma, and a number a decimal one, but not both lines alike.
        lines = list(islice((line for line in file if line.strip()), 2))
    return max(",;\t", key=lambda mark: min((line.count(mark) for line in lines), default=0))


def _empty_at_the_end(frame: pd.DataFrame) -> int:
    """Count the rows without any value after the last one that has some."""
    present = frame.notna().any(axis=1).to_numpy()[::-1]
    return int(present.argmax()) if present.any() else len(frame)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
