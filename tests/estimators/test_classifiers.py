import pickle
import re
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pu_shift import (
    MLP,
    Condition,
    DensityRatioClassifier,
    RiskMinimizationClassifier,
)
from pu_shift._chainer import chainer
from pu_shift.device import DeviceError
from pu_shift.estimators.classifiers import (
    FallbackWarning,
    LabelWarning,
    NonConvexWarning,
    _zero_one_risk,
)
from pu_shift.estimators.cross_validation import PURiskScorer, surrogate_scorer, zero_one_scorer
from pu_shift.files.models import load_model, save_model
from pu_shift.losses import LOSSES, Loss, surrogates
from pu_shift.ratios.ulsif import GridEdgeWarning
from tests.mixtures import mixture, posterior, pu_samples
from tests.networks import made

PRIOR = 0.3
X_P, X_U = pu_samples(400, 1600, PRIOR)
GRID = np.linspace(-3.0, 3.0, 121)[:, None]
FAST = {"lams": [1e-3, 1e-1], "n_steps": 400, "learning_rate": 0.02}
RATIO = {"widths": [1.0, 2.0], "lams": [1e-3, 1e-2, 1e-1, 1.0]}

pytestmark = pytest.mark.filterwarnings(
    "ignore::pu_shift.ratios.ulsif.GridEdgeWarning",
    "ignore::pu_shift.estimators.classifiers.LabelWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


@pytest.fixture(scope="module")
def ratio():
    return DensityRatioClassifier(PRIOR, **RATIO).fit_pu(X_P, X_U)


# scikit-learn's own checks, without a single exception besides the tag
# `poor_score`, which the test after this one makes up for.
@parametrize_with_checks(
    [
        DensityRatioClassifier(estimator="ulsif"),
        DensityRatioClassifier(prior=0.5),
        DensityRatioClassifier(prior=0.5, estimator=LogisticRegression()),
        DensityRatioClassifier(
            prior=0.5, estimator=HistGradientBoostingClassifier(max_iter=9, min_samples_leaf=2)
        ),
        DensityRatioClassifier(
            prior=0.5, estimator=make_pipeline(StandardScaler(), LogisticRegression())
        ),
        DensityRatioClassifier(prior=0.5, estimator=["linear", "nystroem"]),
        DensityRatioClassifier(prior=0.5, direction="u/p", basis="linear"),
        RiskMinimizationClassifier(prior=0.5, n_steps=50),
        RiskMinimizationClassifier(prior=0.5, n_steps=10, loss="double_hinge", basis="gaussian"),
        RiskMinimizationClassifier(
            prior=0.05, test_prior=0.5, n_steps=30, loss="logistic", correction="ascent"
        ),
    ]
)
# Some of their rows are a hundred standard deviations from 0.
@pytest.mark.filterwarnings(
    "ignore::pu_shift.ratios.kernels.ScaleWarning",
    "ignore::pu_shift.estimators.classifiers.FallbackWarning",
)
# Some of their labels are drawn without a look at the rows.
@pytest.mark.filterwarnings("ignore::pu_shift.estimation.class_prior.PriorWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


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


@pytest.mark.filterwarnings("always::pu_shift.estimators.classifiers.LabelWarning")
@pytest.mark.parametrize(
    "labels", [[1, 2], [-2, 1], [0, 5], ["positive", "unlabelled"], ["P", "U"], ["neg", "pos"]]
)
def test_labels_that_may_mean_the_opposite_are_reported(labels):
    X = np.random.default_rng(0).normal(size=(40, 1))
    message = f"{labels}: the greater one is taken as positive, {labels[1]!r}"
    with pytest.warns(LabelWarning, match=re.escape(message)):
        DensityRatioClassifier(0.5).fit(X, np.repeat(labels, 20))


@pytest.mark.filterwarnings("error::pu_shift.estimators.classifiers.LabelWarning")
@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], [0.0, 1.0], [False, True]])
def test_the_usual_labels_need_no_warning(labels):
    X = np.random.default_rng(0).normal(size=(40, 1))
    DensityRatioClassifier(0.5).fit(X, np.repeat(labels, 20))


