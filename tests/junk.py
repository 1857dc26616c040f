"""Calls of the public functions, and arguments that none of them asked for."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pu_shift
from pu_shift import (
    KLIEP,
    MLP,
    ULSIF,
    Condition,
    DensityRatioClassifier,
    GaussianKernelModel,
    LinearModel,
    PURiskScorer,
    RiskMinimizationClassifier,
    _grids,
    check_positives,
    check_shift,
    data,
    estimate_prior,
    estimate_test_prior,
    losses,
    priors,
    risks,
)
from pu_shift.data.sampling import draw
from pu_shift.files import models
from pu_shift.paper import claims, compare, settings, store
from pu_shift.paper.protocol import Protocol, load_protocol
from pu_shift.ratios import kernels
from tests.mixtures import pu_samples

P, U = pu_samples(20, 40, 0.4, d=2)
SCORES = {"scores_p": P[:, 0], "scores_u": U[:, 0], "condition": Condition(0.3, 0.5)}
WEIGHTS = {"weights_p": np.ones(20), "weights_u": np.ones(40)}
SMALL = {"n_centers": 5, "widths": [0.5, 1.0], "n_folds": 2, "seed": 0}
DATASET = data.Dataset.of("two", np.arange(400.0).reshape(200, 2), np.tile([1, -1], 100))


def train(**arguments):
    """Train a fresh model."""
    risk = {name: arguments.pop(name) for name in TRAINED_RISK if name in arguments}
    return pu_shift.train(LinearModel(2, dtype=np.float64), risk=risks.Risk(**risk), **arguments)


def train_network(**arguments):
    """Train a fresh network."""
    risk = {name: arguments.pop(name) for name in TRAINED_RISK if name in arguments}
    return pu_shift.train(MLP(2, 3, 1), risk=risks.Risk(**risk), **arguments)


def fit(make):
    """Return a function that fits an estimator of these parameters and predicts."""

    def call(X_p=P, X_u=U, X=U, **parameters):
        estimator = make(**parameters).fit_pu(X_p, X_u)
        return estimator.predict(X), estimator.predict_proba(X)

    return call


def fit_labelled(X, y):
    """Fit to labelled rows."""
    return DensityRatioClassifier(0.4, widths=1.0, lams=0.1).fit(X, y)


def ratio_of(make):
    """Return a function that fits a ratio and evaluates it."""

    def call(X=U, **arguments):
        return make(**arguments)(X)

    return call


def score(**arguments):
    """Score a fitted classifier by a PU risk."""
    X, y = arguments.pop("X"), arguments.pop("y")
    return PURiskScorer(**arguments)(FITTED, X, y)


RATIO = {"prior": 0.4, "test_prior": 0.5, "alpha": 0.4, "direction": "p/u", "basis": "gaussian"}
RATIO = {**RATIO, "n_centers": 5, "widths": [1.0, 2.0], "lams": [0.1, 1.0], "n_folds": 2}
RATIO = {**RATIO, "selection": "kfold", "clip_coefficients": False, "gpu": -1, "random_state": 0}
RATIO = {**RATIO, "width_factors": [0.5, 1.0], "estimator": "ulsif", "pos_label": None}
RISK = {"prior": 0.4, "test_prior": 0.5, "alpha": 0.4, "loss": "squared", "basis": "linear"}
RISK = {**RISK, "correction": None, "n_centers": 5, "lams": [0.0, 0.1], "n_folds": 2, "gpu": -1}
RISK = {**RISK, "criterion": "surrogate", "n_steps": 3, "n_batches": 2, "learning_rate": 0.1}
RISK = {**RISK, "nn_beta": 0.0, "nn_gamma": 1.0, "random_state": 0, "widths": [1.0]}
RISK = {**RISK, "width_factors": [1.0], "width_rule": "risk"}
RISK = {**RISK, "scaling": "auto", "safe": False}
FITTED = DensityRatioClassifier(0.4, widths=1.0, lams=0.1).fit_pu(P, U)
TRAINED_RISK = ("condition", "loss", "kind", "correction", "beta", "gamma")
TRAINING = {"condition": Condition(0.3, 0.5), "loss": "squared", "lam": 0.1, "n_steps": 3}
TRAINING = {**TRAINING, "n_batches": 2, "learning_rate": 0.1, "beta": 0.0, "gamma": 1.0, "seed": 0}
DRAW = {"prior": 0.3, "test_prior": [0.3, 0.5], "n_p": 5, "n_u": 9, "n_test": 7, "seed": 0}

# Name to a function and arguments that it takes.
CALLS = {
    "Condition": (Condition, {"prior": 0.3, "test_prior": 0.5, "alpha": 0.2}),
    "Condition.classify_ratio": (
        Condition(0.3, 0.5).classify_ratio,
        {"ratio": P[:, 0], "direction": "p/u"},
    ),
    "Condition.from_costs": (
        Condition.from_costs,
        {"prior": 0.3, "test_prior": 0.5, "false_positive": 5, "false_negative": 200},
    ),
    "Condition.expected_cost": (
        Condition(0.3, 0.5).expected_cost,
        {"posterior": np.array([0.1, 0.9]), "false_positive": 5, "false_negative": 200, "cases": 9},
    ),
    "check_shift": (
        partial(check_shift, FITTED),
        {"X_new": U, "X_p": P, "X_u": U, "level": 0.05, "n_bootstrap": 20, "seed": 0},
    ),
    "check_positives": (
        partial(check_positives, FITTED),
        {"X_p": P, "X_u": U, "n_bootstrap": 20, "seed": 0},
    ),
    "alpha_from_test_prior": (priors.alpha_from_test_prior, {"prior": 0.3, "test_prior": 0.5}),
    "test_prior_from_alpha": (priors.test_prior_from_alpha, {"prior": 0.3, "alpha": 0.5}),
    "prior_unif": (priors.prior_unif, {"test_prior": 0.3, "alpha": 0.5}),
    "alpha_unif": (priors.alpha_unif, {"prior": 0.3, "test_prior": 0.5, "alpha": 0.2}),
    "shift_posterior": (
        priors.shift_posterior,
        {"posterior": np.array([0.1, 0.9]), "prior": 0.3, "test_prior": 0.5},
    ),
    "test_ratio": (
        priors.test_ratio,
        {"u_over_p": np.array([0.5, 2.0]), "prior": 0.3, "test_prior": 0.5},
    ),
    "ratio_bounds": (priors.ratio_bounds, {"prior": 0.3, "direction": "u/p"}),
    "within_bounds": (
        priors.within_bounds,
        {"ratio": P[:, 0], "prior": 0.3, "direction": "u/p", "margin": 0.02},
    ),
    "get_loss": (losses.get_loss, {"loss": "squared"}),
    **{
        f"{name}.{part}": (getattr(loss, part), {"z": P[:, 0]})
        for name, loss in losses.LOSSES.items()
        for part in ("value", "derivative")
    },
    "risk_weights": (risks.risk_weights, {"condition": Condition(0.3), "kind": "pu"}),
    "evaluate_risk": (
        risks.evaluate_risk,
        {**SCORES, **WEIGHTS, "loss": "squared", "kind": "pu-shift"},
    ),
    **{
        name: (getattr(risks, name), {**SCORES, **WEIGHTS, "loss": "logistic"})
        for name in ("pu_risk", "pu_shift_risk", "pu_asym_risk", "pu_shift_asym_risk")
    },
    **{
        name: (
            getattr(risks, name),
            {**SCORES, "loss": "squared", "beta": 0.1, "gamma": 1.0, "correction": "max"},
        )
        for name in ("nnpu_risk", "nnpu_shift_risk")
    },
    "row_weights": (
        partial(risks.row_weights, "weights_p", array=P, shape=(20, 3)),
        {"weights": np.ones(20)},
    ),
    "Risk": (
        risks.Risk,
        {"condition": Condition(0.3), "loss": "squared", "kind": "pu", "correction": "max"},
    ),
    "as_rows": (partial(kernels.as_rows, "X"), {"X": P, "least": 1, "columns": 2}),
    "gaussian_kernel": (kernels.gaussian_kernel, {"X": P, "centers": U, "width": 1.0}),
    "median_distance": (kernels.median_distance, {"X": P, "max_rows": 10, "seed": 0}),
    "ULSIF": (
        ratio_of(ULSIF),
        {
            **{"numerator": P, "denominator": U, "X": U, "centers": "both", "lams": [0.1, 1.0]},
            **{"basis": "gaussian", "selection": "kfold", "clip_coefficients": True},
            **SMALL,
        },
    ),
    "KLIEP": (
        ratio_of(KLIEP),
        {
            **{"numerator": P, "denominator": U, "X": U, "centers": "numerator"},
            **{"tolerance": 0.1, "max_iterations": 5},
            **SMALL,
        },
    ),
    "LinearModel": (
        lambda x, **options: LinearModel(**options)(x),
        {"x": P, "n_features": 2, "n_candidates": 3, "initial_w": 0.5, "initial_b": 0.5},
    ),
    "GaussianKernelModel": (
        lambda x, **options: GaussianKernelModel(**options)(x),
        {"x": P, "centers": U, "width": 1.0, "n_candidates": 3, "dtype": np.float64},
    ),
    "MLP": (MLP, {"n_features": 2, "n_units": 3, "n_hidden": 1, "seed": 0}),
    "train": (
        train,
        {**TRAINING, "rows_p": P, "rows_u": U, "kind": "pu", "record": [0, 3], **WEIGHTS},
    ),
    "train_network": (
        train_network,
        {**TRAINING, "rows_p": P.astype("f"), "rows_u": U.astype("f")},
    ),
    "DensityRatioClassifier": (
        fit(DensityRatioClassifier),
        {"X_p": P, "X_u": U, "X": U, **RATIO},
    ),
    "RiskMinimizationClassifier": (
        fit(RiskMinimizationClassifier),
        {"X_p": P, "X_u": U, "X": U, **RISK},
    ),
    "fit": (fit_labelled, {"X": U, "y": np.arange(40) % 2}),
    "predict_many": (FITTED.predict_many, {"X": U, "conditions": [{"alpha": 0.3}]}),
    "score": (FITTED.score, {"X": U, "y": np.arange(40) % 2, "sample_weight": np.ones(40)}),
    "PURiskScorer": (
        score,
        {"X": U, "y": np.arange(40) % 2, "loss": "zero_one", "condition": Condition(0.3)},
    ),
    "estimate_prior": (
        estimate_prior,
        {
            **{"X_p": P, "X_u": U, "method": "bbe"},
            **{"level": 0.9, "max_rows": 40, "seed": 0},
        },
    ),
    "estimate_test_prior": (
        partial(estimate_test_prior, FITTED),
        {"X_test": U, "method": "em", "level": 0.9, "prior": 0.3},
    ),
    "sensitivity": (FITTED.sensitivity, {"X": U, "prior": 0.3, "test_prior": (0.2, 0.4)}),
    "assign_folds": (partial(_grids.assign_folds, "P"), {"n": 7, "n_folds": 3, "seed": 0}),
    "check_grid": (partial(_grids.check_grid, "lams"), {"values": [1.0], "allow_zero": True}),
    "Dataset.of": (data.Dataset.of, {"name": "two", "X": [[0.0], [1.0]], "y": [1, -1]}),
    "draw": (draw, {"dataset": DATASET, **DRAW, "trial": 0, "counts": "exact"}),
    "load": (lambda name: data.load(name, offline=True), {"name": "banana"}),
    "copies": (data.copies, {"name": "banana"}),
    "load_csv": (data.load_csv, {"path": "absent.csv", "label": 0, "positive": 1}),
    "load_libsvm": (data.load_libsvm, {"path": "absent.txt", "positive": 1}),
    "load_file": (data.load_file, {"path": "absent.txt", "label": 0, "positive": 1}),
    "load_model": (models.load_model, {"path": "absent.npz"}),
    "save_model": (models.save_model, {"path": "absent/model.npz", "estimator": FITTED}),
    "Protocol": (Protocol, Protocol().as_dict()),
    "load_protocol": (load_protocol, {"overrides": {"n_steps": 3}}),
    "read_trials": (store.read_trials, {"folder": "absent"}),
    "key_prior": (partial(settings.key_prior, "prior"), {"value": 0.3}),
    "TableSetting.shift": (
        settings.TableSetting.shift,
        {"number": 0, "prior": 0.3, "test_prior": 0.5, "given_priors": [0.5]},
    ),
    "load_paper_table": (compare.load_paper_table, {"number": 1}),
    "printed_cells": (claims.printed_cells, {"folder": None}),
}

NUMBERS = [-1, 0, 1, 2, 3, 2**70, -0.5, 0.0, 0.5, 1e-300, 1e300, math.nan, math.inf, -math.inf]
NUMBERS += [True, False, np.float32(0.5), np.int8(3), np.array(0.3), Fraction(1, 3), 1j]
OTHERS = [None, "", "x", "0.5", "two\nlines", "\0", b"x", object(), print, Condition, np.float32]
OTHERS += [(), [], {}, set(), range(3), [1, 2], (0.2, 0.4), [None], ["a", "b"], {"alpha": 3}]
OTHERS += [[[]], [[1.0, 2.0], [3.0]], [Condition(0.3)] * 2, np.datetime64("2020-01-01")]
ARRAYS = [np.zeros(shape) for shape in ((0,), (0, 2), (2, 0), (2, 2, 2), (20, 2), (20,), (40, 3))]
ARRAYS += [np.full((20, 2), value) for value in (math.nan, math.inf, 1e300, 1e-300, 7.0)]
ARRAYS += [P.astype(dtype) for dtype in (int, bool, np.float16, np.float32, complex, object, str)]
ARRAYS += [P[::-1], np.asfortranarray(P), np.ma.masked_array(P, P > 0), P[:, :1], P[:1]]
JUNK = [*NUMBERS, *OTHERS, *ARRAYS]

junk = st.one_of(
    st.sampled_from(JUNK),
    st.floats(),
    st.integers(-5, 50),
    st.text(max_size=5),
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.int64, np.bool_]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6),
    ),
)
