import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_dict_unchanged,
    check_estimators_pickle,
    parametrize_with_checks,
)

from pu_shift import (
    MLP,
    Condition,
    DensityRatioClassifier,
    RiskMinimizationClassifier,
)
from pu_shift.estimators import LabelWarning
from pu_shift.evaluation.scorers import surrogate_scorer, zero_one_scorer
from tests.estimators.samples import FAST, GRID, PRIOR, RATIO, X_P, X_U
from tests.mixtures import mixture, pu_samples
from tests.networks import made

pytestmark = pytest.mark.filterwarnings(
    "ignore::pu_shift.ratios.base.GridEdgeWarning",
    "ignore::pu_shift.estimators.LabelWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


# scikit-learn's own checks, without a single exception besides the tag
# `poor_score`, which the test after this one makes up for.
@parametrize_with_checks(
    [
        DensityRatioClassifier(
            prior=0.5, estimator=make_pipeline(StandardScaler(), LogisticRegression())
        ),
        DensityRatioClassifier(prior=0.5, estimator=["linear", "nystroem"]),
        DensityRatioClassifier(prior=0.5, direction="u/p", basis="linear"),
        RiskMinimizationClassifier(prior=0.5, n_steps=50),
        RiskMinimizationClassifier(prior=0.5, n_steps=10, loss="double_hinge", basis="gaussian"),
    ]
)
# Some of their rows are a hundred standard deviations from 0.
@pytest.mark.filterwarnings(
    "ignore::pu_shift.ratios.kernels.ScaleWarning",
    "ignore::pu_shift.estimators.FallbackWarning",
)
# Some of their labels are drawn without a look at the rows.
@pytest.mark.filterwarnings("ignore::pu_shift.estimation.class_prior.PriorWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", [check_dict_unchanged, check_estimators_pickle])
@pytest.mark.filterwarnings("ignore::pu_shift.estimation.class_prior.PriorWarning")
def test_scikit_learn_checks_of_the_defaults(check):
    check("DensityRatioClassifier", DensityRatioClassifier())


@pytest.mark.parametrize(
    "classifier",
    [
        # Without positives in U the ratio has no bound: λ must not be too small.
        DensityRatioClassifier(prior=0.05, test_prior=0.5, lams=[1e-3, 1e-2, 1e-1]),
        RiskMinimizationClassifier(prior=0.05, test_prior=0.5),
        RiskMinimizationClassifier(prior=0.05, test_prior=0.5, loss="double_hinge"),
    ],
)
def test_the_checks_data_are_classified_once_their_condition_is_told(classifier):
    # Their unlabelled rows are nearly all negative and their test set is balanced.
    X, y = make_blobs(300, centers=2, random_state=0)
    X = StandardScaler().fit_transform(X)
    assert classifier.fit(X, y).score(X, y) > 0.83


def test_labels_0_and_minus_1_mean_unlabelled_and_name_the_classes():
    X = np.concatenate([X_P, X_U])
    y = np.repeat([1, 0], [len(X_P), len(X_U)])
    classifier = DensityRatioClassifier(PRIOR, **RATIO)
    zero = classifier.fit(X, y).predict(GRID)
    assert set(zero) == {0, 1}
    assert classifier.classes_.tolist() == [0, 1]
    minus = classifier.fit(X, 2 * y - 1).predict(GRID)
    assert classifier.classes_.tolist() == [-1, 1]
    np.testing.assert_array_equal(minus, 2 * zero - 1)
    np.testing.assert_array_equal(classifier.fit_pu(X_P, X_U).predict(GRID), minus)


def test_score_knows_every_spelling_of_negative(ratio):
    X, y = mixture(500, 0.5, np.random.default_rng(1))
    accuracy = ratio.score(X, y)
    assert accuracy == np.mean(ratio.predict(X) == y)
    assert ratio.score(X, np.maximum(y, 0)) == accuracy
    weights = (y > 0).astype(float)
    assert ratio.score(X, y, weights) == np.mean(ratio.predict(X)[y > 0] == 1)
    with pytest.raises(ValueError, match="^y must hold one of the classes \\[-1, 1\\]"):
        ratio.score(X, y + 3)
    with pytest.raises(ValueError, match="^y must hold one of the classes"):
        ratio.score(X, y[:-1])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 1, 1, 1], "y must hold two classes.*got \\[1\\]"),
        ([0, -1, 0, -1], "y must hold two classes.*got \\[-1, 0\\]"),
        ([0, 1, 2, 1], "Only binary classification.*multiclass.*got 3 classes"),
        ([0, 0, 0, 1], "X must have at least 3 positive and 3 unlabelled rows, got 1 and 3"),
    ],
)
def test_labels_that_are_no_pu_labels_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        DensityRatioClassifier(0.5).fit(np.arange(8.0).reshape(4, 2), labels)


