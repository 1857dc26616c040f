"""Cross-validation of risk minimisers: every condition, λ and fold at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pu_shift._grids import training_weights
from pu_shift.device import device_of, to_numpy
from pu_shift.estimators.closed_form import solve_stack
from pu_shift.losses import Loss
from pu_shift.models import LinearModel
from pu_shift.ratios.kernels import take_rows
from pu_shift.risks import Risk, evaluate_risk
from pu_shift.training import train


@dataclass(frozen=True)
class CrossValidation:
    """Linear models of every condition, λ and fold (the last: all rows), and held-out risks."""

    risks: np.ndarray  # (conditions, λ), averaged over the folds
    weights: Any  # (features, conditions, λ, folds + 1)
    biases: Any  # (conditions, λ, folds + 1)
    progress: np.ndarray  # (recorded steps, conditions, λ, folds + 1) training risks

    def held_out_scores(
        self, features: Sequence[Any], folds: Sequence[np.ndarray], place: tuple[int, int]
    ) -> tuple[np.ndarray, ...]:
        """Scores of P and of U by the models of one condition and λ that did not see the row."""
        condition, lam = place
        weights, biases = self.weights[:, condition, lam], self.biases[condition, lam]
        return tuple(
            to_numpy(rows @ weights[:, :-1] + biases[:-1])[np.arange(len(fold)), fold]
            for rows, fold in zip(features, folds)
        )


def cross_validate(
    features: Sequence[Any],
    folds: Sequence[np.ndarray],
    risk: Risk,
    lams: np.ndarray,
    criterion: str | Loss | None = None,
    closed_form: bool = False,
    record: Sequence[int] = (),
    **training: Any,
) -> CrossValidation:
    """Fit conditions × λ × (folds + the final model), and score them on held-out rows.

    ``features`` and ``folds`` are those of P and of U, ``criterion`` is the loss of the
    held-out risk (by default the training loss). With ``closed_form`` a convex quadratic risk is
    solved; else the models are the columns of one link, and the rest goes to :func:`train`.
    """
    solved = solve_stack(features, folds, risk, lams) if closed_form else None
    if solved is not None:
        W, b, progress = *solved, np.empty((0, *solved[1].shape))
    else:
        W, b, progress = _train_stack(features, folds, risk, lams, record, training)
    shape = b.shape
    stacked = [one for one in risk.conditions for _ in lams]
    held_out = stacked, risk.loss if criterion is None else criterion, risk.kind
    by_fold = []
    for k in range(shape[-1] - 1):
        of_fold = W[..., k].reshape(len(W), -1), b[..., k].reshape(-1)
        # Only the rows that the fold left out are scored.
        left = (take_rows(X, np.flatnonzero(fold == k)) for X, fold in zip(features, folds))
        scores_p, scores_u = (X @ of_fold[0] + of_fold[1] for X in left)
        by_fold.append(to_numpy(evaluate_risk(scores_p, scores_u, *held_out)))
    risks = np.mean(by_fold, axis=0).reshape(shape[:2])
    return CrossValidation(risks, W, b, progress)


def _train_stack(
    features: Sequence[Any],
    folds: Sequence[np.ndarray],
    risk: Risk,
    lams: np.ndarray,
    record: Sequence[int],
    training: Mapping[str, Any],
) -> tuple[Any, Any, np.ndarray]:
    """Train all models as the columns of one link; return weights, biases and training risks."""
    conditions, n_folds = risk.conditions, int(folds[0].max()) + 1
    shape = (len(conditions), len(lams), n_folds + 1)
    stacked = [one for one in conditions for _ in range(len(lams) * (n_folds + 1))]
    model = LinearModel(features[0].shape[1], len(stacked), dtype=features[0].dtype)
    model.to_device(device_of(features[0]).name)
    repeats = (1, len(conditions) * len(lams))
    weights = [np.tile(training_weights(fold, n_folds, model.W.dtype), repeats) for fold in folds]
    features_p, features_u = features
    result = train(
        model,
        features_p,
        features_u,
        replace(risk, condition=stacked),
        lam=np.tile(np.repeat(lams, n_folds + 1), len(conditions)),
        weights_p=weights[0],
        weights_u=weights[1],
        record=record,
        **training,
    )
    W, b = model.W.array.reshape(-1, *shape), model.b.array.reshape(shape)
    return W, b, result.risks.reshape(-1, *shape)
