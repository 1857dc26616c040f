r"""Density ratio estimation: uLSIF and KLIEP, for any array module.

Both model w(x) = p_nu(x)/p_de(x) as Σ_l θ_l φ_l(x). The first argument is the
**numerator** sample, the second the denominator: ``ULSIF(X_p, X_u)`` estimates
p_p/p_u and ``ULSIF(X_u, X_p)`` estimates p_u/p_p.

The data enter through sums over rows only,

.. math:: \widehat H = \frac1{n_\mathrm{de}}\sum_i
   \varphi(x^\mathrm{de}_i)\varphi(x^\mathrm{de}_i)^\top, \qquad
   \widehat h = \frac1{n_\mathrm{nu}}\sum_i \varphi(x^\mathrm{nu}_i),

so rows are streamed in chunks and memory stays O(chunk·b + W·F·b²) for any n,
with b basis functions, W widths and F folds. Time grows as n·b·(d + W·b).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from pu_shift._checks import non_negative, one_of, positive_int, shown
from pu_shift._seeds import Seed, child
from pu_shift.candidates import (
    ULSIF_LAMS,
    WIDTH_FACTORS,
    assign_folds,
    check_grid,
    training_weights,
)
from pu_shift.device import array_namespace, beside, to_numpy
from pu_shift.kernels import (
    CENTER_SOURCES,
    as_rows,
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
_Ratio = TypeVar("_Ratio", bound="DensityRatio")


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
        The grids searched.
    scores : numpy.ndarray
        (len(widths), len(lams)) validation scores, lower is better; NaN when
        there was only one candidate and nothing to choose.
    """

    centers: Any
    width: float
    lam: float
    coefficients: Any
    widths: np.ndarray
    lams: np.ndarray
    scores: np.ndarray

    def __init__(
        self,
        numerator: Any,
        denominator: Any,
        n_centers: int,
        centers: str | Any,
        widths: float | Iterable[float] | None,
        width_factors: float | Iterable[float],
        basis: str,
        bounds: tuple[float, float] | None,
        chunk_rows: int,
        seed: Seed,
    ) -> None:
        self._numerator = as_rows("numerator", numerator, least=2)
        n_columns = self._numerator.shape[1]
        self._denominator = as_rows("denominator", denominator, least=2, columns=n_columns)
        xp = array_namespace(self._numerator, self._denominator)
        if self._numerator.dtype != self._denominator.dtype:
            raise ValueError(
                f"denominator must have the dtype of numerator, {self._numerator.dtype}, "
                f"got {self._denominator.dtype}"
            )
        self.basis = one_of("basis", basis, BASES)
        self.bounds = _check_bounds(bounds)
        self._chunk_rows = positive_int("chunk_rows", chunk_rows)
        self._seed = seed
        if basis == "linear":
            self.centers, self.widths = None, np.array([np.nan])
            return
        if isinstance(centers, str):
            one_of("centers", centers, CENTER_SOURCES)
            self.centers = choose_centers(
                self._numerator, self._denominator, n_centers, centers, child(seed, 0)
            )
        else:
            self.centers = as_rows("centers", centers, columns=n_columns)
            self.centers = xp.astype(self.centers, self._numerator.dtype)
        if widths is None:
            factors = check_grid("width_factors", width_factors, allow_zero=False)
            self.widths = factors * self._median()
        else:
            self.widths = check_grid("widths", widths, allow_zero=False)

    @classmethod
    def restore(
        cls: type[_Ratio],
        coefficients: Any,
        n_columns: int,
        centers: Any = None,
        width: float = float("nan"),
        lam: float = float("nan"),
    ) -> _Ratio:
        """Make a fitted ratio of its parts, without the samples.

        Parameters
        ----------
        coefficients
            θ, of shape (b,).
        n_columns
            Number of features d.
        centers
            (b, d) kernel centres; ``None`` for the linear basis.
        width, lam
            The hyper-parameters.

        Returns
        -------
        DensityRatio
            A ratio that predicts.

        Examples
        --------
        >>> DensityRatio.restore(np.array([1.0, 2.0]), 1)([[3.0]]).tolist()
        [5.0]
        """
        ratio = cls.__new__(cls)
        ratio.basis = "linear" if centers is None else "gaussian"
        ratio.centers, ratio.coefficients = centers, coefficients
        ratio.width, ratio.lam, ratio.bounds = float(width), float(lam), None
        ratio.widths, ratio.lams = np.array([ratio.width]), np.array([ratio.lam])
        ratio.scores = np.full((1, 1), np.nan)
        ratio._n_columns, ratio._chunk_rows = n_columns, 8192
        return ratio

    def predict(self, X: Any) -> Any:
        """Return w(x) for each row, within ``bounds`` if these were given.

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
        coefficients = xp.astype(self.coefficients, X.dtype)
        parts = []
        for chunk in self._chunks(X):
            ((_, features),) = self._features(chunk, [self.width])
            parts.append(xp.matmul(features, coefficients))
        ratio = xp.concat(parts) if len(parts) > 1 else parts[0]
        if self.bounds is not None:
            ratio = xp.clip(ratio, self.bounds[0], self.bounds[1])
        return ratio

    __call__ = predict

    def _median(self) -> float:
        """Median distance within the union of the samples."""
        xp = array_namespace(self._numerator)
        limit, parts = 4000, []
        total = self._numerator.shape[0] + self._denominator.shape[0]
        for part, rows in enumerate((self._numerator, self._denominator)):
            n = rows.shape[0]
            share = n if total <= limit else max(2, limit * n // total)
            if share < n:
                rng = np.random.default_rng(child(self._seed, 1, part))
                rows = take_rows(rows, np.sort(rng.choice(n, share, replace=False)))
            parts.append(rows)
        return median_distance(xp.concat(parts, axis=0), max_rows=limit + 2)

    def _features(
        self,
        X: Any,
        widths: Iterable[float],
        order: np.ndarray | None = None,
        columns: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Yield the place of each width and φ(x) of the rows, in this order, or in columns.

        Distances are computed once.
        """
        xp = array_namespace(X)
        if self.basis == "linear":
            X = X if order is None else take_rows(X, order)
            features = xp.concat([X, xp.ones_like(X[:, :1])], axis=1)
            yield 0, xp.matrix_transpose(features) if columns else features
            return
        samples = X, xp.astype(self.centers, X.dtype)
        distances = squared_distances(*(samples[::-1] if columns else samples))
        if order is not None:
            distances = take_rows(distances, order)
        for place, width in enumerate(widths):
            yield place, kernel_from_distances(distances, float(width))

    def _chunks(self, X: Any, rows: np.ndarray | None = None) -> Iterator[Any]:
        if rows is None:
            yield from row_blocks(X, self._chunk_rows)
            return
        for start in range(0, len(rows), self._chunk_rows):
            yield take_rows(X, rows[start : start + self._chunk_rows])

    def _sums(
        self,
        X: Any,
        squares: bool,
        folds: np.ndarray | None = None,
        n_folds: int = 1,
        rows: np.ndarray | None = None,
    ) -> Any:
        """Sum φ, or φφᵀ if asked, over the rows of each fold, for each width.

        Without ``folds`` there is one; with ``rows``, only these are summed. Returns a
        (W, F, b) or (W, F, b, b) array, in float64.
        """
        xp = array_namespace(X)
        b = X.shape[1] + 1 if self.basis == "linear" else self.centers.shape[0]
        sums = beside(np.zeros((len(self.widths), n_folds) + (b,) * (1 + squares)), X)
        start = 0
        for chunk in self._chunks(X, rows):
            order, bounds = None, [0, chunk.shape[0]]
            if folds is not None:
                here = folds[start : start + chunk.shape[0]]
                order = np.argsort(here, kind="stable")
                bounds = np.searchsorted(here[order], np.arange(n_folds + 1)).tolist()
            start += chunk.shape[0]
            for w, features in self._features(chunk, self.widths, order):
                for fold in range(n_folds):
                    part = features[bounds[fold] : bounds[fold + 1], :]
                    if squares:
                        sums[w, fold, :, :] += _gram(xp.matrix_transpose(part))
                    else:
                        sums[w, fold, :] += xp.sum(part, axis=0, dtype=xp.float64)
        return sums

    def _forget_samples(self) -> None:
        """Drop the samples: a fitted ratio needs the centres only."""
        self._n_columns = self._numerator.shape[1]
        del self._numerator, self._denominator

    def _choose(self, scores: np.ndarray, grids: dict[str, np.ndarray]) -> tuple[int, int]:
        """Return the place of the lowest score and warn when it is on the edge."""
        self.scores = scores
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


