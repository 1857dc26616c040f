"""The paper's methods on one training set, for all given priors at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pu_shift._checks import one_of
from pu_shift._seeds import Seed, child
from pu_shift.device import array_namespace, get_device, to_numpy
from pu_shift.experiment.protocol import Protocol
from pu_shift.experiment.settings import EXTRA_METHODS, METHODS
from pu_shift.kernels import (
    choose_centers,
    kernel_from_distances,
    median_distance,
    squared_distances,
)
from pu_shift.priors import Condition
from pu_shift.selection import assign_folds, training_weights
from pu_shift.stacking import cross_validate
from pu_shift.ulsif import ULSIF, GridEdgeWarning

LOSSES = {"DH": "double_hinge", "Sq": "squared"}


@dataclass(frozen=True)
class Fitted:
    """A classifier for one given prior.

    Attributes
    ----------
    decide : callable
        Rows, on the host or the device, to signed scores on the host; positive
        means class +1.
    hyper : dict
        The chosen hyper-parameters: ``width``, ``lam``, ``step``.
    """

    decide: Callable[[Any], Any]
    hyper: dict[str, float]


class TrainingSet:
    """P and U, and what several methods share: centres, median, distances, folds.

    Parameters
    ----------
    positives, unlabeled
        (n, d) float32 arrays, on the host or the device.
    prior
        π, the class prior of the unlabelled rows.
    protocol
        The protocol.
    seed
        Seed of everything random in fitting.
    device
        The device that computes, see :func:`pu_shift.device.get_device`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> P, U = (rng.normal(m, 1, (n, 2)).astype("f") for m, n in ((1, 50), (0, 99)))
    >>> data = TrainingSet(P, U, 0.4, Protocol(), seed=0)
    >>> fitted = data.fit("p/u uLSIF", [0.4, 0.6])
    >>> bool(fitted[0.6].decide(P).mean() > fitted[0.4].decide(P).mean())
    True
    """

    def __init__(
        self,
        positives: np.ndarray,
        unlabeled: np.ndarray,
        prior: float,
        protocol: Protocol,
        seed: Seed,
        device: Any = None,
    ) -> None:
        self.device = get_device() if device is None else device
        self.prior, self.protocol, self.seed = prior, protocol, seed
        samples = self.device.send((positives, unlabeled))
        self._scaling = feature_scales(samples, protocol.feature_scaling)
        self.positives, self.unlabeled = (self._rows(rows) for rows in samples)

    def fit(self, method: str, given_priors: Sequence[float]) -> dict[float, Fitted]:
        """Fit one method for every given test prior.

        Parameters
        ----------
        method
            One of the paper's six names or ``'p/u uLSIF-Lin'``.
        given_priors
            The test priors given to the method.

        Returns
        -------
        dict
            Given prior to :class:`Fitted`.
        """
        one_of("method", method, (*METHODS, *EXTRA_METHODS))
        if "uLSIF" in method:
            basis = "linear" if method.endswith("-Lin") else "gaussian"
            return self._fit_ratio(method[:3], basis, given_priors)
        loss, basis = method.split("-")
        return self._fit_risk(LOSSES[loss], basis == "Ker", given_priors)

    def _rows(self, X: Any) -> Any:
        """Send rows to the device and scale their features."""
        rows = self.device.send(X)
        if self._scaling is not None:
            shift, scale = self._scaling
            rows = (rows - shift) / scale
        return rows

    @cached_property
    def width_unit(self) -> float:
        """What the widths' factors multiply: the median distance within P ∪ U, or 1."""
        if self.protocol.width_unit == "absolute":
            return 1.0
        rows = self.device.xp.concatenate([self.positives, self.unlabeled])
        return median_distance(rows, max_rows=len(rows))

    @cached_property
    def centers(self) -> Any:
        """The centres of uLSIF."""
        return self._draw_centers(self.protocol.n_centers)

    @cached_property
    def ker_centers(self) -> Any:
        """The centres of the Ker models."""
        return self._draw_centers(self.protocol.ker_centers)

    def _draw_centers(self, n: int) -> Any:
        return choose_centers(
            self.positives, self.unlabeled, n, self.protocol.center_source, child(self.seed, 0)
        )

    def ratio(
        self, direction: str, lams: Sequence[float], dtype: Any = None, **basis: Any
    ) -> ULSIF:
        """Fit uLSIF as the protocol has it.

        Parameters
        ----------
        direction
            ``'p/u'`` or ``'u/p'``.
        lams
            Candidates λ.
        dtype
            Precision of the samples; their own by default.
        **basis
            ``basis``, ``centers`` and ``widths`` of :class:`pu_shift.ulsif.ULSIF`.

        Returns
        -------
        ULSIF
            The ratio.
        """
        protocol, dtype = self.protocol, dtype or self.positives.dtype
        samples = [rows.astype(dtype, copy=False) for rows in (self.positives, self.unlabeled)]
        with warnings.catch_warnings():
            # The grid is the protocol's; its edge is no news to the user.
            warnings.simplefilter("ignore", GridEdgeWarning)
            return ULSIF(
                *(samples if direction == "p/u" else samples[::-1]),
                **basis,
                lams=lams,
                n_folds=protocol.n_folds,
                clip_coefficients=protocol.clip_coefficients,
                seed=child(self.seed, 1),
            )

    @cached_property
    def _ker_widths(self) -> np.ndarray:
        """The Ker models' candidates: one when uLSIF chooses among them."""
        widths = np.array(self.protocol.ker_width_factors) * self.width_unit
        if self.protocol.ker_width == "ratio" and len(widths) > 1:
            lams, centers = self.protocol.ker_lams, self.centers
            # Of λ below 10⁻⁵ single precision leaves rounding.
            ratio = self.ratio("p/u", lams, np.float64, centers=centers, widths=widths)
            widths = np.array([ratio.width])
        return widths

    def _fit_ratio(
        self, direction: str, basis: str, given_priors: Sequence[float]
    ) -> dict[float, Fitted]:
        """Fit the ratio once; a given prior moves only the threshold."""
        lams = self.protocol.ratio_lams
        if basis == "linear":
            ratio = self.ratio(direction, lams, basis=basis)
        else:
            widths = np.array(self.protocol.width_factors) * self.width_unit
            ratio = self.ratio(direction, lams, centers=self.centers, widths=widths)
        hyper = {"width": ratio.width, "lam": ratio.lam, "step": np.nan}

        def decider(given: float) -> Callable[[np.ndarray], np.ndarray]:
            condition = Condition(self.prior, given)
            return lambda X: condition.classify_ratio(to_numpy(ratio(self._rows(X))), direction)

        return {given: Fitted(decider(given), hyper) for given in given_priors}

    @cached_property
    def _fold_weights(self) -> tuple[np.ndarray, ...]:
        """(n, folds + 1) training weights of P and of U."""
        k = self.protocol.n_folds
        return tuple(
            training_weights(assign_folds(name, len(rows), k, seed), k)
            for name, rows, seed in (
                ("P", self.positives, child(self.seed, 2, 0)),
                ("U", self.unlabeled, child(self.seed, 2, 1)),
            )
        )

    @cached_property
    def ker_distances(self) -> tuple[Any, Any]:
        """Squared distances of P and of U to the Ker models' centres."""
        return tuple(
            squared_distances(rows, self.ker_centers) for rows in (self.positives, self.unlabeled)
        )

    def _fit_risk(
        self, loss: str, kernel: bool, given_priors: Sequence[float]
    ) -> dict[float, Fitted]:
        """Train given priors × λ × (folds + final) side by side, for each width."""
        protocol, given_priors = self.protocol, list(given_priors)
        lams, widths, n_steps = protocol.lin_lams, np.array([np.nan]), protocol.n_steps
        if kernel:
            lams, widths, n_steps = protocol.ker_lams, self._ker_widths, protocol.ker_steps
        scores, models = [], []
        for width in widths:
            if kernel:
                features = [kernel_from_distances(d, width) for d in self.ker_distances]
                scales = basis_scales(features, protocol.ker_scaling)
                features = [bases / scales for bases in features]
            else:
                features = [self.positives, self.unlabeled]
            score, weights, biases = self._train_stack(
                features, loss, given_priors, lams, n_steps, protocol.ker_bias or not kernel
            )
            if kernel:
                # For the bases as they are, which is what `decide` computes.
                weights = weights / scales[:, None, None]
            scores.append(score)
            models.append((weights, biases))
        fitted = {}
        for g, given in enumerate(given_priors):
            table = np.stack([score[g] for score in scores])
            w, j = np.unravel_index(int(table.argmin()), table.shape)
            weights, biases = models[w]
            hyper = {
                "width": float(widths[w]),
                "lam": float(lams[j]),
                "step": float(n_steps),
            }
            decide = self._decider(weights[:, g, j], biases[g, j], widths[w])
            fitted[given] = Fitted(decide, hyper)
        return fitted

    def _train_stack(
        self,
        features: list[Any],
        loss: str,
        given_priors: list[float],
        lams: Sequence[float],
        n_steps: int,
        bias: bool,
    ) -> tuple[np.ndarray, Any, Any]:
        """Return held-out risks (given, λ) and the final models' weights and biases."""
        protocol, n_features = self.protocol, features[0].shape[1]
        initial: Any = 0.0
        if protocol.initial_weights == "lecun":
            rng = np.random.default_rng(child(self.seed, 4))
            initial = rng.normal(0.0, n_features**-0.5, (n_features, 1))
        result = cross_validate(
            features,
            [Condition(self.prior, given) for given in given_priors],
            lams,
            self._fold_weights,
            self.device,
            loss=loss,
            criterion=None if protocol.criterion == "surrogate" else "zero_one",
            initial_w=initial,
            train_bias=bias,
            correction=None if protocol.correction == "none" else protocol.correction,
            n_steps=n_steps,
            n_batches=protocol.n_batches,
            learning_rate=protocol.learning_rate,
            seed=child(self.seed, 3),
        )
        return result.risks, result.weights[..., -1], result.biases[..., -1]

    def _decider(self, weights: Any, bias: Any, width: float) -> Callable[[Any], np.ndarray]:
        def decide(X: np.ndarray) -> np.ndarray:
            rows = self._rows(X)
            if not np.isnan(width):
                rows = kernel_from_distances(squared_distances(rows, self.ker_centers), width)
            return to_numpy(rows @ weights + bias)

        return decide


