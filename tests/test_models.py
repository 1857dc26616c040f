"""Links score, save, load and move like any Chainer link."""

import numpy as np
import pytest

from pu_shift._chainer import chainer
from pu_shift.models import MLP, GaussianKernelModel, LinearModel
from pu_shift.ratios.kernels import gaussian_kernel

rng = np.random.default_rng(0)
X = rng.normal(size=(6, 3))
CENTERS = rng.normal(size=(4, 3))
NORMAL = chainer.initializers.Normal(1.0, rng=np.random.RandomState(0))


def linear(k=None, dtype=np.float64):
    return LinearModel(3, k, NORMAL, NORMAL, dtype)


def kernel(k=None, dtype=np.float64, width=0.7):
    return GaussianKernelModel(CENTERS, width, k, NORMAL, NORMAL, dtype)


@pytest.mark.parametrize("make", [linear, kernel])
@pytest.mark.parametrize("k", [None, 1, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_features_times_weights(make, k, dtype):
    model = make(k, dtype)
    features = X if make is linear else gaussian_kernel(X, CENTERS, 0.7)
    scores = model(X.astype(dtype))
    assert scores.dtype == dtype
    assert scores.shape == ((6,) if k is None else (6, k))
    expected = features @ model.W.array + model.b.array
    np.testing.assert_allclose(scores.array, expected.reshape(scores.shape), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [linear, kernel])
@pytest.mark.parametrize("k", [None, 3])
def test_saved_and_loaded_model_is_the_same(make, k, tmp_path):
    model = make(k)
    chainer.serializers.save_npz(tmp_path / "model.npz", model)
    other = (
        LinearModel(3, k, dtype=np.float64)
        if make is linear
        else GaussianKernelModel(np.zeros((4, 3)), 9.0, k, dtype=np.float64)
    )
    chainer.serializers.load_npz(tmp_path / "model.npz", other)
    np.testing.assert_array_equal(model(X).array, other(X).array)


def test_gradient_reaches_the_parameters():
    model = kernel(2)
    model.cleargrads()
    chainer.functions.sum(model(X)).backward()
    np.testing.assert_allclose(model.b.grad, [6, 6])
    features = gaussian_kernel(X, CENTERS, 0.7)
    np.testing.assert_allclose(model.W.grad, np.repeat(features.sum(axis=0)[:, None], 2, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LinearModel(0), "n_features must be an integer >= 1"),
        (lambda: LinearModel(3, 0), "n_candidates must be an integer >= 1"),
        (lambda: LinearModel(3, dtype=np.int32), "dtype must be float32 or float64"),
        (lambda: GaussianKernelModel(CENTERS, -1.0), "width must be a finite number > 0"),
        (lambda: GaussianKernelModel(np.zeros((0, 2)), 1.0), "centers must have at least 1 row"),
        (lambda: linear()(X[:, :2]), r"x must be rows of 3 columns, got shape \(6, 2\)"),
        (lambda: kernel()(X[:, :2]), r"x must be rows of 3 columns, got shape \(6, 2\)"),
        (lambda: kernel()(X * np.nan), "X must not contain NaN"),
        (lambda: kernel()(X[0]), "x must be rows of 3 columns"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=rf"\A{message}[^\n]*\Z"):
        call()


def test_the_initial_weights_of_a_network_come_from_the_seed_alone():
    same, again, other = (
        MLP(3, 5, 2, random_state=1),
        MLP(3, 5, 2, random_state=1),
        MLP(3, 5, 2, random_state=2),
    )
    np.testing.assert_array_equal(same.linear1.W.array, again.linear1.W.array)
    assert (same.linear1.W.array != other.linear1.W.array).any()
