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

The functions below take scores g(x) of the positive and of the unlabelled rows, (n,) for one model
or (n, K) for K models side by side; one condition for all models, or K; a loss or its name; and
row weights ≥ 0, (n,) or (n, K), which leave rows out per model (cross-validation), ``None`` for
ones. They return a ``chainer.Variable`` of shape () or (K,).

R_neg estimates something that is never negative. With ``correction='max'`` the estimator is
a Ê_p[ℓ(g)] + b max(0, R_neg) as printed in the paper, and its gradient is back-propagated: the
negative part stops learning while it is below zero. With ``'ascent'`` (Kiryo et al., 2017) nothing
changes while R_neg ≥ −β; below −β the value returned is a Ê_p[ℓ(g)] − bβ, and what is
back-propagated is **not** its gradient but that of −γ b R_neg, a step that undoes the over-fitting.
With β = 0 both return the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pu_shift._chainer import chainer
from pu_shift._checks import finite, non_negative, one_of, shown
from pu_shift._scores import as_columns, joined_weights
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
    prior, test_prior, alpha = np.array(
        [(item.prior, item.test_prior, item.alpha) for item in conditions]
    ).T
    a, b = {
        "pu": (prior, np.ones_like(prior)),
        "pu-shift": (test_prior, (1.0 - test_prior) / (1.0 - prior)),
        "pu-asym": (prior * (1.0 - alpha), alpha),
        "pu-shift-asym": (test_prior * (1.0 - alpha), (1.0 - test_prior) * alpha / (1.0 - prior)),
    }[kind]
    return prior, a, b


class TwoSampleRisk:
    r"""What training minimises: a risk of which only the scores of P and U are open.

    .. math:: a\,\widehat{\mathbb E}_\mathrm{p}[\ell_+(g)] + b\,\bigl(
              \widehat{\mathbb E}_\mathrm{u}[\ell_-(g)]
              - c\,\widehat{\mathbb E}_\mathrm{p}[\ell_-(g)]\bigr)

    A subclass is a frozen data class with the three fields of the correction, which calls
    ``_keep`` with c, a and b. ``_value(g, positive)`` returns ℓ₊ or ℓ₋, and
    ``_slope(g, positive)`` a new array of dℓ₊/dg or −dℓ₋/dg.
    """

    correction: str | None
    beta: float
    gamma: float
    _weights: Any
    _sent: dict[Any, Any]
    _value: Callable[..., Any]
    _slope: Callable[..., Any]
    # Whether ℓ₊(g) = ℓ₋(g) − g, so that one evaluation serves both.
    linear_odd: bool

    def _keep(self, weights: tuple[np.ndarray, ...], linear_odd: bool = False) -> None:
        one_of("correction", self.correction, CORRECTIONS)
        non_negative("beta", self.beta)
        non_negative("gamma", self.gamma)
        object.__setattr__(self, "_weights", weights)
        object.__setattr__(self, "_sent", {})
        object.__setattr__(self, "linear_odd", linear_odd)

    def check_trainable(self) -> None:
        """Refuse a loss that has no gradient."""

    def unbiased(self) -> Any:
        """Return the same risk without a correction."""
        return replace(self, correction=None)  # type: ignore[type-var]

    def _weights_beside(self, scores: Any) -> tuple[Any, Any, Any]:
        """Return c, a and b on the scores' device and of their dtype, sent there once."""
        key = device_of(scores), scores.dtype
        if key not in self._sent:
            sent = tuple(beside(array, scores, scores.dtype) for array in self._weights)
            n, models = len(sent[0]), as_columns(scores).shape[1]
            if n not in (1, models):
                raise ValueError(
                    f"condition must be one or one per model, got {n} for {models} models"
                )
            self._sent[key] = sent
        return self._sent[key]

    def __call__(
        self, scores_p: Any, scores_u: Any, weights_p: Any = None, weights_u: Any = None
    ) -> chainer.Variable:
        """Return the risk of scores; the head of this module describes the arguments."""
        arrays = chainer.as_array(scores_p), chainer.as_array(scores_u)
        weights = joined_weights(arrays, (weights_p, weights_u))
        scores = chainer.functions.concat([scores_p, scores_u], axis=0)
        return self.of_batch(scores, len(arrays[0]), weights)

    def of_batch(self, scores: Any, n_p: int, weights: Any = None) -> chainer.Variable:
        """Return the risk of a mini-batch whose first ``n_p`` rows are positive.

        A batch without P or U rows for some model lacks that term. Nothing is checked here.
        """
        return _TwoSampleRisk(self, n_p, weights).apply((scores,))[0]


