"""Kernels against brute force, on every array module."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist, pdist

from pu_shift.ratios import kernels
from tests.strict import back, there


def matrices(min_rows=1, columns=3):
    return st.integers(min_rows, 12).flatmap(
        lambda n: arrays(np.float64, (n, columns), elements=st.floats(-100, 100))
    )


@given(matrices(), matrices())
def test_squared_distances_are_brute_force(X, C):
    expected = ((X[:, None] - C[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(kernels.squared_distances(X, C), expected, atol=1e-9)


@given(matrices(), st.floats(0.1, 100))
def test_gaussian_kernel(X, width):
    K = kernels.gaussian_kernel(X, X, width)
    np.testing.assert_allclose(K, np.exp(-(cdist(X, X) ** 2) / (2 * width**2)), atol=1e-7)
    assert (K <= 1).all()
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    # Positive semidefinite, as a kernel matrix must be.
    assert np.linalg.eigvalsh(K).min() > -1e-6


def test_no_n_by_m_by_d_temporary():
    X = np.ones((2000, 300))
    X[:, 0] = np.arange(2000)
    C = X[:200]
    tracemalloc.start()
    kernels.gaussian_kernel(X, C, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * (X.nbytes + 2000 * 200 * 8) < 2000 * 200 * 300 * 8


@given(matrices(min_rows=2))
def test_median_distance_is_the_median_of_pairs(X):
    expected = np.median(pdist(X))
    if expected < 1e-3:
        return
    assert kernels.median_distance(X) == pytest.approx(expected, rel=1e-6)


def test_median_distance_of_a_subset_is_close():
    X = np.random.default_rng(0).normal(size=(3000, 5))
    exact = kernels.median_distance(X)
    assert exact == pytest.approx(np.median(pdist(X)))
    near = kernels.median_distance(X, max_rows=500)
    assert near != exact
    assert near == pytest.approx(exact, rel=0.05)
    assert near == kernels.median_distance(X, max_rows=500)


def test_distances_of_pairs_need_no_square_matrix(monkeypatch):
    X = np.random.default_rng(0).normal(size=(1000, 4))
    whole = kernels.median_distance(X)
    monkeypatch.setattr(kernels, "PAIRED_ROWS", 64)
    tracemalloc.start()
    assert kernels.median_distance(X) == pytest.approx(whole, rel=1e-12)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1000 * 1000 * 8


def test_the_near_median_is_as_close_as_that_of_all_pairs_of_its_rows():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(900, 3)), rng.normal(0.5, 1.5, (2100, 3))
    exact = np.median(pdist(np.concatenate([first, second])))
    near = np.array([kernels.near_median_distance(first, second, seed) for seed in range(20)])
    rows = [kernels.choose_centers(first, second, 1000, "both", seed) for seed in range(20)]
    pairs = np.array([np.median(pdist(X)) for X in rows])
    errors = [np.sqrt(np.mean((values / exact - 1.0) ** 2)) for values in (near, pairs)]
    assert errors[0] < 1.5 * errors[1] < 0.05
    few = first[:200], second[:300]
    assert kernels.near_median_distance(*few, 0) == pytest.approx(
        np.median(pdist(np.concatenate(few)))
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, 1.0, 1234.567, 1e6])
def test_constant_features_have_no_median(value, dtype):
    with pytest.raises(ValueError, match=r"\Amedian distance of X is 0[^\n]*\Z"):
        kernels.median_distance(np.full((20, 3), value, dtype=dtype))


@pytest.mark.parametrize("source", ["numerator", "denominator", "both"])
def test_centers_are_distinct_rows_of_their_source(source):
    nu, de = np.arange(10.0)[:, None], np.arange(100.0, 130.0)[:, None]
    pool = {"numerator": nu, "denominator": de, "both": np.concatenate([nu, de])}[source]
    centers = kernels.choose_centers(nu, de, 8, source, seed=3)
    assert centers.shape == (8, 1)
    assert len(np.unique(centers)) == 8
    assert np.isin(centers, pool).all()
    np.testing.assert_array_equal(centers, kernels.choose_centers(nu, de, 8, source, seed=3))
    assert len(kernels.choose_centers(nu, de, 1000, source)) == len(pool)


def test_array_api_strict():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(30, 3)), rng.normal(size=(5, 3))
    sX, sC = there(X), there(C)
    np.testing.assert_allclose(
        back(kernels.gaussian_kernel(sX, sC, 2.0)), kernels.gaussian_kernel(X, C, 2.0)
    )
    assert kernels.median_distance(sX) == pytest.approx(kernels.median_distance(X))
    many = rng.normal(size=(700, 2)), rng.normal(size=(20, 2))
    near = kernels.near_median_distance(*map(there, many), 0)
    assert near == pytest.approx(kernels.near_median_distance(*many, 0))
    np.testing.assert_array_equal(
        back(kernels.choose_centers(sX, sC, 7)), kernels.choose_centers(X, C, 7)
    )


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(3), "must be a matrix of rows, got 1 dimension"),
        (np.zeros((0, 3)), "at least 1 row"),
        (np.zeros((3, 0)), "one column"),
        (np.array([[np.nan]]), "NaN or infinity"),
        (np.array([[np.inf, -np.inf]]), "NaN or infinity"),
        (np.array([["a"]]), "float32 or float64"),
        (np.zeros((2, 2), dtype=np.float16), "float32 or float64"),
        (np.zeros((2, 2), dtype=complex), "float32 or float64"),
        (np.array([[object()]]), "float32 or float64"),
    ],
)
def test_bad_rows(X, message):
    with pytest.raises(ValueError, match=rf"\Anumerator [^\n]*{message}[^\n]*\Z"):
        kernels.as_rows("numerator", X)


def test_good_rows_are_not_copied(tmp_path):
    X = np.zeros((2, 2), dtype=np.float32)
    assert kernels.as_rows("X", X) is X
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert type(kernels.as_rows("X", mapped)) is np.ndarray
    assert kernels.as_rows("X", [[1, 2]]).dtype == np.float64


def test_other_bad_arguments():
    X = np.zeros((3, 2))
    with pytest.raises(ValueError, match="n_centers must be an integer >= 1"):
        kernels.choose_centers(X, X, 0)
    with pytest.raises(ValueError, match="source must be one of"):
        kernels.choose_centers(X, X, 1, "middle")
    with pytest.raises(ValueError, match="max_rows"):
        kernels.median_distance(X, max_rows=1)
    with pytest.raises(ValueError, match="X must have 5 columns"):
        kernels.as_rows("X", X, columns=5)
