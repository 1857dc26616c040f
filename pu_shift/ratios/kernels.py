"""Basis functions: Gaussian kernels, their widths and centres, without n × m × d temporaries."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device

from pu_shift._checks import ArgumentError, one_of, positive, positive_int
from pu_shift._grids import Folds
from pu_shift.device import array_namespace, beside

CENTER_SOURCES = ("numerator", "denominator", "both")
# Rows whose features are held in memory at a time at most, and numbers in them: arrays that fit
# into the cache, and that the allocator can use again, are several times as fast.
CHUNK_ROWS, CHUNK_CELLS = 8192, 2**19
# Rows whose distances to others are held in memory at a time.
PAIRED_ROWS = 500
SCALE_CURE = "Scale the features: StandardScaler in a Pipeline, on the command line no --no-scale"


class ScaleWarning(UserWarning):
    """The features' scale hides from a linear basis what they tell."""


def as_rows(name: str, X: Any, least: int = 1, columns: int | None = None) -> Any:
    """Return ``X``, or numbers as float64, if it is a finite floating matrix."""
    if isinstance(X, np.ndarray) or not hasattr(X, "dtype"):
        X = np.asarray(X)  # also turns a memory map into a plain view
        if X.dtype.kind in "biu":
            X = X.astype(np.float64)
    xp = array_namespace(X)
    if X.ndim != 2:
        raise ArgumentError(name, f"must be a matrix of rows, got {X.ndim} dimension(s)")
    if X.dtype not in (xp.float32, xp.float64):
        raise ArgumentError(name, f"must be float32 or float64, got dtype {X.dtype}")
    n, d = X.shape
    if n < least or d < 1:
        raise ArgumentError(
            name, f"must have at least {least} row(s) and one column, got shape ({n}, {d})"
        )
    if columns is not None and d != columns:
        raise ArgumentError(name, f"must have {columns} columns like the other sample, got {d}")
    # In chunks, so that the mask stays small beside a large X.
    if not all(bool(xp.all(xp.isfinite(chunk))) for chunk in row_chunks(X, 65536)):
        raise ArgumentError(name, "must not contain NaN or infinity")
    return X


def check_scale(first: Any, second: Any, linear: bool) -> None:
    """Refuse samples whose squares overflow, and warn of those that a linear basis cannot use.

    Beside the constant 1 of the basis (x, 1), and within the rounding of its square, features can
    be too small, too large, or too far from 0 for their range; the fit is then a constant.
    """
    xp = array_namespace(first, second)
    low = xp.min(xp.stack([xp.min(X, axis=0) for X in (first, second)]), axis=0)
    high = xp.max(xp.stack([xp.max(X, axis=0) for X in (first, second)]), axis=0)
    sizes, limits = xp.max(xp.abs(xp.stack([low, high])), axis=0), xp.finfo(first.dtype)
    largest = float(xp.max(sizes))
    terms = max(first.shape[0], second.shape[0]) if linear else 4 * first.shape[1]
    if largest > (float(limits.max) / terms) ** 0.5:
        raise ArgumentError(
            "X",
            f"must be scaled: column {int(xp.argmax(sizes)) + 1} has values up to {largest:.3g}, "
            f"whose squares leave the range of {first.dtype}: divide it by a power of ten",
        )
    if not linear:
        return
    # From trials on Gaussian classes: beyond these limits accuracy falls to that of a constant.
    ranges = high - low
    far = xp.astype((sizes > 10.0 * ranges) & (ranges > 0.0), xp.int8)
    widest, j = float(xp.max(ranges)), int(xp.argmax(far))
    what = None
    if widest < 0.1:
        what = f"no feature of X has a range of more than {widest:.3g}"
    elif far[j]:
        value, width = float(high[j]), float(ranges[j])
        what = f"feature {j + 1} of X is near {value:.6g} with a range of only {width:.3g}"
    elif largest > (10.0 / float(limits.eps)) ** 0.5:
        what = f"values of X up to {largest:.3g} leave no digits of {first.dtype} to the bias"
    if what is not None:
        message = f"{what}, so that a linear model may become a constant. {SCALE_CURE}"
        warnings.warn(message, ScaleWarning, stacklevel=2)


def row_chunks(X: Any, size: int) -> Iterator[Any]:
    """Cut a matrix into views of at most ``size`` consecutive rows."""
    n = X.shape[0]
    for start in range(0, n, size):
        yield X[start : min(start + size, n), :]


