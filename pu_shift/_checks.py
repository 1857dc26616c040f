"""Checks of what users pass in: one line that names the argument."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def open_unit(name: str, value: Any) -> float:
    """Return ``value`` as a float strictly between 0 and 1.

    Examples
    --------
    >>> open_unit("prior", 0.3)
    0.3
    >>> open_unit("prior", 1)
    Traceback (most recent call last):
    ...
    ValueError: prior must lie strictly between 0 and 1, got 1
    """
    number = _number(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return number


def finite(name: str, value: Any) -> float:
    """Return ``value`` as a finite float.

    Examples
    --------
    >>> finite("value", "inf")
    Traceback (most recent call last):
    ...
    ValueError: value must be a finite number, got 'inf'
    """
    number = _number(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return number


def non_negative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float that is not below 0.

    Examples
    --------
    >>> non_negative("beta", -1.0)
    Traceback (most recent call last):
    ...
    ValueError: beta must be a finite number >= 0, got -1.0
    """
    number = _number(name, value)
    if not (math.isfinite(number) and number >= 0.0):
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
    return number


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a finite float above 0.

    Examples
    --------
    >>> positive("width", 0.0)
    Traceback (most recent call last):
    ...
    ValueError: width must be a finite number > 0, got 0.0
    """
    number = _number(name, value)
    if not (math.isfinite(number) and number > 0.0):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")
    return number


def positive_int(name: str, value: Any, least: int = 1) -> int:
    """Return ``value`` as an int that is not below ``least``.

    Examples
    --------
    >>> positive_int("folds", 1, least=2)
    Traceback (most recent call last):
    ...
    ValueError: folds must be an integer >= 2, got 1
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return value.__index__()


def one_of(name: str, value: Any, allowed: Iterable[Any]) -> Any:
    """Return ``value`` if it is one of ``allowed``.

    Examples
    --------
    >>> one_of("loss", "hinge", ["squared", "double_hinge"])
    Traceback (most recent call last):
    ...
    ValueError: loss must be one of 'squared', 'double_hinge', got 'hinge'
    """
    allowed = list(allowed)
    if not any(value is item or value == item for item in allowed):
        raise ValueError(
            f"{name} must be one of {', '.join(repr(item) for item in allowed)}, got {value!r}"
        )
    return value


def distinct(name: str, values: Iterable[Any]) -> None:
    """Refuse values of which two are equal.

    Examples
    --------
    >>> distinct("methods", ["DH-Lin", "DH-Lin"])
    Traceback (most recent call last):
    ...
    ValueError: methods must be distinct, got 'DH-Lin' twice
    """
    values = list(values)
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{name} must be distinct, got {value!r} twice")


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got nan")
    return number
