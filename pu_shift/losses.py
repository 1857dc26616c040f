r"""Margin losses ℓ(z), with their derivatives and links, for any array module.

Every surrogate here is scaled so that the linear-odd condition of the paper's proofs holds as
printed, ℓ(z) − ℓ(−z) = −z; this makes the squared loss (1 − z)²/4 and the modified Huber loss a
quarter of its textbook form. A positive factor changes no minimiser.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from pu_shift._checks import one_of
from pu_shift.device import array_namespace

# Scores at which it is checked whether a loss is proper.
_PROBES = np.concatenate([-np.logspace(1, -3, 41), np.logspace(-3, 1, 41)])
# The search for a margin ends here.
_LARGEST_MARGIN = 1e6


class Loss:
    """A margin loss with its derivative, and the posterior of its minimiser.

    A subclass has a name and two methods, ``_value(xp, z)`` and ``_derivative(xp, z)``, which take
    the array module and a floating array; the posterior follows from the derivative.

    Each method takes a real floating array of any shape and array module (or a number or list,
    taken as float64) and returns an array of the same shape and dtype. At a kink the derivative
    is the one on the right.

    Attributes
    ----------
    name : str
        The name by which :func:`get_loss` finds it.
    linear_odd : bool
        Whether ℓ(z) − ℓ(−z) = −z, the condition of Theorems 6 and 8.
    trainable : bool
        Whether it has a gradient to be trained by.
    curvature : float or None
        ℓ″ of a linear-odd loss where it is constant, so that ℓ′(z) = ℓ″z − ½ and the risk is
        quadratic (:mod:`pu_shift.estimators.closed_form`); else ``None``.
    """

    name: str
    linear_odd: bool = False
    trainable: bool = True
    curvature: float | None = None
    _value: Callable[[Any, Any], Any]
    _derivative: Callable[[Any, Any], Any]

    def value(self, z: Any) -> Any:
        """ℓ(z)."""
        return _same_dtype(self._value, z)

    def derivative(self, z: Any) -> Any:
        """ℓ′(z)."""
        return _same_dtype(self._derivative, z)

    @cached_property
    def is_proper(self) -> bool:
        """Whether scores determine posteriors; a piecewise linear loss determines their sign."""
        with np.errstate(all="ignore"):
            posterior = self._link(np, _PROBES)
        posterior = posterior[(posterior > 1e-9) & (posterior < 1.0 - 1e-9)]
        return len(posterior) > 2 and bool((np.diff(posterior) > 0.0).all())

    def posterior(self, g: Any, slope: float = 1.0) -> Any:
        r"""Link of the loss: the posterior q whose conditional risk qℓ(g) + (1 − q)ℓ(−g) is least.

        The derivative of the conditional risk vanishes there (Reid & Williamson, 2010), which
        gives q, cut to [0, 1]:

        .. math:: q\,\ell'(g) - (1 - q)\,\ell'(-g) = 0 \iff
                  q = \frac{\ell'(-g)}{\ell'(g) + \ell'(-g)}

        Parameters
        ----------
        g
            Scores.
        slope
            Used by losses that are not proper: s > 0 of Platt's scaling, q = 1/(1 + exp(−s·g)).

        Returns
        -------
        array
            Posteriors, of the shape and dtype of g.

        Examples
        --------
        >>> get_loss("squared").posterior([-2.0, 0.0, 0.5]).tolist()
        [0.0, 0.5, 0.75]
        >>> get_loss("double_hinge").posterior([-1.0, 0.0, 1.0], slope=3.0).round(3).tolist()
        [0.047, 0.5, 0.953]
        """
        if self.is_proper:
            return _same_dtype(self._link, g)
        return _same_dtype(lambda xp, z: 0.5 + 0.5 * xp.tanh((0.5 * slope) * z), g)

    def margin(self, q: Any) -> np.ndarray:
        """Score of least conditional risk at the posterior q: the inverse of :meth:`posterior`.

        Of a loss that is not proper it is the sign of q − ½.

        Parameters
        ----------
        q
            Posteriors strictly between 0 and 1.

        Returns
        -------
        numpy.ndarray
            Scores in float64, of the shape of q.

        Examples
        --------
        >>> get_loss("squared").margin([0.1, 0.5]).tolist()
        [-0.8, 0.0]
        >>> get_loss("double_hinge").margin([0.1, 0.9]).tolist()
        [-1.0, 1.0]
        """
        q = np.asarray(q, dtype=np.float64)
        return self._inverse_link(q) if self.is_proper else np.sign(q - 0.5)

    def _link(self, xp: Any, g: Any) -> Any:
        at_minus_g = self._derivative(xp, -g)
        # ℓ′(g) + ℓ′(−g) = −1 holds to rounding only.
        total = -1.0 if self.linear_odd else self._derivative(xp, g) + at_minus_g
        return xp.clip(at_minus_g / total, 0.0, 1.0)

    def _inverse_link(self, q: np.ndarray) -> np.ndarray:
        """Bisect the link; subclasses with a formula override it."""
        bound, extremes = 1.0, np.array([q.min(initial=0.5), q.max(initial=0.5)])
        while (
            bound < _LARGEST_MARGIN
            and (np.abs(self.posterior([-bound, bound]) - 0.5) < np.abs(extremes - 0.5)).any()
        ):
            bound *= 2.0
        low, high = np.full(q.shape, -bound), np.full(q.shape, bound)
        for _ in range(100):
            middle = 0.5 * (low + high)
            above = self.posterior(middle) > q
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return 0.5 * (low + high)

    def __repr__(self) -> str:
        return f"get_loss({self.name!r})"


class Squared(Loss):
    r"""Squared loss.

    .. math:: \ell(z) = \tfrac14 (1 - z)^2
    """

    name = "squared"
    linear_odd = True
    curvature = 0.5

    def _value(self, xp: Any, z: Any) -> Any:
        half = 0.5 * z
        half -= 0.5
        half *= half
        return half

    def _derivative(self, xp: Any, z: Any) -> Any:
        half = 0.5 * z
        half -= 0.5
        return half

    def _inverse_link(self, q: np.ndarray) -> np.ndarray:
        return 2.0 * q - 1.0


class DoubleHinge(Loss):
    r"""Double hinge loss (du Plessis, Niu & Sugiyama, 2015).

    .. math:: \ell(z) = \max\left(-z, \max\left(0, \tfrac12 - \tfrac12 z\right)\right)
    """

    name = "double_hinge"
    linear_odd = True

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


class Logistic(Loss):
    r"""Logistic loss.

    .. math:: \ell(z) = \log(1 + e^{-z})
    """

    name = "logistic"
    linear_odd = True

    def _value(self, xp: Any, z: Any) -> Any:
        return xp.where(z < 0.0, -z, xp.zeros_like(z)) + xp.log1p(xp.exp(-xp.abs(z)))

    def _derivative(self, xp: Any, z: Any) -> Any:
        e = xp.exp(-xp.abs(z))
        return -xp.where(z < 0.0, xp.ones_like(z), e) / (1.0 + e)

    def _inverse_link(self, q: np.ndarray) -> np.ndarray:
        return np.log(q / (1.0 - q))


class ModifiedHuber(Loss):
    r"""Modified Huber loss, a quarter of its usual scale.

    .. math:: \ell(z) = \begin{cases} \tfrac14 \max(0, 1-z)^2 & z \ge -1 \\
                                      -z & z < -1 \end{cases}
    """

    name = "modified_huber"
    linear_odd = True

    def _value(self, xp: Any, z: Any) -> Any:
        hinge = xp.where(z < 1.0, 1.0 - z, xp.zeros_like(z))
        return xp.where(z < -1.0, -z, 0.25 * hinge**2)

    def _derivative(self, xp: Any, z: Any) -> Any:
        zero = xp.zeros_like(z)
        return xp.where(z < -1.0, zero - 1.0, xp.where(z < 1.0, 0.5 * (z - 1.0), zero))

    def _inverse_link(self, q: np.ndarray) -> np.ndarray:
        return 2.0 * q - 1.0


class ZeroOne(Loss):
    r"""Zero-one loss of the paper: ½ on the boundary.

    .. math:: \ell_{0\text{-}1}(z) = \tfrac12 - \tfrac12 \mathrm{sign}(z)
    """

    name = "zero_one"
    trainable = False

    def _value(self, xp: Any, z: Any) -> Any:
        return 0.5 - 0.5 * xp.sign(z)

    def _derivative(self, xp: Any, z: Any) -> Any:
        return xp.zeros_like(z)


# The registry: a new loss is a class above and one entry here.
LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (Squared(), DoubleHinge(), Logistic(), ModifiedHuber(), ZeroOne())
}


def surrogates() -> tuple[str, ...]:
    """Return the names of the losses that can be trained."""
    return tuple(name for name, loss in LOSSES.items() if loss.trainable)


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
