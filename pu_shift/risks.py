r"""Risk estimators from positive and unlabelled data, as Chainer functions.

All of them are one formula with different weights a and b,

.. math:: \widehat R(g) = a\,\widehat{\mathbb E}_\mathrm{p}[\ell(g)]
          + b\,\widehat R_\mathrm{neg}(g), \qquad
          \widehat R_\mathrm{neg}(g) = \widehat{\mathbb E}_\mathrm{u}[\ell(-g)]
          - \pi\,\widehat{\mathbb E}_\mathrm{p}[\ell(-g)],

where R_neg estimates (1 − π) E_n[ℓ(−g)]:

================== =============== ========================
risk               a               b
================== =============== ========================
PU                 π               1
PU-shift           π′              (1 − π′)/(1 − π)
PU-asym            π(1 − α)        α
PU-shift-asym      π′(1 − α)       (1 − π′)α/(1 − π)
================== =============== ========================

The functions below share their first parameters and what they return.

Parameters
----------
scores_p, scores_u
    g(x) on the positive and on the unlabelled rows: (n,) for one model, or (n, K) for K models
    side by side.
condition
    One condition for all models, or K.
loss
    A loss or its name.
weights_p, weights_u
    Row weights ≥ 0, (n,) or (n, K), which leave rows out per model (cross-validation); ``None``
    weighs all rows alike.

Returns
-------
chainer.Variable
    The risk, of shape () or (K,).

What the non-negative estimators return and what they back-propagate
--------------------------------------------------------------------
R_neg estimates something that is never negative. With ``correction='max'``
the estimator is a Ê_p[ℓ(g)] + b max(0, R_neg) as printed in the paper, and its
gradient is back-propagated: the negative part stops learning while it is
below zero. With ``correction='ascent'`` (Kiryo et al., 2017) nothing changes
while R_neg ≥ −β; below −β the value returned is a Ê_p[ℓ(g)] − bβ, and what is
back-propagated is **not** its gradient but that of −γ b R_neg, a step that
undoes the over-fitting. With β = 0 both return the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pu_shift._chainer import chainer
from pu_shift._checks import non_negative, one_of, shown
from pu_shift.device import array_module, beside, device_of
from pu_shift.losses import Loss, get_loss
from pu_shift.priors import Condition

Conditions = Condition | Sequence[Condition]
KINDS = ("pu", "pu-shift", "pu-asym", "pu-shift-asym")
CORRECTIONS = (None, "max", "ascent")


def risk_weights(condition: Conditions, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return π, a and b of the table above, one entry per condition."""
    one_of("kind", kind, KINDS)
    conditions: Sequence[Any] = condition if isinstance(condition, (list, tuple)) else [condition]
    for item in conditions:
        if not isinstance(item, Condition):
            raise ValueError(f"condition must be a Condition or a list of them, got {shown(item)}")
    if not conditions:
        raise ValueError("condition must not be an empty list")
    prior = np.array([item.prior for item in conditions])
    test_prior = np.array([item.test_prior for item in conditions])
    alpha = np.array([item.alpha for item in conditions])
    if kind == "pu":
        return prior, prior, np.ones_like(prior)
    if kind == "pu-shift":
        return prior, test_prior, (1.0 - test_prior) / (1.0 - prior)
    if kind == "pu-asym":
        return prior, prior * (1.0 - alpha), alpha
    return prior, test_prior * (1.0 - alpha), (1.0 - test_prior) * alpha / (1.0 - prior)


