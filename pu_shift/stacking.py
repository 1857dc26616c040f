"""Cross-validation of linear-in-parameter models in one training run.

Conditions × λ × (folds + the final model) are the columns of one stack, see
:mod:`pu_shift.training`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pu_shift.device import beside, to_numpy
from pu_shift.links import LinearModel
from pu_shift.losses import Loss
from pu_shift.priors import Condition
from pu_shift.risks import evaluate_risk
from pu_shift.training import train


@dataclass(frozen=True)
class CrossValidation:
    """Models of every condition, λ and fold, and their held-out risks.

    Attributes
    ----------
    risks : numpy.ndarray
        (conditions, λ) held-out PU-shift risks, averaged over the folds.
    weights : array
        (features, conditions, λ, folds + 1); the last of the last axis are the
        models of all rows.
    biases : array
        (conditions, λ, folds + 1).
    """

    risks: np.ndarray
    weights: Any
    biases: Any


def cross_validate(
    features: Sequence[Any],
    conditions: Sequence[Condition],
    lams: Sequence[float] | np.ndarray,
    fold_weights: Sequence[Any],
    device: Any,
    *,
    loss: str | Loss = "squared",
    criterion: str | Loss | None = None,
    initial_w: Any = 0.0,
    **options: Any,
) -> CrossValidation:
    """Train every candidate on every fold side by side, and score it on the rows left out.

    Parameters
    ----------
    features
        The features of P and of U, floating arrays on the device.
    conditions
        The conditions; each is trained by its PU-shift risk.
    lams
        Candidates λ.
    fold_weights
        Training weights of P and of U, host arrays, see
        :func:`pu_shift.selection.training_weights`.
    device
        See :func:`pu_shift.device.get_device`.
    loss
        The training loss.
    criterion
        The loss of the held-out risk; the training loss by default.
    initial_w
        Start of the weights: a number, or a host array of one weight per
        feature, (features, 1), that all candidates share.
    **options
        Further arguments of :func:`pu_shift.training.train`.

    Returns
    -------
    CrossValidation
        Risks and models.

    Examples
    --------
    >>> from pu_shift.device import get_device
    >>> from pu_shift.selection import training_weights
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(1.0, 1.0, (40, 2)), rng.normal(0.0, 1.0, (80, 2))
    >>> folds = [training_weights(np.arange(len(X)) % 4, 4) for X in rows]
    >>> result = cross_validate(rows, [Condition(0.3)], [0.0, 1.0], folds, get_device())
    >>> result.risks.shape, result.weights.shape
    ((1, 2), (2, 1, 2, 5))
    """
    xp = device.xp
    n_conditions, n_lams, columns = len(conditions), len(lams), fold_weights[0].shape[1]
    stacked = [condition for condition in conditions for _ in range(n_lams * columns)]
    model = LinearModel(
        features[0].shape[1], len(stacked), initial_w=initial_w, dtype=features[0].dtype
    )
    model.to_device(device)
    features_p, features_u = features
    train(
        model,
        features_p,
        features_u,
        stacked,
        loss=loss,
        kind="pu-shift",
        lam=np.tile(np.repeat(lams, columns), n_conditions),
        weights_p=fold_weights[0],
        weights_u=fold_weights[1],
        record=(),
        **options,
    )
    shape = (n_conditions, n_lams, columns)
    weights, biases = model.W.array.reshape(-1, *shape), model.b.array.reshape(shape)
    # Only the rows that a fold left out are scored.
    by_fold = []
    for fold in range(columns - 1):
        W, b = weights[..., fold].reshape(len(weights), -1), biases[..., fold].reshape(-1)
        scores, held_out = [], []
        for rows, training in zip(features, fold_weights):
            left = 1.0 - training[:, fold]
            places = np.flatnonzero(left)
            scores.append(rows[beside(places, rows)] @ W + b)
            held_out.append(beside(left[places], rows))
        by_fold.append(
            evaluate_risk(
                scores[0],
                scores[1],
                stacked[::columns],
                loss if criterion is None else criterion,
                "pu-shift",
                held_out[0],
                held_out[1],
            )
        )
    risks = to_numpy(xp.stack(by_fold)).mean(axis=0).reshape(n_conditions, n_lams)
    return CrossValidation(risks, weights, biases)
