"""Is the shift one of priors alone? False alarms and power on mixtures that are known."""

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift import DensityRatioClassifier, check_positives, check_shift
from pu_shift.estimation.class_prior import PriorWarning
from tests.mixtures import mixture, pu_samples

PRIOR = 0.3
X_P, X_U = pu_samples(400, 1600, PRIOR, d=3)


@pytest.fixture(scope="module")
def classifier():
    return DensityRatioClassifier(PRIOR, estimator=["linear", "nystroem"]).fit_pu(X_P, X_U)


def new_rows(prior, seed, n=500):
    return mixture(n, prior, np.random.default_rng(seed), d=3)[0]


@pytest.mark.parametrize("prior", [0.1, 0.3, 0.8])
def test_few_false_alarms_and_the_prior_is_found(prior):
    checks = []
    for seed in range(40):
        X_p, X_u = pu_samples(200, 800, PRIOR, seed=seed, d=3)
        own = DensityRatioClassifier(PRIOR, estimator="linear").fit_pu(X_p, X_u)
        checks.append(check_shift(own, new_rows(prior, seed + 100), n_bootstrap=100))
    # At a level of 5 %, seven or more of 40 have a chance of less than 0.5 %.
    assert sum(not check.passed for check in checks) < 7
    assert np.mean([check.test_prior for check in checks]) == pytest.approx(prior, abs=0.04)


def test_alarms_come_at_the_level(classifier):
    p_values = [
        check_shift(classifier, new_rows(0.5, seed), n_bootstrap=100).p_value for seed in range(40)
    ]
    assert 0.3 < np.mean(p_values) < 0.75


def test_alarms_come_at_the_level_over_draws_of_the_training_rows_too():
    alarms = []
    for seed in range(30):
        X_p, X_u = pu_samples(100, 400, 0.6, seed=seed, d=3)
        own = DensityRatioClassifier(0.6, estimator=["linear", "nystroem"]).fit_pu(X_p, X_u)
        for options in ({}, {"X_p": X_p, "X_u": X_u}):
            check = check_shift(own, new_rows(0.2, seed + 100), **options, n_bootstrap=50)
            alarms.append(not check.passed)
    # Of 30 at 5 %, five or more have a chance of 1.6 %.
    assert np.reshape(alarms, (-1, 2)).sum(axis=0).max() < 5


@pytest.mark.parametrize("prior", [0.1, 0.6])
def test_a_moved_class_is_found(classifier, prior):
    moved = new_rows(prior, 1)
    moved[:, 0] *= 2.0
    check = check_shift(classifier, moved)
    assert not check.passed
    assert "do not agree" in str(check)


@pytest.mark.parametrize("prior", [0.1, 0.6])
def test_a_shift_that_no_ratio_sees_is_found_by_the_features(classifier, prior):
    for seed in range(3):
        moved = new_rows(prior, seed)
        moved[:, 2] += 1.0
        assert not check_shift(classifier, moved, X_P, X_U).passed


def test_false_alarms_of_the_features_are_few(classifier):
    alarms = [
        not check_shift(classifier, new_rows(prior, seed), X_P, X_U, n_bootstrap=50).passed
        for prior in (0.1, 0.6)
        for seed in range(4)
    ]
    assert sum(alarms) < 4


def test_positives_that_u_lacks_are_found(classifier):
    assert check_positives(classifier) > 0.05
    strange = np.concatenate([X_P[:200], X_P[200:] + np.array([6.0, 0.0, 0.0])])
    other = DensityRatioClassifier(PRIOR, estimator=["linear", "nystroem"])
    with pytest.warns(PriorWarning, match="P has cases that U lacks"):
        other.fit_pu(strange, X_U)
    assert check_positives(other) < 0.05


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (5, {}, "X_new must have at least 20 rows, got 5"),
        (50, {"level": 1.0}, "level must lie strictly between 0 and 1"),
        (50, {"n_bootstrap": 3}, "n_bootstrap must be an integer >= 20"),
        (50, {"X_p": X_P}, "X_p and X_u must be given together"),
    ],
)
def test_bad_arguments_are_named(classifier, rows, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        check_shift(classifier, new_rows(0.5, 0, rows), **options)


def test_a_pipeline_is_checked_as_its_last_step():
    X_p, X_u = pu_samples(150, 400, 0.4, d=2)
    X = np.concatenate([X_p, X_u])
    scaler = StandardScaler().fit(X)
    classifier = DensityRatioClassifier(0.4, estimator="linear")
    classifier.fit_pu(scaler.transform(X_p), scaler.transform(X_u))
    pipeline = Pipeline([("scale", scaler), ("classify", classifier)])
    samples = X_u[:200], X_p, X_u
    expected = check_shift(classifier, *map(scaler.transform, samples), n_bootstrap=50)
    assert check_shift(pipeline, *samples, n_bootstrap=50) == expected
    p_value = check_positives(classifier, *map(scaler.transform, samples[1:]), n_bootstrap=50)
    assert check_positives(pipeline, *samples[1:], n_bootstrap=50) == p_value
