r"""The density ratio p_p/p_u from any classifier, and averages of such ratios.

A classifier that tells P from U estimates s(x), the share of P among all rows at x, and

.. math:: \frac{p_\mathrm{p}(x)}{p_\mathrm{u}(x)}
          = \frac{n_\mathrm{u}}{n_\mathrm{p}} \cdot \frac{s(x)}{1 - s(x)}.

Every ratio w, whatever it comes from, has the criterion that uLSIF minimises,

.. math:: J(w) = \tfrac12 \mathbb{E}_\mathrm{u}[w^2] - \mathbb{E}_\mathrm{p}[w]
          = \tfrac12 \mathbb{E}_\mathrm{u}\left[(w - p_\mathrm{p}/p_\mathrm{u})^2\right]
          + \text{const},

so J on held-out rows compares them all, and decides three things in :func:`fit_average`:
the monotone function that calibrates a candidate, the candidate's score, and its weight in
the average.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import nnls
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits

from pu_shift._checks import distinct, shown
from pu_shift._grids import RATIO_LAMS, assign_folds
from pu_shift._seeds import Seed, child
from pu_shift._sklearn import last_step, split_steps
from pu_shift.bigdata import RowBlocks, in_blocks, survey_of
from pu_shift.device import Device, device_of, to_numpy
from pu_shift.priors import ratio_bounds
from pu_shift.ratios.kernels import median_distance, row_blocks
from pu_shift.ratios.ulsif import KLIEP, ULSIF, DensityRatio, GridEdgeWarning

# Widths of the Nyström features, times the median distance.
NYSTROEM_WIDTHS = {"nystroem": 0.5, "nystroem_wide": 1.0}
CANDIDATES = ("ulsif", "kliep", "linear", *NYSTROEM_WIDTHS, "boosting")
AUTO = ("ulsif", "linear", *NYSTROEM_WIDTHS, "boosting")
KERNELS = frozenset(("ulsif", "kliep"))
# Those that a model file can hold: they are sums of basis functions.
PLAIN = tuple(name for name in AUTO if name != "boosting")
# Rows that the kernel features of one candidate, and the held-out scores, are made of at most.
MAX_KERNEL_ROWS, MAX_SCORED_ROWS = 50_000, 20_000
# Of classifiers that are trained in a stream: rows of P, and of U, at a time, and how often
# they see samples that are not large.
BATCH_ROWS, MAX_PASSES = 4096, 20
LARGEST_LOG = 30.0
# Up to so many cells, waiting for other threads takes trees longer than the work.
MAX_CELLS_ALONE = 1_000_000


def default_centers(n: int) -> int:
    """Return how many kernel centres serve n rows: 4√n, between 100 and 500.

    Parameters
    ----------
    n
        Number of rows of P and U.

    Returns
    -------
    int
        At most n.

    Examples
    --------
    >>> [default_centers(n) for n in (50, 500, 2500, 10**6)]
    [50, 100, 200, 500]
    """
    return min(n, max(100, min(500, round(4.0 * n**0.5))))


def odds_ratio(share: Any, n_p: float, n_u: float) -> np.ndarray:
    r"""Density ratio from a classifier of P against U.

    .. math:: \frac{p_\mathrm{p}}{p_\mathrm{u}}
              = \frac{n_\mathrm{u}}{n_\mathrm{p}} \cdot \frac{s}{1 - s}

    Parameters
    ----------
    share
        s, the probabilities of P, within [0, 1].
    n_p, n_u
        Numbers of rows it was trained with.

    Returns
    -------
    numpy.ndarray
        p_p/p_u, finite.

    Examples
    --------
    >>> odds_ratio([0.2, 0.5], n_p=100, n_u=400).tolist()
    [1.0, 4.0]
    """
    share = np.asarray(share, dtype=np.float64)
    return n_u / n_p * share / np.maximum(1.0 - share, np.exp(-LARGEST_LOG))


def least_squares_score(ratio_p: Any, ratio_u: Any) -> float:
    r"""Score of a density ratio on held-out rows: lower is better.

    .. math:: J = \tfrac12 \widehat{\mathbb{E}}_\mathrm{u}[w^2]
              - \widehat{\mathbb{E}}_\mathrm{p}[w]

    Parameters
    ----------
    ratio_p, ratio_u
        Values of w at held-out rows of P and of U.

    Returns
    -------
    float
        J; −½ for the constant w = 1.

    Examples
    --------
    >>> least_squares_score([1.0, 1.0], [1.0])
    -0.5
    """
    return float(0.5 * np.mean(np.square(ratio_u)) - np.mean(ratio_p))


def stack_weights(ratios_p: Any, ratios_u: Any) -> np.ndarray:
    r"""Weights of the average of K ratios that has the least J on held-out rows.

    .. math:: \min_w \tfrac12 w^\top A w - b^\top w \quad\text{s.t.}\quad
              w \ge 0,\ \textstyle\sum_k w_k = 1, \qquad
              A = \widehat{\mathbb{E}}_\mathrm{u}[r r^\top],\
              b = \widehat{\mathbb{E}}_\mathrm{p}[r]

    Parameters
    ----------
    ratios_p, ratios_u
        (K, n) values of the ratios at held-out rows of P and of U.

    Returns
    -------
    numpy.ndarray
        (K,) weights.

    Examples
    --------
    >>> stack_weights([[1.0, 1.0], [3.0, 1.0]], [[1.0, 1.0], [2.0, 0.0]]).round(6).tolist()
    [0.0, 1.0]
    """
    ratios_p, ratios_u = np.atleast_2d(ratios_p), np.atleast_2d(ratios_u)
    A, b = ratios_u @ ratios_u.T / ratios_u.shape[1], ratios_p.mean(axis=1)
    size = max(float(np.trace(A)), 1e-300)
    # A whisper of ridge: of equal candidates each gets the same weight.
    factor = np.linalg.cholesky(A + 1e-8 * size * np.eye(len(b)))
    # The sum is held to 1 by a row that outweighs the others.
    heavy = 1e4 * size**0.5 * np.ones(len(b))
    weights, _ = nnls(np.vstack([factor.T, heavy]), np.append(np.linalg.solve(factor, b), heavy[0]))
    return weights / weights.sum()


@dataclass(frozen=True)
class PlainRatio:
    """A ratio that is a sum of basis functions of scaled rows, or the exponential of one.

    The odds of a logistic regression are such an exponential, so that uLSIF, KLIEP and logistic
    regression, linear or on Nyström features, are all a few arrays.
    """

    expansion: DensityRatio
    mean: np.ndarray
    scale: np.ndarray
    offset: float = 0.0
    exponential: bool = False

    def __call__(self, X: Any) -> np.ndarray:
        """Return the ratio of each row."""
        device = device_of(self.expansion.coefficients)
        with device.use():
            value = to_numpy(self.expansion(device.send((X - self.mean) / self.scale)))
        value = value.astype(np.float64, copy=False) + self.offset
        if not self.exponential:
            return value
        return np.exp(np.clip(value, -LARGEST_LOG, LARGEST_LOG))


@dataclass(frozen=True)
class ClassifierRatio:
    """A ratio that is the odds of a fitted classifier of P against U."""

    classifier: Any
    n_p: float
    n_u: float

    def __call__(self, X: Any) -> np.ndarray:
        """Return the ratio of each row."""
        return odds_ratio(self.classifier.predict_proba(X)[:, 1], self.n_p, self.n_u)


@dataclass(frozen=True)
class Calibration:
    """A monotone function, linear between its knots and constant beyond them."""

    knots: np.ndarray
    values: np.ndarray

    def __call__(self, ratio: np.ndarray) -> np.ndarray:
        """Return the calibrated ratios."""
        return np.interp(ratio, self.knots, self.values)

    @classmethod
    def fit(cls, ratio_p: np.ndarray, ratio_u: np.ndarray) -> Calibration:
        """Find the monotone function of held-out ratios that has the least J.

        That is isotonic regression: in each block the share of P's rows over that of U's. A row
        of U above all others and the like of P below them keep it away from 0 and infinity.
        """
        n_p, n_u = len(ratio_p), len(ratio_u)
        ratio = np.concatenate([ratio_p, ratio_u])
        ratio = np.concatenate([ratio, [ratio.max(), ratio.min()]])
        is_p = np.concatenate([np.ones(n_p), np.zeros(n_u), [0.0, 1.0]])
        weights = np.concatenate([np.ones(n_p + n_u), [1.0, n_p / n_u]])
        fitted = IsotonicRegression(y_min=0.0, y_max=1.0).fit(ratio, is_p, weights)
        return cls(fitted.X_thresholds_, odds_ratio(fitted.y_thresholds_, n_p, n_u))


@dataclass(frozen=True)
class RatioAverage:
    """A weighted average of calibrated ratios p_p/p_u."""

    names: tuple[str, ...]
    ratios: tuple[Any, ...]
    calibrations: tuple[Calibration, ...]
    weights: np.ndarray

    def __call__(self, X: Any) -> np.ndarray:
        """Return the ratio of each row."""
        return sum(
            weight * calibrate(ratio(X))
            for ratio, calibrate, weight in zip(self.ratios, self.calibrations, self.weights)
        )


@dataclass(frozen=True)
class CrossFit:
    """Candidates that were fitted without a fold, and what they say of rows of that fold.

    New rows and rows of the fold are alike to them, which they are not to the final ratio: so
    that a test can compare the two. The score is the weighted mean of the logarithms.
    """

    ratios: tuple[tuple[Any, ...], ...]  # of each candidate, without each fold
    weights: np.ndarray
    scores: tuple[np.ndarray, ...]  # of P and of U

    def __call__(self, X: Any) -> np.ndarray:
        """Return the (folds, n) scores of rows that none of the candidates has seen."""
        used = [of_item for of_item, weight in zip(self.ratios, self.weights) if weight > 0.0]
        values = np.array([[ratio(X) for ratio in of_item] for of_item in used])
        return mean_log(self.weights[self.weights > 0.0], values)


def mean_log(weights: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """Return the weighted mean over candidates of the logarithms, none of them extreme."""
    return np.tensordot(weights, np.log(np.clip(ratios, 0.01, 100.0)), axes=1)


def check_candidates(estimator: Any) -> dict[str, Any]:
    """Return the candidates by name: a name's value is itself, that of a classifier the classifier.

    Parameters
    ----------
    estimator
        ``'auto'``, a name, a classifier, or a sequence of names and classifiers.
    """
    if isinstance(estimator, str) and estimator == "auto":
        estimator = AUTO
    wanted = list(estimator) if isinstance(estimator, (list, tuple)) else [estimator]
    if not wanted:
        raise ValueError("estimator must not be empty")
    names = []
    for item in wanted:
        if isinstance(item, str) and item in CANDIDATES:
            names.append(item)
        elif isinstance(item, (str, type)) or not hasattr(item, "fit"):
            known = ", ".join(map(repr, ("auto", *CANDIDATES)))
            raise ValueError(f"estimator must be one of {known} or a classifier, got {shown(item)}")
        elif not hasattr(item, "predict_proba"):
            raise ValueError(
                f"estimator must have predict_proba, {type(item).__name__} has none: "
                "CalibratedClassifierCV gives it one"
            )
        else:
            same = sum(type(other) is type(item) for other in wanted[: len(names)])
            names.append(type(item).__name__ + (f"-{same + 1}" if same else ""))
    distinct("estimator", names)
    return dict(zip(names, wanted))


def takes(item: Any) -> tuple[bool, bool]:
    """Return whether a candidate takes sparse rows, and missing values, as far as it says."""
    if isinstance(item, str):
        return item == "linear", False
    try:
        from sklearn.utils import get_tags
    except ImportError:  # scikit-learn before 1.6
        from sklearn.utils._tags import _safe_tags

        return True, bool(_safe_tags(item, "allow_nan"))
    tags = get_tags(item).input_tags
    return tags.sparse, tags.allow_nan


def lets_gaps_in(item: Any) -> bool:
    """Return whether a candidate may take missing values; the first step of a pipeline decides."""
    return takes(item[0] if isinstance(item, Pipeline) else item)[1]


def for_sparse(candidates: Mapping[str, Any], estimator: Any) -> dict[str, Any]:
    """Return the candidates that can serve sparse rows; 'auto' is the linear one."""
    if isinstance(estimator, str) and estimator == "auto":
        candidates = {"linear": "linear"}
    for name, item in candidates.items():
        if isinstance(item, str) and item != "linear":
            raise ValueError(
                f"X is sparse, which estimator={name!r} does not take: use 'linear', or a "
                "classifier that does"
            )
    linear = make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=1000))
    return {name: linear if item == "linear" else item for name, item in candidates.items()}


@dataclass(frozen=True)
class _Fitter:
    """How the candidates are fitted: what they share."""

    device: Any
    n_folds: int
    seed: Seed

    def __call__(
        self, item: Any, X_p: Any, X_u: Any, fit_params: Mapping[str, Any], like: Any = None
    ) -> Any:
        """Fit a candidate; ``like`` tells the hyper-parameters of kernels, if they are known."""
        if not isinstance(item, str):
            return _fit_classifier(clone(item), X_p, X_u, fit_params)
        if item == "boosting":
            return _fit_classifier(_boosting(self._number()), X_p, X_u, {})
        if item in KERNELS:
            return self._kernel_ratio(item, X_p, X_u, like)
        if item in NYSTROEM_WIDTHS:
            X_p, X_u = _at_most(MAX_KERNEL_ROWS, X_p, X_u, child(self.seed, 1))[:2]
        X, is_p = _joined(X_p, X_u)
        mean, scale = _scaling(X_p, X_u)
        X = (X - mean) / scale
        width, features, nystroem = np.nan, X, None
        if item in NYSTROEM_WIDTHS:
            width = NYSTROEM_WIDTHS[item] * median_distance(X, max_rows=4000)
            nystroem = Nystroem(
                gamma=0.5 / width**2,
                n_components=default_centers(len(X)),
                random_state=self._number(),
            )
            features = nystroem.fit_transform(X)
        logistic = LogisticRegression(max_iter=1000).fit(features, is_p)
        coefficients, offset = logistic.coef_[0].astype(np.float64), float(logistic.intercept_[0])
        centers = None
        if nystroem is None:
            coefficients = np.append(coefficients, 0.0)
        else:
            # Nyström's features are the kernels times a matrix, which belongs to the weights.
            coefficients, centers = nystroem.normalization_.T @ coefficients, nystroem.components_
        expansion = DensityRatio.restore(coefficients, X.shape[1], centers, width)
        offset += float(np.log(len(X_u) / len(X_p)))
        return PlainRatio(expansion, mean, scale, offset, exponential=True)

    def _number(self) -> int:
        return int(child(self.seed, 2).generate_state(1)[0] >> 1)

    def _kernel_ratio(self, item: str, X_p: Any, X_u: Any, like: Any) -> PlainRatio:
        mean, scale = _scaling(X_p, X_u)
        samples = tuple(_standardised(rows, mean, scale) for rows in (X_p, X_u))
        if not in_blocks(X_p, X_u):
            samples = self.device.send(samples)
        sizes = X_p.shape[0], X_u.shape[0]
        options: dict[str, Any] = {"n_centers": default_centers(sum(sizes)), "seed": self.seed}
        options["n_folds"] = min(self.n_folds, *sizes)
        if like is not None:
            options["widths"] = like.expansion.width
        with warnings.catch_warnings(), self.device.use():
            warnings.simplefilter("ignore", GridEdgeWarning)
            if item == "ulsif":
                lams = RATIO_LAMS if like is None else like.expansion.lam
                return PlainRatio(ULSIF(*samples, lams=lams, **options), mean, scale)
            options["n_centers"] = min(options["n_centers"], sizes[0])
            return PlainRatio(KLIEP(*samples, **options), mean, scale)


def _boosting(random_state: int) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        learning_rate=0.05,
        max_iter=150,
        max_leaf_nodes=8,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=random_state,
    )


def _fit_classifier(
    classifier: Any, X_p: Any, X_u: Any, fit_params: Mapping[str, Any]
) -> ClassifierRatio:
    X, is_p = _joined(X_p, X_u)
    joined = {name: np.concatenate(parts) for name, parts in fit_params.items()}
    classifier.fit(X, is_p, **joined)
    totals: Any = (X_p.shape[0], X_u.shape[0])
    for name, (weights_p, weights_u) in fit_params.items():
        if name.rpartition("__")[2] == "sample_weight":
            totals = weights_p.sum(), weights_u.sum()
    return ClassifierRatio(classifier, *totals)


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
    The monotone function of these with the least J calibrates it. The weights of the average
    have the least J of calibrated held-out values, cut to the range of Proposition 9.

    Of rows that come in blocks, uLSIF and classifiers with ``partial_fit`` are fitted to all; the
    others, and all held-out values, are of a random sample of 50,000 rows.

    Parameters
    ----------
    X_p, X_u
        (n, d) rows of P and of U; also :class:`pu_shift.RowBlocks`.
    candidates
        What :func:`check_candidates` returns.
    prior
        π, for the range (0, 1/π).
    n_folds
        Number of folds.
    fit_params
        Parameters of the classifiers' ``fit``, each a pair of arrays for the rows of P and U.
    device
        Where kernels are evaluated.
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
    >>> both = check_candidates(["linear", "nystroem"])
    >>> ratio, scores, *_ = fit_average(X_p, X_u, both, prior=0.4)
    >>> bool(ratio(np.array([[1.0]]))[0] > 1.0 > ratio(np.array([[-2.0]]))[0]), sorted(scores)
    (True, ['linear', 'nystroem'])
    """
    device = Device() if device is None else device
    fit_params = {} if fit_params is None else fit_params
    fitter, n_folds = _Fitter(device, n_folds, seed), min(n_folds, X_p.shape[0], X_u.shape[0])
    run = Parallel(n_jobs=n_jobs)
    cells = X_p.shape[1] * (X_p.shape[0] + X_u.shape[0])
    # On one thread of BLAS: more would change the rounding with the number of jobs.
    alone = partial(_alone, "blas" if cells > MAX_CELLS_ALONE else None)
    streamed = in_blocks(X_p, X_u)
    samples, places = [X_p, X_u], None
    if streamed:
        *samples, places = _at_most(MAX_KERNEL_ROWS, X_p, X_u, child(seed, 5))
    *rows, kept = _at_most(MAX_SCORED_ROWS, samples[0], samples[1], child(seed, 3))
    params = {
        name: tuple(part[chosen] for part, chosen in zip(parts, kept))
        for name, parts in fit_params.items()
    }
    folds = [
        assign_folds(name, X.shape[0], n_folds, child(seed, 4, part))
        for part, (name, X) in enumerate(zip(("P", "U"), rows))
    ]
    ratios: dict[str, Any] = {}
    held_out: dict[str, Any] = {}
    of_folds: dict[str, Any] = {}
    if places is not None:
        scored = _Scored(rows, [part[chosen] for part, chosen in zip(places, kept)], folds)
        for name, item in candidates.items():
            if not isinstance(item, str):
                found = _fit_stream(item, X_p, X_u, samples, scored, n_folds, child(seed, 6))
                ratios[name], of_folds[name], held_out[name] = found
            elif item == "ulsif":
                ratios[name] = fitter(item, X_p, X_u, {})
    rest = {name: item for name, item in candidates.items() if name not in ratios}
    fits = run(delayed(alone)(fitter, item, *samples, fit_params) for item in rest.values())
    ratios.update(zip(rest, fits))
    rest = {name: item for name, item in candidates.items() if name not in held_out}
    parts_of = run(
        delayed(alone)(_held_out, fitter, item, rows, folds, fold, params, ratios[name])
        for name, item in rest.items()
        for fold in range(n_folds)
    )
    for k, name in enumerate(rest):
        of_folds[name], values = zip(*parts_of[k * n_folds : (k + 1) * n_folds])
        held_out[name] = _by_fold(values, folds)
    low, high = ratio_bounds(prior)
    calibrations, cut, values_of = [], [], []
    for name in candidates:
        values = held_out[name]
        calibrations.append(Calibration.fit(*values))
        values_of.append([calibrations[-1](value) for value in values])
        cut.append([np.clip(value, low, high) for value in values_of[-1]])
    weights = stack_weights(*(np.stack(parts) for parts in zip(*cut)))
    in_order = tuple(ratios[name] for name in candidates)
    average = RatioAverage(tuple(candidates), in_order, tuple(calibrations), weights)
    scores = {
        name: {"score": least_squares_score(*parts), "weight": float(weight)}
        for name, parts, weight in zip(candidates, cut, weights)
    }
    held_out_average = tuple(weights @ np.stack(parts) for parts in zip(*values_of))
    raw = zip(*(held_out[name] for name in candidates))
    cross_fit = CrossFit(
        tuple(tuple(of_folds[name]) for name in candidates),
        weights,
        tuple(mean_log(weights, np.stack(parts)) for parts in raw),
    )
    return average, scores, held_out_average, cross_fit


