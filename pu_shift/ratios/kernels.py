"""Gaussian kernel, median distance and centres, without n × m × d temporaries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from pu_shift._checks import ArgumentError, one_of, positive, positive_int
from pu_shift.bigdata import RowBlocks
from pu_shift.device import array_namespace, beside

CENTER_SOURCES = ("numerator", "denominator", "both")
SCALE_CURE = "Scale the features: StandardScaler in a Pipeline, on the command line no --no-scale"


class ScaleWarning(UserWarning):
    """The features' scale hides from a linear basis what they tell."""


def as_rows(name: str, X: Any, least: int = 1, columns: int | None = None) -> Any:
    """Return ``X``, or numbers as float64, if it is a finite floating matrix.

    Rows in blocks are returned as they are: they check themselves.
    """
    if isinstance(X, RowBlocks):
        _check_shape(name, X.shape, least, columns)
        return X
    if isinstance(X, np.ndarray) or not hasattr(X, "dtype"):
        X = np.asarray(X)  # also turns a memory map into a plain view
        if X.dtype.kind in "biu":
            X = X.astype(np.float64)
    xp = array_namespace(X)
    if X.ndim != 2:
        raise ArgumentError(name, f"must be a matrix of rows, got {X.ndim} dimension(s)")
    if X.dtype not in (xp.float32, xp.float64):
        raise ArgumentError(name, f"must be float32 or float64, got dtype {X.dtype}")
    _check_shape(name, X.shape, least, columns)
    # In blocks, so that the mask stays small beside a large X.
    if not all(bool(xp.all(xp.isfinite(block))) for block in row_blocks(X, 65536)):
        raise ArgumentError(name, "must not contain NaN or infinity")
    return X


def _check_shape(name: str, shape: tuple[int, int], least: int, columns: int | None) -> None:
    n, d = shape
    if n < least or d < 1:
        raise ArgumentError(
            name, f"must have at least {least} row(s) and one column, got shape ({n}, {d})"
        )
    if columns is not None and d != columns:
        raise ArgumentError(name, f"must have {columns} columns like the other sample, got {d}")


def _ranges(X: Any) -> tuple[Any, Any]:
    """Return the least and the greatest value of each column."""
    if isinstance(X, RowBlocks):
        return X.survey.low, X.survey.high
    xp = array_namespace(X)
    return xp.min(X, axis=0), xp.max(X, axis=0)


def check_scale(first: Any, second: Any, linear: bool) -> None:
    """Refuse samples whose squares overflow, and warn of those that a linear basis cannot use.

    Beside the constant 1 of the basis (x, 1), and within the rounding of its square, features can
    be too small, too large, or too far from 0 for their range; the fit is then a constant.
    """
    lows, highs = zip(*map(_ranges, (first, second)))
    xp = array_namespace(*lows)
    low, high = xp.min(xp.stack(lows), axis=0), xp.max(xp.stack(highs), axis=0)
    sizes, limits = xp.max(xp.abs(xp.stack([low, high])), axis=0), xp.finfo(first.dtype)
    largest = float(xp.max(sizes))
    terms = max(first.shape[0], second.shape[0]) if linear else 4 * first.shape[1]
    if largest > (float(limits.max) / terms) ** 0.5:
        raise ArgumentError(
            "X",
            f"must be scaled: squares of values up to {largest:.3g} leave the range of "
            f"{first.dtype}. {SCALE_CURE}",
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


def row_blocks(X: Any, size: int) -> Iterator[Any]:
    """Cut a matrix into views of at most ``size`` consecutive rows."""
    n = X.shape[0]
    for start in range(0, n, size):
        yield X[start : min(start + size, n), :]


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
    by max_rows² entries; the error is of order 1/√max_rows.
    """
    X = as_rows("X", X, least=2)
    positive_int("max_rows", max_rows, least=2)
    xp = array_namespace(X)
    if X.shape[0] > max_rows:
        rows = np.random.default_rng(seed).choice(X.shape[0], max_rows, replace=False)
        X = take_rows(X, np.sort(rows))
    distances = squared_distances(X, X)
    pairs = xp.concat([distances[i, i + 1 :] for i in range(X.shape[0] - 1)])
    median = _median(xp, xp.sqrt(pairs))
    largest, limits = float(xp.max(distances)), xp.finfo(X.dtype)
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


def _median(xp: Any, values: Any) -> float:
    n = values.shape[0]
    if isinstance(values, np.ndarray):
        # One place is found six times faster than the two that `median` asks for.
        ordered = np.partition(values, n // 2)
        if n % 2 == 0:
            ordered[n // 2 - 1] = ordered[: n // 2].max()
    else:
        ordered = xp.sort(values)
    return 0.5 * (float(ordered[(n - 1) // 2]) + float(ordered[n // 2]))


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
    """Return all rows, or a random subset of ``limit`` of them, in memory."""
    n = X.shape[0]
    if n > limit:
        return take_rows(X, np.sort(np.random.default_rng(seed).choice(n, limit, replace=False)))
    return X.take(np.arange(n)) if isinstance(X, RowBlocks) else X


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """``X[rows]`` for any array module, or of rows in blocks, as a copy."""
    if isinstance(X, RowBlocks):
        return X.take(rows)
    xp = array_namespace(X)
    return xp.take(X, beside(rows, X), axis=0)