class ULSIF(DensityRatio):
    r"""Unconstrained least-squares importance fitting (Kanamori et al., 2009).

    .. math:: \widehat\theta = \arg\min_\theta \tfrac12\theta^\top\widehat H\theta
        - \widehat h^\top\theta + \tfrac\lambda2\|\theta\|^2
        = (\widehat H + \lambda I)^{-1}\widehat h

    Width and λ are chosen by the first two terms on held-out rows. One
    eigendecomposition per width (and fold) serves every λ.

    Parameters
    ----------
    numerator, denominator
        (n, d) samples of p_nu and p_de: float32 or float64, one array module.
    n_centers
        Number b of kernel centres.
    centers
        ``'numerator'``, ``'denominator'``, ``'both'`` (drawn from the union)
        or a (b, d) array.
    widths
        Candidates σ.
    width_factors
        Without ``widths``: candidates in units of the median distance.
    lams
        Candidates λ ≥ 0.
    basis
        ``'gaussian'``, or ``'linear'`` for φ(x) = (x, 1).
    selection
        ``'kfold'``, or ``'loo'`` for the exact leave-one-out score: the rows
        are paired at random and each pair is left out, as many pairs as the
        smaller sample has rows.
    n_folds
        Number of folds of ``'kfold'``.
    clip_coefficients
        Replace negative coefficients by 0, as Kanamori et al. do. The paper's
        results need False: the ratio is then truly unconstrained.
    bounds
        Clip the ratio into this interval, for instance
        :func:`pu_shift.priors.ratio_bounds`.
    chunk_rows
        Rows held in memory at a time.
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
        bounds: tuple[float, float] | None = None,
        chunk_rows: int = 8192,
        seed: Seed = 0,
    ) -> None:
        self.lams = check_grid("lams", lams, allow_zero=True)
        self.selection = one_of("selection", selection, SELECTIONS)
        self.clip_coefficients = bool(clip_coefficients)
        super().__init__(
            numerator,
            denominator,
            n_centers,
            centers,
            widths,
            width_factors,
            basis,
            bounds,
            chunk_rows,
            seed,
        )
        single = len(self.widths) * len(self.lams) == 1
        leave_one_out = selection == "loo" and not single
        self.n_folds = 1 if single or leave_one_out else n_folds
        if leave_one_out:
            scores, h, eigen = self._leave_one_out()
        else:
            scores, h, H = self._k_fold(single)
        self.scores, w, lam_place = scores, 0, 0
        if not single:
            w, lam_place = self._choose(scores, {"widths": self.widths, "lams": self.lams})
        self.width, self.lam = float(self.widths[w]), float(self.lams[lam_place])
        lam = self.lams[lam_place : lam_place + 1]
        parts = eigen[w] if leave_one_out else _eigh(H[w, :, :])
        solution = _solve_all(parts, h[w, :], lam, self._rounding())
        self.coefficients = self._clip(solution)[:, 0]
        self._forget_samples()

    def _clip(self, coefficients: Any) -> Any:
        return positive_part(coefficients) if self.clip_coefficients else coefficients

    def _rounding(self) -> float:
        """Relative rounding error of the sums, which are of the samples' precision."""
        return float(array_namespace(self._numerator).finfo(self._numerator.dtype).eps)

    def _k_fold(self, single: bool) -> tuple[np.ndarray, Any, Any]:
        """Held-out ½θᵀHθ − hᵀθ, averaged over the folds: (W, L), or NaN for a single candidate.

        Also ĥ and Ĥ of each width.
        """
        n_nu, n_de = self._numerator.shape[0], self._denominator.shape[0]
        folds_nu = folds_de = None
        if not single:
            folds_nu = assign_folds("numerator", n_nu, self.n_folds, child(self._seed, 2, 0))
            folds_de = assign_folds("denominator", n_de, self.n_folds, child(self._seed, 2, 1))
        h_sums = self._sums(self._numerator, False, folds_nu, self.n_folds)
        H_sums = self._sums(self._denominator, True, folds_de, self.n_folds)
        xp = array_namespace(h_sums)
        h_sum, H_sum = (xp.sum(sums, axis=1, keepdims=True) for sums in (h_sums, H_sums))
        scores = np.full((1, 1), np.nan)
        if folds_nu is not None and folds_de is not None:
            counts = (np.bincount(folds, minlength=self.n_folds) for folds in (folds_nu, folds_de))
            in_nu, in_de = (beside(count.astype(np.float64), h_sums)[:, None] for count in counts)
            in_de = in_de[:, :, None]
            # Training sums are the totals less the fold's own: no second pass.
            h, H = (h_sum - h_sums) / (n_nu - in_nu), (H_sum - H_sums) / (n_de - in_de)
            parts = _eigh(H)
            theta = self._clip(_solve_all(parts, h, self.lams, self._rounding()))
            held_out = 0.5 * xp.sum(theta * xp.matmul(H_sums / in_de, theta), axis=-2)
            held_out = held_out - xp.sum((h_sums / in_nu)[..., None] * theta, axis=-2)
            scores = to_numpy(xp.mean(held_out, axis=1))
        return scores, h_sum[:, 0, ...] / n_nu, H_sum[:, 0, ...] / n_de

    def _leave_one_out(self) -> tuple[np.ndarray, Any, dict[int, tuple[Any, Any]]]:
        """Exact leave-one-out score of every width and λ: (W, L).

        Also ĥ and the eigendecomposition of Ĥ of each width.
        """
        samples = self._numerator, self._denominator
        n_nu, n_de = (X.shape[0] for X in samples)
        m = min(n_nu, n_de)
        # At random, because files are often sorted.
        pairs = [
            np.random.default_rng(child(self._seed, 3, part)).permutation(X.shape[0])[:m]
            for part, X in enumerate(samples)
        ]
        # Pairs that fit in one chunk are summed when they are scored, the others before.
        together = m <= self._chunk_rows
        h, H = (
            self._sums(
                X, squares, rows=np.delete(np.arange(X.shape[0]), paired) if together else None
            )[:, 0, ...]
            for X, paired, squares in zip(samples, pairs, (False, True))
        )
        xp = array_namespace(h)
        eigen: dict[int, tuple[Any, Any]] = {}
        totals = [0.0] * len(self.widths)
        for chunks in zip(*map(self._chunks, samples, pairs)):
            for w, features in self._features(xp.concat(chunks), self.widths, columns=True):
                if together:
                    h[w, :] += xp.sum(features[:, :m], axis=1, dtype=xp.float64)
                    H[w, :, :] += _gram(features[:, m:])
                if w not in eigen:
                    h[w, :] /= n_nu
                    eigen[w] = _eigh(H[w, :, :] / n_de)
                totals[w] += loo_losses(
                    features, h[w, :], eigen[w], self.lams, n_nu, n_de, self.clip_coefficients
                )
        return to_numpy(xp.stack(totals)) / m, h, eigen


