"""The estimators of a density ratio by their names, and what the argument ``estimator`` may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from pu_shift._checks import distinct, shown
from pu_shift._grids import RATIO_LAMS
from pu_shift._seeds import Seed
from pu_shift.ratios.base import BasisRatio, DensityRatio
from pu_shift.ratios.deep import DeepRatio, is_link
from pu_shift.ratios.kliep import KLIEP
from pu_shift.ratios.odds import ClassifierRatio, LogisticRatio, small_seed
from pu_shift.ratios.standardized import StandardizedRatio
from pu_shift.ratios.ulsif import ULSIF

# Estimators that are used as published when they are asked for alone.
BASIS_RATIOS: dict[str, type[BasisRatio]] = {"ulsif": ULSIF, "kliep": KLIEP}


def _ulsif(n_folds: int, seed: Seed, device: Any) -> DensityRatio:
    ratio = ULSIF(n_centers=None, lams=RATIO_LAMS, n_folds=n_folds, random_state=seed)
    return StandardizedRatio(ratio, device)


def _kliep(n_folds: int, seed: Seed, device: Any) -> DensityRatio:
    return StandardizedRatio(KLIEP(n_centers=None, n_folds=n_folds, random_state=seed), device)


def _logistic(width_factor: float | None, n_folds: int, seed: Seed, device: Any) -> DensityRatio:
    return StandardizedRatio(LogisticRatio(width_factor, seed))


def _boosting(n_folds: int, seed: Seed, device: Any) -> DensityRatio:
    trees = HistGradientBoostingClassifier(
        learning_rate=0.05,
        max_iter=150,
        max_leaf_nodes=8,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=small_seed(seed),
    )
    return ClassifierRatio(trees)


# A function of each name makes an estimator, that is not fitted, of the number of folds, a seed,
# and the device for kernels. A new estimator is a class and a line here.
RATIOS: dict[str, Callable[[int, Seed, Any], DensityRatio]] = {
    "ulsif": _ulsif,
    "kliep": _kliep,
    "linear": partial(_logistic, None),
    "nystroem": partial(_logistic, 0.5),
    "nystroem_wide": partial(_logistic, 1.0),
    "boosting": _boosting,
}
AUTO = ("ulsif", "linear", "nystroem", "nystroem_wide", "boosting")


def new_ratio(item: Any, n_folds: int, seed: Seed, device: Any, prior: float = 0.0) -> DensityRatio:
    """Return the estimator of a candidate, not fitted."""
    if isinstance(item, str):
        return RATIOS[item](n_folds, seed, device)
    if isinstance(item, DensityRatio):
        return item.for_classifier(prior, seed, device)
    return ClassifierRatio(item)


def check_candidates(estimator: Any) -> dict[str, Any]:
    """Return the candidates by name: names, classifiers, and density ratios, also of networks.

    Parameters
    ----------
    estimator
        ``'auto'``, a name, a classifier, a Chainer link, a :class:`DensityRatio`, or a sequence
        of these.
    """
    if isinstance(estimator, str) and estimator == "auto":
        estimator = AUTO
    wanted = list(estimator) if isinstance(estimator, (list, tuple)) else [estimator]
    if not wanted:
        raise ValueError("estimator must not be empty")
    names = []
    for item in wanted:
        if isinstance(item, str) and item in RATIOS:
            names.append(item)
        elif isinstance(item, (str, type)) or not (hasattr(item, "fit") or is_link(item)):
            known = ", ".join(map(repr, ("auto", *RATIOS)))
            raise ValueError(
                f"estimator must be one of {known}, a classifier or a Chainer link, "
                f"got {shown(item)}"
            )
        elif not (
            hasattr(item, "predict_proba") or isinstance(item, DensityRatio) or is_link(item)
        ):
            raise ValueError(
                f"estimator must have predict_proba, {type(item).__name__} has none: "
                "CalibratedClassifierCV gives it one"
            )
        else:
            same = sum(type(other) is type(item) for other in wanted[: len(names)])
            names.append(type(item).__name__ + (f"-{same + 1}" if same else ""))
    distinct("estimator", names)
    return {name: DeepRatio(item) if is_link(item) else item for name, item in zip(names, wanted)}


def takes(item: Any) -> tuple[bool, bool]:
    """Return whether a candidate takes sparse rows, and missing values, as far as it says."""
    if isinstance(item, str):
        return item == "linear", False
    try:
        from sklearn.utils import get_tags
    except ImportError:  # scikit-learn before 1.6
        from sklearn.utils._tags import _safe_tags

        return True, bool(_safe_tags(item, "allow_nan"))
    tags = get_tags(item).input_tags
    return tags.sparse, tags.allow_nan


def accepts_missing(item: Any) -> bool:
    """Return whether a candidate may take missing values; the first step of a pipeline decides."""
    return takes(item[0] if isinstance(item, Pipeline) else item)[1]


def for_sparse(candidates: Mapping[str, Any], estimator: Any) -> dict[str, Any]:
    """Return the candidates that can serve sparse rows; 'auto' is the linear one."""
    if isinstance(estimator, str) and estimator == "auto":
        candidates = {"linear": "linear"}
    for name, item in candidates.items():
        if isinstance(item, DensityRatio) or (isinstance(item, str) and item != "linear"):
            raise ValueError(
                f"X is sparse, which estimator={name!r} does not take: use 'linear', or a "
                "classifier that does"
            )
    linear = make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=1000))
    return {name: linear if item == "linear" else item for name, item in candidates.items()}
