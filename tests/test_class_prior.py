import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls

from pu_shift.class_prior import (
    _kernel_features,
    _penalized_l1,
    estimate_prior,
    nearest_distribution,
    project_to_simplex,
)
from pu_shift.kernels import gaussian_kernel
from tests.mixtures import pu_samples


@pytest.mark.parametrize(
    ("method", "transform"),
    [("auto", None), ("pen-l1", "raw"), ("pen-l1", "score"), ("km2", "raw"), ("km2", "score")],
)
@pytest.mark.parametrize("prior", [0.2, 0.5, 0.8])
def test_known_mixtures_are_found(method, transform, prior):
    X_p, X_u = pu_samples(400, 1200, prior, gap=5.0)
    estimate = estimate_prior(X_p, X_u, method, transform)
    assert estimate.prior == pytest.approx(prior, abs=0.1)
    assert np.isnan([estimate.low, estimate.high]).all()
    assert estimate.bootstrap.size == 0


@pytest.mark.parametrize(("prior", "method"), [(0.7, "km2"), (0.99, "pen-l1")])
def test_a_prior_near_one_is_left_to_the_method_that_can_find_it(prior, method):
    X_p, X_u = pu_samples(500, 2000, prior, gap=4.0, d=2)
    estimate = estimate_prior(X_p, X_u, n_bootstrap=10)
    assert estimate.method == method
    assert estimate.prior == pytest.approx(prior, abs=0.1)
    assert estimate.low <= estimate.prior <= estimate.high


@pytest.mark.parametrize("prior", [0.3, 0.7])
def test_the_score_keeps_its_grip_on_many_features(prior):
    X_p, X_u = pu_samples(400, 1600, prior, gap=5.0, d=30)
    raw = estimate_prior(X_p, X_u, "pen-l1").prior
    auto = estimate_prior(X_p, X_u).prior
    # Closer, not close: KM2 is biased towards smaller priors.
    assert abs(auto - prior) < abs(raw - prior)


@pytest.mark.parametrize("seed", [0, 1])
def test_equal_rows_do_not_tell_p_from_u_by_their_order(seed):
    # No negative takes the value 2, so that π can be found.
    rng = np.random.default_rng(seed)
    X_p = rng.choice(3, 500, p=[0.1, 0.2, 0.7])[:, None]
    positive = rng.random(2000) < 0.7
    X_u = np.where(positive, rng.choice(3, 2000, p=[0.1, 0.2, 0.7]), rng.choice(2, 2000))[:, None]
    assert estimate_prior(X_p, X_u, seed=seed).prior == pytest.approx(0.7, abs=0.1)


@pytest.mark.parametrize("method", ["auto", "pen-l1"])
def test_a_bootstrap_interval_holds_the_truth(method):
    X_p, X_u = pu_samples(200, 600, 0.4, gap=5.0)
    estimate = estimate_prior(X_p, X_u, method, n_bootstrap=30, level=0.9)
    assert estimate.bootstrap.shape == (30,)
    assert estimate.low < 0.4 < estimate.high
    assert estimate.low <= estimate.prior <= estimate.high
    wider = estimate_prior(X_p, X_u, method, n_bootstrap=30, level=0.99)
    assert wider.low <= estimate.low
    assert wider.high >= estimate.high
    # The bootstrap leaves the estimate alone, and the seed repeats it all.
    assert wider.prior == estimate.prior == estimate_prior(X_p, X_u, method).prior


def test_each_column_of_counts_is_estimated_by_itself():
    X_p, X_u = pu_samples(60, 120, 0.4, gap=5.0)
    rng = np.random.default_rng(0)
    counts = [rng.multinomial(n, np.full(n, 1 / n), size=1).T.astype(float) for n in (60, 120)]
    ones = [np.ones((n, 1)) for n in (60, 120)]
    factors = np.array([0.25, 0.5])
    columns = [np.concatenate([a, b], axis=1) for a, b in zip(ones, counts)]
    together = _penalized_l1((X_p, X_u), columns, factors, 0)
    alone = _penalized_l1((X_p, X_u), counts, factors, 0)
    assert together[1] == alone[0]
    assert together[0] == _penalized_l1((X_p, X_u), ones, factors, 0)[0]


