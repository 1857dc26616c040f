import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift import (
    DensityRatioClassifier,
    RiskMinimizationClassifier,
    evaluate,
    load_model,
    save_model,
)
from pu_shift.evaluation import EvaluationWarning
from tests.mixtures import mixture, pu_samples
from tests.networks import needs_chainer

PRIOR = 0.4
P, U = pu_samples(300, 900, PRIOR, seed=1)
NEW_P, NEW_U = pu_samples(300, 900, PRIOR, seed=2)
N = mixture(500, 0.0, np.random.default_rng(3))[0]
RATIO = DensityRatioClassifier(PRIOR, widths=1.0, lams=0.1).fit_pu(P, U)
AVERAGE = DensityRatioClassifier(PRIOR, estimator=["linear", "nystroem"]).fit_pu(P, U)


class Cut:
    """Flags where the first feature is positive; its score and its probability are known."""

    classes_ = np.array([-1, 1])

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return np.where(X[:, 0] > 0.0, 1, -1)

    def predict_proba(self, X):
        positive = 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))  # the posterior at ½
        return np.stack([1.0 - positive, positive], axis=1)


def truth(test_prior):
    """Metrics of ``Cut`` for classes N(±1, 1)."""
    t, f = norm.cdf(1.0), norm.cdf(-1.0)
    flagged = test_prior * t + (1.0 - test_prior) * f
    return {
        "recall": t,
        "false_positive_rate": f,
        "precision": test_prior * t / flagged,
        "f1": 2.0 * test_prior * t / (flagged + test_prior),
        "error_rate": test_prior * (1.0 - t) + (1.0 - test_prior) * f,
        "auc": norm.cdf(2.0**0.5),
    }


@pytest.mark.parametrize(("prior", "given"), [(0.05, 0.05), (0.6, (0.56, 0.64))])
def test_intervals_hold_the_truth_about_as_often_as_they_say(prior, given):
    held, trials = dict.fromkeys(truth(0.3), 0), 100
    for seed in range(trials):
        X_p, X_u = pu_samples(80, 300, prior, seed=seed)
        found = evaluate(Cut(), X_p, X_u, prior=given, test_prior=0.3, n_resamples=300)
        for name, value in truth(0.3).items():
            held[name] += found[name].low <= value <= found[name].high
    # Of 100 draws at 95 % fewer than 88 are held once in 400 times.
    assert min(held.values()) >= 88, held


def test_an_interval_of_the_prior_widens_what_depends_on_it():
    known, unknown = (evaluate(RATIO, NEW_P, NEW_U, prior=p) for p in (PRIOR, (0.3, 0.5)))
    for name in ("precision", "false_positive_rate", "auc", "brier"):
        assert np.ptp([unknown[name].low, unknown[name].high]) > 1.2 * np.ptp(
            [known[name].low, known[name].high]
        )
    assert unknown["recall"].value == known["recall"].value
    assert unknown.prior_interval == (0.3, 0.5)
    assert known.prior_interval is None


def test_an_estimated_prior_brings_its_interval():
    classifier = DensityRatioClassifier(widths=1.0, lams=0.1).fit_pu(P, U)
    found = evaluate(classifier)
    assert found.prior_interval == classifier.prior_interval_
    low, high = found.prior_interval
    assert low < classifier.prior_ < high
    classifier.set_params(prior=0.37)
    assert evaluate(classifier).prior_interval is None


@pytest.mark.parametrize("classifier", [RATIO, AVERAGE])
def test_cross_fitted_figures_are_near_those_of_new_rows(classifier):
    X_p, X_n = pu_samples(20_000, 20_000, 0.0, seed=9)
    for condition in ({"test_prior": 0.8}, {"alpha": 0.2}):
        own, new = (
            evaluate(classifier, **condition),
            evaluate(classifier, X_p, X_n=X_n, **condition),
        )
        for name in ("recall", "false_positive_rate", "error_rate", "auc", "brier"):
            assert own[name].value == pytest.approx(new[name].value, abs=0.06), name


def test_cross_fitted_figures_of_noise_say_that_it_is_noise():
    """The values that calibrate an average look better than they are; those judged by do not."""
    rng = np.random.default_rng(0)
    areas = []
    for seed in range(8):
        X_p, X_u = rng.normal(size=(60, 5)), rng.normal(size=(150, 5))
        classifier = DensityRatioClassifier(0.3, estimator=["linear"], random_state=seed)
        areas.append(evaluate(classifier.fit_pu(X_p, X_u), n_resamples=2).rates)
    excess = [np.sum(rates.u * (np.cumsum(rates.p) - 0.5 * rates.p)) - 0.5 for rates in areas]
    assert np.mean(excess) < 0.03


def test_rows_of_the_fit_are_recognised():
    given, own = evaluate(AVERAGE, P, U), evaluate(AVERAGE)
    assert given.source == own.source
    assert given.metrics == own.metrics
    assert evaluate(AVERAGE, NEW_P, NEW_U).source == "rows given"
    pipeline = make_pipeline(StandardScaler(), DensityRatioClassifier(PRIOR, widths=1.0, lams=0.1))
    X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
    pipeline.fit(X, y)
    assert evaluate(pipeline, P, U).metrics == evaluate(pipeline).metrics


