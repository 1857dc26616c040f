"""What a column of a table holds, numbers, dates or categories, and how its cells are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np

from pu_shift._checks import LARGEST, one_of, shown
from pu_shift._labels import MISSING
from pu_shift.files.unpacking import DataError

Cell = float | str | None
# By how people write them; datetime.fromisoformat reads the first, with or without a time.
DATES = {
    "YYYY-MM-DD": None,
    "YYYY/MM/DD": "%Y/%m/%d",
    "DD.MM.YYYY": "%d.%m.%Y",
    "DD/MM/YYYY": "%d/%m/%Y",
    "MM/DD/YYYY": "%m/%d/%Y",
}
TIMES = ("", " %H:%M", " %H:%M:%S")
_EPOCH = datetime(1970, 1, 1)
_COMMA = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d*)(,\d+)?(e[-+]?\d+)?", re.IGNORECASE)


class CellError(DataError):
    """A cell that is no number where there has to be one."""


@dataclass(frozen=True)
class Column:
    """What a column holds, as ``fit`` found it.

    ``fill`` takes the place of a missing number; without it a missing one is refused. ``low`` and
    ``high`` are the first and the last day of a column of dates.
    """

    kind: str  # number, date or category
    fill: float | None = None
    missing: float = 0.0
    decimal: str = "."
    dates: str | None = None
    low: float = 0.0
    high: float = 0.0
    categories: list[str] | None = None

    def __post_init__(self) -> None:
        one_of("kind", self.kind, ("number", "date", "category"))
        texts = bool(self.categories) and {*map(type, self.categories or ())} == {str}
        if self.kind == "category" and not texts:
            raise ValueError(f"categories must be texts, got {shown(self.categories)}")

    @property
    def is_plain(self) -> bool:
        """Whether its cells are numbers that a reader of CSV files knows."""
        return self.kind == "number" and self.decimal == "."

    def described(self) -> str:
        """Return what the column became, in words; nothing if it stayed as it is."""
        if self.kind == "category":
            return f"category, {len(self.categories or ())} values"
        parts = []
        if self.kind == "date":
            parts = [f"date, days since 1970-01-01, {_day(self.low)} to {_day(self.high)}"]
            if self.dates not in (None, "YYYY-MM-DD"):
                parts.insert(1, f"written {self.dates}")
        elif self.decimal == "," or self.missing:
            parts = ["number", "decimal commas"] if self.decimal == "," else ["number"]
        if self.missing:
            fill = _day(self.fill) if self.kind == "date" else f"{self.fill:.4g}"
            parts.append(f"{_percent(self.missing)} missing, filled with {fill}")
        return ", ".join(parts)


class WrongCellError(Exception):
    """A cell that a column cannot hold."""

    def __init__(self, row: int, cell: Any, column: Column) -> None:
        self.row, self.cell, self.column = row, cell, column

    def said(self, row: int, name: Any) -> DataError:
        """Return the error that names row and column."""
        return wrong_cell(row, name, self.cell, self.column)


def wrong_cell(row: int, name: Any, cell: Any, column: Column | None = None) -> DataError:
    """Return the error for a cell; the column by its name or from 1."""
    cell = cell[:100] if isinstance(cell, str) else cell
    if isinstance(cell, float) and np.isfinite(cell):
        return DataError(
            f"has {cell:.3g} in row {row} of column {shown(name)}, whose square leaves the "
            "range of floating-point numbers: divide the column by a power of ten"
        )
    what, hint = "finite number", ""
    if column is not None and column.kind == "date":
        what = f"date written {column.dates or 'as in the fit'}"
    elif column is not None and column.decimal == ",":
        what, hint = "number with decimal commas", " as in the fit"
    elif isinstance(cell, str) and re.fullmatch(r"[-+]?\d*,\d+", cell.strip()):
        hint = " (decimals need a point, not a comma)"
    return CellError(
        f"needs a {what} in row {row} of column {shown(name)}, found {shown(cell)}{hint}"
    )


def check_sizes(frame: Any, first: int = 0) -> None:
    """Refuse numbers whose squares leave the range of floating-point numbers."""
    for name in frame.columns:
        if type_of(frame[name]) == "number":
            values = np.abs(frame[name].to_numpy(np.float64, na_value=np.nan))
            if (values > LARGEST).any():
                row = int((values > LARGEST).argmax())
                raise wrong_cell(first + row + 1, name, float(frame[name].iloc[row]))


def converted(column: Any, found: Column) -> tuple[np.ndarray, tuple[int, int]]:
    """Return a column in numbers, and how many cells are new, and missing where none was."""
    if found.kind == "category":
        codes, cells = cells_of(column)
        places = {value: place for place, value in enumerate(found.categories or ())}
        of = np.array([places.get(text_of(cell), -1) for cell in [*cells, None]])[codes]
        part = np.zeros((len(of), len(places)))
        seen = np.flatnonzero(of >= 0)
        part[seen, of[seen]] = 1.0
        gone = np.array([cell is None for cell in [*cells, None]])[codes] & (of < 0)
        return part, (int((of < 0).sum() - gone.sum()), int(gone.sum()))
    values = values_of(column, found)
    missing, new = np.isnan(values), 0
    large = ~(missing | (np.abs(values) <= LARGEST))
    if large.any():
        raise WrongCellError(int(large.argmax()), float(values[large.argmax()]), found)
    if missing.any() and found.fill is None:
        raise WrongCellError(int(missing.argmax()), np.nan, found)
    if found.kind == "date":
        new = int(((values < found.low) | (values > found.high)).sum())
    values = np.where(missing, np.nan if found.fill is None else found.fill, values)
    return values[:, None], (new, 0 if found.missing else int(missing.sum()))


def type_of(column: Any) -> str | None:
    """Return the kind that the type of a column tells; '' for pandas's categories."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biuf":
        return "number"
    name = str(column.dtype)
    if kind == "M" or name.startswith(("timestamp", "date32", "date64")):
        return "date"
    if name == "category":
        return ""
    from pandas.api.types import is_numeric_dtype

    return "number" if is_numeric_dtype(column.dtype) else None


