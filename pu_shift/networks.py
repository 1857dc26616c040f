"""Neural networks for the PU risks: a multilayer perceptron and the loop that trains any chain."""

from __future__ import annotations

from typing import Any

import numpy as np

from pu_shift._chainer import chainer
from pu_shift._checks import non_negative, one_of, positive, positive_int
from pu_shift._seeds import Seed, child
from pu_shift.device import on_device
from pu_shift.kernels import as_rows, row_blocks, take_rows
from pu_shift.losses import Loss
from pu_shift.priors import Condition
from pu_shift.risks import CORRECTIONS, nnpu_risk, pu_shift_risk
from pu_shift.training import epochs


class MLP(chainer.Chain):
    """Multilayer perceptron with ReLU and batch normalisation (Kiryo et al., 2017).

    The default is their network for MNIST: four hidden layers of 300 units.

    Parameters
    ----------
    n_features
        Number of input features.
    n_units
        Units of each hidden layer.
    n_hidden
        Number of hidden layers.
    seed
        Seed of the initial weights, drawn with variance 2/(inputs of the layer).

    Examples
    --------
    >>> model = MLP(2, n_units=8, n_hidden=1)
    >>> model(np.zeros((3, 2), dtype=np.float32)).shape
    (3,)
    """

    def __init__(
        self, n_features: int, n_units: int = 300, n_hidden: int = 4, seed: Seed = 0
    ) -> None:
        super().__init__()
        self.n_features = positive_int("n_features", n_features)
        self.n_units = positive_int("n_units", n_units)
        self.n_hidden = positive_int("n_hidden", n_hidden)
        rng = np.random.default_rng(child(seed))
        sizes = [n_features, *[n_units] * n_hidden, 1]
        with chainer.using_config("dtype", np.dtype(np.float32)), self.init_scope():
            for layer, (n_in, n_out) in enumerate(zip(sizes, sizes[1:])):
                scale = (2.0 / n_in) ** 0.5
                weights = rng.normal(0.0, scale, (n_out, n_in)).astype(np.float32)
                # Batch normalisation has a bias of its own.
                last = layer == n_hidden
                linear = chainer.links.Linear(n_in, n_out, nobias=not last, initialW=weights)
                setattr(self, f"linear{layer}", linear)
                if not last:
                    setattr(self, f"norm{layer}", chainer.links.BatchNormalization(n_out))

    def forward(self, x: Any) -> chainer.Variable:
        """Score rows: (n,)."""
        for layer in range(self.n_hidden):
            x = getattr(self, f"norm{layer}")(getattr(self, f"linear{layer}")(x))
            x = chainer.functions.relu(x)
        return getattr(self, f"linear{self.n_hidden}")(x)[:, 0]


@np.errstate(over="ignore", invalid="ignore")  # what they lead to is reported at the end
def train_network(
    model: chainer.Link,
    rows_p: Any,
    rows_u: Any,
    condition: Condition,
    *,
    loss: str | Loss = "squared",
    lam: float = 0.0,
    n_steps: int = 500,
    n_batches: int | None = None,
    learning_rate: float = 1e-3,
    correction: str | None = None,
    beta: float = 0.0,
    gamma: float = 1.0,
    seed: Seed = 0,
) -> list[float]:
    """Minimise the PU-shift risk of any Chainer link that scores rows, with AMSGrad.

    P and U of a mini-batch pass through the network together, so that batch
    normalisation treats both alike, as in prediction.

    Parameters
    ----------
    model
        A link that maps (n, d) float32 rows to (n,) or (n, 1) scores; trained
        in place.
    rows_p, rows_u
        Positive and unlabelled rows, on the model's device.
    condition
        π and π′.
    loss, correction, beta, gamma
        The risk: unbiased for ``correction=None``, else as for
        :func:`pu_shift.risks.nnpu_risk`.
    lam
        Weight decay λ ≥ 0.
    n_steps, n_batches, learning_rate, seed
        As for :func:`pu_shift.training.train`.

    Returns
    -------
    list of float
        The risk of the mini-batch at every step.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> P, U = (rng.normal(m, 1, (60, 2)).astype("f") for m in (1.0, 0.0))
    >>> risks = train_network(MLP(2, 8, 1), P, U, Condition(0.3, 0.5), n_steps=50)
    >>> risks[-1] < risks[0]
    True
    """
    rows_p, rows_u = as_rows("rows_p", rows_p), as_rows("rows_u", rows_u)
    for name, rows in (("rows_p", rows_p), ("rows_u", rows_u)):
        if rows.dtype != np.float32:
            raise ValueError(f"{name} must be float32, got {rows.dtype}")
    rows_p, rows_u = (
        on_device(name, rows, model.device)
        for name, rows in (("rows_p", rows_p), ("rows_u", rows_u))
    )
    one_of("correction", correction, CORRECTIONS)
    options: dict[str, Any] = {"loss": loss}
    if correction is not None:
        options.update(
            kind="pu-shift",
            correction=correction,
            beta=non_negative("beta", beta),
            gamma=non_negative("gamma", gamma),
        )
    risk_of = pu_shift_risk if correction is None else nnpu_risk
    optimizer = chainer.optimizers.AMSGrad(alpha=positive("learning_rate", learning_rate))
    optimizer.setup(model)
    if non_negative("lam", lam) > 0.0:
        optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(float(lam)))
    xp = model.xp
    n_p, n_u = len(rows_p), len(rows_u)
    rng = np.random.default_rng(child(seed, 0))
    batches = (
        pair
        for epoch in epochs(n_p, n_u, 1 if n_batches is None else n_batches, rng)
        for pair in epoch
    )
    risks = []
    with chainer.using_config("train", True):
        for _ in range(positive_int("n_steps", n_steps)):
            part_p, part_u = next(batches)
            rows = xp.concatenate([take_rows(rows_p, part_p), take_rows(rows_u, part_u)])
            scores = _scores(model, rows)
            risk = risk_of(scores[: len(part_p)], scores[len(part_p) :], condition, **options)
            model.cleargrads()
            risk.backward()
            optimizer.update()
            risks.append(float(risk.array))
    if not all(bool(xp.isfinite(parameter.array).all()) for parameter in model.params()):
        raise ValueError("rows must be scaled, or learning_rate lowered: the training diverged")
    return risks


def score_rows(model: chainer.Link, X: Any) -> Any:
    """Score rows with a trained link, in blocks and without a graph.

    Parameters
    ----------
    model
        A link that scores rows.
    X
        (n, d) rows on the model's device.

    Returns
    -------
    array
        (n,) scores.

    Examples
    --------
    >>> score_rows(MLP(2, 8, 1), np.zeros((3, 2), dtype=np.float32)).shape
    (3,)
    """
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        return model.xp.concatenate([_scores(model, block).array for block in row_blocks(X, 8192)])


def _scores(model: chainer.Link, rows: Any) -> chainer.Variable:
    scores = model(rows)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.shape != (len(rows),):
        raise ValueError(
            f"model must give one score per row, got shape {scores.shape} for {len(rows)} rows"
        )
    return scores
