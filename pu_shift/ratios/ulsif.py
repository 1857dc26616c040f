r"""Density ratio estimation: uLSIF and KLIEP, for any array module.

Both model w(x) = p_nu(x)/p_de(x) as Σ_l θ_l φ_l(x). The first argument is the **numerator**
sample, the second the denominator: ``ULSIF(X_p, X_u)`` estimates p_p/p_u and ``ULSIF(X_u, X_p)``
estimates p_u/p_p.

The data enter through sums over rows only,

.. math:: \widehat H = \frac1{n_\mathrm{de}}\sum_i
   \varphi(x^\mathrm{de}_i)\varphi(x^\mathrm{de}_i)^\top, \qquad
   \widehat h = \frac1{n_\mathrm{nu}}\sum_i \varphi(x^\mathrm{nu}_i),

so rows are streamed in chunks and memory stays O(chunk·b + W·F·b²) for any n, with b basis
functions, W widths and F folds. Time grows as n·b·(d + W·b); of very many rows a sample chooses
the width, and W is 1.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from pu_shift._checks import non_negative, one_of, positive_int
from pu_shift._grids import (
    ULSIF_LAMS,
    WIDTH_FACTORS,
    Folds,
    check_grid,
    deal_folds,
    training_weights,
)
from pu_shift._seeds import Seed, child
from pu_shift.bigdata import RowBlocks, in_blocks
from pu_shift.device import array_namespace, beside, to_numpy
from pu_shift.ratios.kernels import (
    CENTER_SOURCES,
    as_rows,
    at_most,
    check_scale,
    choose_centers,
    kernel_from_distances,
    median_distance,
    positive_part,
    row_blocks,
    squared_distances,
    take_rows,
)

BASES = ("gaussian", "linear")
SELECTIONS = ("kfold", "loo")
# Rows whose features are held in memory at a time.
CHUNK_ROWS = 8192
# Rows of each sample that choose among widths at most: one more width costs as much as a fit.
MAX_WIDTH_ROWS = 50_000


class GridEdgeWarning(UserWarning):
    """The best candidate lies on the edge of its grid: a wider grid may do better."""


class DensityRatio:
    """A fitted ratio w(x) = Σ_l θ_l φ_l(x): what uLSIF and KLIEP have in common.

    Attributes
    ----------
    centers : array
        (b, d) kernel centres (``None`` for the linear basis).
    width : float
        The chosen σ (NaN for the linear basis).
    lam : float
        The chosen λ (NaN for KLIEP, which has none).
    coefficients : array
        θ, of shape (b,), float64.
    widths, lams : numpy.ndarray
        The grids searched, with all rows.
    scores : numpy.ndarray
        (len(widths), len(lams)) validation scores, lower is better; NaN when there was only one
        candidate and nothing to choose.
    """

    centers: Any
    width: float
    lam: float
    coefficients: Any
    widths: np.ndarray
    lams: np.ndarray
    scores: np.ndarray
    n_folds: int

    def _take_samples(self, numerator: Any, denominator: Any, basis: str, seed: Seed) -> None:
        """Check and keep the samples until the fit is done."""
        numerator = as_rows("numerator", numerator, least=2)
        denominator = as_rows("denominator", denominator, least=2, columns=numerator.shape[1])
        if not in_blocks(numerator, denominator):
            array_namespace(numerator, denominator)
        if numerator.dtype != denominator.dtype:
            raise ValueError(
                f"denominator must have the dtype of numerator, {numerator.dtype}, "
                f"got {denominator.dtype}"
            )
        self.basis = one_of("basis", basis, BASES)
        check_scale(numerator, denominator, linear=basis == "linear")
        self._numerator, self._denominator, self._seed = numerator, denominator, seed
        self.centers, self.widths = None, np.array([np.nan])

    def _take_kernels(self, centers: Any, n_centers: int, widths: Any, factors: Any) -> None:
        """Find the Gaussian centres and the candidate widths."""
        samples = self._numerator, self._denominator
        if isinstance(centers, str):
            one_of("centers", centers, CENTER_SOURCES)
            self.centers = choose_centers(*samples, n_centers, centers, child(self._seed, 0))
        else:
            centers = as_rows("centers", centers, columns=samples[0].shape[1])
            self.centers = array_namespace(centers).astype(centers, samples[0].dtype)
        if widths is None:
            self.widths = check_grid("width_factors", factors, allow_zero=False) * self._median()
        else:
            self.widths = check_grid("widths", widths, allow_zero=False)

    @classmethod
    def restore(
        cls,
        coefficients: Any,
        n_columns: int,
        centers: Any = None,
        width: float = float("nan"),
        lam: float = float("nan"),
    ) -> Any:
        """Make a ratio that predicts of its parts; without ``centers`` the basis is linear."""
        ratio = cls.__new__(cls)
        ratio.basis = "linear" if centers is None else "gaussian"
        ratio.centers, ratio.coefficients = centers, coefficients
        ratio.width, ratio.lam = float(width), float(lam)
        ratio.widths, ratio.lams = np.array([ratio.width]), np.array([ratio.lam])
        ratio.scores = np.full((1, 1), np.nan)
        ratio._n_columns = n_columns
        return ratio

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
        X = as_rows("X", X, columns=self._n_columns)
        xp = array_namespace(X, self.coefficients)
        parts = []
        for chunk in row_blocks(X, CHUNK_ROWS):
            ((_, features),) = self._features(chunk, [self.width])
            parts.append(_weighted(features, self.coefficients))
        return xp.concat(parts) if len(parts) > 1 else parts[0]

    __call__ = predict

    def held_out(
        self, numerator: Any, denominator: Any, n_folds: int, seed: Seed
    ) -> tuple[Any, ...]:
        """Ratios of the rows it was fitted to, by coefficients that do not know the row's fold.

        Width and λ are the chosen ones. Two rows are too few to leave one out.
        """
        samples = numerator, denominator
        if min(rows.shape[0] for rows in samples) < 3:
            return tuple(map(self, samples))
        part = copy.copy(self)
        part.widths, part.lams, part.n_folds = np.array([self.width]), np.array([self.lam]), n_folds
        part._numerator, part._denominator = samples
        folds = [
            deal_folds(name, rows.shape[0], n_folds, child(seed, k))
            for k, (name, rows) in enumerate(zip(("numerator", "denominator"), samples))
        ]
        coefficients = part._without_folds(*folds)
        return tuple(part._by_fold(*sample, coefficients) for sample in zip(samples, folds))

    # Of each kind its own: (b, F) coefficients of the single width and λ without each fold.
    _without_folds: Callable[[Folds, Folds], Any]

    def _by_fold(self, X: Any, folds: Folds, coefficients: Any) -> Any:
        xp = array_namespace(X)
        own = beside(np.eye(self.n_folds)[folds.of_rows(0, X.shape[0])], coefficients)
        parts, start = [], 0
        for chunk in row_blocks(X, CHUNK_ROWS):
            ((_, features),) = self._features(chunk, self.widths)
            stop = start + chunk.shape[0]
            parts.append(xp.sum(_weighted(features, coefficients) * own[start:stop, :], axis=1))
            start = stop
        return xp.concat(parts)

    def _median(self) -> float:
        """Median distance within the union of the samples."""
        limit, parts = 4000, []
        total = self._numerator.shape[0] + self._denominator.shape[0]
        for part, rows in enumerate((self._numerator, self._denominator)):
            n = rows.shape[0]
            share = n if total <= limit else max(2, limit * n // total)
            parts.append(at_most(rows, share, child(self._seed, 1, part)))
        return median_distance(array_namespace(*parts).concat(parts, axis=0), max_rows=limit + 2)

    def _features(
        self, X: Any, widths: Iterable[float], order: np.ndarray | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the place of each width and φ(x) of the rows, in this order."""
        xp = array_namespace(X)
        if self.basis == "linear":
            X = X if order is None else take_rows(X, order)
            yield 0, xp.concat([X, xp.ones_like(X[:, :1])], axis=1)
            return
        distances = squared_distances(X, xp.astype(self.centers, X.dtype))
        if order is not None:
            distances = take_rows(distances, order)
        for place, width in enumerate(widths):
            yield place, kernel_from_distances(distances, float(width))

    def _sums(self, X: Any, squares: bool, folds: Folds | None = None) -> Any:
        """Sum φ, or φφᵀ, over the rows of each fold: (W, F, b) or (W, F, b, b), float64."""
        if not isinstance(X, RowBlocks):
            return self._sums_of(squares, folds, X)
        # What is sent to where the rows are must not hold samples.
        bare = copy.copy(self)
        del bare._numerator, bare._denominator
        return X.reduce(partial(bare._sums_of, squares, folds))

    def _sums_of(self, squares: bool, folds: Folds | None, X: Any, first: int = 0) -> Any:
        """Sum over rows of which so many come before."""
        xp = array_namespace(X)
        n_folds = 1 if folds is None else self.n_folds
        b = X.shape[1] + 1 if self.basis == "linear" else self.centers.shape[0]
        sums = beside(np.zeros((len(self.widths), n_folds) + (b,) * (1 + squares)), X)
        all_folds = None if folds is None else folds.of_rows(first, first + X.shape[0])
        start = 0
        for chunk in row_blocks(X, CHUNK_ROWS):
            order, bounds = None, [0, chunk.shape[0]]
            if all_folds is not None:
                here = all_folds[start : start + chunk.shape[0]]
                order = np.argsort(here, kind="stable")
                bounds = np.searchsorted(here[order], np.arange(n_folds + 1)).tolist()
            start += chunk.shape[0]
            for w, features in self._features(chunk, self.widths, order):
                for fold in range(n_folds):
                    part = features[bounds[fold] : bounds[fold + 1], :]
                    if squares:
                        gram = xp.matmul(xp.matrix_transpose(part), part)
                        sums[w, fold, :, :] += xp.astype(gram, xp.float64, copy=False)
                    else:
                        sums[w, fold, :] += xp.sum(part, axis=0, dtype=xp.float64)
        return sums

    def _forget_samples(self) -> None:
        """Drop the samples: a fitted ratio needs the centres only."""
        self._n_columns = self._numerator.shape[1]
        del self._numerator, self._denominator

    def _choose(self, grids: dict[str, np.ndarray]) -> tuple[int, int]:
        """Return the place of the lowest score and warn when it is on the edge."""
        best = np.unravel_index(int(np.nanargmin(self.scores)), self.scores.shape)
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


