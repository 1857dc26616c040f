"""Candidates and folds for choosing hyper-parameters without labels; all default grids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pu_shift._checks import ArgumentError, positive_int, shown
from pu_shift._seeds import Seed, child

# Widths are multiples of the median distance.
WIDTH_FACTORS = (1 / 8, 1 / 4, 1 / 2, 1.0, 3 / 2, 2.0)
ULSIF_LAMS = tuple(float(lam) for lam in np.logspace(-3, 1, 9))
# Wider than uLSIF's own grid: one eigendecomposition serves every λ.
RATIO_LAMS = tuple(float(lam) for lam in np.logspace(-5, 1, 13))
# Each width costs another training.
RISK_WIDTH_FACTORS = (1 / 4, 1 / 2, 1.0, 2.0)
RISK_LAMS = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# So many consecutive rows are shuffled with one seed.
SHUFFLED_ROWS = 65_536


class GridEdgeWarning(UserWarning):
    """The best candidate lies on the edge of its grid: a wider grid may do better."""


@dataclass(frozen=True, eq=False)
class Folds:
    """The random fold, 0 … n_folds − 1, of each row; their sizes differ by at most one."""

    of_rows: np.ndarray
    n_folds: int

    @property
    def counts(self) -> np.ndarray:
        """The number of rows of each fold."""
        return np.bincount(self.of_rows, minlength=self.n_folds)


def random_folds(name: str, n: int, n_folds: int, seed: Seed) -> Folds:
    """Assign n rows to folds."""
    positive_int("n_folds", n_folds, least=2)
    if n < n_folds:
        raise ArgumentError(name, f"must have at least n_folds = {n_folds} rows, got {n}")
    parts = []
    for start in range(0, n, SHUFFLED_ROWS):
        own = seed if start == 0 else child(seed, start // SHUFFLED_ROWS)
        rows = np.arange(start, min(start + SHUFFLED_ROWS, n))
        parts.append(np.random.default_rng(own).permutation(rows % n_folds))
    return Folds(np.concatenate(parts), n_folds)


def assign_folds(name: str, n: int, n_folds: int, seed: Seed) -> np.ndarray:
    """Return the fold of each of n rows, see :class:`Folds`."""
    return random_folds(name, n, n_folds, seed).of_rows


def training_weights(folds: np.ndarray, n_folds: int, dtype: type = np.float32) -> np.ndarray:
    """(n, n_folds + 1): column k is 0 on fold k and 1 elsewhere, the last is 1 everywhere."""
    held_out = np.asarray(folds)[:, None] == np.arange(n_folds + 1)
    return (~held_out).astype(dtype)


def check_grid(name: str, values: float | Iterable[float], allow_zero: bool) -> np.ndarray:
    """Return a number or a sequence of candidates as a float64 vector in the given order."""
    try:
        grid = np.array(values, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {shown(values)}") from None
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"{name} must be a non-empty sequence of numbers, got {shown(values)}")
    good = np.isfinite(grid) & ((grid >= 0.0) if allow_zero else (grid > 0.0))
    if not good.all():
        least = ">= 0" if allow_zero else "> 0"
        raise ValueError(f"{name} must be finite numbers {least}, got {grid[~good][0]}")
    return grid
