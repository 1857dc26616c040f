import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_score,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift import Condition, PURiskScorer, RiskMinimizationClassifier, evaluate, pu_scorer
from pu_shift.estimators import DensityRatioClassifier
from pu_shift.evaluation.metrics import METRICS
from pu_shift.evaluation.scorers import _margins, surrogate_scorer, zero_one_scorer
from pu_shift.losses import get_loss
from pu_shift.risks import evaluate_risk
from tests.mixtures import mixture, pu_samples

PRIOR = 0.4
X_P, X_U = pu_samples(500, 1500, PRIOR)
X, Y = np.concatenate([X_P, X_U]), np.repeat([1, 0], [500, 1500])


@pytest.mark.parametrize(("test_prior", "alpha"), [(None, 0.5), (0.7, 0.5), (0.2, 0.3)])
def test_the_zero_one_score_estimates_the_cost_on_labelled_test_data(test_prior, alpha):
    classifier = DensityRatioClassifier(PRIOR, test_prior, alpha, widths=1.0, lams=0.1).fit(X, Y)
    X_p, X_u = pu_samples(100_000, 100_000, PRIOR, seed=5)
    estimate = -zero_one_scorer(
        classifier, np.concatenate([X_p, X_u]), np.repeat([1, 0], [len(X_p), len(X_u)])
    )
    X_test, y_test = mixture(100_000, test_prior or PRIOR, np.random.default_rng(6))
    cost = np.where(y_test > 0, 1.0 - alpha, alpha)
    wrong = (classifier.predict(X_test) == 1) != (y_test > 0)
    assert 0.5 * estimate == pytest.approx(np.mean(cost * wrong), abs=0.01)
    if alpha == 0.5:
        assert estimate == pytest.approx(wrong.mean(), abs=0.02)


def test_the_surrogate_score_is_the_risk_of_the_training_loss():
    classifier = RiskMinimizationClassifier(
        PRIOR, 0.6, loss="logistic", n_steps=99, safe=False
    ).fit(X, Y)
    scores = classifier.decision_function(X)
    risk = evaluate_risk(scores[Y == 1], scores[Y == 0], Condition(PRIOR, 0.6), "logistic")
    assert surrogate_scorer(classifier, X, Y) == pytest.approx(-float(risk))


@pytest.mark.parametrize("loss", ["squared", "logistic", "double_hinge", "modified_huber"])
def test_posteriors_become_the_score_that_minimises_the_loss(loss):
    posterior = np.array([0.05, 0.2, 0.45, 0.6, 0.9])
    other = type("Other", (), {"predict_proba": lambda self, X: np.stack([1 - X, X], axis=1)})()
    scores = _margins(other, other, posterior, loss, Condition(0.5))
    grid = np.linspace(-4.0, 4.0, 8001)[:, None]
    value = get_loss(loss).value
    expected = posterior * value(grid) + (1.0 - posterior) * value(-grid)
    np.testing.assert_allclose(scores, grid[expected.argmin(axis=0), 0], atol=2e-3)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_posteriors_are_put_on_the_scale_of_the_loss(loss):
    # By its own loss a well specified minimiser is best: its posterior, turned
    # into a margin, must give the margin back.
    trained = RiskMinimizationClassifier(
        PRIOR, 0.6, 0.4, loss="logistic", n_steps=400, safe=False
    ).fit(X, Y)
    scores = trained.decision_function(X)
    condition = trained.condition_
    posterior = 1.0 / (1.0 + np.exp(-scores))
    margins = scores if loss == "logistic" else 2.0 * posterior - 1.0
    expected = evaluate_risk(margins[Y == 1], margins[Y == 0], condition, loss)
    other = type("Other", (), {"condition": condition, "classes_": trained.classes_})()
    other.predict_proba = trained.predict_proba
    assert PURiskScorer(loss)(other, X, Y) == pytest.approx(-float(expected), abs=1e-6)


