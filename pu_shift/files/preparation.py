"""Categories become columns of 0 and 1, missing values the median of their column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pu_shift._checks import ArgumentError, finite, positive_int, shown


class TablePreparation(TransformerMixin, BaseEstimator):
    """Make numbers of a table whose cells are numbers, categories or missing.

    A column of numbers stays one, its missing values are replaced by the median. A column
    in which there is a text becomes one column of 0 and 1 for each different value; a
    missing cell counts as a value if there was one in ``fit``, and a value that ``fit``
    has not seen is 0 in all of them. A model file keeps it without pickle.

    Parameters
    ----------
    max_categories
        The most values that a column of categories may have: names and numbers of cases are no
        features.

    Attributes
    ----------
    feature_names_in_ : numpy.ndarray
        Names of the columns, if the table in ``fit`` had some.
    medians_ : list
        Per column, its median; ``None`` for a column of categories.
    categories_ : list
        Per column, its categories, sorted; ``None`` for a column of numbers.

    Examples
    --------
    >>> table = [[1.5, "red"], [None, "blue"], [2.5, "red"]]
    >>> TablePreparation().fit_transform(table).tolist()
    [[1.5, 0.0, 1.0], [2.0, 1.0, 0.0], [2.5, 0.0, 1.0]]
    """

    def __init__(self, max_categories: int = 50) -> None:
        self.max_categories = max_categories

    def fit(
        self, X: Any, y: Any = None, feature_names: Sequence[str] | None = None
    ) -> TablePreparation:
        """Find the categories of columns with texts, and the medians of the others.

        Parameters
        ----------
        X
            (n, d) numbers, texts and missing values: a data frame, an array or lists.
        y
            Not used.
        feature_names
            Names of the columns; those of a data frame by default.

        Returns
        -------
        self
            The fitted preparation.
        """
        most = positive_int("max_categories", self.max_categories)
        columns = _columns(X)
        if feature_names is None:
            feature_names = getattr(X, "columns", None)
        names = list(range(1, len(columns) + 1) if feature_names is None else feature_names)
        medians: list[float | None] = []
        categories: list[list[str] | None] = []
        for name, column in zip(names, columns):
            if any(isinstance(cell, str) for cell in column):
                values = sorted(set(_texts(column)))
                if len(values) > most:
                    raise ArgumentError(
                        "X",
                        f": column {shown(name)} has {len(values)} different categories, more than "
                        f"{most}: a name or number of the case is no feature, leave it out",
                    )
                medians.append(None)
                categories.append(values)
                continue
            numbers = column.astype(np.float64)
            if np.isnan(numbers).all():
                raise ArgumentError("X", f": column {shown(name)} has no values, leave it out")
            medians.append(float(np.nanmedian(numbers)))
            categories.append(None)
        self.medians_, self.categories_ = medians, categories
        self.n_features_in_ = len(columns)
        self.__dict__.pop("feature_names_in_", None)
        if feature_names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the table in numbers.

        Parameters
        ----------
        X
            (n, d) cells, in the columns of ``fit``.

        Returns
        -------
        numpy.ndarray
            (n, k) finite numbers, if the table's are.
        """
        check_is_fitted(self, "medians_")
        columns = _columns(X)
        if len(columns) != self.n_features_in_:
            raise ValueError(
                f"X has {len(columns)} features, but TablePreparation is expecting "
                f"{self.n_features_in_} features as input"
            )
        parts = []
        for place, (column, median, values) in enumerate(
            zip(columns, self.medians_, self.categories_)
        ):
            if values is not None:
                parts.append(_texts(column)[:, None] == np.array(values, dtype=object))
                continue
            try:
                numbers = column.astype(np.float64)
            except ValueError:
                row = next(row for row, cell in enumerate(column) if isinstance(cell, str))
                raise ArgumentError(
                    "X",
                    f": column {shown(self._name(place))} held numbers in fit, found "
                    f"{shown(column[row])} in row {row + 1}",
                ) from None
            numbers[np.isnan(numbers)] = median
            parts.append(numbers[:, None])
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def to_state(self) -> dict[str, Any]:
        """Return what a model file keeps."""
        check_is_fitted(self, "medians_")
        return {"medians": self.medians_, "categories": self.categories_}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> TablePreparation:
        """Return the preparation of a state, with a median or categories for each column."""
        preparation = cls()
        preparation.medians_, preparation.categories_ = state["medians"], state["categories"]
        preparation.n_features_in_ = len(state["medians"])
        for median, values in zip(preparation.medians_, preparation.categories_, strict=True):
            if values is None:
                finite("median", median)
            elif not values or any(type(value) is not str for value in values):
                raise ValueError(f"categories must be texts, got {shown(values)}")
        return preparation

    def _name(self, place: int) -> Any:
        names: Sequence[Any] = getattr(self, "feature_names_in_", range(1, self.n_features_in_ + 1))
        return names[place]


def _columns(X: Any) -> list[np.ndarray]:
    """Return the columns as arrays of numbers, or of objects where there are texts."""
    if hasattr(X, "columns"):
        X = X.to_numpy(dtype=object, na_value=np.nan)
    elif not isinstance(X, np.ndarray):
        X = np.array(X, dtype=object)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have rows and columns, got shape {X.shape}")
    return [np.where(column == None, np.nan, column) for column in X.T]  # noqa: E711


def _texts(column: np.ndarray) -> np.ndarray:
    """Return every cell as text; a missing one is empty."""
    return np.array([_text(cell) for cell in column], dtype=object)


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    return "" if cell != cell else f"{cell:.12g}"
