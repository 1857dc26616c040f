"""What a dataset is: features, labels ±1, and the facts about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pu_shift.row_files import DataError


@dataclass(frozen=True)
class Facts:
    """What is known about a dataset and about the copy of it that was read.

    Attributes
    ----------
    name : str
        The paper's name of the dataset, or the stem of your own file's name.
    rows, features, positives : int
        The shape, and how many rows carry the label +1.
    positive_class : str
        What the label +1 stands for.
    source : str
        The file (or files) that were read.
    sha256 : str
        Digest of those files' bytes.
    home, citation, licence : str
        Where the dataset is published, how to cite it, and its terms.
    """

    name: str
    rows: int
    features: int
    positives: int
    positive_class: str = "+1"
    source: str = ""
    sha256: str = ""
    home: str = ""
    citation: str = ""
    licence: str = ""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features, labels and facts.

    Attributes
    ----------
    X : ndarray of shape (rows, features)
        float32, as published (unscaled), read-only; memory-mapped when cached.
    y : ndarray of shape (rows,)
        int8, +1 or −1.
    facts : Facts
        Counts, source, citation, licence.

    Examples
    --------
    >>> Dataset.of("two", [[0.0], [1.0]], [1, -1]).facts.positives
    1
    """

    X: np.ndarray
    y: np.ndarray
    facts: Facts

    @property
    def name(self) -> str:
        """Name of the dataset; draws are seeded by it."""
        return self.facts.name

    @classmethod
    def of(cls, name: str, X: Any, y: Any, **facts: Any) -> Dataset:
        """Make a dataset of arrays.

        Parameters
        ----------
        name : str
            Its name.
        X : array-like of shape (rows, features)
            Finite features.
        y : array-like of shape (rows,)
            Labels +1 and −1, both present.
        **facts : str
            Further fields of `Facts`.

        Returns
        -------
        Dataset
            With the counts filled in.

        Examples
        --------
        >>> Dataset.of("bad", [[0.0], [1.0]], [1, 1])
        Traceback (most recent call last):
        ...
        pu_shift.row_files.DataError: bad has 2 positive and 0 negative rows: both are needed
        """
        with np.errstate(over="ignore"):  # what overflows float32 is reported as not finite
            X = np.array(X, dtype=np.float32, order="C")  # a copy: it is made read-only
        y = np.asarray(y)
        if X.ndim != 2 or y.shape != X.shape[:1]:
            raise DataError(f"{name} needs X (n, d) and y (n,), got {X.shape} and {y.shape}")
        if not np.isin(y, (-1, 1)).all():
            raise DataError(f"{name} needs labels +1 and -1, got {show(np.unique(y))}")
        if not np.isfinite(X).all():
            row, column = np.argwhere(~np.isfinite(X))[0]
            raise DataError(
                f"{name} has a value that is missing or not finite: row {row + 1}, "
                f"feature {column + 1}"
            )
        positives = int((y == 1).sum())
        if not 0 < positives < len(y):
            raise DataError(
                f"{name} has {positives} positive and {len(y) - positives} negative rows: "
                "both are needed"
            )
        y = y.astype(np.int8)
        X.flags.writeable = y.flags.writeable = False
        rows, features = X.shape
        return cls(X, y, Facts(name, rows, features, positives, **facts))


def show(values: Any, most: int = 5) -> str:
    """Write the first few values for a message.

    Examples
    --------
    >>> show(["a", "b", "c"], most=2)
    'a, b, …'
    """
    values = list(values)
    return ", ".join(str(value) for value in values[:most]) + (", …" if len(values) > most else "")