def test_any_classifier_can_be_scored_when_the_condition_is_given():
    scorer = PURiskScorer("zero_one", Condition(PRIOR, 0.6))
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    assert cross_val_score(pipeline, X, Y, scoring=scorer, cv=3).mean() > -0.5
    with pytest.raises(ValueError, match="^condition must be given to the scorer: LogisticReg"):
        zero_one_scorer(pipeline.fit(X, Y), X, Y)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="^loss must be one of None, 'squared'"):
        PURiskScorer("hinge")
    with pytest.raises(ValueError, match="^condition must be a Condition or None, got 0.3"):
        PURiskScorer("zero_one", 0.3)
    classifier = DensityRatioClassifier(PRIOR, widths=1.0, lams=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="^y must hold labelled positives and unlabelled rows"):
        zero_one_scorer(classifier, X, np.zeros(len(X)))
    assert repr(PURiskScorer("squared")) == "PURiskScorer(loss='squared', condition=None)"


# A few rows do: what is asked is whether a search stops.
FEW_X, FEW_Y = X[400:700], Y[400:700]
RATIO = DensityRatioClassifier(PRIOR, widths=1.0, lams=0.1)
PIPELINE = make_pipeline(StandardScaler(), RATIO)
RISK = RiskMinimizationClassifier(PRIOR, n_steps=5, safe=False)
JUDGE = PURiskScorer("zero_one", Condition(PRIOR, 0.6))
PRIORS = [0.2, 0.6]
ABOUT_PRIOR = "^prior cannot be searched by a PU risk.*: use estimate_prior, or prior=None"


def searched(estimator, grid, scoring=zero_one_scorer, **options):
    return GridSearchCV(estimator, grid, scoring=scoring, cv=2, **options).fit(FEW_X, FEW_Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("estimator", "name", "scoring"),
    [
        (RATIO, "prior", zero_one_scorer),
        (RATIO, "prior", JUDGE),
        (RATIO, "prior", {"first": zero_one_scorer, "second": surrogate_scorer}),
        (RISK, "prior", surrogate_scorer),
        (PIPELINE, "densityratioclassifier__prior", zero_one_scorer),
    ],
)
def test_a_search_for_the_prior_stops_with_the_reason(estimator, name, scoring):
    refit = "first" if isinstance(scoring, dict) else True
    with pytest.raises(TypeError, match=ABOUT_PRIOR) as error:
        searched(estimator, {name: PRIORS}, scoring, refit=refit)
    assert "\n" not in str(error.value)
    with pytest.raises(TypeError, match=ABOUT_PRIOR):
        RandomizedSearchCV(
            estimator, {name: PRIORS}, n_iter=2, scoring=scoring, cv=2, refit=refit, random_state=0
        ).fit(FEW_X, FEW_Y)


def test_a_search_for_the_prior_stops_wherever_it_runs():
    search = GridSearchCV(RATIO, {"prior": PRIORS}, scoring=zero_one_scorer, cv=2)
    with pytest.raises(TypeError, match=ABOUT_PRIOR):
        search.set_params(n_jobs=2).fit(FEW_X, FEW_Y)
    with pytest.raises(TypeError, match=ABOUT_PRIOR):
        validation_curve(
            RATIO, FEW_X, FEW_Y, param_name="prior", param_range=PRIORS, scoring=JUDGE, cv=2
        )
    within = GridSearchCV(RATIO, {"n_centers": [5]}, scoring=zero_one_scorer, cv=2)
    with pytest.raises(TypeError, match=ABOUT_PRIOR):
        searched(within, {"estimator__prior": PRIORS})
    bagged = BaggingClassifier(RATIO, n_estimators=2, random_state=0)
    name = "estimator" if "estimator" in bagged.get_params() else "base_estimator"
    with pytest.raises(TypeError, match=ABOUT_PRIOR):
        searched(bagged, {f"{name}__prior": PRIORS}, JUDGE)


def test_a_search_within_cross_validation_stops_too():
    search = GridSearchCV(RATIO, {"prior": PRIORS}, scoring=zero_one_scorer, cv=2)
    with pytest.raises(ValueError, match="(?s)All the 2 fits failed.*prior cannot be searched"):
        cross_val_score(search, FEW_X, FEW_Y, scoring=zero_one_scorer, cv=2)


