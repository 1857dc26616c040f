import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import precision_recall_curve, roc_curve

from pu_shift import evaluate
from pu_shift.evaluation import curves
from tests.evaluation.test_evaluator import Cut
from tests.mixtures import mixture, pu_samples

# No point of the grid is a multiple of 1/303 or 1/203, where a curve may be vertical.
N = mixture(303, 0.0, np.random.default_rng(3))[0]
P, U = pu_samples(203, 600, 0.4)
OF_LABELLED = evaluate(Cut(), P, X_n=N, prior=0.4, n_resamples=50)
OF_UNLABELLED = evaluate(Cut(), P, U, prior=0.4, n_resamples=50)


def test_curves_of_labelled_rows_are_those_of_scikit_learn():
    y, score = np.repeat([1, 0], [len(P), len(N)]), np.concatenate([P, N])[:, 0]
    false, found, _ = roc_curve(y, score, drop_intermediate=False)
    expected = np.interp(curves.GRID, false, found)[1:-1]
    np.testing.assert_allclose(curves.roc_curve(OF_LABELLED.rates)[0, 1:-1], expected)
    precision, recall, _ = precision_recall_curve(y, score, drop_intermediate=False)
    rates = OF_LABELLED.rates
    same = curves.Rates(rates.rows, rates.p, rates.u, rates.prior, np.array([len(P) / len(y)]), 0.5)
    steps, hits = len(P) * curves.GRID[1:-1], np.round(recall * len(P))
    for step, value in zip(steps, curves.precision_recall_curve(same)[0, 1:-1]):
        near = precision[np.abs(hits - step) < 1.0]
        assert near.min() - 1e-9 <= value <= near.max() + 1e-9


@pytest.mark.parametrize("found", [OF_LABELLED, OF_UNLABELLED])
def test_a_band_holds_its_curve_and_most_of_the_truth(found):
    from scipy.stats import norm

    middle, low, high = curves.band_of(found, curves.roc_curve)
    assert (low <= middle).all()
    assert (middle <= high).all()
    truth = norm.cdf(norm.ppf(curves.GRID) + 2.0)
    assert ((low <= truth) & (truth <= high))[5:95].mean() > 0.7


def test_reliability_of_a_true_posterior_is_the_diagonal():
    X_p, X_n = pu_samples(50_000, 50_000, 0.0, seed=4)
    found = evaluate(Cut(), X_p, X_n=X_n, prior=0.4, test_prior=0.5, n_resamples=2)
    stated, observed = curves.reliability(found.rates)
    np.testing.assert_allclose(observed[0], stated, atol=0.03)


def test_the_picture_has_two_or_three_panels():
    axes = OF_UNLABELLED.plot()
    assert [one.get_xlabel().split(" at ")[0] for one in axes] == [
        "false positive rate",
        "recall",
        "probability that it states",
    ]
    place = axes[0].lines[1].get_xydata()[0]
    value = OF_UNLABELLED["false_positive_rate"].value, OF_UNLABELLED["recall"].value
    np.testing.assert_allclose(place, value)
    pair = Figure().subplots(1, 2)
    assert list(OF_UNLABELLED.plot(pair)) == list(pair)
    with pytest.raises(ValueError, match="^axes must be two or 3, got shape"):
        OF_UNLABELLED.plot(Figure().subplots())