@pytest.mark.parametrize("model", [None, made(MLP, 1, 4, 1)])
def test_a_fit_that_fails_leaves_the_last_one_as_it_was(model):
    classifier = RiskMinimizationClassifier(PRIOR, 0.1, model=model, n_steps=20, safe=False)
    before = classifier.fit_pu(X_P, X_U).predict_proba(GRID)
    classifier.set_params(test_prior=0.9, learning_rate=1e300)
    with pytest.raises(ValueError, match="diverged|learning_rate"), np.errstate(all="ignore"):
        classifier.fit_pu(X_P[::-1], X_U[::-1])
    with pytest.raises(NotFittedError, match="^fitted for Condition.*test_prior=0.1"):
        classifier.predict(GRID)
    np.testing.assert_array_equal(classifier.set_params(test_prior=0.1).predict_proba(GRID), before)


def test_scores_of_one_loss_are_not_read_as_those_of_another():
    classifier = RiskMinimizationClassifier(PRIOR, n_steps=20, safe=False).fit_pu(X_P, X_U)
    classifier.set_params(loss="logistic")
    with pytest.raises(NotFittedError, match="^loss was 'squared' in fit and is now 'logistic'"):
        classifier.predict_proba(GRID)


@pytest.mark.parametrize("direction", ["p/u", "u/p"])
@pytest.mark.parametrize(("test_prior", "alpha"), [(None, 0.5), (0.7, 0.5), (0.1, 0.3)])
def test_ratio_probabilities_approach_the_posterior_at_the_test_prior(direction, test_prior, alpha):
    classifier = DensityRatioClassifier(PRIOR, test_prior, alpha, direction, **RATIO)
    classifier.fit_pu(X_P, X_U)
    proba = classifier.predict_proba(GRID)
    truth = posterior(GRID, test_prior or PRIOR)
    assert proba.min() >= 0.0
    assert proba.max() <= 1.0
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    # u/p has no upper bound and is fitted less well, as the paper finds.
    assert np.mean(np.abs(proba[:, 1] - truth)) < (0.07 if direction == "p/u" else 0.2)
    # The decision of least expected cost: positive where the posterior exceeds α.
    far = np.abs(proba[:, 1] - alpha) > 1e-9
    np.testing.assert_array_equal((classifier.predict(GRID) == 1)[far], (proba[:, 1] > alpha)[far])


@given(prior=st.floats(0.02, 0.98), test_prior=st.floats(0.02, 0.98), alpha=st.floats(0.02, 0.98))
def test_a_new_condition_needs_no_fit(ratio, prior, test_prior, alpha):
    changed = pickle.loads(pickle.dumps(ratio)).set_params(
        prior=prior, test_prior=test_prior, alpha=alpha
    )
    refitted = clone(changed).set_params(widths=ratio.ratio_.width, lams=ratio.ratio_.lam)
    refitted.fit_pu(X_P[:100], X_U[:100])
    refitted.ratio_ = ratio.ratio_
    np.testing.assert_array_equal(changed.predict(GRID), refitted.predict(GRID))
    assert changed.condition == Condition(prior, test_prior, alpha)


def test_more_positives_to_come_never_lose_a_positive_prediction(ratio):
    rows = ratio.predict_many(GRID, [{"test_prior": p} for p in (0.05, 0.3, 0.5, 0.7, 0.95)])
    assert (np.diff(rows, axis=0) >= 0).all()
    rows = ratio.predict_many(GRID, [{"alpha": a} for a in (0.05, 0.3, 0.5, 0.7, 0.95)])
    assert (np.diff(rows, axis=0) <= 0).all()


