import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pu_shift import Condition, DensityRatioClassifier
from pu_shift.estimation.sensitivity import decision_sensitivity
from tests.mixtures import mixture, pu_samples

UNIT = st.floats(0.02, 0.98)
GRID = {"widths": 1.0, "lams": 0.01}


@given(UNIT, UNIT, UNIT, UNIT, UNIT, st.sampled_from(["p/u", "u/p"]), st.integers(0, 10**6))
def test_sensitivity_is_what_a_fine_grid_of_priors_shows(a, b, c, d, alpha, direction, seed):
    (low, high), (test_low, test_high) = sorted((a, b)), sorted((c, d))
    ratio = np.random.default_rng(seed).gamma(1.0, 1.5, 300)
    found = decision_sensitivity(ratio, (low, high), (test_low, test_high), alpha, direction)
    decisions = np.stack(
        [
            Condition(prior, test_prior, alpha).classify_ratio(ratio, direction) > 0
            for prior in np.linspace(low, high, 9)
            for test_prior in np.linspace(test_low, test_high, 9)
        ]
    )
    np.testing.assert_array_equal(found.changed, decisions.any(axis=0) & ~decisions.all(axis=0))
    assert found.n_changed == found.changed.sum() == round(found.share * found.n_rows)
    tied = decision_sensitivity(ratio, (low, high), None, alpha, direction)
    decisions = np.stack(
        [
            Condition(prior, None, alpha).classify_ratio(ratio, direction) > 0
            for prior in np.linspace(low, high, 9)
        ]
    )
    np.testing.assert_array_equal(tied.changed, decisions.any(axis=0) & ~decisions.all(axis=0))


def test_sensitivity_of_a_classifier_defaults_to_what_it_decides_by():
    X, _ = mixture(500, 0.5, np.random.default_rng(0))
    samples = pu_samples(400, 1600, 0.3)
    classifier = DensityRatioClassifier(0.3, **GRID).fit_pu(*samples)
    assert classifier.sensitivity(X).n_changed == 0
    tied = classifier.sensitivity(X, prior=(0.2, 0.4))
    assert tied.test_prior is None
    assert tied.n_changed > 0
    fixed = DensityRatioClassifier(0.3, 0.5, **GRID).fit_pu(*samples)
    # At π′ = α = ½ the threshold on p/u is 1, whatever π is.
    assert fixed.sensitivity(X, prior=(0.1, 0.9)).n_changed == 0
    found = fixed.set_params(test_prior="estimate").sensitivity(X)
    assert found.test_prior == (fixed.test_prior_.low, fixed.test_prior_.high)
    assert found.n_changed > 0


def test_the_plot_shows_the_shares_at_the_ends():
    from matplotlib.figure import Figure

    ratio = np.random.default_rng(0).gamma(1.0, 1.5, 300)
    axes = Figure().add_subplot()
    found = decision_sensitivity(ratio, (0.2, 0.4), (0.3, 0.6))
    assert found.plot(axes) is axes
    low, high = axes.get_lines()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["π = 0.2", "π = 0.4"]
    x, share = low.get_data()
    at = np.argmin(np.abs(x - 0.5))
    decided = Condition(0.2, x[at]).classify_ratio(ratio) > 0
    assert share[at] == pytest.approx(decided.mean())
    assert (np.diff(high.get_ydata()) >= 0).all()
    assert len(decision_sensitivity(ratio, (0.2, 0.4)).plot().get_lines()) == 1
