r"""Estimate the class prior π from positive and unlabelled rows.

Rows are reduced to one number each, a cross-fitted score that is high where
positives are likely. Of the rows that score
at least c let q_p(c), q_n(c) and q_u(c) be the shares among positives,
negatives and unlabelled rows. Then, with no assumption,

.. math:: q_\mathrm{u}(c) = \pi\,q_\mathrm{p}(c) + (1-\pi)\,q_\mathrm{n}(c)
          \ge \pi\,q_\mathrm{p}(c),

so that data can only bound π from above: by q_u/q_p at its smallest. That
bound is π itself when no part of the negatives looks like the best positives
(irreducibility), which no data can show.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import beta, rankdata
from sklearn.ensemble import ExtraTreesClassifier

from pu_shift._checks import is_dask, one_of, open_unit, positive_int
from pu_shift._grids import assign_folds
from pu_shift._seeds import Seed, child, renamed_seed
from pu_shift._sklearn import fit_scaler
from pu_shift.bigdata import in_memory
from pu_shift.ratios.base import GridEdgeWarning
from pu_shift.ratios.kernels import as_rows, at_most
from pu_shift.ratios.ulsif import ULSIF

N_FOLDS = 5
N_TREES = 150
# Of BBE: the confidence of its bound, and the authors' factor on it (Garg et al., 2021).
BBE_DELTA, BBE_GAMMA = 0.1, 0.01
# Of the ROC posterior: candidates of π, of the distance a of the classes, and of the ratio b of
# their spreads with its prior weights; the number of bins; and the weight of the likelihood,
# calibrated on synthetic samples: the table is in docs/class_prior.md.
PRIORS = np.linspace(0.005, 0.995, 199)
DISTANCES = np.linspace(0.1, 5.0, 50)
SPREADS = {0.6: 0.1, 0.8: 0.2, 1.0: 0.4, 1.25: 0.2, 1.6: 0.1}
N_BINS = 25
EVIDENCE = 1.5
# Quantiles of P's scores where a given prior is checked.
GIVEN_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.85)


# What is said of an interval that is wider than its estimate.
ROUGH = (
    "the interval is wide compared with the estimate, as it is where positives are rare: decide "
    "with both of its ends before you rely on the estimate"
)


class PriorWarning(UserWarning):
    """The rows say little about π, or say that something is wrong with them."""


@dataclass(frozen=True)
class PriorEstimate:
    """An estimated class prior.

    Attributes
    ----------
    prior : float
        The estimate of π.
    low, high : float
        Interval of the level, under the assumption of irreducibility.
    bound : float
        Upper bound of π at the same level, one-sided, under no assumption. From below no data
        bound π without one.
    level : float
        The level of both.
    method : str
        What was used.
    parts : dict
        The estimates of all methods.
    """

    prior: float
    low: float
    high: float
    bound: float
    level: float
    method: str
    parts: dict[str, float]

    @property
    def is_rough(self) -> bool:
        """Whether the interval is wider than the estimate: it says little more than its ends."""
        return self.high - self.low > self.prior

    def __str__(self) -> str:
        level = f"{100 * self.level:.3g}%"
        text = (
            f"prior {self.prior:.3f}, {level} interval {self.low:.3f} to {self.high:.3f} "
            f"({self.method}); {level} upper bound under no assumption {self.bound:.3f}"
        )
        return f"{text}\n{ROUGH}" if self.is_rough else text


@renamed_seed
def estimate_prior(
    X_p: Any,
    X_u: Any,
    method: str = "auto",
    level: float = 0.95,
    max_rows: int = 4000,
    random_state: Seed = 0,
) -> PriorEstimate:
    r"""Estimate π, the share of positives among the unlabelled rows.

    ``'bbe'`` is the best-bin estimator: :math:`q_\mathrm{u}(c)/q_\mathrm{p}(c)` at the c where an
    upper confidence bound of it is smallest (Garg et al., 2021). It errs upwards where classes
    overlap, because it stops before the ratio has fallen to π.

    ``'roc'`` extrapolates instead: the ROC curve of the two classes is taken as binormal,

    .. math:: q_\mathrm{n} = \Phi\bigl(b\,\Phi^{-1}(q_\mathrm{p}) - a\bigr),

    and the estimate is the posterior mean of π, for flat priors of π and a and one of b that
    peaks at 1, on a grid, given a
    histogram of the unlabelled rows over the quantiles of the positives. As those quantiles are
    noisy, too, and no ROC curve is quite binormal, the likelihood does not count
    :math:`n_\mathrm{u}` rows but :math:`1.5/(1/n_\mathrm{p} + 1/n_\mathrm{u})`, with which the
    intervals of synthetic samples hold the truth about as often as they say.

    ``'auto'`` is the mean of both, which err in different directions: see
    ``docs/class_prior.md`` for the evidence.

    Parameters
    ----------
    X_p, X_u
        Positive and unlabelled rows, also Dask collections.
        Features are scaled to unit variance within.
    method
        ``'auto'``, ``'bbe'`` or ``'roc'``.
    level
        The level of the interval, which is that of the posterior of ``'roc'`` widened to hold
        the estimate, and of the bound.
    max_rows
        The largest number of rows used of P and of U each.
    random_state
        Seed of everything random.

    Returns
    -------
    PriorEstimate
        Estimate, interval and bound. A :class:`PriorWarning` says when P and U cannot be told
        apart, or when they have nothing in common.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_p = rng.normal(2.0, 1.0, (300, 1))
    >>> X_u = np.concatenate([rng.normal(2.0, 1.0, (240, 1)), rng.normal(-2.0, 1.0, (560, 1))])
    >>> estimate = estimate_prior(X_p, X_u)
    >>> round(estimate.prior, 1), estimate.low < 0.3 < estimate.high
    (0.3, True)
    """
    one_of("method", method, ("auto", *PRIOR_ESTIMATORS))
    level = open_unit("level", level)
    limit = positive_int("max_rows", max_rows, least=40)
    if is_dask(X_p) or is_dask(X_u):
        X_p, X_u = map(np.asarray, in_memory({"X_p": X_p, "X_u": X_u}, child(random_state, 3)))
    X_p = as_rows("X_p", X_p, least=3)
    X_u = as_rows("X_u", X_u, least=3, columns=X_p.shape[1])
    X_p, X_u = (
        at_most(X, limit, child(random_state, 0, part)).astype(np.float64)
        for part, X in enumerate((X_p, X_u))
    )
    X_p, X_u = _scaled(X_p, X_u)
    scores_p, scores_u = cross_fitted_scores(X_p, X_u, child(random_state, 1))
    posterior = roc_posterior(scores_p, scores_u)
    parts = {
        name: estimate(scores_p, scores_u, posterior) for name, estimate in PRIOR_ESTIMATORS.items()
    }
    parts = {"auto": 0.5 * (parts["bbe"] + parts["roc"]), **parts}
    _warn(scores_p, scores_u, parts["bbe"])
    prior = float(np.clip(parts[method], PRIORS[0], PRIORS[-1]))
    tail = 0.5 * (1.0 - level)
    low, high = (float(value) for value in _quantiles(posterior, [tail, 1.0 - tail]))
    bound = prior_bound(X_p, X_u, level, child(random_state, 2))
    return PriorEstimate(prior, min(low, prior), max(high, prior), bound, level, method, parts)


def cross_fitted_scores(
    X_p: np.ndarray, X_u: np.ndarray, seed: Seed
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of rows that were not fitted to, from a kernel and a forest: mean ranks."""
    _, forest = _forest(X_p, X_u, child(seed, 1))
    # Ranks, because folds may differ in scale but hardly in order; equal scores share
    # theirs, or the order of the rows would separate P from U.
    ranks = rankdata(forest)
    # Where half of all pairs of rows coincide a kernel has no width; the forest needs none.
    _, copies = np.unique(np.concatenate([X_p, X_u]), axis=0, return_counts=True)
    if np.sum(copies**2) < 0.4 * np.sum(copies) ** 2:
        ranks += rankdata(np.concatenate(_kernel_scores(X_p, X_u, child(seed, 0))))
    return ranks[: len(X_p)], ranks[len(X_p) :]


