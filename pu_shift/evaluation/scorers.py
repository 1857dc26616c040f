"""Scorers without negatives, for ``GridSearchCV`` and ``cross_val_score``.

A scorer is called with an estimator and held-out PU rows, y = 1 for labelled positives and 0 or
−1 for unlabelled rows, and returns the negated unbiased estimate of the risk under the test
condition: greater is better. It may be positive, because an unbiased estimate of a small risk can
fall below 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pu_shift._checks import one_of, shown
from pu_shift._sklearn import last_step
from pu_shift.losses import LOSSES, get_loss
from pu_shift.priors import Condition, shift_posterior
from pu_shift.risks import evaluate_risk


class PURiskScorer:
    """Negated PU risk under shift and asymmetric error.

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
    >>> bool(cross_val_score(classifier, X, y, scoring=zero_one_scorer).mean() > -0.05)
    True
    """

    def __init__(self, loss: str | None = "zero_one", condition: Condition | None = None) -> None:
        self.loss = one_of("loss", loss, (None, *LOSSES))
        if not (condition is None or isinstance(condition, Condition)):
            raise ValueError(f"condition must be a Condition or None, got {shown(condition)}")
        self.condition = condition

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the negated risk of a fitted estimator.

        Parameters
        ----------
        estimator
            A classifier with ``decision_function`` or ``predict_proba``.
        X, y
            Held-out rows and their PU labels.

        Returns
        -------
        float
            Minus the risk.
        """
        last = _innermost(estimator)
        condition = self.condition if self.condition is not None else _condition_of(last)
        loss = self.loss if self.loss is not None else getattr(last, "loss", "squared")
        one_of("loss", loss, LOSSES)
        positive = np.asarray(y) == estimator.classes_[1]
        if np.ndim(positive) != 1 or positive.all() or not positive.any():
            raise ValueError("y must hold labelled positives and unlabelled rows to be scored")
        margins = _margins(estimator, last, X, loss, condition)
        if margins.shape != positive.shape:
            raise ValueError(f"y must have a label for each of {len(margins)} rows of X")
        kind = "pu-shift-asym"
        risk = evaluate_risk(margins[positive], margins[~positive], condition, loss, kind)
        reason = _why_not_to_search(_set_before_fit(estimator), self.condition)
        if reason is None:
            return -float(risk)
        score = _Uncomparable(-risk)
        score.reason = reason
        return score

    @property
    def _score_func(self) -> Any:
        # What TunedThresholdClassifierCV asks of a scorer.
        raise ValueError(
            "scoring: a PU risk tunes no threshold, for test_prior and alpha set it exactly; "
            "search other parameters by GridSearchCV"
        )

    def __repr__(self) -> str:
        return f"PURiskScorer(loss={self.loss!r}, condition={self.condition!r})"


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
            "PURiskScorer the one condition to judge all candidates by"
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
surrogate_scorer = PURiskScorer(None)