class ULSIF(DensityRatio):
    r"""Unconstrained least-squares importance fitting (Kanamori et al., 2009).

    .. math:: \widehat\theta = \arg\min_\theta \tfrac12\theta^\top\widehat H\theta
        - \widehat h^\top\theta + \tfrac\lambda2\|\theta\|^2
        = (\widehat H + \lambda I)^{-1}\widehat h

    Width and λ are chosen by the first two terms on held-out rows. One eigendecomposition per
    width (and fold) serves every λ.

    Parameters
    ----------
    numerator, denominator
        (n, d) samples of p_nu and p_de: float32 or float64, one array module.
    n_centers
        Number b of kernel centres.
    centers
        ``'numerator'``, ``'denominator'``, ``'both'`` (drawn from the union) or a (b, d) array.
    widths
        Candidates σ. Of more than 50,000 rows a random sample of so many chooses one, with which
        all rows choose λ.
    width_factors
        Without ``widths``: candidates in units of the median distance.
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
    seed
        Seed of the centres and the folds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_p, X_u = rng.normal(1.0, 1.0, (200, 1)), rng.normal(0.0, 1.5, (800, 1))
    >>> ratio = ULSIF(X_p, X_u, widths=[0.5, 1.0, 2.0], lams=[0.01, 0.1, 1.0])
    >>> bool(ratio([[1.0]])[0] > 1.0 > ratio([[-2.0]])[0])
    True
    """

    def __init__(
        self,
        numerator: Any,
        denominator: Any,
        *,
        n_centers: int = 100,
        centers: str | Any = "both",
        widths: float | Iterable[float] | None = None,
        width_factors: float | Iterable[float] = WIDTH_FACTORS,
        lams: float | Iterable[float] = ULSIF_LAMS,
        basis: str = "gaussian",
        selection: str = "kfold",
        n_folds: int = 5,
        clip_coefficients: bool = False,
        seed: Seed = 0,
    ) -> None:
        self.lams = check_grid("lams", lams, allow_zero=True)
        self.selection = one_of("selection", selection, SELECTIONS)
        self.clip_coefficients = bool(clip_coefficients)
        if selection == "loo" and (in_blocks(numerator, denominator)):
            raise ValueError("selection must be 'kfold' for rows that come in blocks, got 'loo'")
        self._take_samples(numerator, denominator, basis, seed)
        if basis == "gaussian":
            self._take_kernels(centers, n_centers, widths, width_factors)
            if selection == "kfold" and len(self.widths) > 1:
                self._narrow(n_folds)
        single = len(self.widths) * len(self.lams) == 1
        leave_one_out = selection == "loo" and not single
        self.n_folds = 1 if single or leave_one_out else n_folds
        self.scores, h, H = self._leave_one_out() if leave_one_out else self._k_fold(single)
        w, place = (0, 0) if single else self._choose({"widths": self.widths, "lams": self.lams})
        self.width, self.lam = float(self.widths[w]), float(self.lams[place])
        lam = self.lams[place : place + 1]
        self.coefficients = self._solve(H[w, :, :], h[w, :], lam)[:, 0]
        self._forget_samples()

    def _solve(self, H: Any, h: Any, lams: np.ndarray) -> Any:
        """(H + λI)⁻¹h for every λ from one eigendecomposition, clipped if asked: (..., b, L).

        What λ leaves below the rounding error of H, whose sums are of the samples' precision, is
        noise, and stays there.
        """
        xp = array_namespace(h)
        values, vectors = _eigh(H)
        projected = xp.matmul(xp.matrix_transpose(vectors), h[..., None])
        divisors = values[..., None] + beside(lams, h)
        rounding = float(xp.finfo(self._numerator.dtype).eps)
        noise = xp.max(values, axis=-1, keepdims=True)[..., None] * rounding
        theta = xp.matmul(vectors, projected / xp.where(divisors > noise, divisors, noise))
        return positive_part(theta) if self.clip_coefficients else theta

    def _k_fold(self, single: bool) -> tuple[np.ndarray, Any, Any]:
        """Held-out ½θᵀHθ − hᵀθ, averaged over the folds: (W, L), or NaN for a single candidate.

        Also ĥ and Ĥ of each width.
        """
        n_nu, n_de = self._numerator.shape[0], self._denominator.shape[0]
        folds_nu = folds_de = None
        if not single:
            folds_nu = deal_folds("numerator", n_nu, self.n_folds, child(self._seed, 2, 0))
            folds_de = deal_folds("denominator", n_de, self.n_folds, child(self._seed, 2, 1))
        h_sums = self._sums(self._numerator, False, folds_nu)
        H_sums = self._sums(self._denominator, True, folds_de)
        xp = array_namespace(h_sums)
        h_sum, H_sum = (xp.sum(sums, axis=1, keepdims=True) for sums in (h_sums, H_sums))
        scores = np.full((1, 1), np.nan)
        if folds_nu is not None and folds_de is not None:
            h, h_out = _fold_means(h_sums, folds_nu)
            H, H_out = _fold_means(H_sums, folds_de)
            theta = self._solve(H, h, self.lams)
            held_out = 0.5 * xp.sum(theta * xp.matmul(H_out, theta), axis=-2)
            held_out = held_out - xp.sum(h_out[..., None] * theta, axis=-2)
            scores = to_numpy(xp.mean(held_out, axis=1))
        return scores, h_sum[:, 0, ...] / n_nu, H_sum[:, 0, ...] / n_de

    def _narrow(self, n_folds: int) -> None:
        """Let a sample of very many rows choose the width."""
        both = self._numerator, self._denominator
        if max(rows.shape[0] for rows in both) <= MAX_WIDTH_ROWS:
            return
        part = copy.copy(self)
        part._numerator, part._denominator = (
            at_most(rows, MAX_WIDTH_ROWS, child(self._seed, 4, k)) for k, rows in enumerate(both)
        )
        part.n_folds = n_folds
        part.scores = part._k_fold(single=False)[0]
        place, _ = part._choose({"widths": self.widths})
        self.widths = self.widths[place : place + 1]

    def _without_folds(self, folds_nu: Folds, folds_de: Folds) -> Any:
        h = _fold_means(self._sums(self._numerator, False, folds_nu), folds_nu)[0]
        H = _fold_means(self._sums(self._denominator, True, folds_de), folds_de)[0]
        xp = array_namespace(h)
        return xp.matrix_transpose(self._solve(H, h, self.lams)[0, :, :, 0])

    def _leave_one_out(self) -> tuple[np.ndarray, Any, Any]:
        """Exact leave-one-out score of every width and λ: (W, L). Also ĥ and Ĥ of each width."""
        samples = self._numerator, self._denominator
        sizes = n_nu, n_de = samples[0].shape[0], samples[1].shape[0]
        m = min(sizes)
        # At random, because files are often sorted.
        pairs = [
            np.random.default_rng(child(self._seed, 3, part)).permutation(n)[:m]
            for part, n in enumerate(sizes)
        ]
        h = self._sums(samples[0], squares=False)[:, 0, ...] / n_nu
        H = self._sums(samples[1], squares=True)[:, 0, ...] / n_de
        xp = array_namespace(h)
        values, vectors = _eigh(H)
        totals = [0.0] * len(self.widths)
        for start in range(0, m, CHUNK_ROWS):
            parts = zip(samples, (rows[start : start + CHUNK_ROWS] for rows in pairs))
            chunk = xp.concat([take_rows(X, rows) for X, rows in parts])
            for w, features in self._features(chunk, self.widths):
                eigen = values[w, :], vectors[w, :, :]
                clip = self.clip_coefficients
                totals[w] += loo_losses(features, h[w, :], eigen, self.lams, n_nu, n_de, clip)
        return to_numpy(xp.stack(totals)) / m, h, H


