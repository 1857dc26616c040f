"""The paper's ideas on the banana data, as surfaces over the plane that a figure can show.

No row of the data leaves this module: only what was estimated from them, on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import gaussian_kde

from pu_shift.data.sampling import Draw, draw
from pu_shift.experiment.methods import TrainingSet
from pu_shift.experiment.protocol import Protocol
from pu_shift.experiment.runner import open_dataset
from pu_shift.experiment.settings import METHODS
from pu_shift.priors import Condition

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

    def sample(prior: float, trial: int = 0) -> tuple[Draw, TrainingSet]:
        one = draw(
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
        return one, TrainingSet(one.positives, one.unlabeled, prior, protocol, one.seed)

    densities = {}
    for label in (1, -1):
        density = on_grid(gaussian_kde(dataset.X[dataset.y == label].T)(points.T))
        densities[label] = density / density.max()
    _, training = sample(prior)
    fitted = {method: training.fit(method, GIVEN_PRIORS) for method in METHODS}
    scores = {
        method: {given: on_grid(one.decide(points)) for given, one in by_prior.items()}
        for method, by_prior in fitted.items()
    }
    # Without a shift the scores are π·p/u − ½ and 2π − u/p.
    ratios = {
        "p/u": (on_grid(training.fit("p/u uLSIF", [prior])[prior].decide(points)) + 0.5) / prior,
        "u/p": 2 * prior - on_grid(training.fit("u/p uLSIF", [prior])[prior].decide(points)),
    }
    posteriors, rates = {}, {}
    for value in PRIORS:
        offset = Condition(value).alpha_unif
        found = []
        for trial in range(RATE_TRIALS):
            one, training = sample(value, trial)
            decide = training.fit("p/u uLSIF", [value])[value].decide
            if trial == 0:
                posteriors[value] = on_grid(decide(points)) + offset
            X, labels = one.tests[TEST_PRIOR]
            posterior = np.asarray(decide(X), dtype=float) + offset
            found.append([(posterior[labels == k, None] > LEVELS).mean(axis=0) for k in (1, -1)])
        rates[value] = tuple(np.mean(found, axis=0))
    return Surfaces(x, y, densities, prior, scores, ratios, posteriors, rates)
