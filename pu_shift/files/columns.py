"""Names of the columns of a table: those that are asked for, and those that are not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import chain

from pu_shift._checks import ArgumentError, shown
from pu_shift.files.unpacking import DataError


def missing_column(name: str, names: Sequence[str]) -> DataError:
    """Return the error for a column that a table with other names has not."""
    close = get_close_matches(name, names, 1, 0.85)
    hint = f", did you mean {shown(close[0])}?" if close else separator_hint(names)
    return DataError(
        f"has no column {shown(name)}{hint or f', its columns are {shown(list(names))}'}"
    )


def check_drop(
    path: str, drop: Sequence[str], label: str | None, tables: Sequence[Sequence[str]]
) -> None:
    """Refuse to leave out the label, or a column that none of the tables has."""
    for name in drop:
        if name == label:
            raise ArgumentError("drop", f": {path} needs its label {shown(name)}")
        if not any(name in names for names in tables):
            raise ArgumentError("drop", f": {path} {missing_column(name, tables[0])}")


def split_names(names: Sequence[str], tables: Sequence[Sequence[str]]) -> list[str]:
    """Return names of columns, of which several may stand in one text with commas between."""
    known = set(chain(*tables))
    parts = ([name] if name in known else name.split(",") for name in names)
    return [name.strip() for name in chain(*parts)]


def separator_hint(names: Sequence[str]) -> str:
    """Say that a table has another separator, if its only name looks like several."""
    marks = [mark for mark in "|: " if len(names) == 1 and mark in names[0]]
    if not marks:
        return ""
    return (
        f", its only one is {shown(names[0])}: columns must be separated by commas, semicolons or "
        f"tabs, not by {marks[0]!r}"
    )


def check_names(names: Sequence[str]) -> None:
    """Refuse names of columns that are there twice."""
    twice = [shown(name) for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"has more than one column named {', '.join(twice)}")
