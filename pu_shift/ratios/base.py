r"""What every estimator of a density ratio w(x) = p_nu(x)/p_de(x) has in common.

``fit(numerator, denominator)`` takes a sample of each density, ``predict(X)`` returns w(x).
Estimators that are sums of basis functions, w(x) = Σ_l θ_l φ_l(x), share :class:`BasisRatio`.
"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from pu_shift._checks import one_of, positive, shown
from pu_shift._grids import WIDTH_FACTORS, Folds, GridEdgeWarning, check_grid, random_folds
from pu_shift._seeds import Seed, child
from pu_shift.device import array_namespace, beside, device_of, to_numpy
from pu_shift.ratios.kernels import (
    CENTER_SOURCES,
    Basis,
    as_rows,
    at_most,
    check_scale,
    choose_centers,
    feature_chunks,
    median_distance,
    near_median_distance,
)

State = dict[str, Any]


def default_centers(n: int) -> int:
    """Return how many kernel centres serve n rows: 4√n, between 100 and 500.

    Parameters
    ----------
    n
        Number of rows of P and U.

    Returns
    -------
    int
        At most n.

    Examples
    --------
    >>> [default_centers(n) for n in (50, 500, 2500, 10**6)]
    [50, 100, 200, 500]
    """
    return min(n, max(100, min(500, round(4.0 * n**0.5))))


class Ratio(ABC):
    """A function w(x), the ratio of two densities, that can be saved if it consists of numbers."""

    _kinds: ClassVar[dict[str, type[Ratio]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Ratio._kinds[cls.__name__] = cls

    @abstractmethod
    def predict(self, X: Any) -> Any:
        """Return w(x) for each row.

        Parameters
        ----------
        X
            (n, d) rows.

        Returns
        -------
        array
            (n,) ratios.
        """

    def __call__(self, X: Any) -> Any:
        """Return w(x) for each row, like ``predict``."""
        return self.predict(X)

    @property
    def can_be_saved(self) -> bool:
        """Whether the fitted state is made of numbers alone."""
        return type(self)._state is not Ratio._state

    def to_state(self) -> State:
        """Return the fitted state: numbers, texts, arrays, and dicts and lists of them.

        Returns
        -------
        dict
            What :meth:`from_state` makes an equal ratio of.
        """
        return {"kind": type(self).__name__, **self._state()}

    @staticmethod
    def from_state(state: Mapping[str, Any]) -> Any:
        """Return the ratio of a state, of whatever kind it is.

        Parameters
        ----------
        state
            What ``to_state`` returned.

        Returns
        -------
        Ratio
            The fitted ratio, on the CPU.
        """
        kind = Ratio._kinds.get(state["kind"])
        if kind is None:
            raise ValueError(f"kind must be that of a ratio, got {shown(state['kind'])}")
        return kind._restore(state)

    def _state(self) -> State:
        """Return the state without its kind; implemented by each subclass that can be saved."""
        raise ValueError(f"{type(self).__name__} cannot be saved without code")

    @classmethod
    def _restore(cls, state: Mapping[str, Any]) -> Any:
        """Return the ratio of a state; implemented by each subclass that can be saved."""
        raise ValueError(f"{cls.__name__} cannot be saved without code")


class DensityRatio(Ratio):
    """An estimator of w(x) = p_nu(x)/p_de(x) from a sample of each density.

    A new one has ``fit`` and ``predict``, a constructor that can do without arguments, and a line
    in :data:`pu_shift.ratios.registry.RATIOS`. It can be saved if it has ``_state`` and
    ``_restore``.
    """

    @abstractmethod
    def fit(self, numerator: Any, denominator: Any) -> DensityRatio:
        """Fit to a sample of each density.

        Parameters
        ----------
        numerator, denominator
            (n, d) samples of p_nu and p_de.

        Returns
        -------
        self
            The fitted ratio.
        """

    def for_classifier(self, prior: float, seed: Seed, device: Any) -> Any:
        """Return a copy that is not fitted; what it leaves open is the classifier's.

        Parameters
        ----------
        prior, seed, device
            π, the seed of everything random, and the device of the classifier.
        """
        return clone(self)

    # Whether the fits without a fold share work, so that one process should do them all.
    shares_folds: ClassVar[bool] = False

    def with_choices(self) -> Any:
        """Return an estimator that is not fitted, with the hyper-parameters that the fit chose."""
        return clone(self)

    def without_folds(
        self,
        samples: Sequence[Any],
        folds: Sequence[Folds],
        only: Iterable[int],
        fit_params: Mapping[str, Any],
    ) -> list[tuple[Any, list[np.ndarray]]]:
        """Fit to all rows but those of a fold, with the choices of this fit.

        Parameters
        ----------
        samples, folds
            Rows of p_nu and of p_de, and the folds they are in.
        only
            The folds to leave out, one at a time.
        fit_params
            Parameters of ``fit``: pairs of arrays, for the rows of each sample.

        Returns
        -------
        list
            For each fold the ratio, and its values of the fold's rows in each sample.
        """
        found = []
        for fold in only:
            kept = [one.of_rows != fold for one in folds]
            own = {
                name: tuple(part[keep] for part, keep in zip(parts, kept))
                for name, parts in fit_params.items()
            }
            ratio = self.with_choices().fit(*(X[keep] for X, keep in zip(samples, kept)), **own)
            found.append((ratio, [ratio(X[~keep]) for X, keep in zip(samples, kept)]))
        return found


@dataclass(frozen=True)
class Expansion:
    """Σ_l θ_l φ_l(x): Gaussian kernels around centres, or (x, 1) without centres."""

    coefficients: Any
    n_columns: int
    centers: Any = None
    width: float = float("nan")

    def __call__(self, X: Any) -> Any:
        """Return the sum for each row."""
        X = as_rows("X", X, columns=self.n_columns)
        xp = array_namespace(X, self.coefficients)
        parts = []
        for chunk in feature_chunks(X, self.coefficients.shape[0]):
            ((_, features),) = Basis(self.centers).features(chunk, [self.width])
            parts.append(weighted(features, self.coefficients))
        return xp.concat(parts) if len(parts) > 1 else parts[0]

    def to_state(self) -> State:
        """Return the state, with ``None`` for what the linear basis does not have."""
        linear = self.centers is None
        return {
            "coefficients": to_numpy(self.coefficients),
            "n_columns": self.n_columns,
            "centers": None if linear else to_numpy(self.centers),
            "width": None if linear else float(self.width),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Expansion:
        """Return the expansion of a state, if its parts belong together."""
        coefficients, n_columns, centers = (
            state[name] for name in ("coefficients", "n_columns", "centers")
        )
        b, width = n_columns + 1, float("nan")
        if centers is not None:
            b, width = max(1, len(centers)), positive("width", state["width"])
            check_shape("centers", centers, (b, n_columns))
        check_shape("coefficients", coefficients, (b,))
        return cls(coefficients, n_columns, centers, width)


def check_shape(name: str, array: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of a state if it has finite numbers and this shape."""
    if np.shape(array) != shape or not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be finite numbers of shape {shape}, got shape {np.shape(array)}"
        )
    return array