def values_of(column: Any, found: Column) -> np.ndarray:
    """Return a column's numbers, NaN where one is missing."""
    kind = type_of(column)
    if kind == "number" and found.kind == "number":
        if isinstance(column, np.ndarray):
            return column.astype(np.float64)
        return column.to_numpy(np.float64, na_value=np.nan)
    if kind == "date" and found.kind == "date":
        import pandas as pd

        moments = pd.to_datetime(column.astype(object), utc=True)
        days = (moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        return days.to_numpy(np.float64)
    codes, cells = cells_of(column)
    read = [np.nan if cell is None else read_cell(cell, found) for cell in cells]
    for place, value in enumerate(read):
        if value is None:
            row = int(np.flatnonzero(codes == place)[0])
            raise WrongCellError(row, cells[place], found)
    return np.array([*read, np.nan], dtype=np.float64)[codes]


def cells_of(column: Any) -> tuple[np.ndarray, list[Cell]]:
    """Return which of its different values each row has, −1 where it is missing, and the values."""
    import pandas as pd

    codes, values = pd.factorize(column)
    return codes, [_cell(value) for value in values]


def _cell(value: Any) -> Cell:
    if isinstance(value, str):
        text = value.strip()
        return None if text.lower() in MISSING else text
    if isinstance(value, datetime):
        return value.isoformat()
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    except OverflowError:
        return np.inf
    return None if np.isnan(number) else number


def text_of(cell: Cell) -> str:
    """Return a category as text; a missing one is empty."""
    return "" if cell is None else cell if isinstance(cell, str) else f"{cell:.12g}"


def read_cell(cell: Cell, column: Column) -> float | None:
    """Return a cell's number, in days for a date; ``None`` if it is none."""
    if column.kind == "date":
        return _read_date(cell, column.dates)
    if cell is None or isinstance(cell, float):
        return cell
    text = cell.lower()
    if text in ("true", "false"):
        return float(text == "true")
    if column.decimal == ",":
        if not _COMMA.fullmatch(text):
            return None
        text = text.replace(".", "").replace(",", ".")
    # Python would take 1_000 for a number.
    return None if "_" in text else _number(text)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _read_date(cell: Cell, dates: str | None) -> float | None:
    # A year has four digits: without it, times and short numbers would be dates.
    if not isinstance(cell, str) or not re.search(r"\d{4}", cell):
        return None
    form = DATES.get(dates or "YYYY-MM-DD")
    readers: list[Callable[[str], datetime]] = [datetime.fromisoformat]
    if form is not None:
        readers = [lambda text, f=form + time: datetime.strptime(text, f) for time in TIMES]  # type: ignore[misc]
    elif not re.match(r"\d{4}-\d\d-\d\d", cell):
        return None
    for reader in readers:
        try:
            moment = reader(cell)
        except ValueError:
            continue
        if moment.tzinfo is not None:
            moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
        return (moment - _EPOCH) / timedelta(days=1)
    return None


def _day(days: float | None) -> str:
    return str((_EPOCH + timedelta(days=days or 0.0)).date())


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share >= 0.001 else "less than 0.1 %"