def _alone(library: str | None, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call with a library, or all of them, on one thread."""
    with threadpool_limits(1, library):
        return function(*arguments)


def _held_out(
    fitter: _Fitter,
    item: Any,
    rows: Sequence[Any],
    folds: Sequence[np.ndarray],
    fold: int,
    fit_params: Mapping[str, Any],
    like: Any,
) -> tuple[Any, list[np.ndarray]]:
    """Fit a candidate without a fold, and return it with its values there, of P and of U."""
    kept = [of_fold != fold for of_fold in folds]
    params = {
        name: tuple(part[keep] for part, keep in zip(parts, kept))
        for name, parts in fit_params.items()
    }
    X_p, X_u = (X[keep] for X, keep in zip(rows, kept))
    ratio = fitter(item, X_p, X_u, params, like)
    return ratio, [np.asarray(ratio(X[~keep]), dtype=np.float64) for X, keep in zip(rows, kept)]


def _by_fold(
    parts_of: Sequence[Sequence[np.ndarray]], folds: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Put the values of each fold where its rows are, of P and of U."""
    values = [np.empty(len(of_rows)) for of_rows in folds]
    for fold, parts in enumerate(parts_of):
        for value, part, of_rows in zip(values, parts, folds):
            value[of_rows == fold] = part
    return values


class _Scored(NamedTuple):
    """Rows of P and of U that are scored, their numbers among all rows, and their folds."""

    rows: Sequence[np.ndarray]
    places: Sequence[np.ndarray]
    folds: Sequence[np.ndarray]

    def folds_of(self, part: int, start: int, stop: int) -> np.ndarray:
        """Return the folds of consecutive rows of P or U; −1 for those that are not scored."""
        found = np.full(stop - start, -1)
        first, last = np.searchsorted(self.places[part], (start, stop))
        found[self.places[part][first:last] - start] = self.folds[part][first:last]
        return found


def check_streams(candidates: Mapping[str, Any]) -> None:
    """Refuse a classifier that cannot be trained block by block."""
    for name, item in candidates.items():
        if not isinstance(item, str) and not hasattr(last_step(item), "partial_fit"):
            raise ValueError(
                f"estimator {name!r} has no partial_fit and so needs all rows in memory, but X_p "
                "or X_u comes in blocks: use 'auto', 'ulsif', or a classifier that has it, such as "
                "SGDClassifier(loss='log_loss'), also at the end of a pipeline"
            )


def _fit_stream(
    item: Any,
    X_p: Any,
    X_u: Any,
    samples: Sequence[np.ndarray],
    scored: _Scored,
    n_folds: int,
    seed: Seed,
) -> tuple[ClassifierRatio, list[ClassifierRatio], list[np.ndarray]]:
    """Train by partial_fit on as many rows of P as of U at a time, also without each fold.

    Steps of a pipeline before the last are fitted to the samples. Returned are the ratio, those
    without a fold, and their values at the scored rows of it.
    """
    before, last = split_steps(item)
    if before is not None:
        before = clone(before).fit(_joined(*samples)[0])
    models = [clone(last) for _ in range(n_folds + 1)]
    rng = np.random.default_rng(seed)
    for (rows_p, folds_p), (rows_u, folds_u) in _paired(X_p, X_u, scored):
        X, is_p = _joined(rows_p, rows_u)
        X, folds = X if before is None else before.transform(X), np.append(folds_p, folds_u)
        order = rng.permutation(len(is_p))
        for fold, model in enumerate(models):
            kept = order[folds[order] != fold]
            model.partial_fit(X[kept], is_p[kept], classes=[0, 1])
    ratios = []
    for model in models:
        steps = [*(() if before is None else before.steps), ("classify", model)]
        ratios.append(ClassifierRatio(Pipeline(steps), 1.0, 1.0))
    parts_of = [
        [ratio(X[of_rows == fold]) for X, of_rows in zip(scored.rows, scored.folds)]
        for fold, ratio in enumerate(ratios[:-1])
    ]
    return ratios[-1], ratios[:-1], _by_fold(parts_of, scored.folds)


def _paired(X_p: Any, X_u: Any, scored: _Scored) -> Iterator[Any]:
    """Yield batches of P and of U with their folds; the smaller sample is repeated."""
    sizes = X_p.shape[0], X_u.shape[0]
    passes = max(1, min(MAX_PASSES, MAX_PASSES * MAX_SCORED_ROWS // max(sizes)))
    streams = []
    for part, X in enumerate((X_p, X_u)):
        times = range(passes) if sizes[part] == max(sizes) else count()
        streams.append(_batches(X, partial(scored.folds_of, part), times))
    yield from zip(*streams)


def _batches(
    X: Any, folds_of: Callable[[int, int], np.ndarray], times: Iterable[int]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Cut rows into batches of one size, whatever blocks they come in, again and again."""
    rows, folds = [], []
    for _ in times:
        start = 0
        for block in X if isinstance(X, RowBlocks) else [X]:
            for piece in row_blocks(block, BATCH_ROWS):
                rows.append(piece)
                folds.append(folds_of(start, start + len(piece)))
                start += len(piece)
                if sum(map(len, rows)) >= BATCH_ROWS:
                    joined, of_joined = np.concatenate(rows), np.concatenate(folds)
                    yield joined[:BATCH_ROWS], of_joined[:BATCH_ROWS]
                    rows, folds = [joined[BATCH_ROWS:]], [of_joined[BATCH_ROWS:]]
    if sum(map(len, rows)):
        yield np.concatenate(rows), np.concatenate(folds)


def _joined(X_p: Any, X_u: Any) -> tuple[Any, np.ndarray]:
    """Put P above U, and mark P by 1."""
    X = sparse_vstack([X_p, X_u], format="csr") if issparse(X_p) else np.concatenate([X_p, X_u])
    return X, np.repeat([1, 0], [X_p.shape[0], X_u.shape[0]])


def _scaling(X_p: Any, X_u: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each feature; 1 for one that is constant."""
    seen = survey_of(X_p).merged(survey_of(X_u))
    return seen.mean.astype(X_p.dtype), seen.scale.astype(X_p.dtype)


def _standardised(X: Any, mean: np.ndarray, scale: np.ndarray) -> Any:
    return X.scaled(mean, scale) if isinstance(X, RowBlocks) else (X - mean) / scale


def _at_most(limit: int, X_p: Any, X_u: Any, seed: Seed) -> Any:
    """Return at most so many rows, half of them of P if there are as many, and which they are."""
    sizes = X_p.shape[0], X_u.shape[0]
    rng, kept = np.random.default_rng(seed), []
    for n, other in (sizes, sizes[::-1]):
        most = min(n, max(limit // 2, limit - other))
        kept.append(np.sort(rng.choice(n, most, replace=False)) if most < n else np.arange(n))
    rows = (
        X.take(chosen) if isinstance(X, RowBlocks) else X[chosen]
        for X, chosen in zip((X_p, X_u), kept)
    )
    return (*rows, kept)
