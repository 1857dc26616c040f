import pickle

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from pu_shift import (
    MLP,
    Condition,
    DensityRatioClassifier,
    RiskMinimizationClassifier,
)
from pu_shift._chainer import chainer
from pu_shift.estimators import (
    FallbackWarning,
    NonConvexWarning,
    fitting,
    held_out,
)
from pu_shift.estimators.held_out import zero_one_risk
from pu_shift.evaluation.scorers import PURiskScorer
from pu_shift.losses import LOSSES, Loss, surrogates
from pu_shift.ratios.kernels import squared_distances
from tests.estimators.samples import FAST, GRID, PRIOR, X_P, X_U
from tests.mixtures import mixture, posterior, pu_samples
from tests.networks import made

pytestmark = pytest.mark.filterwarnings(
    "ignore::pu_shift.ratios.base.GridEdgeWarning",
    "ignore::pu_shift.estimators.LabelWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


def test_scores_of_one_loss_are_not_read_as_those_of_another():
    classifier = RiskMinimizationClassifier(PRIOR, n_steps=20, safe=False).fit_pu(X_P, X_U)
    classifier.set_params(loss="logistic")
    with pytest.raises(NotFittedError, match="^loss was 'squared' in fit and is now 'logistic'"):
        classifier.predict_proba(GRID)


def test_a_risk_minimiser_refuses_another_condition_for_one_call():
    classifier = RiskMinimizationClassifier(PRIOR, 0.6, n_steps=20, safe=False).fit_pu(X_P, X_U)
    np.testing.assert_array_equal(
        classifier.predict(GRID, test_prior=0.6, alpha=0.5), classifier.predict(GRID)
    )
    for call in (classifier.predict, classifier.decision_function, classifier.predict_proba):
        with pytest.raises(NotFittedError, match="^fitted for Condition.*test_prior=0.6"):
            call(GRID, test_prior=0.7)
    costs = {"false_positive_cost": 2.0, "false_negative_cost": 2.0}
    np.testing.assert_array_equal(classifier.predict(GRID, **costs), classifier.predict(GRID))
    with pytest.raises(ValueError, match="^alpha must be one number: a risk minimiser is trained"):
        classifier.predict(GRID, alpha=np.full(len(GRID), 0.5))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("test_prior", [0.6, 0.15])  # convex, and not
def test_the_default_basis_is_the_one_of_less_held_out_risk(loss, test_prior):
    rng = np.random.default_rng(0)
    ring = rng.normal(size=(1500, 2))
    inside = (ring**2).sum(axis=1) < 1.0
    hidden = np.concatenate([ring[inside][100:250], ring[~inside][:350]])
    samples = {"ring": (ring[inside][:100], hidden), "line": (X_P[:100], X_U[:400])}
    options = {"loss": loss, "n_steps": 150, "n_centers": 30, "safe": False}
    chosen = {}
    for name, (X_p, X_u) in samples.items():
        fitted = RiskMinimizationClassifier(PRIOR, test_prior, **options).fit_pu(X_p, X_u)
        basis = "linear" if np.isnan(fitted.width_) else "gaussian"
        chosen[name] = basis
        # With the width and λ that it chose, it is that basis alone.
        given = {"basis": basis, "lams": fitted.lam_}
        given.update({} if basis == "linear" else {"widths": fitted.width_})
        alone = RiskMinimizationClassifier(PRIOR, test_prior, **options, **given)
        alone.fit_pu(X_p, X_u)
        np.testing.assert_allclose(
            fitted.decision_function(X_u), alone.decision_function(X_u), rtol=1e-4, atol=1e-5
        )
    assert chosen["ring"] == "gaussian"


@pytest.mark.parametrize(
    ("loss", "correction", "basis"),
    [
        *((loss, None, "linear") for loss in surrogates()),
        ("squared", "ascent", "linear"),
        ("double_hinge", None, "gaussian"),
        ("logistic", "ascent", "gaussian"),
    ],
)
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
    width = ratio.fit_pu(X_P, X_U).ratio_.width_
    classifier = RiskMinimizationClassifier(
        PRIOR, basis="gaussian", width_rule="ulsif", lams=0.0, n_steps=50, **shared
    )
    fitted = classifier.fit_pu(X_P, X_U)
    assert fitted.width_ == width
    assert {one.width_ for one in fitted.fit_many(X_P, X_U, [{}, {"test_prior": 0.9}])} == {width}
    alone = clone(classifier).set_params(widths=width, width_rule="risk").fit_pu(X_P, X_U)
    np.testing.assert_array_equal(fitted.decision_function(GRID), alone.decision_function(GRID))
    assert clone(classifier).set_params(width_rule="risk").fit_pu(X_P, X_U).width_ != width


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
        draws.append(zero_one_risk((scores_p, scores_u), condition))
    risks, errors = np.transpose(draws)
    truth = norm.cdf(-1.0)  # both kinds of error
    assert risks.mean() == pytest.approx(truth, abs=0.01)
    assert errors.mean() == pytest.approx(risks.std(), rel=0.15)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_training_that_is_stopped_early_is_warned_of():
    options = {"lams": 0.0, "learning_rate": 1e-3, "solver": "amsgrad"}
    with pytest.warns(ConvergenceWarning, match="last tenth of n_steps = 30"):
        RiskMinimizationClassifier(PRIOR, 0.6, n_steps=30, **options).fit_pu(X_P, X_U)
    options["learning_rate"] = 1e-2
    RiskMinimizationClassifier(PRIOR, 0.6, n_steps=1000, **options).fit_pu(X_P, X_U)


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


def test_the_slope_of_probabilities_is_fitted_when_they_are_first_asked_for(monkeypatch):
    fits = []

    def counted(*arguments, **options):
        fits.append(1)
        return minimize_scalar(*arguments, **options)

    monkeypatch.setattr(held_out, "minimize_scalar", counted)
    options = {"loss": "double_hinge", "safe": False, "random_state": 0, **FAST}
    classifier, other = (
        RiskMinimizationClassifier(PRIOR, **options).fit_pu(X_P, X_U) for _ in range(2)
    )
    classifier.predict(GRID)
    assert not fits
    found = classifier.predict_proba(GRID)
    np.testing.assert_array_equal(classifier.predict_proba(GRID), found)
    assert len(fits) == 1
    stored = pickle.dumps(other)
    assert len(stored) < 8 * (len(X_P) + len(X_U))  # the held-out scores stay behind
    np.testing.assert_array_equal(pickle.loads(stored).predict_proba(GRID), found)
    assert len(fits) == 2


def test_kernels_of_very_many_rows_are_fitted_to_a_sample(monkeypatch):
    monkeypatch.setattr(fitting, "MAX_KERNEL_ROWS", 60)
    sizes = []

    def counted(X, centers):
        sizes.append(len(X))
        return squared_distances(X, centers)

    monkeypatch.setattr(fitting, "squared_distances", counted)
    X_p, X_u = pu_samples(50, 100, 0.4, d=2)
    RiskMinimizationClassifier(0.4, safe=False).fit_pu(X_p, X_u)
    RiskMinimizationClassifier(0.4, safe=False, basis="gaussian").fit_pu(X_p, X_u)
    assert sizes == [50, 60, 50, 100]
