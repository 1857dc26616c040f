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
from typing import Any, NamedTuple

import numpy as np

from pu_shift._checks import below_one, non_negative, one_of, positive, positive_int
from pu_shift._seeds import Seed, child
from pu_shift.device import beside, on_device, to_numpy
from pu_shift.kernels import as_rows
from pu_shift.links import LinearModel
from pu_shift.losses import Loss, get_loss
from pu_shift.risks import CORRECTIONS, Conditions, evaluate_risk, risk_weights
from pu_shift.selection import check_grid

# Entries of each parameter array that AMSGrad updates at a time, so that the
# thirteen passes over them stay in the processor's cache.
CACHED = 32768

# q(z) = dℓ(−z)/dz of the paper's two losses, the inner loop, starts from
# z/2 + shift: (z + 1)/2 is the squared loss's q, and ⌊(z + 3)/2⌋ within 0 … 2 is
# twice the double hinge's.
HALF_SHIFTS = {"squared": 0.5, "double_hinge": 1.5}


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
    train_bias: bool = True,
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
    train_bias
        Whether the bias is trained, or stays as it is.
    weights_p, weights_u
        Row weights, (n,) or (n, K); or (n, F) for a divisor F of K, whose
        columns are then repeated.
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
        train_bias,
        one_of("correction", correction, CORRECTIONS),
        non_negative("beta", beta),
        non_negative("gamma", gamma),
        weights_p,
        weights_u,
    )
    n_steps = positive_int("n_steps", n_steps, least=0)
    record = [n_steps] if record is None else record
    steps = sorted({positive_int("record", s, least=0) for s in record})
    if steps and steps[-1] > n_steps:
        raise ValueError(f"record must not go beyond n_steps = {n_steps}, got {steps[-1]}")
    learning_rate, eps = positive("learning_rate", learning_rate), positive("eps", eps)
    beta1, beta2 = below_one("beta1", beta1), below_one("beta2", beta2)
    batches = state.batches(n_batches, np.random.default_rng(child(seed, 0)))
    snapshots, risks, objectives = [], [], []
    for step in range(n_steps + 1):
        if step in steps:
            # Recorded before the update that would follow: after `step` updates.
            snapshots.append(to_numpy(state.parameters).copy())
            risk = state.risk()
            risks.append(to_numpy(risk))
            objectives.append(to_numpy(risk + state.penalty()))
        if step < n_steps:
            # Chainer's bias correction sits in the step size.
            fix1, fix2 = 1.0 - beta1 ** (step + 1), 1.0 - beta2 ** (step + 1)
            state.update(next(batches), learning_rate * fix2**0.5 / fix1, beta1, beta2, eps)
    # An infinite v̂ would leave the weights where they are, without a word.
    if not all(bool(model.xp.isfinite(part).all()) for part in (state.parameters, state.v_max)):
        raise ValueError("features must be scaled, or learning_rate lowered: the training diverged")
    model.W.array[...] = state.parameters[:-1]
    model.b.array[...] = state.parameters[-1]
    recorded = np.reshape(snapshots, (len(steps), *state.parameters.shape))
    shape = len(steps), state.parameters.shape[1]
    return TrainingResult(
        tuple(steps),
        recorded[:, :-1],
        recorded[:, -1],
        np.reshape(risks, shape),
        np.reshape(objectives, shape),
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
    cuts = [_cuts(n_p, n_batches), _cuts(n_u, n_batches)]
    while True:
        rows_p, rows_u = rng.permutation(n_p), rng.permutation(n_u)
        yield [(rows_p[part_p], rows_u[part_u]) for part_p, part_u in zip(*cuts)]


def _cuts(n: int, n_parts: int) -> list[slice]:
    """Cut n rows into parts whose sizes differ by one at most, the larger ones first."""
    size, larger = divmod(n, n_parts)
    edges = [part * size + min(part, larger) for part in range(n_parts + 1)]
    return [slice(*pair) for pair in zip(edges, edges[1:])]


class _Batch(NamedTuple):
    """A mini-batch: rows of P, then of U.

    ``places`` tells which row of weights each has: row i of ``patterns`` is place
    i for a positive row, and place ``len(patterns) + i`` for an unlabelled one.
    ``totals`` are the sums of the weights of the P rows and of the U rows, (2, K). As long
    as no correction acts, the slope at each place is q (twice q for the double hinge) times
    ``factors``, for a positive row less the ``shares`` of its pattern.
    """

    rows: Any
    n_p: int
    patterns: Any
    places: Any
    totals: Any
    factors: Any
    shares: Any


class _Reach:
    """A bound on all scores of a stack, for less than the price of the scores.

    By the Cauchy–Schwarz inequality |z| ≤ ‖x‖‖w‖ + |b|. This is evaluated only when the
    bound, which grows by what each step may add at most, comes to 1 or to 3, where it
    makes a difference to the double hinge. Once the evaluated bound is beyond 3 it is
    followed no longer: it hardly ever returns.
    """

    def __init__(self, features: np.ndarray) -> None:
        n_features, precision = features.shape[1], np.finfo(features.dtype)
        # Sums of n_features + 2 terms are rounded in the scores and in their bound.
        self.rounding = 1.0 + 8.0 * (n_features + 2) * float(precision.eps)
        # A gradient smaller than this has no square.
        self.smallest = float(precision.tiny) ** 0.5
        self.longest = float(np.einsum("ij,ij->i", features, features).max()) ** 0.5
        # What a score changes by at most where every parameter moves by 1.
        self.span = n_features**0.5 * self.longest + 1.0
        self.value, self.limit, self.followed = 0.0, 0.0, True

    def bound(self, parameters: np.ndarray) -> float:
        """Return a number that no |z| exceeds: infinity if it is no longer followed."""
        if self.followed and not self.value < self.limit:
            weights, biases = parameters[:-1], parameters[-1]
            norms = np.sqrt(np.einsum("jk,jk->k", weights, weights))
            self.value = self.rounding * float((self.longest * norms + np.abs(biases)).max())
            self.limit = 1.0 if self.value < 1.0 else 3.0
            self.followed = self.value < 3.0
        return self.value if self.followed else np.inf

    def grow(self, step_size: float, beta1: float, beta2: float, eps: float) -> None:
        """Allow for a step of AMSGrad, with m and v in units of 1 − β₁ and 1 − β₂.

        Again by the Cauchy–Schwarz inequality, |m| ≤ (v/(1 − β₁²/β₂))^½, but for gradients
        whose squares underflow: of these m holds at most the smallest other over 1 − β₁.
        """
        square = beta1 * beta1
        most = 1.0 / (1.0 - square / beta2) ** 0.5 if square < beta2 else np.inf
        most += self.smallest / (1.0 - beta1) / eps
        self.value = self.rounding * (self.value + step_size * most * self.span)


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
        train_bias: bool,
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
            as_rows(name, on_device(name, features, model.device))
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
            beside(np.broadcast_to(array, n_candidates), model.b.array, dtype) for array in weights
        )
        lams = check_grid("lam", lam, allow_zero=True)
        if len(lams) not in (1, n_candidates):
            raise ValueError(
                f"lam must be one number or one per candidate, "
                f"got {len(lams)} for {n_candidates} candidates"
            )
        self.lam = beside(np.broadcast_to(lams, n_candidates), model.b.array, dtype)
        self.decay_bias, self.train_bias = decay_bias, train_bias
        self.patterns, self.places = self._row_weights(weights_p, weights_u, n_candidates)
        self.factors = self._factors(self.a, self.b)
        # On a device, asking for a number would cost more than it saves.
        followed = loss.name == "double_hinge" and correction is None and xp is np
        self.reach = _Reach(self.rows[:, :-1]) if followed else None
        self.m, self.v, self.v_max = (xp.zeros_like(self.parameters) for _ in range(3))
        self.gradient, self.spare = (xp.empty_like(self.parameters) for _ in range(2))
        self.buffers: dict[int, tuple[Any, Any]] = {}
        self.blocks = self._blocks()

    def _blocks(self) -> list[tuple[Any, ...]]:
        """Cut the parameter arrays into blocks of rows, each with λ of the rows it applies to."""
        n_rows, n_candidates = self.parameters.shape
        size = max(1, CACHED // n_candidates) if self.xp is np else n_rows
        # Written out: NumPy multiplies by a broadcast row three times slower.
        lam = self.xp.tile(self.lam, (min(size, n_rows), 1))
        decayed = n_rows if self.decay_bias and self.train_bias else n_rows - 1
        arrays = self.parameters, self.gradient, self.spare, self.m, self.v, self.v_max
        return [
            (*(array[i : i + size] for array in arrays), lam[: max(0, decayed - i)])
            for i in range(0, n_rows, size)
        ]

    def _row_weights(self, weights_p: Any, weights_u: Any, n_candidates: int) -> tuple[Any, Any]:
        """Return the different rows of weights, (patterns, K), and the places of all rows.

        Folds make few patterns: what depends on the weights is a small table.
        """
        parts = []
        for name, weights, n in (
            ("weights_p", weights_p, self.n_p),
            ("weights_u", weights_u, self.n_u),
        ):
            # On the host: what the device needs of them is a small table.
            part = np.ones(n) if weights is None else to_numpy(weights)
            if part.ndim == 1:
                part = part[:, None]
            columns = part.shape[1] if part.ndim == 2 else 0
            if len(part) != n or not columns or n_candidates % columns:
                raise ValueError(
                    f"{name} must have shape {(n,)} or {(n, n_candidates)}, got {np.shape(weights)}"
                )
            if not np.isfinite(part).all() or (part < 0).any():
                raise ValueError(f"{name} must be non-negative and finite")
            if not (part.sum(axis=0) > 0).all():
                raise ValueError(f"{name} must have a positive sum for each candidate")
            parts.append(part)
        columns = max(part.shape[1] for part in parts)
        if min(part.shape[1] for part in parts) not in (1, columns):
            raise ValueError(
                "weights_u must have one column or as many as weights_p, "
                f"got {parts[1].shape[1]} for {parts[0].shape[1]}"
            )
        rows = np.concatenate([np.broadcast_to(part, (len(part), columns)) for part in parts])
        rows = rows.astype(self.dtype)
        # Compared as bytes: `unique` along an axis is far slower.
        keys = rows.view(np.dtype((np.void, rows.itemsize * columns))).ravel()
        _, first, places = np.unique(keys, return_index=True, return_inverse=True)
        places[self.n_p :] += len(first)
        patterns = np.tile(rows[first], (1, n_candidates // columns))
        return beside(patterns, self.rows), beside(places, self.rows)

    def batches(self, n_batches: int | None, rng: np.random.Generator) -> Iterator[_Batch]:
        """Yield mini-batches for ever."""
        if n_batches is None:
            (whole,) = self._weighted([(self.rows, self.n_p, self.places)])
            while True:
                yield whole
        for pairs in epochs(self.n_p, self.n_u, n_batches, rng):
            # One gather per epoch leaves every batch a contiguous slice.
            order = np.concatenate(
                [part for part_p, part_u in pairs for part in (part_p, part_u + self.n_p)]
            )
            order = beside(order, self.rows)
            rows, places = self.rows.take(order, axis=0), self.places.take(order)
            start, cut = 0, []
            for part_p, part_u in pairs:
                stop = start + len(part_p) + len(part_u)
                cut.append((rows[start:stop], len(part_p), places[start:stop]))
                start = stop
            # Several at once cost little more than one. What is prepared, three numbers for
            # each pattern and candidate, is to be no larger than the scores of a batch.
            size = max(1, len(cut[-1][0]) // (3 * len(self.patterns)))
            for i in range(0, len(cut), size):
                yield from self._weighted(cut[i : i + size])

    def _weighted(self, cut: list[tuple[Any, int, Any]]) -> Iterator[_Batch]:
        """Make mini-batches of their rows, numbers of positive ones, and places."""
        xp, patterns = self.xp, self.patterns
        if len(patterns) > len(cut[0][0]):
            # Weights that hardly repeat: those of the batch are its patterns.
            ((rows, n_p, places),) = cut
            patterns, places = patterns[places % len(patterns)], xp.arange(len(rows))
            places[n_p:] += len(rows)
            cut = [(rows, n_p, places)]
        n = len(patterns)
        counts = xp.concatenate([xp.bincount(places, minlength=2 * n) for _, _, places in cut])
        totals = counts.reshape(-1, n).astype(self.dtype) @ patterns
        # A batch may hold no row that counts for some candidate.
        totals = xp.maximum(totals, 1e-30).reshape(len(cut), 2, -1)
        factors = _by_place(patterns, self.factors / totals)
        shares = _shares(patterns, totals, self.a)
        for (rows, n_p, places), *of_batch in zip(cut, totals, factors, shares):
            yield _Batch(rows, n_p, patterns, places, *of_batch)

    def update(
        self, batch: _Batch, step_size: float, beta1: float, beta2: float, eps: float
    ) -> None:
        """One AMSGrad step, all in place."""
        xp = self.xp
        xp.matmul(batch.rows.T, self._slopes(batch), out=self.gradient)
        if not self.train_bias:
            # Without slope and penalty AMSGrad leaves it where it is.
            self.gradient[-1] = 0.0
        # m and v are kept in units of 1 − β₁ and 1 − β₂, which saves a product each:
        # m ← β₁m + g;  v ← β₂v + g²;  v̂ ← max(v̂, v)
        root = (1.0 - beta2) ** 0.5
        step_size, eps = step_size * (1.0 - beta1) / root, eps / root
        if self.reach is not None:
            self.reach.grow(step_size, beta1, beta2, eps)
        for parameters, gradient, spare, m, v, v_max, penalised in self.blocks:
            n = len(penalised)
            xp.multiply(parameters[:n], penalised, out=spare[:n])
            gradient[:n] += spare[:n]
            m *= beta1
            m += gradient
            gradient *= gradient
            v *= beta2
            v += gradient
            xp.maximum(v_max, v, out=v_max)
            xp.sqrt(v_max, out=spare)
            spare += eps
            xp.divide(m, spare, out=spare)
            spare *= step_size
            parameters -= spare

    def _slopes(self, batch: _Batch) -> Any:
        """∂R̂/∂Z on the rows of a batch.

        For a linear-odd loss ℓ′(z) + ℓ′(−z) = −1, so that with
        q(z) = dℓ(−z)/dz the slope of the risk is (a − bπ)q − a on a positive
        row and bq on an unlabelled one: one evaluation of the loss serves both.
        """
        xp, n_p, factors, shares = self.xp, batch.n_p, batch.factors, batch.shares
        reach = np.inf if self.reach is None else self.reach.bound(self.parameters)
        if reach < 1.0:
            # No row is beyond a kink of the double hinge: twice q is 1, whatever the scores.
            slopes = factors.take(batch.places, axis=0)
            slopes[:n_p] -= shares.take(batch.places[:n_p], axis=0)
            return slopes
        scores, slopes = self._buffers(len(batch.rows))
        shift = HALF_SHIFTS.get(self.loss.name)
        if shift is not None and self.correction is None:
            # The GEMM itself gives z/2 + shift.
            xp.multiply(self.parameters, 0.5, out=self.spare)
            self.spare[-1] += shift
            xp.matmul(batch.rows, self.spare, out=slopes)
        else:
            xp.matmul(batch.rows, self.parameters, out=scores)
            if self.correction is not None:
                a, b = self._corrected(scores, batch)
                factors = _by_place(batch.patterns, self._factors(a, b) / batch.totals)
                shares = _shares(batch.patterns, batch.totals, a)
            if shift is not None:
                xp.multiply(scores, 0.5, out=slopes)
                slopes += shift
            else:
                slopes[...] = -self.loss.derivative(-scores)
        if self.loss.name == "double_hinge":
            xp.floor(slopes, out=slopes)
            if reach >= 3.0:
                xp.clip(slopes, 0.0, 2.0, out=slopes)
        slopes *= factors.take(batch.places, axis=0)
        shares = shares.take(batch.places[:n_p], axis=0)
        if self.loss.linear_odd:
            slopes[:n_p] -= shares
        else:
            slopes[:n_p] += self.loss.derivative(scores[:n_p]) * shares
        return slopes

    def _factors(self, a: Any, b: Any) -> Any:
        """Return what q is multiplied by on the P rows and on the U rows: (2, K)."""
        by_p = a - b * self.prior if self.loss.linear_odd else -b * self.prior
        unit = 0.5 if self.loss.name == "double_hinge" else 1.0
        return unit * self.xp.stack([by_p, b])

    def _corrected(self, scores: Any, batch: _Batch) -> tuple[Any, Any]:
        """Return the weights a and b that the gradient sees under a correction."""
        xp = self.xp
        parts = xp.stack([-self.prior, xp.ones_like(self.prior)])
        weights = _by_place(batch.patterns, parts / batch.totals).take(batch.places, axis=0)
        negative = (self.loss.value(-scores) * weights).sum(axis=0)
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
        weights = self.patterns[self.places % len(self.patterns)]
        return evaluate_risk(
            scores[: self.n_p],
            scores[self.n_p :],
            self.condition,
            self.loss,
            self.kind,
            weights[: self.n_p],
            weights[self.n_p :],
        )

    def penalty(self) -> Any:
        """λ/2‖w‖² of every candidate: (K,)."""
        decayed = self.parameters if self.decay_bias else self.parameters[:-1]
        return 0.5 * self.lam * (decayed**2).sum(axis=0)


def _by_place(patterns: Any, factors: Any) -> Any:
    """Weights at every place, times (..., 2, K) factors of P and U: (..., 2·patterns, K)."""
    by_place = patterns * factors[..., None, :]
    return by_place.reshape(*factors.shape[:-2], -1, factors.shape[-1])


def _shares(patterns: Any, totals: Any, a: Any) -> Any:
    """Share of a on positive rows of every pattern, (..., patterns, K), for (..., 2, K) totals."""
    return patterns * (a / totals[..., 0, :])[..., None, :]
