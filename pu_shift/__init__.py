"""PU classification under class prior shift and asymmetric error.

The reference implementation of Charoenphakdee & Sugiyama (2019). The theory lives in
:mod:`pu_shift.priors` and :mod:`pu_shift.losses`, the two frameworks in :mod:`pu_shift.ulsif`
(density ratios) and :mod:`pu_shift.risks`, :mod:`pu_shift.links`, :mod:`pu_shift.training` (risk
minimisation). The scikit-learn estimators over both are in :mod:`pu_shift.classifiers`.
"""

from pu_shift import _chainer  # noqa: F401  (first: makes Chainer importable)
from pu_shift._version import __version__
from pu_shift.blocks import RowBlocks
from pu_shift.class_prior import estimate_prior
from pu_shift.classifiers import DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.links import MLP, GaussianKernelModel, LinearModel
from pu_shift.model_selection import PURiskScorer, surrogate_scorer, zero_one_scorer
from pu_shift.priors import Condition
from pu_shift.risks import Risk
from pu_shift.shift_check import check_positives, check_shift
from pu_shift.shift_estimation import estimate_test_prior
from pu_shift.training import train
from pu_shift.ulsif import KLIEP, ULSIF

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
    "RowBlocks",
    "__version__",
    "check_positives",
    "check_shift",
    "estimate_prior",
    "estimate_test_prior",
    "surrogate_scorer",
    "train",
    "zero_one_scorer",
]
