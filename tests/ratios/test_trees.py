"""Boosted trees as arrays predict what scikit-learn's do."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from pu_shift import DensityRatioClassifier
from pu_shift.files.models import load_model, save_model
from pu_shift.ratios import trees
from pu_shift.ratios.base import Ratio
from pu_shift.ratios.odds import ClassifierRatio
from tests.mixtures import pu_samples

X_P, X_U = pu_samples(150, 300, 0.4, d=3)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("options", [{}, {"max_leaf_nodes": 2}, {"max_depth": 1}, {"max_iter": 1}])
def test_the_arrays_are_the_trees(monkeypatch, missing, options):
    monkeypatch.setattr(trees, "CHUNK_ROWS", 64)
    rng = np.random.default_rng(0)
    samples = [np.where(rng.random(X.shape) < missing, np.nan, X) for X in (X_P, X_U)]
    ratio = ClassifierRatio(HistGradientBoostingClassifier(random_state=0, **options))
    ratio.fit(*samples)
    found = Ratio.from_state(ratio.to_state())
    probe = np.where(rng.random((500, 3)) < 0.1, np.nan, rng.normal(0.5, 2.0, (500, 3)))
    # Also on thresholds, which are values of the training rows or means of two.
    for X in (probe, *samples):
        np.testing.assert_allclose(found(X), ratio(X), rtol=1e-12)
    again = Ratio.from_state(found.to_state())
    np.testing.assert_array_equal(again(probe), found(probe))


def test_trees_with_categories_are_refused():
    X = np.random.default_rng(0).integers(0, 5, (300, 1)).astype(float)
    model = HistGradientBoostingClassifier(categorical_features=[0], max_iter=2)
    ratio = ClassifierRatio(model).fit(X[X[:, 0] % 2 == 0], X)
    with pytest.raises(ValueError, match="categorical features cannot be saved without code"):
        ratio.to_state()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("left", lambda nodes: np.zeros_like(nodes)),
        ("right", lambda nodes: nodes + 10**6),
        ("roots", lambda nodes: nodes - 1),
        ("value", lambda values: values[1:]),
    ],
)
def test_a_forged_state_is_refused(name, change):
    """Also one whose ways down would never end."""
    state = ClassifierRatio(HistGradientBoostingClassifier(max_iter=2)).fit(X_P, X_U).to_state()
    with pytest.raises(ValueError, match=name):
        Ratio.from_state({**state, name: change(state[name])})


def test_a_default_fit_can_be_saved(tmp_path):
    classifier = DensityRatioClassifier(0.4).fit_pu(X_P, X_U)
    assert "boosting" in classifier.candidates_
    save_model(tmp_path / "model.npz", classifier)
    loaded = load_model(tmp_path / "model.npz")
    np.testing.assert_allclose(loaded.predict_ratio(X_U), classifier.predict_ratio(X_U), rtol=1e-9)
