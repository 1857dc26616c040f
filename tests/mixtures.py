"""Gaussian mixtures whose posterior is known."""

import numpy as np


def mixture(n, prior, rng, gap=2.0, d=1):
    """Draw rows and ±1 labels: classes N(±gap/2, 1) along the first axis."""
    y = np.where(np.arange(n) < round(prior * n), 1, -1)
    X = rng.normal(size=(n, d))
    X[:, 0] += 0.5 * gap * y
    order = rng.permutation(n)
    return X[order], y[order]


def pu_samples(n_p, n_u, prior, seed=0, gap=2.0, d=1):
    """Draw P and U."""
    rng = np.random.default_rng(seed)
    return mixture(n_p, 1.0, rng, gap, d)[0], mixture(n_u, prior, rng, gap, d)[0]


def posterior(X, prior, gap=2.0):
    """P(y = +1 | x) at a class prior."""
    return 1.0 / (1.0 + (1.0 - prior) / prior * np.exp(-gap * X[:, 0]))
