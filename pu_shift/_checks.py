"""Checks of what users pass in: one line that names the argument."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

LARGEST = 1e150
"""The largest value of a feature, so that sums of squares are finite."""


class ArgumentError(ValueError):
    """A bad argument: its name, and the rule that it breaks with the value that was found.

    The command line replaces the name by that of its option.
    """

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(name, rule)
        self.name, self.rule = name, rule

    def __str__(self) -> str:
        return f"{self.name}{'' if self.rule.startswith(':') else ' '}{self.rule}"


def open_unit(name: str, value: Any) -> float:
    """Return ``value`` as a float strictly between 0 and 1."""
    return _number(name, value, lambda x: 0.0 < x < 1.0, "lie strictly between 0 and 1")


def open_interval(name: str, ends: Any) -> tuple[float, float]:
    """Return the ends (low, high) of an interval within (0, 1); a number is both of them."""
    if np.ndim(ends) == 0:
        ends = (ends, ends)
    if np.shape(ends) != (2,):
        raise ArgumentError(name, f"must be a number or a pair (low, high), got {shown(ends)}")
    low, high = (open_unit(name, end) for end in ends)
    if low > high:
        raise ArgumentError(name, f"must be (low, high) with low <= high, got {shown(ends)}")
    return low, high


def finite(name: str, value: Any) -> float:
    """Return ``value`` as a finite float."""
    return _number(name, value, math.isfinite, "be a finite number")


def non_negative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float that is not below 0."""
    return _number(name, value, lambda x: 0.0 <= x < math.inf, "be a finite number >= 0")


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a finite float above 0."""
    return _number(name, value, lambda x: 0.0 < x < math.inf, "be a finite number > 0")


def positive_int(name: str, value: Any, least: int = 1) -> int:
    """Return ``value`` as an int that is not below ``least``."""
    number = as_index(value)
    if number is None or number < least:
        raise ArgumentError(name, f"must be an integer >= {least}, got {shown(value)}")
    return number


def as_index(value: Any) -> int | None:
    """Return ``value`` as an int, or None when it is no integer (a bool is none)."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def shown(value: Any) -> str:
    """Return how a value looks, for a message: in one line of at most 80 characters."""
    return one_line(repr(value), most=80)


def one_line(message: object, between: str = " ", most: int = 400) -> str:
    """Return a message, or what an exception says, in one line of at most so many characters."""
    lines = (" ".join(line.split()) for line in str(message).splitlines())
    text = between.join(line for line in lines if line) or type(message).__name__
    return text if len(text) <= most else f"{text[: most - 1]}…"


def one_of(name: str, value: Any, allowed: Iterable[Any]) -> Any:
    """Return ``value`` if it is one of ``allowed``."""
    allowed = list(allowed)
    if not any(value is item or value == item for item in allowed):
        known = ", ".join(map(repr, allowed))
        raise ArgumentError(name, f"must be one of {known}, got {shown(value)}")
    return value


def check_scales(low: np.ndarray, high: np.ndarray, names: Sequence[Any] | None = None) -> None:
    """Refuse columns, from their least and greatest values, whose squares leave float64's range."""
    low, high = low.astype(np.float64), high.astype(np.float64)
    sizes, ranges = np.fmax(np.abs(low), np.abs(high)), high - low
    small = (ranges > 0.0) & (sizes < 1.0 / LARGEST)
    for wrong, cure in ((sizes > LARGEST, "divide"), (small, "multiply")):
        if wrong.any():
            place = int(wrong.argmax())
            name = place + 1 if names is None else names[place]
            raise ArgumentError(
                "X",
                f": column {shown(name)} has values up to {sizes[place]:.3g}, whose squares leave "
                f"the range of floating-point numbers: {cure} it by a power of ten",
            )


def is_dask(X: Any) -> bool:
    """Tell whether this is a Dask collection, without importing Dask."""
    return hasattr(X, "dask") and hasattr(X, "to_delayed")


def distinct(name: str, values: Iterable[Any]) -> None:
    """Refuse values of which two are equal."""
    seen = set()
    for value in values:
        if value in seen:
            raise ArgumentError(name, f"must be distinct, got {shown(value)} twice")
        seen.add(value)


def _number(name: str, value: Any, good: Callable[[float], bool], rule: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(name, f"must be a number, got {shown(value)}") from None
    if math.isnan(number):
        raise ArgumentError(name, "must be a number, got nan")
    if not good(number):
        raise ArgumentError(name, f"must {rule}, got {shown(value)}")
    return number
