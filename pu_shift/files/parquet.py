"""Parquet: a file, a folder of files, or one that is partitioned, as a Dask data frame.

Only the columns that are asked for are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pu_shift._checks import ArgumentError, one_line, shown
from pu_shift._seeds import Seed
from pu_shift.bigdata import cluster_errors, compute, in_memory, on_worker, partitions
from pu_shift.files.columns import check_drop, check_names, missing_column, split_names
from pu_shift.files.preparation import TablePreparation
from pu_shift.files.tables import Block, CellError, check_finite
from pu_shift.files.unpacking import DataError, reading

SUFFIXES = (".parquet", ".pq")
# What the columns of a partition take, at most, unless a row group takes more.
PARTITION_SIZE = "64MiB"


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


class ParquetTable:
    """The files of a Parquet table, in the order of their names."""

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
            self.schema, self.n_rows = dataset.schema, dataset.count_rows()
            self.files = sorted(dataset.get_fragments(), key=lambda file: file.path)
        self.names = list(self.schema.names)
        with reading(f"data: {one_line(path)}", mark=""):
            check_names(self.names)
        if self.n_rows == 0:
            raise DataError(f"data: {path} has no rows")

    def frame(
        self, names: Sequence[str], others: Sequence[str] = (), categories: bool = False
    ) -> Any:
        """Return features and other columns as a Dask data frame, if all files have them."""
        import dask.dataframe as dd

        for name in (*names, *others):
            if name not in self.names:
                raise DataError(f"data: {self.path} {missing_column(name, self.names)}")
        self._check(names, categories)
        columns = list(dict.fromkeys([*names, *others]))
        with _reading(self.path):
            # Arrow's types keep whole numbers whole where some are missing.
            return dd.read_parquet(
                [file.path for file in self.files],
                columns=columns,
                dtype_backend="pyarrow",
                blocksize=PARTITION_SIZE,
            )

    def _check(self, names: Sequence[str], categories: bool) -> None:
        """Refuse features that hold neither numbers nor categories, or not in every file."""
        for name in names:
            kind = self.schema.field(name).type
            if not (_is_number(kind) or (categories and _is_text(kind))):
                cure = "--prepare takes categories, " if _is_text(kind) and not categories else ""
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

    @contextmanager
    def naming_the_file(
        self, columns: Sequence[str], check: Callable[[Any, int], Any]
    ) -> Iterator[None]:
        """Say in which file, and in which of its rows, the cell is that an error is about.

        ``check`` raises that error, of a data frame and the number of rows before it.
        """
        try:
            yield
        except pyarrow_or_refuse().ArrowException as error:
            raise DataError(f"data: {self.path} cannot be read: {one_line(error)}") from None
        except CellError:
            for file in self.files:
                first = 0
                for group in file.split_by_row_group():
                    frame = _to_pandas(group.to_table(schema=self.schema, columns=[*columns]))
                    try:
                        check(frame, first)
                    except CellError as error:
                        raise DataError(f"data: {file.path} {error}") from None
                    first += len(frame)
            raise

    def sums(
        self, function: Callable[[np.ndarray], Any], names: Sequence[str], categories: bool
    ) -> Any:
        """Sum a function of the rows of each partition, computed where the partitions are."""
        check = partial(to_matrix, names=names, categories=categories)
        with self.naming_the_file(names, check):
            parts = partitions("data", self.frame(names, (), categories))
            return np.sum(
                compute(partial(_of_rows, function, check), [(p,) for p in parts]), axis=0
            )

    def blocks(
        self, names: Sequence[str], keep: Sequence[str], categories: bool
    ) -> Iterator[Block]:
        """Yield the rows of one partition after the other, with the columns to keep."""
        done, check = 0, partial(to_matrix, names=names, categories=categories)
        with self.naming_the_file(names, check):
            for part in partitions("data", self.frame(names, keep, categories)):
                (frame,) = compute(_same, [(part,)])
                done += len(frame)
                kept = tuple(frame[name] for name in keep)
                yield Block(check(frame), done, self.n_rows, kept)


def read_samples(
    paths: Sequence[str], label: str | None, drop: Sequence[str], prepare: bool, seed: Seed
) -> Samples:
    """Read P and U, in one Parquet table with a label or in two; at most a sample of each."""
    tables = [ParquetTable(path) for path in paths]
    names = _features(tables, label, drop)
    samples = {}
    for name, table in zip(("X_p", "X_u"), (tables[0], tables[-1])):
        frame = table.frame(names, [] if label is None else [label], prepare)
        if label is not None:
            select = partial(_labelled, label, name == "X_p")
            frame = frame.map_partitions(on_worker(select), meta=select(frame._meta))
        samples[name] = frame[names]
    columns, checks = [*names, *([] if label is None else [label])], (label, names, prepare)
    check = partial(_check_frame, *checks)
    with tables[0].naming_the_file(columns, check), tables[-1].naming_the_file(columns, check):
        found = in_memory(samples, seed, partial(_count, prepare))
    X_p, X_u = (to_matrix(frame, names=names, categories=prepare) for frame in found)
    preparation = None
    if prepare:
        both = np.concatenate([X_p, X_u])
        preparation = TablePreparation().fit(both, feature_names=names)
        X_p, X_u = preparation.transform(X_p), preparation.transform(X_u)
    return Samples(np.array(names, dtype=object), X_p, X_u, preparation)


def _features(tables: Sequence[ParquetTable], label: str | None, drop: Sequence[str]) -> list[str]:
    """Return the names of the features, if the tables have them and what else is named."""
    first, last = tables[0], tables[-1]
    drop = split_names(drop, [table.names for table in tables])
    check_drop(first.path, drop, label, [table.names for table in tables])
    if label is not None and label not in first.names:
        raise ArgumentError("label", f": {first.path} {missing_column(label, first.names)}")
    if label is not None and not _is_number(first.schema.field(label).type):
        raise ArgumentError("label", f": column {label!r} must hold 1 and 0 or -1")
    names = [name for name in first.names if name != label and name not in drop]
    if not names:
        raise DataError(f"data: {first.path} has no column of features")
    for name in last.names:
        if name not in first.names and name not in drop:
            raise DataError(f"data: {first.path} {missing_column(name, first.names)}")
    return names


def _labelled(label: str, positive: bool, frame: Any) -> Any:
    """Return the rows that are labelled as positive, or the others."""
    return frame[_labels(frame, label) == positive]


def _labels(frame: Any, label: str, first: int = 0) -> np.ndarray:
    """Tell which rows are labelled as positive."""
    labels = _cells(frame[label])
    strange = np.flatnonzero(~np.isin(labels, (1.0, 0.0, -1.0)))
    if len(strange):
        raise CellError(
            f"has {labels[strange[0]]:g} in row {first + strange[0] + 1} of the label {label!r}, "
            "which must be 1 for labelled positives and 0 or -1 for unlabelled rows"
        )
    return labels == 1.0


def _check_frame(
    label: str | None, names: Sequence[str], categories: bool, frame: Any, first: int
) -> None:
    if label is not None:
        _labels(frame, label, first)
    to_matrix(frame, first, names, categories)


def _count(categories: bool, name: str, columns: Any, number: int, frame: Any) -> int:
    return len(to_matrix(frame, 0, list(columns), categories))


def to_matrix(
    frame: Any, first: int = 0, names: Sequence[str] = (), categories: bool = False
) -> np.ndarray:
    """Return columns in finite numbers; with categories, as objects where there are texts."""
    columns = [_cells(frame[name]) for name in names]
    kind = object if any(column.dtype == object for column in columns) else np.float64
    rows = np.empty((len(frame), len(names)), dtype=kind)
    for place, column in enumerate(columns):
        rows[:, place] = column
    check_finite(rows, names, first, missing=categories)
    return rows


def _cells(column: Any) -> np.ndarray:
    """Return a column's numbers, NaN where one is missing; texts as objects."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    number = pd.api.types.is_numeric_dtype(column.dtype)
    return column.to_numpy(np.float64 if number else object, na_value=np.nan)


