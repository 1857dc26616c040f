"""Columns of a table by their names: those that are not there, and the one of the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from pu_shift._checks import ArgumentError, shown
from pu_shift._labels import is_missing, label_problem, positive_label
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


def label_test(
    label: str, values: Sequence[Any], positive: str | None = None
) -> Callable[[Any], np.ndarray]:
    """Return a function of labels that tells the positives, if its different values let it.

    ``positive`` is the label of the positives, all others being those of unlabelled rows.
    """
    distinct = list(dict.fromkeys(map(_plain, values)))
    present = [value for value in distinct if value is not None]
    missing = None in distinct
    found = positive_label(present, missing) if positive is None else _plain(positive)
    if found is None or found not in present:
        cure = "--positive names that of the positives"
        if positive is not None:
            cure = f"none is {shown(positive)}, which --positive names"
        problem = label_problem(present, missing, cure)
        raise ArgumentError("label", f": column {shown(label)} {problem}")
    if len(distinct) < 2:
        raise ArgumentError("label", f": column {shown(label)} must label both kinds of rows")
    return partial(_equal_to, found)


def _equal_to(found: Any, labels: Any) -> np.ndarray:
    return np.array([_plain(value) == found for value in labels], dtype=bool)


def _plain(value: Any) -> Any:
    """Return a label as a number if it is one, None if it is missing."""
    if is_missing(value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value).strip()