def test_scale_and_place_of_the_features_do_not_matter():
    X_p, X_u = pu_samples(150, 300, 0.4, gap=5.0, d=2)
    moved = [X * [10.0, 0.01] + [5.0, -7.0] for X in (X_p, X_u)]
    assert estimate_prior(*moved).prior == pytest.approx(estimate_prior(X_p, X_u).prior, abs=0.02)
    constant = [np.column_stack([X, np.ones(len(X))]) for X in (X_p, X_u)]
    assert 0.2 < estimate_prior(*constant).prior < 0.6


def test_more_rows_than_the_limit_are_thinned():
    X_p, X_u = pu_samples(2000, 4000, 0.4, gap=5.0)
    assert estimate_prior(X_p, X_u, max_rows=1600).prior == pytest.approx(0.4, abs=0.12)


@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 10**6))
def test_the_simplex_projection_is_the_nearest_distribution(n, k, seed):
    points = np.random.default_rng(seed).normal(0.0, 2.0, (n, k))
    projected = project_to_simplex(points)
    assert (projected >= 0.0).all()
    np.testing.assert_allclose(projected.sum(axis=0), 1.0)
    # Variational inequality: no corner of the simplex lies further along.
    step = points - projected
    assert (step.max(axis=0) <= (step * projected).sum(axis=0) + 1e-9).all()


def test_the_nearest_distribution_agrees_with_a_quadratic_program():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(25, 2))
    features = _kernel_features(gaussian_kernel(rows, rows, 1.0))
    np.testing.assert_allclose(features @ features.T, gaussian_kernel(rows, rows, 1.0), atol=1e-6)
    v = rng.normal(size=(25, 2))
    v /= v.sum(axis=0)
    weights = nearest_distribution(features, v, np.full((25, 2), 1 / 25), n_steps=5000)
    for column in range(2):
        # Σw = 1 as a row of large weight makes it a non-negative least-squares problem.
        A = np.vstack([features.T, np.full(25, 1e3)])
        expected, _ = nnls(A, np.append(features.T @ v[:, column], 1e3))
        ours, best = (
            np.linalg.norm(features.T @ (w - v[:, column])) for w in (weights[:, column], expected)
        )
        assert ours == pytest.approx(best, rel=1e-3)


def test_the_coefficients_of_penalized_l1_solve_its_program():
    # max_{α ≥ 0} αᵀβ − λ/2 ‖α‖² has the closed form max(0, β)/λ used there.
    beta, lam = np.array([0.3, -0.2, 0.1]), 0.5
    found = minimize(
        lambda a: 0.5 * lam * a @ a - a @ beta, np.ones(3), bounds=[(0, None)] * 3, tol=1e-12
    )
    np.testing.assert_allclose(found.x, np.maximum(0, beta) / lam, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "en"}, "method must be one of 'auto', 'pen-l1', 'km2', got 'en'"),
        ({"transform": "pca"}, "transform must be one of None, 'raw', 'score'"),
        ({"n_bootstrap": -1}, "n_bootstrap must be an integer >= 0"),
        ({"level": 1.0}, "level must lie strictly between 0 and 1"),
        ({"max_rows": 3}, "max_rows must be an integer >= 40"),
        ({"X_p": np.ones((2, 1))}, "X_p must have at least 3 row"),
        ({"X_u": np.ones((9, 2))}, "X_u must have 1 columns"),
        ({"X_u": np.full((9, 1), np.nan)}, "X_u must not contain NaN"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    X_p, X_u = pu_samples(20, 20, 0.5)
    with pytest.raises(ValueError, match=f"^{message}"):
        estimate_prior(**{"X_p": X_p, "X_u": X_u, **arguments})
