r"""AMSGrad in Chainer's own terms: one loop for a stack of linear models and for networks.

AMSGrad works on each parameter alone, so K models trained side by side as the columns of one link
are the same computation as K models trained one after the other, and a step is two GEMMs. The
columns may differ in condition, λ and row weights (folds); they share the rows, the loss and the
mini-batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pu_shift._chainer import chainer
from pu_shift._checks import positive, positive_int
from pu_shift._grids import check_grid
from pu_shift._scores import row_weights
from pu_shift._seeds import Seed, child, renamed_seed
from pu_shift.device import beside, on_device, to_numpy
from pu_shift.models import score_rows, scores_of
from pu_shift.ratios.kernels import as_rows, row_chunks
from pu_shift.risks import TwoSampleRisk

# Entries of a parameter updated at a time, so that the passes over them stay in the cache.
CACHED_ENTRIES = 32768


@dataclass(frozen=True)
class TrainingResult:
    """What a training run leaves besides the model.

    Attributes
    ----------
    steps : tuple of int
        The steps at which the following were recorded.
    snapshots : list of dict
        The parameters by their names, as host arrays.
    risks : numpy.ndarray
        (len(steps), K) unbiased risk on all weighted rows, without the penalty; (len(steps),) for
        a model of one column.
    """

    steps: tuple[int, ...]
    snapshots: list[dict[str, np.ndarray]]
    risks: np.ndarray


class AMSGrad(chainer.optimizers.AMSGrad):
    """Chainer's AMSGrad, whose arithmetic on the CPU is done in place."""

    def create_update_rule(self) -> chainer.optimizer.UpdateRule:
        """Return the rule of one parameter."""
        return _InPlaceRule(self.hyperparam)


class _InPlaceRule(chainer.optimizers.adam.AdamRule):
    """Chainer's rule without its temporaries, which cost more than the arithmetic."""

    def update_core_cpu(self, param: Any) -> None:
        if param.grad is None:
            return
        hp, alpha_t = self.hyperparam, self.alpha_t
        arrays = (param.array, param.grad, *(self.state[name] for name in ("m", "v", "vhat")))
        flat = [array.reshape(-1) for array in arrays]
        spare = np.empty(min(CACHED_ENTRIES, len(flat[0])), dtype=param.dtype)
        for start in range(0, len(flat[0]), CACHED_ENTRIES):
            value, grad, m, v, vhat = (part[start : start + CACHED_ENTRIES] for part in flat)
            work = spare[: len(value)]
            m *= hp.beta1
            m += np.multiply(grad, 1.0 - hp.beta1, out=work)
            np.multiply(grad, grad, out=work)
            work *= 1.0 - hp.beta2
            v *= hp.beta2
            v += work
            np.maximum(vhat, v, out=vhat)
            np.sqrt(vhat, out=work)
            work += hp.eps
            np.divide(m, work, out=work)
            work *= alpha_t
            value -= work


