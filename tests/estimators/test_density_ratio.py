import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift import (
    Condition,
    DensityRatioClassifier,
)
from pu_shift.estimators import (
    density_ratio,
)
from tests.estimators.samples import GRID, PRIOR, RATIO, X_P, X_U
from tests.mixtures import posterior

pytestmark = pytest.mark.filterwarnings(
    "ignore::pu_shift.ratios.base.GridEdgeWarning",
    "ignore::pu_shift.estimators.LabelWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


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


@pytest.mark.filterwarnings("ignore::pu_shift.estimation.class_prior.PriorWarning")
@given(prior=st.floats(0.02, 0.98), test_prior=st.floats(0.02, 0.98), alpha=st.floats(0.02, 0.98))
def test_a_new_condition_needs_no_fit(ratio, prior, test_prior, alpha):
    changed = pickle.loads(pickle.dumps(ratio)).set_params(
        prior=prior, test_prior=test_prior, alpha=alpha
    )
    refitted = clone(changed).set_params(widths=ratio.ratio_.width_, lams=ratio.ratio_.lam_)
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
    evaluate = type(ratio.ratio_).predict_numpy

    def counted(self, X):
        calls.append(len(X))
        return evaluate(self, X)

    monkeypatch.setattr(type(ratio.ratio_), "predict_numpy", counted)
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


@given(st.integers(0, 10**6))
def test_costs_of_each_case_decide_by_least_expected_cost(ratio, seed):
    rng = np.random.default_rng(seed)
    alarm, miss = rng.gamma(1.0, 5.0, (2, len(GRID)))
    alarm[0] = miss[1] = 0.0
    q = ratio.predict_proba(GRID, test_prior=0.6)[:, 1]
    costs = {"false_positive_cost": alarm, "false_negative_cost": miss}
    found = ratio.predict(GRID, test_prior=0.6, **costs)
    assert (np.where(found == 1, (1 - q) * alarm, q * miss) <= (1 - q) * alarm + 1e-12).all()
    assert (np.where(found == 1, (1 - q) * alarm, q * miss) <= q * miss + 1e-12).all()
    alpha = alarm / (alarm + miss)
    np.testing.assert_array_equal(found, ratio.predict(GRID, test_prior=0.6, alpha=alpha))
    np.testing.assert_array_equal(
        ratio.predict(GRID, false_positive_cost=3.0, false_negative_cost=miss),
        ratio.predict(GRID, false_positive_cost=np.full(len(GRID), 3.0), false_negative_cost=miss),
    )
    # The same for all is alpha, which is decided without a posterior.
    np.testing.assert_array_equal(
        ratio.predict(GRID, false_positive_cost=2.0, false_negative_cost=3.0),
        ratio.predict(GRID, alpha=0.4),
    )
    assert ratio.alpha == 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": [0.5]}, "alpha or costs must be of 121 rows"),
        ({"alpha": np.full(121, 2.0)}, "alpha must lie between 0 and 1 for each case"),
        ({"alpha": 0.5, "false_positive_cost": 1.0}, "alpha must not be given together with costs"),
        ({"false_negative_cost": 1.0}, "false_positive_cost must be given"),
        ({"false_positive_cost": 1.0}, "false_negative_cost must be given"),
        (
            {"false_positive_cost": 0.0, "false_negative_cost": 1.0},
            "false_positive_cost must be a finite number > 0",
        ),
        (
            {"false_positive_cost": 1.0, "false_negative_cost": -np.ones(121)},
            "false_negative_cost must be finite and not negative",
        ),
        (
            {"false_positive_cost": np.zeros(121), "false_negative_cost": np.zeros(121)},
            "false_positive_cost must not be 0 where the other cost is 0",
        ),
        (
            {"false_positive_cost": np.ones(120), "false_negative_cost": np.ones(121)},
            "false_positive_cost must have as many values",
        ),
        ({"alpha": np.full(121, 0.5), "conditions": [{}]}, "alpha must be one number where"),
    ],
)
def test_bad_costs_are_named_in_one_line(ratio, given, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        ratio.predict(GRID, **given)


def test_a_pipeline_hands_costs_of_each_case_on(routing):
    X, y = np.concatenate([X_P, X_U]), np.repeat([1, 0], [len(X_P), len(X_U)])
    classifier = DensityRatioClassifier(PRIOR, estimator=LogisticRegression())
    if routing:
        classifier.set_predict_request(false_positive_cost=True, false_negative_cost=True)
    pipeline = make_pipeline(StandardScaler(), classifier).fit(X, y)
    costs = {"false_positive_cost": 4.0, "false_negative_cost": np.linspace(0.0, 9.0, len(GRID))}
    rows = pipeline[0].transform(GRID)
    np.testing.assert_array_equal(
        pipeline.predict(GRID, **costs), pipeline[-1].predict(rows, **costs)
    )


def test_a_changed_direction_asks_for_a_fit(ratio):
    changed = pickle.loads(pickle.dumps(ratio)).set_params(direction="u/p")
    with pytest.raises(NotFittedError, match="^direction was 'p/u' in fit and is now 'u/p'"):
        changed.predict(GRID)


def test_predictions_do_not_check_the_list_of_estimators_again(monkeypatch):
    candidates = [LogisticRegression(), "linear"]
    classifier = DensityRatioClassifier(PRIOR, estimator=candidates).fit_pu(X_P, X_U)
    expected = classifier.predict(GRID)
    monkeypatch.setattr(density_ratio, "check_candidates", lambda _: pytest.fail("checked again"))
    np.testing.assert_array_equal(classifier.predict(GRID), expected)
