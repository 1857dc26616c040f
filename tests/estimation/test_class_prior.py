import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import binom, norm

from pu_shift import DensityRatioClassifier
from pu_shift._seeds import child
from pu_shift.estimation.class_prior import (
    BBE_DELTA,
    BBE_GAMMA,
    DISTANCES,
    N_BINS,
    PRIOR_METHODS,
    PRIORS,
    SPREADS,
    PriorEstimate,
    PriorWarning,
    _ratio_bound,
    best_bin_prior,
    estimate_prior,
    prior_bound,
    roc_posterior,
    warn_of_prior,
)
from tests.mixtures import pu_samples


@pytest.mark.parametrize("method", PRIOR_METHODS)
@pytest.mark.parametrize("prior", [0.2, 0.8])
def test_known_mixtures_are_found(method, prior):
    X_p, X_u = pu_samples(400, 1200, prior, gap=4.0)
    estimate = estimate_prior(X_p, X_u, method)
    assert estimate.prior == pytest.approx(prior, abs=0.05)
    assert estimate.low <= prior <= estimate.high
    assert estimate.low <= estimate.prior <= estimate.high
    assert estimate.method == method


def test_auto_is_the_mean_of_its_parts_and_a_seed_repeats_it():
    X_p, X_u = pu_samples(100, 300, 0.4)
    auto, best_bin, roc, again = (
        estimate_prior(X_p, X_u, method, random_state=3)
        for method in ("auto", "bbe", "roc", "auto")
    )
    assert auto.prior == pytest.approx(0.5 * (best_bin.prior + roc.prior), abs=1e-12)
    assert auto == again
    assert auto != estimate_prior(X_p, X_u, random_state=4)


def test_the_roc_curve_takes_overlap_into_account():
    # Scores of equal normal classes: the ratio falls to π only beyond the last rows.
    rng = np.random.default_rng(0)
    errors = []
    for prior in np.repeat([0.1, 0.2, 0.3], 10):
        positive = rng.random(2000) < prior
        scores_p, scores_u = rng.normal(1.5, 1.0, 500), rng.normal(1.5 * positive, 1.0)
        roc = roc_posterior(scores_p, scores_u) @ PRIORS
        errors.append([roc - prior, best_bin_prior(scores_p, scores_u) - prior])
    roc, best_bin = np.mean(np.abs(errors), axis=0)
    assert roc < 0.7 * best_bin


def test_intervals_hold_made_up_truths_as_often_as_they_say():
    rng = np.random.default_rng(1)
    held = []
    for _ in range(14):
        prior, gap = rng.uniform(0.05, 0.95), rng.uniform(1.0, 4.0)
        X_p, X_u = pu_samples(100, 200, prior, int(rng.integers(10**6)), gap, d=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PriorWarning)
            estimate = estimate_prior(X_p, X_u, level=0.95)
        held.append([estimate.low <= prior <= estimate.high, prior <= estimate.bound])
    # 0.83 is two standard errors below 0.95.
    assert np.mean(held, axis=0).min() >= 0.83


def test_a_higher_level_gives_a_wider_interval_and_a_higher_bound():
    X_p, X_u = pu_samples(100, 300, 0.4)
    one, two = (estimate_prior(X_p, X_u, level=level) for level in (0.5, 0.99))
    assert two.low < one.low
    assert one.high < two.high
    assert one.bound < two.bound
    assert one.prior == two.prior


def test_the_bound_holds_without_irreducibility():
    # A share of the negatives are distributed like positives: π is not identified.
    rng, largest = np.random.default_rng(2), 0.3 + 0.7 * 0.5
    bounds = []
    for trial in range(10):
        like_positive = rng.random(400) < largest
        X_p, X_u = rng.normal(3.0, 1.0, (200, 1)), rng.normal(3.0 * like_positive, 1.0)[:, None]
        bounds.append(prior_bound(X_p, X_u, 0.9, child(trial)))
    # It bounds the largest π that the rows allow: tightly, and at its level.
    assert np.mean(np.array(bounds) >= largest) >= 0.8
    assert np.mean(bounds) < largest + 0.2


def test_the_bound_of_the_ratio_is_that_of_exact_binomial_tests():
    scores_p, scores_u = np.arange(20.0), np.arange(50.0) - 40.0
    (bound,) = _ratio_bound(scores_p, scores_u, np.array([5.0]), 0.9)
    # 15 of 20 and 5 of 50 lie above: the shares at which these counts have tails of 5 %.
    low = brentq(lambda q: binom.sf(14, 20, q) - 0.05, 0.0, 1.0)
    high = brentq(lambda q: binom.cdf(5, 50, q) - 0.05, 0.0, 1.0)
    assert bound == pytest.approx(high / low)
    np.testing.assert_array_equal(
        _ratio_bound(scores_p, scores_u, np.array([99.0, -99.0]), 0.9), [1.0, 1.0]
    )


@given(st.integers(2, 30), st.integers(2, 30), st.integers(0, 10**6))
def test_the_best_bin_agrees_with_a_search_over_all_thresholds(n_p, n_u, seed):
    rng = np.random.default_rng(seed)
    scores_p, scores_u = rng.integers(0, 9, n_p), rng.integers(0, 9, n_u)
    noise = sum(np.sqrt(np.log(4 / BBE_DELTA) / (2 * n)) for n in (n_p, n_u))
    candidates = []
    for threshold in sorted(set(scores_p)):
        q_p, q_u = np.mean(scores_p >= threshold), np.mean(scores_u >= threshold)
        candidates.append(((q_u + (1 + BBE_GAMMA) * noise) / q_p, min(1.0, q_u / q_p)))
    best = min(bound for bound, _ in candidates)
    found = best_bin_prior(scores_p, scores_u)
    assert any(found == pytest.approx(value) for bound, value in candidates if bound <= best + 1e-9)


