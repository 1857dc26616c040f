"""Scorers for ``GridSearchCV`` and ``cross_val_score`` that need no negatives.

A scorer is called with an estimator and held-out PU rows, y = 1 for labelled
positives and 0 or −1 for unlabelled rows, and returns the negated unbiased
estimate of the risk under the test condition: greater is better. It may be
positive, because an unbiased estimate of a small risk can fall below 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pu_shift._checks import one_of, shown
from pu_shift.losses import LOSSES
from pu_shift.priors import Condition, shift_posterior
from pu_shift.risks import evaluate_risk


class PURiskScorer:
    """Negated PU risk under shift and asymmetric error.

    Parameters
    ----------
    loss
        ``'zero_one'`` (ready as ``zero_one_scorer``), a surrogate, or
        ``None`` for the estimator's own training loss, ``'squared'`` if it has
        none (ready as ``surrogate_scorer``).
    condition
        The condition to judge by; by default that of the estimator, or of the
        last step of a pipeline. Give it when the condition itself or an
        estimated prior is searched over, for risks under different conditions
        cannot be compared.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from pu_shift.classifiers import DensityRatioClassifier
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
        last = estimator[-1] if hasattr(estimator, "steps") else estimator
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
        return -float(evaluate_risk(margins[positive], margins[~positive], condition, loss, kind))

    def __repr__(self) -> str:
        return f"PURiskScorer(loss={self.loss!r}, condition={self.condition!r})"


def _condition_of(estimator: Any) -> Condition:
    condition = getattr(estimator, "condition", None)
    if not isinstance(condition, Condition):
        raise ValueError(
            f"condition must be given to the scorer: {type(estimator).__name__} has none"
        )
    return condition


def _margins(estimator: Any, last: Any, X: Any, loss: str, condition: Condition) -> np.ndarray:
    """Scores on the scale of the loss.

    Those of an estimator that was trained by the loss are; of others the
    posterior is turned into the score that minimises the loss.
    """
    trained_by_it = getattr(last, "loss", None) == loss
    if hasattr(estimator, "decision_function") and (loss == "zero_one" or trained_by_it):
        return np.asarray(estimator.decision_function(X), dtype=np.float64)
    # Kept off 0 and 1, where the logistic loss is infinite.
    posterior = np.clip(estimator.predict_proba(X)[:, 1], 1e-6, 1.0 - 1e-6)
    posterior = shift_posterior(posterior, condition.test_prior, condition.prior_unif)
    if loss == "logistic":
        return np.log(posterior / (1.0 - posterior))
    if loss == "double_hinge":
        return np.sign(posterior - 0.5)
    return 2.0 * posterior - 1.0


zero_one_scorer = PURiskScorer("zero_one")
surrogate_scorer = PURiskScorer(None)
