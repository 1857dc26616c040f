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

Scores are (n,) for one model or (n, K) for K models side by side; the result
is a scalar or (K,). The K models may have K different conditions, and row
weights of shape (n,) or (n, K) leave rows out per model (cross-validation).

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

from collections.abc import Sequence
from typing import Any

import numpy as np

from pu_shift._chainer import chainer
from pu_shift._checks import non_negative, one_of, shown
from pu_shift.device import beside
from pu_shift.losses import Loss, get_loss
from pu_shift.priors import Condition

Conditions = Condition | Sequence[Condition]
KINDS = ("pu", "pu-shift", "pu-asym", "pu-shift-asym")
CORRECTIONS = (None, "max", "ascent")


def risk_weights(condition: Conditions, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return π and the weights a and b of a risk, one entry per condition.

    Parameters
    ----------
    condition
        One condition or a sequence of K.
    kind
        ``'pu'``, ``'pu-shift'``, ``'pu-asym'`` or ``'pu-shift-asym'``.

    Returns
    -------
    prior, positive_weight, negative_weight : numpy.ndarray
        π, a and b, each of shape (K,) (K = 1 for a single condition).

    Examples
    --------
    >>> [array.round(6).tolist() for array in risk_weights(Condition(0.2, 0.6), "pu-shift")]
    [[0.2], [0.6], [0.5]]
    """
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


def evaluate_risk(
    scores_p: Any,
    scores_u: Any,
    condition: Conditions,
    loss: str | Loss = "squared",
    kind: str = "pu-shift-asym",
    weights_p: Any = None,
    weights_u: Any = None,
) -> Any:
    """Value of an unbiased risk estimator, as a plain array.

    The same number as the Chainer functions below, without a graph: for
    validation and for the zero-one loss, which has no useful gradient.

    Parameters
    ----------
    scores_p, scores_u
        g(x) on the positive and on the unlabelled rows, (n,) or (n, K).
    condition
        One condition for all models, or K.
    loss
        A loss or its name.
    kind
        Which risk, see :func:`risk_weights`.
    weights_p, weights_u
        Row weights ≥ 0, (n,) or (n, K); ``None`` weighs all rows alike.

    Returns
    -------
    array
        The risk, of shape () or (K,).

    Examples
    --------
    >>> scores_p, scores_u = np.array([1.0, -1.0]), np.array([1.0, -1.0, -1.0, -1.0])
    >>> float(evaluate_risk(scores_p, scores_u, Condition(0.5), "zero_one", "pu"))
    0.25
    """
    node = _PURisk(condition, loss, kind, weights_p, weights_u, None, 0.0, 1.0)
    return node.forward((scores_p, scores_u))[0]


def pu_risk(
    scores_p: Any,
    scores_u: Any,
    condition: Conditions,
    loss: str | Loss = "squared",
    weights_p: Any = None,
    weights_u: Any = None,
) -> chainer.Variable:
    r"""Unbiased PU risk (Eq. 2; du Plessis et al., 2015). Only π of the condition counts.

    .. math:: \frac{\pi}{n_p}\sum_i[\ell(g(x^p_i)) - \ell(-g(x^p_i))]
              + \frac{1}{n_u}\sum_i \ell(-g(x^u_i))

    Parameters
    ----------
    scores_p, scores_u
        g(x) on the positive and on the unlabelled rows, (n,) or (n, K).
    condition
        One condition for all models, or K.
    loss
        A loss or its name.
    weights_p, weights_u
        Row weights ≥ 0, (n,) or (n, K); ``None`` weighs all rows alike.

    Returns
    -------
    chainer.Variable
        The risk, of shape () or (K,).

    Examples
    --------
    >>> float(pu_risk(np.array([1.0]), np.array([1.0, -1.0]), Condition(0.5)).array)
    0.0
    """
    return _apply(scores_p, scores_u, condition, loss, "pu", weights_p, weights_u)


def pu_shift_risk(
    scores_p: Any,
    scores_u: Any,
    condition: Conditions,
    loss: str | Loss = "squared",
    weights_p: Any = None,
    weights_u: Any = None,
) -> chainer.Variable:
    r"""Unbiased risk under class prior shift (Theorem 5, Eq. 10). α does not count.

    .. math:: \frac{1}{n_p}\sum_i\left[\pi'\ell(g(x^p_i))
              - \frac{\pi-\pi\pi'}{1-\pi}\ell(-g(x^p_i))\right]
              + \frac{1}{n_u}\frac{1-\pi'}{1-\pi}\sum_i \ell(-g(x^u_i))

    Parameters
    ----------
    scores_p, scores_u, condition, loss, weights_p, weights_u
        As for :func:`pu_risk`.

    Returns
    -------
    chainer.Variable
        The risk, of shape () or (K,).

    Examples
    --------
    >>> risk = pu_shift_risk(np.array([0.0]), np.array([0.0]), Condition(0.3, 0.5))
    >>> round(float(risk.array), 6)
    0.25
    """
    return _apply(scores_p, scores_u, condition, loss, "pu-shift", weights_p, weights_u)


def pu_asym_risk(
    scores_p: Any,
    scores_u: Any,
    condition: Conditions,
    loss: str | Loss = "squared",
    weights_p: Any = None,
    weights_u: Any = None,
) -> chainer.Variable:
    r"""Unbiased risk with asymmetric error (Theorem 7). π′ does not count.

    .. math:: \frac{\pi}{n_p}\sum_i[(1-\alpha)\ell(g(x^p_i)) - \alpha\ell(-g(x^p_i))]
              + \frac{\alpha}{n_u}\sum_i \ell(-g(x^u_i))

    With α = ½ it is half of :func:`pu_risk`.

    Parameters
    ----------
    scores_p, scores_u, condition, loss, weights_p, weights_u
        As for :func:`pu_risk`.

    Returns
    -------
    chainer.Variable
        The risk, of shape () or (K,).

    Examples
    --------
    >>> risk = pu_asym_risk(np.array([0.0]), np.array([0.0]), Condition(0.3, alpha=0.5))
    >>> round(float(risk.array), 6)
    0.125
    """
    return _apply(scores_p, scores_u, condition, loss, "pu-asym", weights_p, weights_u)


def pu_shift_asym_risk(
    scores_p: Any,
    scores_u: Any,
    condition: Conditions,
    loss: str | Loss = "squared",
    weights_p: Any = None,
    weights_u: Any = None,
) -> chainer.Variable:
    r"""Unbiased risk under shift and asymmetric error at once.

    It estimates π′(1−α) E_p[ℓ(g)] + (1−π′)α E_n[ℓ(−g)]. With π′ = π it is
    :func:`pu_asym_risk`, with α = ½ half of :func:`pu_shift_risk`, and in
    general proportional to :func:`pu_shift_risk` at π_unif (Theorem 3).

    .. math:: \frac{\pi'(1-\alpha)}{n_p}\sum_i \ell(g(x^p_i))
        + \frac{(1-\pi')\alpha}{1-\pi}\left[\frac{1}{n_u}\sum_i \ell(-g(x^u_i))
        - \frac{\pi}{n_p}\sum_i \ell(-g(x^p_i))\right]

    Parameters
    ----------
    scores_p, scores_u, condition, loss, weights_p, weights_u
        As for :func:`pu_risk`.

    Returns
    -------
    chainer.Variable
        The risk, of shape () or (K,).

    Examples
    --------
    >>> condition = Condition(0.3, test_prior=0.5, alpha=0.2)
    >>> round(float(pu_shift_asym_risk(np.array([0.0]), np.array([0.0]), condition).array), 6)
    0.125
    """
    return _apply(scores_p, scores_u, condition, loss, "pu-shift-asym", weights_p, weights_u)


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
    scores_p, scores_u, condition, loss, weights_p, weights_u
        As for :func:`pu_risk`.
    kind
        ``'pu'``, ``'pu-shift'``, ``'pu-asym'`` or ``'pu-shift-asym'``.
    beta
        β ≥ 0: the correction starts when R_neg falls below −β.
    gamma
        γ ≥ 0: the length of the corrective step.
    correction
        ``'ascent'`` (Kiryo's gradient step) or ``'max'`` (as printed in this
        paper; takes no β or γ).

    Returns
    -------
    chainer.Variable
        The risk, of shape () or (K,).

    Examples
    --------
    >>> scores_p, scores_u = np.array([1.0]), np.array([-1.0])
    >>> float(pu_risk(scores_p, scores_u, Condition(0.5)).array)
    -0.5
    >>> float(nnpu_risk(scores_p, scores_u, Condition(0.5)).array)
    0.0
    """
    one_of("correction", correction, CORRECTIONS[1:])
    return _apply(
        scores_p,
        scores_u,
        condition,
        loss,
        kind,
        weights_p,
        weights_u,
        correction,
        non_negative("beta", beta),
        non_negative("gamma", gamma),
    )


def nnpu_shift_risk(
    scores_p: Any,
    scores_u: Any,
    condition: Conditions,
    loss: str | Loss = "squared",
    weights_p: Any = None,
    weights_u: Any = None,
    beta: float = 0.0,
    gamma: float = 1.0,
    correction: str = "ascent",
) -> chainer.Variable:
    r"""Non-negative risk under class prior shift (nnPU-Sh of the paper).

    .. math:: \frac{\pi'}{n_p}\sum_i \ell(g(x^p_i))
        + \frac{1-\pi'}{1-\pi}\max(0, \widehat R_\mathrm{PU\text{-}neg}(g))

    Parameters
    ----------
    scores_p, scores_u, condition, loss, weights_p, weights_u, beta, gamma, correction
        As for :func:`nnpu_risk`.

    Returns
    -------
    chainer.Variable
        The risk, of shape () or (K,).

    Examples
    --------
    >>> condition = Condition(0.3, 0.5)
    >>> float(nnpu_shift_risk(np.array([1.0]), np.array([-1.0]), condition).array)
    0.0
    """
    return nnpu_risk(
        scores_p,
        scores_u,
        condition,
        loss,
        "pu-shift",
        weights_p,
        weights_u,
        beta,
        gamma,
        correction,
    )


def _apply(
    scores_p: Any,
    scores_u: Any,
    condition: Conditions,
    loss: str | Loss,
    kind: str,
    weights_p: Any,
    weights_u: Any,
    correction: str | None = None,
    beta: float = 0.0,
    gamma: float = 1.0,
) -> chainer.Variable:
    node = _PURisk(condition, loss, kind, weights_p, weights_u, correction, beta, gamma)
    # Before Chainer sees them, whose message would be of several lines.
    _check_scores(chainer.as_array(scores_p), chainer.as_array(scores_u), len(node.prior))
    return node.apply((scores_p, scores_u))[0]


class _PURisk(chainer.FunctionNode):
    """a·Ê_p[ℓ(g)] + b·(Ê_u[ℓ(−g)] − π Ê_p[ℓ(−g)]), optionally corrected, in one node."""

    def __init__(
        self,
        condition: Conditions,
        loss: str | Loss,
        kind: str,
        weights_p: Any,
        weights_u: Any,
        correction: str | None,
        beta: float,
        gamma: float,
    ) -> None:
        super().__init__()
        self.prior, self.positive_weight, self.negative_weight = risk_weights(condition, kind)
        self.loss = get_loss(loss)
        self.weights_p, self.weights_u = weights_p, weights_u
        self.correction, self.beta, self.gamma = correction, beta, gamma

    def forward(self, inputs: tuple[Any, Any]) -> tuple[Any]:
        scores_p, scores_u = inputs
        _check_scores(scores_p, scores_u, len(self.prior))
        self.retain_inputs((0, 1))
        xp, dtype = chainer.backend.get_array_module(scores_p), scores_p.dtype
        self.prior, a, b = (
            beside(array, scores_p, dtype)
            for array in (self.prior, self.positive_weight, self.negative_weight)
        )
        self.weights_p = _normalised(xp, "weights_p", self.weights_p, scores_p)
        self.weights_u = _normalised(xp, "weights_u", self.weights_u, scores_u)
        g_p, g_u = _columns(scores_p), _columns(scores_u)
        value = self.loss.value
        positive = (self.weights_p * value(g_p)).sum(axis=0)
        negative = (self.weights_u * value(-g_u)).sum(axis=0) - self.prior * (
            self.weights_p * value(-g_p)
        ).sum(axis=0)
        # The weights that the gradient sees; they differ from a and b only
        # where the non-negative correction acts.
        if self.correction is None:
            total = a * positive + b * negative
        elif self.correction == "max":
            total = a * positive + b * xp.maximum(negative, 0.0)
            b = xp.where(negative > 0.0, b, xp.zeros_like(b))
        else:
            ascend = negative < -self.beta
            total = a * positive + b * xp.where(ascend, -self.beta, negative).astype(dtype)
            a = xp.where(ascend, xp.zeros_like(a), a)
            b = xp.where(ascend, -self.gamma * b, b)
        self.gradient_weights = a, b
        return (total.reshape(scores_p.shape[1:]).astype(dtype, copy=False),)

    def backward(self, indexes: tuple[int, ...], grad_outputs: tuple[Any]) -> tuple[Any, Any]:
        scores_p, scores_u = self.get_retained_inputs()
        return _PURiskGradient(self).apply((scores_p, scores_u, grad_outputs[0]))


class _PURiskGradient(chainer.FunctionNode):
    """The gradient of :class:`_PURisk`, itself differentiable."""

    def __init__(self, risk: _PURisk) -> None:
        super().__init__()
        self.risk = risk

    def forward(self, inputs: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        self.retain_inputs((0, 1, 2))
        scores_p, scores_u, grad = inputs
        slope_p, slope_u = self._slopes(scores_p, scores_u, self.risk.loss.derivative, -1.0)
        return (slope_p * grad).astype(grad.dtype), (slope_u * grad).astype(grad.dtype)

    def backward(self, indexes: tuple[int, ...], grad_outputs: tuple[Any, Any]) -> tuple[Any, ...]:
        scores_p, scores_u, grad = (variable.array for variable in self.get_retained_inputs())
        gg_p, gg_u = (variable.array for variable in grad_outputs)
        slope_p, slope_u = self._slopes(scores_p, scores_u, self.risk.loss.derivative, -1.0)
        curve_p, curve_u = self._slopes(scores_p, scores_u, self.risk.loss.second_derivative, 1.0)
        grad_grad = _columns(gg_p * slope_p).sum(axis=0) + _columns(gg_u * slope_u).sum(axis=0)
        return tuple(
            chainer.as_variable(array.astype(grad.dtype, copy=False))
            for array in (
                gg_p * curve_p * grad,
                gg_u * curve_u * grad,
                grad_grad.reshape(grad.shape),
            )
        )

    def _slopes(
        self, scores_p: Any, scores_u: Any, derivative: Any, inner: float
    ) -> tuple[Any, Any]:
        """Return the derivative of the risk by each score, of the order of ``derivative``.

        ``inner`` is the factor by which d/dz ℓ(−z) differs from ℓ′(−z).
        """
        a, b = self.risk.gradient_weights
        g_p, g_u = _columns(scores_p), _columns(scores_u)
        by_p = self.risk.weights_p * (
            a * derivative(g_p) - inner * b * self.risk.prior * derivative(-g_p)
        )
        by_u = self.risk.weights_u * (inner * b * derivative(-g_u))
        return by_p.reshape(scores_p.shape), by_u.reshape(scores_u.shape)


def _columns(scores: Any) -> Any:
    return scores[:, None] if scores.ndim == 1 else scores


def _check_scores(scores_p: Any, scores_u: Any, n_conditions: int) -> None:
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
    n_models = scores_p.shape[1] if scores_p.ndim == 2 else 1
    if n_conditions not in (1, n_models):
        raise ValueError(
            f"condition must be one or one per model, got {n_conditions} for {n_models} models"
        )


def _normalised(xp: Any, name: str, weights: Any, scores: Any) -> Any:
    """Row weights as columns that sum to one."""
    n = scores.shape[0]
    if weights is None:
        return xp.full((n, 1), 1.0 / n, dtype=scores.dtype)
    try:
        weights = beside(weights, scores, scores.dtype)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {shown(weights)}") from None
    if weights.shape not in ((n,), scores.shape):
        raise ValueError(f"{name} must have shape {(n,)} or {scores.shape}, got {weights.shape}")
    weights = _columns(weights)
    total = weights.sum(axis=0)
    if not bool(((total > 0) & xp.isfinite(total)).all()) or bool((weights < 0).any()):
        raise ValueError(f"{name} must be non-negative and finite, with a positive sum per model")
    return weights / total
