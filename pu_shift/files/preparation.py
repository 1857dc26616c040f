"""What the columns of a table become: numbers, days, and a column of 0 and 1 for each category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pu_shift._checks import LARGEST, ArgumentError, finite, one_of, positive_int, shown
from pu_shift.files.cells import (
    DATES,
    Cell,
    CellError,
    Column,
    WrongCellError,
    cells_of,
    converted,
    read_cell,
    text_of,
    type_of,
    values_of,
)
from pu_shift.files.unpacking import DataError


class ColumnsError(ArgumentError):
    """Columns that cannot be features; each problem names a column and its cure."""

    def __init__(self, problems: Sequence[ArgumentError]) -> None:
        super().__init__("X", "; ".join(problem.rule for problem in problems))
        self.problems = list(problems)


class TablePreparation(TransformerMixin, BaseEstimator):
    """Make numbers of a table whose cells are numbers, dates, categories or missing.

    A column of numbers stays one, its missing values are replaced by the median. A column whose
    texts all are dates becomes days since 1970-01-01, one whose texts all are numbers with decimal
    commas these numbers. Another column of texts becomes a column of 0 and 1 for each different
    value; a missing cell counts as a value if there was one in ``fit``, and a value that ``fit``
    has not seen is 0 in all of them. A model file keeps the preparation without pickle.

    Parameters
    ----------
    max_categories
        The most values that a column of categories may have: names and numbers of cases are no
        features.
    decimal
        ``','`` reads all texts as numbers with decimal commas, ``'.'`` none, ``'auto'`` those of
        columns in which all cells look so.

    Attributes
    ----------
    feature_names_in_ : numpy.ndarray
        Names of the columns, if the table in ``fit`` had some.
    columns_ : list of Column
        What each column holds.

    Examples
    --------
    >>> table = [[1.5, "red"], [None, "blue"], [2.5, "red"]]
    >>> TablePreparation().fit_transform(table).tolist()
    [[1.5, 0.0, 1.0], [2.0, 1.0, 0.0], [2.5, 0.0, 1.0]]
    """

    columns_: list[Column]

    def __init__(self, max_categories: int = 50, decimal: str = "auto") -> None:
        self.max_categories = max_categories
        self.decimal = decimal

    @classmethod
    def plain(cls, names: Sequence[Any] | int, missing: bool = False) -> TablePreparation:
        """Return a preparation that takes numbers alone; a missing one is refused, or stays NaN."""
        names = range(1, names + 1) if isinstance(names, int) else names
        return cls()._fitted([Column("number", np.nan if missing else None)] * len(names), names)

    def fit(
        self, X: Any, y: Any = None, feature_names: Sequence[str] | None = None
    ) -> TablePreparation:
        """Find out what each column holds.

        Parameters
        ----------
        X
            (n, d) numbers, dates, texts and missing values: a data frame, an array or lists.
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
        decimal = one_of("decimal", self.decimal, ("auto", ",", "."))
        columns = _columns(X)
        if feature_names is None:
            feature_names = getattr(X, "columns", None)
        names = list(range(1, len(columns) + 1) if feature_names is None else feature_names)
        found, problems = [], []
        for name, column in zip(names, columns):
            try:
                found.append(_found(column, most, decimal))
            except DataError as error:  # noqa: PERF203
                problems.append(ArgumentError("X", f": column {shown(name)} {error}"))
        if problems:
            raise ColumnsError(problems)
        return self._fitted(found, feature_names)

    def _fitted(self, columns: list[Column], names: Sequence[Any] | None) -> TablePreparation:
        self.columns_, self.n_features_in_ = columns, len(columns)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
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
        try:
            return self.convert(X)[0]
        except CellError as error:
            raise ArgumentError("X", str(error)) from None

    def convert(
        self, X: Any, first: int = 0, names: Sequence[Any] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the table in numbers, and how many cells of each column ``fit`` has not seen.

        Parameters
        ----------
        X
            (n, d) cells, in the columns of ``fit``.
        first
            Number of rows before these, for errors.
        names
            Names of the columns, for errors; by default those of ``fit``.

        Returns
        -------
        tuple
            (n, k) numbers, and (d, 2) counts: of categories and dates that are new, and of
            missing values where there was none.
        """
        check_is_fitted(self, "columns_")
        if names is None:
            names = list(getattr(self, "feature_names_in_", range(1, self.n_features_in_ + 1)))
        columns = _columns(X)
        if len(columns) != self.n_features_in_:
            raise ValueError(
                f"X has {len(columns)} features, but TablePreparation is expecting "
                f"{self.n_features_in_} features as input"
            )
        unseen = np.zeros((len(columns), 2), dtype=np.int64)
        if all(found.is_plain for found in self.columns_):
            rows = _matrix(X)
            if rows is not None and np.isfinite(rows).all() and (np.abs(rows) <= LARGEST).all():
                return rows, unseen
        parts, wrong = [], []
        for place, (column, found) in enumerate(zip(columns, self.columns_)):
            try:
                part, unseen[place] = converted(column, found)
                parts.append(part)
            except WrongCellError as error:  # noqa: PERF203
                wrong.append((error.row, place, error))
        if wrong:
            row, place, cell = min(wrong, key=lambda item: item[:2])
            raise cell.said(first + row + 1, names[place])
        return np.concatenate(parts, axis=1, dtype=np.float64), unseen

    def with_decimal(self, decimal: str) -> TablePreparation:
        """Return a preparation of files whose numbers have another decimal mark."""
        columns = [
            replace(column, decimal=decimal) if column.kind == "number" else column
            for column in self.columns_
        ]
        names = getattr(self, "feature_names_in_", None)
        return type(self)(self.max_categories, decimal)._fitted(columns, names)

    def described(self) -> list[str]:
        """Return a line for each column that did not stay as it is."""
        names = getattr(self, "feature_names_in_", range(1, self.n_features_in_ + 1))
        told = ((name, column.described()) for name, column in zip(names, self.columns_))
        return [f"{name}: {text}" for name, text in told if text]

    def to_state(self) -> dict[str, Any]:
        """Return what a model file keeps."""
        check_is_fitted(self, "columns_")
        return {"columns": [asdict(column) for column in self.columns_]}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> TablePreparation:
        """Return the preparation of a state; files of releases before have two lists."""
        if "columns" in state:
            columns = [Column(**column) for column in state["columns"]]
            for column in columns:
                finite("fill", 0.0 if column.fill is None else column.fill)
        else:
            columns = [
                Column(
                    "number", finite("median", median), np.nan
                )  # how many were missing is unknown
                if values is None
                else Column("category", categories=values)
                for median, values in zip(state["medians"], state["categories"], strict=True)
            ]
        return cls()._fitted(columns, None)


def _columns(X: Any) -> list[Any]:
    """Return the columns as arrays of numbers, or as series."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and X.ndim == 2:
        columns = list(X.T)
    else:
        import pandas as pd

        if not hasattr(X, "columns"):
            X = np.asarray(X, dtype=object)
            if X.ndim != 2:
                raise ValueError(f"X must have rows and columns, got shape {X.shape}")
            X = pd.DataFrame(X)
        columns = [X.iloc[:, place] for place in range(X.shape[1])]
    if not columns or not len(columns[0]):
        raise ValueError(f"X must have rows and columns, got shape {np.shape(X)}")
    return columns


def _matrix(X: Any) -> np.ndarray | None:
    """Return a table as an array, if all of it are numbers of NumPy."""
    if hasattr(X, "dtypes"):
        if not all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in X.dtypes):
            return None
        return X.to_numpy(np.float64)
    return X.astype(np.float64) if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" else None