def best_bin_prior(scores_p: np.ndarray, scores_u: np.ndarray) -> float:
    """q_u/q_p at the threshold where its upper confidence bound is smallest."""
    thresholds = np.unique(scores_p)
    q_p, q_u = (share_from(scores, thresholds) for scores in (scores_p, scores_u))
    log = np.log(4.0 / BBE_DELTA)
    noise = sum(np.sqrt(log / (2.0 * len(scores))) for scores in (scores_p, scores_u))
    ratio = q_u / q_p
    return float(min(1.0, ratio[np.argmin(ratio + (1.0 + BBE_GAMMA) * noise / q_p)]))


def roc_posterior(
    scores_p: np.ndarray, scores_u: np.ndarray, evidence: float = EVIDENCE
) -> np.ndarray:
    """Posterior weights of ``PRIORS``, with a binormal ROC curve."""
    ordered = np.sort(scores_p)
    above = len(ordered) - 0.5 * (
        np.searchsorted(ordered, scores_u, "left") + np.searchsorted(ordered, scores_u, "right")
    )
    edges = np.linspace(0.0, 1.0, N_BINS + 1)
    counts = np.histogram(above / len(ordered), edges)[0]
    counts = counts / len(scores_u) * evidence / (1.0 / len(scores_p) + 1.0 / len(scores_u))
    quantiles = ndtri(edges)
    negative = np.array([np.diff(ndtr(b * quantiles - a)) for b in SPREADS for a in DISTANCES])
    log_likelihood = np.empty((len(PRIORS), len(negative)))
    for row, prior in enumerate(PRIORS):
        log_likelihood[row] = np.log(prior / N_BINS + (1.0 - prior) * negative) @ counts
    weights = np.exp(log_likelihood - log_likelihood.max()) @ np.repeat(
        list(SPREADS.values()), len(DISTANCES)
    )
    return weights / weights.sum()


