import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from pu_shift import Condition, DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.plots import CostDisplay, PosteriorDisplay, ReliabilityDisplay, ThresholdDisplay
from pu_shift.priors import alpha_unif, shift_posterior
from tests.mixtures import mixture, pu_samples

PRIOR, TEST_PRIOR, ALPHA = 0.3, 0.6, 0.2


@pytest.fixture(scope="module")
def data():
    X_p, X_u = pu_samples(150, 500, PRIOR, gap=2.5)
    return X_p, X_u, *mixture(600, 0.5, np.random.default_rng(1), gap=2.5)


@pytest.fixture(scope="module")
def ratio(data):
    return DensityRatioClassifier(PRIOR, TEST_PRIOR, ALPHA).fit_pu(*data[:2])


@pytest.fixture(scope="module")
def risk(data):
    classifier = RiskMinimizationClassifier(PRIOR, TEST_PRIOR, ALPHA, lams=0.01, n_steps=200)
    return classifier.fit_pu(*data[:2])


@pytest.fixture(autouse=True)
def _off_screen():
    with matplotlib.rc_context({"backend": "agg"}):
        yield
    plt.close("all")


def test_thresholds_are_those_of_the_theory(ratio):
    test_priors, alphas = [0.1, 0.5, 0.95], [0.2, 0.7]
    display = ThresholdDisplay.from_estimator(ratio, test_priors=test_priors, alphas=alphas)
    for line, alpha in zip(display.lines_, alphas):
        np.testing.assert_array_equal(line.get_xdata(), test_priors)
        curve = [alpha_unif(PRIOR, test_prior, alpha) for test_prior in test_priors]
        np.testing.assert_allclose(line.get_ydata(), curve, rtol=1e-12)
        assert line.get_label() == f"α = {alpha}"
    now = display.ax_.lines[-1]
    assert now.get_xdata()[0] == TEST_PRIOR
    assert now.get_ydata()[0] == Condition(PRIOR, TEST_PRIOR, ALPHA).alpha_unif


def costs(ratio, X, test_prior, threshold, false_positive, false_negative):
    """Cost and share flagged by weights that move rows from the prior to the test prior."""
    posterior = shift_posterior(ratio.predict_proba(X)[:, 1], TEST_PRIOR, PRIOR)
    positive, negative = posterior / posterior.sum(), (1 - posterior) / (1 - posterior).sum()
    weights = test_prior * positive + (1 - test_prior) * negative
    moved = test_prior * positive / weights
    flagged = posterior > threshold
    cost = np.where(flagged, false_positive * (1 - moved), false_negative * moved)
    return 1000 * weights @ cost, weights @ flagged


@pytest.mark.parametrize("given", [None, (5.0, 200.0)])
def test_costs_are_those_of_rows_weighted_to_the_test_prior(ratio, data, given):
    names = "false_positive", "false_negative"
    options = {} if given is None else dict(zip(names, given))
    test_priors = [0.02, 0.3, 0.8]
    display = CostDisplay.from_estimator(ratio, data[1], test_priors=test_priors, **options)
    prices = given or (ALPHA, 1 - ALPHA)
    alpha = prices[0] / sum(prices)
    told = [
        costs(ratio, data[1], test_prior, alpha_unif(PRIOR, test_prior, alpha), *prices)
        for test_prior in test_priors
    ]
    untold = [costs(ratio, data[1], test_prior, alpha, *prices)[0] for test_prior in test_priors]
    left, right = display.axes_
    np.testing.assert_allclose(left.lines[0].get_ydata(), [cost for cost, _ in told])
    np.testing.assert_allclose(left.lines[1].get_ydata(), untold)
    np.testing.assert_allclose(right.lines[0].get_ydata(), [share for _, share in told])
    assert (display.cost[[0, 2]] < display.cost_unmoved[[0, 2]]).all()
    assert display.cost[1] == pytest.approx(display.cost_unmoved[1])  # π′ = π: nothing to move