def feature_chunks(X: Any, n_features: int) -> Iterator[Any]:
    """Cut a matrix into views of as many rows as features of theirs may be held at a time."""
    return row_chunks(X, max(1, min(CHUNK_ROWS, CHUNK_CELLS // n_features)))


def squared_distances(X: Any, centers: Any) -> Any:
    """‖x_i‖² + ‖c_j‖² − 2x_iᵀc_j of (n, d) rows and (m, d) centres, by one GEMM: (n, m), ≥ 0.

    Both are first moved by the mean of the centres, which changes no distance but keeps the
    cancellation small when features sit far from zero.
    """
    xp = array_namespace(X, centers)
    origin = xp.mean(centers, axis=0, keepdims=True)
    X, centers = X - origin, centers - origin
    distances = xp.matmul(X, xp.matrix_transpose(-2.0 * centers))
    distances += xp.sum(X * X, axis=1)[:, None]
    distances += xp.sum(centers * centers, axis=1)
    return positive_part(distances)


def positive_part(X: Any) -> Any:
    """max(X, 0), and 0 for NaN; NumPy overwrites X."""
    if isinstance(X, np.ndarray):
        return np.fmax(X, 0.0, out=X)
    xp = array_namespace(X)
    return xp.where(X > 0.0, X, xp.zeros_like(X))


def gaussian_kernel(X: Any, centers: Any, width: float) -> Any:
    """φ_j(x) = exp(−‖x − c_j‖²/2σ²) of (n, d) rows and (m, d) centres: (n, m)."""
    centers = as_rows("centers", centers)
    X = as_rows("X", X, columns=centers.shape[1])
    return kernel_from_distances(squared_distances(X, centers), width)


def kernel_from_distances(distances: Any, width: float) -> Any:
    """exp(−D/2σ²) of squared distances D, which serve every width."""
    width = positive("width", width)
    xp = array_namespace(distances)
    if 0.5 / width / width > xp.finfo(distances.dtype).max:
        raise ValueError(f"width must be larger for {distances.dtype}, got {width:.3g}")
    kernel = distances * (-0.5 / width / width)
    if isinstance(kernel, np.ndarray):
        return np.exp(kernel, out=kernel)
    return array_namespace(kernel).exp(kernel)


def median_distance(X: Any, max_rows: int = 4000, seed: int = 0) -> float:
    """Median of ‖x_i − x_j‖ over i < j, or a ValueError when it is 0.

    Of more than ``max_rows`` rows a random subset of that many is taken, which bounds the memory
    by max_rows²/2 entries; the error is of order 1/√max_rows.
    """
    X = as_rows("X", X, least=2)
    positive_int("max_rows", max_rows, least=2)
    if X.shape[0] > max_rows:
        rows = np.random.default_rng(seed).choice(X.shape[0], max_rows, replace=False)
        X = take_rows(X, np.sort(rows))
    return _median_of_squares(_pairs(X), X)


def near_median_distance(first: Any, second: Any, seed: Any) -> float:
    """Median distance within the union of two samples, estimated from at most 1,000 rows.

    Half of them against the other half: the error is to first order that of all their pairs,
    at a quarter of the work. Up to 500 rows it is :func:`median_distance`.
    """
    X = choose_centers(first, second, 2 * PAIRED_ROWS, "both", seed)
    if X.shape[0] <= PAIRED_ROWS:
        return median_distance(X)
    # Rows of the first sample come first, and both halves need their share of them.
    distances = squared_distances(X[::2, :], X[1::2, :])
    return _median_of_squares(array_namespace(X).reshape(distances, (-1,)), X)


def _pairs(X: Any) -> Any:
    """‖x_i − x_j‖² of all i < j, from one chunk of the rows after the other."""
    xp, n = array_namespace(X), X.shape[0]
    X = X - xp.mean(X, axis=0, keepdims=True)
    doubled, squares = -2.0 * X, xp.sum(X * X, axis=1)
    pairs, stop = xp.empty(n * (n - 1) // 2, dtype=X.dtype, device=device(X)), 0
    for first in range(0, n, PAIRED_ROWS):
        last = min(first + PAIRED_ROWS, n)
        distances = xp.matmul(X[first:last, :], xp.matrix_transpose(doubled[first:, :]))
        distances += squares[first:last, None]
        distances += squares[first:]
        distances = positive_part(distances)
        for row in range(last - first):
            start, stop = stop, stop + n - first - row - 1
            pairs[start:stop] = distances[row, row + 1 :]
    return pairs


def _median_of_squares(squares: Any, X: Any) -> float:
    """Root of the median of squared distances of rows of X, or an error; NumPy reorders them."""
    xp = array_namespace(X)
    largest, limits = float(xp.max(squares)), xp.finfo(X.dtype)
    median = _median(xp, squares)
    # Squares of differences that are not 0 may be.
    vanished = largest == 0.0 and bool(xp.any(X[:1, :] != X))
    if vanished or not (largest == 0.0 or limits.smallest_normal / limits.eps <= largest < np.inf):
        raise ArgumentError(
            "X", f"must be scaled: squared distances leave the range of {X.dtype}. {SCALE_CURE}"
        )
    # Coinciding rows come out as rounding noise rather than 0.
    if median <= 1e-6 * largest**0.5:
        raise ValueError(
            f"median distance of X is 0, because most rows coincide in {X.dtype} (features that "
            "are constant or far from 0?): drop or scale such features, or give widths"
        )
    return median


def _median(xp: Any, squares: Any) -> float:
    n = squares.shape[0]
    if isinstance(squares, np.ndarray):
        # One place is found six times faster than the two that `median` asks for.
        squares.partition(n // 2)
        if n % 2 == 0:
            squares[n // 2 - 1] = squares[: n // 2].max()
    else:
        squares = xp.sort(squares)
    # Roots have the order of the squares: those of two are enough.
    middle = xp.sqrt(squares[(n - 1) // 2 : n // 2 + 1])
    return 0.5 * (float(middle[0]) + float(middle[-1]))


def choose_centers(
    numerator: Any,
    denominator: Any,
    n_centers: int = 100,
    source: str = "both",
    seed: int | np.random.SeedSequence = 0,
) -> Any:
    """Draw ``n_centers`` different rows, or all there are, from one sample or from both."""
    positive_int("n_centers", n_centers)
    one_of("source", source, CENTER_SOURCES)
    rng = np.random.default_rng(seed)
    if source != "both":
        rows = numerator if source == "numerator" else denominator
        return take_rows(rows, _some(rng, rows.shape[0], n_centers))
    n = numerator.shape[0]
    chosen = _some(rng, n + denominator.shape[0], n_centers)
    # Gathered from each before joining: the samples may be large.
    first, second = chosen[chosen < n], chosen[chosen >= n] - n
    parts = take_rows(numerator, first), take_rows(denominator, second)
    return array_namespace(*parts).concat(parts, axis=0)


def _some(rng: np.random.Generator, n: int, most: int) -> np.ndarray:
    """Return some of the numbers below n, in a random order."""
    # A permutation of a billion rows would take 8 GB; that of fewer is what seeds have meant.
    return rng.permutation(n)[:most] if n <= 10**6 else rng.choice(n, most, replace=False)


def at_most(X: Any, limit: int, seed: Any) -> Any:
    """Return all rows, or a random subset of ``limit`` of them in their order."""
    n = X.shape[0]
    if n <= limit:
        return X
    return take_rows(X, np.sort(np.random.default_rng(seed).choice(n, limit, replace=False)))


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """``X[rows]`` for any array module, as a copy."""
    xp = array_namespace(X)
    return xp.take(X, beside(rows, X), axis=0)


@dataclass(frozen=True)
class Basis:
    """φ(x): Gaussian kernels around the rows of ``centers``, or (x, 1) without any."""

    centers: Any = None

    def size(self, n_columns: int) -> int:
        """Return the number b of basis functions."""
        return n_columns + 1 if self.centers is None else self.centers.shape[0]

    def features(
        self, X: Any, widths: Iterable[float], order: np.ndarray | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the place of each width and φ(x) of the rows, in this order."""
        xp = array_namespace(X)
        if self.centers is None:
            X = X if order is None else take_rows(X, order)
            yield 0, xp.concat([X, xp.ones_like(X[:, :1])], axis=1)
            return
        distances = squared_distances(X, xp.astype(self.centers, X.dtype))
        if order is not None:
            distances = take_rows(distances, order)
        for place, width in enumerate(widths):
            yield place, kernel_from_distances(distances, float(width))

    def sums(
        self, X: Any, widths: np.ndarray, squares: bool = False, folds: Folds | None = None
    ) -> Any:
        """Sum φ, or φφᵀ, over the rows of each fold: (W, F, b) or (W, F, b, b), float64."""
        xp = array_namespace(X)
        n_folds = 1 if folds is None else folds.n_folds
        shape = (len(widths), n_folds) + (self.size(X.shape[1]),) * (1 + squares)
        sums = beside(np.zeros(shape), X)
        all_folds = None if folds is None else folds.of_rows
        start = 0
        for chunk in feature_chunks(X, shape[2]):
            order, bounds = None, [0, chunk.shape[0]]
            if all_folds is not None:
                here = all_folds[start : start + chunk.shape[0]]
                order = np.argsort(here, kind="stable")
                bounds = np.searchsorted(here[order], np.arange(n_folds + 1)).tolist()
            start += chunk.shape[0]
            for w, features in self.features(chunk, widths, order):
                for fold in range(n_folds):
                    part = features[bounds[fold] : bounds[fold + 1], :]
                    if squares:
                        gram = xp.matmul(xp.matrix_transpose(part), part)
                        sums[w, fold, :, :] += xp.astype(gram, xp.float64, copy=False)
                    else:
                        sums[w, fold, :] += xp.sum(part, axis=0, dtype=xp.float64)
        return sums
