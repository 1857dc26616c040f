"""Seeds for the parts of a computation, independent of the order they run in."""

from __future__ import annotations

import numpy as np

from pu_shift._checks import as_index, shown

Seed = int | np.random.SeedSequence


def child(seed: Seed, *key: int) -> np.random.SeedSequence:
    """Return the seed of one part of a computation.

    Unlike ``SeedSequence.spawn`` it has no state: the same key always gives
    the same seed.

    Parameters
    ----------
    seed
        The seed of the whole.
    *key
        Non-negative integers that name the part.

    Returns
    -------
    numpy.random.SeedSequence
        The seed of the part.

    Examples
    --------
    >>> child(1, 2).generate_state(1) == child(1, 2).generate_state(1)
    array([ True])
    """
    if not isinstance(seed, np.random.SeedSequence):
        number = as_index(seed)
        if number is None or number < 0:
            raise ValueError(f"seed must be an integer >= 0 or a SeedSequence, got {shown(seed)}")
        seed = np.random.SeedSequence(number)
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))