def test_the_roc_posterior_agrees_with_brute_force():
    rng = np.random.default_rng(0)
    scores_p, scores_u = rng.normal(1.0, 1.0, 40), rng.normal(0.3, 1.2, 60)
    above = np.array([np.mean(scores_p > s) + 0.5 * np.mean(scores_p == s) for s in scores_u])
    counts = np.bincount(np.minimum((above * N_BINS).astype(int), N_BINS - 1), minlength=N_BINS)
    weight = 1.5 / (1 / 40 + 1 / 60) / 60
    expected = np.zeros(len(PRIORS))
    edges = ndtri(np.linspace(0.0, 1.0, N_BINS + 1))
    for a in DISTANCES:
        for b, share in SPREADS.items():
            # q_n between two edges is the probability of a normal variable.
            shares = np.diff(norm.cdf(edges, a / b, 1 / b))
            for place, prior in enumerate(PRIORS):
                mixed = prior / N_BINS + (1 - prior) * shares
                expected[place] += share * np.exp(weight * counts @ np.log(mixed * N_BINS))
    np.testing.assert_allclose(
        roc_posterior(scores_p, scores_u), expected / expected.sum(), rtol=1e-6
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_equal_rows_do_not_tell_p_from_u_by_their_order(seed):
    # No negative takes the value 2, so that π can be found.
    rng = np.random.default_rng(seed)
    X_p = rng.choice(3, 500, p=[0.1, 0.2, 0.7])[:, None]
    positive = rng.random(2000) < 0.7
    X_u = np.where(positive, rng.choice(3, 2000, p=[0.1, 0.2, 0.7]), rng.choice(2, 2000))[:, None]
    assert estimate_prior(X_p, X_u, random_state=seed).prior == pytest.approx(0.7, abs=0.1)


@pytest.mark.parametrize(
    ("X_u", "message"),
    [
        (np.random.default_rng(1).normal(size=(300, 2)), "X_u cannot be told from X_p"),
        (np.random.default_rng(1).normal(9.0, 1.0, (300, 2)), "X_u holds hardly any row like"),
    ],
)
def test_samples_of_one_class_and_without_overlap_are_told(X_u, message):
    X_p = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.warns(PriorWarning, match=f"^{message}"):
        estimate = estimate_prior(X_p, X_u)
    assert (estimate.prior > 0.8) == ("told" in message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "en"}, "method must be one of 'auto', 'bbe', 'roc', got 'en'"),
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


def warned_of(prior, X_p, X_u):
    """Whether a fit with this prior says that the rows rule it out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DensityRatioClassifier(prior, estimator="linear", n_folds=3).fit_pu(X_p, X_u)
    return any("more than P and U allow" in str(one.message) for one in caught)


def test_a_right_prior_is_not_warned_of():
    draws = [(prior, gap, seed) for prior, gap in ((0.3, 4.0), (0.5, 6.0)) for seed in range(20)]
    warned = [
        warned_of(prior, *pu_samples(100, 400, prior, seed, gap)) for prior, gap, seed in draws
    ]
    # Of 40 draws at a rate of 1 in 100, more than 3 are warned of in 1 of 1,000 cases.
    assert sum(warned) <= 3


def test_a_prior_beyond_the_bound_and_swapped_samples_are_warned_of():
    X_p, X_u = pu_samples(300, 900, 0.3, gap=4.0)
    assert warned_of(0.9, X_p, X_u)
    assert warned_of(0.3, X_u, X_p)
    with pytest.warns(
        PriorWarning, match="^prior 0.9 is more than P and U allow, .* at most 0.[34]"
    ):
        warn_of_prior(0.9, X_p[:, 0], X_u[:, 0])


@pytest.mark.parametrize("options", [{"estimator": "ulsif", "lams": 0.1}, {"estimator": "kliep"}])
@pytest.mark.parametrize("direction", ["p/u", "u/p"])
def test_a_ratio_alone_warns_of_such_priors_too(options, direction):
    X_p, X_u = pu_samples(200, 600, 0.3, gap=4.0)
    options = {"direction": direction, "widths": 1.0, "n_centers": 30, **options}
    classifier = DensityRatioClassifier(0.3, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorWarning)
        classifier.fit_pu(X_p, X_u)
    with pytest.warns(PriorWarning, match="^prior 0.9 is more than P and U allow"):
        classifier.set_params(prior=0.9).fit_pu(X_p, X_u)


def test_a_wide_interval_is_said_in_the_result():
    shared = {"bound": 0.3, "level": 0.95, "method": "auto", "parts": {}}
    rough = PriorEstimate(0.05, 0.01, 0.12, **shared)
    sharp = PriorEstimate(0.3, 0.25, 0.36, **shared)
    assert rough.is_rough
    assert "the interval is wide compared with the estimate" in str(rough)
    assert not sharp.is_rough
    assert str(sharp) == (
        "prior 0.300, 95% interval 0.250 to 0.360 (auto); 95% upper bound under no assumption 0.300"
    )
