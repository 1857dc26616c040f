"""Every theorem on priors and costs, as a property."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pu_shift import priors
from pu_shift.priors import Condition

unit = st.floats(0.001, 0.999)
densities = st.floats(1e-3, 1e3)
NEAR = {"rel": 1e-9, "abs": 1e-12}


def sign_is_clear(*values):
    """Signs are compared only where rounding cannot decide them."""
    return all(abs(value) > 1e-9 for value in values)


def posterior(prior, p_p, p_n):
    return prior * p_p / (prior * p_p + (1 - prior) * p_n)


@given(unit, unit, densities, densities)
def test_theorem_1_shift_is_a_cost(prior, test_prior, p_p, p_n):
    alpha = priors.alpha_from_test_prior(prior, test_prior)
    assert alpha == pytest.approx(
        (prior - prior * test_prior) / (test_prior + prior - 2 * prior * test_prior), **NEAR
    )
    by_cost = posterior(prior, p_p, p_n) - alpha
    by_shift = posterior(test_prior, p_p, p_n) - 0.5
    assume(sign_is_clear(by_cost, by_shift))
    assert math.copysign(1, by_cost) == math.copysign(1, by_shift)


@given(unit, unit)
def test_corollary_2_inverts_theorem_1(prior, other):
    test_prior = priors.test_prior_from_alpha(prior, other)
    assert test_prior == pytest.approx(
        (prior - other * prior) / (prior + other - 2 * other * prior), **NEAR
    )
    assert priors.alpha_from_test_prior(prior, test_prior) == pytest.approx(other, **NEAR)
    alpha = priors.alpha_from_test_prior(prior, other)
    assert priors.test_prior_from_alpha(prior, alpha) == pytest.approx(other, **NEAR)


@given(unit, unit, unit, densities, densities)
def test_theorem_3_and_corollary_4_unify_shift_and_cost(prior, test_prior, alpha, p_p, p_n):
    condition = Condition(prior, test_prior, alpha)
    direct = posterior(test_prior, p_p, p_n) - alpha
    as_shift = posterior(condition.prior_unif, p_p, p_n) - 0.5
    as_cost = posterior(prior, p_p, p_n) - condition.alpha_unif
    assume(sign_is_clear(direct, as_shift, as_cost))
    assert math.copysign(1, direct) == math.copysign(1, as_shift) == math.copysign(1, as_cost)


@given(unit, unit, unit)
def test_printed_formulas_of_theorem_3_and_corollary_4(prior, test_prior, alpha):
    unified = (test_prior - alpha * test_prior) / (test_prior + alpha - 2 * alpha * test_prior)
    assert priors.prior_unif(test_prior, alpha) == pytest.approx(unified, **NEAR)
    assert priors.alpha_unif(prior, test_prior, alpha) == pytest.approx(
        (prior - prior * unified) / (unified + prior - 2 * prior * unified), **NEAR
    )


@pytest.mark.parametrize(
    "numbers",
    [(0.3, 1 - 1e-8, 1e-8), (0.3, 1 - 1e-9, 1e-8), (0.5, 0.5, 1e-17), (0.3, 0.999, 1e-12)],
)
def test_alpha_unif_is_exact_near_the_ends(numbers):
    prior, test_prior, alpha = map(Fraction, numbers)
    false_positive = alpha * prior * (1 - test_prior)
    exact = false_positive / (false_positive + (1 - alpha) * test_prior * (1 - prior))
    assert priors.alpha_unif(*numbers) == pytest.approx(float(exact), rel=1e-15, abs=0)


@given(unit, unit, unit)
def test_special_cases_of_the_unified_quantities(prior, test_prior, alpha):
    assert Condition(prior, test_prior).prior_unif == pytest.approx(test_prior, **NEAR)
    assert Condition(prior, alpha=alpha).alpha_unif == pytest.approx(alpha, **NEAR)
    assert Condition(prior).alpha_unif == pytest.approx(0.5, **NEAR)


@given(unit, unit, densities, densities)
def test_posterior_moves_with_the_prior(prior, test_prior, p_p, p_n):
    moved = priors.shift_posterior(posterior(prior, p_p, p_n), prior, test_prior)
    assert moved == pytest.approx(posterior(test_prior, p_p, p_n), **NEAR)


@given(unit, unit, densities, densities)
def test_theorem_10_test_ratio_is_affine_in_the_training_ratio(prior, test_prior, p_p, p_n):
    p_u = prior * p_p + (1 - prior) * p_n
    p_t = test_prior * p_p + (1 - test_prior) * p_n
    assert priors.test_ratio(p_u / p_p, prior, test_prior) == pytest.approx(p_t / p_p, rel=1e-6)


@given(unit, densities, densities)
def test_proposition_9_bounds_hold(prior, p_p, p_n):
    p_u = prior * p_p + (1 - prior) * p_n
    for direction, ratio in (("p/u", p_p / p_u), ("u/p", p_u / p_p)):
        low, high = priors.ratio_bounds(prior, direction)
        assert low <= ratio <= high * (1 + 1e-12)


@given(unit, st.floats(0.001, 0.4), st.integers(0, 10**6))
def test_estimates_are_moved_within_the_bounds_in_their_order(prior, margin, seed):
    estimates = np.unique(np.random.default_rng(seed).gamma(1.0, 2.0, 50).round(4) + 0.01)
    inside = priors.within_bounds(estimates, prior, margin=margin)
    assert (np.diff(inside) > 0.0).all()
    assert inside.max() < priors.ratio_bounds(prior)[1]
    low = prior * estimates <= 1.0 - margin
    np.testing.assert_array_equal(inside[low], estimates[low])
    inverse = priors.within_bounds(1.0 / estimates, prior, "u/p", margin)
    np.testing.assert_allclose(inverse, 1.0 / inside)
    np.testing.assert_array_equal(priors.within_bounds(estimates, prior, margin=0.0), estimates)


def test_proposition_9_bounds_are_tight():
    p_p, p_n, prior = 1.0, 1e-12, 0.3
    p_u = prior * p_p + (1 - prior) * p_n
    assert p_p / p_u == pytest.approx(priors.ratio_bounds(prior, "p/u")[1])
    assert p_u / p_p == pytest.approx(priors.ratio_bounds(prior, "u/p")[0])


@given(unit, unit, unit)
def test_convexity_is_alpha_unif_at_most_a_half(prior, test_prior, alpha):
    condition = Condition(prior, test_prior, alpha)
    assume(abs(condition.alpha_unif - 0.5) > 1e-9)
    assert condition.is_convex == (condition.alpha_unif <= 0.5)
    assert condition.is_convex == (prior <= condition.prior_unif)


@given(unit, unit)
def test_convexity_is_exact_on_the_boundary(prior, other):
    assert Condition(prior).is_convex
    assert Condition(prior, prior).is_convex
    assert Condition(prior, max(prior, other)).is_convex
    assert Condition(prior, alpha=min(other, 0.5)).is_convex
    if other > 0.51:
        assert not Condition(prior, alpha=other).is_convex
    if other < prior - 0.01:
        assert not Condition(prior, other).is_convex


@given(unit, unit, unit, densities, densities)
def test_equations_12_and_13_agree(prior, test_prior, alpha, p_p, p_n):
    condition = Condition(prior, test_prior, alpha)
    p_u = prior * p_p + (1 - prior) * p_n
    scores = [
        condition.classify_ratio(p_p / p_u, "p/u"),
        condition.classify_ratio(p_u / p_p, "u/p"),
        p_p / p_u - condition.ratio_threshold("p/u"),
        condition.ratio_threshold("u/p") - p_u / p_p,
    ]
    assume(sign_is_clear(*scores))
    assert len({math.copysign(1, score) for score in scores}) == 1


def test_bayes_decisions_agree_across_all_formulations_on_a_grid():
    grid = np.linspace(0.05, 0.95, 10)
    x = np.linspace(-4, 4, 81)
    p_p, p_n = np.exp(-0.5 * (x - 1) ** 2), np.exp(-0.5 * (x + 1) ** 2)
    decided = 0
    for prior in grid:
        for test_prior in grid:
            for alpha in grid:
                condition = Condition(prior, test_prior, alpha)
                p_u = prior * p_p + (1 - prior) * p_n
                scores = np.stack(
                    [
                        posterior(test_prior, p_p, p_n) - alpha,
                        posterior(condition.prior_unif, p_p, p_n) - 0.5,
                        condition.classify_ratio(p_p / p_u, "p/u"),
                        condition.classify_ratio(p_u / p_p, "u/p"),
                    ]
                )
                clear = (np.abs(scores) > 1e-9).all(axis=0)
                decided += clear.sum()
                signs = np.sign(scores[:, clear])
                assert (signs == signs[0]).all()
    assert decided > 0.99 * 1000 * x.size


@pytest.mark.parametrize("value", [0, 1.1, math.nan, "x"])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("prior", lambda v: Condition(v)),
        ("alpha", lambda v: Condition(0.5, alpha=v)),
        ("prior", lambda v: priors.alpha_from_test_prior(v, 0.5)),
        ("test_prior", lambda v: priors.alpha_from_test_prior(0.5, v)),
        ("prior", lambda v: priors.test_prior_from_alpha(v, 0.5)),
        ("alpha", lambda v: priors.test_prior_from_alpha(0.5, v)),
        ("test_prior", lambda v: priors.prior_unif(v)),
        ("alpha", lambda v: priors.prior_unif(0.5, v)),
        ("prior", lambda v: priors.shift_posterior(0.5, v, 0.5)),
        ("test_prior", lambda v: priors.shift_posterior(0.5, 0.5, v)),
        ("prior", lambda v: priors.test_ratio(1.0, v, 0.5)),
        ("test_prior", lambda v: priors.test_ratio(1.0, 0.5, v)),
        ("prior", lambda v: priors.ratio_bounds(v)),
    ],
)
def test_priors_and_costs_lie_in_the_open_interval(name, call, value):
    with pytest.raises(ValueError, match=rf"\A{name} must [^\n]*\Z"):
        call(value)


@pytest.mark.parametrize("method", ["ratio_threshold", "classify_ratio"])
def test_unknown_direction(method):
    args = (1.0, "n/u") if method == "classify_ratio" else ("n/u",)
    with pytest.raises(ValueError, match="direction must be one of 'p/u', 'u/p', got 'n/u'"):
        getattr(Condition(0.3), method)(*args)
    with pytest.raises(ValueError, match="direction must be one of"):
        priors.ratio_bounds(0.3, "n/u")


@given(unit, unit, st.floats(0.01, 1e4), st.floats(0.01, 1e4))
def test_costs_in_money_are_the_ratio_of_penalties(
    prior, test_prior, false_positive, false_negative
):
    costs = {"false_positive": false_positive, "false_negative": false_negative}
    condition = Condition.from_costs(prior, test_prior, **costs)
    assert condition.alpha / (1.0 - condition.alpha) == pytest.approx(
        false_positive / false_negative, rel=1e-6
    )
    larger = {name: 7.0 * value for name, value in costs.items()}
    assert Condition.from_costs(prior, test_prior, **larger).alpha == pytest.approx(condition.alpha)
    q = np.linspace(0.0, 1.0, 51)
    cost = condition.expected_cost(q, **costs)
    # No other threshold is cheaper, by brute force.
    for threshold in (-1.0, *q):
        other = np.where(q > threshold, false_positive * (1.0 - q), false_negative * q)
        assert cost <= 1000.0 * other.mean() * (1.0 + 1e-9)
    assert condition.expected_cost(q, **larger, cases=10) == pytest.approx(0.07 * cost)


def test_the_expected_cost_is_what_decisions_cost():
    rng = np.random.default_rng(0)
    q = rng.random(200_000)
    positive = rng.random(len(q)) < q
    costs = {"false_positive": 5.0, "false_negative": 200.0}
    condition = Condition.from_costs(0.3, 0.5, **costs)
    flagged = q > condition.alpha
    paid = 5.0 * (flagged & ~positive).mean() + 200.0 * (~flagged & positive).mean()
    assert condition.expected_cost(q, **costs) == pytest.approx(1000.0 * paid, rel=0.02)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"false_positive": 0, "false_negative": 1}, "false_positive must be a finite number > 0"),
        ({"false_positive": 1, "false_negative": "x"}, "false_negative must be a number"),
    ],
)
def test_bad_costs_are_named(costs, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Condition.from_costs(0.3, **costs)
    with pytest.raises(ValueError, match=f"^{message}"):
        Condition(0.3).expected_cost([0.5], **costs)
