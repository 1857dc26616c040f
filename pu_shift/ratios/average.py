"""Averages of density ratios p_p/p_u, each calibrated on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from pu_shift._checks import distinct, non_negative
from pu_shift._grids import Folds, random_folds
from pu_shift._seeds import Seed, child
from pu_shift.device import one_thread
from pu_shift.priors import MARGIN, ratio_bounds
from pu_shift.ratios.base import GridEdgeWarning, Ratio, State, check_shape
from pu_shift.ratios.calibration import Calibration, least_squares_score, stack_weights
from pu_shift.ratios.odds import ClassifierRatio, subsample
from pu_shift.ratios.registry import AUTO, new_ratio

# Rows that the held-out scores are made of at most.
MAX_SCORED_ROWS = 10_000
# Up to so many cells, waiting for other threads takes trees longer than the work.
MAX_CELLS_ALONE = 1_000_000


@dataclass(frozen=True)
class RatioAverage(Ratio):
    """A weighted average of calibrated ratios p_p/p_u, which :func:`fit_average` fits.

    Decisions and posteriors move it within its bounds by ``margin``, see
    :func:`pu_shift.priors.within_bounds`; that of files of version 2 is 0.
    """

    names: tuple[str, ...]
    ratios: tuple[Any, ...]
    calibrations: tuple[Calibration, ...]
    weights: np.ndarray
    margin: float = MARGIN

    def predict(self, X: Any) -> np.ndarray:
        """Return the ratio of each row.

        Parameters
        ----------
        X
            (n, d) rows.

        Returns
        -------
        numpy.ndarray
            (n,) ratios.
        """
        return sum(
            weight * calibrate(ratio.predict(X))
            for ratio, calibrate, weight in zip(self.ratios, self.calibrations, self.weights)
            if weight > 0.0
        )

    def _state(self) -> State:
        for name, ratio in zip(self.names, self.ratios):
            if not ratio.can_be_saved:
                raise ValueError(
                    f"estimator {name!r} cannot be saved without code: fit with "
                    f"estimator='auto', or some of {list(AUTO)}"
                )
        return {
            "names": list(self.names),
            "ratios": [ratio.to_state() for ratio in self.ratios],
            "calibrations": [calibration.to_state() for calibration in self.calibrations],
            "weights": self.weights,
            "margin": self.margin,
        }

    @classmethod
    def _restore(cls, state: Mapping[str, Any]) -> RatioAverage:
        names, parts = tuple(state["names"]), (state["ratios"], state["calibrations"])
        distinct("names", names)
        if not len(names) == len(parts[0]) == len(parts[1]) > 0:
            raise ValueError("an average must have as many names as ratios and calibrations")
        weights = check_shape("weights", state["weights"], (len(names),))
        ratios, calibrations = map(Ratio.from_state, parts[0]), parts[1]
        calibrations = tuple(map(Calibration.from_state, calibrations))
        margin = non_negative("margin", state.get("margin", 0.0))
        return cls(names, tuple(ratios), calibrations, weights, margin)


@dataclass(frozen=True)
class CrossFit:
    """Candidates that were fitted without a fold, and what they say of rows of that fold.

    New rows and rows of the fold are alike to them, which they are not to the final ratio: so
    that a test can compare the two. The score is the weighted mean of the logarithms. The values
    are averages whose calibrations and weights do not know the row's fold either, the share of U
    in the row's fold that has less, and the fold: values of two folds are of two functions, whose
    order would say too little of the order within each.
    """

    ratios: tuple[tuple[Any, ...], ...]  # of each candidate, without each fold
    weights: np.ndarray
    scores: tuple[np.ndarray, ...]  # of P and of U
    values: tuple[np.ndarray, ...]  # (3, n), of P and of U

    def __call__(self, X: Any) -> np.ndarray:
        """Return the (folds, n) scores of rows that none of the candidates has seen."""
        used = [of_item for of_item, weight in zip(self.ratios, self.weights) if weight > 0.0]
        values = np.array([[ratio(X) for ratio in of_item] for of_item in used])
        return mean_log(self.weights[self.weights > 0.0], values)


def mean_log(weights: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """Return the weighted mean over candidates of the logarithms, none of them extreme."""
    return np.tensordot(weights, np.log(np.clip(ratios, 0.01, 100.0)), axes=1)


def fit_average(
    X_p: Any,
    X_u: Any,
    candidates: Mapping[str, Any],
    prior: float,
    *,
    n_folds: int = 5,
    fit_params: Mapping[str, Any] | None = None,
    device: Any = None,
    n_jobs: int | None = None,
    seed: Seed = 0,
) -> tuple[RatioAverage, dict[str, dict[str, float]], tuple[np.ndarray, ...], CrossFit]:
    r"""Fit candidates of p_p/p_u, calibrate each on held-out rows, and average them.

    Each candidate is fitted to all rows and, for its held-out values, once without each fold.
    The monotone function of these with the least J, smoothed, calibrates it. The weights of the
    average have the least J of calibrated held-out values, cut to the range of Proposition 9.

    Parameters
    ----------
    X_p, X_u
        (n, d) rows of P and of U.
    candidates
        What :func:`pu_shift.ratios.registry.check_candidates` returns.
    prior
        π, for the range (0, 1/π).
    n_folds
        Number of folds.
    fit_params
        Parameters of the classifiers' ``fit``, each a pair of arrays for the rows of P and U.
    device
        Where kernels are evaluated; ``None`` is the CPU.
    n_jobs
        Number of jobs of joblib.
    seed
        Seed of everything random.

    Returns
    -------
    tuple of RatioAverage, dict, tuple and CrossFit
        The average, ``{name: {'score': J, 'weight': w}}``, the average's held-out values of P
        and of U, and the candidates of the folds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_p, X_u = rng.normal(1.0, 1.0, (200, 1)), rng.normal(0.0, 1.5, (800, 1))
    >>> from pu_shift.ratios.registry import check_candidates
    >>> both = check_candidates(["linear", "nystroem"])
    >>> ratio, scores, *_ = fit_average(X_p, X_u, both, prior=0.4)
    >>> bool(ratio(np.array([[1.0]]))[0] > 1.0 > ratio(np.array([[-2.0]]))[0]), sorted(scores)
    (True, ['linear', 'nystroem'])
    """
    fit_params = {} if fit_params is None else fit_params
    n_folds = min(n_folds, X_p.shape[0], X_u.shape[0])
    # Threads: a process first imports for seconds. Most of the work is done without the lock.
    run = Parallel(n_jobs=n_jobs, prefer="threads")
    cells = X_p.shape[1] * (X_p.shape[0] + X_u.shape[0])
    # On one thread of BLAS: more would change the rounding with the number of jobs.
    library = "blas" if cells > MAX_CELLS_ALONE else None
    alone = partial(_alone, library)
    unfitted = [new_ratio(item, n_folds, seed, device, prior) for item in candidates.values()]
    *rows, kept = subsample(MAX_SCORED_ROWS, X_p, X_u, child(seed, 3))
    folds = [
        random_folds(name, X.shape[0], n_folds, child(seed, 4, part))
        for part, (name, X) in enumerate(zip(("P", "U"), rows))
    ]
    every, of_kept = [range(n_folds)], _rows_of(fit_params, kept)
    # Limits and filters are the process's: threads that set their own would restore each other's.
    with one_thread(library), warnings.catch_warnings():
        warnings.simplefilter("ignore", GridEdgeWarning)
        ratios = run(delayed(alone)(_fit, ratio, X_p, X_u, fit_params) for ratio in unfitted)
        found = run(
            delayed(alone)(_without_folds, ratio, rows, folds, only, of_kept)
            for ratio in ratios
            for only in (every if ratio.shares_folds else [[fold] for fold in range(n_folds)])
        )
    parts_of = list(chain.from_iterable(found))
    of_folds, held_out = [], []
    for k in range(len(ratios)):
        without, values = zip(*parts_of[k * n_folds : (k + 1) * n_folds])
        of_folds.append(without)
        held_out.append(_by_fold(values, folds))
    calibrations, weights, calibrated = _calibrate(held_out, prior)
    cut = _cut(calibrated, prior)
    average = RatioAverage(tuple(candidates), tuple(ratios), tuple(calibrations), weights)
    scores = {
        name: {"score": least_squares_score(*parts), "weight": float(weight)}
        for name, parts, weight in zip(candidates, cut, weights)
    }
    held_out_average = tuple(weights @ np.stack(parts) for parts in zip(*calibrated))
    raw = tuple(mean_log(weights, np.stack(parts)) for parts in zip(*held_out))
    values = _without_own_fold(held_out, folds, prior)
    return average, scores, held_out_average, CrossFit(tuple(of_folds), weights, raw, values)


def _calibrate(
    held_out: Sequence[Sequence[np.ndarray]], prior: float
) -> tuple[list[Calibration], np.ndarray, list[list[np.ndarray]]]:
    """Return the calibration of each candidate, the weights, and the calibrated values."""
    calibrations = [Calibration.fit(*values) for values in held_out]
    calibrated = [
        [calibrate(value) for value in values] for calibrate, values in zip(calibrations, held_out)
    ]
    weights = stack_weights(*(np.stack(parts) for parts in zip(*_cut(calibrated, prior))))
    return calibrations, weights, calibrated


def _cut(calibrated: Sequence[Sequence[np.ndarray]], prior: float) -> list[list[np.ndarray]]:
    low, high = ratio_bounds(prior)
    return [[np.clip(value, low, high) for value in values] for values in calibrated]


def _without_own_fold(
    held_out: Sequence[Sequence[np.ndarray]], folds: Sequence[Folds], prior: float
) -> tuple[np.ndarray, ...]:
    """Calibrate and average held-out values by what the rows of the other folds say."""
    found = [np.empty((3, len(dealt.of_rows))) for dealt in folds]
    places = [dealt.of_rows for dealt in folds]
    for fold in range(folds[0].n_folds):
        others = [
            [value[of_rows != fold] for value, of_rows in zip(values, places)]
            for values in held_out
        ]
        calibrations, weights, _ = _calibrate(others, prior)
        own = [
            sum(
                weight * calibrate(values[part][of_rows == fold])
                for weight, calibrate, values in zip(weights, calibrations, held_out)
            )
            for part, of_rows in enumerate(places)
        ]
        # The share of the fold's rows of U that are below it orders a row among all folds.
        below = np.sort(own[1])
        for target, of_rows, value in zip(found, places, own):
            rank = np.searchsorted(below, value, "left") + np.searchsorted(below, value, "right")
            target[:, of_rows == fold] = value, 0.5 * rank / len(below), np.full(len(value), fold)
    return tuple(found)


def _alone(library: str | None, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call with a library, or all of them, on one thread."""
    with one_thread(library):
        return function(*arguments)