@needs_chainer
def test_a_risk_minimiser_is_judged_by_rows_that_it_has_not_seen():
    classifier = RiskMinimizationClassifier(PRIOR, 0.7, n_steps=50).fit_pu(P, U)
    with pytest.raises(ValueError, match="^X_p and X_u must be given, rows that the classifier"):
        evaluate(classifier)
    with pytest.warns(EvaluationWarning, match="the rows that the classifier was fitted to"):
        evaluate(classifier, P, U)
    found = evaluate(classifier, NEW_P, NEW_U)
    labels = classifier.predict(NEW_P)
    assert found["recall"].value == pytest.approx((labels == 1).mean())
    assert found.condition.test_prior == 0.7
    assert evaluate(classifier, NEW_P, NEW_U, test_prior=0.2)["recall"] == found["recall"]


def test_a_density_ratio_decides_at_the_condition_that_it_is_judged_at():
    found = evaluate(RATIO, NEW_P, X_n=N, test_prior=0.8, alpha=0.7)
    moved = RATIO.predict(NEW_P, test_prior=0.8, alpha=0.7)
    assert found["recall"].value == pytest.approx((moved == 1).mean())
    both = [RATIO.predict_proba(X, test_prior=0.8)[:, 1] for X in (NEW_P, N)]
    brier = 0.8 * np.mean((1.0 - both[0]) ** 2) + 0.2 * np.mean(both[1] ** 2)
    assert found["brier"].value == pytest.approx(brier)
    turned = DensityRatioClassifier(PRIOR, direction="u/p", widths=1.0, lams=0.1).fit_pu(P, U)
    labels = turned.predict(NEW_P, test_prior=0.8)
    recall = evaluate(turned, NEW_P, X_n=N, test_prior=0.8)["recall"].value
    assert recall == pytest.approx((labels == 1).mean())


def test_a_wrong_prior_is_told():
    with pytest.warns(EvaluationWarning, match="auc .* cannot be: the prior 0.85 is wrong"):
        found = evaluate(RATIO, NEW_P, NEW_U, prior=0.85)
    assert all(0.0 <= found[name].value <= 1.0 for name in ("auc", "precision", "recall"))
    assert "note: " in str(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "note" not in str(evaluate(RATIO, NEW_P, NEW_U))


def test_a_file_keeps_what_is_needed(tmp_path):
    classifier = DensityRatioClassifier(estimator=["linear"]).fit_pu(P, U)
    save_model(tmp_path / "model.npz", classifier)
    loaded = load_model(tmp_path / "model.npz")
    assert str(evaluate(loaded)) == str(evaluate(classifier))
    assert evaluate(loaded, P, U).source == evaluate(classifier).source


def test_any_classifier_can_be_judged_when_the_prior_is_given():
    X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
    logistic = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="^prior must be given: LogisticRegression has none"):
        evaluate(logistic, NEW_P, NEW_U)
    found = evaluate(logistic, NEW_P, NEW_U, prior=(0.3, 0.5))
    assert found["auc"].low < norm.cdf(2.0**0.5) < found["auc"].high
    assert found.condition.prior == 0.4
    scores_only = type("Scores", (), {"classes_": logistic.classes_, "predict": logistic.predict})()
    with pytest.raises(ValueError, match="^classifier must have decision_function or predict_pr"):
        evaluate(scores_only, NEW_P, NEW_U, prior=0.4)
    scores_only.decision_function = logistic.decision_function
    assert "brier" not in evaluate(scores_only, NEW_P, NEW_U, prior=0.4).metrics


def test_it_prints_a_table_and_gives_a_frame():
    found = evaluate(RATIO, NEW_P, NEW_U, test_prior=0.7, alpha=0.2)
    text = str(found)
    assert text.startswith("at test prior 0.7 and alpha 0.2; prior 0.4; 95% intervals\nrows given:")
    assert "at 0.2 for a false alarm and 0.8 for a miss" in text
    frame = found.to_frame()
    assert list(frame.index) == list(found.metrics)
    assert (frame["low"] <= frame["value"]).all()
    assert (frame["value"] <= frame["high"]).all()
    none = evaluate(Cut(), NEW_P - 9.0, X_n=N - 9.0, prior=PRIOR)
    assert none.in_words("precision") == "it flags no case at all"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X_p": P}, "X_p must be given with one of X_u and X_n"),
        ({"X_u": U}, "X_p must be given with one of X_u and X_n"),
        ({"X_p": P, "X_u": U, "X_n": N}, "X_p must be given with one of X_u and X_n"),
        ({"prior": 1.2}, "prior must lie strictly between 0 and 1"),
        ({"prior": (0.5, 0.4)}, "prior must"),
        ({"level": 1.0}, "level must lie strictly between 0 and 1"),
        ({"n_resamples": 0}, "n_resamples must be an integer >= 1"),
        ({"random_state": -1}, "random_state must be an integer >= 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        evaluate(RATIO, **arguments)
