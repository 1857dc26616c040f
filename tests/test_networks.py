import numpy as np
import pytest

from pu_shift.networks import MLP, score_rows, train_network
from pu_shift.priors import Condition
from tests.mixtures import pu_samples

X_P, X_U = (X.astype(np.float32) for X in pu_samples(100, 400, 0.3, d=3))


def test_the_initial_weights_come_from_the_seed_alone():
    same, again, other = MLP(3, 5, 2, seed=1), MLP(3, 5, 2, seed=1), MLP(3, 5, 2, seed=2)
    np.testing.assert_array_equal(same.linear1.W.array, again.linear1.W.array)
    assert (same.linear1.W.array != other.linear1.W.array).any()


def test_the_default_is_a_six_layer_network():
    sizes = [link.W.shape for link in MLP(784).children() if link.name.startswith("linear")]
    assert sorted(sizes) == sorted([(300, 784), (300, 300), (300, 300), (300, 300), (1, 300)])


def test_scores_do_not_depend_on_the_other_rows():
    model = MLP(3, 5, 2)
    train_network(model, X_P, X_U, Condition(0.3, 0.5), n_steps=20, n_batches=4)
    together = score_rows(model, X_U)
    np.testing.assert_allclose(score_rows(model, X_U[7:8]), together[7:8], rtol=1e-5)


def test_the_correction_keeps_a_large_network_from_a_negative_risk():
    condition = Condition(0.3, 0.5)
    options = {"n_steps": 300, "learning_rate": 0.01, "loss": "logistic"}
    unbiased, corrected = MLP(3, 100, 2), MLP(3, 100, 2)
    plain = train_network(unbiased, X_P, X_U, condition, **options)
    nn = train_network(corrected, X_P, X_U, condition, correction="ascent", **options)
    assert plain[-1] < -0.5
    assert min(nn) >= 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_steps": 0}, "n_steps must be an integer >= 1"),
        ({"lam": -1}, "lam must be a finite number >= 0"),
        ({"correction": "nn"}, "correction must be one of"),
        ({"correction": "ascent", "beta": -1}, "beta must be"),
        ({"n_batches": 101}, "n_batches must not exceed the rows of P and U, 100 and 400"),
        ({"learning_rate": 0}, "learning_rate must be"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        train_network(MLP(3, 5, 1), X_P, X_U, Condition(0.3), **options)


def test_bad_sizes_are_named():
    with pytest.raises(ValueError, match="^n_hidden must be an integer >= 1"):
        MLP(3, 5, 0)