def write_predictions(
    out: Path,
    frame: Any,
    predict: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    columns: tuple[Sequence[str], Sequence[str], bool],
) -> tuple[int, int]:
    """Write predictions of a Dask data frame to a folder; count rows and positives.

    ``columns`` are the features, those to keep, and whether features may be categories or missing.
    """
    arrow = pyarrow_or_refuse()
    classify = partial(_classified, predict, columns)
    meta = frame._meta[list(columns[1])].assign(label=np.int8(0), probability=0.0)
    meta = meta.astype({"label": np.int8, "probability": np.float64})
    with cluster_errors():
        frame.map_partitions(on_worker(classify), meta=meta).to_parquet(
            str(out),
            write_index=False,
            write_metadata_file=False,
            name_function="part-{:05}.parquet".format,
        )
    found = arrow.dataset.dataset(str(out))
    return found.count_rows(), found.count_rows(filter=arrow.dataset.field("label") == 1)


def _classified(
    predict: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    columns: tuple[Sequence[str], Sequence[str], bool],
    frame: Any,
) -> Any:
    names, keep, categories = columns
    kept = frame[list(keep)]
    if len(frame) == 0:
        labels, probability = np.zeros(0, np.int8), np.zeros(0)
    else:
        labels, probability = predict(to_matrix(frame, 0, names, categories))
    return kept.assign(label=labels, probability=probability)


def _same(frame: Any) -> Any:
    return frame


def _of_rows(function: Callable[[np.ndarray], Any], read: Callable[[Any], Any], frame: Any) -> Any:
    return function(read(frame)) if len(frame) else 0.0


def _to_pandas(table: Any) -> Any:
    import pandas as pd

    return table.to_pandas(types_mapper=pd.ArrowDtype)


def pyarrow_or_refuse() -> Any:
    """Import what only Parquet needs."""
    try:
        import dask.dataframe  # noqa: F401
        import pyarrow.dataset
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            "data: Parquet needs dask and pyarrow: pip install '.[parquet]' in a clone"
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


def _is_text(kind: Any) -> bool:
    types = pyarrow_or_refuse().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return types.is_string(kind) or types.is_large_string(kind)
