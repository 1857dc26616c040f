import pytest

from pu_shift import DensityRatioClassifier
from tests.estimators.samples import PRIOR, RATIO, X_P, X_U


@pytest.fixture(scope="module")
def ratio():
    """A fitted density ratio."""
    return DensityRatioClassifier(PRIOR, **RATIO).fit_pu(X_P, X_U)
