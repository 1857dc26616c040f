r"""Is the shift one of priors alone? Tests of new rows, and of P, against the training samples.

Everything in this package rests on one assumption: new rows are a mixture
π′ p_p + (1 − π′) p_n of the two class densities that the unlabelled rows are a mixture of.
The ratio p_p/p_u, which is all that a decision looks at, is then distributed in new rows as

.. math:: F_\mathrm{new}(r) = F_\mathrm{u}(r) + \theta\,(F_\mathrm{p}(r) - F_\mathrm{u}(r)),
   \qquad \theta = \frac{\pi' - \pi}{1 - \pi},

for some θ. If no θ fits, the classes themselves have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.stats import mannwhitneyu
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from pu_shift._checks import open_unit, positive_int, shown
from pu_shift._seeds import Seed, child
from pu_shift.classifiers import DensityRatioClassifier
from pu_shift.kernels import as_rows

N_BINS, N_THETAS = 100, 101
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


def check_shift(
    classifier: Any,
    X_new: Any,
    X_p: Any = None,
    X_u: Any = None,
    *,
    level: float = 0.05,
    n_bootstrap: int = 500,
    seed: Seed = 0,
) -> ShiftCheck:
    r"""Test whether new rows are a mixture of the two classes: a shift of priors alone.

    The mixture whose ratios are distributed most like those of the new rows is found,

    .. math:: D = \min_\theta \sup_r \left|F_\mathrm{new}(r) - (1 - \theta)F_\mathrm{u}(r)
              - \theta F_\mathrm{p}(r)\right|,

    and a bootstrap from that mixture tells how large D is by chance. Ratios see only what
    matters to decisions; with ``X_p`` and ``X_u`` a classifier also tries to tell the new rows
    from rows drawn of the mixture, by all features (and the two p-values are combined by
    Bonferroni's rule).

    Parameters
    ----------
    classifier
        A fitted :class:`pu_shift.DensityRatioClassifier`.
    X_new
        (n, d) rows to classify; at least 20.
    X_p, X_u
        The rows it was fitted to. They may be left out when the classifier keeps held-out
        ratios, as it does unless ``estimator`` is ``'ulsif'`` or ``'kliep'`` or it was loaded
        from a file.
    level
        The share of false alarms to accept.
    n_bootstrap
        Number of bootstrap samples.
    seed
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
    level = open_unit("level", level)
    n_bootstrap = positive_int("n_bootstrap", n_bootstrap, least=20)
    prior = _prior_of(classifier)
    if (X_p is None) != (X_u is None):
        raise ValueError("X_p and X_u must be given together")
    new = _p_over_u(classifier, "X_new", X_new)
    if len(new) < 20:
        raise ValueError(f"X_new must have at least 20 rows, got {len(new)}")
    counts = _counts(*_reference(classifier, X_p, X_u), new)
    rng = np.random.default_rng(child(seed, 0))
    thetas = np.linspace(-prior / (1.0 - prior), 1.0, N_THETAS)
    theta, distance = (float(part[0]) for part in _fit([c[None] for c in counts], thetas))
    p, u = (count / count.sum() for count in counts[:2])
    # For theta below 0 sampling noise can make the difference of two densities negative.
    mixture = np.maximum((1.0 - theta) * u + theta * p, 0.0)
    drawn = [
        rng.multinomial(int(count.sum()), shares, n_bootstrap)
        for count, shares in zip(counts, (p, u, mixture / mixture.sum()))
    ]
    by_chance = _fit(drawn, thetas)[1]
    p_value = (1.0 + (by_chance >= distance - 1e-12).sum()) / (n_bootstrap + 1.0)
    if X_p is not None:
        p_features = _tell_apart(X_new, X_p, X_u, theta, child(seed, 1))
        p_value = min(1.0, 2.0 * min(p_value, p_features))
    return ShiftCheck(float(p_value), prior + theta * (1.0 - prior), distance, level)


def check_positives(
    classifier: Any,
    X_p: Any = None,
    X_u: Any = None,
    *,
    n_bootstrap: int = 500,
    seed: Seed = 0,
) -> float:
    r"""Test whether U can hold the positives: π p_p ≤ p_u where the ratio is high.

    .. math:: \max_t\; \pi\,\mathrm{P}_\mathrm{p}(r > t) - \mathrm{P}_\mathrm{u}(r > t) \le 0

    If P looks like the positives in U and π is right, there are at least as many rows of U
    above any t as positives should be.

    Parameters
    ----------
    classifier, X_p, X_u, n_bootstrap, seed
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
    prior = _prior_of(classifier)
    p, u = _counts(*_reference(classifier, X_p, X_u))
    rng = np.random.default_rng(child(seed, 0))

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


def _prior_of(classifier: Any) -> float:
    if not isinstance(classifier, DensityRatioClassifier):
        raise ValueError(f"classifier must be a DensityRatioClassifier, got {shown(classifier)}")
    return classifier.condition.prior


def _p_over_u(classifier: Any, name: str, X: Any) -> np.ndarray:
    if not issparse(X):
        as_rows(name, X)  # in one line, unlike scikit-learn's
    ratio = classifier.predict_ratio(X)
    return ratio if classifier.direction == "p/u" else 1.0 / np.maximum(ratio, 1e-12)


def _reference(classifier: Any, X_p: Any, X_u: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return ratios of the training rows P and U, held out if they are at hand."""
    held_out = getattr(classifier, "held_out_", None)
    if held_out is not None:
        return held_out
    if X_p is None or X_u is None:
        raise ValueError(
            "X_p and X_u must be given, for the classifier keeps no ratios of its own rows"
        )
    return _p_over_u(classifier, "X_p", X_p), _p_over_u(classifier, "X_u", X_u)


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


def _tell_apart(X_new: Any, X_p: Any, X_u: Any, theta: float, seed: Seed) -> float:
    """p-value of the cross-validated scores of trees that tell one sample from a mixture.

    For theta >= 0 new rows are a mixture of U and P; below, U is one of new rows and P.
    """
    rng = np.random.default_rng(seed)
    X_new, X_p, X_u = (
        X[rng.permutation(len(X))[:MAX_ROWS]]
        for X in (as_rows("X_new", X_new), as_rows("X_p", X_p), as_rows("X_u", X_u))
    )
    one, other, share = (X_new, X_u, theta) if theta >= 0.0 else (X_u, X_new, theta / (theta - 1.0))
    # Without replacement: a row drawn twice would be known by heart.
    m = int(min(len(other) / max(1.0 - share, 1e-9), len(X_p) / max(share, 1e-9)))
    n_p = round(share * m)
    mixture = np.concatenate([X_p[:n_p], other[: m - n_p]])
    if len(mixture) < 20:
        return 1.0
    X, is_one = np.concatenate([mixture, one]), np.repeat([0, 1], [len(mixture), len(one)])
    trees = HistGradientBoostingClassifier(
        max_iter=50, max_leaf_nodes=8, early_stopping=False, random_state=0
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = cross_val_predict(trees, X, is_one, cv=folds, method="predict_proba")[:, 1]
    return float(mannwhitneyu(scores[is_one == 1], scores[is_one == 0], alternative="greater")[1])