def test_many_conditions_take_one_evaluation(ratio, monkeypatch):
    calls = []
    evaluate = type(ratio.ratio_).__call__

    def counted(self, X):
        calls.append(len(X))
        return evaluate(self, X)

    monkeypatch.setattr(type(ratio.ratio_), "__call__", counted)
    conditions = [Condition(PRIOR, 0.7), {"alpha": 0.2}, {"prior": 0.4, "test_prior": 0.1}, {}]
    many = ratio.predict_many(GRID, conditions)
    assert calls == [len(GRID)]
    one_by_one = [
        ratio.set_params(prior=PRIOR, test_prior=t, alpha=a).predict(GRID)
        for t, a in ((0.7, 0.5), (None, 0.2))
    ]
    ratio.set_params(test_prior=None, alpha=0.5)
    np.testing.assert_array_equal(many[:2], one_by_one)
    np.testing.assert_array_equal(many[3], ratio.predict(GRID))


@pytest.mark.parametrize("conditions", [[], [0.5], [{"gamma": 0.5}]])
def test_conditions_that_are_none_are_refused(ratio, conditions):
    with pytest.raises(ValueError, match="^conditions must"):
        ratio.predict_many(GRID, conditions)


def test_another_condition_for_one_call_leaves_the_classifier_as_it_is(ratio):
    before = vars(ratio).copy()
    changed = clone(ratio).set_params(test_prior=0.7, alpha=0.2).fit_pu(X_P, X_U)
    given = {"test_prior": 0.7, "alpha": 0.2}
    np.testing.assert_array_equal(ratio.predict(GRID, **given), changed.predict(GRID))
    np.testing.assert_array_equal(
        ratio.decision_function(GRID, **given), changed.decision_function(GRID)
    )
    np.testing.assert_array_equal(
        ratio.predict_proba(GRID, test_prior=0.7), changed.predict_proba(GRID)
    )
    found = ratio.predict(X_U, test_prior="estimate")
    np.testing.assert_array_equal(
        found, changed.set_params(test_prior="estimate", alpha=0.5).predict(X_U)
    )
    many = ratio.predict(GRID, alpha=0.2, conditions=[{"test_prior": 0.7}, {"alpha": 0.5}])
    np.testing.assert_array_equal(many, [ratio.predict(GRID, **given), ratio.predict(GRID)])
    assert vars(ratio) == before
    with pytest.raises(ValueError, match="^test_prior must lie strictly between 0 and 1, got 7"):
        ratio.predict_proba(GRID, test_prior=7)


def test_a_risk_minimiser_refuses_another_condition_for_one_call():
    classifier = RiskMinimizationClassifier(PRIOR, 0.6, n_steps=20, safe=False).fit_pu(X_P, X_U)
    np.testing.assert_array_equal(
        classifier.predict(GRID, test_prior=0.6, alpha=0.5), classifier.predict(GRID)
    )
    for call in (classifier.predict, classifier.decision_function, classifier.predict_proba):
        with pytest.raises(NotFittedError, match="^fitted for Condition.*test_prior=0.6"):
            call(GRID, test_prior=0.7)


@pytest.fixture(params=[False, True], ids=["routing off", "routing on"])
def routing(request):
    if not request.param:
        yield False
        return
    try:
        with config_context(enable_metadata_routing=True):
            yield True
    except TypeError:
        pytest.skip("scikit-learn before 1.3 routes nothing")


def test_a_pipeline_hands_conditions_and_weights_on(routing):
    X = np.concatenate([X_P, X_U])
    y = np.repeat([1, 0], [len(X_P), len(X_U)])
    weights = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    classifier = DensityRatioClassifier(PRIOR, estimator=LogisticRegression())
    name = "sample_weight"
    if routing:
        classifier.set_fit_request(sample_weight=True)
        classifier.set_predict_request(test_prior=True, alpha=True, conditions=True)
        classifier.set_predict_proba_request(test_prior=True)
    else:
        name = f"densityratioclassifier__{name}"
    scaler = StandardScaler()
    if routing:
        scaler.set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, classifier).fit(X, y, **{name: weights})
    rows = pipeline[0].transform(GRID)
    alone = clone(classifier).fit(pipeline[0].transform(X), y, sample_weight=weights)
    months = [{"test_prior": 0.2}, {"test_prior": 0.8}]
    np.testing.assert_array_equal(
        pipeline.predict(GRID, test_prior=0.7, alpha=0.2),
        alone.predict(rows, test_prior=0.7, alpha=0.2),
    )
    np.testing.assert_array_equal(
        pipeline.predict(GRID, conditions=months), alone.predict_many(rows, months)
    )
    np.testing.assert_array_equal(
        pipeline.predict_proba(GRID, test_prior=0.7), alone.predict_proba(rows, test_prior=0.7)
    )
    assert pipeline[-1].test_prior is None


