import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift import (
    Condition,
    DensityRatioClassifier,
    RiskMinimizationClassifier,
    estimate_prior,
    estimate_test_prior,
)
from pu_shift.estimation.test_prior import (
    estimate_from_sums,
    most_likely_prior,
)
from pu_shift.priors import posterior_at, ratio_sums, shift_posterior, test_ratio
from tests.mixtures import mixture, posterior, pu_samples

PRIOR = 0.3
X_P, X_U = pu_samples(400, 1600, PRIOR)
UNIT = st.floats(0.02, 0.98)
GRID = {"widths": 1.0, "lams": 0.01}


@pytest.fixture(scope="module")
def classifier():
    return DensityRatioClassifier(PRIOR, **GRID).fit_pu(X_P, X_U)


def rows(n, test_prior, seed=0):
    return mixture(n, test_prior, np.random.default_rng(seed))[0]


@pytest.mark.parametrize("method", ["ratio", "em"])
@pytest.mark.parametrize("direction", ["p/u", "u/p"])
@pytest.mark.parametrize("test_prior", [0.1, 0.5, 0.9])
def test_a_shifted_share_is_found(method, direction, test_prior):
    classifier = DensityRatioClassifier(PRIOR, direction=direction, **GRID).fit_pu(X_P, X_U)
    found = estimate_test_prior(classifier, rows(1000, test_prior), method)
    assert found.test_prior == pytest.approx(test_prior, abs=0.1)
    assert found.low <= found.test_prior <= found.high
    assert (found.method, found.n_rows, found.level) == (method, 1000, 0.95)


def test_intervals_of_the_ratio_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    held = {0.5: [], 0.95: []}
    for trial in range(60):
        X_p, X_u = pu_samples(100, 300, PRIOR, seed=trial)
        classifier = DensityRatioClassifier(PRIOR, **GRID).fit_pu(X_p, X_u)
        test_prior = rng.uniform(0.05, 0.95)
        X = rng.normal(np.where(rng.random((200, 1)) < test_prior, 1.0, -1.0), 1.0)
        for level, cases in held.items():
            found = estimate_test_prior(classifier, X, level=level)
            cases.append(found.low <= test_prior <= found.high)
    # Within two standard errors and a half.
    assert np.mean(held[0.95]) >= 0.88
    assert 0.34 <= np.mean(held[0.5]) <= 0.66


def test_means_of_any_score_give_the_shift():
    # However bad the score: its mean is a mixture of the means of P and U (Theorem 10).
    rng = np.random.default_rng(0)
    p, u = rng.random((2, 7))
    p, u = p / p.sum(), u / u.sum()
    t = u * test_ratio(1.0 / (p / u), PRIOR, 0.6) * (p / u)
    np.testing.assert_allclose(t.sum(), 1.0)
    g = (p > u).astype(float)

    class Known:
        prior, prior_ = PRIOR, PRIOR
        ratio_sums_ = np.array([[10**6, 10**6 * (d @ g), 10**6 * (d @ g**2)] for d in (p, u)])

    found = estimate_from_sums(Known, np.array([1000, 1000 * (t @ g), 1000 * (t @ g**2)]))
    assert found.test_prior == pytest.approx(0.6)


