"""Scikit-learn estimators for positive and unlabelled data under a given test condition.

The training data say little about where a classifier will be used: the test prior π′ and the
false-positive penalty α are given by the user. Both estimators take them, and differ in when:

:class:`DensityRatioClassifier`
    fits p_p/p_u (or p_u/p_p) once; π, π′ and α move only a threshold and may change after
    ``fit``.
:class:`RiskMinimizationClassifier`
    minimises the risk of one condition; another one needs another ``fit``.
"""

from pu_shift.estimators.base import LabelWarning
from pu_shift.estimators.density_ratio import DensityRatioClassifier
from pu_shift.estimators.risk_minimization import (
    FallbackWarning,
    NonConvexWarning,
    RiskMinimizationClassifier,
)

__all__ = [
    "DensityRatioClassifier",
    "FallbackWarning",
    "LabelWarning",
    "NonConvexWarning",
    "RiskMinimizationClassifier",
]
