"""The paper's methods on one training set, for all given priors at once."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from pu_shift.classifiers import DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.data.sampling import Draw
from pu_shift.paper.protocol import Protocol
from pu_shift.ulsif import GridEdgeWarning

Classifier = DensityRatioClassifier | RiskMinimizationClassifier


def fit_method(
    protocol: Protocol,
    method: str,
    sample: Draw,
    prior: float,
    given_priors: Sequence[float],
    gpu: int = -1,
) -> dict[float, Any]:
    """Fit one method for every given test prior: the ratio once, the risks in one stack.

    Parameters
    ----------
    protocol
        Supplies the estimator's arguments.
    method
        One of the paper's six names or ``'p/u uLSIF-Lin'``.
    sample
        P and U; its seed is that of everything random in fitting.
    prior
        π of U, as the method is told.
    given_priors
        The test priors given to the method.
    gpu
        The CUDA device, or −1 for the CPU.

    Returns
    -------
    dict
        Given prior to the fitted classifier.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> P, U = (rng.normal(m, 1, (n, 2)).astype("f") for m, n in ((1, 50), (0, 99)))
    >>> sample = Draw(P, U, np.zeros(99), {}, np.random.SeedSequence(0))
    >>> fitted = fit_method(Protocol(), "p/u uLSIF", sample, 0.4, [0.4, 0.6])
    >>> bool(fitted[0.6].predict(P).mean() >= fitted[0.4].predict(P).mean())
    True
    """
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
    """Return the hyper-parameters that cross-validation chose, and the steps of training.

    Parameters
    ----------
    classifier
        A fitted classifier.

    Returns
    -------
    dict
        ``width``, ``lam`` and ``step``; NaN for what a method does not have.

    Examples
    --------
    >>> ratio = DensityRatioClassifier(0.4, basis="linear", lams=0.1)
    >>> chosen(ratio.fit_pu([[1.0], [2.0]], [[0.0], [1.0]]))["lam"]
    0.1
    """
    if isinstance(classifier, RiskMinimizationClassifier):
        step = float(classifier.n_steps)
        return {"width": classifier.width_, "lam": classifier.lam_, "step": step}
    return {"width": classifier.ratio_.width, "lam": classifier.ratio_.lam, "step": np.nan}


def scale_features(sample: Draw, scaling: str) -> Draw:
    """Scale every feature by what P ∪ U show.

    Parameters
    ----------
    sample
        P, U and test sets.
    scaling
        ``'standard'`` for mean 0 and variance 1, ``'minmax'`` for [0, 1], or ``'none'``.

    Returns
    -------
    Draw
        The same draw, scaled.

    Examples
    --------
    >>> P, U = np.array([[1.0, 5.0]]), np.array([[3.0, 5.0]])
    >>> sample = Draw(P, U, np.zeros(1), {}, np.random.SeedSequence(0))
    >>> scale_features(sample, "minmax").unlabeled.tolist()
    [[1.0, 0.0]]
    """
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
