"""Parquet: a file, a folder of files, or one that is partitioned, as a Dask data frame.

Only the columns that are asked for are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pu_shift._checks import ArgumentError, one_line, shown
from pu_shift._seeds import Seed
from pu_shift.bigdata import cluster_errors, compute, in_memory, on_worker, partitions
from pu_shift.files.cells import CellError, check_sizes
from pu_shift.files.columns import check_drop, check_names, label_test, missing_column, split_names
from pu_shift.files.tables import Block
from pu_shift.files.unpacking import DataError, reading

if TYPE_CHECKING:
    from pu_shift.files.preparation import TablePreparation

SUFFIXES = (".parquet", ".pq")
# What the columns of a partition take, at most, unless a row group takes more.
PARTITION_SIZE = "64MiB"


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
            raise DataError(f"data: no such file: {one_line(repr(path))}")
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

    def frame(self, names: Sequence[str], others: Sequence[str] = ()) -> Any:
        """Return features and other columns as a Dask data frame, if all files have them."""
        import dask.dataframe as dd

        for name in (*names, *others):
            if name not in self.names:
                raise DataError(f"data: {self.path} {missing_column(name, self.names)}")
        self._check(names)
        columns = list(dict.fromkeys([*names, *others]))
        with _reading(self.path):
            # Arrow's types keep whole numbers whole where some are missing.
            return dd.read_parquet(
                [file.path for file in self.files],
                columns=columns,
                dtype_backend="pyarrow",
                blocksize=PARTITION_SIZE,
            )

    def _check(self, names: Sequence[str]) -> None:
        """Refuse features that no column of a table can hold, or not in every file."""
        for name in names:
            kind = self.schema.field(name).type
            if _family(kind) is None:
                raise DataError(
                    f"data: {self.path} has {kind} in column {shown(name)}, where there must be "
                    "numbers, dates or texts; --drop leaves a column out"
                )
        # Nulls would take the place of what a single file does not have.
        keys = set(self.names) - set.union(*(set(f.physical_schema.names) for f in self.files))
        for file in self.files:
            for name in set(names) - keys:
                if name not in file.physical_schema.names:
                    found = missing_column(name, file.physical_schema.names)
                    raise DataError(f"data: {file.path} {found}")
                kind = file.physical_schema.field(name).type
                if _family(kind) != _family(self.schema.field(name).type):
                    raise DataError(
                        f"data: {file.path} has {kind} in column {shown(name)}, other files have "
                        f"{self.schema.field(name).type}"
                    )

    def labels(self, label: str, positive: str | None) -> Callable[[Any], np.ndarray]:
        """Return the function that tells which labels are those of positives."""
        parts = partitions("data", self.frame([], [label]))
        found = compute(partial(_different, label), [(part,) for part in parts])
        return label_test(label, [value for values in found for value in values], positive)

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
        self, function: Callable[[Any], Any], names: Sequence[str], preparation: TablePreparation
    ) -> Any:
        """Sum a function of the prepared rows of each partition, computed where they are."""
        read = partial(prepared, preparation, names)
        with self.naming_the_file(names, read):
            parts = partitions("data", self.frame(names))
            return np.sum(compute(partial(_of_rows, function, read), [(p,) for p in parts]), axis=0)

    def blocks(
        self, names: Sequence[str], keep: Sequence[str], preparation: TablePreparation
    ) -> Iterator[Block]:
        """Yield the rows of one partition after the other, with the columns to keep."""
        done, read = 0, partial(prepared, preparation, names)
        with self.naming_the_file(names, read):
            for part in partitions("data", self.frame(names, keep)):
                (frame,) = compute(_same, [(part,)])
                if not len(frame):
                    continue
                rows, unseen = read(frame)
                done += len(frame)
                kept = tuple(frame[name] for name in keep)
                yield Block(rows, done, self.n_rows, kept, unseen)


def read_samples(
    paths: Sequence[str], label: str | None, positive: str | None, drop: Sequence[str], seed: Seed
) -> tuple[Any, Any]:
    """Read P and U, in one Parquet table with a label or in two; at most a sample of each."""
    tables = [ParquetTable(path) for path in paths]
    names = _features(tables, label, drop)
    samples = {}
    is_positive: Any = None if label is None else tables[0].labels(label, positive)
    for name, table in zip(("X_p", "X_u"), (tables[0], tables[-1])):
        frame = table.frame(names, [] if label is None else [label])
        if label is not None:
            select = partial(_labelled, label, is_positive, name == "X_p")
            frame = frame.map_partitions(on_worker(select), meta=select(frame._meta))
        samples[name] = frame[names]
    with (
        tables[0].naming_the_file(names, check_sizes),
        tables[-1].naming_the_file(names, check_sizes),
    ):
        X_p, X_u = in_memory(samples, seed, _count)
    return X_p, X_u


def _features(tables: Sequence[ParquetTable], label: str | None, drop: Sequence[str]) -> list[str]:
    """Return the names of the features, if the tables have them and what else is named."""
    first, last = tables[0], tables[-1]
    drop = split_names(drop, [table.names for table in tables])
    check_drop(first.path, drop, label, [table.names for table in tables])
    if label is not None and label not in first.names:
        raise ArgumentError("label", f": {first.path} {missing_column(label, first.names)}")
    names = [name for name in first.names if name != label and name not in drop]
    if not names:
        raise DataError(f"data: {first.path} has no column of features")
    for name in last.names:
        if name not in first.names and name not in drop:
            raise DataError(f"data: {first.path} {missing_column(name, first.names)}")
    return names


def _labelled(label: str, is_positive: Callable[[Any], Any], positive: bool, frame: Any) -> Any:
    """Return the rows that are labelled as positive, or the others."""
    return frame[is_positive(frame[label]) == positive]


def _different(label: str, frame: Any) -> list[Any]:
    return frame[label].astype(object).unique().tolist()


def _count(name: str, columns: Any, number: int, frame: Any) -> int:
    check_sizes(frame)
    return len(frame)


def prepared(
    preparation: TablePreparation, names: Sequence[str], frame: Any, first: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in numbers, and what the fit has not seen of them."""
    return preparation.convert(frame[list(names)], first, names)


def write_predictions(
    out: Path,
    frame: Any,
    predict: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    columns: tuple[Sequence[str], Sequence[str], TablePreparation],
) -> tuple[int, int]:
    """Write predictions of a Dask data frame to a folder; count rows and positives.

    ``columns`` are the features, those to keep, and how features become numbers.
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
    columns: tuple[Sequence[str], Sequence[str], TablePreparation],
    frame: Any,
) -> Any:
    names, keep, preparation = columns
    kept = frame[list(keep)]
    if len(frame) == 0:
        labels, probability = np.zeros(0, np.int8), np.zeros(0)
    else:
        labels, probability = predict(prepared(preparation, names, frame)[0])
    return kept.assign(label=labels, probability=probability)


def _same(frame: Any) -> Any:
    return frame


def _of_rows(function: Callable[[Any], Any], read: Callable[[Any], Any], frame: Any) -> Any:
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


def _family(kind: Any) -> str | None:
    """Return what a column of this type can hold as a feature."""
    types = pyarrow_or_refuse().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    families = {
        "number": (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal),
        "date": (types.is_timestamp, types.is_date),
        "text": (types.is_string, types.is_large_string, types.is_null),
    }
    found = (name for name, tests in families.items() if any(test(kind) for test in tests))
    return next(found, None)
