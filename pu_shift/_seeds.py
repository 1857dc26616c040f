"""Seeds for the parts of a computation, independent of the order they run in."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from pu_shift._checks import ArgumentError, as_index, shown

Seed = int | np.random.SeedSequence
Function = TypeVar("Function", bound=Callable[..., Any])


def as_seed(name: str, value: Any) -> np.random.SeedSequence:
    """Return an integer >= 0 as a ``SeedSequence``, and one of these as it is."""
    if isinstance(value, np.random.SeedSequence):
        return value
    number = as_index(value)
    if number is None or number < 0:
        raise ArgumentError(name, f"must be an integer >= 0 or a SeedSequence, got {shown(value)}")
    return np.random.SeedSequence(number)


def child(seed: Seed, *key: int) -> np.random.SeedSequence:
    """Return the seed of the part that ``key`` names: unlike ``spawn`` it has no state."""
    whole = as_seed("random_state", seed)
    return np.random.SeedSequence(whole.entropy, spawn_key=(*whole.spawn_key, *key))


def renamed_seed(function: Function) -> Function:
    """Let a function take its ``random_state`` by its old name, ``seed``, until 0.4."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        if "seed" in options:
            message = "seed is now called random_state: pass it by that name"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            options.setdefault("random_state", options.pop("seed"))
        return function(*arguments, **options)

    return call  # type: ignore[return-value]
