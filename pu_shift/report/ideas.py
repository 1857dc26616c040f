"""The paper's ideas on the banana data, as surfaces over the plane that a figure can show.

No row of the data leaves this module: only what was estimated from them, on a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde

from pu_shift.data.sampling import Draw, draw
from pu_shift.paper.methods import fit_method
from pu_shift.paper.protocol import Protocol
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
    """What the figures show of the banana data; surfaces are indexed [y, x].

    Attributes
    ----------
    x, y : ndarray
        The grid's coordinates.
    densities : dict of int to ndarray
        The density of each class, +1 and −1, relative to its maximum.
    prior : float
        π of the training set that ``scores`` and ``ratios`` come from.
    scores : dict of str to dict of float to ndarray
        For each method and given prior the signed score; positive means class +1.
    ratios : dict of str to ndarray
        The estimates of p/u and of u/p.
    posteriors : dict of float to ndarray
        For each π of a training set the estimate of π·p/u, the class posterior.
    rates : dict of float to (ndarray, ndarray)
        For each π the shares of positive and of negative test rows whose
        estimate exceeds each of :data:`LEVELS`, over five training sets.
    """

    x: np.ndarray
    y: np.ndarray
    densities: dict[int, np.ndarray]
    prior: float
    scores: dict[str, dict[float, np.ndarray]]
    ratios: dict[str, np.ndarray]
    posteriors: dict[float, np.ndarray]
    rates: dict[float, tuple[np.ndarray, np.ndarray]]


def banana_surfaces(
    protocol: Protocol, prior: float = 0.3, seed: int = 0, size: int = 49
) -> Surfaces:
    """Fit every method on trial 0 of the banana data and evaluate it on a grid.

    Parameters
    ----------
    protocol
        The protocol of the fits.
    prior
        π of the training set on which all methods are fitted.
    seed
        The seed of the run that the fits belong to.
    size
        The number of grid lines in each direction.

    Returns
    -------
    Surfaces
        The surfaces.

    Raises
    ------
    ValueError
        If the data cannot be had, or have too few rows of a class.

    Examples
    --------
    >>> quick = Protocol(n_p=50, n_u=100, n_test=20, n_centers=5, n_folds=2, n_steps=1, ker_steps=1)
    >>> surfaces = banana_surfaces(quick, size=9)
    >>> surfaces.scores["DH-Lin"][0.5].shape
    (9, 9)
    """
    dataset = open_dataset(DATASET)
    low, high = np.percentile(dataset.X, [0.2, 99.8], axis=0)
    margin = 0.05 * (high - low)
    x, y = np.linspace(low - margin, high + margin, size).T.astype("float32")
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)

    def on_grid(values: np.ndarray) -> np.ndarray:
        return np.asarray(values, dtype=float).reshape(size, size)

    def sample(prior: float, trial: int = 0) -> Draw:
        return draw(
            dataset,
            prior,
            TEST_PRIOR,
            protocol.n_p,
            protocol.n_u,
            protocol.n_test,
            seed,
            trial,
            protocol.counts,
        )

    def fit(method: str, one: Draw, prior: float, given: Sequence[float]) -> dict[float, Any]:
        return fit_method(protocol, method, one, prior, given)

    densities = {}
    for label in (1, -1):
        density = on_grid(gaussian_kde(dataset.X[dataset.y == label].T)(points.T))
        densities[label] = density / density.max()
    training = sample(prior)
    fitted = {method: fit(method, training, prior, GIVEN_PRIORS) for method in METHODS}
    scores = {
        method: {given: on_grid(one.decision_function(points)) for given, one in by_prior.items()}
        for method, by_prior in fitted.items()
    }
    ratios = {
        name: on_grid(fitted[f"{name} uLSIF"][GIVEN_PRIORS[0]].predict_ratio(points))
        for name in ("p/u", "u/p")
    }
    posteriors, rates = {}, {}
    for value in PRIORS:
        found = []
        for trial in range(RATE_TRIALS):
            one = sample(value, trial)
            predict_ratio = fit("p/u uLSIF", one, value, [value])[value].predict_ratio
            if trial == 0:
                posteriors[value] = value * on_grid(predict_ratio(points))
            X, labels = one.tests[TEST_PRIOR]
            posterior = value * predict_ratio(X).astype(float)
            found.append([(posterior[labels == k, None] > LEVELS).mean(axis=0) for k in (1, -1)])
        rates[value] = tuple(np.mean(found, axis=0))
    return Surfaces(x, y, densities, prior, scores, ratios, posteriors, rates)