def test_a_changed_direction_asks_for_a_fit(ratio):
    changed = pickle.loads(pickle.dumps(ratio)).set_params(direction="u/p")
    with pytest.raises(NotFittedError, match="^direction was 'p/u' in fit and is now 'u/p'"):
        changed.predict(GRID)


@pytest.mark.parametrize("loss", surrogates())
@pytest.mark.parametrize("correction", [None, "ascent"])
@pytest.mark.parametrize("basis", ["linear", "gaussian"])
def test_risk_minimisers_come_near_the_bayes_classifier(loss, correction, basis):
    classifier = RiskMinimizationClassifier(
        PRIOR, 0.6, loss=loss, basis=basis, correction=correction, n_centers=30, **FAST
    ).fit_pu(X_P, X_U)
    X, y = mixture(4000, 0.6, np.random.default_rng(2))
    best = np.mean((posterior(X, 0.6) > 0.5) == (y > 0))
    assert classifier.score(X, y) > best - 0.03
    proba = classifier.predict_proba(X)[:, 1]
    assert proba.min() >= 0.0
    assert proba.max() <= 1.0
    np.testing.assert_array_equal(proba > 0.5, classifier.predict(X) > 0)
    if loss == "logistic" or basis == "gaussian":
        # A line cannot follow the posterior's S; a sigmoid or a kernel can.
        assert np.mean(np.abs(proba - posterior(X, 0.6))) < 0.12


class _SteepLogistic(Loss):
    """log(1 + exp(−3z)): its posterior is 1/(1 + exp(−3g))."""

    name = "steep_logistic"

    def _value(self, xp, z):
        return LOSSES["logistic"].value(3.0 * z)

    def _derivative(self, xp, z):
        return 3.0 * LOSSES["logistic"].derivative(3.0 * z)


class _Hinge(Loss):
    """max(0, 1 − z), which determines only the sign of q − ½."""

    name = "hinge"

    def _value(self, xp, z):
        return xp.clip(1.0 - z, 0.0, xp.inf)

    def _derivative(self, xp, z):
        return -xp.astype(z < 1.0, z.dtype)


@pytest.mark.parametrize("loss", [_SteepLogistic(), _Hinge()], ids=repr)
def test_a_new_loss_has_right_probabilities_and_the_right_constant(loss, monkeypatch):
    monkeypatch.setitem(LOSSES, loss.name, loss)
    classifier = RiskMinimizationClassifier(PRIOR, 0.6, loss=loss.name, **FAST).fit_pu(X_P, X_U)
    X, _ = mixture(4000, 0.6, np.random.default_rng(2))
    found = classifier.predict_proba(X)[:, 1]
    assert np.mean(np.abs(found - posterior(X, 0.6))) < (0.05 if loss.is_proper else 0.12)
    # P and U are the same: no model is better than the constant, whose posterior is π′.
    with pytest.warns(FallbackWarning):
        constant = RiskMinimizationClassifier(0.1, loss=loss.name, **FAST).fit_pu(X_U, X_U)
    np.testing.assert_allclose(constant.predict_proba(GRID)[:, 1], 0.1, rtol=1e-6)
    held_out = np.concatenate([X_P, X_U]), np.repeat([1, 0], [len(X_P), len(X_U)])
    ratio = DensityRatioClassifier(PRIOR, 0.6, widths=1.0, lams=0.1).fit_pu(X_P, X_U)
    # The scorer turns posteriors into scores on the scale of the loss.
    assert -0.5 < PURiskScorer(loss.name)(ratio, *held_out) <= 0.0


