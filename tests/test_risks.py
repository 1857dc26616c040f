"""Fused risks: plain formulas, gradients, unbiasedness, equivalences, convexity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pu_shift import risks
from pu_shift._chainer import chainer
from pu_shift.losses import LOSSES, get_loss, surrogates
from pu_shift.priors import Condition
from tests.gradients import import_gradient_check

gradient_check = import_gradient_check()
CONDITION = Condition(0.3, 0.6, 0.35)
CONDITIONS = [CONDITION, Condition(0.7, 0.2, 0.5), Condition(0.5, 0.5, 0.9)]
UNBIASED = {
    "pu": risks.pu_risk,
    "pu-shift": risks.pu_shift_risk,
    "pu-asym": risks.pu_asym_risk,
    "pu-shift-asym": risks.pu_shift_asym_risk,
}
unit = st.floats(0.01, 0.99)


def scores(n, k=None, seed=0, dtype=np.float64):
    """Scores kept off the kinks at ±1."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-3, 3, n if k is None else (n, k))
    z = np.where(np.abs(np.abs(z) - 1) < 0.1, z + 0.25, z)
    return z.astype(dtype)


def plain(kind, g_p, g_u, c, loss):
    """The estimators as the paper prints them."""
    value = get_loss(loss).value
    p, p_minus, u_minus = value(g_p), value(-g_p), value(-g_u)
    if kind == "pu":
        return c.prior * (p - p_minus).mean(axis=0) + u_minus.mean(axis=0)
    if kind == "pu-shift":
        factor = (c.prior - c.prior * c.test_prior) / (1 - c.prior)
        rest = (1 - c.test_prior) / (1 - c.prior) * u_minus.mean(axis=0)
        return (c.test_prior * p - factor * p_minus).mean(axis=0) + rest
    if kind == "pu-asym":
        mixed = (1 - c.alpha) * p - c.alpha * p_minus
        return c.prior * mixed.mean(axis=0) + c.alpha * u_minus.mean(axis=0)
    negative = (u_minus.mean(axis=0) - c.prior * p_minus.mean(axis=0)) / (1 - c.prior)
    return c.test_prior * (1 - c.alpha) * p.mean(axis=0) + (1 - c.test_prior) * c.alpha * negative


