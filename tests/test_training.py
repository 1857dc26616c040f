"""The training loop: plain Chainer one model at a time, separate stacks, known optima."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from pu_shift import risks
from pu_shift._chainer import chainer
from pu_shift._grids import assign_folds, training_weights
from pu_shift.losses import Loss
from pu_shift.models import MLP, GaussianKernelModel, LinearModel
from pu_shift.priors import Condition
from pu_shift.risks import Risk
from pu_shift.training import AMSGrad, pooled_batches, train
from tests.mixtures import pu_samples

F = chainer.functions
rng = np.random.default_rng(0)
X_P = rng.normal(0.7, 1.0, (40, 3))
X_U = np.concatenate([rng.normal(0.7, 1.0, (50, 3)), rng.normal(-0.7, 1.0, (70, 3))])
CONDITIONS = [Condition(0.4, 0.6), Condition(0.4, 0.4, 0.3), Condition(0.4, 0.2, 0.6)]
LAMS = [0.0, 0.01, 0.5]


class Sigmoid(Loss):
    """A loss that is not linear-odd: ℓ(z) − ℓ(−z) is not linear."""

    name = "sigmoid"

    def _value(self, xp, z):
        return 0.5 * (1.0 - xp.tanh(0.5 * z))

    def _derivative(self, xp, z):
        return -0.25 * (1.0 - xp.tanh(0.5 * z) ** 2)


# The losses once more, as anyone would write them with Chainer's functions.
IN_CHAINER = {
    "squared": lambda z: 0.25 * (1.0 - z) ** 2,
    "double_hinge": lambda z: F.maximum(-z, F.relu(0.5 - 0.5 * z)),
    "logistic": lambda z: F.softplus(-z),
    "modified_huber": lambda z: F.where(z.array < -1, -z, 0.25 * F.relu(1.0 - z) ** 2),
    "sigmoid": lambda z: F.sigmoid(-z),
}


def data(dtype=np.float64):
    return X_P.astype(dtype), X_U.astype(dtype)


def stack(dtype=np.float64, k=3):
    """K models of random weights: training from 0 would meet kinks by symmetry."""
    start = chainer.initializers.Normal(1.0, rng=np.random.RandomState(0))
    return LinearModel(3, k, start, start, dtype)


def plain_chainer(start, k, loss, correction, lam, n_steps, n_batches, keep_p, keep_u):
    """Train column k of a start alone: chainer.links.Linear, functions, AMSGrad, WeightDecay."""
    prior, a, b = (float(w[0]) for w in risks.risk_weights(CONDITIONS[k], "pu-shift-asym"))
    with chainer.using_config("dtype", start.W.dtype):
        model = chainer.links.Linear(3, 1, initialW=start.W.array.T[k : k + 1].copy())
    model.b.array[...] = start.b.array[k]
    optimizer = chainer.optimizers.AMSGrad(alpha=0.05)
    optimizer.setup(model)
    model.W.update_rule.add_hook(chainer.optimizer_hooks.WeightDecay(lam))
    ell, rows = IN_CHAINER[loss], np.concatenate([X_P, X_U])
    keep = np.concatenate([keep_p, keep_u])
    batches = pooled_batches(
        40, 120, n_batches, np.random.default_rng(np.random.SeedSequence(7, spawn_key=(0,)))
    )
    for _ in range(n_steps):
        order, _ = next(batches)
        order = np.arange(160) if order is None else order
        order = order[keep[order]]
        scores_p, scores_u = (model(rows[part]) for part in (order[order < 40], order[order >= 40]))
        positive = a * F.mean(ell(scores_p))
        negative = F.mean(ell(-scores_u)) - prior * F.mean(ell(-scores_p))
        objective = positive + b * negative
        if correction == "max":
            objective = positive + b * F.relu(negative)
        elif correction == "ascent" and float(negative.array) < 0.0:
            objective = -0.7 * b * negative
        model.cleargrads()
        objective.backward()
        optimizer.update()
    return np.append(model.W.array, model.b.array)


@pytest.mark.parametrize("loss", [*list(IN_CHAINER)[:-1], Sigmoid()])
@pytest.mark.parametrize("correction", [None, "max", "ascent"])
@pytest.mark.parametrize("n_batches", [None, 4])
def test_equals_plain_chainer_one_candidate_at_a_time(loss, correction, n_batches):
    """Folds, λ, conditions and mini-batches included."""
    model, start = stack(), stack()
    keep = [training_weights(assign_folds("X", n, 3, 0), 2) for n in (40, 120)]
    train(
        model, X_P, X_U, Risk(CONDITIONS, loss, correction=correction, gamma=0.7), lam=LAMS,
        n_steps=12, n_batches=n_batches, learning_rate=0.05, weights_p=keep[0], weights_u=keep[1],
        random_state=7,
    )  # fmt: skip
    name = loss if isinstance(loss, str) else loss.name
    for k in range(3):
        expected = plain_chainer(
            start, k, name, correction, LAMS[k], 12, n_batches, *(part[:, k] > 0 for part in keep)
        )
        found = np.append(model.W.array[:, k], model.b.array[k])
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
        assert np.abs(expected - np.append(start.W.array[:, k], start.b.array[k])).max() > 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5,), (300, 251)])
def test_the_update_in_place_is_chainers_own(dtype, shape):
    """Many steps of random gradients, in one block and in several."""
    draw = np.random.default_rng(1)
    value = draw.normal(size=shape).astype(dtype)
    ours, theirs = (chainer.Parameter(value.copy()) for _ in range(2))
    for parameter, make in ((ours, AMSGrad), (theirs, chainer.optimizers.AMSGrad)):
        parameter.update_rule = make(alpha=0.01).create_update_rule()
    for _ in range(50):
        gradient = (draw.normal(size=shape) * draw.choice([1e-3, 1.0, 30.0])).astype(dtype)
        for parameter in (ours, theirs):
            parameter.grad = gradient.copy()
            parameter.update()
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(ours.array, theirs.array, rtol=tolerance, atol=tolerance)
    for name in ("m", "v", "vhat"):
        one, other = (parameter.update_rule.state[name] for parameter in (ours, theirs))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("loss", ["squared", "double_hinge"])
@pytest.mark.parametrize("n_batches", [None, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stacked_equals_separate(loss, n_batches, dtype):
    X_p, X_u = data(dtype)
    folds_p, folds_u = assign_folds("P", 40, 2, 0), assign_folds("U", 120, 2, 1)
    weights_p, weights_u = training_weights(folds_p, 2), training_weights(folds_u, 2)
    options = {"n_steps": 60, "n_batches": n_batches, "learning_rate": 0.02}
    stacked, start = stack(dtype), stack(dtype)
    risk = Risk(CONDITIONS, loss)
    train(stacked, X_p, X_u, risk, lam=LAMS, weights_p=weights_p, weights_u=weights_u, **options)
    for k in range(3):
        alone = LinearModel(3, dtype=dtype)
        alone.W.array[:, 0], alone.b.array[0] = start.W.array[:, k], start.b.array[k]
        train(
            alone, X_p, X_u, Risk(CONDITIONS[k], loss), lam=LAMS[k],
            weights_p=weights_p[:, k], weights_u=weights_u[:, k], **options,
        )  # fmt: skip
        tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-10}
        np.testing.assert_allclose(stacked.W.array[:, k], alone.W.array[:, 0], **tolerance)
        np.testing.assert_allclose(stacked.b.array[k], alone.b.array[0], **tolerance)


def test_fold_weights_equal_leaving_the_rows_out():
    keep_p, keep_u = rng.random(40) < 0.7, rng.random(120) < 0.7
    weighted, smaller = LinearModel(3, dtype=np.float64), LinearModel(3, dtype=np.float64)
    risk = Risk(CONDITIONS[0])
    train(weighted, X_P, X_U, risk, weights_p=keep_p, weights_u=keep_u, n_steps=50)
    train(smaller, X_P[keep_p], X_U[keep_u], risk, n_steps=50)
    np.testing.assert_allclose(weighted.W.array, smaller.W.array, rtol=1e-10)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.integers(0, 99))
def test_an_epoch_has_every_row_once_in_batches_of_nearly_one_size(n_p, n_u, n_batches, seed):
    n_batches = min(n_batches, n_p + n_u)
    batches = pooled_batches(n_p, n_u, n_batches, np.random.default_rng(seed))
    for _ in range(2):
        epoch = [next(batches) for _ in range(n_batches)]
        assert sorted(np.concatenate([rows for rows, _ in epoch])) == list(range(n_p + n_u))
        sizes = [len(rows) for rows, _ in epoch]
        assert max(sizes) - min(sizes) <= 1
        for rows, size_p in epoch:
            assert (rows[:size_p] < n_p).all()
            assert (rows[size_p:] >= n_p).all()


@pytest.mark.parametrize("loss", ["squared", "double_hinge"])
@pytest.mark.parametrize("correction", [None, "max", "ascent"])
def test_batches_without_rows_that_count_are_harmless(loss, correction):
    """One row of P, and one of U for one model: most of 40 batches have neither."""
    weights_u = np.ones((120, 2))
    weights_u[1:, 1] = 0.0
    model = LinearModel(3, 2, dtype=np.float64)
    train(
        model, X_P[:1], X_U, Risk(CONDITIONS[0], loss, correction=correction),
        weights_u=weights_u, n_steps=200, n_batches=40,
    )  # fmt: skip
    assert np.isfinite(model.W.array).all()
    assert (model.W.array != 0).all()


def objective_of(result, lam):
    """Return the risk plus λ/2‖w‖² at the end."""
    return result.risks[-1] + 0.5 * np.array(lam) * (result.snapshots[-1]["/W"] ** 2).sum(axis=0)


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
    train(model, X_p, X_u, Risk(conditions), lam=lams, n_steps=1500, learning_rate=3e-2)
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
    risk = Risk(condition, "double_hinge")
    result = train(model, X_p, X_u, risk, lam=lam, n_steps=1500, learning_rate=3e-3)
    reached = float(objective_of(result, lam)[0])
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
    risk = Risk(condition, loss)
    result = train(model, X_p, X_u, risk, lam=lam, n_steps=1000, learning_rate=3e-2)
    assert float(objective_of(result, lam)[0]) == pytest.approx(best.fun, abs=1e-6)


def test_snapshots_are_what_shorter_runs_end_with():
    options = {"lam": LAMS, "n_batches": 3}
    model = LinearModel(3, 3, dtype=np.float64)
    result = train(model, X_P, X_U, Risk(CONDITIONS), n_steps=40, record=[0, 7, 40], **options)
    assert result.steps == (0, 7, 40)
    assert not result.snapshots[0]["/W"].any()
    np.testing.assert_array_equal(result.snapshots[2]["/W"], model.W.array)
    np.testing.assert_array_equal(result.snapshots[2]["/b"], model.b.array)
    short = LinearModel(3, 3, dtype=np.float64)
    train(short, X_P, X_U, Risk(CONDITIONS), n_steps=7, **options)
    np.testing.assert_array_equal(result.snapshots[1]["/W"], short.W.array)


def test_recorded_risks_are_the_unbiased_ones_of_the_snapshots():
    weights_u = (rng.random((120, 3)) < 0.8).astype(float)
    model = LinearModel(3, 3, dtype=np.float64)
    result = train(
        model, X_P, X_U, Risk(CONDITIONS, "logistic", correction="ascent"), lam=LAMS, n_steps=20,
        weights_u=weights_u, record=range(0, 21, 5),
    )  # fmt: skip
    for snapshot, found in zip(result.snapshots, result.risks):
        scores = (X @ snapshot["/W"] + snapshot["/b"] for X in (X_P, X_U))
        expected = risks.evaluate_risk(*scores, CONDITIONS, "logistic", weights_u=weights_u)
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_bias_does_not_decay():
    model = LinearModel(3, dtype=np.float64)
    train(model, X_P, X_U, Risk(CONDITIONS[0]), lam=100.0, n_steps=300, learning_rate=0.05)
    assert np.abs(model.W.array).max() < 0.01 < 0.1 < abs(model.b.array[0])


class TestNetworks:
    P, U = (X.astype(np.float32) for X in pu_samples(100, 400, 0.3, d=3))

    def test_the_correction_keeps_a_large_network_from_a_negative_risk(self):
        condition = Condition(0.3, 0.5)
        options = {"n_steps": 150, "learning_rate": 0.02}
        found = {}
        for correction in (None, "ascent"):
            risk = Risk(condition, "logistic", "pu-shift", correction)
            found[correction] = train(MLP(3, 60, 2), self.P, self.U, risk, **options).risks[-1]
        assert found[None] < -0.5 < -0.1 < found["ascent"]

    def test_equals_plain_chainer(self):
        ours, theirs = MLP(3, 5, 1, random_state=3), MLP(3, 5, 1, random_state=3)
        risk = Risk(Condition(0.3, 0.5), "logistic", "pu-shift")
        train(ours, self.P, self.U, risk, lam=0.1, n_steps=20, learning_rate=0.01)
        optimizer = chainer.optimizers.AMSGrad(alpha=0.01)
        optimizer.setup(theirs)
        for link in (theirs.linear0, theirs.linear1):
            link.W.update_rule.add_hook(chainer.optimizer_hooks.WeightDecay(0.1))
        for _ in range(20):
            scores = theirs(np.concatenate([self.P, self.U]))
            theirs.cleargrads()
            risks.pu_shift_risk(
                scores[:100], scores[100:], Condition(0.3, 0.5), "logistic"
            ).backward()
            optimizer.update()
        for one, other in zip(ours.params(), theirs.params()):
            np.testing.assert_allclose(one.array, other.array, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows_p": X_P[:, :2]}, "rows_u must have 2 columns like rows_p, got 3"),
        ({"rows_p": X_P[:, :2], "rows_u": X_U[:, :2]}, "x must be rows of 3 columns"),
        ({"rows_u": X_U.astype(np.float32)}, "rows_u must be of the model's dtype float64"),
        ({"rows_p": X_P * np.nan}, "rows_p must not contain NaN"),
        ({"rows_p": X_P[:0]}, "rows_p must have at least 1 row"),
        ({"risk": Risk(CONDITIONS[:2])}, "condition must be one or one per model"),
        ({"risk": Risk(CONDITIONS[0], "zero_one")}, "loss must have a gradient"),
        ({"lam": [0.1, 0.2]}, "lam must be one number or one per candidate"),
        ({"lam": -0.1}, "lam must be finite numbers >= 0, got -0.1"),
        ({"n_steps": -1}, "n_steps must be an integer >= 0"),
        ({"n_batches": 0}, "n_batches must be an integer >= 1"),
        ({"n_batches": 161}, "n_batches must not exceed the 160 rows, got 161"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number > 0"),
        ({"record": [600]}, "record must not go beyond n_steps"),
        ({"record": [-1]}, "record must be an integer >= 0"),
        ({"weights_p": np.ones(3)}, "weights_p must have shape"),
        ({"weights_p": np.ones((40, 2))}, r"weights_p must have shape \(40,\) or \(40, 3\)"),
        ({"weights_p": np.zeros(40)}, "weights_p must be non-negative and finite, with a positive"),
        ({"weights_u": np.full(120, np.nan)}, "weights_u must be non-negative and finite"),
        ({"weights_u": -np.ones(120)}, "weights_u must be non-negative and finite"),
    ],
)
def test_bad_input(change, message):
    arguments = {"rows_p": X_P, "rows_u": X_U, "risk": Risk(CONDITIONS[0]), **change}
    with pytest.raises(ValueError, match=rf"\A{message}[^\n]*\Z"):
        train(LinearModel(3, 3, dtype=np.float64), **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of"),
        ({"kind": "pn"}, "kind must be one of"),
        ({"correction": "abs"}, "correction must be one of"),
        ({"beta": -1}, "beta must be a finite number >= 0"),
        ({"gamma": -1}, "gamma must be a finite number >= 0"),
    ],
)
def test_a_bad_risk_is_refused(change, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Risk(CONDITIONS[0], **change)