@pytest.mark.parametrize("loss", ["logistic", "double_hinge"])
def test_risk_probabilities_are_at_the_test_prior_whatever_the_cost(loss):
    symmetric, costly = (
        RiskMinimizationClassifier(PRIOR, 0.5, alpha, loss=loss, **FAST).fit_pu(X_P, X_U)
        for alpha in (0.5, 0.25)
    )
    truth = posterior(GRID, 0.5)
    for classifier in (symmetric, costly):
        assert np.mean(np.abs(classifier.predict_proba(GRID)[:, 1] - truth)) < 0.12
    # The decision is at the posterior α, not at ½.
    np.testing.assert_array_equal(costly.predict(GRID) > 0, costly.predict_proba(GRID)[:, 1] > 0.25)
    assert costly.predict(GRID).sum() > symmetric.predict(GRID).sum()


@pytest.mark.parametrize(("test_prior", "alpha"), [(0.3, 0.2), (0.6, 0.8)])
def test_equivalent_conditions_give_the_same_risk_minimiser(test_prior, alpha):
    costly = RiskMinimizationClassifier(PRIOR, test_prior, alpha, **FAST).fit_pu(X_P, X_U)
    equal = Condition(PRIOR, test_prior, alpha).prior_unif
    shifted = RiskMinimizationClassifier(PRIOR, equal, **FAST).fit_pu(X_P, X_U)
    np.testing.assert_array_equal(costly.decision_function(GRID), shifted.decision_function(GRID))


@pytest.mark.parametrize("change", [{"test_prior": 0.7}, {"alpha": 0.2}, {"prior": 0.4}])
def test_the_risk_minimiser_asks_for_a_fit_after_a_change(change):
    classifier = RiskMinimizationClassifier(PRIOR, **FAST).fit_pu(X_P, X_U)
    before = classifier.predict(GRID)
    classifier.set_params(**change)
    for method in (classifier.predict, classifier.predict_proba, classifier.decision_function):
        with pytest.raises(NotFittedError, match="^fitted for Condition.*call fit again"):
            method(GRID)
    classifier.fit_pu(X_P, X_U).predict(GRID)
    classifier.set_params(prior=PRIOR, test_prior=None, alpha=0.5).fit_pu(X_P, X_U)
    np.testing.assert_array_equal(classifier.predict(GRID), before)


def test_the_search_takes_the_candidate_of_least_held_out_risk():
    one = {
        lam: RiskMinimizationClassifier(PRIOR, basis="gaussian", widths=[1.0], lams=lam, n_steps=99)
        for lam in (0.0, 100.0)
    }
    searched = clone(one[0.0]).set_params(lams=[100.0, 0.0], widths=[1e-3, 1.0])
    searched.fit_pu(X_P, X_U)
    assert (searched.width_, searched.lam_) == (1.0, 0.0)
    np.testing.assert_allclose(
        searched.decision_function(GRID), one[0.0].fit_pu(X_P, X_U).decision_function(GRID)
    )
    by_error = clone(searched).set_params(criterion="zero_one").fit_pu(X_P, X_U)
    assert by_error.width_ == 1.0


def test_the_width_may_be_the_one_that_the_density_ratio_takes():
    shared = {"widths": [1.0, 2.0, 3.0, 5.0, 8.0, 16.0], "n_folds": 4, "random_state": 3}
    ratio = DensityRatioClassifier(PRIOR, estimator="ulsif", n_centers=100, lams=1e-2, **shared)
    width = ratio.fit_pu(X_P, X_U).ratio_.width
    classifier = RiskMinimizationClassifier(
        PRIOR, basis="gaussian", width_rule="ulsif", lams=0.0, n_steps=50, **shared
    )
    fitted = classifier.fit_pu(X_P, X_U)
    assert fitted.width_ == width
    assert {one.width_ for one in fitted.fit_many(X_P, X_U, [{}, {"test_prior": 0.9}])} == {width}
    alone = clone(classifier).set_params(widths=width, width_rule="risk").fit_pu(X_P, X_U)
    np.testing.assert_array_equal(fitted.decision_function(GRID), alone.decision_function(GRID))
    assert clone(classifier).set_params(width_rule="risk").fit_pu(X_P, X_U).width_ != width