def _fold_means(sums: Any, folds: Folds) -> tuple[Any, Any]:
    """Means of what is summed by fold, (W, F, ...): without each fold, and of it."""
    xp = array_namespace(sums)
    counts = folds.counts.astype(np.float64)
    inside = beside(counts.reshape(-1, *[1] * (sums.ndim - 2)), sums)
    # Training sums are the totals less the fold's own: no second pass.
    rest = xp.sum(sums, axis=1, keepdims=True) - sums
    return rest / (folds.n - inside), sums / inside


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


class KLIEP(DensityRatio):
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
    numerator, denominator, n_centers, centers, widths, width_factors, n_folds, seed
        As for :class:`ULSIF`; the centres are drawn from the numerator by default.
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

    def __init__(
        self,
        numerator: Any,
        denominator: Any,
        *,
        n_centers: int = 100,
        centers: str | Any = "numerator",
        widths: float | Iterable[float] | None = None,
        width_factors: float | Iterable[float] = WIDTH_FACTORS,
        n_folds: int = 5,
        tolerance: float = 1e-4,
        max_iterations: int = 5000,
        seed: Seed = 0,
    ) -> None:
        if in_blocks(numerator):
            raise ValueError("numerator must be in memory for KLIEP, its rows come in blocks")
        self._take_samples(numerator, denominator, "gaussian", seed)
        self._take_kernels(centers, n_centers, widths, width_factors)
        n_nu, n_de = self._numerator.shape[0], self._denominator.shape[0]
        sums = self._sums(self._denominator, squares=False)
        xp = array_namespace(sums)
        means = sums[:, 0, :] / n_de
        self.lam, self.lams = float("nan"), np.array([np.nan])
        n_widths = len(self.widths)
        # Column k trains without fold k, the last column on all rows.
        train = np.ones((n_nu, 1))
        if n_widths > 1:
            folds = deal_folds("numerator", n_nu, n_folds, child(seed, 2, 0))
            train = training_weights(folds.of_rows(0, n_nu), n_folds, np.float64)
        train = beside(train, sums)
        self.max_iterations = positive_int("max_iterations", max_iterations)
        self.tolerance = non_negative("tolerance", tolerance)
        chunks = row_blocks(self._numerator, CHUNK_ROWS)
        by_chunk = [dict(self._features(rows, self.widths)) for rows in chunks]
        self.scores, betas = np.full((n_widths, 1), np.nan), []
        for w in range(n_widths):
            parts = [features[w] for features in by_chunk]
            features = xp.astype(xp.concat(parts), xp.float64)
            components = _components(features, means[w, :], self.widths[w])
            beta = _em(components, train, self.tolerance, self.max_iterations)
            betas.append(beta[:, -1])
            if n_widths > 1:
                # The floor keeps a row that a fold's centres miss from being −∞.
                log_ratio = xp.log(xp.matmul(components, beta[:, :-1]) + 1e-300)
                held_out = 1.0 - train[:, :-1]
                by_fold = xp.sum(log_ratio * held_out, axis=0) / xp.sum(held_out, axis=0)
                self.scores[w, 0] = -float(xp.mean(by_fold))
        w = self._choose({"widths": self.widths})[0] if n_widths > 1 else 0
        self.width = float(self.widths[w])
        self.coefficients = _over(betas[w], means[w, :])
        self._forget_samples()

    def _without_folds(self, folds_nu: Folds, folds_de: Folds) -> Any:
        # The denominator is seen by its mean alone, which one fold hardly moves.
        means = self._sums(self._denominator, squares=False)[0, 0, :] / folds_de.n
        xp = array_namespace(means)
        chunks = row_blocks(self._numerator, CHUNK_ROWS)
        features = xp.concat([next(self._features(rows, self.widths))[1] for rows in chunks])
        components = _components(xp.astype(features, xp.float64), means, self.width)
        folds = folds_nu.of_rows(0, folds_nu.n)
        train = beside(training_weights(folds, self.n_folds, np.float64)[:, :-1], means)
        beta = _em(components, train, self.tolerance, self.max_iterations)
        return _over(beta, means[:, None])


