"""What all density ratios share: fit and constructor, choices, states, the registry."""

import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from pu_shift import KLIEP, ULSIF, DensityRatioClassifier
from pu_shift._grids import random_folds
from pu_shift.ratios import registry
from pu_shift.ratios.average import fit_average
from pu_shift.ratios.base import DensityRatio, Ratio
from pu_shift.ratios.registry import AUTO, RATIOS, check_candidates, new_ratio
from pu_shift.ratios.trees import BoostedTrees
from tests.mixtures import pu_samples

X_P, X_U = pu_samples(60, 150, 0.4, d=2)
SAVED = [name for name in RATIOS if RATIOS[name](3, 0, None).can_be_saved]


def fitted(name):
    return new_ratio(name, 3, 0, None).fit(X_P, X_U)


def through_json(value):
    """A state as a file keeps it: arrays aside, everything else as JSON."""
    if isinstance(value, dict):
        return {key: through_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [through_json(item) for item in value]
    return value.copy() if isinstance(value, np.ndarray) else json.loads(json.dumps(value))


@pytest.mark.parametrize("kind", [ULSIF, KLIEP])
def test_the_constructor_with_samples_fits(kind):
    options = {"n_centers": 20, "widths": 1.0, "random_state": 3}
    at_once, later = kind(X_P, X_U, **options), kind(**options)
    assert later.fit(X_P, X_U) is later
    np.testing.assert_array_equal(at_once.coefficients_, later.coefficients_)
    assert clone(at_once).get_params() == later.get_params()
    assert "numerator" not in later.get_params()


@pytest.mark.filterwarnings("ignore::pu_shift.ratios.base.GridEdgeWarning")
@pytest.mark.parametrize("name", RATIOS)
def test_a_fit_with_its_own_choices_is_the_same_fit(name):
    ratio = fitted(name)
    again = ratio.with_choices().fit(X_P, X_U)
    if name == "kliep":  # its iteration stops within a tolerance of the likelihood
        likelihoods = [np.log(part(X_P)).mean() for part in (again, ratio)]
        assert abs(likelihoods[0] - likelihoods[1]) <= again.ratio.tolerance
    else:
        np.testing.assert_allclose(again(X_U), ratio(X_U), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::pu_shift.ratios.base.GridEdgeWarning")
@pytest.mark.parametrize("name", RATIOS)
def test_a_ratio_without_a_fold_does_not_know_its_rows(name):
    """Rows of a fold that become nonsense move the ratios without other folds, not that one."""
    samples, folds = (X_P, X_U), [random_folds("X", len(X), 3, k) for k, X in enumerate((X_P, X_U))]
    held_out = [one.of_rows == 1 for one in folds]
    ratio, nonsense = fitted(name), [X.copy() for X in samples]
    for X, out in zip(nonsense, held_out):
        X[out] += 2.0
    (_, (without, values)), (_, (again, _)) = (
        ratio.without_folds(rows, folds, [0, 1], {}) for rows in (samples, nonsense)
    )
    probe = X_U[:20]
    if name == "kliep":  # it sees the denominator's fold by the mean
        assert not np.array_equal(without(probe), ratio(probe))
    else:
        np.testing.assert_allclose(again(probe), without(probe), rtol=1e-9)
    for X, out, part in zip(samples, held_out, values):
        np.testing.assert_allclose(part, without(X[out]), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::pu_shift.ratios.base.GridEdgeWarning")
@pytest.mark.parametrize("name", [*SAVED, "average"])
def test_a_state_is_the_whole_ratio(name):
    if name == "average":
        ratio = fit_average(X_P, X_U, check_candidates(list(AUTO)), 0.4, n_folds=3)[0]
    else:
        ratio = fitted(name)
    again = Ratio.from_state(through_json(ratio.to_state()))
    assert type(again) is (BoostedTrees if name == "boosting" else type(ratio))
    np.testing.assert_array_equal(again(X_U), ratio(X_U))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "os.system"}, "kind must be that of a ratio, got 'os.system'"),
        ({"kind": "ClassifierRatio"}, "ClassifierRatio cannot be saved without code"),
        ({"coefficients": np.ones(3)}, "coefficients must be finite numbers of shape"),
        ({"centers": np.full((20, 2), np.nan)}, "centers must be finite numbers of shape"),
        ({"width": -1.0}, "width must be a finite number > 0, got -1.0"),
    ],
)
def test_a_state_whose_parts_do_not_belong_together_is_refused(change, message):
    state = ULSIF(X_P, X_U, n_centers=20, widths=1.0, lams=0.1).to_state()
    with pytest.raises(ValueError, match=f"^{message}"):
        Ratio.from_state(state | change)


class FirstFeature(DensityRatio, BaseEstimator):
    """A ratio that rises with the first feature, as a user may write one."""

    def fit(self, numerator, denominator):
        self.gap_ = float(numerator[:, 0].mean() - denominator[:, 0].mean())
        return self

    def predict(self, X):
        return np.exp(self.gap_ * X[:, 0])

    def _state(self):
        return {"gap": self.gap_}

    @classmethod
    def _restore(cls, state):
        ratio = cls()
        ratio.gap_ = state["gap"]
        return ratio


def test_a_new_estimator_is_a_class_and_a_line(monkeypatch):
    monkeypatch.setitem(registry.RATIOS, "first", lambda n_folds, seed, device: FirstFeature())
    classifier = DensityRatioClassifier(0.4, estimator=["first", "linear"]).fit_pu(X_P, X_U)
    assert set(classifier.candidates_) == {"first", "linear"}
    again = Ratio.from_state(through_json(classifier.ratio_.to_state()))
    np.testing.assert_array_equal(again(X_U), classifier.ratio_(X_U))
    with pytest.raises(
        ValueError, match="^estimator must be one of 'auto', .*'first', a classifier or a"
    ):
        DensityRatioClassifier(0.4, estimator="second").fit_pu(X_P, X_U)
