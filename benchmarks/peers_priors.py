"""What one would estimate a class prior with instead: KM2, Elkan–Noto, and pulearn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from pu_shift.ratios.kernels import kernel_from_distances, median_distance, squared_distances

WIDTH_FACTORS = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)


def elkan_noto(X_p: np.ndarray, X_u: np.ndarray, seed: int = 0) -> float:
    """Invert c = n_p/(n_p + π n_u), the mean score of held-out positives (Elkan & Noto, 2008)."""
    X, y = np.concatenate([X_p, X_u]), np.repeat([1, 0], [len(X_p), len(X_u)])
    forest = RandomForestClassifier(150, min_samples_leaf=3, oob_score=True, random_state=seed)
    c = forest.fit(X, y).oob_decision_function_[: len(X_p), 1].mean()
    return float(min(1.0, len(X_p) / len(X_u) * (1.0 - c) / max(c, 1e-9)))


def km2(X_p: np.ndarray, X_u: np.ndarray, seed: int = 0, max_rows: int = 800) -> float:
    """Kernel mean embedding with a threshold on the slope (Ramaswamy, Scott & Tewari, 2016).

    d(λ) is the distance of λφ(U) + (1 − λ)φ(P) from the set of all distributions on the rows.
    It leaves 0 at λ* = 1/(1 − π); as it is convex, λ* is where its slope passes a threshold.
    """
    rng = np.random.default_rng(seed)
    X_p, X_u = (X[rng.permutation(len(X))[:max_rows]] for X in (X_p, X_u))
    rows = np.concatenate([X_p, X_u])
    mean_p, mean_u = np.zeros(len(rows)), np.zeros(len(rows))
    mean_p[: len(X_p)], mean_u[len(X_p) :] = 1.0 / len(X_p), 1.0 / len(X_u)
    apart = mean_u - mean_p
    distances, median = squared_distances(rows, rows), median_distance(rows)
    # The width that tells P from U best, as the authors choose it.
    kernels = [kernel_from_distances(distances, factor * median) for factor in WIDTH_FACTORS]
    kernel = max(kernels, key=lambda k: float(apart @ k @ apart))
    last_slope = max(float(apart @ kernel @ apart) ** 0.5, 1e-12)
    step_length = 1.0 / float(np.linalg.norm(kernel, 2))

    def distance_and_slope(lam: float, start: np.ndarray) -> tuple[float, float, np.ndarray]:
        target = lam * mean_u + (1.0 - lam) * mean_p
        weights = nearest_distribution(kernel, target, start, step_length)
        residual = target - weights
        distance = max(float(residual @ kernel @ residual), 0.0) ** 0.5
        # d′(λ) by the envelope theorem: the nearest distribution stands still.
        return distance, float(residual @ kernel @ apart) / max(distance, 1e-12), weights

    distance, _, weights = distance_and_slope(1.05, mean_u)
    threshold = 0.8 * distance / 0.05 + 0.2 * last_slope
    low, high = 1.0, 10.0
    while high - low > 0.04:
        middle = 0.5 * (low + high)
        _, slope, weights = distance_and_slope(middle, weights)
        low, high = (middle, high) if slope < threshold else (low, middle)
    return 1.0 - 2.0 / (low + high)


def nearest_distribution(
    kernel: np.ndarray, target: np.ndarray, start: np.ndarray, step: float, n_steps: int = 300
) -> np.ndarray:
    """Return the weights w ≥ 0 of sum 1 that minimise (w − v)ᵀK(w − v), by Nesterov's steps."""
    weights = ahead = project_to_simplex(start)
    momentum = 1.0
    for _ in range(n_steps):
        moved = project_to_simplex(ahead - step * (kernel @ (ahead - target)))
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        if (ahead - moved) @ (moved - weights) > 0.0:
            # A step back against the last one: the momentum has overshot.
            following, ahead = 1.0, moved
        else:
            ahead = moved + (momentum - 1.0) / following * (moved - weights)
        weights, momentum = moved, following
    return weights


def project_to_simplex(point: np.ndarray) -> np.ndarray:
    """Return the nearest vector that is not negative and sums to 1."""
    ordered = -np.sort(-point)
    excess = np.cumsum(ordered) - 1.0
    size = np.sum(ordered * np.arange(1, len(point) + 1) > excess)
    return np.maximum(point - excess[size - 1] / size, 0.0)


def pulearn_share(name: str, X_p: np.ndarray, X_u: np.ndarray) -> float:
    """Return the share of positives in U that an estimator of pulearn finds, by its defaults."""
    import pulearn

    X, y = np.concatenate([X_p, X_u]), np.repeat([1, 0], [len(X_p), len(X_u)])
    result: Any = getattr(pulearn, name)().estimate(X, y)
    return float(result.metadata["hidden_positive_fraction"])
