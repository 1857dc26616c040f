"""The paper's ideas on the banana data, as surfaces over the plane that a figure can show.

No row of the data leaves this module: only what was estimated from them, on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde

from pu_shift.data.sampling import Draw, draw
from pu_shift.paper.protocol import Protocol, fit_method
from pu_shift.paper.runner import open_dataset
from pu_shift.paper.settings import METHODS

DATASET = "banana"
GIVEN_PRIORS = tuple(round(0.1 * i, 1) for i in range(1, 10))
# Beyond 0.8 the dataset has too few positives for P, U and a test set.
PRIORS = tuple(round(0.05 * i, 2) for i in range(2, 17))
# The test set's prior: both rates of the explorer get half of the rows.
TEST_PRIOR = 0.5
LEVELS = np.linspace(0.0, 1.0, 201)
RATE_TRIALS = 5


@dataclass(frozen=True)
class Surfaces:
    """What the figures show of the banana data; surfaces are indexed [y, x]."""

    x: np.ndarray
    y: np.ndarray
    densities: dict[int, np.ndarray]  # of the classes +1 and −1, relative to the maximum
    prior: float  # π of the training set of scores and ratios
    scores: dict[str, dict[float, np.ndarray]]  # by method and given prior; above 0 means +1
    ratios: dict[str, np.ndarray]  # estimates of p/u and of u/p
    posteriors: dict[float, np.ndarray]  # for each π of a training set that of π·p/u
    # For each π the shares of positive and of negative test rows above each of LEVELS.
    rates: dict[float, tuple[np.ndarray, np.ndarray]]


def banana_surfaces(
    protocol: Protocol, prior: float = 0.3, seed: int = 0, size: int = 49
) -> Surfaces:
    """Fit every method on trial 0 of the banana data and evaluate it on a grid."""
    dataset = open_dataset(DATASET)
    low, high = np.percentile(dataset.X, [0.2, 99.8], axis=0)
    margin = 0.05 * (high - low)
    x, y = np.linspace(low - margin, high + margin, size).T.astype("float32")
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)

    def on_grid(values: np.ndarray) -> np.ndarray:
        return np.asarray(values, dtype=float).reshape(size, size)

    def sample(prior: float, trial: int = 0) -> Draw:
        sizes = (protocol.n_p, protocol.n_u, protocol.n_test)
        return draw(dataset, prior, TEST_PRIOR, *sizes, seed, trial, protocol.counts)

    def density(label: int) -> np.ndarray:
        values = on_grid(gaussian_kde(dataset.X[dataset.y == label].T)(points.T))
        return values / values.max()

    training = sample(prior)
    fitted: dict[str, dict[float, Any]] = {
        method: fit_method(protocol, method, training, prior, GIVEN_PRIORS) for method in METHODS
    }
    posteriors, rates = {}, {}
    for value in PRIORS:
        found = []
        for trial in range(RATE_TRIALS):
            one = sample(value, trial)
            classifier = fit_method(protocol, "p/u uLSIF", one, value, [value])[value]
            if trial == 0:
                posteriors[value] = value * on_grid(classifier.predict_ratio(points))
            X, labels = one.tests[TEST_PRIOR]
            posterior = value * classifier.predict_ratio(X).astype(float)
            found.append([(posterior[labels == k, None] > LEVELS).mean(axis=0) for k in (1, -1)])
        rates[value] = tuple(np.mean(found, axis=0))
    return Surfaces(
        x=x,
        y=y,
        densities={label: density(label) for label in (1, -1)},
        prior=prior,
        scores={
            method: {given: on_grid(one.decision_function(points)) for given, one in by.items()}
            for method, by in fitted.items()
        },
        ratios={
            name: on_grid(fitted[f"{name} uLSIF"][GIVEN_PRIORS[0]].predict_ratio(points))
            for name in ("p/u", "u/p")
        },
        posteriors=posteriors,
        rates=rates,
    )
