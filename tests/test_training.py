"""The stacked AMSGrad loop: Chainer's own optimiser, separate training, known optima."""

from bisect import bisect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from pu_shift import risks, training
from pu_shift._chainer import chainer
from pu_shift.links import GaussianKernelModel, LinearModel
from pu_shift.losses import Loss
from pu_shift.priors import Condition
from pu_shift.selection import assign_folds, training_weights
from pu_shift.training import epochs, train

rng = np.random.default_rng(0)
X_P = rng.normal(0.7, 1.0, (40, 3))
X_U = np.concatenate([rng.normal(0.7, 1.0, (50, 3)), rng.normal(-0.7, 1.0, (70, 3))])
CONDITIONS = [Condition(0.4, 0.6), Condition(0.4, 0.4, 0.3), Condition(0.4, 0.2, 0.6)]
LAMS = [0.0, 0.01, 0.5]


class Sigmoid(Loss):
    """A loss that is not linear-odd: ℓ(z) − ℓ(−z) is not linear."""

    name = "sigmoid"
    linear_odd = False

    def _value(self, xp, z):
        return 0.5 * (1.0 - xp.tanh(0.5 * z))

    def _derivative(self, xp, z):
        return -0.25 * (1.0 - xp.tanh(0.5 * z) ** 2)

    def _second_derivative(self, xp, z):
        t = xp.tanh(0.5 * z)
        return 0.25 * t * (1.0 - t**2)


def data(dtype=np.float64):
    return X_P.astype(dtype), X_U.astype(dtype)


@pytest.mark.parametrize(
    "loss", ["squared", "double_hinge", "logistic", "modified_huber", Sigmoid()]
)
@pytest.mark.parametrize("correction", [None, "max", "ascent"])
@pytest.mark.parametrize(("train_bias", "decay_bias"), [(True, False), (True, True), (False, True)])
def test_equals_chainers_amsgrad_on_the_fused_risks(loss, correction, train_bias, decay_bias):
    """The same updates by the ordinary Chainer way: graph, hook, optimiser."""
    X_p, X_u = data()
    start = chainer.initializers.Normal(1.0, rng=np.random.RandomState(0))
    model = LinearModel(3, 3, start, start, np.float64)
    plain = LinearModel(3, 3, dtype=np.float64)
    plain.copyparams(model)
    lams = [0.2, 0.2, 0.2]
    train(
        model, X_p, X_u, CONDITIONS, loss=loss, lam=lams, n_steps=30, decay_bias=decay_bias,
        train_bias=train_bias, learning_rate=0.1, correction=correction, gamma=0.7,
    )  # fmt: skip
    optimizer = chainer.optimizers.AMSGrad(alpha=0.1)
    optimizer.setup(plain)
    if not train_bias:
        plain.b.update_rule.enabled = False
    for parameter in plain.params():
        if decay_bias or parameter.name == "W":
            parameter.update_rule.add_hook(chainer.optimizer_hooks.WeightDecay(0.2))
    for _ in range(30):
        plain.cleargrads()
        scores = plain(X_p), plain(X_u)
        if correction is None:
            risk = risks.pu_shift_asym_risk(*scores, CONDITIONS, loss)
        else:
            risk = risks.nnpu_risk(
                *scores, CONDITIONS, loss, "pu-shift-asym", gamma=0.7, correction=correction
            )
        chainer.functions.sum(risk).backward()
        optimizer.update()
    np.testing.assert_allclose(model.W.array, plain.W.array, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.b.array, plain.b.array, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "double_hinge"])