def feature_scales(samples: Sequence[Any], scaling: str) -> tuple[Any, Any] | None:
    """Return what is subtracted from every feature, and what it is divided by then.

    Parameters
    ----------
    samples
        P and U.
    scaling
        ``'standard'`` for mean 0 and variance 1, ``'minmax'`` for [0, 1], ``'max'``
        for one divisor, the largest absolute value of all; ``'none'``.

    Returns
    -------
    tuple of arrays or None
        (d,) shifts and scales, of which a constant feature has 1; ``None`` when
        nothing is scaled.

    Examples
    --------
    >>> P, U = np.array([[1.0, 5.0]]), np.array([[3.0, 5.0]])
    >>> [part.tolist() for part in feature_scales([P, U], "minmax")]
    [[1.0, 5.0], [2.0, 1.0]]
    """
    if scaling == "none":
        return None
    xp = array_namespace(*samples)
    rows = xp.concat(list(samples))
    if scaling == "standard":
        shift, scale = xp.mean(rows, axis=0), xp.std(rows, axis=0)
    elif scaling == "minmax":
        shift = xp.min(rows, axis=0)
        scale = xp.max(rows, axis=0) - shift
    else:
        shift = xp.zeros_like(rows[0, :])
        scale = shift + xp.max(xp.abs(rows))
    return shift, xp.where(scale > 0, scale, xp.ones_like(scale))


def basis_scales(features: Sequence[Any], scaling: str) -> Any:
    r"""Return what each Gaussian basis of the Ker models is divided by.

    .. math:: s_j = \Big(\frac1n \sum_i k(x_i, c_j)^2\Big)^{1/2}

    Parameters
    ----------
    features
        Bases of P and of U: (n_p, b) and (n_u, b) arrays.
    scaling
        ``'rms'``, or ``'none'`` for 1.

    Returns
    -------
    array
        (b,) scales; 1 for a basis that is 0 on every row.

    Examples
    --------
    >>> P, U = np.array([[1.0, 0.0]]), np.array([[7.0, 0.0]])
    >>> basis_scales([P, U], "rms").tolist()
    [5.0, 1.0]
    """
    xp = array_namespace(*features)
    ones = xp.ones_like(features[0][0])
    if scaling == "none":
        return ones
    squares = sum((bases**2).sum(axis=0) for bases in features)
    scales = xp.sqrt(squares / sum(len(bases) for bases in features))
    return xp.where(scales > 0, scales, ones)
