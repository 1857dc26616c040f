"""Risk minimisation as one would write it without this package: Chainer, and PyTorch.

Both minimise a·mean ℓ(g) on P + b·(mean ℓ(−g) on U − π·mean ℓ(−g) on P) + λ/2‖w‖².
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from pu_shift._chainer import chainer
from pu_shift.risks import risk_weights
from pu_shift.training import pooled_batches

F = chainer.functions


def _double_hinge(z: Any) -> Any:
    return F.maximum(-z, F.maximum(0.0 * z, 0.5 - 0.5 * z))


def _squared(z: Any) -> Any:
    return 0.25 * (1.0 - z) ** 2


CHAINER_LOSSES = {"double_hinge": _double_hinge, "squared": _squared}


class Classifier(chainer.Chain):
    """A linear model that returns its PU-shift risk on rows with t = 1 (P) or −1 (U)."""

    def __init__(self, n_features: int, condition: Any, loss: str) -> None:
        super().__init__()
        self.weights = [float(value[0]) for value in risk_weights(condition, "pu-shift")]
        self.loss = CHAINER_LOSSES[loss]
        with self.init_scope():
            self.linear = chainer.links.Linear(n_features, 1, initialW=0.0)

    def forward(self, x: np.ndarray, t: np.ndarray) -> chainer.Variable:
        """Return the risk of a mini-batch."""
        prior, a, b = self.weights
        positive = (t == 1).astype(np.float32)[:, None]
        unlabeled = (t == -1).astype(np.float32)[:, None]
        n_p, n_u = max(1.0, positive.sum()), max(1.0, unlabeled.sum())
        scores = self.linear(x)
        loss_p, loss_n = self.loss(scores), self.loss(-scores)
        negative = F.sum(loss_n * (unlabeled / n_u - prior * positive / n_p))
        return a * F.sum(loss_p * positive) / n_p + b * negative


def one_by_one_chainer(
    rows: tuple[np.ndarray, np.ndarray],
    folds: tuple[np.ndarray, np.ndarray],
    candidates: Sequence[tuple[Any, float, int]],
    loss: str,
    n_steps: int,
    n_batches: int,
    seed: Any,
) -> np.ndarray:
    """Train one model after the other with Trainer, StandardUpdater and AMSGrad.

    A candidate is (condition, λ, fold): the fold's rows are left out, none for
    −1. Those without a fold see the mini-batches of the stacked training, the
    others shuffle for themselves.
    """
    parameters = []
    for condition, lam, fold in candidates:
        x = np.concatenate([part[fold_of != fold] for part, fold_of in zip(rows, folds)])
        n_p, n_u = (int((fold_of != fold).sum()) for fold_of in folds)
        t = np.repeat(np.array([1, -1], dtype=np.int32), [n_p, n_u])
        batches = pooled_batches(n_p, n_u, n_batches, np.random.default_rng(seed))
        iterator = chainer.iterators.SerialIterator(
            chainer.datasets.TupleDataset(x, t),
            (n_p + n_u) // n_batches,
            order_sampler=lambda *_, batches=batches: _order(batches, n_batches),
        )
        model = Classifier(x.shape[1], condition, loss)
        optimizer = chainer.optimizers.AMSGrad()
        optimizer.setup(model)
        model.linear.W.update_rule.add_hook(chainer.optimizer_hooks.WeightDecay(lam))
        updater = chainer.training.StandardUpdater(iterator, optimizer)
        chainer.training.Trainer(updater, (n_steps, "iteration")).run()
        parameters.append(np.append(model.linear.W.array, model.linear.b.array))
    return np.stack(parameters, axis=1)


def _order(batches: Iterator[tuple[np.ndarray, int]], n_batches: int) -> np.ndarray:
    """Return the rows of an epoch, mini-batch after mini-batch."""
    return np.concatenate([rows for rows, _ in islice(batches, n_batches)])


def stacked_torch(
    rows: tuple[np.ndarray, np.ndarray],
    fold_weights: tuple[np.ndarray, np.ndarray],
    conditions: Sequence[Any],
    lams: np.ndarray,
    loss: str,
    n_steps: int,
    n_batches: int,
    seed: Any,
) -> np.ndarray:
    """Train all candidates as the columns of one matrix, with autograd and fused Adam."""
    import torch

    losses = {
        "squared": lambda z: 0.25 * (1.0 - z) ** 2,
        # Twice as fast as torch.maximum, whose gradient shares ties.
        "double_hinge": lambda z: torch.relu(0.5 - 0.5 * z) + torch.relu(-0.5 - 0.5 * z),
    }
    value = losses[loss]
    n_p, n_u = (len(part) for part in rows)
    x = torch.from_numpy(np.concatenate(rows))
    w = torch.from_numpy(np.concatenate(fold_weights))
    prior, a, b = (
        torch.from_numpy(value.astype(np.float32)) for value in risk_weights(conditions, "pu-shift")
    )
    decay = torch.from_numpy(lams.astype(np.float32))
    W = torch.zeros(x.shape[1], len(conditions), requires_grad=True)
    bias = torch.zeros(len(conditions), requires_grad=True)
    optimizer = torch.optim.Adam([W, bias], lr=1e-3, amsgrad=True, fused=True)
    for order, m in islice(
        pooled_batches(n_p, n_u, n_batches, np.random.default_rng(seed)), n_steps
    ):
        x_batch, weights = (array[torch.from_numpy(order)] for array in (x, w))
        scores = torch.addmm(bias, x_batch, W)
        w_p = weights[:m] / weights[:m].sum(0)
        w_u = weights[m:] / weights[m:].sum(0)
        negative = (w_u * value(-scores[m:])).sum(0) - prior * (w_p * value(-scores[:m])).sum(0)
        risk = a * (w_p * value(scores[:m])).sum(0) + b * negative
        objective = (risk + 0.5 * decay * (W**2).sum(0)).sum()
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
    return torch.cat([W.detach(), bias.detach()[None]]).numpy()