# Each is a function of the held-out scores of P and U, and of the weights of `roc_posterior`. A
# new estimator is a function and a line here.
PRIOR_ESTIMATORS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], float]] = {
    "bbe": lambda scores_p, scores_u, posterior: best_bin_prior(scores_p, scores_u),
    "roc": lambda scores_p, scores_u, posterior: float(posterior @ PRIORS),
}
PRIOR_METHODS = ("auto", *PRIOR_ESTIMATORS)


def prior_bound(X_p: np.ndarray, X_u: np.ndarray, level: float, seed: Seed) -> float:
    r"""Upper bound of π that holds with probability ``level``, whatever the distributions.

    Half of the rows choose a score and a threshold c, which the other half does not know. Of
    that one the counts above c are binomial with q_p(c) and q_u(c), exact (Clopper-Pearson)
    bounds of which hold together with probability ``level``; and π ≤ q_u(c)/q_p(c) always.
    """
    halves_p, halves_u = (
        assign_folds(name, len(X), 2, child(seed, part))
        for part, (name, X) in enumerate((("X_p", X_p), ("X_u", X_u)))
    )
    fit_p, fit_u = X_p[halves_p == 0], X_u[halves_u == 0]
    forest, fitted = _forest(fit_p, fit_u, child(seed, 2))
    fitted_p, fitted_u = np.split(fitted, [len(fit_p)])
    thresholds = np.unique(fitted_p)
    chosen = thresholds[[np.argmin(_ratio_bound(fitted_p, fitted_u, thresholds, level))]]
    scores_p, scores_u = (
        forest.predict_proba(X)[:, 1] for X in (X_p[halves_p == 1], X_u[halves_u == 1])
    )
    return float(_ratio_bound(scores_p, scores_u, chosen, level)[0])