def _gram(features: Any) -> Any:
    """Sum φφᵀ over the columns, in double precision."""
    xp = array_namespace(features)
    gram = xp.matmul(features, xp.matrix_transpose(features))
    return xp.astype(gram, xp.float64, copy=False)


def loo_losses(
    features: Any,
    h: Any,
    eigen: tuple[Any, Any],
    lams: np.ndarray,
    n_nu: int,
    n_de: int,
    clip: bool = False,
) -> Any:
    r"""Sum the leave-one-out losses of uLSIF in closed form (Kanamori et al., 2009).

    Leaving out the pair i changes Ĥ by a rank-one term, so with
    B = Ĥ + λ(n_de − 1)/n_de · I the Sherman–Morrison formula gives

    .. math:: \theta_{(i)} = \frac{n_\mathrm{de}-1}{n_\mathrm{de}(n_\mathrm{nu}-1)}
        \left(n_\mathrm{nu}\,S_i \widehat h - S_i\varphi(x^\mathrm{nu}_i)\right),
        \qquad
        S_i = B^{-1} + \frac{B^{-1}\varphi_i\varphi_i^\top B^{-1}}
                            {n_\mathrm{de} - \varphi_i^\top B^{-1}\varphi_i},

    with φ_i = φ(x^de_i). In the eigenbasis of Ĥ every λ costs O(m·b).

    Clipping needs the coefficients themselves, and O(m·b²).

    Parameters
    ----------
    features
        (b, 2m) features of the pairs: a column for each numerator row, then one
        for each denominator row.
    h
        ĥ of the whole numerator sample.
    eigen
        Eigenvalues and eigenvectors of Ĥ of the whole denominator sample.
    lams
        (L,) candidates.
    n_nu, n_de
        Sizes of the whole samples.
    clip
        Whether negative coefficients are replaced by 0 before they are scored.

    Returns
    -------
    array
        (L,) sums over the pairs of ½ w(x^de_i)² − w(x^nu_i).

    Examples
    --------
    >>> eigen = np.array([1.0]), np.array([[1.0]])
    >>> loo_losses(np.ones((1, 4)), np.array([1.0]), eigen, np.array([1.0]), 2, 2).tolist()
    [-0.75]
    """
    xp = array_namespace(features)
    values, vectors = eigen
    features = xp.astype(features, xp.float64, copy=False)
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

    With β_l = θ_l m_l, m = mean φ(x^de), this is the likelihood of a mixture of
    the components φ_l/m_l and is solved by its EM iteration, which needs no
    step size and never leaves the constraints. It stops when the bound
    max_l mean_i[φ_l(x_i)/(m_l w(x_i))] − 1 on the distance to the optimum is
    below ``tolerance``. The width is chosen by the held-out likelihood.

    Parameters
    ----------
    numerator, denominator, n_centers, centers, widths, width_factors, n_folds, bounds,
    chunk_rows, seed
        As for :class:`ULSIF`; the centres are drawn from the numerator by
        default.
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
        bounds: tuple[float, float] | None = None,
        tolerance: float = 1e-4,
        max_iterations: int = 5000,
        chunk_rows: int = 8192,
        seed: Seed = 0,
    ) -> None:
        super().__init__(
            numerator,
            denominator,
            n_centers,
            centers,
            widths,
            width_factors,
            "gaussian",
            bounds,
            chunk_rows,
            seed,
        )
        n_nu, n_de = self._numerator.shape[0], self._denominator.shape[0]
        sums = self._sums(self._denominator, squares=False)
        xp = array_namespace(sums)
        means = sums[:, 0, :] / n_de
        self.lam, self.lams = float("nan"), np.array([np.nan])
        n_widths = len(self.widths)
        # Column k trains without fold k, the last column on all rows.
        train = np.ones((n_nu, 1))
        if n_widths > 1:
            folds = assign_folds("numerator", n_nu, n_folds, child(seed, 2, 0))
            train = training_weights(folds, n_folds, np.float64)
        train = beside(train, sums)
        max_iterations = positive_int("max_iterations", max_iterations)
        tolerance = non_negative("tolerance", tolerance)
        by_chunk = [
            dict(self._features(rows, self.widths)) for rows in self._chunks(self._numerator)
        ]
        scores, betas = np.full((n_widths, 1), np.nan), []
        for w in range(n_widths):
            parts = [features[w] for features in by_chunk]
            features = xp.astype(xp.concat(parts), xp.float64)
            components = _components(features, means[w, :], self.widths[w])
            beta = _em(components, train, tolerance, max_iterations)
            betas.append(beta[:, -1])
            if n_widths > 1:
                # The floor keeps a row that a fold's centres miss from being −∞.
                log_ratio = xp.log(xp.matmul(components, beta[:, :-1]) + 1e-300)
                held_out = 1.0 - train[:, :-1]
                by_fold = xp.sum(log_ratio * held_out, axis=0) / xp.sum(held_out, axis=0)
                scores[w, 0] = -float(xp.mean(by_fold))
        w = 0
        if n_widths > 1:
            w, _ = self._choose(scores, {"widths": self.widths})
        self.scores = scores
        self.width = float(self.widths[w])
        present = means[w, :] > 0.0
        safe = xp.where(present, means[w, :], xp.ones_like(means[w, :]))
        self.coefficients = xp.where(present, betas[w] / safe, xp.zeros_like(safe))
        self._forget_samples()