@dataclass(frozen=True)
class Risk(TwoSampleRisk):
    r"""A risk estimator for classification.

    .. math:: a\,\widehat{\mathbb E}_\mathrm{p}[\ell(g)] + b\,\widehat R_\mathrm{neg}(g)

    Parameters
    ----------
    condition
        One condition for all models, or one for each of K.
    loss
        A loss or its name.
    kind
        ``'pu'``, ``'pu-shift'``, ``'pu-asym'`` or ``'pu-shift-asym'``.
    correction, beta, gamma
        ``None`` for the unbiased risk, ``'max'`` or ``'ascent'`` with β ≥ 0 and γ ≥ 0 for a
        non-negative one; the head of this module says what each returns and back-propagates.

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

    def __post_init__(self) -> None:
        loss = get_loss(self.loss)
        object.__setattr__(self, "loss", loss)
        self._keep(risk_weights(self.condition, self.kind), loss.linear_odd)

    @property
    def conditions(self) -> list[Condition]:
        """The conditions as a list, of one or of K."""
        return [self.condition] if isinstance(self.condition, Condition) else list(self.condition)

    def check_trainable(self) -> None:
        """Refuse a loss that has no gradient."""
        if not self.loss.trainable:
            raise ValueError(f"loss must have a gradient to be trained, got {self.loss.name!r}")

    def _value(self, g: Any, positive: bool) -> Any:
        return self.loss.value(g if positive else -g)

    def _slope(self, g: Any, positive: bool) -> Any:
        return self.loss.derivative(g if positive else -g)


@dataclass(frozen=True)
class RatioRisk(TwoSampleRisk):
    r"""The least-squares criterion of a density ratio w = p_p/p_u, whose values are the scores.

    .. math:: J(w) = \tfrac12\,\mathbb E_\mathrm{u}[w^2] - \mathbb E_\mathrm{p}[w]
              = \mathbb E_\mathrm{p}\bigl[\tfrac c2 w^2 - w\bigr]
              + \Bigl(\tfrac12\,\mathbb E_\mathrm{u}[w^2]
              - \tfrac c2\,\mathbb E_\mathrm{p}[w^2]\Bigr)

    It is what uLSIF minimises, and the Bregman divergence by which DRPU trains a network
    (Nakajima & Sugiyama, 2023), with f(w) = ½w² and f*(w) = wf′(w) − f(w) = ½w². Because
    p_u = πp_p + (1 − π)p_n ≥ c·p_p where 0 ≤ c ≤ π, the part in brackets estimates
    ∫½w²(p_u − c·p_p)dx, which is not negative. A flexible model makes it so by large values on
    the very rows of P; there the corrections of this module take effect (Kato & Teshima, *ICML*
    2021: Non-negative Bregman divergence minimization for deep direct density ratio estimation).
    What remains, ½cw² − w, is bounded from below by −1/(2c), which J of a sample is not. With
    c = 0 the part is a mean of squares, and nothing is corrected.

    Parameters
    ----------
    share
        c, within [0, 1): at most π.
    correction, beta, gamma
        As for :class:`Risk`.

    Examples
    --------
    >>> float(RatioRisk()(np.array([1.0, 1.0]), np.array([1.0])).array)
    -0.5
    """

    share: float = 0.0
    correction: str | None = "ascent"
    beta: float = 0.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= finite("share", self.share) < 1.0:
            raise ValueError(f"share must lie in [0, 1), got {shown(self.share)}")
        self._keep((np.array([self.share]), np.ones(1), np.ones(1)))

    def _value(self, g: Any, positive: bool) -> Any:
        half = 0.5 * g * g
        return self.share * half - g if positive else half

    def _slope(self, g: Any, positive: bool) -> Any:
        return self.share * g - 1.0 if positive else -g


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

    It is the number of the functions below, also for the zero-one loss.

    Examples
    --------
    >>> scores = np.array([1.0, -1.0]), np.array([1.0, -1.0, -1.0, -1.0])
    >>> float(evaluate_risk(*scores, Condition(0.5), "zero_one", "pu"))
    0.25
    """
    weights = joined_weights((scores_p, scores_u), (weights_p, weights_u))
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
    r"""Unbiased risk with asymmetric error (Theorem 7). With α = ½ half of :func:`pu_risk`.

    .. math:: \frac{\pi}{n_p}\sum_i[(1-\alpha)\ell(g(x^p_i)) - \alpha\ell(-g(x^p_i))]
              + \frac{\alpha}{n_u}\sum_i \ell(-g(x^u_i))

    Examples
    --------
    >>> risk = pu_asym_risk(np.array([0.0]), np.array([0.0]), Condition(0.3, alpha=0.5))
    >>> round(float(risk.array), 6)
    0.125
    """,
)
pu_shift_asym_risk = _unbiased(
    "pu-shift-asym",
    r"""Unbiased risk under shift and asymmetric error: π′(1−α) E_p[ℓ(g)] + (1−π′)α E_n[ℓ(−g)].

    With π′ = π it is :func:`pu_asym_risk`, with α = ½ half of :func:`pu_shift_risk`, and in
    general proportional to :func:`pu_shift_risk` at π_unif (Theorem 3).

    .. math:: \frac{\pi'(1-\alpha)}{n_p}\sum_i \ell(g(x^p_i))
        + \frac{(1-\pi')\alpha}{1-\pi}\left[\frac{1}{n_u}\sum_i \ell(-g(x^u_i))
        - \frac{\pi}{n_p}\sum_i \ell(-g(x^p_i))\right]

    Examples
    --------
    >>> risk = pu_shift_asym_risk(np.array([0.0]), np.array([0.0]), Condition(0.3, 0.5, 0.2))
    >>> round(float(risk.array), 6)
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

    The head of this module says what is returned and what is back-propagated, :class:`Risk` what
    the other parameters are; ``correction`` is ``'ascent'`` (Kiryo's gradient step) or ``'max'``
    (as printed in this paper; takes no β or γ).

    Examples
    --------
    >>> scores_p, scores_u = np.array([1.0]), np.array([-1.0])
    >>> [float(of(scores_p, scores_u, Condition(0.5)).array) for of in (pu_risk, nnpu_risk)]
    [-0.5, 0.0]
    """
    one_of("correction", correction, CORRECTIONS[1:])
    risk = Risk(condition, loss, kind, correction, beta, gamma)
    return risk(scores_p, scores_u, weights_p, weights_u)


def nnpu_shift_risk(
    scores_p: Any, scores_u: Any, condition: Conditions, loss: Any = "squared", **options: Any
) -> chainer.Variable:
    r"""Non-negative risk under class prior shift (nnPU-Sh of the paper): ``kind='pu-shift'``.

    .. math:: \frac{\pi'}{n_p}\sum_i \ell(g(x^p_i))
        + \frac{1-\pi'}{1-\pi}\max(0, \widehat R_\mathrm{PU\text{-}neg}(g))

    Its options are those of :func:`nnpu_risk`.

    Examples
    --------
    >>> float(nnpu_shift_risk(np.array([1.0]), np.array([-1.0]), Condition(0.3, 0.5)).array)
    0.0
    """
    return nnpu_risk(scores_p, scores_u, condition, loss, "pu-shift", **options)


class _Terms(NamedTuple):
    """The risk of every column, and what its gradient needs; the correction changes its a and b."""

    total: Any
    prior: Any
    share_p: Any
    share_u: Any
    weights: Any
    gradient_weights: tuple[Any, Any]


def _terms(risk: TwoSampleRisk, scores: Any, n_p: int, weights: Any) -> _Terms:
    """a·Ê_p[ℓ₊(g)] + b·(Ê_u[ℓ₋(g)] − c Ê_p[ℓ₋(g)]) of every column."""
    xp, dtype, g = array_module(scores), scores.dtype, as_columns(scores)
    if weights is None:
        weights = xp.ones((len(g), 1), dtype=dtype)
    prior, a, b = risk._weights_beside(scores)
    w_p, w_u = weights[:n_p], weights[n_p:]
    # 0/0 would be the mean over no rows.
    share_p, share_u = (
        1.0 / xp.maximum(part.sum(axis=0), xp.finfo(dtype).tiny) for part in (w_p, w_u)
    )
    inner = risk._value(g, positive=False)
    inner *= weights
    on_p = share_p * inner[:n_p].sum(axis=0)
    negative = share_u * inner[n_p:].sum(axis=0) - prior * on_p
    if risk.linear_odd:
        positive = on_p - share_p * (w_p * g[:n_p]).sum(axis=0)
    else:
        positive = share_p * (w_p * risk._value(g[:n_p], positive=True)).sum(axis=0)
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


class _TwoSampleRisk(chainer.FunctionNode):
    """The risk of every column, in one node."""

    def __init__(self, risk: TwoSampleRisk, n_p: int, weights: Any) -> None:
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

        It is aℓ₊′(g) − bcℓ₋′(g) on a positive row and bℓ₋′(g) on an unlabelled one. For a
        linear-odd loss ℓ₊′ = ℓ₋′ − 1, so that one evaluation serves all rows.
        """
        _, prior, share_p, share_u, weights, (a, b) = self.terms
        risk, n_p, g = self.risk, self.n_p, as_columns(scores)
        slopes = risk._slope(g, positive=False)
        if risk.linear_odd:
            slopes[:n_p] *= (b * prior - a) * share_p
            slopes[:n_p] -= a * share_p
        else:
            slopes[:n_p] *= b * prior * share_p
            slopes[:n_p] += a * share_p * risk._slope(g[:n_p], positive=True)
        slopes[n_p:] *= -b * share_u
        slopes *= weights
        return slopes
