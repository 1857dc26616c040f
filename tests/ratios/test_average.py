"""Ratios from classifiers: the odds identity, J, calibration, the stack, and their use."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_info

from pu_shift import Condition, DensityRatioClassifier, zero_one_scorer
from pu_shift.files.models import ModelFileError, load_model, save_model
from pu_shift.ratios.average import fit_average
from pu_shift.ratios.calibration import Calibration, least_squares_score, stack_weights
from pu_shift.ratios.odds import odds_ratio
from pu_shift.ratios.registry import AUTO, RATIOS, check_candidates
from tests.mixtures import mixture, posterior, pu_samples

PRIOR = 0.3
X_P, X_U = pu_samples(300, 1200, PRIOR, d=2)
GRID = np.random.default_rng(5).normal(0.0, 1.5, (400, 2))
QUICK = ["linear", "nystroem"]


@pytest.fixture(scope="module")
def auto():
    return DensityRatioClassifier(PRIOR).fit_pu(X_P, X_U)


def true_ratio(X, prior=PRIOR):
    return posterior(X, prior) / prior


@pytest.mark.parametrize(("n_p", "n_u"), [(1, 1), (100, 400), (7, 3)])
def test_odds_of_the_true_share_are_the_density_ratio(n_p, n_u):
    ratio = true_ratio(GRID)
    share = n_p * ratio / (n_p * ratio + n_u)  # Bayes' rule of P against U
    np.testing.assert_allclose(odds_ratio(share, n_p, n_u), ratio)
    assert np.isfinite(odds_ratio([0.0, 1.0], n_p, n_u)).all()


def test_j_is_half_the_squared_error_but_for_a_constant():
    rng = np.random.default_rng(0)
    X_u, _ = mixture(400_000, PRIOR, rng, d=1)
    X_p, _ = mixture(400_000, 1.0, rng, d=1)
    best = least_squares_score(true_ratio(X_p), true_ratio(X_u))
    for wrong in (lambda r: r**0.5, lambda r: 0.8 * r, lambda r: r + 0.3):
        values = wrong(true_ratio(X_p)), wrong(true_ratio(X_u))
        error = 0.5 * np.mean((values[1] - true_ratio(X_u)) ** 2)
        assert least_squares_score(*values) - best == pytest.approx(error, abs=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_the_weights_have_the_least_j_of_all_averages(seed):
    rng = np.random.default_rng(seed)
    p, u = rng.gamma(2.0, 1.0, (3, 50)), rng.gamma(1.0, 1.0, (3, 80))
    weights = stack_weights(p, u)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0.0).all()
    least = least_squares_score(weights @ p, weights @ u)
    steps = np.linspace(0.0, 1.0, 41)
    for a, b in itertools.product(steps, steps):
        if a + b <= 1.0:
            other = np.array([a, b, 1.0 - a - b])
            assert least <= least_squares_score(other @ p, other @ u) + 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_calibration_passes_through_the_monotone_function_of_least_j(seed):
    rng = np.random.default_rng(seed)
    p, u = rng.normal(1.0, 1.0, 12), rng.normal(0.0, 1.0, 15)
    fitted = Calibration.fit(p, u)
    # Its two further rows, of U on top and of P (of a row of U's mass) at the bottom.
    score = np.concatenate([p, u, [max(*p, *u), min(*p, *u)]])
    is_p = np.concatenate([np.ones(12), np.zeros(15), [0.0, 1.0]])
    mass = np.append(np.ones(28), 12 / 15)
    order = np.argsort(score[:27])
    order = np.concatenate([[28], order, [27]])
    score, is_p, mass = score[order], is_p[order], mass[order]
    # The highest two and the lowest two are ties, which isotonic regression keeps together.
    ends = np.array([0, *range(2, 27), 29])

    def share(first, last):
        part = slice(ends[first], ends[last])
        return np.average(is_p[part], weights=mass[part])

    groups = range(len(ends) - 1)
    # The max-min formula of isotonic regression.
    shares = [
        max(min(share(j, k + 1) for k in groups[i:]) for j in groups[: i + 1]) for i in groups
    ]
    levels = np.unique(np.round(shares, 12))
    np.testing.assert_allclose(fitted.values, odds_ratio(levels, 12, 15), rtol=1e-9)
    of_row = np.repeat(np.round(shares, 12), np.diff(ends))
    means = [np.average(score[of_row == one], weights=mass[of_row == one]) for one in levels]
    np.testing.assert_allclose(fitted.knots, means)
    np.testing.assert_allclose(fitted(fitted.knots), fitted.values)


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 40), st.integers(0, 4))
def test_calibration_is_strictly_increasing_positive_and_bounded(seed, n_p, n_u, decimals):
    rng = np.random.default_rng(seed)
    p, u = rng.gamma(3.0, 1.0, n_p).round(decimals), rng.gamma(1.0, 1.0, n_u).round(decimals)
    fitted = Calibration.fit(p, u)
    new = np.unique(rng.normal(1.0, 5.0, 200).round(3))
    values = fitted(new)
    assert (np.diff(values) > 0.0).all()
    (low, _), (high, _) = fitted.tails
    ends = fitted(np.array([-1e12, 1e12]))
    assert 0.0 < low <= ends[0] < values[0] < values[-1] < ends[1] <= high < np.inf
    again = Calibration.from_state(fitted.to_state())
    np.testing.assert_array_equal(again(new), values)


def test_calibration_does_not_see_units():
    rng = np.random.default_rng(2)
    p, u, new = rng.gamma(3.0, 1.0, 80), rng.gamma(1.0, 1.0, 200), rng.gamma(2.0, 2.0, 50)
    np.testing.assert_allclose(
        Calibration.fit(p, u)(new), Calibration.fit(3.0 * p - 7.0, 3.0 * u - 7.0)(3.0 * new - 7.0)
    )


def test_a_calibration_without_tails_is_constant_beyond_its_knots():
    state = {"knots": np.array([0.0, 1.0]), "values": np.array([0.5, 2.0])}
    old = Calibration.from_state(state)
    np.testing.assert_allclose(old(np.array([-5.0, 0.5, 9.0])), [0.5, 1.25, 2.0])
    for tails in ([[0.6, 1.0], [3.0, 1.0]], [[0.4, 0.0], [3.0, 1.0]], [[0.0, 1.0], [3.0, 1.0]]):
        with pytest.raises(ValueError, match="of a calibration must"):
            Calibration.from_state({**state, "tails": np.array(tails)})


@pytest.mark.parametrize("estimator", ["linear", QUICK])
@pytest.mark.parametrize("direction", ["p/u", "u/p"])
def test_distinct_ratios_have_distinct_probabilities(estimator, direction):
    classifier = DensityRatioClassifier(PRIOR, estimator=estimator, direction=direction)
    classifier.fit_pu(X_P, X_U)
    X, _ = mixture(4000, PRIOR, np.random.default_rng(7), d=2)
    probability = classifier.predict_proba(X)[:, 1]
    assert len(np.unique(probability)) == len(X)
    assert 0.0 < probability.min() < probability.max() < 1.0
    if estimator == "linear":
        raw = classifier.ratio_.ratios[0](X)
        np.testing.assert_array_equal(np.argsort(probability), np.argsort(raw))


@pytest.mark.parametrize("name", [*RATIOS])
def test_every_candidate_comes_near_the_true_ratio(name):
    average, scores, held_out, _ = fit_average(X_P, X_U, check_candidates([name]), PRIOR)
    share = np.clip(PRIOR * average(GRID), 0.0, 1.0)
    assert np.mean(np.abs(share - posterior(GRID, PRIOR))) < 0.15
    assert scores[name]["weight"] == 1.0
    assert [len(part) for part in held_out] == [len(X_P), len(X_U)]
    # No ratio has a score below that of the true one, but for chance.
    truth = least_squares_score(true_ratio(X_P), true_ratio(X_U))
    assert truth - 0.15 < scores[name]["score"] < -0.9


def test_the_average_is_as_good_as_its_parts(auto):
    assert set(auto.candidates_) == set(AUTO)
    assert sum(part["weight"] for part in auto.candidates_.values()) == pytest.approx(1.0)
    low, high = 0.0, 1.0 / PRIOR
    cut = [np.clip(part, low, high) for part in auto.held_out_]
    best = min(part["score"] for part in auto.candidates_.values())
    assert least_squares_score(*cut) < best + 1e-3
    X, y = mixture(4000, 0.7, np.random.default_rng(3), d=2)
    bayes = np.mean((posterior(X, 0.7) > 0.5) == (y > 0))
    assert auto.set_params(test_prior=0.7).score(X, y) > bayes - 0.02
    auto.set_params(test_prior=None)


@pytest.mark.parametrize(
    "condition",
    [
        Condition(0.3, 0.6, 0.2),
        Condition(0.1, 0.5, 0.7),
        Condition(0.3, 0.3, 0.99),
        Condition(0.5, 0.01, 0.5),
    ],
)
def test_a_decision_is_a_posterior_above_alpha(auto, condition):
    params = {"prior": condition.prior, "test_prior": condition.test_prior}
    changed = clone_of(auto).set_params(**params, alpha=condition.alpha)
    above = changed.predict_proba(GRID)[:, 1] > condition.alpha
    np.testing.assert_array_equal(changed.predict(GRID) == 1, above)
    np.testing.assert_array_equal(auto.predict_many(GRID, [condition])[0], changed.predict(GRID))


def clone_of(fitted):
    copied = clone(fitted)
    copied.__dict__.update({k: v for k, v in vars(fitted).items() if k.endswith("_")})
    return copied


def test_units_of_the_features_do_not_matter(auto):
    moved = [1000.0 * X + [5e4, -3e3] for X in (X_P, X_U, GRID)]
    again = DensityRatioClassifier(PRIOR).fit_pu(*moved[:2])
    np.testing.assert_allclose(
        again.predict_ratio(moved[2]), auto.predict_ratio(GRID), rtol=1e-2, atol=1e-2
    )


def test_the_same_seed_gives_the_same_ratio_with_any_number_of_jobs():
    fits = [
        DensityRatioClassifier(PRIOR, estimator=QUICK, n_jobs=jobs, random_state=state)
        for jobs, state in ((None, 3), (2, 3), (1, np.random.RandomState(1)))
    ]
    first, second, other = (c.fit_pu(X_P, X_U).predict_ratio(GRID) for c in fits)
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8),
        RandomForestClassifier(30, min_samples_leaf=3, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
)
def test_any_classifier_is_a_ratio(estimator):
    classifier = DensityRatioClassifier(PRIOR, 0.7, estimator=estimator).fit_pu(X_P, X_U)
    X, y = mixture(4000, 0.7, np.random.default_rng(3), d=2)
    bayes = np.mean((posterior(X, 0.7) > 0.5) == (y > 0))
    assert classifier.score(X, y) > bayes - 0.05
    assert classifier.predict_ratio(X).max() < 2.0 / PRIOR


def test_jobs_leave_limits_of_threads_and_filters_of_warnings_as_they_were():
    def settings():
        return [pool["num_threads"] for pool in threadpool_info()], list(warnings.filters)

    before = settings()
    DensityRatioClassifier(PRIOR, n_jobs=3).fit_pu(X_P, X_U)
    assert settings() == before


def test_weights_of_rows_are_rows_repeated():
    X, y = np.concatenate([X_P, X_U]), np.repeat([1, 0], [len(X_P), len(X_U)])
    twice = np.where(np.arange(len(y)) % 3 == 0, 2, 1)
    logistic = LogisticRegression(tol=1e-8)
    weighted = DensityRatioClassifier(PRIOR, estimator=logistic).fit(X, y, sample_weight=twice)
    repeated = DensityRatioClassifier(PRIOR, estimator=logistic).fit(
        np.repeat(X, twice, axis=0), np.repeat(y, twice)
    )
    parts = (c.ratio_.ratios[0](GRID) for c in (weighted, repeated))
    np.testing.assert_allclose(*parts, rtol=1e-4)
    piped = DensityRatioClassifier(PRIOR, estimator=make_pipeline(logistic))
    piped.fit(X, y, logisticregression__sample_weight=twice)
    np.testing.assert_allclose(piped.predict_ratio(GRID), weighted.predict_ratio(GRID))
    plain, none = (
        DensityRatioClassifier(PRIOR, estimator=logistic).fit(X, y, **given).predict_ratio(GRID)
        for given in ({}, {"sample_weight": None})
    )
    np.testing.assert_array_equal(plain, none)


@pytest.mark.parametrize(
    "estimator",
    [
        HistGradientBoostingClassifier(max_iter=30),
        make_pipeline(SimpleImputer(), LogisticRegression()),
    ],
)
def test_missing_values_are_for_estimators_that_take_them(estimator):
    X, y = mixture(4000, 0.7, np.random.default_rng(3), d=2)
    bayes = np.mean((posterior(X, 0.7) > 0.5) == (y > 0))
    X_p, X_u = X_P.copy(), X_U.copy()
    for rows in (X_p, X_u, X):
        rows[::3, 1] = np.nan  # a column of noise
    classifier = DensityRatioClassifier(PRIOR, 0.7, estimator=estimator).fit_pu(X_p, X_u)
    assert classifier.score(X, y) > bayes - 0.05
    with pytest.raises(ValueError, match="^Input X contains infinity"):
        classifier.predict(np.full((1, 2), np.inf))
    with pytest.raises(ValueError, match="^prior must be given when X has missing values"):
        DensityRatioClassifier(estimator=estimator).fit_pu(X_p, X_u)
    for other in ("auto", LogisticRegression(), [estimator, "linear"]):
        with pytest.raises(ValueError, match="^Input X_u contains NaN: impute") as error:
            DensityRatioClassifier(PRIOR, estimator=other).fit_pu(X_P, X_u)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(("estimator", "least"), [("auto", 3), ("linear", 2), ("ulsif", 2)])
def test_the_fewest_rows_are_enough_and_fewer_are_said(estimator, least):
    classifier = DensityRatioClassifier(PRIOR, estimator=estimator)
    few = X_P[: least - 1], X_U[: least - 1]
    with pytest.raises(ValueError, match=f"^X must have at least {least} positive and {least} unl"):
        classifier.fit_pu(*few)
    assert np.isfinite(classifier.fit_pu(X_P[:least], X_U[:least]).predict_ratio(GRID)).all()


def test_sparse_rows_serve_linear_and_own_classifiers():
    X, y = np.concatenate([X_P, X_U]), np.repeat([1, 0], [len(X_P), len(X_U)])
    for estimator in ("auto", "linear", LogisticRegression()):
        dense, sparse = (
            DensityRatioClassifier(PRIOR, estimator=LogisticRegression()).fit(X, y),
            DensityRatioClassifier(PRIOR, estimator=estimator).fit(csr_matrix(X), y),
        )
        agree = dense.predict(GRID) == sparse.predict(csr_matrix(GRID))
        assert agree.mean() > 0.95
    with pytest.raises(ValueError, match="^X is sparse, which estimator='ulsif' does not take"):
        DensityRatioClassifier(PRIOR, estimator="ulsif").fit(csr_matrix(X), y)
    with pytest.raises(ValueError, match="^prior must be given when X is sparse"):
        DensityRatioClassifier().fit(csr_matrix(X), y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "trees"}, "estimator must be one of 'auto', 'ulsif'"),
        ({"estimator": []}, "estimator must not be empty"),
        ({"estimator": ["linear", "linear"]}, "estimator must be distinct"),
        ({"estimator": LinearSVC()}, "estimator must have predict_proba, LinearSVC has none"),
        ({"estimator": LogisticRegression}, "estimator must be one of"),
        ({"estimator": "linear", "widths": 1.0}, "widths is an option of estimator='ulsif'"),
        ({"estimator": "kliep", "lams": 1.0}, "lams is an option of estimator='ulsif'"),
        ({"pos_label": "x"}, "pos_label must be one of two labels"),
    ],
)
def test_bad_options_are_named_in_one_line(options, message):
    y = np.repeat([1, 0], [len(X_P), len(X_U)])
    with pytest.raises(ValueError, match=f"^{message}") as error:
        DensityRatioClassifier(PRIOR, **options).fit(np.concatenate([X_P, X_U]), y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("estimator", "params", "message"),
    [
        ("linear", {"sample_weight": np.ones(1500)}, "sample_weight is no parameter of fit"),
        (LogisticRegression(), {"weight": np.ones(1500)}, "weight is no parameter of fit"),
        (LogisticRegression(), {"sample_weight": [1.0]}, "sample_weight must have an entry"),
        (
            LogisticRegression(),
            {"sample_weight": np.arange(1500) > 300},
            "sample_weight must be finite and not negative, and leave",
        ),
        (
            LogisticRegression(),
            {"sample_weight": np.where(np.arange(1500) == 7, np.nan, 1.0)},
            "sample_weight must be finite",
        ),
        (
            make_pipeline(LogisticRegression()),
            {"sample_weight": np.ones(1500)},
            "sample_weight is no parameter .* as in step__sample_weight",
        ),
    ],
)
def test_bad_parameters_of_fit_are_named_before_the_work(estimator, params, message):
    y = np.repeat([1, 0], [len(X_P), len(X_U)])
    classifier = DensityRatioClassifier(PRIOR, estimator=estimator)
    with pytest.raises(ValueError, match=f"^{message}"):
        classifier.fit(np.concatenate([X_P, X_U]), y, **params)


def test_labels_named_by_pos_label():
    X = np.concatenate([X_P, X_U])
    y = np.repeat(["case", "unknown"], [len(X_P), len(X_U)])
    classifier = DensityRatioClassifier(PRIOR, estimator="linear", pos_label="case").fit(X, y)
    assert classifier.classes_.tolist() == ["unknown", "case"]
    assert classifier.predict([[3.0, 0.0], [-3.0, 0.0]]).tolist() == ["case", "unknown"]
    assert zero_one_scorer(classifier, X, y) > -0.3


def test_a_threshold_is_not_tuned_by_a_risk():
    model_selection = pytest.importorskip("sklearn", "1.5").model_selection
    X, y = np.concatenate([X_P, X_U]), np.repeat([1, 0], [len(X_P), len(X_U)])
    classifier = DensityRatioClassifier(PRIOR, estimator="linear")
    tuned = model_selection.TunedThresholdClassifierCV(classifier, scoring=zero_one_scorer, cv=2)
    with pytest.raises(ValueError, match="^scoring: a PU risk tunes no threshold"):
        tuned.fit(X, y)
    assert set(tuned.set_params(scoring="f1").fit(X, y).predict(GRID)) <= {0, 1}


@pytest.mark.parametrize("estimator", [AUTO, "nystroem", "linear", ["kliep", "linear"]])
def test_averages_of_plain_ratios_are_saved(tmp_path, estimator):
    classifier = DensityRatioClassifier(PRIOR, 0.6, estimator=estimator).fit_pu(X_P, X_U)
    save_model(tmp_path / "model.npz", classifier)
    loaded = load_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict_ratio(GRID), classifier.predict_ratio(GRID))
    assert loaded.candidates_ == classifier.candidates_
    changed = [c.set_params(test_prior=0.2, alpha=0.3).predict(GRID) for c in (loaded, classifier)]
    np.testing.assert_array_equal(*changed)


def test_code_is_not_saved(tmp_path):
    own = DensityRatioClassifier(PRIOR, estimator=LogisticRegression()).fit_pu(X_P, X_U)
    with pytest.raises(ModelFileError, match="^estimator 'Logistic.* cannot be saved"):
        save_model(tmp_path / "model.npz", own)
    assert not list(tmp_path.iterdir())
