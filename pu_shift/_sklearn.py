"""Helpers around scikit-learn: a scaler of two samples, the steps of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pu_shift._checks import check_scales

if TYPE_CHECKING:
    from sklearn.preprocessing import StandardScaler


def fit_scaler(*samples: Any) -> StandardScaler:
    """Return a ``StandardScaler`` fitted to the rows of all samples; it ignores missing values."""
    from sklearn.preprocessing import StandardScaler

    X = np.concatenate(samples)
    check_scales(np.fmin.reduce(X), np.fmax.reduce(X))
    return StandardScaler().fit(X)


def restore_scaler(mean: np.ndarray, scale: np.ndarray, n_rows: int | None = None) -> Any:
    """Return a fitted ``StandardScaler`` of known mean and standard deviation."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    scaler.mean_, scaler.scale_, scaler.var_ = mean, scale, scale**2
    scaler.n_features_in_ = len(mean)
    if n_rows is not None:
        scaler.n_samples_seen_ = n_rows
    return scaler


def _is_pipeline(estimator: Any) -> bool:
    from sklearn.pipeline import Pipeline

    return isinstance(estimator, Pipeline)


def split_steps(estimator: Any) -> tuple[Any, Any]:
    """Return the transformers of a pipeline (``None`` without any) and its last step."""
    if not _is_pipeline(estimator):
        return None, estimator
    return (estimator[:-1] if len(estimator) > 1 else None), estimator[-1]


def split_first(estimator: Any) -> tuple[Any, Any]:
    """Return the first step of a pipeline and the rest; of another estimator itself and None."""
    if not _is_pipeline(estimator):
        return estimator, None
    rest = estimator[1:]
    return estimator[0], (rest[0] if len(rest) == 1 else rest)


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline; another estimator is returned as it is."""
    return split_steps(estimator)[1]