@pytest.mark.filterwarnings("always::pu_shift.estimators.LabelWarning")
@pytest.mark.parametrize("labels", [[1, 2], [-2, 1], [0, 5], ["sick", "well"], ["neg", "pos"]])
def test_labels_that_may_mean_the_opposite_are_reported(labels):
    X = np.random.default_rng(0).normal(size=(40, 1))
    message = f"{labels}: the greater one is taken as positive, {labels[1]!r}"
    with pytest.warns(LabelWarning, match=re.escape(message)):
        DensityRatioClassifier(0.5).fit(X, np.repeat(labels, 20))


@pytest.mark.parametrize("model", [None, made(MLP, 1, 4, 1)])
def test_a_fit_that_fails_leaves_the_last_one_as_it_was(model):
    options = {"solver": "amsgrad", "n_steps": 20, "safe": False}
    classifier = RiskMinimizationClassifier(PRIOR, 0.1, model=model, **options)
    before = classifier.fit_pu(X_P, X_U).predict_proba(GRID)
    classifier.set_params(test_prior=0.9, learning_rate=1e300)
    with pytest.raises(ValueError, match="diverged|learning_rate"), np.errstate(all="ignore"):
        classifier.fit_pu(X_P[::-1], X_U[::-1])
    with pytest.raises(NotFittedError, match="^fitted for Condition.*test_prior=0.1"):
        classifier.predict(GRID)
    np.testing.assert_array_equal(classifier.set_params(test_prior=0.1).predict_proba(GRID), before)


def test_a_prior_that_is_not_given_is_estimated():
    P, U = pu_samples(300, 1200, 0.4, seed=3, gap=4.0)
    ratio = DensityRatioClassifier(**RATIO)
    with pytest.raises(NotFittedError):
        _ = ratio.condition
    ratio.fit_pu(P, U)
    assert ratio.prior_ == pytest.approx(0.4, abs=0.1)
    assert ratio.condition == Condition(ratio.prior_)
    risk = RiskMinimizationClassifier(test_prior=0.6, **FAST).fit_pu(P, U)
    assert risk.condition_ == Condition(risk.prior_, 0.6)
    X, y = mixture(2000, 0.6, np.random.default_rng(4), gap=4.0)
    assert risk.score(X, y) > 0.93


@pytest.mark.parametrize(
    ("classifier", "message"),
    [
        (DensityRatioClassifier(1.5), "prior must lie strictly between 0 and 1, got 1.5"),
        (DensityRatioClassifier(0.5, 0.0), "test_prior must lie strictly between 0 and 1"),
        (DensityRatioClassifier(0.5, direction="n/u"), "direction must be one of"),
        (DensityRatioClassifier(0.5, random_state=-1), "random_state must be an integer >= 0"),
        (DensityRatioClassifier(0.5, random_state="x"), "random_state must be an integer >= 0"),
        (RiskMinimizationClassifier(0.5, alpha=2), "alpha must lie strictly between 0 and 1"),
        (RiskMinimizationClassifier(0.5, loss="zero_one"), "loss must be one of"),
        (RiskMinimizationClassifier(0.5, basis="tree"), "basis must be one of"),
        (
            RiskMinimizationClassifier(0.5, correction="nn"),
            "correction must be one of 'auto', None",
        ),
        (RiskMinimizationClassifier(0.5, scaling="minmax"), "scaling must be one of 'auto'"),
        (RiskMinimizationClassifier(0.5, criterion="auc"), "criterion must be one of"),
        (RiskMinimizationClassifier(0.5, width_rule="own"), "width_rule must be one of 'risk'"),
        (RiskMinimizationClassifier(0.5, lams=-1.0), "lams must be finite numbers >= 0"),
        (RiskMinimizationClassifier(0.5, basis="gaussian", widths=[0]), "widths must be finite"),
    ],
)
def test_bad_parameters_are_named_in_one_line(classifier, message):
    with pytest.raises(ValueError, match=f"^{message}") as error:
        classifier.fit_pu(X_P, X_U)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([1.0, 2.0]), "X_u: Expected 2D array, got 1D array instead: Reshape your data"),
        (np.array([[1.0], [np.nan]]), "Input X_u contains NaN: impute missing values"),
        (np.array([[1.0], [np.inf]]), "Input X_u contains infinity"),
        (np.array([[1.0, 2.0]]), "X_u has 2 features, but"),
        (np.array([["red"]]), "X_u: could not convert string"),
    ],
)
@pytest.mark.parametrize("kind", [DensityRatioClassifier, RiskMinimizationClassifier])
def test_bad_rows_are_named_in_one_line(kind, X, message):
    with pytest.raises(ValueError, match=f"^{message}") as error:
        kind(PRIOR).fit_pu(X_P, X)
    assert "\n" not in str(error.value)


