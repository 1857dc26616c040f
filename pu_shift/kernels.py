"""Gaussian kernel, median distance and centres, without n × m × d temporaries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pu_shift._checks import one_of, positive, positive_int
from pu_shift.device import array_namespace, beside

CENTER_SOURCES = ("numerator", "denominator", "both")


def as_rows(name: str, X: Any, least: int = 1, columns: int | None = None) -> Any:
    """Check that ``X`` is a finite floating matrix and return it.

    Parameters
    ----------
    name
        What the error messages call it.
    X
        An array of any array module; lists and integers become float64.
    least
        The least number of rows.
    columns
        The number of columns it must have, if that is known.

    Returns
    -------
    array
        ``X`` as a two-dimensional floating array.

    Raises
    ------
    ValueError
        In one line that says what is wrong with it.

    Examples
    --------
    >>> as_rows("X", [[1, 2]]).dtype
    dtype('float64')
    """
    if isinstance(X, np.ndarray) or not hasattr(X, "dtype"):
        X = np.asarray(X)  # also turns a memory map into a plain view
        if X.dtype.kind in "biu":
            X = X.astype(np.float64)
    xp = array_namespace(X)
    if X.ndim != 2:
        raise ValueError(f"{name} must be a matrix of rows, got {X.ndim} dimension(s)")
    if X.dtype not in (xp.float32, xp.float64):
        raise ValueError(f"{name} must be float32 or float64, got dtype {X.dtype}")
    n, d = X.shape
    if n < least or d < 1:
        raise ValueError(
            f"{name} must have at least {least} row(s) and one column, got shape ({n}, {d})"
        )
    if columns is not None and d != columns:
        raise ValueError(f"{name} must have {columns} columns like the other sample, got {d}")
    # In blocks, so that the mask stays small beside a large X.
    if not all(bool(xp.all(xp.isfinite(block))) for block in row_blocks(X, 65536)):
        raise ValueError(f"{name} must not contain NaN or infinity")
    return X


def row_blocks(X: Any, size: int) -> Iterator[Any]:
    """Cut a matrix into blocks of rows, as views.

    Parameters
    ----------
    X
        (n, d) array.
    size
        The largest number of rows of a block.

    Yields
    ------
    array
        At most ``size`` consecutive rows.

    Examples
    --------
    >>> [len(block) for block in row_blocks(np.zeros((5, 1)), 2)]
    [2, 2, 1]
    """
    n = X.shape[0]
    for start in range(0, n, size):
        yield X[start : min(start + size, n), :]


def squared_distances(X: Any, centers: Any) -> Any:
    r"""Squared Euclidean distances between rows and centres, by one GEMM.

    .. math:: D_{ij} = \|x_i\|^2 + \|c_j\|^2 - 2 x_i^\top c_j

    Both are first moved by the mean of the centres, which changes no distance
    but keeps the cancellation small when features sit far from zero.

    Parameters
    ----------
    X
        (n, d) array.
    centers
        (m, d) array of the same array module and dtype.

    Returns
    -------
    array
        (n, m), never negative. Needs O(n·d + n·m) memory.

    Examples
    --------
    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[25.0, 1.0]]
    """
    xp = array_namespace(X, centers)
    origin = xp.mean(centers, axis=0, keepdims=True)
    X, centers = X - origin, centers - origin
    distances = xp.matmul(X, xp.matrix_transpose(-2.0 * centers))
    distances += xp.sum(X * X, axis=1)[:, None]
    distances += xp.sum(centers * centers, axis=1)
    return positive_part(distances)


def positive_part(X: Any) -> Any:
    """Replace what is not positive by 0, in place where the array module can.

    Parameters
    ----------
    X
        A floating array, which NumPy overwrites.

    Returns
    -------
    array
        max(X, 0), and 0 for NaN.

    Examples
    --------
    >>> positive_part(np.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    if isinstance(X, np.ndarray):
        return np.fmax(X, 0.0, out=X)
    xp = array_namespace(X)
    return xp.where(X > 0.0, X, xp.zeros_like(X))


def gaussian_kernel(X: Any, centers: Any, width: float) -> Any:
    r"""Gaussian kernel values.

    .. math:: \varphi_j(x) = \exp\left(-\frac{\|x - c_j\|^2}{2\sigma^2}\right)

    Parameters
    ----------
    X
        (n, d) array.
    centers
        (m, d) array.
    width
        σ > 0.

    Returns
    -------
    array
        (n, m), within [0, 1].

    Examples
    --------
    >>> gaussian_kernel(np.array([[0.0]]), np.array([[0.0], [1.0]]), 1.0).round(4).tolist()
    [[1.0, 0.6065]]
    """
    centers = as_rows("centers", centers)
    X = as_rows("X", X, columns=centers.shape[1])
    return kernel_from_distances(squared_distances(X, centers), width)


def kernel_from_distances(distances: Any, width: float) -> Any:
    """Gaussian kernel from squared distances, which serve every width.

    Parameters
    ----------
    distances
        Squared distances, any shape.
    width
        σ > 0.

    Returns
    -------
    array
        exp(−D/2σ²), of the same shape.

    Examples
    --------
    >>> kernel_from_distances(np.array([[0.0]]), 2.0).tolist()
    [[1.0]]
    """
    width = positive("width", width)
    xp = array_namespace(distances)
    if 0.5 / width / width > xp.finfo(distances.dtype).max:
        raise ValueError(f"width must be larger for {distances.dtype}, got {width:.3g}")
    kernel = distances * (-0.5 / width / width)
    if isinstance(kernel, np.ndarray):
        return np.exp(kernel, out=kernel)
    return array_namespace(kernel).exp(kernel)


def median_distance(X: Any, max_rows: int = 4000, seed: int = 0) -> float:
    r"""Median Euclidean distance between two different rows.

    Exact up to ``max_rows`` rows; above, of a random subset of that many,
    whose error is of order 1/√max_rows.

    Parameters
    ----------
    X
        (n, d) array, n ≥ 2.
    max_rows
        The largest number of rows compared, which bounds the memory by
        max_rows² entries.
    seed
        Seed of the subset.

    Returns
    -------
    float
        The median of ‖x_i − x_j‖ over i < j, always positive.

    Raises
    ------
    ValueError
        When more than half of the pairs coincide, so that it is 0.

    Examples
    --------
    >>> median_distance(np.array([[0.0], [1.0], [3.0]]))
    2.0
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
    # Coinciding rows come out as rounding noise rather than 0.
    largest, limits = float(xp.max(distances)), xp.finfo(X.dtype)
    if not np.isfinite(largest) or 0.0 < largest < limits.smallest_normal / limits.eps:
        raise ValueError(f"X must be scaled: squared distances leave the range of {X.dtype}")
    scale = largest**0.5
    if median <= 1e-6 * scale or median == 0.0:
        raise ValueError(
            "median distance of X is 0, because most rows coincide (constant features?): "
            "drop such features or rows, or give widths"
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
    """Draw kernel centres from the samples, without replacement.

    Parameters
    ----------
    numerator, denominator
        The two samples, (n, d) arrays.
    n_centers
        How many; all rows are taken when there are fewer.
    source
        ``'numerator'``, ``'denominator'`` or ``'both'`` (their union).
    seed
        Seed of the draw.

    Returns
    -------
    array
        (min(n_centers, rows), d).

    Examples
    --------
    >>> choose_centers(np.zeros((5, 2)), np.ones((9, 2)), 3, "numerator").shape
    (3, 2)
    """
    positive_int("n_centers", n_centers)
    one_of("source", source, CENTER_SOURCES)
    xp = array_namespace(numerator, denominator)
    rng = np.random.default_rng(seed)
    if source != "both":
        rows = numerator if source == "numerator" else denominator
        chosen = rng.permutation(rows.shape[0])[:n_centers]
        return take_rows(rows, chosen)
    n = numerator.shape[0]
    chosen = rng.permutation(n + denominator.shape[0])[:n_centers]
    # Gathered from each before joining: the samples may be large.
    first, second = chosen[chosen < n], chosen[chosen >= n] - n
    return xp.concat([take_rows(numerator, first), take_rows(denominator, second)], axis=0)


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Return ``X[rows]`` for any array module.

    Parameters
    ----------
    X
        (n, d) array.
    rows
        Row numbers, as a NumPy array.

    Returns
    -------
    array
        (len(rows), d), a copy.

    Examples
    --------
    >>> take_rows(np.array([[1.0], [2.0]]), np.array([1])).tolist()
    [[2.0]]
    """
    xp = array_namespace(X)
    return xp.take(X, beside(rows, X), axis=0)