@pytest.mark.parametrize(("d", "expected"), [(2, 50), (60, 60)])
def test_there_may_be_as_many_centres_as_features(d, expected):
    X = np.random.default_rng(0).normal(size=(200, d))
    classifier = RiskMinimizationClassifier(
        PRIOR, basis="gaussian", n_centers="features", widths=9.0, lams=0.0, n_steps=1, safe=False
    )
    assert len(classifier.fit_pu(X[:90], X[90:]).model_.centers) == expected


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


MANY = [Condition(PRIOR, 0.6), Condition(PRIOR, 0.3, 0.2), {"test_prior": 0.8}]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "double_hinge", "n_batches": 3},
        {"basis": "gaussian", "n_centers": 8, "width_factors": [0.5, 1.0]},
        {"loss": "logistic", "correction": "ascent", "criterion": "zero_one"},
        {"model": made(MLP, 1, 4, 1)},
    ],
)
def test_fit_many_is_a_fit_for_each_condition(options):
    classifier = RiskMinimizationClassifier(PRIOR, n_steps=60, safe=False, **options)
    fitted = classifier.fit_many(X_P, X_U, MANY)
    assert not hasattr(classifier, "model_")
    for one, condition in zip(fitted, [*MANY[:2], Condition(PRIOR, 0.8)]):
        alone = clone(classifier).set_params(
            prior=condition.prior, test_prior=condition.test_prior, alpha=condition.alpha
        )
        alone.fit_pu(X_P, X_U)
        assert one.condition == condition
        np.testing.assert_equal((one.width_, one.lam_), (alone.width_, alone.lam_))
        tolerance = 1e-4 if "model" in options else 1e-7
        np.testing.assert_allclose(
            one.decision_function(GRID), alone.decision_function(GRID), atol=tolerance
        )
        np.testing.assert_allclose(
            one.predict_proba(GRID), alone.predict_proba(GRID), atol=100 * tolerance
        )
        assert one.classes_.tolist() == [-1, 1]


def test_fit_many_estimates_a_prior_that_is_not_given_once():
    fitted = RiskMinimizationClassifier(n_steps=5, safe=False).fit_many(
        X_P, X_U, [{"test_prior": 0.3}, {"alpha": 0.1}]
    )
    assert fitted[0].prior_ == fitted[1].prior_
    assert fitted[1].condition == Condition(fitted[0].prior_, alpha=0.1)
    assert fitted[1].test_prior == fitted[1].prior_


@pytest.mark.parametrize(
    ("conditions", "message"),
    [([], "conditions must not be empty"), ([{"pi": 1}], "conditions must be Condition objects")],
)
def test_fit_many_refuses_bad_conditions(conditions, message):
    with pytest.raises(ValueError, match=message):
        RiskMinimizationClassifier(PRIOR).fit_many(X_P, X_U, conditions)


class Deep(chainer.Chain):
    """A network whose scores have a second axis of length 1."""

    def __init__(self, n_out=1):
        super().__init__()
        with self.init_scope():
            weights = np.linspace(-1, 1, 8, dtype=np.float32)
            self.first = chainer.links.Linear(1, 8, initialW=weights[:, None])
            self.second = chainer.links.Linear(8, n_out, initialW=np.tile(weights, (n_out, 1)))

    def forward(self, x):
        return self.second(chainer.functions.tanh(self.first(x)))


