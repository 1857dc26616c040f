r"""AMSGrad over a stack of linear-in-parameter candidates.

AMSGrad works on each parameter alone, so K models trained side by side as the
columns of one (features × K) matrix are the same computation as K models
trained one after the other, and each step is two GEMMs:

.. math:: Z = XW, \qquad \nabla W = X^\top \frac{\partial\widehat R}{\partial Z} + \lambda W.

Candidates may differ in condition, λ and row weights (folds); they share the
features, the loss and the mini-batches. The update is
``chainer.optimizers.AMSGrad``'s, done in place on preallocated buffers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pu_shift._chainer import chainer
from pu_shift._checks import non_negative, one_of, positive, positive_int
from pu_shift._seeds import Seed, child
from pu_shift.kernels import as_rows
from pu_shift.links import LinearModel
from pu_shift.losses import Loss, get_loss
from pu_shift.risks import CORRECTIONS, Conditions, evaluate_risk, risk_weights
from pu_shift.selection import check_grid


@dataclass(frozen=True)
class TrainingResult:
    """What a training run leaves besides the model.

    Attributes
    ----------
    steps : tuple of int
        The steps at which the following were recorded.
    weights : numpy.ndarray
        (len(steps), features, K) weights.
    biases : numpy.ndarray
        (len(steps), K) biases.
    risks : numpy.ndarray
        (len(steps), K) unbiased training risk on all weighted rows, without
        the penalty.
    objectives : numpy.ndarray
        (len(steps), K) training risk plus λ/2‖w‖².
    """

    steps: tuple[int, ...]
    weights: np.ndarray
    biases: np.ndarray
    risks: np.ndarray
    objectives: np.ndarray


@np.errstate(over="ignore", invalid="ignore")  # what they lead to is reported at the end
def train(
    model: LinearModel,
    features_p: Any,
    features_u: Any,
    condition: Conditions,
    *,
    loss: str | Loss = "squared",
    kind: str = "pu-shift-asym",
    lam: float | Iterable[float] = 0.0,
    n_steps: int = 500,
    n_batches: int | None = None,
    learning_rate: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    decay_bias: bool = False,
    correction: str | None = None,
    beta: float = 0.0,
    gamma: float = 1.0,
    weights_p: Any = None,
    weights_u: Any = None,
    record: Iterable[int] | None = None,
    seed: Seed = 0,
) -> TrainingResult:
    r"""Minimise the regularised risk of every candidate with AMSGrad.

    .. math:: \min_{w,b}\; \widehat R(g) + \frac{\lambda}{2}\|w\|^2

    Parameters
    ----------
    model
        The candidates; its parameters are the start and are replaced by the
        result.
    features_p, features_u
        ``model.features(x)`` of the positive and of the unlabelled rows, of
        the model's dtype and device.
    condition
        One condition for all candidates or one for each.
    loss, kind, correction, beta, gamma
        The risk, as for :func:`pu_shift.risks.nnpu_risk`; ``correction=None``
        is the unbiased risk.
    lam
        λ ≥ 0, one for all candidates or one for each. Its gradient is λw, as
        Chainer's ``WeightDecay`` adds it.
    n_steps
        Number of updates.
    n_batches
        Mini-batches per epoch: P and U are shuffled and each is cut into that
        many parts. ``None`` takes all rows in every step. Rows of weight 0
        leave a batch smaller for that candidate.
    learning_rate, beta1, beta2, eps
        AMSGrad's parameters, by Chainer's defaults.
    decay_bias
        Whether λ applies to the bias too.
    weights_p, weights_u
        Row weights, (n,) or (n, K).
    record
        Steps at which weights and risks are recorded; by default the last.
    seed
        Seed of the mini-batches.

    Returns
    -------
    TrainingResult
        Snapshots and risks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_p = rng.normal(1.0, 1.0, (50, 2)).astype(np.float32)
    >>> X_u = rng.normal(0.0, 1.0, (200, 2)).astype(np.float32)
    >>> model = LinearModel(2, n_candidates=2)
    >>> from pu_shift.priors import Condition
    >>> result = train(model, X_p, X_u, Condition(0.3, 0.5), lam=[0.0, 0.1], record=[0, 500])
    >>> bool((result.objectives[1] < result.objectives[0]).all())
    True
    """
    loss = get_loss(loss)
    if loss.name == "zero_one":
        raise ValueError("loss must have a gradient to be trained, got 'zero_one'")
    state = _Stack(
        model,
        features_p,
        features_u,
        condition,
        loss,
        kind,
        lam,
        decay_bias,
        one_of("correction", correction, CORRECTIONS),
        non_negative("beta", beta),
        non_negative("gamma", gamma),
        weights_p,
        weights_u,
    )
    n_steps = positive_int("n_steps", n_steps, least=0)
    steps = sorted({positive_int("record", s, least=0) for s in record or [n_steps]})
    if steps[-1] > n_steps:
        raise ValueError(f"record must not go beyond n_steps = {n_steps}, got {steps[-1]}")
    learning_rate = positive("learning_rate", learning_rate)
    batches = state.batches(n_batches, np.random.default_rng(child(seed, 0)))
    snapshots, risks, objectives = [], [], []
    for step in range(n_steps + 1):
        if step in steps:
            # Recorded before the update that would follow: after `step` updates.
            snapshots.append(chainer.backends.cuda.to_cpu(state.parameters).copy())
            risk = state.risk()
            risks.append(chainer.backends.cuda.to_cpu(risk))
            objectives.append(chainer.backends.cuda.to_cpu(risk + state.penalty()))
        if step < n_steps:
            # Chainer's bias correction sits in the step size.
            fix1, fix2 = 1.0 - beta1 ** (step + 1), 1.0 - beta2 ** (step + 1)
            state.update(next(batches), learning_rate * fix2**0.5 / fix1, beta1, beta2, eps)
    if not bool(model.xp.isfinite(state.parameters).all()):
        raise ValueError("features must be scaled, or learning_rate lowered: the training diverged")
    model.W.array[...] = state.parameters[:-1]
    model.b.array[...] = state.parameters[-1]
    snapshots = np.stack(snapshots)
    return TrainingResult(
        tuple(steps), snapshots[:, :-1], snapshots[:, -1], np.stack(risks), np.stack(objectives)
    )


def epochs(
    n_p: int, n_u: int, n_batches: int, rng: np.random.Generator
) -> Iterator[list[tuple[np.ndarray, np.ndarray]]]:
    """Cut P and U into mini-batches at random, anew for each epoch, for ever.

    Parameters
    ----------
    n_p, n_u
        Numbers of rows.
    n_batches
        Mini-batches per epoch, at most as many as the smaller sample has rows.
    rng
        The source of the permutations.

    Returns
    -------
    iterator of list
        For each epoch the rows of P and of U of every mini-batch.

    Examples
    --------
    >>> epoch = next(epochs(4, 6, 2, np.random.default_rng(0)))
    >>> [(len(rows_p), len(rows_u)) for rows_p, rows_u in epoch]
    [(2, 3), (2, 3)]
    """
    positive_int("n_batches", n_batches)
    if n_batches > min(n_p, n_u):
        raise ValueError(
            f"n_batches must not exceed the rows of P and U, {n_p} and {n_u}, got {n_batches}"
        )
    while True:
        parts_p = np.array_split(rng.permutation(n_p), n_batches)
        parts_u = np.array_split(rng.permutation(n_u), n_batches)
        yield list(zip(parts_p, parts_u))


class _Stack:
    """The candidates' parameters and buffers; bias and weights in one matrix.

    The rows of P and U form one matrix with a column of ones, so that forward
    and backward are one GEMM each, bias included.
    """

    def __init__(
        self,
        model: LinearModel,
        features_p: Any,
        features_u: Any,
        condition: Conditions,
        loss: Loss,
        kind: str,
        lam: float | Iterable[float],
        decay_bias: bool,
        correction: str | None,
        beta: float,
        gamma: float,
        weights_p: Any,
        weights_u: Any,
    ) -> None:
        self.xp = xp = model.xp
        self.dtype = dtype = model.W.dtype
        n_features, n_candidates = model.W.shape
        for name, features in (("features_p", features_p), ("features_u", features_u)):
            as_rows(name, features)
            if features.shape[1] != n_features or features.dtype != dtype:
                raise ValueError(
                    f"{name} must be model.features(x): {n_features} columns of {dtype}, "
                    f"got {features.shape[1]} of {features.dtype}"
                )
        self.n_p, self.n_u = len(features_p), len(features_u)
        self.rows = xp.ones((self.n_p + self.n_u, n_features + 1), dtype=dtype)
        self.rows[: self.n_p, :-1] = features_p
        self.rows[self.n_p :, :-1] = features_u
        self.parameters = xp.concatenate([model.W.array, model.b.array[None]])
        self.condition, self.loss, self.kind = condition, loss, kind
        self.correction, self.beta, self.gamma = correction, beta, gamma
        weights = risk_weights(condition, kind)
        if len(weights[0]) not in (1, n_candidates):
            raise ValueError(
                f"condition must be one or one per candidate, "
                f"got {len(weights[0])} for {n_candidates} candidates"
            )
        self.prior, self.a, self.b = (
            xp.asarray(np.broadcast_to(array, n_candidates), dtype=dtype) for array in weights
        )
        lams = check_grid("lam", lam, allow_zero=True)
        if len(lams) not in (1, n_candidates):
            raise ValueError(
                f"lam must be one number or one per candidate, "
                f"got {len(lams)} for {n_candidates} candidates"
            )
        self.lam = xp.asarray(np.broadcast_to(lams, n_candidates), dtype=dtype)
        self.decay_bias = decay_bias
        self.row_weights = self._row_weights(weights_p, weights_u, n_candidates)
        self.m, self.v, self.v_max = (xp.zeros_like(self.parameters) for _ in range(3))
        self.gradient, self.spare = (xp.empty_like(self.parameters) for _ in range(2))
        self.buffers: dict[int, tuple[Any, Any]] = {}

    def _row_weights(self, weights_p: Any, weights_u: Any, n_candidates: int) -> Any:
        """(n_p + n_u, K) weights, or ``None`` when all are 1."""
        if weights_p is None and weights_u is None:
            return None
        xp = self.xp
        parts = []
        for name, weights, n in (
            ("weights_p", weights_p, self.n_p),
            ("weights_u", weights_u, self.n_u),
        ):
            part = xp.ones(n) if weights is None else xp.asarray(weights)
            if part.shape not in ((n,), (n, n_candidates)):
                raise ValueError(
                    f"{name} must have shape {(n,)} or {(n, n_candidates)}, got {part.shape}"
                )
            if bool((~xp.isfinite(part)).any()) or bool((part < 0).any()):
                raise ValueError(f"{name} must be non-negative and finite")
            if not bool((part.sum(axis=0) > 0).all()):
                raise ValueError(f"{name} must have a positive sum for each candidate")
            part = part[:, None] if part.ndim == 1 else part
            parts.append(xp.broadcast_to(part, (n, n_candidates)))
        return xp.concatenate(parts).astype(self.dtype)

    def batches(
        self, n_batches: int | None, rng: np.random.Generator
    ) -> Iterator[tuple[Any, Any, int]]:
        """Yield (rows, row weights, number of positive rows) for ever."""
        if n_batches is None:
            while True:
                yield self.rows, self.row_weights, self.n_p
        for pairs in epochs(self.n_p, self.n_u, n_batches, rng):
            # One gather per epoch leaves every batch a contiguous slice.
            order = np.concatenate(
                [part for part_p, part_u in pairs for part in (part_p, part_u + self.n_p)]
            )
            order = self.xp.asarray(order)
            rows = self.rows[order]
            weights = None if self.row_weights is None else self.row_weights[order]
            start = 0
            for part_p, part_u in pairs:
                stop = start + len(part_p) + len(part_u)
                yield (
                    rows[start:stop],
                    None if weights is None else weights[start:stop],
                    len(part_p),
                )
                start = stop

    def update(
        self,
        batch: tuple[Any, Any, int],
        step_size: float,
        beta1: float,
        beta2: float,
        eps: float,
    ) -> None:
        """One AMSGrad step, all in place."""
        xp = self.xp
        rows, weights, n_p = batch
        scores, slopes = self._buffers(len(rows))
        xp.matmul(rows, self.parameters, out=scores)
        self._slopes(scores, slopes, weights, n_p)
        gradient, spare = self.gradient, self.spare
        xp.matmul(rows.T, slopes, out=gradient)
        decayed = slice(None) if self.decay_bias else slice(None, -1)
        xp.multiply(self.parameters[decayed], self.lam, out=spare[decayed])
        gradient[decayed] += spare[decayed]
        # m += (1 − β₁)(g − m);  v += (1 − β₂)(g² − v);  v̂ = max(v̂, v)
        xp.subtract(gradient, self.m, out=spare)
        spare *= 1.0 - beta1
        self.m += spare
        gradient *= gradient
        gradient -= self.v
        gradient *= 1.0 - beta2
        self.v += gradient
        xp.maximum(self.v_max, self.v, out=self.v_max)
        xp.sqrt(self.v_max, out=spare)
        spare += eps
        xp.divide(self.m, spare, out=spare)
        spare *= step_size
        self.parameters -= spare

    def _slopes(self, scores: Any, slopes: Any, weights: Any, n_p: int) -> None:
        """∂R̂/∂Z into ``slopes``; ``scores`` is used up.

        For a linear-odd loss ℓ′(z) + ℓ′(−z) = −1, so that with
        q(z) = dℓ(−z)/dz the slope of the risk is (a − bπ)q − a on a positive
        row and bq on an unlabelled one: one evaluation of the loss serves both.
        """
        xp = self.xp
        a, b = self.a, self.b
        n_u = len(scores) - n_p
        if weights is None:
            total_p, total_u = float(n_p), float(n_u)
        else:
            # A batch may hold no row that counts for some candidate.
            total_p = xp.maximum(weights[:n_p].sum(axis=0), 1e-30)
            total_u = xp.maximum(weights[n_p:].sum(axis=0), 1e-30)
        if self.correction is not None:
            a, b = self._corrected(scores, weights, n_p, total_p, total_u)
        if self.loss.linear_odd:
            _slope_of_negative(xp, self.loss, scores, slopes)
            slopes[:n_p] *= (a - b * self.prior) / total_p
            slopes[:n_p] -= a / total_p
            slopes[n_p:] *= b / total_u
        else:
            slopes[...] = -self.loss.derivative(-scores)
            slopes[:n_p] *= -b * self.prior / total_p
            slopes[:n_p] += self.loss.derivative(scores[:n_p]) * (a / total_p)
            slopes[n_p:] *= b / total_u
        if weights is not None:
            slopes *= weights

    def _corrected(
        self, scores: Any, weights: Any, n_p: int, total_p: Any, total_u: Any
    ) -> tuple[Any, Any]:
        """Return the weights a and b that the gradient sees under a correction."""
        xp = self.xp
        losses = self.loss.value(-scores)
        if weights is not None:
            losses *= weights
        negative = losses[n_p:].sum(axis=0) / total_u
        negative -= self.prior * losses[:n_p].sum(axis=0) / total_p
        if self.correction == "max":
            return self.a, xp.where(negative > 0.0, self.b, xp.zeros_like(self.b))
        ascend = negative < -self.beta
        a = xp.where(ascend, xp.zeros_like(self.a), self.a)
        return a, xp.where(ascend, -self.gamma * self.b, self.b)

    def _buffers(self, n: int) -> tuple[Any, Any]:
        """Two (n, K) buffers; the few batch sizes of a run each keep theirs."""
        if n not in self.buffers:
            shape = (n, self.parameters.shape[1])
            self.buffers[n] = tuple(self.xp.empty(shape, dtype=self.dtype) for _ in range(2))
        return self.buffers[n]

    def risk(self) -> Any:
        """Unbiased risk of every candidate on all its rows: (K,)."""
        scores = self.xp.matmul(self.rows, self.parameters)
        weights = self.row_weights
        return evaluate_risk(
            scores[: self.n_p],
            scores[self.n_p :],
            self.condition,
            self.loss,
            self.kind,
            None if weights is None else weights[: self.n_p],
            None if weights is None else weights[self.n_p :],
        )

    def penalty(self) -> Any:
        """λ/2‖w‖² of every candidate: (K,)."""
        decayed = self.parameters if self.decay_bias else self.parameters[:-1]
        return 0.5 * self.lam * (decayed**2).sum(axis=0)


def _slope_of_negative(xp: Any, loss: Loss, z: Any, out: Any) -> None:
    """q(z) = dℓ(−z)/dz = 1 + ℓ′(z) of a linear-odd loss, into ``out``.

    The paper's two losses are written out: they are the inner loop.
    """
    if loss.name == "squared":
        xp.add(z, 1.0, out=out)
        out *= 0.5
    elif loss.name == "double_hinge":
        # 0, ½, 1 on z < −1, −1 ≤ z < 1, z ≥ 1: half of [z ≥ −1] + [z ≥ 1].
        xp.greater_equal(z, -1.0, out=out, casting="unsafe")
        out += z >= 1.0
        out *= 0.5
    else:
        out[...] = loss.derivative(z)
        out += 1.0