def weighted(features: Any, coefficients: Any) -> Any:
    """Features @ coefficients, in the features' precision if it can hold the coefficients."""
    xp = array_namespace(features)
    if float(xp.max(xp.abs(coefficients))) < 1e-4 * float(xp.finfo(features.dtype).max):
        return xp.matmul(features, xp.astype(coefficients, features.dtype))
    # KLIEP's are large at centres that the denominator hardly reaches.
    return xp.matmul(xp.astype(features, xp.float64), coefficients)


def _renamed(name: str) -> property:
    """Return a property that warns and returns the attribute of the name."""

    def get(self: Any) -> Any:
        message = f"{name[:-1]} of a ratio is called {name}: the old name goes with version 0.4"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(self, name)

    return property(get)


class BasisRatio(DensityRatio, BaseEstimator):
    """A ratio w(x) = Σ_l θ_l φ_l(x): what uLSIF and KLIEP have in common.

    Attributes
    ----------
    centers_ : array
        (b, d) kernel centres (``None`` for the linear basis).
    width_ : float
        The chosen σ (NaN for the linear basis).
    lam_ : float
        The chosen λ (NaN for KLIEP, which has none).
    coefficients_ : array
        θ, of shape (b,), float64.
    widths_, lams_ : numpy.ndarray
        The grids searched, with all rows.
    scores_ : numpy.ndarray
        (len(widths_), len(lams_)) validation scores, lower is better; NaN when there was only one
        candidate and nothing to choose.
    """

    shares_folds = True
    centers_: Any
    width_: float
    lam_: float
    coefficients_: Any
    widths_: np.ndarray
    lams_: np.ndarray
    scores_: np.ndarray
    n_features_in_: int

    @classmethod
    def _get_param_names(cls) -> list[str]:
        # The samples of the constructor are no parameters.
        names = super()._get_param_names()
        return [name for name in names if name not in ("numerator", "denominator")]

    # Names of the attributes before version 0.3.
    width, lam, coefficients, scores = map(_renamed, ("width_", "lam_", "coefficients_", "scores_"))

    @property
    def expansion_(self) -> Expansion:
        """The sum of basis functions."""
        return Expansion(self.coefficients_, self.n_features_in_, self.centers_, self.width_)

    def predict(self, X: Any) -> Any:
        """Return w(x) for each row.

        Parameters
        ----------
        X
            (n, d) array of the array module it was fitted with.

        Returns
        -------
        array
            (n,) ratios.
        """
        return self.expansion_(X)

    def predict_numpy(self, X: np.ndarray) -> np.ndarray:
        """Return w(x) in NumPy for each row of an array of it, computed where it was fitted."""
        device = device_of(self.coefficients_)
        with device.use():
            return to_numpy(self.predict(device.send(X)))

    def held_out(
        self, numerator: Any, denominator: Any, n_folds: int, seed: Seed
    ) -> tuple[np.ndarray, ...]:
        """Ratios of the rows it was fitted to, by coefficients that do not know the row's fold.

        Width and λ are the chosen ones. Two rows are too few to leave one out. The ratios are
        in NumPy, wherever the rows are.
        """
        samples = numerator, denominator
        if min(rows.shape[0] for rows in samples) < 3:
            return tuple(to_numpy(self(X)) for X in samples)
        folds = [
            random_folds(name, rows.shape[0], n_folds, child(seed, k))
            for k, (name, rows) in enumerate(zip(("numerator", "denominator"), samples))
        ]
        coefficients = self._without_folds(samples, folds)
        return tuple(
            to_numpy(self._by_fold(*sample, coefficients)) for sample in zip(samples, folds)
        )

    def without_folds(
        self,
        samples: Sequence[Any],
        folds: Sequence[Folds],
        only: Iterable[int],
        fit_params: Mapping[str, Any],
    ) -> list[tuple[Any, list[np.ndarray]]]:
        """See :meth:`DensityRatio.without_folds`; the kernels keep their centres and width."""
        coefficients, found = self._without_folds(samples, folds), []
        values = [to_numpy(self._by_fold(*sample, coefficients)) for sample in zip(samples, folds)]
        places = [one.of_rows for one in folds]
        for fold in only:
            ratio = copy.copy(self)
            ratio.coefficients_ = coefficients[:, fold]
            found.append((ratio, [part[own == fold] for part, own in zip(values, places)]))
        return found

    @abstractmethod
    def _without_folds(self, samples: Sequence[Any], folds: Sequence[Folds]) -> Any:
        """Return (b, F) coefficients of the chosen width and λ, without each fold."""

    def _by_fold(self, X: Any, folds: Folds, coefficients: Any) -> Any:
        xp = array_namespace(X)
        own = beside(np.eye(folds.n_folds)[folds.of_rows], coefficients)
        parts, start = [], 0
        for chunk in feature_chunks(X, coefficients.shape[0]):
            ((_, features),) = Basis(self.centers_).features(chunk, [self.width_])
            stop = start + chunk.shape[0]
            parts.append(xp.sum(weighted(features, coefficients) * own[start:stop, :], axis=1))
            start = stop
        return xp.concat(parts)

    def _state(self) -> State:
        lam = None if np.isnan(self.lam_) else float(self.lam_)
        return {**self.expansion_.to_state(), "lam": lam}

    @classmethod
    def _restore(cls, state: Mapping[str, Any]) -> Any:
        expansion, ratio = Expansion.from_state(state), cls()
        ratio.centers_, ratio.coefficients_ = expansion.centers, expansion.coefficients
        ratio.width_, ratio.n_features_in_ = expansion.width, expansion.n_columns
        ratio.lam_ = float("nan") if state["lam"] is None else float(state["lam"])
        ratio.widths_, ratio.lams_ = np.array([ratio.width_]), np.array([ratio.lam_])
        ratio.scores_ = np.full((1, 1), np.nan)
        return ratio


