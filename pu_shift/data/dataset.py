"""What a dataset is: a name, features and labels ±1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pu_shift.files.unpacking import DataError


@dataclass(frozen=True, eq=False)
class Dataset:
    """Unscaled features and their labels, read-only."""

    name: str  # the paper's, or the stem of a file's name; draws are seeded by it
    X: np.ndarray  # (rows, features), float32; memory-mapped when cached
    y: np.ndarray  # (rows,), int8, +1 or −1
    positive_class: str = "+1"  # what the label +1 stands for
    source: str = ""  # the file (or files) that were read
    sha256: str = ""  # of their bytes
    content: str = ""  # SHA-256 of the values, whatever file they came from

    @property
    def positives(self) -> int:
        """How many rows carry the label +1."""
        return int((self.y == 1).sum())

    @classmethod
    def of(cls, name: str, X: Any, y: Any, **facts: str) -> Dataset:
        """Check arrays and make a dataset of them; `facts` are its other fields."""
        with np.errstate(over="ignore"):  # what overflows float32 is reported as not finite
            X = np.array(X, dtype=np.float32, order="C")  # a copy: it is made read-only
        y = np.asarray(y)
        if X.ndim != 2 or y.shape != X.shape[:1]:
            raise DataError(f"{name} needs X (n, d) and y (n,), got {X.shape} and {y.shape}")
        if not np.isin(y, (-1, 1)).all():
            raise DataError(f"{name} needs labels +1 and -1, got {show(np.unique(y))}")
        if not np.isfinite(X).all():
            row, column = np.argwhere(~np.isfinite(X))[0] + 1
            raise DataError(
                f"{name} has a value that is missing or not finite: row {row}, feature {column}"
            )
        y = y.astype(np.int8)
        X.flags.writeable = y.flags.writeable = False
        made = cls(name, X, y, **facts)
        if not 0 < made.positives < len(y):
            raise DataError(
                f"{name} has {made.positives} positive and {len(y) - made.positives} negative "
                "rows: both are needed"
            )
        return made


def show(values: Iterable[Any], most: int = 5) -> str:
    """Write the first few values for a message."""
    values = list(values)
    return ", ".join(map(str, values[:most])) + ", …" * (len(values) > most)