def _fit(ratio: Any, X_p: Any, X_u: Any, fit_params: Mapping[str, Any]) -> Any:
    """Fit a candidate; the parameters are those of a classifier."""
    return ratio.fit(X_p, X_u, **_own(ratio, fit_params))


def _own(ratio: Any, fit_params: Mapping[str, Any]) -> Mapping[str, Any]:
    return fit_params if isinstance(ratio, ClassifierRatio) else {}


def _rows_of(fit_params: Mapping[str, Any], kept: Sequence[np.ndarray]) -> dict[str, Any]:
    """Return the entries of some rows of P and of U."""
    return {
        name: tuple(part[chosen] for part, chosen in zip(parts, kept))
        for name, parts in fit_params.items()
    }


def _without_folds(
    ratio: Any,
    rows: Sequence[Any],
    folds: Sequence[Folds],
    only: Iterable[int],
    fit_params: Mapping[str, Any],
) -> list[tuple[Any, list[np.ndarray]]]:
    """Fit a candidate without each of some folds, and return it with its values there."""
    return ratio.without_folds(rows, folds, only, _own(ratio, fit_params))


def _by_fold(parts_of: Sequence[Sequence[np.ndarray]], folds: Sequence[Folds]) -> list[np.ndarray]:
    """Put the values of each fold where its rows are, of P and of U."""
    places = [one.of_rows for one in folds]
    values = [np.empty(len(own)) for own in places]
    for fold, parts in enumerate(parts_of):
        for value, part, of_rows in zip(values, parts, places):
            value[of_rows == fold] = part
    return values
