"""Scorers without negatives, for ``GridSearchCV`` and ``cross_val_score``.

A scorer is called with an estimator and held-out PU rows, y = 1 for labelled positives and 0 or
−1 for unlabelled rows: greater is better. :func:`pu_scorer` makes one of each metric, of the
estimator's decisions; :class:`PURiskScorer` returns the negated risk, of surrogate losses too. An
unbiased estimate of a small error can fall below 0, so that a score may lie outside the range of
its metric: it is not cut, because that would make candidates equal that are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pu_shift._checks import one_of, shown
from pu_shift._sklearn import last_step
from pu_shift.evaluation.evaluator import decided
from pu_shift.evaluation.metrics import METRICS, ScoredRows
from pu_shift.losses import LOSSES, get_loss
from pu_shift.priors import Condition, shift_posterior
from pu_shift.risks import evaluate_risk


class _Scorer:
    """What scorers share: the rows of P and U, the condition, and searches that are refused."""

    condition: Condition | None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score of a fitted estimator.

        Parameters
        ----------
        estimator
            A fitted classifier, pipeline or search.
        X, y
            Held-out rows and their PU labels.

        Returns
        -------
        float
            The score; greater is better.
        """
        last = _innermost(estimator)
        condition = self.condition if self.condition is not None else _condition_of(last)
        positive = np.asarray(y) == estimator.classes_[1]
        if np.ndim(positive) != 1 or positive.all() or not positive.any():
            raise ValueError("y must hold labelled positives and unlabelled rows to be scored")
        score = self._score(estimator, last, X, positive, condition)
        reason = _why_not_to_search(_set_before_fit(estimator), self.condition)
        if reason is None:
            return score
        refused = _Uncomparable(score)
        refused.reason = reason
        return refused

    def _score(
        self, estimator: Any, last: Any, X: Any, positive: np.ndarray, condition: Condition
    ) -> float:
        raise NotImplementedError

    @property
    def _score_func(self) -> Any:
        # What TunedThresholdClassifierCV asks of a scorer.
        raise ValueError(
            "scoring: a PU risk tunes no threshold, for test_prior and alpha set it exactly; "
            "search other parameters by GridSearchCV"
        )


class PURiskScorer(_Scorer):
    r"""Negated PU risk under shift and asymmetric error.

    The zero-one loss gives the cost of the decisions, in units of the mean of both costs,

    .. math:: 2\alpha\,(1 - \pi')\,\mathrm{FPR} + 2(1 - \alpha)\,\pi'\,\mathrm{FNR},

    which at α = ½ is the error rate, so that one minus it is the accuracy. A surrogate loss gives
    the risk that is trained: α and 1 − α times the losses, half of their mean at α = ½.

    Parameters
    ----------
    loss
        ``'zero_one'`` (ready as ``zero_one_scorer``), a surrogate, or ``None`` for the
        estimator's own training loss, ``'squared'`` if it has none (ready as
        ``surrogate_scorer``).
    condition
        The condition to judge by; by default that of the estimator, of the last step of a
        pipeline or of a search's best estimator. Give it when ``test_prior``, ``alpha`` or an
        estimated prior is searched over, for risks under different conditions cannot be compared.

    Notes
    -----
    A search over ``prior`` stops with a ``TypeError``, whatever condition is given, as does one
    over ``test_prior`` or ``alpha`` without it: the risk takes π as known and says nothing about
    it. Take :func:`pu_shift.estimate_prior`, or ``prior=None``, which calls it. A search whose
    candidates are whole classifiers with priors of their own cannot be recognised.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from pu_shift import DensityRatioClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(3.0, 1.0, (80, 1)), rng.normal(-3.0, 1.0, (70, 1))])
    >>> y = np.repeat([1, 0], [50, 100])  # 30 of the 100 unlabelled rows are positive
    >>> classifier = DensityRatioClassifier(prior=0.3, widths=1.0, lams=0.1)
    >>> bool(cross_val_score(classifier, X, y, scoring=zero_one_scorer).mean() > -0.1)
    True
    """

    def __init__(self, loss: str | None = "zero_one", condition: Condition | None = None) -> None:
        self.loss = one_of("loss", loss, (None, *LOSSES))
        if not (condition is None or isinstance(condition, Condition)):
            raise ValueError(f"condition must be a Condition or None, got {shown(condition)}")
        self.condition = condition

    def _score(
        self, estimator: Any, last: Any, X: Any, positive: np.ndarray, condition: Condition
    ) -> float:
        loss = self.loss if self.loss is not None else getattr(last, "loss", "squared")
        one_of("loss", loss, LOSSES)
        margins = _margins(estimator, last, X, loss, condition)
        if margins.shape != positive.shape:
            raise ValueError(f"y must have a label for each of {len(margins)} rows of X")
        kind = "pu-shift-asym"
        risk = evaluate_risk(margins[positive], margins[~positive], condition, loss, kind)
        return -float(risk) * (2.0 if loss == "zero_one" else 1.0)

    def __repr__(self) -> str:
        return f"PURiskScorer(loss={self.loss!r}, condition={self.condition!r})"


