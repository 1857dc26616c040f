"""How good a classifier is where it will be used, without negatives, and with an interval."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from pu_shift._checks import open_interval, open_unit, positive_int, shown
from pu_shift._seeds import Seed, as_seed
from pu_shift._sklearn import split_steps
from pu_shift.estimation.test_prior import posterior_at
from pu_shift.estimators.base import same_rows, sums_of_rows
from pu_shift.evaluation.metrics import METRICS, Rates, ScoredRows
from pu_shift.priors import Condition, shift_posterior

CROSS_FITTED = "cross-fitted on the rows of the fit"
# Resamples that are held in memory at a time.
_AT_A_TIME = 100
# Level of the intervals of π that users give and estimate_prior returns.
_PRIOR_LEVEL = 0.95


class EvaluationWarning(UserWarning):
    """The figures cannot be right, or are too good."""


@dataclass(frozen=True)
class Estimate:
    """A metric with its interval, both within the values that the metric can have."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What :func:`evaluate` found; prints as a table in words.

    Attributes
    ----------
    metrics : dict of str to Estimate
        The metrics by name; ``evaluation["recall"].value`` is one of them.
    condition : pu_shift.Condition
        π of the rows, and the π′ and α at which is judged.
    prior_interval : tuple of float or None
        The interval of π that the intervals include.
    n_p, n_u : int
        Number of positive and of unlabelled rows, or of negative ones.
    level : float
        Level of the intervals.
    source : str
        Which rows these are.
    labelled : bool
        Whether there were negatives in place of unlabelled rows.
    notes : tuple of str
        What cannot be right.
    rates : Rates
        What the metrics are formulas of.
    """

    metrics: dict[str, Estimate]
    condition: Condition
    prior_interval: tuple[float, float] | None
    n_p: int
    n_u: int
    level: float
    source: str
    labelled: bool
    notes: tuple[str, ...]
    rates: Rates
    _resamples: Resamples = field(compare=False)

    def __getitem__(self, name: str) -> Estimate:
        return self.metrics[name]

    def to_frame(self) -> Any:
        """Return the metrics as a pandas data frame, a line each.

        Returns
        -------
        pandas.DataFrame
            Columns ``value``, ``low`` and ``high``.
        """
        import pandas as pd

        rows = {name: (one.value, one.low, one.high) for name, one in self.metrics.items()}
        columns = ["value", "low", "high"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)

    def in_words(self, name: str) -> str:
        """Return what a metric says, with its interval."""
        metric, found = METRICS[name], self.metrics[name]
        if np.isnan(found.value):
            return "it flags no case at all"
        value, low, high = (metric.scale * part for part in (found.value, found.low, found.high))
        width = high - low if high > low else 0.05 * metric.scale
        digits = int(np.clip(np.ceil(0.7 - np.log10(width)), 0, 4))
        number, alpha = "{:.{n}f} ({:.{n}f} to {:.{n}f})", self.condition.alpha
        costs = {"false_alarm": f"{alpha:.3g}", "miss": f"{1.0 - alpha:.3g}"}
        return metric.words.format(number.format(value, low, high, n=digits), **costs)

    @property
    def head(self) -> str:
        """Where it is judged, and by which rows."""
        own, prior = self.condition, ""
        if not self.labelled:
            prior = f"; prior {own.prior:.3g}"
        if self.prior_interval is not None:
            prior += " ({:.3g} to {:.3g})".format(*self.prior_interval)
        kind = "negative" if self.labelled else "unlabelled"
        return (
            f"at test prior {own.test_prior:.3g} and alpha {own.alpha:.3g}{prior}; "
            f"{100 * self.level:.3g}% intervals\n"
            f"{self.source}: {self.n_p:,} positive and {self.n_u:,} {kind} rows"
        )

    def __str__(self) -> str:
        width = max(map(len, self.metrics))
        lines = [f"{name:<{width}}  {self.in_words(name)}" for name in self.metrics]
        return "\n".join([self.head, *lines, *(f"note: {note}" for note in self.notes)])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # What a notebook shows.
        printer.text(str(self))

    def plot(self, axes: Any = None) -> Any:
        """Draw the ROC and the precision–recall curve, corrected, and the reliability.

        Parameters
        ----------
        axes
            Three of Matplotlib's axes to draw into, or two without the reliability; new ones
            by default.

        Returns
        -------
        numpy.ndarray
            The axes.
        """
        from pu_shift.evaluation.curves import draw_curves

        return draw_curves(self, axes)

    def resamples(self) -> Iterator[Rates]:
        """Yield the resampled rates that the intervals are made of."""
        return iter(self._resamples)


@dataclass(frozen=True)
class Resamples:
    """Resampled rows and π, the same ones whenever they are asked for."""

    rows: ScoredRows
    prior: np.ndarray
    test_prior: np.ndarray
    alpha: float
    seed: np.random.SeedSequence

    def __iter__(self) -> Iterator[Rates]:
        rng = np.random.default_rng(self.seed)
        for start in range(0, len(self.prior), _AT_A_TIME):
            part = slice(start, start + _AT_A_TIME)
            yield self.rows.resampled(rng, self.prior[part], self.test_prior[part], self.alpha)


def evaluate(
    classifier: Any,
    X_p: Any = None,
    X_u: Any = None,
    *,
    X_n: Any = None,
    prior: float | tuple[float, float] | None = None,
    test_prior: float | None = None,
    alpha: float | None = None,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Seed = 0,
) -> Evaluation:
    r"""Estimate how good a classifier is at a test prior and cost, without negatives.

    With t the share of positives that are flagged and f that of unlabelled rows,

    .. math:: \mathrm{FPR} = \frac{f - \pi t}{1 - \pi}, \qquad
              \mathrm{precision} = \frac{\pi' t}{\pi' t + (1 - \pi')\,\mathrm{FPR}}, \qquad
              \mathrm{AUC} = \frac{\mathrm{AUC}_\mathrm{pu} - \pi/2}{1 - \pi},

    and so on for every metric of :data:`pu_shift.evaluation.metrics.METRICS`. The intervals are
    those of a Bayesian bootstrap of P and of U, in which π is drawn from its interval. Of
    cross-fitted rows it draws the folds, too: their classifiers differ, as the final one does.

    Parameters
    ----------
    classifier
        A fitted classifier, or a pipeline that ends with one. A density ratio is taken as it
        decides at the given π′ and α; others decide as they were fitted and are judged there.
    X_p, X_u
        Positive and unlabelled rows that the classifier has not seen. Without them a
        :class:`pu_shift.DensityRatioClassifier` is judged by the rows of its fit: each by a ratio
        that was fitted, calibrated and averaged without the row's fold. Rows that are those of
        the fit are recognised, and treated the same.
    X_n
        Negative rows in place of the unlabelled ones, if you have labelled data.
    prior
        π, the share of positives in ``X_u``: a number, or its interval (low, high) of 95 %. By
        default the classifier's, with its interval if it was estimated.
    test_prior, alpha
        Where to judge; by default the condition of the classifier.
    level
        Level of the intervals.
    n_resamples
        Number of resamples.
    random_state
        Seed of the resamples.

    Returns
    -------
    Evaluation
        All metrics with intervals. An :class:`EvaluationWarning` tells of a metric whose whole
        interval is impossible, which means that π is wrong or that P and U differ otherwise.

    Examples
    --------
    >>> from pu_shift import DensityRatioClassifier
    >>> rng = np.random.default_rng(0)
    >>> rows = lambda n, prior: rng.normal(np.where(rng.random((n, 1)) < prior, 1.0, -1.0), 1.0)
    >>> classifier = DensityRatioClassifier(prior=0.3).fit_pu(rows(300, 1.0), rows(900, 0.3))
    >>> found = evaluate(classifier, test_prior=0.5)
    >>> found["error_rate"].low < 0.159 < found["error_rate"].high  # Φ(−1), the least possible
    True
    >>> new = evaluate(classifier, rows(200, 1.0), X_n=rows(200, 0.0), test_prior=0.5)
    >>> new.in_words("recall").partition(" finds")[0], new["recall"].low < 0.841
    ('of 100 positives it', True)
    """
    level, n_resamples = open_unit("level", level), positive_int("n_resamples", n_resamples)
    before, last = split_steps(classifier)
    own = judged_condition(last, prior, test_prior, alpha)
    if X_p is None and X_u is None and X_n is None:
        rows, source = cross_fitted(last, own)
    elif X_p is None or (X_u is None) == (X_n is None):
        raise ValueError("X_p must be given with one of X_u and X_n, or none of them at all")
    else:
        other = X_u if X_n is None else X_n
        if before is not None:
            X_p, other = before.transform(X_p), before.transform(other)
        if X_n is None and same_rows(last, sums_of_rows(X_p), sums_of_rows(other)):
            rows, source = rows_of_fit(last, own, scored(last, own, X_p), scored(last, own, other))
        else:
            rows = ScoredRows.of(scored(last, own, X_p), scored(last, own, other))
            source = "rows given"
    found = evaluation_of(
        last,
        rows,
        source,
        given=(prior, test_prior, alpha),
        labelled=X_n is not None,
        level=level,
        n_resamples=n_resamples,
        seed=as_seed("random_state", random_state),
    )
    for note in found.notes:
        warnings.warn(note, EvaluationWarning, stacklevel=2)
    return found


def judged_condition(classifier: Any, prior: Any, test_prior: Any, alpha: Any) -> Condition:
    """Return the condition at which a classifier decides: its own, with the π′ and α given."""
    own = getattr(classifier, "condition", None)
    if not isinstance(own, Condition):
        if prior is None:
            raise ValueError(f"prior must be given: {type(classifier).__name__} has none")
        middle = float(np.mean(open_interval("prior", prior) if np.ndim(prior) else prior))
        return Condition(middle, test_prior, 0.5 if alpha is None else alpha)
    return Condition(
        own.prior,
        own.test_prior if test_prior is None else test_prior,
        own.alpha if alpha is None else alpha,
    )


def scored(classifier: Any, condition: Condition, X: Any) -> tuple[Any, Any, Any]:
    """Return of each row a score, whether it is flagged, and its probability or ``None``."""
    if hasattr(classifier, "predict_ratio"):
        ratio = classifier.predict_ratio(X)
        if classifier.direction_ == "u/p":
            ratio = 1.0 / np.maximum(ratio, 1e-12)
        return scored_ratio(ratio, condition)
    return decided(classifier, X)


def decided(classifier: Any, X: Any) -> tuple[Any, Any, Any]:
    """Return the same of a classifier as it decides by itself."""
    probability = None
    if hasattr(classifier, "predict_proba"):
        probability = np.asarray(classifier.predict_proba(X), dtype=np.float64)[:, 1]
    score = probability
    if hasattr(classifier, "decision_function"):
        score = np.asarray(classifier.decision_function(X), dtype=np.float64)
    if score is None:
        raise ValueError(
            f"classifier must have decision_function or predict_proba, got {shown(classifier)}"
        )
    return score, np.asarray(classifier.predict(X)) == classifier.classes_[1], probability


def scored_ratio(ratio: np.ndarray, condition: Condition) -> tuple[Any, Any, Any]:
    """Return the same of rows whose ratio p_p/p_u is known, decided under a condition."""
    ratio = np.asarray(ratio, dtype=np.float64)
    posterior = posterior_at(ratio, condition.prior, "p/u")
    probability = shift_posterior(posterior, condition.prior, condition.test_prior)
    return ratio, condition.classify_ratio(ratio) > 0.0, probability


def cross_fitted(classifier: Any, condition: Condition) -> tuple[ScoredRows, str]:
    """Return the rows of the fit, each scored without its fold, and what they are."""
    ratios = getattr(classifier, "cross_fitted_", None)
    if ratios is None:
        raise ValueError(
            "X_p and X_u must be given, rows that the classifier has not seen: only a "
            f"DensityRatioClassifier keeps what it needs without, got {shown(classifier)}"
        )
    samples = [(score, *scored_ratio(ratio, condition)[1:], fold) for ratio, score, fold in ratios]
    return ScoredRows.of(*samples), CROSS_FITTED


def rows_of_fit(
    classifier: Any, condition: Condition, *samples: tuple[Any, Any, Any]
) -> tuple[ScoredRows, str]:
    """Return the cross-fitted rows if there are any, and a warning otherwise."""
    if getattr(classifier, "cross_fitted_", None) is not None:
        return cross_fitted(classifier, condition)
    warnings.warn(
        "X_p and X_u are the rows that the classifier was fitted to: the figures are too good, "
        "give rows that it has not seen",
        EvaluationWarning,
        stacklevel=3,
    )
    return ScoredRows.of(*samples), "the rows of the fit itself"


def evaluation_of(
    classifier: Any,
    rows: ScoredRows,
    source: str,
    *,
    given: tuple[Any, Any, Any] = (None, None, None),
    labelled: bool = False,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: np.random.SeedSequence | None = None,
) -> Evaluation:
    """Judge rows that are scored: what :func:`evaluate` does after that."""
    prior, test_prior, alpha = given
    judged = judged_condition(classifier, prior, test_prior, alpha)
    prior, interval = _prior_of_rows(classifier, judged, prior)
    follows = test_prior is None and getattr(classifier, "_stated_test_prior", None) is None
    condition = Condition(prior, prior if follows else judged.test_prior, judged.alpha)
    seeds = (np.random.SeedSequence(0) if seed is None else seed).spawn(2)
    priors = _drawn_priors(prior, interval, n_resamples, np.random.default_rng(seeds[0]))
    test_priors = priors if follows else np.full(n_resamples, condition.test_prior)
    if labelled:
        prior, priors, interval = 0.0, np.zeros(n_resamples), None
    rates = rows.rates(prior, condition.test_prior, condition.alpha)
    resamples = Resamples(rows, priors, test_priors, condition.alpha, seeds[1])
    names = [
        name
        for name, metric in METRICS.items()
        if rows.probability is not None or not metric.of_probabilities
    ]
    drawn: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for part in resamples:
        for name in names:
            drawn[name].append(METRICS[name].formula(part))
    metrics, impossible = {}, []
    for name in names:
        value = float(METRICS[name].formula(rates)[0])
        metrics[name], note = _estimate(name, value, np.concatenate(drawn[name]), level)
        impossible += [note] if note else []
    notes: tuple[str, ...] = ()
    if impossible:
        cause = (
            "X_p and X_n" if labelled else f"the prior {condition.prior:.3g} is wrong, or P and U"
        )
        notes = (f"{', '.join(impossible)} cannot be: {cause} differ in more than their class",)
    sizes = int(rows.counts_p.sum()), int(rows.counts_u.sum())
    return Evaluation(
        metrics,
        condition,
        interval,
        *sizes,
        level,
        source,
        labelled,
        notes,
        rates,
        resamples,
    )


def _estimate(
    name: str, value: float, drawn: np.ndarray, level: float
) -> tuple[Estimate, str | None]:
    """Return a metric with its interval, and what is said if all of that is impossible."""
    least, greatest = METRICS[name].bounds
    tail, drawn = 0.5 * (1.0 - level), drawn[~np.isnan(drawn)]
    low, high = np.quantile(drawn, [tail, 1.0 - tail]) if len(drawn) else (least, greatest)
    note = None
    if high < least or low > greatest:
        note = f"{name} {value:.3g} ({low:.3g} to {high:.3g})"
    ends = np.clip([value, np.fmin(low, value), np.fmax(high, value)], least, greatest)
    return Estimate(*map(float, ends)), note


def _prior_of_rows(classifier: Any, judged: Condition, given: Any) -> tuple[float, Any]:
    """Return π of the unlabelled rows, and its interval or ``None``."""
    if np.ndim(given):
        low, high = open_interval("prior", given)
        inside = low <= judged.prior <= high
        return (judged.prior if inside else 0.5 * (low + high)), (low, high)
    if given is not None:
        return open_unit("prior", given), None
    fitted = getattr(classifier, "prior_", None) == judged.prior
    return judged.prior, getattr(classifier, "prior_interval_", None) if fitted else None


def _drawn_priors(
    prior: float, interval: tuple[float, float] | None, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw π, normal on the scale of log-odds on either side of the estimate."""
    if interval is None:
        return np.full(n, prior)
    z = rng.standard_normal(n)
    ends = logit(np.clip(interval, 1e-6, 1.0 - 1e-6))
    reach = np.abs(ends - logit(prior)) / norm.ppf(0.5 * (1.0 + _PRIOR_LEVEL))
    return expit(logit(prior) + z * np.where(z < 0.0, *reach))
