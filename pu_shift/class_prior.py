r"""Estimate the class prior π from positive and unlabelled rows.

Both methods look for the largest share θ such that the unlabelled density can
still hold θ·p_p: :math:`p_\mathrm{u} - \theta p_\mathrm{p} \ge 0`. That share
is π when no part of the negatives looks like the positives (irreducibility);
otherwise it, and so the estimate, lies above π.

Kernel methods lose their grip on many features: held against rows in which every pair is equally
far apart, any θ fits. ``transform='score'`` replaces the rows by one number each, a cross-fitted
estimate of p_p/p_u, which keeps all that matters for π. ``method='auto'`` is KM2 on that score,
the best of the four combinations in ``docs/class_prior.md``, unless π seems to lie near 1, where
KM2 falls short.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from pu_shift._checks import one_of, open_unit, positive_int
from pu_shift._seeds import Seed, child
from pu_shift.candidates import (
    PRIOR_LAMS,
    PRIOR_WIDTH_FACTORS,
    assign_folds,
    training_weights,
)
from pu_shift.kernels import (
    as_rows,
    check_scale,
    choose_centers,
    kernel_from_distances,
    median_distance,
    squared_distances,
    take_rows,
)
from pu_shift.ulsif import ULSIF, GridEdgeWarning

PRIOR_METHODS = ("auto", "pen-l1", "km2")
TRANSFORMS = ("raw", "score")
THETAS = np.linspace(0.005, 0.995, 199)
# Of KM2: the range of its λ, the accuracy to which it is found, and the share
# of the last slope in the threshold on the slope (Ramaswamy et al., 2016).
KM2_RANGE, KM2_ACCURACY, KM2_SHARE = (1.0, 10.0), 0.04, 0.2
# Above, 'auto' prefers penalised L1: KM2 falls short long before the end of its range, 0.9.
KM2_LIMIT = 0.85
N_FOLDS = 5


@dataclass(frozen=True)
class PriorEstimate:
    """An estimated class prior.

    Attributes
    ----------
    prior : float
        The estimate of π.
    low, high : float
        Bootstrap percentile interval; NaN without a bootstrap.
    level : float
        The interval's level.
    method, transform : str
        What was used.
    bootstrap : numpy.ndarray
        The bootstrap estimates.
    """

    prior: float
    low: float
    high: float
    level: float
    method: str
    transform: str
    bootstrap: np.ndarray


def estimate_prior(
    X_p: Any,
    X_u: Any,
    method: str = "auto",
    transform: str | None = None,
    n_bootstrap: int = 0,
    level: float = 0.95,
    max_rows: int = 4000,
    seed: Seed = 0,
) -> PriorEstimate:
    """Estimate π, the share of positives among the unlabelled rows.

    Parameters
    ----------
    X_p, X_u
        Positive and unlabelled rows. Features are scaled to unit variance within.
    method
        ``'pen-l1'`` (du Plessis, Niu & Sugiyama, 2017), ``'km2'`` (Ramaswamy, Scott & Tewari,
        2016), or ``'auto'``: ``'km2'`` on the score, or ``'pen-l1'`` where that exceeds 0.85.
    transform
        ``'raw'`` for the rows themselves, ``'score'`` for the cross-fitted density ratio. By
        default ``'score'`` for ``'auto'`` and ``'raw'`` for the two methods as published.
    n_bootstrap
        Number of bootstrap samples of the interval; 0 for none. Percentiles, widened to hold the
        estimate. The score is not fitted again, so the interval leaves out its uncertainty, and
        no interval knows of the bias of data that are not irreducible.
    level
        The interval's level.
    max_rows
        The largest number of rows used of P and of U each (KM2: a quarter, its cost grows with
        their square).
    seed
        Seed of everything random.

    Returns
    -------
    PriorEstimate
        Estimate and interval.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_p = rng.normal(2.0, 1.0, (300, 1))
    >>> X_u = np.concatenate([rng.normal(2.0, 1.0, (240, 1)), rng.normal(-2.0, 1.0, (560, 1))])
    >>> round(estimate_prior(X_p, X_u).prior, 1)
    0.3
    """
    one_of("method", method, PRIOR_METHODS)
    one_of("transform", transform, (None, *TRANSFORMS))
    positive_int("n_bootstrap", n_bootstrap, least=0)
    level = open_unit("level", level)
    limit = positive_int("max_rows", max_rows, least=40)
    X_p = as_rows("X_p", X_p, least=3)
    X_u = as_rows("X_u", X_u, least=3, columns=X_p.shape[1])
    X_p, X_u = (
        _at_most(X.astype(np.float64), limit, child(seed, 0, part))
        for part, X in enumerate((X_p, X_u))
    )
    check_scale(X_p, X_u, linear=False)
    X_p, X_u = _scaled(X_p, X_u)
    if transform is None:
        transform = "score" if method == "auto" else "raw"
    if transform == "score":
        X_p, X_u = _scores(X_p, X_u, child(seed, 1))
    factors = np.array(PRIOR_WIDTH_FACTORS[transform])
    if method == "auto":
        once = [np.ones((len(X), 1)) for X in (X_p, X_u)]
        (largest,) = _penalized_l1((X_p, X_u), once, factors, child(seed, 4))
        method = "pen-l1" if largest > KM2_LIMIT else "km2"
    if method == "km2":
        X_p, X_u = (
            _at_most(X, limit // 4, child(seed, 2, part)) for part, X in enumerate((X_p, X_u))
        )
    counts = [
        _bootstrap_counts(len(X), n_bootstrap, child(seed, 3, part))
        for part, X in enumerate((X_p, X_u))
    ]
    estimate: Any = _penalized_l1 if method == "pen-l1" else _km2
    estimates = estimate((X_p, X_u), counts, factors, child(seed, 4))
    low, high = np.nan, np.nan
    if n_bootstrap:
        tail = 50.0 * (1.0 - level)
        low, high = (float(value) for value in np.percentile(estimates[1:], [tail, 100.0 - tail]))
        low, high = min(low, float(estimates[0])), max(high, float(estimates[0]))
    return PriorEstimate(float(estimates[0]), low, high, level, method, transform, estimates[1:])


def _at_most(X: np.ndarray, limit: int, seed: Seed) -> np.ndarray:
    if len(X) <= limit:
        return X
    rows = np.random.default_rng(seed).choice(len(X), limit, replace=False)
    return take_rows(X, np.sort(rows))


def _scaled(X_p: np.ndarray, X_u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate([X_p, X_u])
    centre, scale = rows.mean(axis=0), rows.std(axis=0)
    scale[scale == 0.0] = 1.0
    return (X_p - centre) / scale, (X_u - centre) / scale


def _scores(X_p: np.ndarray, X_u: np.ndarray, seed: Seed) -> tuple[np.ndarray, np.ndarray]:
    """Ranks of the density ratio p_p/p_u, each fitted without the row's own fold."""
    n_folds = min(N_FOLDS, len(X_p), len(X_u))
    folds_p = assign_folds("X_p", len(X_p), n_folds, child(seed, 0))
    folds_u = assign_folds("X_u", len(X_u), n_folds, child(seed, 1))
    scores_p, scores_u = np.empty(len(X_p)), np.empty(len(X_u))
    for fold in range(n_folds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GridEdgeWarning)
            ratio = ULSIF(
                X_p[folds_p != fold],
                X_u[folds_u != fold],
                n_centers=200,
                selection="loo",
                seed=child(seed, 2),
            )
        scores_p[folds_p == fold] = ratio(X_p[folds_p == fold])
        scores_u[folds_u == fold] = ratio(X_u[folds_u == fold])
    # Ranks, because folds may differ in scale but hardly in order; equal scores share
    # theirs, or the order of the rows would tell P from U.
    ranks = rankdata(np.concatenate([scores_p, scores_u])) - 1.0
    ranks /= len(ranks)
    return ranks[: len(X_p), None], ranks[len(X_p) :, None]


