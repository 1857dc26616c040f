r"""Is the shift one of priors alone? Tests of new rows, and of P, against the training samples.

Everything in this package rests on one assumption: new rows are a mixture
π′ p_p + (1 − π′) p_n of the two class densities that the unlabelled rows are a mixture of.
The ratio p_p/p_u, which is all that a decision looks at, is then distributed in new rows as

.. math:: F_\mathrm{new}(r) = F_\mathrm{u}(r) + \theta\,(F_\mathrm{p}(r) - F_\mathrm{u}(r)),
   \qquad \theta = \frac{\pi' - \pi}{1 - \pi},

for some θ. If no θ fits, the classes themselves have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.validation import check_is_fitted

from pu_shift._checks import open_unit, positive_int, shown
from pu_shift._seeds import Seed, child, renamed_seed
from pu_shift._sklearn import split_steps
from pu_shift.estimators.base import validated
from pu_shift.estimators.density_ratio import DensityRatioClassifier
from pu_shift.ratios.kernels import as_rows

N_BINS, N_THETAS, N_STEPS = 100, 101, 200
# Rows of each sample that the classifier of old against new rows is made of.
MAX_ROWS = 5000


@dataclass(frozen=True)
class ShiftCheck:
    """What :func:`check_shift` found.

    Attributes
    ----------
    p_value : float
        How often a shift of priors alone would look like this, or worse.
    test_prior : float
        π′ of the mixture that fits the new rows best.
    distance : float
        Largest distance between the distribution of the ratio in that mixture and in the new
        rows.
    level : float
        The share of false alarms that is accepted.
    """

    p_value: float
    test_prior: float
    distance: float
    level: float

    @property
    def passed(self) -> bool:
        """Whether the new rows agree with a shift of priors alone."""
        return self.p_value >= self.level

    def __str__(self) -> str:
        what = "agree" if self.passed else "do not agree"
        return (
            f"the new rows {what} with a shift of priors alone (p = {self.p_value:.3g}); "
            f"the test prior that fits best is {self.test_prior:.3f}"
        )


@renamed_seed
def check_shift(
    classifier: Any,
    X_new: Any,
    X_p: Any = None,
    X_u: Any = None,
    *,
    level: float = 0.05,
    n_bootstrap: int = 500,
    random_state: Seed = 0,
) -> ShiftCheck:
    r"""Test whether new rows are a mixture of the two classes: a shift of priors alone.

    Scores by ratios that have seen neither kind of rows compare the new rows with those of P
    and U. The mixture whose scores are distributed most like those of the new rows is found,

    .. math:: D = \min_\theta \sup_r \left|F_\mathrm{new}(r) - (1 - \theta)F_\mathrm{u}(r)
              - \theta F_\mathrm{p}(r)\right|,

    and a bootstrap from that mixture gives the distribution of D. Scores see only differences
    that change decisions. With ``X_p`` and ``X_u``, trees fitted to half of the rows also try to
    tell the new rows from the mixture in the other half, by all features; the two p-values are
    combined by Bonferroni's rule.

    Parameters
    ----------
    classifier
        A fitted :class:`pu_shift.DensityRatioClassifier`, or a pipeline that ends with one: its
        other steps transform the rows first.
    X_new
        (n, d) rows to classify; at least 20.
    X_p, X_u
        The rows it was fitted to. They may be left out when the classifier keeps its candidates
        without a fold (``cross_fit_``), as it does unless ``estimator`` is ``'ulsif'`` or
        ``'kliep'`` or it was loaded from a file; then half of these rows fit another one.
    level
        The share of false alarms to accept.
    n_bootstrap
        Number of bootstrap samples.
    random_state
        Seed of everything random.

    Returns
    -------
    ShiftCheck
        The p-value, and the test prior that fits best; printed, it is a sentence.

    Examples
    --------
    >>> from pu_shift import DensityRatioClassifier
    >>> rng = np.random.default_rng(0)
    >>> X_p = rng.normal(1.0, 1.0, (300, 1))
    >>> X_u = np.concatenate([rng.normal(1.0, 1.0, (300, 1)), rng.normal(-1.0, 1.0, (700, 1))])
    >>> classifier = DensityRatioClassifier(0.3, estimator="linear").fit_pu(X_p, X_u)
    >>> july = np.concatenate([rng.normal(1.0, 1.0, (400, 1)), rng.normal(-1.0, 1.0, (100, 1))])
    >>> check_shift(classifier, july).passed, check_shift(classifier, july + 1.0).passed
    (True, False)
    """
    classifier, X_new, X_p, X_u = _transformed(classifier, X_new, X_p, X_u)
    level = open_unit("level", level)
    n_bootstrap = positive_int("n_bootstrap", n_bootstrap, least=20)
    prior = _prior_of(classifier)
    if (X_p is None) != (X_u is None):
        raise ValueError("X_p and X_u must be given together")
    check_is_fitted(classifier, "ratio_")
    X_new = validated(classifier, X_new, name="X_new", reset=False)
    if X_new.shape[0] < 20:
        raise ValueError(f"X_new must have at least 20 rows, got {X_new.shape[0]}")
    *reference, score = _scores(classifier, X_p, X_u, child(random_state, 2))
    new = score(X_new)
    counts = _counts(*reference, new.ravel())
    # Every row counts once, also when each fold has a score for it.
    counts[-1] = counts[-1] * (new.shape[-1] / new.size)
    rng = np.random.default_rng(child(random_state, 0))
    thetas = np.linspace(-prior / (1.0 - prior), 1.0, N_THETAS)
    theta, distance = (float(part[0]) for part in _fit([c[None] for c in counts], thetas))
    drawn = [
        rng.multinomial(round(count.sum()), shares, n_bootstrap)
        for count, shares in zip(counts, _mixtures(counts, prior, theta))
    ]
    by_chance = _fit(drawn, thetas)[1]
    p_value = (1.0 + (by_chance >= distance - 1e-12).sum()) / (n_bootstrap + 1.0)
    if X_p is not None:
        p_features = _tell_apart(X_new, X_p, X_u, theta, child(random_state, 1))
        p_value = min(1.0, 2.0 * min(p_value, p_features))
    return ShiftCheck(float(p_value), prior + theta * (1.0 - prior), distance, level)


@renamed_seed
def check_positives(
    classifier: Any,
    X_p: Any = None,
    X_u: Any = None,
    *,
    n_bootstrap: int = 500,
    random_state: Seed = 0,
) -> float:
    r"""Test whether U can hold the positives: π p_p ≤ p_u where the ratio is high.

    .. math:: \max_t\; \pi\,\mathrm{P}_\mathrm{p}(r > t) - \mathrm{P}_\mathrm{u}(r > t) \le 0

    If P looks like the positives in U and π is right, there are at least as many rows of U
    above any t as positives should be.

    Parameters
    ----------
    classifier, X_p, X_u, n_bootstrap, random_state
        As for :func:`check_shift`.

    Returns
    -------
    float
        The p-value: when it is small, P has cases that U lacks, or π is less than the
        classifier believes.

    Examples
    --------
    >>> from pu_shift import DensityRatioClassifier
    >>> rng = np.random.default_rng(0)
    >>> X_p, X_n = rng.normal(2.0, 1.0, (300, 1)), rng.normal(-2.0, 1.0, (700, 1))
    >>> X_u = np.concatenate([rng.normal(2.0, 1.0, (300, 1)), X_n])
    >>> classifier = DensityRatioClassifier(0.3, estimator="linear").fit_pu(X_p, X_u)
    >>> check_positives(classifier) > 0.05, check_positives(classifier.set_params(prior=0.6)) < 0.05
    (True, True)
    """
    classifier, X_p, X_u = _transformed(classifier, X_p, X_u)
    prior = _prior_of(classifier)
    p, u = _counts(*_scores(classifier, X_p, X_u, child(random_state, 2))[:2])
    rng = np.random.default_rng(child(random_state, 0))

    def excess(p: np.ndarray, u: np.ndarray) -> np.ndarray:
        above_p, above_u = (
            part[..., ::-1].cumsum(axis=-1) / part.sum(axis=-1, keepdims=True) for part in (p, u)
        )
        return prior * above_p - above_u

    seen = excess(p, u)
    drawn = (
        rng.multinomial(int(n.sum()), n / n.sum(), positive_int("n_bootstrap", n_bootstrap))
        for n in (p, u)
    )
    by_chance = (excess(*drawn) - seen).max(axis=-1)
    return float((1.0 + (by_chance >= seen.max()).sum()) / (len(by_chance) + 1.0))


def _transformed(estimator: Any, *samples: Any) -> list[Any]:
    """Return the last step of a pipeline, and the rows as the steps before it leave them."""
    before, classifier = split_steps(estimator)
    if before is not None:
        samples = tuple(None if X is None else before.transform(X) for X in samples)
    return [classifier, *samples]


def _prior_of(classifier: Any) -> float:
    if not isinstance(classifier, DensityRatioClassifier):
        raise ValueError(f"classifier must be a DensityRatioClassifier, got {shown(classifier)}")
    return classifier.condition.prior


def _scores(
    classifier: Any, X_p: Any, X_u: Any, seed: Seed
) -> tuple[np.ndarray, np.ndarray, Callable[[Any], np.ndarray]]:
    """Return scores of rows of P and of U by ratios that did not see them, and the score."""
    found = getattr(classifier, "cross_fit_", None)
    if found is not None:
        return (*found.scores, found)
    if X_p is None or X_u is None:
        raise ValueError(
            "X_p and X_u must be given, for the classifier keeps no ratios of its own rows"
        )
    rng = np.random.default_rng(seed)
    halves = [
        np.array_split(rng.permutation(as_rows(name, X)), 2)
        for name, X in (("X_p", X_p), ("X_u", X_u))
    ]
    (fit_p, after_p), (fit_u, after_u) = halves
    other = clone(classifier).set_params(prior=_prior_of(classifier)).fit_pu(fit_p, fit_u)

    def score(X: Any) -> np.ndarray:
        ratio = other.predict_ratio(X)
        return ratio if other.direction == "p/u" else -ratio

    return score(after_p), score(after_u), score


def _counts(*ratios: np.ndarray) -> list[np.ndarray]:
    """Count ratios in bins that hold about equally many of all rows; ties stay together."""
    shares = np.linspace(0.0, 1.0, N_BINS + 1)[1:-1]
    edges = np.unique(np.quantile(np.concatenate(ratios), shares))
    return [
        np.bincount(np.searchsorted(edges, part, side="left"), minlength=len(edges) + 1)
        for part in ratios
    ]


def _fit(counts: Sequence[np.ndarray], thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the best theta and its distance D, for each row of counts of P, U and new rows."""
    below_p, below_u, below = (
        part.cumsum(axis=1) / part.sum(axis=1, keepdims=True) for part in counts
    )
    distances = np.stack(
        [np.abs(below - below_u - theta * (below_p - below_u)).max(axis=1) for theta in thetas]
    )
    best = distances.argmin(axis=0)
    return thetas[best], distances[best, np.arange(len(best))]