def test_random_state_none_differs_and_a_number_repeats():
    def ratio_of(random_state):
        classifier = DensityRatioClassifier(
            PRIOR, n_centers=5, widths=1.0, lams=0.1, random_state=random_state
        )
        return classifier.fit_pu(X_P, X_U).predict_ratio(GRID)

    np.testing.assert_array_equal(ratio_of(3), ratio_of(np.int64(3)))
    assert (ratio_of(None) != ratio_of(None)).any()


def test_pipeline_grid_search_and_feature_names():
    X = pd.DataFrame(np.concatenate([X_P, X_U]), columns=["size"])
    y = np.repeat([1, 0], [len(X_P), len(X_U)])
    pipeline = make_pipeline(
        StandardScaler().set_output(transform="pandas"), DensityRatioClassifier(PRIOR, 0.6)
    )
    grid = {"densityratioclassifier__widths": [1e-3, 1.0], "densityratioclassifier__lams": [0.01]}
    search = GridSearchCV(pipeline, grid, scoring=zero_one_scorer, cv=3).fit(X, y)
    assert search.best_params_["densityratioclassifier__widths"] == 1.0
    best = search.best_estimator_
    assert best[-1].feature_names_in_.tolist() == ["size"]
    low, high = (
        best.set_params(densityratioclassifier__test_prior=p).predict(X).sum() for p in (0.1, 0.9)
    )
    assert low < high
    risks = GridSearchCV(
        RiskMinimizationClassifier(PRIOR, 0.6, n_steps=200, learning_rate=0.02, safe=False),
        {"lams": [0.0, 100.0]},
        scoring=surrogate_scorer,
        cv=3,
    ).fit(X, y)
    assert risks.best_params_ == {"lams": 0.0}
    with pytest.raises(ValueError, match="feature names"):
        risks.predict(X.rename(columns={"size": "weight"}))


def test_float32_rows_stay_float32():
    classifier = RiskMinimizationClassifier(PRIOR, **FAST)
    classifier.fit_pu(X_P.astype(np.float32), X_U.astype(np.float32))
    assert classifier.decision_function(GRID.astype(np.float32)).dtype == np.float32
    mixed = classifier.fit_pu(X_P, X_U.astype(np.float32)).decision_function(GRID)
    assert mixed.dtype == np.float64


def test_the_order_in_memory_changes_nothing():
    X_p, X_u = pu_samples(60, 180, PRIOR, d=3)
    rows, columns = (
        DensityRatioClassifier(PRIOR, estimator="linear").fit_pu(order(X_p), order(X_u))
        for order in (np.ascontiguousarray, np.asfortranarray)
    )
    np.testing.assert_array_equal(rows.predict_proba(X_u), columns.predict_proba(X_u))


@pytest.mark.parametrize("gap", [np.nan, None])
@pytest.mark.parametrize("label", [1, "sick"])
def test_missing_labels_are_unlabelled_rows(gap, label):
    X = np.concatenate(pu_samples(40, 90, 0.4))
    y = np.repeat([1, 0], [40, 90])
    given = [label if value else gap for value in y]
    found = DensityRatioClassifier(0.4, estimator="linear").fit(X, given)
    expected = DensityRatioClassifier(0.4, estimator="linear").fit(X, y)
    assert found.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


@pytest.mark.parametrize("labels", [[1, 0, None], [0, None], ["sick", "well", None]])
def test_missing_labels_beside_others_are_refused(labels):
    X = np.zeros((len(labels), 1))
    with pytest.raises(ValueError, match="^y must be 1 for labelled .*, missing ones; pos_label"):
        DensityRatioClassifier(0.4).fit(X, labels)


@pytest.mark.filterwarnings("error::pu_shift.estimators.base.LabelWarning")
@pytest.mark.parametrize("unlabelled", ["unlabelled", "unlabeled"])
def test_words_for_labels_are_known(unlabelled):
    X = np.concatenate(pu_samples(40, 90, 0.4))
    y = np.repeat(["positive", unlabelled], [40, 90])
    found = DensityRatioClassifier(0.4, estimator="linear").fit(X, y)
    assert found.classes_.tolist() == [unlabelled, "positive"]