@pytest.mark.parametrize("n_batches", [None, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stacked_equals_separate(loss, n_batches, dtype):
    X_p, X_u = data(dtype)
    folds_p, folds_u = assign_folds("P", 40, 2, 0), assign_folds("U", 120, 2, 1)
    weights_p, weights_u = training_weights(folds_p, 2), training_weights(folds_u, 2)
    options = {"loss": loss, "n_steps": 60, "n_batches": n_batches, "learning_rate": 0.02}
    stacked = LinearModel(3, 3, dtype=dtype)
    train(
        stacked, X_p, X_u, CONDITIONS, lam=LAMS, weights_p=weights_p, weights_u=weights_u, **options
    )
    for k in range(3):
        alone = LinearModel(3, dtype=dtype)
        train(
            alone, X_p, X_u, CONDITIONS[k], lam=LAMS[k],
            weights_p=weights_p[:, k], weights_u=weights_u[:, k], **options,
        )  # fmt: skip
        tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-10}
        np.testing.assert_allclose(stacked.W.array[:, k], alone.W.array[:, 0], **tolerance)
        np.testing.assert_allclose(stacked.b.array[k], alone.b.array[0], **tolerance)


def test_fold_weights_equal_leaving_the_rows_out():
    X_p, X_u = data()
    keep_p, keep_u = rng.random(40) < 0.7, rng.random(120) < 0.7
    weighted, smaller = LinearModel(3, dtype=np.float64), LinearModel(3, dtype=np.float64)
    train(weighted, X_p, X_u, CONDITIONS[0], weights_p=keep_p, weights_u=keep_u, n_steps=50)
    train(smaller, X_p[keep_p], X_u[keep_u], CONDITIONS[0], n_steps=50)
    np.testing.assert_allclose(weighted.W.array, smaller.W.array, rtol=1e-10)


def test_weights_of_fewer_columns_are_repeated():
    X_p, X_u = data()
    weights_p, weights_u = (rng.random((n, 2)) < 0.7 for n in (40, 120))
    models = [LinearModel(3, 6, dtype=np.float64) for _ in range(2)]
    for model, times in zip(models, (1, 3)):
        train(
            model, X_p, X_u, CONDITIONS[0], lam=np.linspace(0, 1, 6), n_steps=20, n_batches=4,
            weights_p=np.tile(weights_p, (1, times)), weights_u=np.tile(weights_u, (1, times)),
        )  # fmt: skip
    np.testing.assert_array_equal(models[0].W.array, models[1].W.array)


@pytest.mark.parametrize("n_batches", [1, 4, 8, 16])
def test_weights_that_never_repeat_are_weights_too(n_batches):
    """Rows of equal and of almost equal weights take different ways through a mini-batch.

    Those of two different weights are prepared for all, three or one of the mini-batches at
    a time, those that never repeat for one.
    """
    X_p, X_u = data()
    models = [LinearModel(3, 3, dtype=np.float64) for _ in range(2)]
    for model, noise in zip(models, (0.0, 1e-10)):
        train(
            model, X_p, X_u, CONDITIONS, n_steps=30, n_batches=n_batches,
            weights_p=[1, 2, 3] + np.arange(40)[:, None] % 2 + noise * rng.random((40, 3)),
            weights_u=[1, 2, 3] + np.arange(120)[:, None] % 2 + noise * rng.random((120, 3)),
        )  # fmt: skip
    np.testing.assert_allclose(models[0].W.array, models[1].W.array, rtol=1e-6)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.integers(0, 99))
def test_an_epoch_has_every_row_once_in_batches_of_nearly_one_size(n_p, n_u, n_batches, seed):
    n_batches = min(n_batches, n_p, n_u)
    draws = epochs(n_p, n_u, n_batches, np.random.default_rng(seed))
    for parts in (zip(*next(draws)), zip(*next(draws))):
        for rows, n in zip(parts, (n_p, n_u)):
            assert sorted(np.concatenate(rows).tolist()) == list(range(n))
            sizes = [len(part) for part in rows]
            assert sizes == [len(part) for part in np.array_split(np.arange(n), n_batches)]


@pytest.mark.parametrize("decay_bias", [False, True])
@pytest.mark.parametrize("cached", [3, 6])
def test_blocks_of_the_update_change_nothing(monkeypatch, cached, decay_bias):
    X_p, X_u = data()
    options = {"lam": LAMS, "n_steps": 30, "decay_bias": decay_bias}
    whole, cut = (LinearModel(3, 3, dtype=np.float64) for _ in range(2))
    train(whole, X_p, X_u, CONDITIONS, **options)
    monkeypatch.setattr(training, "CACHED", cached)
    train(cut, X_p, X_u, CONDITIONS, **options)
    np.testing.assert_array_equal(whole.W.array, cut.W.array)
    np.testing.assert_array_equal(whole.b.array, cut.b.array)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_batches", [None, 4])