def _bootstrap_counts(n: int, n_bootstrap: int, seed: Seed) -> np.ndarray:
    """(n, 1 + B): how often each row is drawn; the first column is the sample itself."""
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=n_bootstrap).T
    return np.concatenate([np.ones((n, 1)), drawn], axis=1)


def _penalized_l1(
    samples: tuple[np.ndarray, np.ndarray], counts: Any, width_factors: np.ndarray, seed: Seed
) -> np.ndarray:
    r"""Minimise the penalised L1 divergence over θ, for each column of counts.

    .. math:: \frac1\lambda\sum_l \max(0, \beta_l)\,\beta_l - \theta + 1, \qquad
        \beta_l = \theta\,\widehat{\mathbb E}_\mathrm{p}[\varphi_l]
                - \widehat{\mathbb E}_\mathrm{u}[\varphi_l]

    The closed-form coefficients max(0, β)/λ come from the training folds and meet the β of the
    held-out fold: in-sample, noise alone would look like an excess of θ·p_p over p_u. At each θ
    the width and λ with the greatest held-out value serve.
    """
    centers = choose_centers(*samples, 200, "both", child(seed, 0))
    widths = width_factors * median_distance(np.concatenate(samples))
    n_folds = min(N_FOLDS, *(len(X) for X in samples))
    sums, totals = [], []
    for part, (X, drawn) in enumerate(zip(samples, counts)):
        folds = assign_folds("X", len(X), n_folds, child(seed, 1, part))
        held_out = 1.0 - training_weights(folds, n_folds, np.float64)[:, :-1]
        weights = (held_out[:, :, None] * drawn[:, None, :]).reshape(len(X), -1)
        distances = squared_distances(X, centers)
        shape = (len(centers), n_folds, drawn.shape[1])
        sums.append(
            [(kernel_from_distances(distances, w).T @ weights).reshape(shape) for w in widths]
        )
        totals.append(weights.sum(axis=0).reshape(shape[1:]))
    estimates = np.empty(counts[0].shape[1])
    for b in range(len(estimates)):
        penalty = np.full(len(THETAS), -np.inf)
        for w in range(len(widths)):
            # (centres, folds) means on each fold, and on all others.
            (held_p, train_p), (held_u, train_u) = (
                _fold_means(part[w][:, :, b], total[:, b]) for part, total in zip(sums, totals)
            )
            trained = np.maximum(0.0, THETAS[:, None, None] * train_p - train_u)
            excess = THETAS[:, None, None] * held_p - held_u
            score = (trained * excess).sum(axis=1).mean(axis=1)
            penalty = np.maximum(penalty, np.max([score / lam for lam in PRIOR_LAMS], axis=0))
        estimates[b] = THETAS[np.argmin(penalty - THETAS)]
    return estimates


