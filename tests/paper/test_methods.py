"""The paper's methods are the estimators that ship, with the protocol's arguments."""

import warnings

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from pu_shift._seeds import child
from pu_shift.data.sampling import Draw
from pu_shift.paper.protocol import Protocol, chosen, fit_method, scale_features
from pu_shift.paper.settings import EXTRA_METHODS, METHODS
from pu_shift.priors import alpha_unif
from pu_shift.ratios.ulsif import ULSIF

PRIOR, GIVEN, SEED = 0.3, (0.3, 0.45, 0.7), 11
RATIO = ("u/p uLSIF", "p/u uLSIF", "p/u uLSIF-Lin")
# Few rows and steps; a rate at which they suffice to move off the start.
PROTOCOL = Protocol(
    n_folds=3,
    n_centers=20,
    ker_centers=20,
    width_factors=(0.5, 1.0),
    ratio_lams=(1e-2, 1e-1, 1.0),
    learning_rate=2e-2,
    n_batches=2,
    n_steps=30,
    risk_lams=(0.0, 0.3),
)


def rows(n_p, n_u, rng):
    """Return P and U of two overlapping Gaussians, and 60 more rows like U."""
    positives = rng.normal([1.0, 0.5, 0.0], 1.0, (n_p, 3))
    signs = np.where(rng.random((n_u + 60, 1)) < PRIOR, 1.0, -1.0)
    unlabeled = rng.normal(signs * [1.0, 0.5, 0.0], 1.0)
    return [part.astype(np.float32) for part in (positives, unlabeled[:n_u], unlabeled[n_u:])]


P, U, X = rows(40, 90, np.random.default_rng(5))
SAMPLE = Draw(P, U, np.zeros(90), {0.3: (X, np.ones(60))}, child(SEED))


def fit(method, given=GIVEN, protocol=PROTOCOL, sample=SAMPLE):
    return fit_method(protocol, method, sample, PRIOR, given)


@pytest.mark.parametrize("method", RATIO)
def test_a_ratio_method_is_ulsif_cut_at_the_threshold_of_the_given_prior(method):
    linear, inverse = method.endswith("-Lin"), method.startswith("u/p")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ratio = ULSIF(
            *((U, P) if inverse else (P, U)),
            n_centers=20,
            width_factors=[0.5, 1.0],
            lams=[1e-2, 1e-1, 1.0],
            basis="linear" if linear else "gaussian",
            n_folds=3,
            random_state=child(SEED),
        )
    fitted = fit(method)
    assert list(fitted) == list(GIVEN)
    decisions = []
    for given, model in fitted.items():
        # Positive when p(+1|x) = π p_p/p_u exceeds α.
        posterior = PRIOR / ratio(X) if inverse else PRIOR * ratio(X)
        expected = posterior > alpha_unif(PRIOR, given)
        if inverse:  # an estimate of p_u/p_p that is not positive says: surely positive
            expected |= ratio(X) <= 0
        decisions.append(model.predict(X) > 0)
        np.testing.assert_array_equal(decisions[-1], expected)
        np.testing.assert_equal(
            chosen(model), {"width": ratio.width_, "lam": ratio.lam_, "step": np.nan}
        )
    # A larger prior makes more rows positive, and never fewer.
    assert all((low <= high).all() for low, high in zip(decisions, decisions[1:]))
    assert decisions[0].sum() < decisions[-1].sum()


@pytest.mark.parametrize("method", [*METHODS, *EXTRA_METHODS])
def test_a_method_is_the_protocols_estimator_fitted_by_hand(method):
    for given, model in fit(method).items():
        by_hand = PROTOCOL.estimator(method, PRIOR, given, random_state=child(SEED))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            by_hand.fit_pu(P, U)
        assert by_hand.condition == model.condition
        np.testing.assert_equal(chosen(by_hand), chosen(model))
        np.testing.assert_allclose(
            by_hand.decision_function(X), model.decision_function(X), rtol=1e-3, atol=1e-4
        )


@pytest.mark.parametrize("method", [*METHODS, *EXTRA_METHODS])
@pytest.mark.parametrize(
    ("scaling", "scaler"), [("standard", StandardScaler), ("minmax", MinMaxScaler)]
)
def test_scaled_features_are_those_of_scaled_data(method, scaling, scaler):
    by_both = scaler().fit(np.concatenate([P, U]))
    scaled = scale_features(SAMPLE, scaling)
    for found, given in ((scaled.positives, P), (scaled.unlabeled, U), (scaled.tests[0.3][0], X)):
        np.testing.assert_array_equal(found, by_both.transform(given))
        assert found.dtype == np.float32
    model = fit(method, [0.5], sample=scaled)[0.5]
    assert np.isfinite(model.decision_function(scaled.tests[0.3][0])).all()


def test_a_bad_given_prior_is_refused():
    message = "test_prior must lie strictly between 0 and 1"
    with pytest.raises(ValueError, match=message):
        fit("Sq-Lin", [0.5, 1.0])
    ratio = fit("p/u uLSIF", [1.0])[1.0]
    with pytest.raises(ValueError, match=message):
        ratio.predict(X)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_comes_near_the_bayes_classifier_of_two_gaussians(method):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2500) < 0.4, 1, -1)
    both = rng.normal(1.2 * y[:, None], 1.0, (2500, 2)).astype(np.float32)
    positives = rng.normal(1.2, 1.0, (500, 2)).astype(np.float32)
    sample = Draw(positives, both[:1500], y[:1500], {}, child(0))
    protocol = Protocol(**{**PROTOCOL.as_dict(), "n_centers": 100, "ker_centers": 100})
    model = fit_method(protocol, method, sample, 0.4, [0.4])[0.4]
    test_rows, truth = both[1500:], y[1500:]
    # log p(+1|x)/p(−1|x) is linear: 2μᵀx + log(π/(1 − π)).
    best = np.mean((2 * 1.2 * test_rows.sum(axis=1) + np.log(0.4 / 0.6) > 0) == (truth > 0))
    assert model.score(test_rows, truth) > best - 0.15