@pytest.mark.parametrize("kind", risks.KINDS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("k", [None, 1, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fused_equals_plain(kind, loss, k, dtype):
    g_p, g_u = scores(7, k, 0, dtype), scores(11, k, 1, dtype)
    risk = UNBIASED[kind](g_p, g_u, CONDITION, loss)
    assert risk.dtype == dtype
    assert risk.shape == (() if k is None else (k,))
    expected = plain(kind, g_p.astype(float), g_u.astype(float), CONDITION, loss)
    np.testing.assert_allclose(risk.array, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
    np.testing.assert_array_equal(risk.array, risks.evaluate_risk(g_p, g_u, CONDITION, loss, kind))


@pytest.mark.parametrize("kind", risks.KINDS)
def test_each_column_may_have_its_own_condition(kind):
    g_p, g_u = scores(7, 3, 0), scores(11, 3, 1)
    stacked = UNBIASED[kind](g_p, g_u, CONDITIONS).array
    for k, condition in enumerate(CONDITIONS):
        alone = UNBIASED[kind](g_p[:, k], g_u[:, k], condition).array
        assert stacked[k] == pytest.approx(float(alone), rel=1e-12)


@pytest.mark.parametrize("kind", risks.KINDS)
@pytest.mark.parametrize("loss", surrogates())
@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradient(kind, loss, stacked, dtype):
    k = 3 if stacked else None
    g_p, g_u = scores(5, k, 2, dtype), scores(6, k, 3, dtype)
    conditions = CONDITIONS if stacked else CONDITION
    weights = np.array([1.0, 0.0, 2.0, 1.0, 0.5]) if stacked else None
    out = np.random.default_rng(0).uniform(0.5, 1.5, k or ()).astype(dtype)
    tolerance = {"atol": 1e-2, "rtol": 1e-2} if dtype == np.float32 else {}
    gradient_check.check_backward(
        lambda a, b: UNBIASED[kind](a, b, conditions, loss, weights),
        (g_p, g_u),
        np.asarray(out),
        dtype=np.float64,
        eps=1e-3,
        **tolerance,
    )


def test_zero_weight_leaves_rows_out():
    g_p, g_u = scores(8, 2, 0), scores(9, 2, 1)
    weights_p = np.ones((8, 2))
    weights_p[:3, 0] = 0
    weights_u = np.ones((9, 2))
    weights_u[5:, 1] = 0
    weighted = risks.pu_shift_risk(g_p, g_u, CONDITION, "logistic", weights_p, weights_u).array
    first = risks.pu_shift_risk(g_p[3:, 0], g_u[:, 0], CONDITION, "logistic").array
    second = risks.pu_shift_risk(g_p[:, 1], g_u[:5, 1], CONDITION, "logistic").array
    np.testing.assert_allclose(weighted, [first, second], rtol=1e-12)


@pytest.mark.parametrize("kind", risks.KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_unbiased_by_monte_carlo(kind, loss):
    """The mean over many samples is the risk with known class conditionals."""
    rng = np.random.default_rng(0)
    c, n, trials = Condition(0.4, 0.7, 0.3), 20, 20000
    p = rng.normal(0.8, 1, (n, trials))
    from_p = rng.random((n, trials)) < c.prior
    u = np.where(from_p, rng.normal(0.8, 1, (n, trials)), rng.normal(-0.6, 1, (n, trials)))
    estimates = risks.evaluate_risk(p, u, c, loss, kind)
    big_p, big_n = rng.normal(0.8, 1, 2_000_000), rng.normal(-0.6, 1, 2_000_000)
    value = get_loss(loss).value
    a, b = {
        "pu": (c.prior, 1 - c.prior),
        "pu-shift": (c.test_prior, 1 - c.test_prior),
        "pu-asym": (c.prior * (1 - c.alpha), (1 - c.prior) * c.alpha),
        "pu-shift-asym": (c.test_prior * (1 - c.alpha), (1 - c.test_prior) * c.alpha),
    }[kind]
    truth = a * value(big_p).mean() + b * value(-big_n).mean()
    error = estimates.std(ddof=1) / trials**0.5
    assert abs(estimates.mean() - truth) < 4 * error + 2e-3 * abs(truth)
    # The estimate would differ if the shift and the cost were ignored.
    if kind != "pu":
        wrong = risks.evaluate_risk(p, u, c, loss, "pu").mean()
        assert abs(wrong - truth) > 10 * error


@given(unit, unit, unit)
def test_combined_risk_is_proportional_to_the_unified_ones(prior, test_prior, alpha):
    """Theorem 3: dividing by the total cost gives PU-shift at π_unif."""
    g_p, g_u = scores(7), scores(11, seed=1)
    both = Condition(prior, test_prior, alpha)
    total = test_prior * (1 - alpha) + (1 - test_prior) * alpha
    combined = float(risks.evaluate_risk(g_p, g_u, both)) / total
    as_shift = risks.evaluate_risk(g_p, g_u, Condition(prior, both.prior_unif), kind="pu-shift")
    assert combined == pytest.approx(float(as_shift), rel=1e-6, abs=1e-9)
    as_cost = Condition(prior, alpha=both.alpha_unif)
    cost_total = prior * (1 - as_cost.alpha) + (1 - prior) * as_cost.alpha
    asym = float(risks.evaluate_risk(g_p, g_u, as_cost, kind="pu-asym")) / cost_total
    assert combined == pytest.approx(asym, rel=1e-6, abs=1e-9)


def hessian(condition, X_p, X_u):
    """Hessian of the squared PU-shift-asym risk of a linear model: ℓ″ = ½."""
    prior, a, b = (float(w[0]) for w in risks.risk_weights(condition, "pu-shift-asym"))
    return 0.5 * ((a - b * prior) * X_p.T @ X_p / len(X_p) + b * X_u.T @ X_u / len(X_u))


@given(unit, unit, unit, st.integers(0, 50))
def test_theorems_6_and_8_convexity(prior, test_prior, alpha, seed):
    condition = Condition(prior, test_prior, alpha)
    rng = np.random.default_rng(seed)
    X_p, X_u = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    smallest = np.linalg.eigvalsh(hessian(condition, X_p, X_u)).min()
    if condition.is_convex:
        assert smallest >= -1e-12


@pytest.mark.parametrize("condition", [Condition(0.7, 0.3), Condition(0.5, alpha=0.9)])
def test_convexity_fails_where_the_theorems_say_it_may(condition):
    assert not condition.is_convex
    X_p, X_u = np.array([[3.0, 0.0], [3.0, 0.0]]), np.array([[0.0, 1.0], [0.1, 1.0]])
    assert np.linalg.eigvalsh(hessian(condition, X_p, X_u)).min() < -0.1


# --- the non-negative estimators -------------------------------------------------


def overfitted(seed=0, k=None):
    """Scores for which the estimate of the negative class is below zero."""
    # Unlabelled scores near −1 cost little as negatives, positive ones much.
    return scores(6, k, seed) + 5.0, 0.2 * scores(9, k, seed + 1) - 1.7


@pytest.mark.parametrize("correction", ["max", "ascent"])
@pytest.mark.parametrize("kind", risks.KINDS)
def test_positive_part_changes_nothing_while_it_is_positive(kind, correction):
    g_p, g_u = -np.abs(scores(6)) - 2, np.abs(scores(9, seed=1)) + 2
    a, b = (chainer.Variable(g) for g in (g_p, g_u))
    corrected = risks.nnpu_risk(a, b, CONDITION, kind=kind, correction=correction)
    unbiased = UNBIASED[kind](g_p, g_u, CONDITION)
    assert float(corrected.array) == float(unbiased.array)
    corrected.backward()
    a2, b2 = (chainer.Variable(g) for g in (g_p, g_u))
    UNBIASED[kind](a2, b2, CONDITION).backward()
    np.testing.assert_array_equal(a.grad, a2.grad)
    np.testing.assert_array_equal(b.grad, b2.grad)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_max_returns_and_back_propagates_what_the_paper_prints(loss):
    g_p, g_u = overfitted()
    value = get_loss(loss).value
    assert value(-g_u).mean() < CONDITION.prior * value(-g_p).mean()
    risk = risks.nnpu_shift_risk(g_p, g_u, CONDITION, loss, correction="max")
    assert float(risk.array) == pytest.approx(CONDITION.test_prior * value(g_p).mean())
    gradient_check.check_backward(
        lambda a, b: risks.nnpu_shift_risk(a, b, CONDITION, loss, correction="max"),
        (g_p, g_u),
        np.ones(()),
        dtype=np.float64,
        eps=1e-3,
    )


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_ascent_back_propagates_minus_gamma_times_the_negative_part(gamma):
    g_p, g_u = overfitted(k=3)
    a, b = chainer.Variable(g_p), chainer.Variable(g_u)
    risk = risks.nnpu_shift_risk(a, b, CONDITIONS, "logistic", gamma=gamma)
    chainer.functions.sum(risk).backward()
    loss = get_loss("logistic")
    for k, c in enumerate(CONDITIONS):
        factor = (1 - c.test_prior) / (1 - c.prior)
        # Returned: the positive part alone (β = 0).
        assert risk.array[k] == pytest.approx(c.test_prior * loss.value(g_p[:, k]).mean())
        # Back-propagated: −γ b ∇R_neg.
        np.testing.assert_allclose(
            b.grad[:, k], gamma * factor * loss.derivative(-g_u[:, k]) / 9, rtol=1e-12
        )
        np.testing.assert_allclose(
            a.grad[:, k], -gamma * factor * c.prior * loss.derivative(-g_p[:, k]) / 6, rtol=1e-12
        )


def test_beta_moves_the_point_where_the_correction_starts():
    g_p, g_u = overfitted()
    value = get_loss("logistic").value
    negative = float(value(-g_u).mean() - CONDITION.prior * value(-g_p).mean())
    positive = CONDITION.prior * value(g_p).mean()
    below = risks.nnpu_risk(g_p, g_u, CONDITION, "logistic", beta=-negative * 0.5)
    assert float(below.array) == pytest.approx(positive + negative * 0.5)
    above = risks.nnpu_risk(g_p, g_u, CONDITION, "logistic", beta=-negative * 1.5)
    assert float(above.array) == pytest.approx(positive + negative)


@given(st.integers(0, 100), unit, unit)
def test_non_negative_estimators_are_never_negative(seed, prior, test_prior):
    g_p, g_u = scores(4, seed=seed) * 3, scores(5, seed=seed + 1) * 3
    condition = Condition(prior, test_prior)
    for correction in ("max", "ascent"):
        risk = risks.nnpu_shift_risk(g_p, g_u, condition, correction=correction)
        assert float(risk.array) >= 0
        assert float(risk.array) >= float(risks.pu_shift_risk(g_p, g_u, condition).array) - 1e-12


# --- the criterion of a density ratio --------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("k", [None, 3])
def test_the_criterion_of_a_ratio_is_that_of_ulsif(share, k):
    w_p, w_u = scores(7, k, 0), scores(11, k, 1) + 4.0
    risk = risks.RatioRisk(share)(w_p, w_u)
    expected = 0.5 * (w_u**2).mean(axis=0) - w_p.mean(axis=0)
    np.testing.assert_allclose(risk.array, expected, rtol=1e-12)


@pytest.mark.parametrize("correction", [None, "max"])
@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("lift", [0.0, 4.0])
def test_gradient_of_the_criterion_of_a_ratio(correction, share, lift):
    """With a lift the ratios of P are so large that the correction acts."""
    gradient_check.check_backward(
        risks.RatioRisk(share, correction),
        (scores(5, 3, 2) + lift, scores(6, 3, 3)),
        np.array([0.5, 1.0, 1.5]),
        dtype=np.float64,
        eps=1e-3,
    )


def test_a_corrected_ratio_ascends_the_part_that_cannot_be_negative():
    c, w_p, w_u = 0.3, np.array([5.0, 4.0]), np.array([0.5, 1.0, 0.2])
    part = 0.5 * (w_u**2).mean() - 0.5 * c * (w_p**2).mean()
    assert part < 0
    a, b = chainer.Variable(w_p), chainer.Variable(w_u)
    risk = risks.RatioRisk(c)(a, b)
    risk.backward()
    assert float(risk.array) == pytest.approx((0.5 * c * w_p**2 - w_p).mean())
    np.testing.assert_allclose(a.grad, c * w_p / 2)
    np.testing.assert_allclose(b.grad, -w_u / 3)


@given(st.floats(0.05, 0.95), st.integers(0, 50))
def test_what_is_corrected_is_not_negative_for_known_densities(prior, seed):
    """∫½w²(p_u − c·p_p)dx ≥ 0 for any w where c ≤ π, here on a discrete space."""
    rng = np.random.default_rng(seed)
    p_p, p_n = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    p_u, w = prior * p_p + (1 - prior) * p_n, rng.exponential(2.0, 6)
    for share in (0.5 * prior, prior):
        assert 0.5 * (w**2 * (p_u - share * p_p)).sum() >= -1e-12
    # Beyond π it may be: where only positives are, w = 1 there.
    p_p, p_n = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    p_u = prior * p_p + (1 - prior) * p_n
    assert (p_u - (prior + 0.01) * p_p)[0] < 0


# --- bad input -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores_p": np.zeros(0)}, "scores_p must have at least one row"),
        ({"scores_p": np.zeros(3, dtype=int)}, "scores_p must be a floating"),
        ({"scores_u": np.zeros((3, 2))}, "scores_u must have the columns and dtype"),
        ({"scores_u": np.zeros(3, dtype=np.float32)}, "scores_u must have the columns and dtype"),
        ({"condition": 0.3}, "condition must be a Condition"),
        ({"condition": []}, "condition must not be an empty list"),
        ({"condition": [CONDITION] * 2}, "condition must be one or one per model"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"weights_p": np.zeros(3)}, "weights_p must be non-negative and finite"),
        ({"weights_u": np.array([1.0, np.nan, 1.0])}, "weights_u must be non-negative"),
        ({"weights_u": np.ones(4)}, "weights_u must have shape"),
        ({"beta": -1.0}, "beta must be a finite number >= 0"),
        ({"gamma": np.nan}, "gamma must be a number"),
        ({"correction": "abs"}, "correction must be one of"),
        ({"kind": "pn"}, "kind must be one of"),
    ],
)
def test_bad_input(change, message):
    arguments = {"scores_p": np.zeros(3), "scores_u": np.zeros(3), "condition": CONDITION, **change}
    with pytest.raises(ValueError, match=rf"\A[^\n]*{message}[^\n]*\Z"):
        risks.nnpu_risk(**arguments)