def _fold_means(sums: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means on each fold and on the others, 0 where a bootstrap sample has no rows."""
    others = np.maximum(totals.sum() - totals, 1.0)
    return sums / np.maximum(totals, 1.0), (sums.sum(axis=1, keepdims=True) - sums) / others


def _km2(
    samples: tuple[np.ndarray, np.ndarray], counts: Any, width_factors: np.ndarray, seed: Seed
) -> np.ndarray:
    r"""Kernel mean embedding with a threshold on the slope, for each column of counts.

    d(λ) is the distance of λφ(U) + (1 − λ)φ(P) from the set of all distributions on the rows. It
    leaves 0 at λ* = 1/(1 − π); as it is convex, λ* is where its slope passes a threshold between
    the slope at the start and the last possible one, ‖φ(U) − φ(P)‖.
    """
    rows, (drawn_p, drawn_u) = np.concatenate(samples), counts
    distances = squared_distances(rows, rows)
    median = median_distance(rows)
    mean_p = np.concatenate([drawn_p / len(drawn_p), np.zeros_like(drawn_u)])
    mean_u = np.concatenate([np.zeros_like(drawn_p), drawn_u / len(drawn_u)])
    apart = mean_u - mean_p
    # The width that tells P from U best, as the authors choose it.
    kernels = [kernel_from_distances(distances, factor * median) for factor in width_factors]
    kernel = max(kernels, key=lambda k: float(apart[:, 0] @ k @ apart[:, 0]))
    features = _kernel_features(kernel)
    map_apart = features.T @ apart
    last_slope = np.maximum(np.linalg.norm(map_apart, axis=0), 1e-12)

    def distance_and_slope(lam: np.ndarray, start: np.ndarray) -> tuple[Any, Any, Any]:
        target = lam * mean_u + (1.0 - lam) * mean_p
        weights = nearest_distribution(features, target, start)
        residual = features.T @ (target - weights)
        distance = np.linalg.norm(residual, axis=0)
        # d′(λ) by the envelope theorem: the nearest distribution stands still.
        slope = (residual * map_apart).sum(axis=0) / np.maximum(distance, 1e-12)
        return distance, slope, weights

    low = np.full(mean_u.shape[1], KM2_RANGE[0])
    high = np.full(mean_u.shape[1], KM2_RANGE[1])
    step = 0.05
    distance, _, weights = distance_and_slope(low + step, mean_u)
    threshold = (1.0 - KM2_SHARE) * distance / step + KM2_SHARE * last_slope
    while np.max(high - low) > KM2_ACCURACY:
        middle = 0.5 * (low + high)
        _, slope, weights = distance_and_slope(middle, weights)
        below = slope < threshold
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    lam = 0.5 * (low + high)
    return np.clip((lam - 1.0) / lam, THETAS[0], THETAS[-1])


def _kernel_features(kernel: np.ndarray) -> np.ndarray:
    """Features whose inner products are the kernel's values, without its negligible part."""
    values, vectors = np.linalg.eigh(kernel)
    kept = values > 1e-8 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def nearest_distribution(
    features: np.ndarray, targets: np.ndarray, start: np.ndarray, n_steps: int = 300
) -> np.ndarray:
    r"""Project signed measures on rows to the nearest distributions in feature space.

    .. math:: \min_{w \ge 0,\, \sum_i w_i = 1} \|\Phi^\top (w - v)\|

    By projected gradient steps with Nesterov's momentum and restarts, for all columns at once.
    """
    length = 1.0 / np.linalg.norm(features, 2) ** 2
    weights = project_to_simplex(start)
    ahead, momentum = weights, np.ones(targets.shape[1])
    for _ in range(n_steps):
        gradient = features @ (features.T @ (ahead - targets))
        moved = project_to_simplex(ahead - length * gradient)
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        # A step back against the last one: the momentum has overshot.
        overshot = ((ahead - moved) * (moved - weights)).sum(axis=0) > 0.0
        following = np.where(overshot, 1.0, following)
        ahead = moved + np.where(overshot, 0.0, (momentum - 1.0) / following) * (moved - weights)
        weights, momentum = moved, following
    return weights


def project_to_simplex(points: np.ndarray) -> np.ndarray:
    """Project the columns of a matrix to the probability simplex."""
    ordered = -np.sort(-points, axis=0)
    excess = np.cumsum(ordered, axis=0) - 1.0
    places = np.arange(1, len(points) + 1)[:, None]
    size = (ordered * places > excess).sum(axis=0)
    shift = excess[size - 1, np.arange(points.shape[1])] / size
    return np.maximum(points - shift, 0.0)