@pytest.mark.parametrize("name", ["test_prior", "alpha"])
def test_other_conditions_are_searched_by_one_judge_or_not_at_all(name):
    with pytest.raises(TypeError, match=f"^{name} cannot be searched by risks under different"):
        searched(RATIO, {name: PRIORS})
    assert searched(RATIO, {name: PRIORS}, JUDGE).best_params_[name] in PRIORS


def test_what_is_no_search_for_the_prior_is_scored():
    direct = DensityRatioClassifier(widths=1.0, lams=0.1).set_params(prior=PRIOR)
    same = zero_one_scorer(clone(RATIO).fit(FEW_X, FEW_Y), FEW_X, FEW_Y)
    assert zero_one_scorer(direct.fit(FEW_X, FEW_Y), FEW_X, FEW_Y) == same
    scores = [
        cross_val_score(one, FEW_X, FEW_Y, scoring=zero_one_scorer, cv=2) for one in (direct, RATIO)
    ]
    np.testing.assert_array_equal(*scores)
    search = searched(RATIO, {"n_centers": [5, 20]})
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert searched(LogisticRegression(), {"C": [1.0]}, JUDGE).best_score_ > -0.5


@pytest.mark.parametrize("metric", [name for name, one in METRICS.items() if one.gain])
def test_a_scorer_is_the_metric_of_evaluate_and_greater_is_better(metric):
    classifier = DensityRatioClassifier(PRIOR, 0.6, widths=1.0, lams=0.1).fit(X, Y)
    X_p, X_u = pu_samples(200, 700, PRIOR, seed=5)
    rows, y = np.concatenate([X_p, X_u]), np.repeat([1, 0], [200, 700])
    found = evaluate(classifier, X_p, X_u, n_resamples=10)[metric].value
    score = pu_scorer(metric, PRIOR, 0.6)(classifier, rows, y)
    assert abs(score) == pytest.approx(abs(found))
    assert pu_scorer(metric)(classifier, rows, y) == score
    shuffled = pu_scorer(metric, PRIOR, 0.6)(classifier, rows[:, ::-1] * 0.0 - 3.0, y)
    if metric not in ("false_positive_rate", "calibration"):  # flagging nothing has none
        assert score > shuffled


def test_the_scorers_of_the_error_rate_agree():
    classifier = DensityRatioClassifier(PRIOR, 0.6, widths=1.0, lams=0.1).fit(X, Y)
    expected = zero_one_scorer(classifier, X, Y)
    assert pu_scorer("error_rate")(classifier, X, Y) == pytest.approx(expected)


def test_a_search_by_a_metric_is_guarded_like_one_by_a_risk():
    with pytest.raises(TypeError, match=ABOUT_PRIOR):
        searched(RATIO, {"prior": PRIORS}, pu_scorer("f1", PRIOR, 0.6))
    with pytest.raises(TypeError, match="^alpha cannot be searched by risks under different"):
        searched(RATIO, {"alpha": PRIORS}, pu_scorer("f1"))
    found = searched(LogisticRegression(), {"C": [1e-4, 1.0]}, pu_scorer("log_loss", PRIOR))
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    # Without the prior given to the scorer there is none.
    with pytest.raises(ValueError, match="^condition must be given to the scorer"):
        pu_scorer("f1")(LogisticRegression().fit(X, Y), X, Y)


def test_bad_arguments_of_a_metric_scorer_are_named():
    with pytest.raises(ValueError, match="^metric must be one of 'recall', "):
        pu_scorer("f2", PRIOR)
    with pytest.raises(ValueError, match="^metric must be one of which more or less is better"):
        pu_scorer("share_flagged", PRIOR)
    with pytest.raises(ValueError, match="^prior must be given with test_prior or alpha"):
        pu_scorer("f1", test_prior=0.3)
    with pytest.raises(ValueError, match="^prior must lie strictly between 0 and 1"):
        pu_scorer("f1", 1.0)
    assert repr(pu_scorer("f1")) == "MetricScorer('f1', None)"
