"""Predictions in files: CSV, Parquet, or a folder of Parquet files that a cluster writes."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from sklearn.pipeline import Pipeline
from tqdm import tqdm

from pu_shift._cluster import finished
from pu_shift._files import leftovers, replacing, replacing_folder
from pu_shift.estimation.test_prior import test_sums
from pu_shift.files.parquet import RowGroup, pyarrow_or_refuse
from pu_shift.files.tables import Block


class CSVWriter:
    """Predictions as text: columns to keep, label and probability."""

    def __init__(self, file: IO[str], keep: Sequence[str]) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._header: list[str] | None = [*keep, "label", "probability"]

    def write(self, kept: Sequence[Any], labels: np.ndarray, probability: np.ndarray) -> None:
        """Write some rows."""
        if self._header is not None:
            self._writer.writerow(self._header)
            self._header = None
        numbers = map("%.6g".__mod__, probability.tolist())
        self._writer.writerows(zip(*map(texts, kept), labels.tolist(), numbers))

    def close(self) -> None:
        """Do nothing: a text may end anywhere."""


class ParquetWriter:
    """Predictions as Parquet: columns to keep in their types, label and probability."""

    def __init__(self, file: IO[bytes], keep: Sequence[str]) -> None:
        self._file, self._keep = file, keep
        self._writer: Any = None

    def write(self, kept: Sequence[Any], labels: np.ndarray, probability: np.ndarray) -> None:
        """Write some rows."""
        arrow = pyarrow_or_refuse()
        columns = dict(zip(self._keep, kept))
        columns["label"] = labels.astype(np.int8)
        columns["probability"] = probability.astype(np.float64)
        table = arrow.table(columns)
        if self._writer is None:
            self._writer = arrow.parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the end, without which the file is none."""
        if self._writer is not None:
            self._writer.close()


def write_predictions(
    writer: CSVWriter | ParquetWriter, estimator: Any, blocks: Iterable[Block], bar: Any
) -> tuple[int, int]:
    """Classify rows; return how many there were and how many are positive."""
    total = positive = 0
    for block in blocks:
        bar.total = block.size
        is_positive = estimator.predict(block.rows) == estimator.classes_[1]
        probability = estimator.predict_proba(block.rows)[:, 1]
        writer.write(block.kept, np.where(is_positive, 1, -1), probability)
        total, positive = total + len(is_positive), positive + int(is_positive.sum())
        bar.update(block.position - bar.n)
    writer.close()
    return total, positive


def write_folder(
    out: str, estimator: Any, groups: Sequence[RowGroup], columns: tuple[Any, ...], client: Any
) -> tuple[int, int]:
    """Let a cluster classify row groups, each into a file of a folder; count as above.

    ``columns`` are the features, those to keep, and whether features may be words or missing.
    """
    with replacing_folder(out) as folder:
        paths = [str(folder / f"part-{place:05}.parquet") for place in range(len(groups))]
        total = positive = 0
        with tqdm(total=len(groups), unit="part", disable=None, desc="predict") as bar:
            for rows, found in _on_groups(
                _predict_group, groups, client, estimator, paths, columns
            ):
                total, positive = total + rows, positive + found
                bar.update()
        for path in leftovers(folder):  # of workers that died
            path.unlink()
    return total, positive


def sums_of_blocks(estimator: Any, blocks: Iterable[Block]) -> np.ndarray:
    """Sum over rows what an estimate of their prior needs to know of them."""
    sums = np.zeros(3)
    before = estimator[:-1] if isinstance(estimator, Pipeline) else None
    classifier = estimator if before is None else estimator[-1]
    for block in blocks:
        sums += test_sums(
            classifier, block.rows if before is None else before.transform(block.rows)
        )
    return sums


def sums_on_cluster(
    estimator: Any, groups: Sequence[RowGroup], columns: tuple[Any, ...], client: Any
) -> Iterator[np.ndarray]:
    """Yield such sums of each row group."""
    return _on_groups(_sums_of_group, groups, client, estimator, groups, columns)


def _on_groups(
    function: Any,
    groups: Sequence[RowGroup],
    client: Any,
    estimator: Any,
    values: Sequence[Any],
    columns: tuple[Any, ...],
) -> Iterator[Any]:
    """Yield ``function(group, value, estimator, columns)`` of each row group, from a cluster."""
    # The result of a task, not data: a worker that takes the place of a lost one gets it too.
    sent = client.submit(_same, estimator, pure=False)
    futures = client.map(function, groups, values, estimator=sent, columns=columns, pure=False)
    return finished(client, futures, "row groups")


def _same(estimator: Any) -> Any:
    return estimator


def _sums_of_group(group: RowGroup, _: Any, estimator: Any, columns: tuple[Any, ...]) -> np.ndarray:
    return sums_of_blocks(estimator, group.blocks(*columns))


def _predict_group(
    group: RowGroup, out: str, estimator: Any, columns: tuple[Any, ...]
) -> tuple[int, int]:
    keep = columns[1]
    with replacing(Path(out), binary=True) as file, tqdm(disable=True) as bar:
        return write_predictions(ParquetWriter(file, keep), estimator, group.blocks(*columns), bar)


def texts(cells: Any) -> list[str]:
    """Return cells as text: texts of a CSV file as they are, of Arrow's arrays '' for a null."""
    if isinstance(cells, list):
        return cells
    return ["" if value is None else str(value) for value in cells.to_pylist()]