def _ratio_bound(
    scores_p: np.ndarray, scores_u: np.ndarray, thresholds: np.ndarray, level: float
) -> np.ndarray:
    """Upper bound of q_u/q_p at each threshold, at most 1."""
    tail, n_p, n_u = 0.5 * (1.0 - level), len(scores_p), len(scores_u)
    above_p = n_p * share_from(scores_p, thresholds)
    above_u = n_u * share_from(scores_u, thresholds)
    # Beta quantiles are NaN where no row, or every row, lies above: 0 and 1 there.
    low_p = np.nan_to_num(beta.ppf(tail, above_p, n_p - above_p + 1.0), nan=0.0)
    high_u = np.nan_to_num(beta.ppf(1.0 - tail, above_u + 1.0, n_u - above_u), nan=1.0)
    return high_u / np.maximum(low_p, high_u)


def _forest(
    X_p: np.ndarray, X_u: np.ndarray, seed: np.random.SeedSequence
) -> tuple[Any, np.ndarray]:
    """Fit a forest that separates P from U; return it and its out-of-bag scores of both."""
    X, y = np.concatenate([X_p, X_u]), np.repeat([1, 0], [len(X_p), len(X_u)])
    forest = ExtraTreesClassifier(
        N_TREES,
        min_samples_leaf=8,
        bootstrap=True,
        oob_score=True,
        random_state=int(seed.generate_state(1)[0]),
    ).fit(X, y)
    return forest, forest.oob_decision_function_[:, 1]


def _kernel_scores(X_p: np.ndarray, X_u: np.ndarray, seed: Seed) -> tuple[np.ndarray, np.ndarray]:
    """Density ratios p_p/p_u, each fitted without the row's own fold."""
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
                random_state=child(seed, 2),
            )
        scores_p[folds_p == fold] = ratio(X_p[folds_p == fold])
        scores_u[folds_u == fold] = ratio(X_u[folds_u == fold])
    return scores_p, scores_u


def _warn(scores_p: np.ndarray, scores_u: np.ndarray, best_bin: float) -> None:
    n_p, n_u = len(scores_p), len(scores_u)
    ranks = rankdata(np.concatenate([scores_p, scores_u]))[:n_p]
    area = (ranks.mean() - 0.5 * (n_p + 1)) / n_u
    # Two standard deviations of the area when both samples have one distribution.
    if area < 0.5 + 2.0 * np.sqrt((n_p + n_u + 1.0) / (12.0 * n_p * n_u)):
        message = (
            "X_u cannot be told from X_p: either nearly all unlabelled rows are positive, or "
            "the features do not tell the classes apart"
        )
    elif best_bin < 0.01:
        message = (
            "X_u holds hardly any row like those of X_p: either positives are rarer than 1 in "
            "100, or the two samples come from different sources"
        )
    else:
        return
    warnings.warn(f"{message}; the estimated prior means little", PriorWarning, stacklevel=3)


def warn_of_prior(prior: float, scores_p: np.ndarray, scores_u: np.ndarray) -> None:
    """Warn of a given π that held-out scores of P and U rule out: π ≤ q_u(c)/q_p(c) for all c.

    The bounds at all thresholds hold together in at least 99 of 100 cases.
    """
    thresholds = np.unique(np.quantile(scores_p, GIVEN_QUANTILES))
    level = 1.0 - 0.01 / len(thresholds)
    bound = float(_ratio_bound(scores_p, scores_u, thresholds, level).min())
    if prior > bound:
        warnings.warn(
            f"prior {prior:.3g} is more than P and U allow, which is at most {bound:.2g}: either "
            "it is too high, or P has cases that U lacks, or P and U are swapped",
            PriorWarning,
            stacklevel=6,
        )


def share_from(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Share of the scores that are at least each threshold."""
    return 1.0 - np.searchsorted(np.sort(scores), thresholds, "left") / len(scores)


def _quantiles(weights: np.ndarray, shares: list[float]) -> np.ndarray:
    """Quantiles of π, whose weights are spread evenly around the candidates."""
    half = 0.5 * (PRIORS[1] - PRIORS[0])
    return np.interp(shares, np.cumsum(weights), PRIORS + half)


def _scaled(X_p: np.ndarray, X_u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaler = fit_scaler(X_p, X_u)
    return scaler.transform(X_p), scaler.transform(X_u)
