"""The squared loss in closed form against brute force and against AMSGrad run to convergence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from pu_shift.estimators.closed_form import Moments, QuadraticRisk, solve_folds
from pu_shift.models import LinearModel
from pu_shift.priors import Condition
from pu_shift.risks import Risk, evaluate_risk
from pu_shift.training import train

priors = st.floats(0.05, 0.95)


def samples(seed, n_p=60, n_u=150, d=3):
    rng = np.random.default_rng(seed)
    X_u = np.concatenate([rng.normal(0.7, 1.0, (n_u // 3, d)), rng.normal(-0.5, 1.2, (n_u, d))])
    return rng.normal(0.7, 1.0, (n_p, d)), X_u


def moments(X, n_folds=2, n_chunks=1):
    folds = np.arange(len(X)) % n_folds
    chunks = zip(np.array_split(X, n_chunks), np.array_split(folds, n_chunks))
    return Moments.of_chunks(chunks, n_folds)


def risk_of(theta, X_p, X_u, condition):
    scores = (X @ theta[:-1] + theta[-1] for X in (X_p, X_u))
    return float(evaluate_risk(*scores, condition, "squared", "pu-shift"))


@settings(max_examples=25, deadline=None)
@given(priors, priors, st.integers(0, 99))
def test_the_quadratic_function_is_the_risk(prior, test_prior, seed):
    X_p, X_u = samples(seed)
    condition = Condition(prior, test_prior)
    theta = np.random.default_rng(seed).normal(size=4)
    quadratic = QuadraticRisk.of_means(
        condition, moments(X_p).training()[-1], moments(X_u).training()[-1]
    )
    expected = risk_of(theta, X_p, X_u, condition)
    np.testing.assert_allclose(quadratic.value(theta[:, None])[0], expected, rtol=1e-9)


@settings(max_examples=15, deadline=None)
@given(priors, st.floats(0.0, 1.0), st.sampled_from([1e-3, 0.1, 1.0]), st.integers(0, 99))
def test_the_solution_is_the_minimum(prior, share, lam, seed):
    """π ≤ π′, where the risk is convex: L-BFGS finds nothing lower, and the gradient is 0."""
    X_p, X_u = samples(seed)
    condition = Condition(prior, prior + share * (0.98 - prior))
    theta, _, is_convex = solve_folds([moments(X_p), moments(X_u)], condition, np.array([lam]))
    assert is_convex

    def objective(theta):
        return risk_of(theta, X_p, X_u, condition) + 0.5 * lam * theta[:-1] @ theta[:-1]

    found = theta[-1, :, 0]
    brute = minimize(objective, np.zeros(4), method="L-BFGS-B", options={"maxiter": 500})
    assert objective(found) <= brute.fun + 1e-9


def test_amsgrad_converges_to_it():
    X_p, X_u = samples(3)
    condition, lams = Condition(0.25, 0.5), np.array([0.0, 0.1])
    theta = solve_folds([moments(X_p), moments(X_u)], condition, lams)[0][-1]
    model = LinearModel(3, 2, dtype=np.float64)
    options = {"lam": lams, "n_steps": 6000, "learning_rate": 0.02}
    train(model, X_p, X_u, Risk(condition, "squared", "pu-shift"), **options)
    np.testing.assert_allclose(model.W.array, theta[:-1], atol=1e-5)
    np.testing.assert_allclose(model.b.array.ravel(), theta[-1], atol=1e-5)


def test_folds_are_left_out():
    X_p, X_u = samples(4)
    condition, lams = Condition(0.25, 0.6), np.array([0.01, 1.0])
    both = [moments(X, n_folds=4) for X in (X_p, X_u)]
    theta, held_out, _ = solve_folds(both, condition, lams)
    for fold in range(4):
        kept = [X[np.arange(len(X)) % 4 != fold] for X in (X_p, X_u)]
        alone = solve_folds([moments(X) for X in kept], condition, lams)[0][-1]
        np.testing.assert_allclose(theta[fold], alone, rtol=1e-7, atol=1e-10)
        left = [X[np.arange(len(X)) % 4 == fold] for X in (X_p, X_u)]
        expected = [risk_of(alone[:, k], *left, condition) for k in range(2)]
        np.testing.assert_allclose(held_out[fold], expected, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(
        theta[-1], solve_folds([moments(X_p), moments(X_u)], condition, lams)[0][-1], rtol=1e-7
    )


@pytest.mark.parametrize("n_chunks", [2, 7])
def test_chunks_do_not_matter(n_chunks):
    X_p, _ = samples(5)
    whole, parts = moments(X_p, 3), moments(X_p, 3, n_chunks)
    np.testing.assert_allclose(whole.sums, parts.sums, rtol=1e-12)


def test_the_smallest_eigenvalue_tells_where_the_risk_is_not_convex():
    """π > π′, and P spreads along an axis that U hardly knows: the risk falls without end."""
    rng = np.random.default_rng(0)
    X_p, X_u = rng.normal(0.0, [1.0, 5.0], (99, 2)), rng.normal(0.0, [1.0, 0.1], (299, 2))
    both = [moments(X_p), moments(X_u)]
    assert not solve_folds(both, Condition(0.7, 0.3), np.array([0.0]))[2]
    assert solve_folds(both, Condition(0.3, 0.7), np.array([0.0]))[2]


def test_features_without_data_get_no_weight():
    """A constant column adds nothing to the bias, and a repeated one shares its weight."""
    X_p, X_u = samples(6)
    wide = [np.column_stack([X, np.zeros(len(X)), X[:, 0]]) for X in (X_p, X_u)]
    condition, lams = Condition(0.3, 0.5), np.array([0.0])
    theta = solve_folds([moments(X) for X in wide], condition, lams)[0][-1, :, 0]
    narrow = solve_folds([moments(X) for X in (X_p, X_u)], condition, lams)[0][-1, :, 0]
    assert theta[3] == pytest.approx(0.0, abs=1e-8)
    assert theta[0] == pytest.approx(theta[4])
    for X, same in zip(wide, (X_p, X_u)):
        np.testing.assert_allclose(X @ theta[:-1] + theta[-1], same @ narrow[:-1] + narrow[-1])