def _components(features: Any, means: Any, width: float) -> Any:
    """φ_l/m_l, and 0 for a centre that the denominator sample does not reach."""
    xp = array_namespace(features)
    present = means > 0.0
    if not bool(xp.all(xp.any(xp.where(present, features, xp.zeros_like(features)) > 0.0, axis=1))):
        raise ValueError(
            f"widths: {width:.3g} is too narrow, some numerator rows are reached by no centre"
        )
    safe = xp.where(present, means, xp.ones_like(means))
    return xp.where(present, features / safe, xp.zeros_like(features))


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


def _solve_all(eigen: tuple[Any, Any], h: Any, lams: np.ndarray, rounding: float = 0.0) -> Any:
    """(H + λI)⁻¹h for every λ from the eigendecomposition of H: (..., b, L).

    What λ leaves below the rounding error of H is noise, and stays there.
    """
    values, vectors = eigen
    xp = array_namespace(h)
    projected = xp.matmul(xp.matrix_transpose(vectors), h[..., None])
    divisors = values[..., None] + beside(lams, h)
    noise = xp.max(values, axis=-1, keepdims=True)[..., None] * rounding
    return xp.matmul(vectors, projected / xp.where(divisors > noise, divisors, noise))


def _eigh(H: Any) -> tuple[Any, Any]:
    """Eigendecomposition of a positive semidefinite H, eigenvalues kept above rounding error."""
    xp = array_namespace(H)
    values, vectors = xp.linalg.eigh(H)
    floor = xp.max(values, axis=-1, keepdims=True) * (H.shape[-1] * xp.finfo(H.dtype).eps)
    return xp.where(values > floor, values, floor), vectors


def _check_bounds(bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    if bounds is None:
        return None
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be a pair of numbers, got {shown(bounds)}") from None
    if not low < high:
        raise ValueError(f"bounds must be (low, high) with low < high, got {shown(bounds)}")
    return low, high