def check_samples(numerator: Any, denominator: Any, linear: bool) -> tuple[Any, Any]:
    """Return two samples of one array module and dtype whose scale serves the basis."""
    numerator = as_rows("numerator", numerator, least=2)
    denominator = as_rows("denominator", denominator, least=2, columns=numerator.shape[1])
    array_namespace(numerator, denominator)
    if numerator.dtype != denominator.dtype:
        raise ValueError(
            f"denominator must have the dtype of numerator, {numerator.dtype}, "
            f"got {denominator.dtype}"
        )
    check_scale(numerator, denominator, linear=linear)
    return numerator, denominator


def gaussian_basis(
    samples: tuple[Any, Any],
    centers: Any,
    n_centers: int | None,
    widths: float | Iterable[float] | None,
    factors: float | Iterable[float] | None,
    seed: Seed,
) -> tuple[Basis, np.ndarray]:
    """Return kernels around the centres that are asked for, and the candidates of their width."""
    if isinstance(centers, str):
        one_of("centers", centers, CENTER_SOURCES)
        if n_centers is None:
            n_centers = default_centers(samples[0].shape[0] + samples[1].shape[0])
        centers = choose_centers(*samples, n_centers, centers, child(seed, 0))
    else:
        centers = as_rows("centers", centers, columns=samples[0].shape[1])
        centers = array_namespace(centers).astype(centers, samples[0].dtype)
    if widths is not None:
        return Basis(centers), check_grid("widths", widths, allow_zero=False)
    if factors is None:
        median = near_median_distance(*samples, child(seed, 1))
        return Basis(centers), np.array(WIDTH_FACTORS) * median
    factors = check_grid("width_factors", factors, allow_zero=False)
    return Basis(centers), factors * _joint_median(samples, seed)