class _ColumnDecay:
    """Optimiser hook that adds λw, with a λ for each column, to a gradient."""

    name = "ColumnDecay"
    call_for_each_param = True
    timing = "pre"

    def __init__(self, lam: Any) -> None:
        self.lam = lam

    def __call__(self, rule: Any, param: chainer.Parameter) -> None:
        if param.grad is not None:
            # Products of one chunk stay in the cache.
            size = max(1, CACHED_ENTRIES // max(1, param.size // len(param)))
            for grad, values in zip(row_chunks(param.grad, size), row_chunks(param.array, size)):
                grad += self.lam * values


@np.errstate(
    over="ignore", invalid="ignore"
)  # overflow is reported after training by _check_finite
@renamed_seed
def train(
    model: chainer.Link,
    rows_p: Any,
    rows_u: Any,
    risk: TwoSampleRisk,
    *,
    lam: float | Iterable[float] = 0.0,
    n_steps: int = 500,
    n_batches: int | None = None,
    learning_rate: float = 1e-3,
    weights_p: Any = None,
    weights_u: Any = None,
    record: Iterable[int] | None = None,
    random_state: Seed = 0,
) -> TrainingResult:
    r"""Minimise the regularised risk of a link, or of every column of it, with AMSGrad.

    .. math:: \min_{w,b}\; \widehat R(g) + \frac{\lambda}{2}\|w\|^2

    Parameters
    ----------
    model
        A link that maps rows to (n,), (n, 1) or (n, K) scores; trained in place.
    rows_p, rows_u
        Positive and unlabelled rows, of the model's dtype and on its device.
    risk
        What is minimised.
    lam
        λ ≥ 0, one for all columns or one for each. Its gradient is λw, as Chainer's
        ``WeightDecay`` adds it, on matrices of weights; biases do not decay.
    n_steps
        Number of updates.
    n_batches
        Mini-batches per epoch: the pool of P and U is shuffled and cut into that many parts, so
        that the number of P rows varies. ``None`` takes all rows in every step.
    learning_rate
        AMSGrad's α; its other parameters are Chainer's defaults.
    weights_p, weights_u
        Row weights, (n,) or (n, K). Rows of weight 0 leave a batch smaller for that column.
    record
        Steps at which parameters and risks are recorded; by default the last.
    random_state
        Seed of the mini-batches.

    Returns
    -------
    TrainingResult
        Snapshots and risks; a training that diverges is a ValueError.

    Examples
    --------
    >>> from pu_shift.models import LinearModel
    >>> from pu_shift.priors import Condition
    >>> from pu_shift.risks import Risk
    >>> rng = np.random.default_rng(0)
    >>> X_p = rng.normal(1.0, 1.0, (50, 2)).astype(np.float32)
    >>> X_u = rng.normal(0.0, 1.0, (200, 2)).astype(np.float32)
    >>> model = LinearModel(2, n_candidates=2)
    >>> result = train(model, X_p, X_u, Risk(Condition(0.3, 0.5)), lam=[0.0, 0.1], record=[0, 500])
    >>> bool((result.risks[1] < result.risks[0]).all())
    True
    """
    risk.check_trainable()
    n_steps = positive_int("n_steps", n_steps, least=0)
    record = [n_steps] if record is None else record
    steps = sorted({positive_int("record", step, least=0) for step in record})
    if steps and steps[-1] > n_steps:
        raise ValueError(f"record must not go beyond n_steps = {n_steps}, got {steps[-1]}")
    rows, n_p = _joined_rows(model, rows_p, rows_u), len(rows_p)
    shape = score_rows(model, rows[:1]).shape
    columns = shape[1] if len(shape) == 2 else 1
    weights = None
    if weights_p is not None or weights_u is not None:
        parts = (("weights_p", weights_p, n_p), ("weights_u", weights_u, len(rows) - n_p))
        weights = model.xp.concatenate(
            [row_weights(name, given, rows, (n, columns)) for name, given, n in parts]
        )
    optimizer = AMSGrad(alpha=positive("learning_rate", learning_rate))
    optimizer.setup(model)
    _add_decay(model, lam, columns)
    batches = pooled_batches(
        n_p, len(rows) - n_p, n_batches, np.random.default_rng(child(random_state, 0))
    )
    snapshots, risks = [], []
    for step in range(n_steps + 1):
        if step in steps:  # before the update that would follow: after `step` updates
            snapshots.append(_snapshot(model))
            with chainer.no_backprop_mode():
                now = risk.unbiased().of_batch(score_rows(model, rows), n_p, weights)
                risks.append(to_numpy(now.array))
        if step == n_steps:
            break
        order, batch_p = next(batches)
        batch, batch_weights = rows, weights
        if order is not None:
            order = beside(order, rows)
            batch = rows.take(order, axis=0)
            batch_weights = None if weights is None else weights.take(order, axis=0)
        # The types were checked above, once for all steps.
        with chainer.using_config("train", True), chainer.using_config("type_check", False):
            batch_risk = risk.of_batch(scores_of(model, batch), batch_p, batch_weights)
            model.cleargrads()
            # Columns share no parameter: the gradient of the sum is each one's own.
            chainer.functions.sum(batch_risk).backward()
            optimizer.update()
    _check_finite(model)
    return TrainingResult(tuple(steps), snapshots, np.array(risks))


def pooled_batches(
    n_p: int, n_u: int, n_batches: int | None, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray | None, int]]:
    """Shuffle the pool of P and U and cut it into mini-batches, again in each epoch, without end.

    Yields the rows of a mini-batch, the positive ones first (``None`` for all rows in their
    order), and how many of them are positive.
    """
    if n_batches is None:
        while True:
            yield None, n_p
    if positive_int("n_batches", n_batches) > n_p + n_u:
        raise ValueError(f"n_batches must not exceed the {n_p + n_u} rows, got {n_batches}")
    while True:
        for part in np.array_split(rng.permutation(n_p + n_u), n_batches):
            is_positive = part < n_p
            yield np.concatenate([part[is_positive], part[~is_positive]]), int(is_positive.sum())


def _joined_rows(model: chainer.Link, rows_p: Any, rows_u: Any) -> Any:
    """Check P and U and put one below the other."""
    dtype = next(model.params()).dtype
    parts = []
    for name, rows in (("rows_p", rows_p), ("rows_u", rows_u)):
        part = as_rows(name, on_device(name, rows, model.device))
        if part.dtype != dtype:
            raise ValueError(f"{name} must be of the model's dtype {dtype}, got {part.dtype}")
        parts.append(part)
    if parts[0].shape[1] != parts[1].shape[1]:
        raise ValueError(
            f"rows_u must have {parts[0].shape[1]} columns like rows_p, got {parts[1].shape[1]}"
        )
    return model.xp.concatenate(parts)


def _add_decay(model: chainer.Link, lam: float | Iterable[float], columns: int) -> None:
    """Let every matrix of weights decay; biases and the scales of normalisations do not."""
    lams = check_grid("lam", lam, allow_zero=True)
    if len(lams) not in (1, columns):
        raise ValueError(
            f"lam must be one number or one per candidate, got {len(lams)} for {columns} candidates"
        )
    if not lams.any():
        return
    for param in model.params():
        if param.ndim > 1:
            param.update_rule.add_hook(_ColumnDecay(beside(lams, param.array, param.dtype)))


def _snapshot(model: chainer.Link) -> dict[str, np.ndarray]:
    return {name: to_numpy(param.array).copy() for name, param in model.namedparams()}


def _check_finite(model: chainer.Link) -> None:
    """Report a divergence; an infinite v̂ would leave the weights where they are, unseen."""
    for param in model.params():
        state = param.update_rule.state or {}  # none before the first update
        for array in (param.array, *state.values()):
            if not bool(model.xp.isfinite(array).all()):
                raise ValueError(
                    "rows must be scaled, or learning_rate lowered: the training diverged"
                )
