"""Predictions in files: CSV or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any

import numpy as np

from pu_shift._sklearn import last_step, split_steps
from pu_shift.files.parquet import pyarrow_or_refuse
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
        columns = dict(zip(self._keep, map(arrow.array, kept)))
        table = arrow.table({**columns, "label": labels, "probability": probability})
        if self._writer is None:
            self._writer = arrow.parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the end, without which the file is none."""
        if self._writer is not None:
            self._writer.close()


def predict_rows(
    estimator: Any, rows: np.ndarray, alpha: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels, 1 or −1, and probabilities of the positive class, evaluated once.

    ``alpha`` may have a value for each row; it is that of the estimator by default.
    """
    probability = estimator.predict_proba(rows)[:, 1].astype(np.float64, copy=False)
    positive = probability > (last_step(estimator).alpha if alpha is None else alpha)
    return np.where(positive, 1, -1).astype(np.int8), probability


def write_predictions(
    writer: CSVWriter | ParquetWriter,
    estimator: Any,
    blocks: Iterable[Block],
    bar: Any,
    costs: Callable[[Block], tuple[tuple[Any, ...], Any]],
) -> tuple[int, int]:
    """Classify rows; return how many there were and how many are positive.

    ``costs`` returns of a block what is kept of it for the output, and alpha of each row.
    """
    total = positive = 0
    for block in blocks:
        bar.total = block.size
        kept, alpha = costs(block)
        labels, probability = predict_rows(estimator, block.rows, alpha)
        writer.write(kept, labels, probability)
        total, positive = total + len(labels), positive + int((labels == 1).sum())
        bar.update(block.position - bar.n)
    writer.close()
    return total, positive


def sums_of_rows(estimator: Any, rows: np.ndarray) -> np.ndarray:
    """Sum over rows what an estimate of their prior needs to know of them."""
    from pu_shift.estimation.test_prior import test_sums

    before, classifier = split_steps(estimator)
    return test_sums(classifier, rows if before is None else before.transform(rows))


def texts(cells: Any) -> list[str]:
    """Return cells as text: texts of a CSV file as they are, of a data frame '' for a null."""
    if isinstance(cells, list):
        return cells
    missing = cells.isna()
    return ["" if gone else str(cell) for cell, gone in zip(cells, missing)]