def _found(column: Any, most: int, decimal: str) -> Column:
    """Return what a column holds, or say in a `DataError` why it cannot be a feature."""
    kind = type_of(column)
    cells = [] if kind else [cell for cell in cells_of(column)[1] if cell is not None]
    if kind == "":
        return _as_category(column, most)
    guesses = [
        Column("number"),
        Column("number", decimal=","),
        *(Column("date", dates=d) for d in DATES),
    ]
    fitting = [Column(kind)] if kind else [guess for guess in guesses if _all_read(cells, guess)]
    if not cells and not kind:
        raise DataError("has no values: leave it out")
    if not fitting:
        return _as_category(column, most)
    found = fitting[0]
    comma = found.decimal == "," or (decimal == "," and kind is None and found.kind == "number")
    if found.decimal == "," and decimal == ".":
        raise DataError(
            f"has numbers such as {shown(cells[0])}: decimal=',' reads them, or leave it out"
        )
    if found.dates == "DD/MM/YYYY" and len(fitting) > 1:
        raise DataError(
            f"has dates such as {shown(cells[0])}, whose first number may be the day or the month: "
            "write YYYY-MM-DD, or leave it out"
        )
    if comma:
        found = Column("number", decimal=",")
    return _summarized(column, found)


def _all_read(cells: Sequence[Cell], guess: Column) -> bool:
    return all(read_cell(cell, guess) is not None for cell in cells)


def _summarized(column: Any, found: Column) -> Column:
    """Return what is known of a column, with its median and its range."""
    values = values_of(column, found)
    present = values[~np.isnan(values)]
    if not len(present):
        raise DataError("has no values: leave it out")
    dates = found.kind == "date"
    return Column(
        found.kind,
        float(np.median(present)),
        1.0 - len(present) / len(values),
        found.decimal,
        found.dates,
        float(present.min()) if dates else 0.0,
        float(present.max()) if dates else 0.0,
    )


def _as_category(column: Any, most: int) -> Column:
    codes, cells = cells_of(column)
    texts = sorted({text_of(cell) for cell in cells if cell is not None})
    missing = np.array([cell is None for cell in [*cells, None]])[codes]
    if not texts:
        raise DataError("has no values: leave it out")
    values = sorted({*texts, *([""] if missing.any() else [])})
    if len(values) <= most:
        return Column("category", missing=float(missing.mean()), categories=values)
    numbers = [read_cell(cell, Column("number")) is not None for cell in cells]
    strange = [place for place, number in enumerate(numbers) if not number]
    if 0 < 2 * len(strange) < len(cells):
        raise DataError(
            f"holds numbers, and {len(strange)} texts such as {shown(cells[strange[0]])}: correct "
            "or empty these cells, or leave it out"
        )
    raise DataError(
        f"has {len(values)} different categories, more than {most}: a name or number of the case "
        "is no feature, leave it out"
    )
