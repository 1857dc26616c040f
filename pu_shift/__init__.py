"""PU classification under class prior shift and asymmetric error.

The reference implementation of Charoenphakdee & Sugiyama (2019). The theory lives in
:mod:`pu_shift.priors` and :mod:`pu_shift.losses`, density ratios in :mod:`pu_shift.ratios`, risk
minimisation in :mod:`pu_shift.risks`, :mod:`pu_shift.models` and :mod:`pu_shift.training`. The
scikit-learn estimators over both are in :mod:`pu_shift.estimators`.

A public name is imported when it is first used, so that ``import pu_shift`` takes no time.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pu_shift import _chainer, _moved
from pu_shift._version import __version__

if TYPE_CHECKING:
    from pu_shift.estimation.class_prior import estimate_prior
    from pu_shift.estimation.shift_check import check_positives, check_shift
    from pu_shift.estimation.test_prior import estimate_test_prior
    from pu_shift.estimators import DensityRatioClassifier, RiskMinimizationClassifier
    from pu_shift.evaluation.evaluator import evaluate
    from pu_shift.evaluation.scorers import (
        PURiskScorer,
        pu_scorer,
        surrogate_scorer,
        zero_one_scorer,
    )
    from pu_shift.files.models import load_model, save_model
    from pu_shift.models import MLP, GaussianKernelModel, LinearModel
    from pu_shift.priors import Condition
    from pu_shift.ratios.kliep import KLIEP
    from pu_shift.ratios.ulsif import ULSIF
    from pu_shift.risks import Risk
    from pu_shift.training import train

_chainer.mend_imports()
_moved.find_moved_modules()

_MODULES = {
    "KLIEP": "ratios.kliep",
    "MLP": "models",
    "ULSIF": "ratios.ulsif",
    "Condition": "priors",
    "DensityRatioClassifier": "estimators",
    "GaussianKernelModel": "models",
    "LinearModel": "models",
    "PURiskScorer": "evaluation.scorers",
    "Risk": "risks",
    "RiskMinimizationClassifier": "estimators",
    "check_positives": "estimation.shift_check",
    "check_shift": "estimation.shift_check",
    "estimate_prior": "estimation.class_prior",
    "estimate_test_prior": "estimation.test_prior",
    "evaluate": "evaluation.evaluator",
    "load_model": "files.models",
    "pu_scorer": "evaluation.scorers",
    "save_model": "files.models",
    "surrogate_scorer": "evaluation.scorers",
    "train": "training",
    "zero_one_scorer": "evaluation.scorers",
}
_ROOMS = (
    *("bigdata", "device", "estimation", "estimators", "evaluation", "files", "losses"),
    *("models", "priors", "ratios", "risks", "training"),
)

__all__ = [
    "KLIEP",
    "MLP",
    "ULSIF",
    "Condition",
    "DensityRatioClassifier",
    "GaussianKernelModel",
    "LinearModel",
    "PURiskScorer",
    "Risk",
    "RiskMinimizationClassifier",
    "__version__",
    "check_positives",
    "check_shift",
    "estimate_prior",
    "estimate_test_prior",
    "evaluate",
    "load_model",
    "pu_scorer",
    "save_model",
    "surrogate_scorer",
    "train",
    "zero_one_scorer",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found = getattr(importlib.import_module(f"pu_shift.{_MODULES[name]}"), name)
        globals()[name] = found  # asked for once
        return found
    if name in _ROOMS:
        return importlib.import_module(f"pu_shift.{name}")
    if name == "RowBlocks":
        raise AttributeError(
            "pu_shift.RowBlocks is gone: make a Dask collection of your blocks, for instance by "
            "dask.dataframe.from_map, see docs/big_data.md"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