def _joint_median(samples: Sequence[Any], seed: Seed) -> float:
    """Median distance within the union of the samples."""
    limit, parts = 4000, []
    total = sum(rows.shape[0] for rows in samples)
    for part, rows in enumerate(samples):
        n = rows.shape[0]
        share = n if total <= limit else max(2, limit * n // total)
        parts.append(at_most(rows, share, child(seed, 1, part)))
    return median_distance(array_namespace(*parts).concat(parts, axis=0), max_rows=limit + 2)


def choose(scores: np.ndarray, grids: Mapping[str, np.ndarray]) -> tuple[int, int]:
    """Return the place of the lowest score and warn when it is on the edge of a grid."""
    best = np.unravel_index(int(np.nanargmin(scores)), scores.shape)
    for (name, grid), place in zip(grids.items(), best):
        # An edge of λ = 0 is no edge: nothing lies beyond it.
        order = np.sort(grid)
        if grid.size > 1 and grid[place] in (order[0], order[-1]) and grid[place] > 0.0:
            warnings.warn(
                f"the best of {name} is {grid[place]:.3g}, on the edge of its grid "
                f"[{order[0]:.3g}, {order[-1]:.3g}]",
                GridEdgeWarning,
                stacklevel=3,
            )
    return int(best[0]), int(best[1])