class MetricScorer(_Scorer):
    """What :func:`pu_scorer` returns: a metric of :data:`pu_shift.evaluation.metrics.METRICS`."""

    def __init__(self, metric: str, condition: Condition | None) -> None:
        self.metric, self.condition = metric, condition

    def _score(
        self, estimator: Any, last: Any, X: Any, positive: np.ndarray, condition: Condition
    ) -> float:
        score, flagged, probability = decided(estimator, X)
        if score.shape != positive.shape:
            raise ValueError(f"y must have a label for each of {len(score)} rows of X")
        parts = [
            [None if part is None else part[own] for part in (score, flagged, probability)]
            for own in (positive, ~positive)
        ]
        rates = ScoredRows.of(*parts).rates(condition.prior, condition.test_prior, condition.alpha)
        metric: Any = METRICS[self.metric]
        # Where nothing is flagged there is no precision: the worst score, as in scikit-learn.
        return float(metric.gain(np.nan_to_num(metric.formula(rates)[0])))

    def __repr__(self) -> str:
        return f"MetricScorer({self.metric!r}, {self.condition!r})"


def pu_scorer(
    metric: str,
    prior: float | None = None,
    test_prior: float | None = None,
    alpha: float = 0.5,
) -> MetricScorer:
    r"""Make a scorer of a metric, estimated from positives and unlabelled rows.

    Every estimator is judged by its own decisions, scores and probabilities, at π′ and α. With
    the π given and rows of P and U that it has not seen, recall, false positive rate, error rate,
    cost, AUC, Brier score and log loss are unbiased; precision, F1 and average precision are
    ratios of unbiased estimates, and are biased for few rows: docs/evaluation.md has the figures.

    Parameters
    ----------
    metric
        A name in :data:`pu_shift.evaluation.metrics.METRICS`. Of an error or a cost the scorer
        returns minus it, of the calibration minus its size.
    prior, test_prior, alpha
        The condition to judge by: π of the unlabelled rows, π′ (by default π) and α. Without
        ``prior`` that of the estimator, which must be one of this package.

    Returns
    -------
    MetricScorer
        What ``scoring=`` of scikit-learn takes.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(3.0, 1.0, (80, 1)), rng.normal(-3.0, 1.0, (70, 1))])
    >>> y = np.repeat([1, 0], [50, 100])  # 30 of the 100 unlabelled rows are positive
    >>> scorer = pu_scorer("auc", prior=0.3)
    >>> bool(cross_val_score(LogisticRegression(), X, y, scoring=scorer).mean() > 0.95)
    True
    """
    one_of("metric", metric, METRICS)
    if METRICS[metric].gain is None:
        raise ValueError(f"metric must be one of which more or less is better, got {metric!r}")
    if prior is None and not (test_prior is None and alpha == 0.5):
        raise ValueError("prior must be given with test_prior or alpha")
    condition = None if prior is None else Condition(prior, test_prior, alpha)
    return MetricScorer(metric, condition)


class _Uncomparable(float):
    """A score that stops a search.

    A search turns errors of a scorer into NaN (``error_score``) and makes an arbitrary choice. An
    error raised while it reads the returned number is not caught.
    """

    reason: str

    def item(self) -> float:
        # scikit-learn passes over a ValueError here.
        raise TypeError(self.reason)


def _set_before_fit(estimator: Any) -> set[str]:
    """Return the parameters of the condition that were set in a clone before its fit."""
    parts = [estimator]
    if hasattr(estimator, "get_params"):
        parts += estimator.get_params().values()
    return {name for part in parts for name in getattr(part, "_set_before_fit", ())}


def _why_not_to_search(names: set[str], condition: Condition | None) -> str | None:
    """Say why candidates that differ in these parameters cannot be compared, if they cannot."""
    if "prior" in names:
        return (
            "prior cannot be searched by a PU risk, which takes it as known and says nothing "
            "about it: use estimate_prior, or prior=None in the classifier"
        )
    if names and condition is None:
        return (
            f"{min(names)} cannot be searched by risks under different conditions: give "
            "the scorer the one condition to judge all candidates by"
        )
    return None


def _innermost(estimator: Any) -> Any:
    """Return the classifier inside of searches and pipelines."""
    if hasattr(estimator, "best_estimator_"):
        return _innermost(estimator.best_estimator_)
    last = last_step(estimator)
    return estimator if last is estimator else _innermost(last)


def _condition_of(estimator: Any) -> Condition:
    condition = getattr(estimator, "condition", None)
    if not isinstance(condition, Condition):
        raise ValueError(
            f"condition must be given to the scorer: {type(estimator).__name__} has none"
        )
    return condition


def _margins(estimator: Any, last: Any, X: Any, loss: str, condition: Condition) -> np.ndarray:
    """Scores on the scale of the loss.

    Scores of an estimator that was trained by the loss are on it; otherwise the posterior is
    turned into the score that minimises the loss.
    """
    trained_by_it = getattr(last, "loss", None) == loss
    if hasattr(estimator, "decision_function") and (loss == "zero_one" or trained_by_it):
        return np.asarray(estimator.decision_function(X), dtype=np.float64)
    # The logistic loss is infinite at posteriors of 0 and 1.
    posterior = np.clip(estimator.predict_proba(X)[:, 1], 1e-6, 1.0 - 1e-6)
    posterior = shift_posterior(posterior, condition.test_prior, condition.prior_unif)
    return get_loss(loss).margin(posterior)


zero_one_scorer = PURiskScorer("zero_one")
"""Minus the error rate at π′; with α minus the cost, in units of the mean of both costs."""
surrogate_scorer = PURiskScorer(None)
"""Minus the risk that the classifier was trained by; the squared loss where it has none."""
