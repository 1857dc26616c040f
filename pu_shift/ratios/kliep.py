"""Kullback–Leibler importance estimation (KLIEP), for any array module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pu_shift._checks import non_negative, positive_int
from pu_shift._grids import Folds, random_folds, training_weights
from pu_shift._seeds import Seed, child, renamed_seed
from pu_shift.device import array_namespace, beside
from pu_shift.ratios import kernels
from pu_shift.ratios.base import BasisRatio, check_samples, choose, gaussian_basis
from pu_shift.ratios.kernels import Basis, row_chunks


class KLIEP(BasisRatio):
    r"""Kullback–Leibler importance estimation (Sugiyama et al., 2008).

    .. math:: \max_{\theta\ge0} \frac1{n_\mathrm{nu}}\sum_i
        \log\theta^\top\varphi(x^\mathrm{nu}_i) \quad\text{s.t.}\quad
        \theta^\top\frac1{n_\mathrm{de}}\sum_j\varphi(x^\mathrm{de}_j) = 1

    With β_l = θ_l m_l, m = mean φ(x^de), this is the likelihood of a mixture of the components
    φ_l/m_l and is solved by its EM iteration, which needs no step size and never leaves the
    constraints. It stops when the bound max_l mean_i[φ_l(x_i)/(m_l w(x_i))] − 1 on the distance
    to the optimum is below ``tolerance``. The width is chosen by the held-out likelihood.

    Parameters
    ----------
    numerator, denominator, n_centers, centers, widths, width_factors, n_folds, random_state
        As for :class:`pu_shift.ULSIF`; the centres are drawn from the numerator by default.
    tolerance
        Largest distance of the mean log-likelihood to its optimum.
    max_iterations
        Largest number of EM iterations.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_p, X_u = rng.normal(1.0, 1.0, (200, 1)), rng.normal(0.0, 1.5, (800, 1))
    >>> ratio = KLIEP(X_p, X_u, widths=[0.05, 0.2, 1.0])
    >>> bool(ratio([[1.0]])[0] > 1.0 > ratio([[-2.0]])[0])
    True
    """

    @renamed_seed
    def __init__(
        self,
        numerator: Any = None,
        denominator: Any = None,
        *,
        n_centers: int | None = 100,
        centers: str | Any = "numerator",
        widths: float | Iterable[float] | None = None,
        width_factors: float | Iterable[float] | None = None,
        n_folds: int = 5,
        tolerance: float = 1e-4,
        max_iterations: int = 5000,
        random_state: Seed = 0,
    ) -> None:
        self.n_centers = n_centers
        self.centers = centers
        self.widths = widths
        self.width_factors = width_factors
        self.n_folds = n_folds
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.random_state = random_state
        if numerator is not None:
            self.fit(numerator, denominator)

    def fit(self, numerator: Any, denominator: Any) -> KLIEP:
        """Fit to a sample of each density.

        Parameters
        ----------
        numerator, denominator
            (n, d) samples of p_nu and p_de: float32 or float64, one array module.

        Returns
        -------
        self
            The fitted ratio.
        """
        positive_int("max_iterations", self.max_iterations)
        non_negative("tolerance", self.tolerance)
        samples = check_samples(numerator, denominator, linear=False)
        basis, self.widths_ = gaussian_basis(
            samples,
            self.centers,
            self.n_centers,
            self.widths,
            self.width_factors,
            self.random_state,
        )
        n_nu, n_widths = samples[0].shape[0], len(self.widths_)
        means = basis.sums(samples[1], self.widths_)[:, 0, :] / samples[1].shape[0]
        # Column k trains without fold k, the last column on all rows.
        train = np.ones((n_nu, 1))
        if n_widths > 1:
            folds = random_folds("numerator", n_nu, self.n_folds, child(self.random_state, 2, 0))
            train = training_weights(folds.of_rows, self.n_folds, np.float64)
        train = beside(train, means)
        self.lam_, self.lams_ = float("nan"), np.array([np.nan])
        self.scores_, betas = np.full((n_widths, 1), np.nan), []
        for w, features in enumerate(_all_features(basis, samples[0], self.widths_)):
            components = _components(features, means[w, :], self.widths_[w])
            beta = self._maximise(components, train)
            betas.append(beta[:, -1])
            if n_widths > 1:
                self.scores_[w, 0] = _held_out_loss(components, beta[:, :-1], train[:, :-1])
        w = choose(self.scores_, {"widths": self.widths_})[0] if n_widths > 1 else 0
        self.centers_, self.n_features_in_ = basis.centers, int(samples[0].shape[1])
        self.width_ = float(self.widths_[w])
        self.coefficients_ = _over(betas[w], means[w, :])
        return self

    def with_choices(self) -> KLIEP:
        """Return an estimator that is not fitted, with the width that was chosen."""
        return super().with_choices().set_params(widths=self.width_)

    def _without_folds(self, samples: Sequence[Any], folds: Sequence[Folds]) -> Any:
        basis, widths = Basis(self.centers_), np.array([self.width_])
        # The denominator is seen by its mean alone, which one fold hardly moves.
        means = basis.sums(samples[1], widths)[0, 0, :] / len(folds[1].of_rows)
        (features,) = _all_features(basis, samples[0], widths)
        train = training_weights(folds[0].of_rows, folds[0].n_folds, np.float64)[:, :-1]
        components = _components(features, means, self.width_)
        return _over(self._maximise(components, beside(train, means)), means[:, None])

    def _maximise(self, components: Any, weights: Any) -> Any:
        """Maximise Σ_i w_ik log(components @ β)_i over the simplex, for each column of weights."""
        xp = array_namespace(components)
        weights = weights / xp.sum(weights, axis=0)
        reached = xp.astype(xp.any(components > 0.0, axis=0), xp.float64)
        beta = xp.ones_like(weights[:1, :]) * (reached / xp.sum(reached))[:, None]
        transposed = xp.matrix_transpose(components)
        for _ in range(self.max_iterations):
            gradient = xp.matmul(transposed, weights / xp.matmul(components, beta))
            if float(xp.max(gradient)) - 1.0 <= self.tolerance:
                break
            beta = beta * gradient
        return beta


def _all_features(basis: Basis, X: Any, widths: np.ndarray) -> list[Any]:
    """Return φ of all rows in float64, for each width."""
    xp = array_namespace(X)
    by_chunk = [dict(basis.features(rows, widths)) for rows in row_chunks(X, kernels.CHUNK_ROWS)]
    return [
        xp.astype(xp.concat([features[w] for features in by_chunk]), xp.float64)
        for w in range(len(widths))
    ]


def _held_out_loss(components: Any, beta: Any, train: Any) -> float:
    """Return −log w(x) of the rows that each column of β does not know, averaged over columns."""
    xp = array_namespace(components)
    # The floor keeps a row that a fold's centres miss from being −∞.
    log_ratio = xp.log(xp.matmul(components, beta) + 1e-300)
    held_out = 1.0 - train
    by_fold = xp.sum(log_ratio * held_out, axis=0) / xp.sum(held_out, axis=0)
    return -float(xp.mean(by_fold))


def _over(values: Any, means: Any) -> Any:
    """values/means, and 0 for a centre that the denominator sample does not reach."""
    xp = array_namespace(means)
    present = means > 0.0
    safe = xp.where(present, means, xp.ones_like(means))
    return xp.where(present, values / safe, xp.zeros_like(values))


def _components(features: Any, means: Any, width: float) -> Any:
    """φ_l/m_l, and 0 for a centre that the denominator sample does not reach."""
    xp = array_namespace(features)
    reached = xp.where(means > 0.0, features, xp.zeros_like(features))
    if not bool(xp.all(xp.any(reached > 0.0, axis=1))):
        raise ValueError(
            f"widths: {width:.3g} is too narrow, some numerator rows are reached by no centre"
        )
    return _over(features, means)
