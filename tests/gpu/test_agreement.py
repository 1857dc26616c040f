"""CPU and GPU agree: `make test-gpu` on a machine with a card.

Every test computes the same thing on both. float64 results agree to 1e-8,
float32 ones to what a few hundred single-precision steps may differ by.
"""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pu_shift import (
    MLP,
    ULSIF,
    Condition,
    DensityRatioClassifier,
    LinearModel,
    Risk,
    RiskMinimizationClassifier,
    train,
)
from pu_shift._chainer import chainer
from pu_shift._grids import assign_folds
from pu_shift.data import Dataset
from pu_shift.data.sampling import draw
from pu_shift.device import beside, device_of, get_device, to_numpy
from pu_shift.estimators.cross_validation import cross_validate
from pu_shift.files.models import load_model, save_model
from pu_shift.losses import LOSSES
from pu_shift.models import score_rows
from pu_shift.paper.protocol import Protocol, fit_method
from pu_shift.paper.settings import EXTRA_METHODS, METHODS
from pu_shift.ratios.deep import DeepRatio
from pu_shift.ratios.kernels import (
    choose_centers,
    gaussian_kernel,
    median_distance,
    squared_distances,
)
from pu_shift.risks import evaluate_risk, nnpu_risk, pu_shift_risk

pytestmark = pytest.mark.gpu

RNG = np.random.default_rng(0)
X_P = RNG.normal(1.0, 1.0, (60, 3))
X_U = np.concatenate([RNG.normal(1.0, 1.0, (40, 3)), RNG.normal(-1.0, 1.0, (90, 3))])
X_TEST = RNG.normal(0.0, 1.5, (50, 3))
CONDITION = Condition(0.3, 0.6)


def test_there_and_back(on):
    values = np.arange(6.0).reshape(2, 3)
    sent = on.send(values)
    assert device_of(sent) == on
    assert on.send(sent) is sent
    np.testing.assert_array_equal(to_numpy(sent), values)
    np.testing.assert_array_equal(to_numpy(beside([3, 1, 2], sent)), [3, 1, 2])
    np.testing.assert_array_equal(to_numpy(beside([0.5], sent, np.float32)), [0.5])


