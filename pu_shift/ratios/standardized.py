"""A density ratio of standardised features."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from pu_shift._checks import check_scales
from pu_shift._grids import Folds
from pu_shift.device import Device, to_numpy
from pu_shift.ratios.base import DensityRatio, Ratio, State, check_shape


def mean_and_scale(first: Any, second: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each column of two samples; 1 for a constant one."""
    low = np.minimum(first.min(axis=0), second.min(axis=0))
    high = np.maximum(first.max(axis=0), second.max(axis=0))
    check_scales(low, high)
    (n, m), (mean, other) = (
        (first.shape[0], second.shape[0]),
        (X.mean(axis=0, dtype=np.float64) for X in (first, second)),
    )
    squares = sum(np.square(X - own).sum(axis=0) for X, own in ((first, mean), (second, other)))
    apart = other - mean
    squares = squares + apart**2 * (n * m / (n + m))
    scale = np.sqrt(squares / (n + m))
    scale = np.where((high > low) & (scale > 0.0), scale, 1.0)
    mean = mean + apart * (m / (n + m))
    return mean.astype(first.dtype), scale.astype(first.dtype)


class StandardizedRatio(DensityRatio, BaseEstimator):
    """Another ratio, fitted to features of mean 0 and standard deviation 1.

    Parameters
    ----------
    ratio
        The ratio; it is copied before it is fitted.
    device
        The device where it is fitted and evaluated; ``None`` is the CPU.
    """

    ratio_: Any
    mean_: np.ndarray
    scale_: np.ndarray

    def __init__(self, ratio: Any = None, device: Any = None) -> None:
        self.ratio = ratio
        self.device = device

    def fit(self, numerator: Any, denominator: Any) -> StandardizedRatio:
        """Fit to a sample of each density; see :meth:`DensityRatio.fit`."""
        self.mean_, self.scale_ = mean_and_scale(numerator, denominator)
        self.ratio_ = clone(self.ratio)
        with self._device.use():
            self.ratio_.fit(*map(self._scaled, (numerator, denominator)))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return w(x) for each row, in NumPy; see :meth:`DensityRatio.predict`."""
        with self._device.use():
            return to_numpy(self.ratio_.predict(self._scaled(X))).astype(np.float64, copy=False)

    @property
    def _device(self) -> Device:
        return Device() if self.device is None else self.device

    def _scaled(self, X: Any) -> Any:
        return self._device.send((X - self.mean_) / self.scale_)

    @property
    def can_be_saved(self) -> bool:
        """Whether the ratio can be."""
        return self.ratio.can_be_saved

    def with_choices(self) -> StandardizedRatio:
        """Return such an estimator that is not fitted, of a ratio with its choices."""
        return StandardizedRatio(self.ratio_.with_choices(), self.device)

    @property
    def shares_folds(self) -> bool:  # type: ignore[override]
        """Whether the ratio does."""
        return self.ratio.shares_folds

    def without_folds(
        self,
        samples: Sequence[Any],
        folds: Sequence[Folds],
        only: Iterable[int],
        fit_params: Mapping[str, Any],
    ) -> list[tuple[Any, list[np.ndarray]]]:
        """See :meth:`DensityRatio.without_folds`; mean and scale are those of all rows."""
        with self._device.use():
            scaled = [self._scaled(X) for X in samples]
            found = self.ratio_.without_folds(scaled, folds, only, fit_params)
        fitted = []
        for inner, values in found:
            ratio = copy.copy(self)
            ratio.ratio_ = inner
            fitted.append((ratio, [part.astype(np.float64, copy=False) for part in values]))
        return fitted

    def _state(self) -> State:
        return {"mean": self.mean_, "scale": self.scale_, "ratio": self.ratio_.to_state()}

    @classmethod
    def _restore(cls, state: Mapping[str, Any]) -> StandardizedRatio:
        fitted = Ratio.from_state(state["ratio"])
        ratio = cls(fitted)
        ratio.ratio_ = fitted
        d = (len(state["mean"]),)
        ratio.mean_, ratio.scale_ = (check_shape(n, state[n], d) for n in ("mean", "scale"))
        if not (ratio.scale_ > 0.0).all():
            raise ValueError("scale must be positive")
        return ratio
