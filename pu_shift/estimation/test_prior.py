r"""Estimate the test prior π′ from unlabelled test rows.

The test density is a mixture of the training densities (Theorem 10),

.. math:: p_\mathrm{t} = (1-s)\,p_\mathrm{u} + s\,p_\mathrm{p}, \qquad
          s = \frac{\pi' - \pi}{1 - \pi},

so that unlabelled test rows show the shift s even where π is unknown, and
π′ = π + s(1 − π).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from pu_shift._checks import ArgumentError, is_dask, one_of, open_interval, open_unit, shown
from pu_shift._seeds import Seed, child
from pu_shift._sklearn import split_steps
from pu_shift.bigdata import compute, in_memory, partitions
from pu_shift.estimation.flagged import flagged_prior
from pu_shift.estimation.mean_embedding import embedding_shift
from pu_shift.priors import posterior_at, ratio_sums, shift_posterior

LEAST_ROWS = 30


@dataclass(frozen=True)
class ShiftEstimate:
    """An estimated test prior.

    Attributes
    ----------
    test_prior : float
        The estimate of π′.
    low, high : float
        Its interval.
    level : float
        The interval's level.
    method : str
        What was used.
    n_rows : int
        The number of test rows.
    """

    test_prior: float
    low: float
    high: float
    level: float
    method: str
    n_rows: int


def estimate_test_prior(
    classifier: Any,
    X_test: Any,
    method: str | None = None,
    level: float = 0.95,
    prior: float | tuple[float, float] | None = None,
    *,
    samples: tuple[Any, Any] | None = None,
    random_state: Seed = 0,
) -> ShiftEstimate:
    r"""Estimate π′, the share of positives among unlabelled test rows.

    ``'ratio'`` matches means. With :math:`g = p_\mathrm{p}/(p_\mathrm{p} + p_\mathrm{u})`, which
    the fitted ratio gives,

    .. math:: s = \frac{\mathbb E_\mathrm{t}[g] - \mathbb E_\mathrm{u}[g]}
                       {\mathbb E_\mathrm{p}[g] - \mathbb E_\mathrm{u}[g]}.

    This holds for any g, so that a badly fitted ratio makes the estimate less sharp, but not
    wrong. The training means are those of held-out rows, kept by ``fit``; the interval is that of
    the delta method, for the noise of all three samples.

    ``'em'`` maximises the likelihood of the posteriors q at π (Saerens, Latinne & Decaestecker,
    2002),

    .. math:: \sum_i \log\Bigl(\frac{\pi'}{\pi}q_i + \frac{1-\pi'}{1-\pi}(1-q_i)\Bigr),

    which is concave in π′: its maximum is the point where their EM algorithm ends. The interval
    is that of the likelihood ratio, and takes the posteriors to be right.

    ``'kernel'`` compares mean embeddings, without the classifier (Mielniczuk, Rejchel &
    Teisseyre, 2025, arXiv:2502.21194): see
    :func:`pu_shift.estimation.mean_embedding.embedding_shift`. ``'drpu'`` takes the smallest
    ratio of flagged test rows to flagged positives (Nakajima & Sugiyama, 2023, arXiv:2107.05045),
    and needs no π: see :func:`pu_shift.estimation.flagged.flagged_prior`. The intervals of both
    are those of a bootstrap.

    Parameters
    ----------
    classifier
        A fitted :class:`pu_shift.DensityRatioClassifier`, or a pipeline that ends with one. For
        ``'em'`` any classifier with ``predict_proba``.
    X_test
        (n, d) rows of one test set, at least 30.
    method
        ``'ratio'``, ``'em'``, ``'kernel'`` or ``'drpu'``; by default ``'ratio'`` where the
        classifier has one.
    level
        The interval's level.
    prior
        π, where the classifier's own is not to be used or not known; or an interval of π, by
        which that of π′ is widened.
    samples
        Rows of P and of U: for ``'kernel'`` those of the fit, for ``'drpu'`` others, where the
        classifier kept no held-out ratios (``held_out_``).
    random_state
        Seed of the bootstrap of ``'kernel'`` and ``'drpu'``.

    Returns
    -------
    ShiftEstimate
        Estimate and interval. If π is wrong, so is π′: with an estimated π give its interval.

    Examples
    --------
    >>> from pu_shift import DensityRatioClassifier
    >>> rng = np.random.default_rng(0)
    >>> rows = lambda n, prior: rng.normal(np.where(rng.random((n, 1)) < prior, 2.0, -2.0), 1.0)
    >>> classifier = DensityRatioClassifier(prior=0.3).fit_pu(rows(300, 1.0), rows(900, 0.3))
    >>> estimate = estimate_test_prior(classifier, rows(500, 0.7))
    >>> round(estimate.test_prior, 1), estimate.low < 0.7 < estimate.high
    (0.7, True)
    """
    one_of("method", method, (None, *SHIFT_METHODS))
    level = open_unit("level", level)
    before, classifier = split_steps(classifier)
    if before is not None:
        X_test = before.transform(X_test)
        samples = None if samples is None else tuple(map(before.transform, samples))
    if method is None:
        method = "ratio" if hasattr(classifier, "ratio_sums_") else "em"
    if method == "ratio":
        return estimate_from_sums(classifier, test_sums(classifier, X_test), level, prior)
    X_test = np.asarray(in_memory({"X_test": X_test}, child(random_state, 1))[0])
    _enough(len(X_test))
    task = _Task(classifier, X_test, level, prior, samples, child(random_state, 0))
    return _joined(TEST_PRIOR_ESTIMATORS[method](task), level, method, len(X_test))


@dataclass(frozen=True)
class _Task:
    """What an estimator of π′ may use."""

    classifier: Any
    X_test: np.ndarray
    level: float
    prior: Any
    samples: Any
    seed: Seed

    def rows(self, method: str) -> tuple[Any, Any]:
        """Return the rows of P and U, which must be given."""
        if self.samples is None:
            raise ValueError(
                f"samples must be given as (X_p, X_u) for method={method!r}: a classifier "
                "keeps no rows, and one from a model file no held-out ratios"
            )
        return self.samples


def _by_likelihood(task: _Task) -> list[list[float]]:
    posteriors = _posteriors(task.classifier, task.X_test, _priors(task.classifier, task.prior))
    return [most_likely_prior(rows, value, task.level) for value, rows in posteriors.items()]


def _by_embeddings(task: _Task) -> list[list[float]]:
    shifts = embedding_shift(*task.rows("kernel"), task.X_test, task.level, task.seed)
    return _moved(shifts, _priors(task.classifier, task.prior))


def _by_flags(task: _Task) -> list[list[float]]:
    classifier = task.classifier
    if not hasattr(classifier, "predict_ratio"):
        raise ValueError("classifier must be a DensityRatioClassifier for method='drpu'")
    # Only the order counts; held-out ratios are p/u in both directions.
    sign = 1.0 if classifier.direction_ == "p/u" else -1.0
    held_out = getattr(classifier, "held_out_", None) if task.samples is None else None
    if held_out is None:
        of_p = sign * classifier.predict_ratio(task.rows("drpu")[0])
    else:
        (of_p,) = held_out[:1]
    of_test = sign * classifier.predict_ratio(task.X_test)
    if held_out is not None and sign < 0.0:
        of_test = -1.0 / of_test
    return [flagged_prior(of_p, of_test, task.level, task.seed)]


# Each returns an estimate and the ends of its interval, for one π or several. A new estimator is
# a module and a line here.
TEST_PRIOR_ESTIMATORS: dict[str, Callable[[_Task], list[list[float]]]] = {
    "em": _by_likelihood,
    "kernel": _by_embeddings,
    "drpu": _by_flags,
}
SHIFT_METHODS = ("ratio", *TEST_PRIOR_ESTIMATORS)


def _moved(shifts: Sequence[float], priors: Sequence[float]) -> list[list[float]]:
    """Return π′ = π + s(1 − π) of each π, for a shift s and the ends of its interval."""
    return [[value + s * (1.0 - value) for s in shifts] for value in priors]


def estimate_from_sums(
    classifier: Any,
    sums: np.ndarray,
    level: float = 0.95,
    prior: float | tuple[float, float] | None = None,
) -> ShiftEstimate:
    """Estimate π′ by ``'ratio'`` from sums of :func:`test_sums`, which may be added up."""
    n = int(sums[0])
    _enough(n)
    _needs_sums(classifier)
    (mean_p, error_p), (mean_u, error_u) = map(_mean_and_error, classifier.ratio_sums_)
    mean, error = _mean_and_error(sums)
    contrast = mean_p - mean_u
    if not contrast > 2.0 * np.hypot(error_p, error_u):
        raise ValueError(
            "classifier cannot tell positive from unlabelled rows, so that no shift can be seen"
        )
    shift = (mean - mean_u) / contrast
    noise = np.sqrt(error**2 + ((1.0 - shift) * error_u) ** 2 + (shift * error_p) ** 2) / contrast
    reach = norm.ppf(0.5 * (1.0 + level)) * noise
    found = _moved((shift, shift - reach, shift + reach), _priors(classifier, prior))
    return _joined(found, level, "ratio", n)


def _needs_sums(classifier: Any) -> None:
    if not hasattr(classifier, "ratio_sums_"):
        raise ValueError(
            "classifier must be a DensityRatioClassifier that was fitted by this version, to "
            f"estimate a test prior by its ratio, got {shown(classifier)}"
        )


def test_sums(classifier: Any, X: Any) -> np.ndarray:
    """Sums over rows that ``'ratio'`` needs of a test set: of 1, of g and of g²."""
    _needs_sums(classifier)
    if is_dask(X):
        calls = [(part,) for part in partitions("X_test", X)]
        return np.sum(compute(partial(_sums_of_partition, classifier), calls), axis=0)
    return ratio_sums(classifier.predict_ratio(X), classifier.direction_)


vars(test_sums)["__test__"] = False


def _sums_of_partition(classifier: Any, part: Any) -> np.ndarray:
    return test_sums(classifier, part) if len(part) else np.zeros(3)


def _mean_and_error(sums: np.ndarray) -> tuple[float, float]:
    n, total, squares = sums
    mean = total / n
    return mean, np.sqrt(max(squares / n - mean**2, 0.0) / max(n - 1.0, 1.0))


def most_likely_prior(posterior: np.ndarray, prior: float, level: float) -> list[float]:
    """Maximum of the likelihood of π′, and where it falls below the level's limit."""
    _enough(len(posterior))
    # Posteriors of 0 and 1 would forbid all but one value of π′.
    posterior = np.clip(posterior, 1e-6, 1.0 - 1e-6)
    positive, negative = posterior / prior, (1.0 - posterior) / (1.0 - prior)
    if np.ptp(posterior) < 1e-9:
        raise ValueError(
            "classifier gives every test row the same probability, so that no shift can be seen"
        )

    def slope(value: float) -> float:
        return float(np.mean((positive - negative) / (value * positive + (1.0 - value) * negative)))

    def log_likelihood(value: float) -> float:
        return float(np.sum(np.log(value * positive + (1.0 - value) * negative)))

    best = _root(slope, 0.0, 1.0)
    limit = log_likelihood(best) - 0.5 * norm.ppf(0.5 * (1.0 + level)) ** 2
    low = _root(lambda value: limit - log_likelihood(value), 0.0, best)
    high = _root(lambda value: log_likelihood(value) - limit, best, 1.0)
    return [best, low, high]


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses 0; an end of the range where it does not."""
    if low >= high or falling(low) <= 0.0:
        return low
    return high if falling(high) >= 0.0 else float(brentq(falling, low, high))


def _joined(found: list[list[float]], level: float, method: str, n: int) -> ShiftEstimate:
    """Join the first estimate and the widest interval; n rows cannot resolve less than 1/(2n)."""
    best = float(np.clip(found[0][0], 0.5 / n, 1.0 - 0.5 / n))
    low = float(np.clip(min(one[1] for one in found), 0.0, best))
    high = float(np.clip(max(one[2] for one in found), best, 1.0))
    return ShiftEstimate(best, low, high, level, method, n)


def _enough(n: int) -> None:
    if n < LEAST_ROWS:
        raise ArgumentError(
            "X_test", f"must have at least {LEAST_ROWS} rows to estimate a test prior from, got {n}"
        )


def _priors(classifier: Any, prior: Any) -> list[float]:
    """Return the π to estimate at, and after it the ends of the interval if one is given."""
    if np.ndim(prior):
        low, high = open_interval("prior", prior)
        known = hasattr(classifier, "prior_")
        return [_priors(classifier, None)[0] if known else 0.5 * (low + high), low, high]
    if prior is None:
        if not hasattr(classifier, "prior_"):
            raise ValueError("prior must be given for a classifier that knows none")
        prior = classifier.prior_ if classifier.prior is None else classifier.prior
    return [open_unit("prior", prior)]


def _posteriors(classifier: Any, X: Any, priors: list[float]) -> dict[float, np.ndarray]:
    """P(y = +1 | x) at each π."""
    if hasattr(classifier, "predict_ratio"):
        ratio = classifier.predict_ratio(X)
        return {prior: posterior_at(ratio, prior, classifier.direction_) for prior in priors}
    posterior = classifier.predict_proba(X)[:, 1]
    condition = getattr(classifier, "condition_", None)
    if condition is None:
        return dict.fromkeys(priors, posterior)
    return {prior: shift_posterior(posterior, condition.test_prior, prior) for prior in priors}
