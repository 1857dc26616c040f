"""Rows and options that the tests of both estimators share."""

import numpy as np

from tests.mixtures import pu_samples

PRIOR = 0.3
X_P, X_U = pu_samples(400, 1600, PRIOR)
GRID = np.linspace(-3.0, 3.0, 121)[:, None]
FAST = {"lams": [1e-3, 1e-1], "n_steps": 400, "learning_rate": 0.02}
RATIO = {"widths": [1.0, 2.0], "lams": [1e-3, 1e-2, 1e-1, 1.0]}