@pytest.mark.parametrize("tight", [False, True])
def test_the_bound_on_the_scores_changes_nothing(monkeypatch, dtype, n_batches, tight):
    X_p, X_u = data(dtype)
    if tight:  # one feature, 1 or −1: some score is at the bound, and grows for ever
        X_p, X_u = np.ones_like(X_p[:, :1]), -np.ones_like(X_u[:, :1])
    options = {"loss": "double_hinge", "n_steps": 250, "n_batches": n_batches, "lam": 0.0}
    bounds, models = [], [LinearModel(X_p.shape[1], 3, dtype=dtype) for _ in range(2)]
    bound = training._Reach.bound
    monkeypatch.setattr(training._Reach, "bound", lambda *a: bounds.append(bound(*a)) or bounds[-1])
    train(models[0], X_p, X_u, CONDITIONS, learning_rate=0.02, **options)
    # Between the kinks, beyond one without a clip, and anywhere.
    assert {bisect([1.0, 3.0], reach) for reach in bounds} == {0, 1, 2}
    monkeypatch.setattr(training._Reach, "bound", lambda *_: np.inf)
    train(models[1], X_p, X_u, CONDITIONS, learning_rate=0.02, **options)
    np.testing.assert_array_equal(models[0].W.array, models[1].W.array)
    np.testing.assert_array_equal(models[0].b.array, models[1].b.array)


