r"""Margin losses ℓ(z), with derivatives, for any array module.

Every surrogate here is scaled so that the linear-odd condition of the paper's proofs holds as
printed, ℓ(z) − ℓ(−z) = −z; this makes the squared loss (1 − z)²/4 and the modified Huber loss a
quarter of its textbook form. A positive factor changes no minimiser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pu_shift._checks import one_of
from pu_shift.device import array_namespace


class Loss:
    """A margin loss with its first two derivatives.

    Each method takes a real floating array of any shape and array module (or a number or list,
    taken as float64) and returns an array of the same shape and dtype. At a kink the derivative
    is the one on the right.

    Attributes
    ----------
    name : str
        The name by which :func:`get_loss` finds it.
    linear_odd : bool
        Whether ℓ(z) − ℓ(−z) = −z, the condition of Theorems 6 and 8.
    """

    name: str
    linear_odd: bool = True
    # Given the array module and a floating array.
    _value: Callable[[Any, Any], Any]
    _derivative: Callable[[Any, Any], Any]
    _second_derivative: Callable[[Any, Any], Any]

    def value(self, z: Any) -> Any:
        """ℓ(z)."""
        return _same_dtype(self._value, z)

    def derivative(self, z: Any) -> Any:
        """ℓ′(z)."""
        return _same_dtype(self._derivative, z)

    def second_derivative(self, z: Any) -> Any:
        """ℓ″(z), where it exists, and 0 at the kinks of piecewise linear losses."""
        return _same_dtype(self._second_derivative, z)

    def __repr__(self) -> str:
        return f"get_loss({self.name!r})"


class Squared(Loss):
    r"""Squared loss.

    .. math:: \ell(z) = \tfrac14 (1 - z)^2
    """

    name = "squared"

    def _value(self, xp: Any, z: Any) -> Any:
        half = 0.5 * z
        half -= 0.5
        half *= half
        return half

    def _derivative(self, xp: Any, z: Any) -> Any:
        half = 0.5 * z
        half -= 0.5
        return half

    def _second_derivative(self, xp: Any, z: Any) -> Any:
        return xp.full_like(z, 0.5)


class DoubleHinge(Loss):
    r"""Double hinge loss (du Plessis, Niu & Sugiyama, 2015).

    .. math:: \ell(z) = \max\left(-z, \max\left(0, \tfrac12 - \tfrac12 z\right)\right)
    """

    name = "double_hinge"

    def _value(self, xp: Any, z: Any) -> Any:
        # ½(1 − z)₊ + ½(−1 − z)₊: clipping is several times faster than `where`.
        # In place where it can be, because large temporaries cost more than the arithmetic.
        left = -0.5 * z
        right = left + 0.5
        left -= 0.5
        value = xp.clip(right, 0.0, xp.inf)
        value += xp.clip(left, 0.0, xp.inf)
        return value

    def _derivative(self, xp: Any, z: Any) -> Any:
        kinks_below = 0.5 * z
        kinks_below += 1.5
        slope = xp.clip(xp.floor(kinks_below), 0.0, 2.0)
        slope *= 0.5
        slope -= 1.0
        return slope

    def _second_derivative(self, xp: Any, z: Any) -> Any:
        return xp.zeros_like(z)


class Logistic(Loss):
    r"""Logistic loss.

    .. math:: \ell(z) = \log(1 + e^{-z})
    """

    name = "logistic"

    def _value(self, xp: Any, z: Any) -> Any:
        return xp.where(z < 0.0, -z, xp.zeros_like(z)) + xp.log1p(xp.exp(-xp.abs(z)))

    def _derivative(self, xp: Any, z: Any) -> Any:
        e = xp.exp(-xp.abs(z))
        return -xp.where(z < 0.0, xp.ones_like(z), e) / (1.0 + e)

    def _second_derivative(self, xp: Any, z: Any) -> Any:
        e = xp.exp(-xp.abs(z))
        return e / (1.0 + e) ** 2


class ModifiedHuber(Loss):
    r"""Modified Huber loss, a quarter of its usual scale.

    .. math:: \ell(z) = \begin{cases} \tfrac14 \max(0, 1-z)^2 & z \ge -1 \\
                                      -z & z < -1 \end{cases}
    """

    name = "modified_huber"

    def _value(self, xp: Any, z: Any) -> Any:
        hinge = xp.where(z < 1.0, 1.0 - z, xp.zeros_like(z))
        return xp.where(z < -1.0, -z, 0.25 * hinge**2)

    def _derivative(self, xp: Any, z: Any) -> Any:
        zero = xp.zeros_like(z)
        return xp.where(z < -1.0, zero - 1.0, xp.where(z < 1.0, 0.5 * (z - 1.0), zero))

    def _second_derivative(self, xp: Any, z: Any) -> Any:
        zero = xp.zeros_like(z)
        return xp.where((z >= -1.0) & (z < 1.0), zero + 0.5, zero)


class ZeroOne(Loss):
    r"""Zero-one loss of the paper: ½ on the boundary.

    .. math:: \ell_{0\text{-}1}(z) = \tfrac12 - \tfrac12 \mathrm{sign}(z)
    """

    name = "zero_one"
    linear_odd = False

    def _value(self, xp: Any, z: Any) -> Any:
        return 0.5 - 0.5 * xp.sign(z)

    def _derivative(self, xp: Any, z: Any) -> Any:
        return xp.zeros_like(z)

    def _second_derivative(self, xp: Any, z: Any) -> Any:
        return xp.zeros_like(z)


LOSSES = {
    loss.name: loss for loss in (Squared(), DoubleHinge(), Logistic(), ModifiedHuber(), ZeroOne())
}
SURROGATES = tuple(name for name in LOSSES if name != "zero_one")


def get_loss(loss: str | Loss) -> Loss:
    """Return a loss by its name; a :class:`Loss` is returned as it is."""
    if isinstance(loss, Loss):
        return loss
    return LOSSES[one_of("loss", loss, LOSSES)]


def _same_dtype(function: Any, z: Any) -> Any:
    if isinstance(z, (int, float, list, tuple)):
        z = np.asarray(z, dtype=np.float64)
    xp = array_namespace(z)
    if not xp.isdtype(z.dtype, "real floating"):
        raise ValueError(f"z must be a floating array, got dtype {z.dtype}")
    # NumPy 1 makes float64 of a zero-dimensional float32 and a Python number.
    return xp.astype(function(xp, z), z.dtype, copy=False)
