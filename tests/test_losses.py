"""Losses: closed forms, linear-odd condition, derivatives, links, stability."""

import math

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pu_shift.losses import LOSSES, Loss, get_loss, surrogates

margins = st.floats(-1e4, 1e4)

REFERENCE = {
    "squared": lambda z: (1 - z) ** 2 / 4,
    "double_hinge": lambda z: max(-z, max(0.0, (1 - z) / 2)),
    "logistic": lambda z: math.log1p(math.exp(-z)) if z > -30 else -z + math.log1p(math.exp(z)),
    "modified_huber": lambda z: max(0.0, 1 - z) ** 2 / 4 if z >= -1 else -z,
    "zero_one": lambda z: 0.5 - 0.5 * ((z > 0) - (z < 0)),
}


@pytest.mark.parametrize("name", LOSSES)
@given(z=margins)
def test_value_is_the_formula(name, z):
    assert float(get_loss(name).value(z)) == pytest.approx(
        REFERENCE[name](z), rel=1e-12, abs=1e-300
    )


@pytest.mark.parametrize("name", surrogates())
@given(z=margins)
def test_linear_odd(name, z):
    loss = get_loss(name)
    assert loss.linear_odd
    assert float(loss.value(z) - loss.value(-z)) == pytest.approx(-z, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", LOSSES)
@given(z=st.floats(-50, 50))
def test_a_curvature_means_that_the_derivative_is_affine(name, z):
    loss = get_loss(name)
    if loss.curvature is None:
        second = np.diff(loss.derivative(np.linspace(-5.0, 5.0, 101)), 2)
        assert np.abs(second).max() > 1e-6 or not loss.trainable
    else:
        assert float(loss.derivative(z)) == pytest.approx(loss.curvature * z - 0.5)


@pytest.mark.parametrize("name", surrogates())
@given(z=st.floats(-50, 50))
def test_the_derivative_matches_differences_off_the_kinks(name, z):
    loss, step = get_loss(name), 1e-5
    if min(abs(z - 1), abs(z + 1)) < 1e-3:
        return
    slope = (loss.value(z + step) - loss.value(z - step)) / (2 * step)
    assert float(loss.derivative(z)) == pytest.approx(float(slope), abs=1e-5)


@pytest.mark.parametrize("name", surrogates())
@given(a=margins, b=margins, t=st.floats(0, 1))
def test_convex(name, a, b, t):
    value = get_loss(name).value
    chord = t * float(value(a)) + (1 - t) * float(value(b))
    assert float(value(t * a + (1 - t) * b)) <= chord + 1e-9 * (1 + abs(chord))


@pytest.mark.parametrize("name", surrogates())
def test_classification_calibrated(name):
    """Differentiable at 0 with a negative slope (Bartlett et al., 2006)."""
    assert float(get_loss(name).derivative(0.0)) == -0.5


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (2, 1, 3), (0, 4)])
def test_shape_and_dtype_are_kept(name, dtype, shape):
    z = np.linspace(-2, 2, math.prod(shape)).astype(dtype).reshape(shape)
    loss = get_loss(name)
    for method in (loss.value, loss.derivative, loss.posterior):
        result = np.asarray(method(z))
        assert result.shape == shape
        assert result.dtype == dtype


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stable_for_large_margins(name, dtype):
    z = np.array([-1e4, -100.0, -1.0, 0.0, 1.0, 100.0, 1e4], dtype=dtype)
    loss = get_loss(name)
    with np.errstate(all="raise", under="ignore"):
        for method in (loss.value, loss.derivative, loss.posterior):
            assert np.isfinite(method(z)).all()
    np.testing.assert_allclose(
        loss.value(z),
        [REFERENCE[name](float(v)) for v in z],
        rtol=1e-5 if dtype == np.float32 else 1e-12,
        atol=np.finfo(dtype).tiny,
    )


@pytest.mark.parametrize("name", LOSSES)
def test_any_array_module(name):
    z = np.array([-3.0, -0.5, 0.5, 3.0])
    loss = get_loss(name)
    for method in ("value", "derivative", "posterior"):
        strict = getattr(loss, method)(array_api_strict.asarray(z))
        assert array_api_strict.isdtype(strict.dtype, "real floating")
        np.testing.assert_array_equal(np.asarray(strict), getattr(loss, method)(z))


def test_bad_input():
    with pytest.raises(ValueError, match="loss must be one of 'squared'.*got 'hinge'"):
        get_loss("hinge")
    with pytest.raises(ValueError, match="z must be a floating array, got dtype int"):
        get_loss("squared").value(np.arange(3))


class Savage(Loss):
    """A loss that is neither convex nor linear-odd; its posterior is 1/(1 + exp(−2g))."""

    name = "savage"

    def _value(self, xp, z):
        return 1.0 / (1.0 + xp.exp(2.0 * z)) ** 2

    def _derivative(self, xp, z):
        return -4.0 * xp.exp(2.0 * z) / (1.0 + xp.exp(2.0 * z)) ** 3


PROPER = [LOSSES[name] for name in ("squared", "logistic", "modified_huber")] + [Savage()]


@pytest.mark.parametrize("loss", PROPER, ids=repr)
@given(q=st.floats(0.001, 0.999))
def test_the_margin_of_a_posterior_has_the_least_risk_and_gives_the_posterior(loss, q):
    assert loss.is_proper
    g = loss.margin(q)
    assert float(loss.posterior(g)) == pytest.approx(q, abs=1e-9)
    others = np.linspace(-8.0, 8.0, 801)

    def risk(score):
        return q * loss.value(score) + (1.0 - q) * loss.value(-score)

    assert float(risk(g)) <= risk(others).min() + 1e-12


@pytest.mark.parametrize("name", ["double_hinge", "zero_one"])
def test_a_loss_that_determines_only_the_sign_is_scaled_by_a_slope(name):
    loss, g = get_loss(name), np.array([-2.0, 0.0, 0.5])
    assert not loss.is_proper
    np.testing.assert_allclose(loss.posterior(g, slope=3.0), 1.0 / (1.0 + np.exp(-3.0 * g)))
    np.testing.assert_array_equal(loss.margin([0.2, 0.5, 0.7]), [-1.0, 0.0, 1.0])
