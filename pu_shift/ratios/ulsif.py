r"""Unconstrained least-squares importance fitting (uLSIF), for any array module.

The first argument is the **numerator** sample, the second the denominator: ``ULSIF(X_p, X_u)``
estimates p_p/p_u and ``ULSIF(X_u, X_p)`` estimates p_u/p_p.

The data enter through sums over rows only,

.. math:: \widehat H = \frac1{n_\mathrm{de}}\sum_i
   \varphi(x^\mathrm{de}_i)\varphi(x^\mathrm{de}_i)^\top, \qquad
   \widehat h = \frac1{n_\mathrm{nu}}\sum_i \varphi(x^\mathrm{nu}_i),

so rows are streamed in chunks and memory stays O(chunk·b + W·F·b²) for any n, with b basis
functions, W widths and F folds. Time grows as n·b·(d + W·b); of very many rows a sample chooses
the width, and W is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pu_shift._checks import one_of
from pu_shift._grids import ULSIF_LAMS, Folds, check_grid, random_folds
from pu_shift._seeds import Seed, child, renamed_seed
from pu_shift.device import array_namespace, beside, one_thread, to_numpy
from pu_shift.ratios import kernels
from pu_shift.ratios.base import BasisRatio, check_samples, choose, gaussian_basis
from pu_shift.ratios.kernels import Basis, at_most, positive_part, take_rows

BASES = ("gaussian", "linear")
SELECTIONS = ("kfold", "loo")
# Rows of each sample, and centres, that choose among widths at most: one more width costs as much
# as a fit.
MAX_WIDTH_ROWS, MAX_WIDTH_CENTERS = 10_000, 200


class ULSIF(BasisRatio):
    r"""Unconstrained least-squares importance fitting (Kanamori et al., 2009).

    .. math:: \widehat\theta = \arg\min_\theta \tfrac12\theta^\top\widehat H\theta
        - \widehat h^\top\theta + \tfrac\lambda2\|\theta\|^2
        = (\widehat H + \lambda I)^{-1}\widehat h

    Width and λ are chosen by the first two terms on held-out rows. One eigendecomposition per
    width (and fold) serves every λ.

    Parameters
    ----------
    numerator, denominator
        (n, d) samples of p_nu and p_de, to fit at once: float32 or float64, one array module.
        Without them call ``fit``.
    n_centers
        Number b of kernel centres; ``None`` takes
        :func:`pu_shift.ratios.base.default_centers` of the number of rows.
    centers
        ``'numerator'``, ``'denominator'``, ``'both'`` (drawn from the union) or a (b, d) array.
    widths
        Candidates σ. Of more than 10,000 rows or 200 centres a random sample of so many chooses
        one, with which all rows and centres choose λ.
    width_factors
        Without ``widths``: candidates in units of the median distance (of at most 4,000 rows).
        Without either: 1/8 … 2 of an estimate of it from 1,000 rows.
    lams
        Candidates λ ≥ 0.
    basis
        ``'gaussian'``, or ``'linear'`` for φ(x) = (x, 1).
    selection
        ``'kfold'``, or ``'loo'`` for the exact leave-one-out score: the rows are paired at random
        and each pair is left out, as many pairs as the smaller sample has rows.
    n_folds
        Number of folds of ``'kfold'``.
    clip_coefficients
        Replace negative coefficients by 0, as Kanamori et al. do. The paper's results need False:
        the ratio is then truly unconstrained.
    random_state
        Seed of the centres and the folds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_p, X_u = rng.normal(1.0, 1.0, (200, 1)), rng.normal(0.0, 1.5, (800, 1))
    >>> ratio = ULSIF(X_p, X_u, widths=[0.5, 1.0, 2.0], lams=[0.01, 0.1, 1.0])
    >>> bool(ratio([[1.0]])[0] > 1.0 > ratio([[-2.0]])[0])
    True
    >>> again = ULSIF(widths=ratio.width_, lams=ratio.lam_).fit(X_p, X_u)
    >>> bool(np.allclose(again.predict(X_u), ratio.predict(X_u)))
    True
    """

    @renamed_seed
    def __init__(
        self,
        numerator: Any = None,
        denominator: Any = None,
        *,
        n_centers: int | None = 100,
        centers: str | Any = "both",
        widths: float | Iterable[float] | None = None,
        width_factors: float | Iterable[float] | None = None,
        lams: float | Iterable[float] = ULSIF_LAMS,
        basis: str = "gaussian",
        selection: str = "kfold",
        n_folds: int = 5,
        clip_coefficients: bool = False,
        random_state: Seed = 0,
    ) -> None:
        self.n_centers = n_centers
        self.centers = centers
        self.widths = widths
        self.width_factors = width_factors
        self.lams = lams
        self.basis = basis
        self.selection = selection
        self.n_folds = n_folds
        self.clip_coefficients = clip_coefficients
        self.random_state = random_state
        if numerator is not None:
            self.fit(numerator, denominator)

    def fit(self, numerator: Any, denominator: Any) -> ULSIF:
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
        self.lams_ = check_grid("lams", self.lams, allow_zero=True)
        one_of("selection", self.selection, SELECTIONS)
        linear = one_of("basis", self.basis, BASES) == "linear"
        samples = check_samples(numerator, denominator, linear)
        basis, self.widths_ = Basis(), np.array([np.nan])
        if not linear:
            basis, self.widths_ = gaussian_basis(
                samples,
                self.centers,
                self.n_centers,
                self.widths,
                self.width_factors,
                self.random_state,
            )
            if self.selection == "kfold" and len(self.widths_) > 1:
                self.widths_ = self._narrowed(basis, samples)
        single = len(self.widths_) * len(self.lams_) == 1
        if self.selection == "loo" and not single:
            self.scores_, h, H = self._leave_one_out(basis, samples, self.widths_)
        else:
            n_folds = 1 if single else self.n_folds
            self.scores_, h, H = self._k_fold(basis, samples, self.widths_, n_folds)
        grids = {"widths": self.widths_, "lams": self.lams_}
        w, place = (0, 0) if single else choose(self.scores_, grids)
        self.centers_, self.n_features_in_ = basis.centers, int(samples[0].shape[1])
        self.width_, self.lam_ = float(self.widths_[w]), float(self.lams_[place])
        lams = self.lams_[place : place + 1]
        self.coefficients_ = self._solve(H[w, :, :], h[w, :], lams, samples[0].dtype)[:, 0]
        return self

    def with_choices(self) -> ULSIF:
        """Return an estimator that is not fitted, with the width and λ that were chosen."""
        widths = None if np.isnan(self.width_) else self.width_
        return super().with_choices().set_params(widths=widths, lams=self.lam_)

    def _solve(self, H: Any, h: Any, lams: np.ndarray, dtype: Any) -> Any:
        """(H + λI)⁻¹h for every λ from one eigendecomposition, clipped if asked: (..., b, L).

        What λ leaves below the rounding error of H, whose sums are of the samples' precision, is
        noise, and stays there.
        """
        xp = array_namespace(h)
        values, vectors = _eigh(H)
        projected = xp.matmul(xp.matrix_transpose(vectors), h[..., None])
        divisors = values[..., None] + beside(lams, h)
        rounding = float(xp.finfo(dtype).eps)
        noise = xp.max(values, axis=-1, keepdims=True)[..., None] * rounding
        theta = xp.matmul(vectors, projected / xp.where(divisors > noise, divisors, noise))
        return positive_part(theta) if self.clip_coefficients else theta

    def _k_fold(
        self, basis: Basis, samples: Sequence[Any], widths: np.ndarray, n_folds: int
    ) -> tuple[np.ndarray, Any, Any]:
        """Held-out ½θᵀHθ − hᵀθ, averaged over the folds: (W, L), or NaN for a single candidate.

        Also ĥ and Ĥ of each width.
        """
        n_nu, n_de = (X.shape[0] for X in samples)
        folds_nu = folds_de = None
        if len(widths) * len(self.lams_) > 1:
            folds_nu = random_folds("numerator", n_nu, n_folds, child(self.random_state, 2, 0))
            folds_de = random_folds("denominator", n_de, n_folds, child(self.random_state, 2, 1))
        h_sums = basis.sums(samples[0], widths, folds=folds_nu)
        H_sums = basis.sums(samples[1], widths, squares=True, folds=folds_de)
        xp = array_namespace(h_sums)
        h_sum, H_sum = (xp.sum(sums, axis=1, keepdims=True) for sums in (h_sums, H_sums))
        scores = np.full((1, 1), np.nan)
        if folds_nu is not None and folds_de is not None:
            h, h_out = _fold_means(h_sums, folds_nu)
            H, H_out = _fold_means(H_sums, folds_de)
            theta = self._solve(H, h, self.lams_, samples[0].dtype)
            held_out = 0.5 * xp.sum(theta * xp.matmul(H_out, theta), axis=-2)
            held_out = held_out - xp.sum(h_out[..., None] * theta, axis=-2)
            scores = to_numpy(xp.mean(held_out, axis=1))
        return scores, h_sum[:, 0, ...] / n_nu, H_sum[:, 0, ...] / n_de

    def _narrowed(self, basis: Basis, samples: Sequence[Any]) -> np.ndarray:
        """Return the width that a sample of many rows and centres chooses; of fewer all widths."""
        parts = [(rows, MAX_WIDTH_ROWS) for rows in samples]
        parts.append((basis.centers, MAX_WIDTH_CENTERS))
        if all(rows.shape[0] <= most for rows, most in parts):
            return self.widths_
        *few, centers = (
            at_most(rows, most, child(self.random_state, 4, k))
            for k, (rows, most) in enumerate(parts)
        )
        scores = self._k_fold(Basis(centers), few, self.widths_, self.n_folds)[0]
        place, _ = choose(scores, {"widths": self.widths_})
        return self.widths_[place : place + 1]

    def _without_folds(self, samples: Sequence[Any], folds: Sequence[Folds]) -> Any:
        basis, widths = Basis(self.centers_), np.array([self.width_])
        h, H = (
            _fold_means(basis.sums(X, widths, squares=bool(k), folds=one), one)[0]
            for k, (X, one) in enumerate(zip(samples, folds))
        )
        theta = self._solve(H, h, np.array([self.lam_]), samples[0].dtype)
        return array_namespace(h).matrix_transpose(theta[0, :, :, 0])

    def _leave_one_out(
        self, basis: Basis, samples: Sequence[Any], widths: np.ndarray
    ) -> tuple[np.ndarray, Any, Any]:
        """Exact leave-one-out score of every width and λ: (W, L). Also ĥ and Ĥ of each width."""
        sizes = n_nu, n_de = samples[0].shape[0], samples[1].shape[0]
        m = min(sizes)
        # At random, because files are often sorted.
        pairs = [
            np.random.default_rng(child(self.random_state, 3, part)).permutation(n)[:m]
            for part, n in enumerate(sizes)
        ]
        h = basis.sums(samples[0], widths)[:, 0, ...] / n_nu
        H = basis.sums(samples[1], widths, squares=True)[:, 0, ...] / n_de
        xp = array_namespace(h)
        values, vectors = _eigh(H)
        totals = [0.0] * len(widths)
        size, clip = kernels.CHUNK_ROWS, bool(self.clip_coefficients)
        for start in range(0, m, size):
            parts = zip(samples, (rows[start : start + size] for rows in pairs))
            chunk = xp.concat([take_rows(X, rows) for X, rows in parts])
            for w, features in basis.features(chunk, widths):
                eigen = values[w, :], vectors[w, :, :]
                totals[w] += loo_losses(features, h[w, :], eigen, self.lams_, n_nu, n_de, clip)
        return to_numpy(xp.stack(totals)) / m, h, H


def _fold_means(sums: Any, folds: Folds) -> tuple[Any, Any]:
    """Means of what is summed by fold, (W, F, ...): without each fold, and of it."""
    xp = array_namespace(sums)
    counts = folds.counts.astype(np.float64)
    inside = beside(counts.reshape(-1, *[1] * (sums.ndim - 2)), sums)
    # Training sums are the totals less the fold's own: no second pass.
    rest = xp.sum(sums, axis=1, keepdims=True) - sums
    return rest / (len(folds.of_rows) - inside), sums / inside


def loo_losses(
    features: Any,
    h: Any,
    eigen: tuple[Any, Any],
    lams: np.ndarray,
    n_nu: int,
    n_de: int,
    clip: bool = False,
) -> Any:
    r"""Σ_i ½w(x^de_i)² − w(x^nu_i) over pairs, each left out (Kanamori et al., 2009): (L,).

    Leaving out the pair i changes Ĥ by a rank-one term, so with B = Ĥ + λ(n_de − 1)/n_de · I and
    φ_i = φ(x^de_i) the Sherman–Morrison formula gives

    .. math:: \theta_{(i)} = \frac{n_\mathrm{de}-1}{n_\mathrm{de}(n_\mathrm{nu}-1)}
        \left(n_\mathrm{nu}\,S_i \widehat h - S_i\varphi(x^\mathrm{nu}_i)\right),
        \qquad
        S_i = B^{-1} + \frac{B^{-1}\varphi_i\varphi_i^\top B^{-1}}
                            {n_\mathrm{de} - \varphi_i^\top B^{-1}\varphi_i}.

    In the eigenbasis of Ĥ every λ costs O(m·b). Clipping needs the coefficients themselves, and
    O(m·b²). The (2m, b) ``features`` are those of the m numerator rows, then of the m denominator
    rows.
    """
    xp = array_namespace(features)
    values, vectors = eigen
    features = xp.matrix_transpose(xp.astype(features, xp.float64, copy=False))
    turn, m = xp.matrix_transpose(vectors), features.shape[1] // 2
    p_nu, p_de = xp.matmul(turn, features[:, :m]), xp.matmul(turn, features[:, m:])
    inverse = 1.0 / (values + beside(lams, values)[:, None] * ((n_de - 1) / n_de))
    whole = n_nu * xp.matmul(turn, h)
    of_whole = inverse * whole
    # (λ, pairs) arrays of φᵀB⁻¹φ; column i of n_nu·S_i·ĥ − S_i·φ(x^nu_i) is then
    # B⁻¹(n_nu·ĥ − p_nu_i + along_i·p_de_i).
    nu_nu, de_de, nu_de = (
        xp.matmul(inverse, left * right)
        for left, right in ((p_nu, p_nu), (p_de, p_de), (p_nu, p_de))
    )
    of_de = xp.matmul(of_whole, p_de) - nu_de
    along = of_de / (n_de - de_de)
    of_nu = xp.matmul(of_whole, p_nu) - nu_nu
    ratios = xp.stack([of_nu + along * nu_de, of_de + along * de_de], axis=1)
    if clip:
        for j in range(len(lams)):
            moved = along[j, :] * p_de
            moved += whole[:, None] - p_nu
            theta = positive_part(xp.matmul(vectors * inverse[j, :], moved))
            ratios[j, 0, :] = xp.sum(features[:, :m] * theta, axis=0)
            ratios[j, 1, :] = xp.sum(features[:, m:] * theta, axis=0)
    ratios *= (n_de - 1) / (n_de * (n_nu - 1))
    return xp.sum(0.5 * ratios[:, 1, :] ** 2 - ratios[:, 0, :], axis=1)


def _eigh(H: Any) -> tuple[Any, Any]:
    """Eigendecomposition of a positive semidefinite H, eigenvalues kept above rounding error."""
    xp = array_namespace(H)
    # More threads gain little on matrices of this size; on a busy machine, where they wait for
    # each other, 500 × 500 took a hundred times as long.
    with one_thread():
        values, vectors = xp.linalg.eigh(H)
    floor = xp.max(values, axis=-1, keepdims=True) * (H.shape[-1] * xp.finfo(H.dtype).eps)
    return xp.where(values > floor, values, floor), vectors