@dataclass(frozen=True)
class Risk:
    r"""A risk estimator of which only the scores are open: what training minimises.

    .. math:: a\,\widehat{\mathbb E}_\mathrm{p}[\ell(g)] + b\,\widehat R_\mathrm{neg}(g)

    Parameters
    ----------
    condition
        One condition for all models, or one for each of K.
    loss
        A loss or its name.
    kind
        ``'pu'``, ``'pu-shift'``, ``'pu-asym'`` or ``'pu-shift-asym'``.
    correction
        ``None`` for the unbiased risk, ``'max'`` or ``'ascent'`` for a non-negative one; the head
        of this module says what each returns and back-propagates.
    beta, gamma
        β ≥ 0 and γ ≥ 0 of ``'ascent'``.

    Examples
    --------
    >>> risk = Risk(Condition(0.3, 0.5), "double_hinge", "pu-shift")
    >>> float(risk(np.array([0.0]), np.array([0.0])).array)
    0.5
    """

    condition: Conditions
    loss: Any = "squared"
    kind: str = "pu-shift-asym"
    correction: str | None = None
    beta: float = 0.0
    gamma: float = 1.0
    _weights: Any = field(init=False, repr=False, compare=False)
    _sent: dict[Any, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", get_loss(self.loss))
        one_of("correction", self.correction, CORRECTIONS)
        non_negative("beta", self.beta)
        non_negative("gamma", self.gamma)
        object.__setattr__(self, "_weights", risk_weights(self.condition, self.kind))

    @property
    def conditions(self) -> list[Condition]:
        """The conditions as a list, of one or of K."""
        one = isinstance(self.condition, Condition)
        return [self.condition] if one else list(self.condition)  # type: ignore[list-item, arg-type]

    def _weights_beside(self, scores: Any) -> tuple[Any, Any, Any]:
        """Return π, a and b on the scores' device and of their dtype, sent there once."""
        key = device_of(scores), scores.dtype
        if key not in self._sent:
            sent = tuple(beside(array, scores, scores.dtype) for array in self._weights)
            if len(sent[0]) not in (1, _columns(scores).shape[1]):
                raise ValueError(
                    f"condition must be one or one per model, got {len(sent[0])} "
                    f"for {_columns(scores).shape[1]} models"
                )
            self._sent[key] = sent
        return self._sent[key]

    def __call__(
        self, scores_p: Any, scores_u: Any, weights_p: Any = None, weights_u: Any = None
    ) -> chainer.Variable:
        """Return the risk of scores; the head of this module describes the arguments."""
        arrays = chainer.as_array(scores_p), chainer.as_array(scores_u)
        weights = _joined_weights(arrays, (weights_p, weights_u))
        scores = chainer.functions.concat([scores_p, scores_u], axis=0)
        return self.of_batch(scores, len(arrays[0]), weights)

    def of_batch(self, scores: Any, n_p: int, weights: Any = None) -> chainer.Variable:
        """Return the risk of a mini-batch whose first ``n_p`` rows are positive.

        A batch that has no P or no U rows that count for some model lacks that model's term.
        Nothing is checked: this is the inner loop.
        """
        return _PURisk(self, n_p, weights).apply((scores,))[0]


def evaluate_risk(
    scores_p: Any,
    scores_u: Any,
    condition: Conditions,
    loss: str | Loss = "squared",
    kind: str = "pu-shift-asym",
    weights_p: Any = None,
    weights_u: Any = None,
) -> Any:
    """Value of the unbiased risk of any kind, as a plain array.

    It is the number of the functions below, without Chainer: for validation and the zero-one loss.

    Examples
    --------
    >>> scores_p, scores_u = np.array([1.0, -1.0]), np.array([1.0, -1.0, -1.0, -1.0])
    >>> float(evaluate_risk(scores_p, scores_u, Condition(0.5), "zero_one", "pu"))
    0.25
    """
    weights = _joined_weights((scores_p, scores_u), (weights_p, weights_u))
    scores = array_module(scores_p).concatenate([scores_p, scores_u])
    return _terms(Risk(condition, loss, kind), scores, len(scores_p), weights).total


def _unbiased(kind: str, doc: str) -> Callable[..., chainer.Variable]:
    """Make the function of an unbiased risk; the head of this module describes its arguments."""

    def risk(
        scores_p: Any,
        scores_u: Any,
        condition: Conditions,
        loss: str | Loss = "squared",
        weights_p: Any = None,
        weights_u: Any = None,
    ) -> chainer.Variable:
        return Risk(condition, loss, kind)(scores_p, scores_u, weights_p, weights_u)

    risk.__name__ = risk.__qualname__ = kind.replace("-", "_") + "_risk"
    risk.__doc__ = doc
    return risk


pu_risk = _unbiased(
    "pu",
    r"""Unbiased PU risk (Equation 2; du Plessis et al., 2015). Only π of the condition counts.

    .. math:: \frac{\pi}{n_p}\sum_i[\ell(g(x^p_i)) - \ell(-g(x^p_i))]
              + \frac{1}{n_u}\sum_i \ell(-g(x^u_i))

    Examples
    --------
    >>> float(pu_risk(np.array([1.0]), np.array([1.0, -1.0]), Condition(0.5)).array)
    0.0
    """,
)
pu_shift_risk = _unbiased(
    "pu-shift",
    r"""Unbiased risk under class prior shift (Theorem 5, Equation 10). α does not count.

    .. math:: \frac{1}{n_p}\sum_i\left[\pi'\ell(g(x^p_i))
              - \frac{\pi-\pi\pi'}{1-\pi}\ell(-g(x^p_i))\right]
              + \frac{1}{n_u}\frac{1-\pi'}{1-\pi}\sum_i \ell(-g(x^u_i))

    Examples
    --------
    >>> risk = pu_shift_risk(np.array([0.0]), np.array([0.0]), Condition(0.3, 0.5))
    >>> round(float(risk.array), 6)
    0.25
    """,
)
pu_asym_risk = _unbiased(
    "pu-asym",
    r"""Unbiased risk with asymmetric error (Theorem 7). π′ does not count.

    .. math:: \frac{\pi}{n_p}\sum_i[(1-\alpha)\ell(g(x^p_i)) - \alpha\ell(-g(x^p_i))]
              + \frac{\alpha}{n_u}\sum_i \ell(-g(x^u_i))

    With α = ½ it is half of :func:`pu_risk`.

    Examples
    --------
    >>> risk = pu_asym_risk(np.array([0.0]), np.array([0.0]), Condition(0.3, alpha=0.5))
    >>> round(float(risk.array), 6)
    0.125
    """,
)
pu_shift_asym_risk = _unbiased(
    "pu-shift-asym",
    r"""Unbiased risk under shift and asymmetric error at once.

    It estimates π′(1−α) E_p[ℓ(g)] + (1−π′)α E_n[ℓ(−g)]. With π′ = π it is :func:`pu_asym_risk`,
    with α = ½ half of :func:`pu_shift_risk`, and in general proportional to :func:`pu_shift_risk`
    at π_unif (Theorem 3).

    .. math:: \frac{\pi'(1-\alpha)}{n_p}\sum_i \ell(g(x^p_i))
        + \frac{(1-\pi')\alpha}{1-\pi}\left[\frac{1}{n_u}\sum_i \ell(-g(x^u_i))
        - \frac{\pi}{n_p}\sum_i \ell(-g(x^p_i))\right]

    Examples
    --------
    >>> condition = Condition(0.3, test_prior=0.5, alpha=0.2)
    >>> round(float(pu_shift_asym_risk(np.array([0.0]), np.array([0.0]), condition).array), 6)
    0.125
    """,
)


def nnpu_risk(
    scores_p: Any,
    scores_u: Any,
    condition: Conditions,
    loss: str | Loss = "squared",
    kind: str = "pu",
    weights_p: Any = None,
    weights_u: Any = None,
    beta: float = 0.0,
    gamma: float = 1.0,
    correction: str = "ascent",
) -> chainer.Variable:
    r"""Non-negative PU risk (Kiryo et al., 2017), for any of the four kinds.

    .. math:: \frac{a}{n_p}\sum_i \ell(g(x^p_i)) + b\max(0, \widehat R_\mathrm{neg}(g))

    The head of this module says what is returned and what is back-propagated.

    Parameters
    ----------
    kind
        ``'pu'``, ``'pu-shift'``, ``'pu-asym'`` or ``'pu-shift-asym'``.
    beta
        β ≥ 0: the correction starts when R_neg falls below −β.
    gamma
        γ ≥ 0: the length of the corrective step.
    correction
        ``'ascent'`` (Kiryo's gradient step) or ``'max'`` (as printed in this paper; takes no β or
        γ).

    Examples
    --------
    >>> scores_p, scores_u = np.array([1.0]), np.array([-1.0])
    >>> float(pu_risk(scores_p, scores_u, Condition(0.5)).array)
    -0.5
    >>> float(nnpu_risk(scores_p, scores_u, Condition(0.5)).array)
    0.0
    """
    one_of("correction", correction, CORRECTIONS[1:])
    risk = Risk(condition, loss, kind, correction, beta, gamma)
    return risk(scores_p, scores_u, weights_p, weights_u)


def nnpu_shift_risk(
    scores_p: Any,
    scores_u: Any,
    condition: Conditions,
    loss: str | Loss = "squared",
    **options: Any,
) -> chainer.Variable:
    r"""Non-negative risk under class prior shift (nnPU-Sh of the paper).

    .. math:: \frac{\pi'}{n_p}\sum_i \ell(g(x^p_i))
        + \frac{1-\pi'}{1-\pi}\max(0, \widehat R_\mathrm{PU\text{-}neg}(g))

    The options are those of :func:`nnpu_risk`.

    Examples
    --------
    >>> condition = Condition(0.3, 0.5)
    >>> float(nnpu_shift_risk(np.array([1.0]), np.array([-1.0]), condition).array)
    0.0
    """
    return nnpu_risk(scores_p, scores_u, condition, loss, "pu-shift", **options)


class _Terms(NamedTuple):
    """The risk of every column, and what its gradient needs."""

    total: Any
    prior: Any
    share_p: Any
    share_u: Any
    weights: Any
    # The weights that the gradient sees; they differ from a and b only where the non-negative
    # correction acts.
    gradient_weights: tuple[Any, Any]


def _terms(risk: Risk, scores: Any, n_p: int, weights: Any) -> _Terms:
    """a·Ê_p[ℓ(g)] + b·(Ê_u[ℓ(−g)] − π Ê_p[ℓ(−g)]) of every column."""
    xp, dtype, g = array_module(scores), scores.dtype, _columns(scores)
    if weights is None:
        weights = xp.ones((len(g), 1), dtype=dtype)
    prior, a, b = risk._weights_beside(scores)
    w_p, w_u = weights[:n_p], weights[n_p:]
    # 0/0 would be the mean over no rows.
    share_p, share_u = (
        1.0 / xp.maximum(part.sum(axis=0), xp.finfo(dtype).tiny) for part in (w_p, w_u)
    )
    loss = risk.loss
    inner = loss.value(-g)
    inner *= weights
    on_p = share_p * inner[:n_p].sum(axis=0)
    negative = share_u * inner[n_p:].sum(axis=0) - prior * on_p
    if loss.linear_odd:  # ℓ(g) = ℓ(−g) − g
        positive = on_p - share_p * (w_p * g[:n_p]).sum(axis=0)
    else:
        positive = share_p * (w_p * loss.value(g[:n_p])).sum(axis=0)
    if risk.correction is None:
        total = a * positive + b * negative
    elif risk.correction == "max":
        total = a * positive + b * xp.maximum(negative, 0.0)
        b = xp.where(negative > 0.0, b, xp.zeros_like(b))
    else:
        beta, gamma = float(risk.beta), float(risk.gamma)
        ascend = negative < -beta
        total = a * positive + b * xp.where(ascend, -beta, negative).astype(dtype)
        a = xp.where(ascend, xp.zeros_like(a), a)
        b = xp.where(ascend, -gamma * b, b)
    total = total.reshape(scores.shape[1:]).astype(dtype, copy=False)
    return _Terms(total, prior, share_p, share_u, weights, (a, b))


class _PURisk(chainer.FunctionNode):
    """The risk of every column, in one node."""

    def __init__(self, risk: Risk, n_p: int, weights: Any) -> None:
        super().__init__()
        self.risk, self.n_p, self.weights = risk, n_p, weights

    def forward(self, inputs: tuple[Any]) -> tuple[Any]:
        self.retain_inputs((0,))
        self.terms = _terms(self.risk, inputs[0], self.n_p, self.weights)
        return (self.terms.total,)

    def backward(self, indexes: tuple[int, ...], grad_outputs: tuple[Any]) -> tuple[Any]:
        if chainer.config.enable_backprop:
            raise RuntimeError("the risk has a first derivative only: no enable_double_backprop")
        scores = self.get_retained_inputs()[0].array
        slopes = self._slopes(scores)
        slopes *= grad_outputs[0].array
        return (chainer.as_variable(slopes.reshape(scores.shape)),)

    def _slopes(self, scores: Any) -> Any:
        """Return the derivative of the risk by every score.

        With q(z) = dℓ(−z)/dz it is aℓ′(g) − bπq on a positive row and bq on an unlabelled one.
        For a linear-odd loss ℓ′ = q − 1, so that one evaluation of q serves all rows.
        """
        _, prior, share_p, share_u, weights, (a, b) = self.terms
        loss, n_p, g = self.risk.loss, self.n_p, _columns(scores)
        slopes = loss.derivative(-g)
        if loss.linear_odd:
            slopes[:n_p] *= (b * prior - a) * share_p
            slopes[:n_p] -= a * share_p
        else:
            slopes[:n_p] *= b * prior * share_p
            slopes[:n_p] += a * share_p * loss.derivative(g[:n_p])
        slopes[n_p:] *= -b * share_u
        slopes *= weights
        return slopes


def _columns(scores: Any) -> Any:
    return scores[:, None] if scores.ndim == 1 else scores


def _check_scores(scores_p: Any, scores_u: Any) -> None:
    for name, scores in (("scores_p", scores_p), ("scores_u", scores_u)):
        if not hasattr(scores, "dtype") or not hasattr(scores, "ndim"):
            raise ValueError(f"{name} must be an array, got {shown(scores)}")
        if scores.ndim not in (1, 2) or scores.dtype.kind != "f":
            raise ValueError(
                f"{name} must be a floating (n,) or (n, K) array, "
                f"got shape {scores.shape} and dtype {scores.dtype}"
            )
        if scores.shape[0] == 0:
            raise ValueError(f"{name} must have at least one row, got shape {scores.shape}")
    if scores_p.shape[1:] != scores_u.shape[1:] or scores_p.dtype != scores_u.dtype:
        raise ValueError(
            "scores_u must have the columns and dtype of scores_p, got "
            f"{scores_u.shape} {scores_u.dtype} for {scores_p.shape} {scores_p.dtype}"
        )


def _joined_weights(scores: tuple[Any, Any], weights: tuple[Any, Any]) -> Any:
    """Check scores of P and U and their row weights; return those as one array, or None."""
    _check_scores(*scores)
    if weights[0] is None and weights[1] is None:
        return None
    given = zip(("weights_p", "weights_u"), weights, scores)
    return array_module(scores[0]).concatenate(
        [row_weights(name, part, g, _columns(g).shape) for name, part, g in given]
    )


def row_weights(name: str, weights: Any, array: Any, shape: tuple[int, int]) -> Any:
    """Return row weights ≥ 0, (n,) or (n, K) or ``None`` for ones, as (n, K) beside an array."""
    xp = array_module(array)
    if weights is None:
        return xp.ones(shape, dtype=array.dtype)
    try:
        weights = beside(weights, array, array.dtype)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {shown(weights)}") from None
    if weights.shape not in (shape[:1], shape):
        raise ValueError(f"{name} must have shape {shape[:1]} or {shape}, got {weights.shape}")
    total = weights.sum(axis=0)
    if not bool(((total > 0) & xp.isfinite(total)).all()) or bool((weights < 0).any()):
        raise ValueError(f"{name} must be non-negative and finite, with a positive sum per model")
    return xp.broadcast_to(_columns(weights), shape)
