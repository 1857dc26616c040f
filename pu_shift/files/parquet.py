"""Parquet: a file, a folder of files, or one that is partitioned, read one row group at a time.

Only the columns that are asked for are read. A row group can be sent to a worker of a cluster,
which reads it where it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pu_shift._checks import one_line, shown
from pu_shift._seeds import Seed, child
from pu_shift.bigdata import RowBlocks
from pu_shift.files.preparation import TablePreparation
from pu_shift.files.tables import (
    BLOCK_CELLS,
    Block,
    DataError,
    check_drop,
    check_finite,
    missing_column,
)

SUFFIXES = (".parquet", ".pq")
# Rows that a preparation of words and gaps is fitted to at most.
MAX_PREPARED_ROWS = 50_000


class Samples(NamedTuple):
    """The features' names, the two samples in numbers, and how they came to be numbers."""

    names: np.ndarray
    X_p: Any
    X_u: Any
    preparation: TablePreparation | None


def is_parquet(path: str) -> bool:
    """Tell whether this is a folder, or a file that begins like a Parquet file or is named so."""
    if os.path.isdir(path) or Path(path).suffix in SUFFIXES:
        return True
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


class ParquetRows:
    """The rows of a Parquet file or folder, by row groups in the order of the files' names."""

    def __init__(self, path: str) -> None:
        arrow = pyarrow_or_refuse()
        self.path = path
        if not os.path.exists(path):
            raise DataError(f"data must be a file or folder, got {one_line(repr(path))}")
        with _reading(path):
            # Workers of a cluster may have another working folder.
            dataset = arrow.dataset.dataset(
                os.path.abspath(path), format="parquet", partitioning="hive"
            )
            self.schema = dataset.schema
            self.files = sorted(dataset.get_fragments(), key=lambda file: file.path)
            groups = [group for file in self.files for group in file.split_by_row_group()]
            # `count_rows` of a row group is that of its file.
            self.counts = [sum(part.num_rows for part in group.row_groups) for group in groups]
        self.names = list(self.schema.names)
        if len(set(self.names)) < len(self.names):
            raise DataError(f"data: {path} has two columns of one name")
        if sum(self.counts) == 0:
            raise DataError(f"data: {path} has no rows")
        starts = np.cumsum([0, *self.counts]).tolist()
        firsts: dict[str, int] = {}
        self.groups = [
            RowGroup(
                group.path,
                group.row_groups[0].id,
                group.partition_expression,
                self.schema,
                start,
                start - firsts.setdefault(group.path, start),
            )
            for group, start in zip(groups, starts)
        ]

    def check(self, names: Sequence[str], words: bool) -> None:
        """Refuse columns that are missing, in any of the files, or hold neither number nor word."""
        for name in names:
            if name not in self.names:
                raise DataError(f"data: {self.path} {missing_column(name, self.names)}")
            kind = self.schema.field(name).type
            if not (_is_number(kind) or (words and _is_word(kind))):
                cure = "--prepare takes words, " if _is_word(kind) and not words else ""
                raise DataError(
                    f"data: {self.path} has {kind} in column {shown(name)}, where there must be "
                    f"numbers; {cure}--drop leaves a column out"
                )
        # Nulls would take the place of what a single file does not have.
        keys = set(self.names) - set.union(*(set(f.physical_schema.names) for f in self.files))
        for file in self.files:
            for name in set(names) - keys:
                if name not in file.physical_schema.names:
                    found = missing_column(name, file.physical_schema.names)
                    raise DataError(f"data: {file.path} {found}")
                kind = file.physical_schema.field(name).type
                if _is_number(kind) != _is_number(self.schema.field(name).type):
                    raise DataError(
                        f"data: {file.path} has {kind} in column {shown(name)}, other files have "
                        f"{self.schema.field(name).type}"
                    )

    def cells(self, names: Sequence[str], seed: Seed) -> np.ndarray:
        """Return numbers, words and gaps of some rows, at most as many as a preparation needs."""
        n, places = sum(self.counts), None
        if n > MAX_PREPARED_ROWS:
            rng = np.random.default_rng(seed)
            places = np.sort(rng.choice(n, MAX_PREPARED_ROWS, replace=False))
        parts = []
        for group in self.groups:
            for first, table in group.tables(names):
                rows = _matrix(table, names, words=True)
                if places is not None:
                    low, high = np.searchsorted(places, (first, first + len(rows)))
                    rows = rows[places[low:high] - first]
                parts.append(rows)
        return np.concatenate(parts)

    def blocks(self, names: Sequence[str], keep: Sequence[str], words: bool) -> Iterator[Block]:
        """Yield the rows' features, and the columns to keep as Arrow's arrays."""
        for group in self.groups_with(names, keep, words):
            for block in group.blocks(names, keep, words):
                yield block._replace(size=sum(self.counts))

    def groups_with(self, names: Sequence[str], keep: Sequence[str], words: bool) -> list[RowGroup]:
        """Return the row groups, if all files have these columns."""
        self.check(names, words)
        for name in keep:
            if name not in self.names:
                raise DataError(f"data: {self.path} {missing_column(name, self.names)}")
        return self.groups


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file, and how many rows come before it: of all files, and of its own.

    It can be sent without being opened; ``keys`` tell the values that stand in the path.
    """

    path: str
    number: int
    keys: Any
    schema: Any
    start: int
    start_in_file: int

    def tables(self, names: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield the number of the first row, and some rows of the columns."""
        first = self.start
        with _reading(self.path):
            arrow = pyarrow_or_refuse()
            fragment = arrow.dataset.ParquetFileFormat().make_fragment(
                self.path, arrow.fs.LocalFileSystem(), self.keys, [self.number]
            )
            scanner = fragment.scanner(
                schema=self.schema,
                columns=list(names),
                batch_size=max(1, BLOCK_CELLS // len(names)),
                batch_readahead=1,
                fragment_readahead=1,
            )
            for batch in scanner.to_batches():
                if batch.num_rows:
                    yield first, arrow.Table.from_batches([batch])
                    first += batch.num_rows

    def in_file(self, place: int) -> int:
        """Return the place in the file of a row that has this one among all."""
        return place - self.start + self.start_in_file

    def blocks(self, names: Sequence[str], keep: Sequence[str], words: bool) -> Iterator[Block]:
        """Yield features, and the columns to keep; positions count rows."""
        for first, table in self.tables([*names, *(name for name in keep if name not in names)]):
            rows = self.matrix(table, names, first, words)
            end = first + len(rows)
            yield Block(rows, end, end, tuple(table.column(name) for name in keep))

    def matrix(self, table: Any, names: Sequence[str], first: int, words: bool) -> np.ndarray:
        """Return the finite numbers of a table; with words, cells may be words or missing."""
        rows = _matrix(table, names, words)
        try:
            check_finite(rows, names, self.in_file(first), missing=words)
        except DataError as error:
            raise type(error)(f"data: {self.path} {error}") from None
        return rows


def open_samples(
    paths: Sequence[str],
    label: str | None,
    drop: Sequence[str],
    prepare: bool,
    seed: Seed,
    remote: bool,
) -> Samples:
    """Open P and U, in one Parquet table with a label or in two, to be read in blocks."""
    tables = [ParquetRows(path) for path in paths]
    names = _features(tables, label, drop)
    for table in tables:
        table.check(names, words=prepare)
    preparation, width = None, len(names)
    if prepare:
        cells = [table.cells(names, child(seed, 7, k)) for k, table in enumerate(tables)]
        preparation = TablePreparation().fit(np.concatenate(cells), feature_names=names)
        width = preparation.transform(cells[0][:1]).shape[1]
    X_p, X_u = (
        RowBlocks.of_parts(
            [
                _SampleGroup(group, tuple(names), label, name == "X_p", preparation)
                for group in table.groups
            ],
            name,
            width,
            remote,
        )
        for name, table in zip(("X_p", "X_u"), (tables[0], tables[-1]))
    )
    return Samples(np.array(names, dtype=object), X_p, X_u, preparation)


def _features(tables: Sequence[ParquetRows], label: str | None, drop: Sequence[str]) -> list[str]:
    """Return the names of the features, if the tables have them and what else is named."""
    first, last = tables[0], tables[-1]
    check_drop(first.path, drop, label, [table.names for table in tables])
    if label is not None and label not in first.names:
        raise DataError(f"label: {first.path} {missing_column(label, first.names)}")
    if label is not None and not _is_number(first.schema.field(label).type):
        raise DataError(f"label: column {label!r} must hold 1 and 0 or -1")
    names = [name for name in first.names if name != label and name not in drop]
    if not names:
        raise DataError(f"data: {first.path} has no column of features")
    for name in last.names:
        if name not in first.names and name not in drop:
            raise DataError(f"data: {first.path} {missing_column(name, first.names)}")
    return names


@dataclass(frozen=True)
class _SampleGroup:
    """The rows of a row group that belong to P or to U, as blocks of numbers."""

    group: RowGroup
    names: tuple[str, ...]
    label: str | None
    positive: bool
    preparation: TablePreparation | None

    def __call__(self) -> Iterator[np.ndarray]:
        words = self.preparation is not None
        read = [*self.names, *([] if self.label is None else [self.label])]
        for first, table in self.group.tables(read):
            rows = self.group.matrix(table, self.names, first, words)
            if self.label is not None:
                rows = rows[self._marks(table, self.label, first) == self.positive]
            if self.preparation is not None and len(rows):
                rows = self.preparation.transform(rows)
            if len(rows):
                yield rows

    def _marks(self, table: Any, label: str, first: int) -> np.ndarray:
        """Tell which rows are labelled as positive."""
        marks = _matrix(table, [label], words=False)[:, 0]
        strange = np.flatnonzero(~np.isin(marks, (1.0, 0.0, -1.0)))
        if len(strange):
            raise DataError(
                f"label: column {label!r} must be 1 for labelled positives and 0 or -1 for "
                f"unlabelled rows, found {marks[strange[0]]:g} in row "
                f"{self.group.in_file(first) + strange[0] + 1} of {self.group.path}"
            )
        return marks == 1.0


def pyarrow_or_refuse() -> Any:
    """Import what only Parquet needs."""
    try:
        import pyarrow.dataset
        import pyarrow.fs
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            "data: Parquet needs pyarrow: pip install '.[parquet]' in a clone"
        ) from None
    return pyarrow


@contextmanager
def _reading(path: str) -> Iterator[None]:
    arrow = pyarrow_or_refuse()
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"data: {one_line(path)} cannot be read: {one_line(error)}") from None


def _is_number(kind: Any) -> bool:
    types = pyarrow_or_refuse().types
    tests = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal
    return any(test(kind) for test in tests)


def _is_word(kind: Any) -> bool:
    types = pyarrow_or_refuse().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return types.is_string(kind) or types.is_large_string(kind)


def _matrix(table: Any, names: Sequence[str], words: bool) -> np.ndarray:
    """Return columns as numbers, with NaN for gaps; as objects if there are words."""
    arrow = pyarrow_or_refuse()
    columns: list[Any] = []
    for name in names:
        column = table.column(name)
        if _is_word(column.type):
            values = column.cast(arrow.string()).to_pylist()
            columns.append(np.array([np.nan if v is None else v for v in values], dtype=object))
        else:
            columns.append(column.cast(arrow.float64()).to_numpy())
    wordy = words and any(column.dtype == object for column in columns)
    rows = np.empty((table.num_rows, len(names)), dtype=object if wordy else np.float64)
    for place, column in enumerate(columns):
        rows[:, place] = column
    return rows