def _weighted(features: Any, coefficients: Any) -> Any:
    """Features @ coefficients, in the features' precision if it can hold the coefficients."""
    xp = array_namespace(features)
    if float(xp.max(xp.abs(coefficients))) < 1e-4 * float(xp.finfo(features.dtype).max):
        return xp.matmul(features, xp.astype(coefficients, features.dtype))
    # KLIEP's are large at centres that the denominator hardly reaches.
    return xp.matmul(xp.astype(features, xp.float64), coefficients)


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


def _em(components: Any, weights: Any, tolerance: float, max_iterations: int) -> Any:
    """Maximise Σ_i w_ik log(components @ β)_i over the simplex, for each column k of weights."""
    xp = array_namespace(components)
    weights = weights / xp.sum(weights, axis=0)
    reached = xp.astype(xp.any(components > 0.0, axis=0), xp.float64)
    beta = xp.ones_like(weights[:1, :]) * (reached / xp.sum(reached))[:, None]
    transposed = xp.matrix_transpose(components)
    for _ in range(max_iterations):
        gradient = xp.matmul(transposed, weights / xp.matmul(components, beta))
        if float(xp.max(gradient)) - 1.0 <= tolerance:
            break
        beta = beta * gradient
    return beta


def _eigh(H: Any) -> tuple[Any, Any]:
    """Eigendecomposition of a positive semidefinite H, eigenvalues kept above rounding error."""
    xp = array_namespace(H)
    # More threads gain little on matrices of this size; on a busy machine, where they wait for
    # each other, 500 × 500 took a hundred times as long.
    with threadpool_limits(1, "blas"):
        values, vectors = xp.linalg.eigh(H)
    floor = xp.max(values, axis=-1, keepdims=True) * (H.shape[-1] * xp.finfo(H.dtype).eps)
    return xp.where(values > floor, values, floor), vectors