@pytest.mark.parametrize("model", [made(MLP, 1, 16, 1), made(Deep)])
@pytest.mark.parametrize(("correction", "alpha"), [(None, 0.5), ("ascent", 0.3)])
def test_networks_are_trained_by_the_same_estimator(model, correction, alpha):
    before = [parameter.array.copy() for parameter in model.params()]
    classifier = RiskMinimizationClassifier(
        PRIOR, 0.6, alpha, loss="logistic", correction=correction, model=model,
        n_steps=300, n_batches=4, learning_rate=0.01,
    )  # fmt: skip
    X, y = mixture(2000, 0.6, np.random.default_rng(2))
    cost = np.where(y > 0, 1.0 - alpha, alpha)
    best = np.average((posterior(X, 0.6) > alpha) == (y > 0), weights=cost)
    copied = clone(classifier).fit_pu(X_P, X_U)
    assert copied.score(X, y, cost) > best - 0.04
    for old, parameter in zip(before, model.params()):
        np.testing.assert_array_equal(old, parameter.array)
    again = classifier.fit_pu(X_P, X_U)
    np.testing.assert_array_equal(again.decision_function(X), copied.decision_function(X))
    np.testing.assert_allclose(
        pickle.loads(pickle.dumps(again)).predict_proba(X), again.predict_proba(X)
    )


def test_a_networks_double_hinge_is_calibrated_on_its_training_scores():
    classifier = RiskMinimizationClassifier(
        PRIOR, 0.5, loss="double_hinge", model=MLP(1, 16, 1), n_steps=200, learning_rate=0.01
    ).fit_pu(X_P, X_U)
    assert np.mean(np.abs(classifier.predict_proba(GRID)[:, 1] - posterior(GRID, 0.5))) < 0.15


def test_the_network_must_give_one_score_per_row_and_one_lam():
    with pytest.raises(ValueError, match="^model must give one score per row, got shape"):
        RiskMinimizationClassifier(PRIOR, model=Deep(2)).fit_pu(X_P, X_U)
    with pytest.raises(ValueError, match="^lams must be one number with model, got 2"):
        RiskMinimizationClassifier(PRIOR, model=Deep(), lams=[0.0, 1.0]).fit_pu(X_P, X_U)
    decayed = RiskMinimizationClassifier(PRIOR, model=Deep(), lams=10.0, n_steps=99)
    free = RiskMinimizationClassifier(PRIOR, model=Deep(), n_steps=99)
    large, small = (
        sum(float((p.array**2).sum()) for p in c.fit_pu(X_P, X_U).model_.params())
        for c in (free, decayed)
    )
    assert small < large


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


def test_an_absent_gpu_is_a_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match="^gpu 0 needs CuPy"):
        RiskMinimizationClassifier(PRIOR, gpu=0).fit_pu(X_P, X_U)


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


@pytest.mark.parametrize(("test_prior", "correction"), [(0.3, None), (0.8, None), (0.1, "ascent")])
def test_the_automatic_correction_follows_the_theorems(test_prior, correction):
    options = {"test_prior": test_prior, "lams": 0.01, "n_steps": 300}
    own, forced = (
        RiskMinimizationClassifier(PRIOR, correction=c, safe=False, **options).fit_pu(X_P, X_U)
        for c in ("auto", correction)
    )
    assert Condition(PRIOR, test_prior).is_convex == (correction is None)
    np.testing.assert_array_equal(own.decision_function(GRID), forced.decision_function(GRID))


def test_an_unbiased_risk_that_is_not_convex_is_warned_of():
    classifier = RiskMinimizationClassifier(PRIOR, 0.15, correction=None, **FAST)
    with pytest.warns(NonConvexWarning, match="^the unbiased risk is not convex"):
        classifier.fit_pu(X_P, X_U)


@pytest.mark.parametrize("loss", ["squared", "double_hinge", "logistic", "modified_huber"])
@pytest.mark.parametrize("test_prior", [0.2, 0.6])
def test_a_model_that_knows_nothing_becomes_the_best_constant(loss, test_prior):
    rng = np.random.default_rng(0)
    X_p, X_u = rng.normal(size=(60, 2)), rng.normal(size=(240, 2))
    classifier = RiskMinimizationClassifier(0.3, test_prior, loss=loss, n_steps=50)
    with pytest.warns(FallbackWarning, match="^the model was replaced by a constant"):
        classifier.fit_pu(X_p, X_u)
    assert classifier.fallback_
    assert set(classifier.predict(X_u)) == {1 if test_prior > 0.5 else -1}
    np.testing.assert_allclose(classifier.predict_proba(X_u)[:, 1], test_prior)


