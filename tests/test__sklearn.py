"""Scalers of two samples, and the steps of pipelines."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift._sklearn import fit_scaler, last_step, split_steps

ROWS = np.array([[1.0, 5.0], [3.0, 5.0], [8.0, 5.0]])


def test_a_scaler_gives_both_samples_together_mean_zero_and_unit_variance():
    scaled = fit_scaler(ROWS[:1], ROWS[1:]).transform(ROWS)
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), [1.0, 0.0])  # constant features stay finite


def test_the_last_step_is_that_of_a_pipeline_or_the_estimator():
    classifier, scaler = LogisticRegression(), StandardScaler()
    before, last = split_steps(make_pipeline(scaler, classifier))
    assert (before[0], last) == (scaler, classifier)
    for estimator in (classifier, make_pipeline(classifier)):
        assert split_steps(estimator) == (None, classifier)
        assert last_step(estimator) is classifier