@settings(max_examples=30)
@given(UNIT, UNIT, st.integers(0, 10**6))
def test_the_likelihood_is_maximised_where_em_ends(prior, test_prior, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(np.where(rng.random((200, 1)) < test_prior, 1.0, -1.0), 1.0)
    q = posterior(X, prior)
    best, low, high = most_likely_prior(q, prior, 0.9)
    # The EM of Saerens et al.: posteriors at the estimate, and their mean as the next one.
    found = prior
    for _ in range(2000):
        found = np.clip(np.mean(shift_posterior(q, prior, found)), 1e-9, 1.0 - 1e-9)
    assert found == pytest.approx(best, abs=2e-3)
    assert 0.0 <= low <= best <= high <= 1.0

    def log_likelihood(value):
        return np.sum(np.log(value * q / prior + (1.0 - value) * (1.0 - q) / (1.0 - prior)))

    for end in (low, high):
        if 0.0 < end < 1.0:
            drop = log_likelihood(best) - log_likelihood(end)
            assert drop == pytest.approx(0.5 * 1.6448536**2, rel=1e-4)


def test_likelihood_intervals_of_true_posteriors_hold_the_truth():
    rng = np.random.default_rng(0)
    held = []
    for _ in range(200):
        X = rng.normal(np.where(rng.random((100, 1)) < 0.7, 1.0, -1.0), 1.0)
        _, low, high = most_likely_prior(posterior(X, PRIOR), PRIOR, 0.95)
        held.append(low <= 0.7 <= high)
    assert np.mean(held) >= 0.92


def test_other_classifiers_and_pipelines_are_taken(classifier):
    X = rows(800, 0.7)
    scaled = make_pipeline(StandardScaler(), DensityRatioClassifier(PRIOR, **GRID))
    scaled.fit(np.concatenate([X_P, X_U]), np.repeat([1, 0], [400, 1600]))
    assert estimate_test_prior(scaled, X).test_prior == pytest.approx(0.7, abs=0.1)
    risk = RiskMinimizationClassifier(PRIOR, 0.5, n_steps=300, learning_rate=0.02, loss="logistic")
    risk.fit_pu(X_P, X_U)
    found = estimate_test_prior(risk, X)
    assert found.method == "em"
    assert found.test_prior == pytest.approx(0.7, abs=0.15)
    supervised = LogisticRegression().fit(*mixture(2000, 0.2, np.random.default_rng(3)))
    found = estimate_test_prior(supervised, X, prior=0.2)
    assert found.test_prior == pytest.approx(0.7, abs=0.1)


@pytest.mark.parametrize("method", ["ratio", "em"])
def test_an_interval_of_the_prior_widens_that_of_the_test_prior(classifier, method):
    X = rows(300, 0.6)
    narrow, wide, other = (
        estimate_test_prior(classifier, X, method, prior=prior) for prior in (None, (0.2, 0.4), 0.4)
    )
    assert wide.test_prior == narrow.test_prior
    assert wide.low < narrow.low < narrow.high < wide.high
    assert other.test_prior > narrow.test_prior


def test_a_classifier_estimates_from_the_rows_that_it_predicts(classifier):
    X, y = mixture(1000, 0.8, np.random.default_rng(4))
    fitted = DensityRatioClassifier(PRIOR, "estimate", **GRID).fit_pu(X_P, X_U)
    assert fitted.condition == Condition(PRIOR)
    labels = fitted.predict(X)
    found = fitted.test_prior_
    assert found == estimate_test_prior(classifier, X)
    told = classifier.set_params(test_prior=found.test_prior)
    np.testing.assert_array_equal(labels, told.predict(X))
    np.testing.assert_array_equal(fitted.predict_proba(X), told.predict_proba(X))
    many = fitted.predict_many(X, [{"alpha": 0.2}])
    np.testing.assert_array_equal(many, told.predict_many(X, [{"alpha": 0.2}]))
    assert fitted.score(X, y) == told.score(X, y)
    # Other rows, another share; and a new fit knows of none.
    fitted.predict(rows(1000, 0.1))
    assert fitted.test_prior_.test_prior < 0.2
    assert not hasattr(fitted.fit_pu(X_P, X_U), "test_prior_")
    told.set_params(test_prior=None)


def test_what_cannot_be_estimated_is_refused(classifier):
    with pytest.raises(ValueError, match="X_test must have at least 30 rows .*, got 29"):
        estimate_test_prior(classifier, rows(29, 0.5))
    with pytest.raises(ValueError, match="X_test must have at least 30 rows .*, got 3"):
        estimate_test_prior(classifier, rows(3, 0.5), "em")
    with pytest.raises(ValueError, match="prior must be given for a classifier that knows none"):
        estimate_test_prior(LogisticRegression(), rows(50, 0.5))
    supervised = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="^classifier must be a DensityRatioClassifier"):
        estimate_test_prior(supervised, rows(50, 0.5), "ratio", prior=0.3)
    with pytest.raises(ValueError, match="every test row the same probability"):
        estimate_test_prior(classifier, np.zeros((50, 1)), "em")
    alike = DensityRatioClassifier(0.5, **GRID).fit_pu(*np.split(rows(200, 0.5), 2))
    with pytest.raises(ValueError, match="cannot tell positive from unlabelled rows"):
        estimate_test_prior(alike, rows(50, 0.5))


@given(UNIT, st.integers(0, 10**6))
def test_scores_and_posteriors_agree_in_both_directions(prior, seed):
    ratio = np.random.default_rng(seed).uniform(0.01, 1.0 / prior, 20)
    np.testing.assert_allclose(ratio_sums(ratio, "p/u"), ratio_sums(1.0 / ratio, "u/p"))
    np.testing.assert_allclose(
        posterior_at(ratio, prior, "p/u"), posterior_at(1.0 / ratio, prior, "u/p")
    )
    np.testing.assert_allclose(ratio_sums(np.array([-1.0, 1.0, 3.0]), "p/u"), [3, 1.25, 0.8125])


def test_both_priors_are_found_one_after_the_other():
    X_p, X_u = pu_samples(400, 1600, PRIOR, gap=4.0)
    prior = estimate_prior(X_p, X_u)
    fitted = DensityRatioClassifier(prior.prior, **GRID).fit_pu(X_p, X_u)
    X = mixture(500, 0.8, np.random.default_rng(5), gap=4.0)[0]
    found = estimate_test_prior(fitted, X, prior=(prior.low, prior.high))
    assert found.test_prior == pytest.approx(0.8, abs=0.06)
    assert found.low < 0.8 < found.high