@given(
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([1e-3, 0.1, 1.0, 1e4]),
    st.sampled_from([1e-9, 1e-4, 1e-2, 1.0]),
    st.sampled_from([(0.9, 0.999), (0.0, 0.0), (0.9, 0.5), (0.99, 0.99), (0.0, 0.9)]),
    st.sampled_from([0.0, 0.3]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_no_score_exceeds_the_bound(dtype, scale, learning_rate, betas, spread, tight, seed):
    draw = np.random.default_rng(seed)
    X_p, X_u = ((scale * draw.standard_normal((n, 2))).astype(dtype) for n in (6, 9))
    if tight:  # one feature of one size: some score is at the bound
        X_p, X_u = np.full_like(X_p[:, :1], 0.7 * scale), np.full_like(X_u[:, :1], -0.7 * scale)
    everything = np.concatenate([X_p, X_u]).astype(np.float64)
    bound, bounds = training._Reach.bound, []

    def checked(reach, parameters):
        bounds.append(bound(reach, parameters))
        exact = everything @ parameters[:-1].astype(np.float64) + parameters[-1]
        assert np.abs(exact).max() <= bounds[-1]
        return bounds[-1]

    start = chainer.initializers.Normal(spread / scale, rng=np.random.RandomState(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training._Reach, "bound", checked)
        train(
            LinearModel(X_p.shape[1], 3, start, dtype=dtype), X_p, X_u, CONDITIONS,
            loss="double_hinge", n_steps=30, n_batches=3,
            learning_rate=learning_rate, beta1=betas[0], beta2=betas[1],
        )  # fmt: skip
    assert len(bounds) == 30


def test_gradients_whose_squares_underflow_are_bounded_too():
    """A feature of one row that hardly counts: where v is 0, a small ε lets m step far."""
    X_p, X_u = np.eye(4, 2, dtype=np.float32), np.zeros((6, 2), np.float32)
    models = [LinearModel(2) for _ in range(2)]
    options = {"loss": "double_hinge", "eps": 1e-30, "n_steps": 50, "weights_p": [1, 1e-24, 1, 1]}
    train(models[0], X_p, X_u, CONDITIONS[0], **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training._Reach, "bound", lambda *_: np.inf)
        train(models[1], X_p, X_u, CONDITIONS[0], **options)
    np.testing.assert_array_equal(models[0].W.array, models[1].W.array)


def test_a_bound_that_growing_has_lost_is_evaluated_anew():
    reach = training._Reach(np.ones((1, 1)))
    assert reach.bound(np.zeros((2, 1))) == 0.0
    reach.grow(0.0, 0.9, 0.5, 1e-8)  # 0 · ∞: neither β₁² < β₂ nor a step
    assert reach.bound(np.ones((2, 1))) >= 2.0


@pytest.mark.parametrize("large", [1e25, 1e38])
def test_rows_too_long_to_measure_have_no_bound(large):
    with np.errstate(over="ignore", invalid="ignore"):  # as in `train`
        reach = training._Reach(np.full((2, 3), large, np.float32))
        assert reach.bound(np.zeros((4, 1), np.float32)) == np.inf


def test_nothing_is_recorded_when_no_step_is_asked_for():
    model = LinearModel(3, 3, dtype=np.float64)
    result = train(model, X_P, X_U, CONDITIONS, n_steps=5, record=[])
    assert result.steps == ()
    assert result.weights.shape == (0, 3, 3)
    assert result.risks.shape == result.objectives.shape == result.biases.shape == (0, 3)
    assert (model.W.array != 0).all()


def ridge(phi_p, phi_u, condition, lam):
    """Closed form of the squared-loss risk with an undecayed bias."""
    prior, a, b = (float(w[0]) for w in risks.risk_weights(condition, "pu-shift-asym"))
    phi_p, phi_u = (np.column_stack([phi, np.ones(len(phi))]) for phi in (phi_p, phi_u))
    H = 0.5 * ((a - b * prior) * phi_p.T @ phi_p / len(phi_p) + b * phi_u.T @ phi_u / len(phi_u))
    penalty = lam * np.eye(len(H))
    penalty[-1, -1] = 0
    linear = 0.5 * ((a + b * prior) * phi_p.mean(axis=0) - b * phi_u.mean(axis=0))
    return np.linalg.solve(H + penalty, linear)


@pytest.mark.parametrize("basis", ["linear", "gaussian"])
def test_squared_loss_converges_to_the_closed_form(basis):
    X_p, X_u = data()
    convex = [c for c in CONDITIONS if c.is_convex]
    assert len(convex) == 2
    conditions = convex * 2
    lams = [0.05, 0.05, 0.5, 0.5]
    if basis == "linear":
        model = LinearModel(3, 4, dtype=np.float64)
    else:
        model = GaussianKernelModel(X_U[:10], 1.5, 4, dtype=np.float64)
    phi_p, phi_u = model.features(X_p), model.features(X_u)
    train(model, phi_p, phi_u, conditions, lam=lams, n_steps=20000, learning_rate=3e-3)
    for k in range(4):
        solution = ridge(phi_p, phi_u, conditions[k], lams[k])
        np.testing.assert_allclose(model.W.array[:, k], solution[:-1], atol=1e-4)
        assert model.b.array[k] == pytest.approx(solution[-1], abs=1e-4)


def test_double_hinge_converges_to_the_optimum_of_a_quadratic_program():
    """min λ/2‖w‖² + risk with slack ξ ≥ ℓ(−g): a QP, since ℓ is piecewise linear."""
    X_p, X_u = data()
    condition, lam = CONDITIONS[0], 0.1
    prior, a, b = (float(w[0]) for w in risks.risk_weights(condition, "pu-shift-asym"))
    phi_p, phi_u = (np.column_stack([X, np.ones(len(X))]) for X in (X_p, X_u))
    phi = np.concatenate([phi_p, phi_u])
    # For a linear-odd loss ℓ(z) = ℓ(−z) − z, so only ξ_i = ℓ(−g_i) is needed.
    cost = np.concatenate([np.full(40, (a - b * prior) / 40), np.full(120, b / 120)])
    linear = -a * phi_p.mean(axis=0)

    def objective(v):
        return linear @ v[:4] + cost @ v[4:] + 0.5 * lam * v[:3] @ v[:3]

    def gradient(v):
        return np.concatenate([linear + lam * np.append(v[:3], 0), cost])

    eye = np.eye(160)
    # ξ ≥ 0, ξ ≥ (1 + g)/2, ξ ≥ g
    A = np.concatenate(
        [
            np.column_stack([0 * phi, eye]),
            np.column_stack([-phi / 2, eye]),
            np.column_stack([-phi, eye]),
        ]
    )
    bound = np.concatenate([np.zeros(160), np.full(160, 0.5), np.zeros(160)])
    start = np.concatenate([np.zeros(4), np.full(160, 1.0)])
    program = minimize(
        objective, start, jac=gradient, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: A @ v - bound, "jac": lambda v: A},
        options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    assert program.success
    model = LinearModel(3, dtype=np.float64)
    result = train(
        model, X_p, X_u, condition, loss="double_hinge", lam=lam, n_steps=30000, learning_rate=3e-4
    )
    reached = float(result.objectives[-1, 0])
    assert reached == pytest.approx(program.fun, abs=2e-4)
    assert reached >= program.fun - 1e-8


@pytest.mark.parametrize("loss", ["logistic", "modified_huber"])
def test_smooth_losses_converge_to_the_optimum_of_lbfgs(loss):
    X_p, X_u = data()
    condition, lam = CONDITIONS[0], 0.1

    def objective(v):
        risk = risks.evaluate_risk(X_p @ v[:3] + v[3], X_u @ v[:3] + v[3], condition, loss)
        return float(risk) + 0.5 * lam * v[:3] @ v[:3]

    best = minimize(objective, np.zeros(4), method="L-BFGS-B", options={"ftol": 1e-14})
    model = LinearModel(3, dtype=np.float64)
    result = train(
        model, X_p, X_u, condition, loss=loss, lam=lam, n_steps=10000, learning_rate=3e-3
    )
    assert float(result.objectives[-1, 0]) == pytest.approx(best.fun, abs=1e-6)


def test_snapshots_are_what_shorter_runs_end_with():
    X_p, X_u = data()
    options = {"lam": LAMS, "n_batches": 3}
    model = LinearModel(3, 3, dtype=np.float64)
    result = train(model, X_p, X_u, CONDITIONS, n_steps=40, record=[0, 7, 40], **options)
    assert result.steps == (0, 7, 40)
    assert not result.weights[0].any()
    np.testing.assert_array_equal(result.weights[2], model.W.array)
    np.testing.assert_array_equal(result.biases[2], model.b.array)
    short = LinearModel(3, 3, dtype=np.float64)
    train(short, X_p, X_u, CONDITIONS, n_steps=7, **options)
    np.testing.assert_array_equal(result.weights[1], short.W.array)


def test_history_is_the_risk_of_the_snapshots():
    X_p, X_u = data()
    weights_u = (rng.random((120, 3)) < 0.8).astype(float)
    model = LinearModel(3, 3, dtype=np.float64)
    result = train(
        model, X_p, X_u, CONDITIONS, loss="logistic", lam=LAMS, n_steps=20,
        weights_u=weights_u, record=range(0, 21, 5),
    )  # fmt: skip
    for s in range(5):
        scores = (X @ result.weights[s] + result.biases[s] for X in (X_p, X_u))
        expected = risks.evaluate_risk(*scores, CONDITIONS, "logistic", weights_u=weights_u)
        np.testing.assert_allclose(result.risks[s], expected, rtol=1e-10)
        penalty = 0.5 * np.array(LAMS) * (result.weights[s] ** 2).sum(axis=0)
        np.testing.assert_allclose(result.objectives[s], expected + penalty, rtol=1e-10)


def test_bias_is_decayed_only_when_asked():
    X_p, X_u = data()
    penalised, free = LinearModel(3, dtype=np.float64), LinearModel(3, dtype=np.float64)
    options = {"lam": 100.0, "n_steps": 3000, "learning_rate": 0.01}
    by_bias = train(penalised, X_p, X_u, CONDITIONS[0], decay_bias=True, **options)
    train(free, X_p, X_u, CONDITIONS[0], **options)
    assert abs(penalised.b.array[0]) < 0.01 < 0.1 < abs(free.b.array[0])
    penalty = 50 * float((penalised.W.array**2).sum() + penalised.b.array[0] ** 2)
    assert by_bias.objectives[-1, 0] - by_bias.risks[-1, 0] == pytest.approx(penalty)


def test_mini_batches_depend_on_the_seed_alone():
    X_p, X_u = data(np.float32)

    def run(seed):
        model = LinearModel(3)
        train(model, X_p, X_u, CONDITIONS[0], n_steps=25, n_batches=5, seed=seed)
        return model.W.array.copy()

    np.random.seed(0)  # noqa: NPY002  (the global generator must not matter)
    first = run(1)
    np.random.seed(99)  # noqa: NPY002
    np.testing.assert_array_equal(first, run(1))
    assert not np.array_equal(first, run(2))


def test_an_epoch_sees_every_row_once():
    """With n_steps = n_batches and one feature per row, every weight has moved."""
    eye = np.eye(30)
    model = LinearModel(30, dtype=np.float64)
    train(model, eye[:10], eye[10:], Condition(0.5), n_steps=5, n_batches=5)
    assert (model.W.array != 0).all()


def test_batch_without_a_row_that_counts_changes_nothing_but_momentum():
    X_p, X_u = data()
    weights_p = np.zeros(40)
    weights_p[0] = 1.0
    model = LinearModel(3, dtype=np.float64)
    train(model, X_p, X_u, CONDITIONS[0], weights_p=weights_p, n_steps=100, n_batches=20)
    assert np.isfinite(model.W.array).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features_p": X_P[:, :2]}, "features_p must be model.features"),
        ({"features_u": X_U.astype(np.float32)}, "features_u must be model.features"),
        ({"features_p": X_P * np.nan}, "features_p must not contain NaN"),
        ({"features_p": X_P[:0]}, "features_p must have at least 1 row"),
        ({"condition": CONDITIONS[:2]}, "condition must be one or one per candidate"),
        ({"lam": [0.1, 0.2]}, "lam must be one number or one per candidate"),
        ({"lam": -0.1}, "lam must be finite numbers >= 0, got -0.1"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"loss": "zero_one"}, "loss must have a gradient"),
        ({"kind": "pn"}, "kind must be one of"),
        ({"correction": "abs"}, "correction must be one of"),
        ({"beta": -1}, "beta must be a finite number >= 0"),
        ({"gamma": -1}, "gamma must be a finite number >= 0"),
        ({"n_steps": -1}, "n_steps must be an integer >= 0"),
        ({"n_batches": 0}, "n_batches must be an integer >= 1"),
        ({"n_batches": 41}, "n_batches must not exceed the rows"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number > 0"),
        ({"eps": 0.0}, "eps must be a finite number > 0"),
        ({"beta1": 1.0}, "beta1 must be at least 0 and below 1, got 1.0"),
        ({"beta2": -0.1}, "beta2 must be at least 0 and below 1, got -0.1"),
        ({"record": [600]}, "record must not go beyond n_steps"),
        ({"record": [-1]}, "record must be an integer >= 0"),
        ({"weights_p": np.ones(3)}, "weights_p must have shape"),
        ({"weights_p": np.ones((40, 2))}, r"weights_p must have shape \(40,\) or \(40, 3\)"),
        ({"weights_p": np.ones((40, 0))}, "weights_p must have shape"),
        ({"weights_p": np.ones((40, 3, 1))}, "weights_p must have shape"),
        ({"weights_p": np.zeros(40)}, "weights_p must have a positive sum"),
        ({"weights_u": np.full(120, np.nan)}, "weights_u must be non-negative and finite"),
        ({"weights_u": -np.ones(120)}, "weights_u must be non-negative and finite"),
    ],
)
def test_bad_input(change, message):
    arguments = {"features_p": X_P, "features_u": X_U, "condition": CONDITIONS[0], **change}
    with pytest.raises(ValueError, match=rf"\A{message}[^\n]*\Z"):
        train(LinearModel(3, 3, dtype=np.float64), **arguments)


def test_weights_of_both_samples_have_as_many_columns():
    with pytest.raises(ValueError, match="weights_u must have one column or as many as weights_p"):
        train(
            LinearModel(3, 6, dtype=np.float64), X_P, X_U, CONDITIONS[0],
            weights_p=np.ones((40, 2)), weights_u=np.ones((120, 3)),
        )  # fmt: skip