def test_reliability_weights_the_classes_to_the_test_prior(ratio, data):
    X, y = data[2:]
    display = ReliabilityDisplay.from_estimator(ratio, X, y, n_bins=5)
    probability = ratio.predict_proba(X)[:, 1]
    weights = np.where(y == 1, TEST_PRIOR, 1 - TEST_PRIOR) / 300
    places = zip(np.arange(5) / 5, np.arange(1, 6) / 5)
    inside = [(probability >= low) & (probability < high) for low, high in places]
    inside[-1] |= probability == 1.0
    inside = [rows for rows in inside if rows.any()]
    true = [np.average(y[rows] == 1, weights=weights[rows]) for rows in inside]
    predicted = [np.average(probability[rows], weights=weights[rows]) for rows in inside]
    np.testing.assert_allclose(display.line_.get_xdata(), predicted)
    np.testing.assert_allclose(display.line_.get_ydata(), true)
    np.testing.assert_allclose(display.weight, [weights[rows].sum() for rows in inside])
    # Of the whole: the observed share is the test prior by construction.
    assert display.weight @ display.prob_true == pytest.approx(TEST_PRIOR)
    # The classes are Gaussian, and the ratio is near the truth.
    assert display.weight @ np.abs(display.prob_true - display.prob_pred) < 0.1


@pytest.mark.parametrize("name", ["ratio", "risk"])
def test_the_histogram_counts_what_the_condition_flags(name, data, request):
    classifier = request.getfixturevalue(name)
    X = data[1]
    display = PosteriorDisplay.from_estimator(classifier, X, n_bins=10)
    posterior = shift_posterior(classifier.predict_proba(X)[:, 1], TEST_PRIOR, PRIOR)
    np.testing.assert_array_equal(
        [bar.get_height() for bar in display.bars_], np.histogram(posterior, 10, (0, 1))[0]
    )
    threshold, mean = (line.get_xdata()[0] for line in display.ax_.lines)
    assert threshold == Condition(PRIOR, TEST_PRIOR, ALPHA).alpha_unif
    assert (posterior > threshold).sum() == (classifier.predict(X) == 1).sum()
    assert mean == pytest.approx(posterior.mean())


def test_displays_draw_on_the_axes_they_are_given(ratio, data):
    _, X_u, X, y = data
    figure, axes = plt.subplots(1, 5)
    displays = [
        ThresholdDisplay.from_estimator(ratio, ax=axes[0]),
        PosteriorDisplay.from_estimator(ratio, X_u, ax=axes[1]),
        ReliabilityDisplay.from_estimator(ratio, X, y, ax=axes[2]),
        CostDisplay.from_estimator(ratio, X_u, ax=axes[3:]),
    ]
    assert all(display.figure_ is figure for display in displays)
    assert all(ax.lines and ax.get_xlabel() and ax.get_ylabel() for ax in axes)


def test_bad_input_is_named(ratio, risk, data):
    _, X_u, X, y = data
    for display, arguments in ((ThresholdDisplay, ()), (CostDisplay, (X_u,))):
        with pytest.raises(ValueError, match="estimator must be a density ratio"):
            display.from_estimator(risk, *arguments)
    with pytest.raises(ValueError, match="false_positive and false_negative must be given"):
        CostDisplay.from_estimator(ratio, X_u, false_positive=5)
    with pytest.raises(ValueError, match="false_negative must be a finite number > 0, got 0"):
        CostDisplay.from_estimator(ratio, X_u, false_positive=5, false_negative=0)
    with pytest.raises(ValueError, match="ax must be a pair of axes"):
        CostDisplay.from_estimator(ratio, X_u, ax=plt.gca())
    for labels in (y[:-1], np.ones(len(y))):
        with pytest.raises(ValueError, match="y must hold both classes, one for each row"):
            ReliabilityDisplay.from_estimator(ratio, X, labels)
    with pytest.raises(ValueError, match="test_prior must lie strictly between 0 and 1"):
        ThresholdDisplay.from_estimator(ratio, test_priors=[0.0, 0.5])
    for options in ({"test_priors": []}, {"alphas": []}):
        with pytest.raises(ValueError, match="must be a non-empty sequence of numbers"):
            ThresholdDisplay.from_estimator(ratio, **options)
    with pytest.raises(ValueError, match="estimator must be a classifier of pu_shift"):
        PosteriorDisplay.from_estimator(3, X_u)
