"""The squared loss in closed form against brute force and against AMSGrad run to convergence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import make_classification

from pu_shift import RiskMinimizationClassifier
from pu_shift.estimators.closed_form import QuadraticRisk, fold_means, solve_stack
from pu_shift.models import LinearModel
from pu_shift.priors import Condition
from pu_shift.ratios import kernels
from pu_shift.risks import Risk, evaluate_risk
from pu_shift.training import train

priors = st.floats(0.05, 0.95)


def samples(seed, n_p=60, n_u=150, d=3):
    rng = np.random.default_rng(seed)
    X_u = np.concatenate([rng.normal(0.7, 1.0, (n_u // 3, d)), rng.normal(-0.5, 1.2, (n_u, d))])
    return rng.normal(0.7, 1.0, (n_p, d)), X_u


def solution(X_p, X_u, condition, lam, n_folds=2):
    """The weights and the bias of all rows."""
    folds = [np.arange(len(X)) % n_folds for X in (X_p, X_u)]
    weights, biases = solve_stack(
        (X_p, X_u), folds, Risk(condition, "squared", "pu-shift"), np.array([lam])
    )
    return np.append(weights[:, 0, 0, -1], biases[0, 0, -1])


def risk_of(theta, X_p, X_u, condition):
    scores = (X @ theta[:-1] + theta[-1] for X in (X_p, X_u))
    return float(evaluate_risk(*scores, condition, "squared", "pu-shift"))


@settings(max_examples=25, deadline=None)
@given(priors, priors, st.integers(0, 99))
def test_the_quadratic_function_is_the_risk_but_for_a_constant(prior, test_prior, seed):
    X_p, X_u = samples(seed)
    condition = Condition(prior, test_prior)
    means = (fold_means(X, np.arange(len(X)) % 2)[-1] for X in (X_p, X_u))
    quadratic = QuadraticRisk.of_means(condition, 0.5, *means)
    theta = np.random.default_rng(seed).normal(size=4)
    value = 0.5 * theta @ quadratic.A @ theta - quadratic.c @ theta
    constant = risk_of(np.zeros(4), X_p, X_u, condition)
    np.testing.assert_allclose(
        value, risk_of(theta, X_p, X_u, condition) - constant, rtol=1e-9, atol=1e-12
    )


@settings(max_examples=15, deadline=None)
@given(priors, st.floats(0.0, 1.0), st.sampled_from([1e-3, 0.1, 1.0]), st.integers(0, 99))
def test_the_solution_is_the_minimum(prior, share, lam, seed):
    """π ≤ π′, where the risk is convex: L-BFGS finds nothing lower."""
    X_p, X_u = samples(seed)
    condition = Condition(prior, prior + share * (0.98 - prior))

    def objective(theta):
        return risk_of(theta, X_p, X_u, condition) + 0.5 * lam * theta[:-1] @ theta[:-1]

    found = solution(X_p, X_u, condition, lam)
    brute = minimize(objective, np.zeros(4), method="L-BFGS-B", options={"maxiter": 500})
    assert objective(found) <= brute.fun + 1e-9


def test_amsgrad_converges_to_it():
    X_p, X_u = samples(3)
    condition, lams = Condition(0.25, 0.5), np.array([0.0, 0.1])
    model = LinearModel(3, 2, dtype=np.float64)
    options = {"lam": lams, "n_steps": 6000, "learning_rate": 0.02}
    train(model, X_p, X_u, Risk(condition, "squared", "pu-shift"), **options)
    for column, lam in enumerate(lams):
        trained = np.append(model.W.array[:, column], model.b.array.ravel()[column])
        np.testing.assert_allclose(trained, solution(X_p, X_u, condition, lam), atol=1e-5)


def test_folds_are_left_out():
    X_p, X_u = samples(4)
    conditions, lams = [Condition(0.25, 0.6), Condition(0.25, 0.9)], np.array([0.01, 1.0])
    folds = [np.arange(len(X)) % 4 for X in (X_p, X_u)]
    weights, biases = solve_stack((X_p, X_u), folds, Risk(conditions, "squared", "pu-shift"), lams)
    assert weights.shape == (3, 2, 2, 5)
    assert biases.shape == (2, 2, 5)
    for fold in range(4):
        kept = [X[of_rows != fold] for X, of_rows in zip((X_p, X_u), folds)]
        for c, condition in enumerate(conditions):
            for k, lam in enumerate(lams):
                found = np.append(weights[:, c, k, fold], biases[c, k, fold])
                np.testing.assert_allclose(found, solution(*kept, condition, lam), rtol=1e-7)


def test_the_size_of_chunks_does_not_matter(monkeypatch):
    X, _ = samples(5)
    folds = np.arange(len(X)) % 3
    whole = fold_means(X, folds)
    monkeypatch.setattr(kernels, "CHUNK_ROWS", 7)
    np.testing.assert_allclose(fold_means(X, folds), whole, rtol=1e-12)


def test_the_smallest_eigenvalue_tells_where_the_risk_is_not_convex():
    """π > π′, and P spreads along an axis that U hardly knows: the risk falls without end."""
    rng = np.random.default_rng(0)
    samples = rng.normal(0.0, [1.0, 5.0], (99, 2)), rng.normal(0.0, [1.0, 0.1], (299, 2))
    folds = [np.arange(len(X)) % 2 for X in samples]
    falling, rising = (Risk(Condition(*pair)) for pair in ((0.7, 0.3), (0.3, 0.7)))
    assert solve_stack(samples, folds, falling, np.array([0.0])) is None
    assert solve_stack(samples, folds, rising, np.array([0.0])) is not None


def test_features_without_data_get_no_weight():
    """A column of zeros has no weight, and repeated columns share theirs."""
    X_p, X_u = samples(6)
    wide = [np.column_stack([X, np.zeros(len(X)), X[:, 0]]) for X in (X_p, X_u)]
    condition = Condition(0.3, 0.5)
    theta, narrow = solution(*wide, condition, 0.0), solution(X_p, X_u, condition, 0.0)
    assert theta[3] == pytest.approx(0.0, abs=1e-8)
    assert theta[0] == pytest.approx(theta[4])
    for X, same in zip(wide, (X_p, X_u)):
        np.testing.assert_allclose(X @ theta[:-1] + theta[-1], same @ narrow[:-1] + narrow[-1])


def test_the_classifier_decides_as_after_long_training():
    X, y = make_classification(900, 5, n_informative=3, class_sep=1.5, random_state=0)
    X_p, X_u = X[y == 1][:150], np.concatenate([X[y == 1][150:300], X[y == 0]])
    options = {"prior": 0.25, "test_prior": 0.5, "basis": "gaussian", "widths": 2.0}
    options |= {"lams": [1e-2, 0.1], "safe": False}
    solved = RiskMinimizationClassifier(**options).fit_pu(X_p, X_u)
    trained = RiskMinimizationClassifier(**options, solver="amsgrad", n_steps=4000)
    trained.fit_pu(X_p, X_u)
    assert solved.lam_ == trained.lam_
    assert np.mean(solved.predict(X) == trained.predict(X)) > 0.99


def test_other_losses_and_corrections_are_trained(monkeypatch):
    def refuse(*_):
        raise AssertionError("solved")

    monkeypatch.setattr("pu_shift.estimators.cross_validation.solve_stack", refuse)
    X_p, X_u = samples(7)
    for options in (
        {"loss": "logistic"},
        {"correction": "max"},
        {"prior": 0.6, "test_prior": 0.3},
        {"solver": "amsgrad"},
    ):
        options = {"prior": 0.3, "basis": "linear", "n_steps": 5, "safe": False, **options}
        RiskMinimizationClassifier(**options).fit_pu(X_p, X_u)
    with pytest.raises(AssertionError, match="solved"):
        RiskMinimizationClassifier(prior=0.3).fit_pu(X_p, X_u)