def _mixtures(counts: Sequence[np.ndarray], prior: float, theta: float) -> list[np.ndarray]:
    """Return the likeliest shares of the bins in P, U and new rows if these are mixtures (EM).

    (1 - theta) u + theta p of the shares that were seen would be negative in some bins.
    """
    weights = np.clip([1.0, prior, prior + theta * (1.0 - prior)], 0.0, 1.0)[:, None]
    seen = np.array(counts, dtype=np.float64)
    positive = np.where(weights == 1.0, 1.0, 0.5) * np.ones_like(seen)
    for _ in range(N_STEPS):
        p, n = (
            part / np.maximum(part.sum(), 1e-12)
            for part in ((seen * positive).sum(axis=0), (seen * (1.0 - positive)).sum(axis=0))
        )
        mixtures = weights * p + (1.0 - weights) * n
        positive = weights * p / np.maximum(mixtures, 1e-300)
    return [shares / shares.sum() for shares in mixtures]


def _tell_apart(X_new: Any, X_p: Any, X_u: Any, theta: float, seed: Seed) -> float:
    """p-value of trees that separate a sample from a mixture in halves they were not fitted to.

    For theta >= 0 new rows are a mixture of U and P; below, U is one of new rows and P.
    """
    rng = np.random.default_rng(seed)
    X_new, X_p, X_u = (
        X[rng.permutation(len(X))[:MAX_ROWS]]
        for X in (as_rows("X_new", X_new), as_rows("X_p", X_p), as_rows("X_u", X_u))
    )
    one, other, share = (X_new, X_u, theta) if theta >= 0.0 else (X_u, X_new, theta / (theta - 1.0))
    # Without replacement: trees would recognise a row that both halves hold.
    m = int(min(len(other) / max(1.0 - share, 1e-9), len(X_p) / max(share, 1e-9)))
    n_p = round(share * m)
    mixture = rng.permutation(np.concatenate([X_p[:n_p], other[: m - n_p]]))
    if len(mixture) < 20:
        return 1.0
    (mixture, mixture_after), (one, one_after) = (np.array_split(X, 2) for X in (mixture, one))
    trees = HistGradientBoostingClassifier(
        max_iter=50, max_leaf_nodes=8, early_stopping=False, random_state=0
    )
    trees.fit(np.concatenate([mixture, one]), np.repeat([0, 1], [len(mixture), len(one)]))
    scores, others = (trees.predict_proba(X)[:, 1] for X in (one_after, mixture_after))
    return float(mannwhitneyu(scores, others, alternative="greater").pvalue)
