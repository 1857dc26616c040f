"""The paper's methods on one training set, for all given priors at once."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from pu_shift.data.sampling import Draw
from pu_shift.estimators import RiskMinimizationClassifier
from pu_shift.paper.protocol import Protocol
from pu_shift.ratios.base import GridEdgeWarning


def fit_method(
    protocol: Protocol,
    method: str,
    sample: Draw,
    prior: float,
    given_priors: Sequence[float],
    gpu: int = -1,
) -> dict[float, Any]:
    """Fit one method for every given test prior: the ratio once, the risks in one stack."""
    estimator = protocol.estimator(method, prior, gpu=gpu, random_state=sample.seed)
    with warnings.catch_warnings():
        # The grids are the protocol's; their edges are no news to the user.
        warnings.simplefilter("ignore", GridEdgeWarning)
        if isinstance(estimator, RiskMinimizationClassifier):
            conditions = [{"test_prior": given} for given in given_priors]
            fitted = estimator.fit_many(sample.positives, sample.unlabeled, conditions)
        else:
            estimator.fit_pu(sample.positives, sample.unlabeled)
            fitted = [copy.copy(estimator).set_params(test_prior=given) for given in given_priors]
    return dict(zip(given_priors, fitted))


def chosen(classifier: Any) -> dict[str, float]:
    """Return the chosen width and λ and the steps of training; NaN for what is not there."""
    if isinstance(classifier, RiskMinimizationClassifier):
        step = float(classifier.n_steps)
        return {"width": classifier.width_, "lam": classifier.lam_, "step": step}
    return {"width": classifier.ratio_.width_, "lam": classifier.ratio_.lam_, "step": np.nan}


def scale_features(sample: Draw, scaling: str) -> Draw:
    """Scale every feature by what P ∪ U show: ``'standard'``, ``'minmax'`` or ``'none'``."""
    if scaling == "none":
        return sample
    scaler = StandardScaler() if scaling == "standard" else MinMaxScaler()
    scaler.fit(np.concatenate([sample.positives, sample.unlabeled]))
    return replace(
        sample,
        positives=scaler.transform(sample.positives),
        unlabeled=scaler.transform(sample.unlabeled),
        tests={prior: (scaler.transform(X), y) for prior, (X, y) in sample.tests.items()},
    )