def test_a_model_that_knows_something_stays():
    for test_prior in (0.1, 0.3, 0.9):
        classifier = RiskMinimizationClassifier(PRIOR, test_prior, **FAST).fit_pu(X_P, X_U)
        assert not classifier.fallback_
        X, y = mixture(4000, test_prior, np.random.default_rng(1))
        assert classifier.score(X, y) > max(test_prior, 1.0 - test_prior)


def test_the_zero_one_risk_and_its_error_are_those_of_many_draws():
    condition, rng = Condition(0.3, 0.6), np.random.default_rng(0)
    draws = []
    for _ in range(400):
        scores_p = mixture(100, 1.0, rng)[0][:, 0]
        y = np.where(rng.random(400) < 0.3, 1, -1)
        scores_u = rng.normal(size=400) + y
        draws.append(_zero_one_risk((scores_p, scores_u), condition))
    risks, errors = np.transpose(draws)
    truth = norm.cdf(-1.0)  # both kinds of error
    assert risks.mean() == pytest.approx(truth, abs=0.01)
    assert errors.mean() == pytest.approx(risks.std(), rel=0.15)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_training_that_is_stopped_early_is_warned_of():
    options = {"lams": 0.0, "learning_rate": 1e-3}
    with pytest.warns(ConvergenceWarning, match="last tenth of n_steps = 30"):
        RiskMinimizationClassifier(PRIOR, 0.6, n_steps=30, **options).fit_pu(X_P, X_U)
    RiskMinimizationClassifier(PRIOR, 0.6, lams=0.0, n_steps=1000).fit_pu(X_P, X_U)


@pytest.mark.filterwarnings("error::pu_shift.ratios.ulsif.GridEdgeWarning")
def test_the_largest_lam_is_an_edge():
    with pytest.warns(GridEdgeWarning, match="^the best of lams is 0.01, the largest"):
        RiskMinimizationClassifier(PRIOR, 0.6, lams=[1e-2, 1e-3], n_steps=400).fit_pu(
            X_P[:10], X_U[:40]
        )


@pytest.mark.parametrize("basis", ["linear", "gaussian"])
def test_features_are_standardised_when_their_scales_differ(basis):
    X_p, X_u = pu_samples(200, 800, PRIOR, d=2)
    new = mixture(300, 0.5, np.random.default_rng(4), d=2)[0]
    options = {"basis": basis, "lams": 0.01, "n_steps": 200, "n_centers": 30}
    if basis == "gaussian":
        options["widths"] = 1.0
    plain = RiskMinimizationClassifier(PRIOR, 0.6, scaling="standard", **options).fit_pu(X_p, X_u)
    scale, move = np.array([1e4, 1e-3]), np.array([5e5, 2.0])
    far = RiskMinimizationClassifier(PRIOR, 0.6, **options)
    far.fit_pu(scale * X_p + move, scale * X_u + move)
    np.testing.assert_allclose(far.scale_, scale * plain.scale_, rtol=1e-6)
    np.testing.assert_allclose(
        far.decision_function(scale * new + move), plain.decision_function(new), atol=1e-4
    )
    assert RiskMinimizationClassifier(PRIOR, 0.6, **options).fit_pu(X_p, X_u).mean_ is None


def test_inner_scaling_and_a_fallback_are_saved(tmp_path):
    classifier = RiskMinimizationClassifier(PRIOR, 0.6, scaling="standard", **FAST)
    classifier.fit_pu(X_P, X_U)
    save_model(tmp_path / "model.npz", classifier)
    loaded = load_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(
        loaded.decision_function(GRID), classifier.decision_function(GRID)
    )
    assert loaded.fallback_ is False