def test_kernels(on):
    X, centers = on.send((X_TEST, X_P))
    assert_allclose(
        to_numpy(squared_distances(X, centers)), squared_distances(X_TEST, X_P), atol=1e-10
    )
    assert_allclose(
        to_numpy(gaussian_kernel(X, centers, 1.3)), gaussian_kernel(X_TEST, X_P, 1.3), rtol=1e-8
    )
    assert_allclose(median_distance(X), median_distance(X_TEST), rtol=1e-10)
    chosen = choose_centers(*on.send((X_P, X_U)), 20, "both", 1)
    np.testing.assert_array_equal(to_numpy(chosen), choose_centers(X_P, X_U, 20, "both", 1))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses(on, name, dtype):
    z = np.linspace(-3.0, 3.0, 41).astype(dtype)
    for method in ("value", "derivative", "posterior"):
        function = getattr(LOSSES[name], method)
        result = function(on.send(z))
        assert result.dtype == dtype
        assert_allclose(to_numpy(result), function(z), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"selection": "loo"},
        {"basis": "linear"},
        {"clip_coefficients": True},
        {"widths": 1.0, "lams": 0.1},
    ],
)
@pytest.mark.filterwarnings("ignore::pu_shift.ratios.base.GridEdgeWarning")
def test_ulsif(on, options):
    here = ULSIF(X_P, X_U, n_centers=30, **options)
    there = ULSIF(*on.send((X_P, X_U)), n_centers=30, **options)
    assert (there.width_, there.lam_) == pytest.approx((here.width_, here.lam_), nan_ok=True)
    assert_allclose(there.scores_, here.scores_, rtol=1e-6)
    assert_allclose(to_numpy(there(on.send(X_TEST))), here(X_TEST), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("correction", [None, "max", "ascent"])
@pytest.mark.parametrize("columns", [None, 3])
def test_risks_and_their_gradients(on, correction, columns):
    shape = () if columns is None else (columns,)
    scores = [RNG.normal(m, 1.0, (n, *shape)) for m, n in ((2.0, 12), (-2.0, 20))]
    conditions = CONDITION if columns is None else [Condition(0.3, p) for p in (0.2, 0.5, 0.8)]
    weights = RNG.uniform(0.5, 1.0, 12), None

    def risk(variables):
        if correction is None:
            return pu_shift_risk(*variables, conditions, "logistic", *weights)
        return nnpu_risk(
            *variables, conditions, "logistic", "pu-shift", *weights, correction=correction
        )

    results = []
    for place in (get_device(), on):
        variables = [chainer.Variable(place.send(array)) for array in scores]
        value = risk(variables)
        chainer.functions.sum(value).backward()
        results.append([value.array, *(variable.grad for variable in variables)])
        assert all(device_of(array) == place for array in results[-1])
    for here, there in zip(*results):
        assert_allclose(to_numpy(there), here, rtol=1e-10, atol=1e-14)
    here = evaluate_risk(*scores, conditions, "zero_one")
    there = evaluate_risk(*on.send(scores), conditions, "zero_one")
    assert_allclose(to_numpy(there), here, rtol=1e-10)


@pytest.mark.parametrize("correction", [None, "max", "ascent"])
@pytest.mark.parametrize("loss", ["squared", "double_hinge", "logistic"])
def test_training(on, correction, loss):
    results = []
    for place in (get_device(), on):
        model = LinearModel(3, n_candidates=2, dtype=np.float64)
        model.to_device(place.name)
        results.append(
            train(
                model,
                *place.send((X_P, X_U)),
                Risk(CONDITION, loss, correction=correction),
                lam=[0.0, 0.1],
                n_steps=60,
                n_batches=3,
                weights_u=np.linspace(0.5, 1.0, 130),
                record=[0, 30, 60],
            )
        )
        assert device_of(model.W.array) == place
    here, there = results
    assert_allclose(there.risks, here.risks, rtol=1e-7, atol=1e-10)
    for one, other in zip(here.snapshots, there.snapshots):
        for name in ("/W", "/b"):
            assert_allclose(other[name], one[name], rtol=1e-7, atol=1e-10)


def test_cross_validation(on):
    folds = [assign_folds("X", len(X), 4, 1) for X in (X_P, X_U)]
    risk = Risk([Condition(0.3, 0.3), CONDITION], "squared", "pu-shift")
    here, there = (
        cross_validate(
            place.send([X_P, X_U]), folds, risk, np.array([0.0, 0.1]), "zero_one", n_steps=40
        )
        for place in (get_device(), on)
    )
    assert_allclose(there.risks, here.risks, atol=1e-8)
    assert_allclose(to_numpy(there.weights), here.weights, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("correction", [None, "ascent"])
def test_networks(on, correction):
    network = MLP(3, n_units=8, n_hidden=2)
    risk = Risk(CONDITION, "logistic", "pu-shift", correction)
    results = []
    for place in (get_device(), on):
        model = copy.deepcopy(network)
        model.to_device(place.name)
        rows = place.send((X_P.astype("f"), X_U.astype("f")))
        train(model, *rows, risk, lam=1e-3, n_steps=20, n_batches=2)
        results.append(to_numpy(score_rows(model, place.send(X_TEST.astype("f")))))
    assert_allclose(results[1], results[0], atol=1e-2)


@pytest.mark.parametrize(
    "classifier",
    [
        DensityRatioClassifier(0.3, 0.6, n_centers=20),
        DensityRatioClassifier(direction="u/p", basis="linear"),
        RiskMinimizationClassifier(0.3, 0.6, n_steps=50, safe=False),
        RiskMinimizationClassifier(
            0.3, 0.6, 0.2, "double_hinge", "gaussian", "ascent", n_steps=50, safe=False
        ),
        RiskMinimizationClassifier(0.3, 0.6, model=MLP(3, 8, 1), n_steps=20, safe=False),
        DensityRatioClassifier(
            0.3, 0.6, estimator=DeepRatio(MLP(3, 8, 1), n_steps=20, n_batches=2), n_folds=2
        ),
    ],
    ids=["p/u", "u/p", "linear", "gaussian", "network", "deep ratio"],
)
def test_estimators(gpu, classifier, tmp_path):
    here = copy.deepcopy(classifier).fit_pu(X_P, X_U)
    there = copy.deepcopy(classifier).set_params(gpu=gpu).fit_pu(X_P, X_U)
    assert_allclose(there.predict_proba(X_TEST), here.predict_proba(X_TEST), atol=2e-3)
    save_model(tmp_path / "model.npz", there)
    loaded = load_model(tmp_path / "model.npz")
    assert_allclose(loaded.predict_proba(X_TEST), there.predict_proba(X_TEST), atol=1e-5)
    # Fitted there, it stays there.
    there.set_params(gpu=-1)
    assert_allclose(there.predict_proba(X_TEST), loaded.predict_proba(X_TEST), atol=1e-5)


@pytest.mark.parametrize("method", [*METHODS, *EXTRA_METHODS])
def test_methods_of_the_paper(gpu, method):
    dataset = Dataset.of("both", np.concatenate([X_P, -X_P, X_U]), [1] * 60 + [-1] * 60 + [1] * 130)
    sample = draw(dataset, 0.3, 0.5, 30, 50, 40)
    protocol = Protocol(n_steps=30, n_centers=15, ker_centers=15)
    accuracies = [
        [
            classifier.score(*sample.tests[0.5])
            for classifier in fit_method(protocol, method, sample, 0.3, [0.5, 0.3], place).values()
        ]
        for place in (-1, gpu)
    ]
    # Rounding may move a row or two across the boundary.
    assert_allclose(accuracies[1], accuracies[0], atol=0.05)
