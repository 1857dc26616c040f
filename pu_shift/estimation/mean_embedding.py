r"""The test prior from mean embeddings: three samples as points of a reproducing kernel space.

With the mean embeddings m of P, U and the test rows, m_u = πm_p + (1 − π)m_n and
m_t = π′m_p + (1 − π′)m_n, so that m_p − m_u = (1 − π)(m_p − m_n) and
m_t − m_u = (π′ − π)(m_p − m_n). Hence (Mielniczuk, Rejchel & Teisseyre, 2025, arXiv:2502.21194)

.. math:: \kappa = \frac{\langle m_\mathrm{t} - m_\mathrm{u}, m_\mathrm{p} - m_\mathrm{u}\rangle}
                        {\|m_\mathrm{p} - m_\mathrm{u}\|^2} = \frac{\pi' - \pi}{1 - \pi},
          \qquad \pi' = \pi + \kappa(1 - \pi).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pu_shift._seeds import Seed, child
from pu_shift._sklearn import fit_scaler
from pu_shift.ratios.kernels import as_rows, at_most, gaussian_kernel, near_median_distance

# Rows of each sample at most, and resamples of the bootstrap.
MAX_ROWS, N_RESAMPLES = 2000, 200


def embedding_shift(X_p: Any, X_u: Any, X_test: Any, level: float, seed: Seed) -> list[float]:
    """Estimate κ from rows of P, U and a test set, with its bootstrap interval.

    Features are scaled to unit variance, the kernel is Gaussian, its width the median distance.
    Inner products are means over pairs of different rows, which are unbiased.

    Parameters
    ----------
    X_p, X_u, X_test
        Rows; of each at most 2,000 are used.
    level
        The interval's level.
    seed
        Seed of the rows, of the width and of the bootstrap.

    Returns
    -------
    list
        κ, and the ends of its interval.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = lambda n, prior: rng.normal(np.where(rng.random((n, 1)) < prior, 2.0, -2.0), 1.0)
    >>> shift, low, high = embedding_shift(rows(300, 1.0), rows(900, 0.3), rows(500, 0.7), 0.95, 0)
    >>> round(0.3 + shift * (1.0 - 0.3), 1), low < shift < high
    (0.7, True)
    """
    scaler = fit_scaler(as_rows("X_p", X_p, least=2), as_rows("X_u", X_u, least=2))
    P, U, T = (
        at_most(scaler.transform(X), MAX_ROWS, child(seed, part)).astype(np.float32)
        for part, X in enumerate((X_p, X_u, X_test))
    )
    width = near_median_distance(P, U, child(seed, 3))
    rng = np.random.default_rng(child(seed, 4))
    p, u, t = (_resamples(len(X), rng) for X in (P, U, T))
    kernel_u = [gaussian_kernel(X, U, width) @ u for X in (P, U, T)]
    of_p, of_t = (gaussian_kernel(X, P, width) @ p for X in (P, T))
    pu, tu, tp = _means(p, kernel_u[0]), _means(t, kernel_u[2]), _means(t, of_t)
    pp, uu = (_means_of_pairs(part, kernel) for part, kernel in ((p, of_p), (u, kernel_u[1])))
    distance = pp - 2.0 * pu + uu
    if not distance[0] > 2.0 * np.std(distance[1:]):
        raise ValueError(
            "X_u cannot be told from X_p by their mean embeddings, so that no shift can be seen"
        )
    shifts = (tp - tu - pu + uu) / np.maximum(distance, 1e-12)
    tail = 0.5 * (1.0 - level)
    low, high = np.quantile(shifts[1:], [tail, 1.0 - tail])
    return [float(shifts[0]), float(low), float(high)]


def _resamples(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return weights of n rows: in the first column all alike, in each of the others a resample."""
    counts = rng.multinomial(n, np.full(n, 1.0 / n), N_RESAMPLES)
    return np.vstack([np.ones(n), counts]).T.astype(np.float32) / np.float32(n)


def _means(weights: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Weighted means over all pairs of two samples, one for each column of weights."""
    return np.einsum("ij,ij->j", weights, kernel, dtype=np.float64)


def _means_of_pairs(weights: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Weighted means over the pairs of different rows of a sample: k(x, x) = 1 is left out."""
    own = np.sum(weights.astype(np.float64) ** 2, axis=0)
    return (_means(weights, kernel) - own) / (1.0 - own)
