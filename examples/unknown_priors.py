"""
Neither prior is known
======================

How many of the unlabelled rows are positive? How many of the new ones? Both can be estimated, each
with an interval. What matters in the end is how many decisions depend on the exact values.
"""

# %%
# Two overlapping classes. 30 % of the unlabelled rows are positive and 60 % of the new ones; nobody
# tells the classifier.

import matplotlib.pyplot as plt
import numpy as np

from pu_shift import DensityRatioClassifier, estimate_prior, estimate_test_prior

PRIOR, TEST_PRIOR = 0.3, 0.6


def rows(n, prior, rng):
    """Draw rows of two overlapping classes, and the truth."""
    positive = rng.random(n) < prior
    return rng.normal(np.where(positive, 1.2, -1.2)[:, None], 1.0, (n, 2)), positive


rng = np.random.default_rng(0)
X_p, X_u = rows(500, 1.0, rng)[0], rows(2000, PRIOR, rng)[0]
X_new, truth = rows(1000, TEST_PRIOR, rng)

# %%
# The share among the unlabelled rows.

found = estimate_prior(X_p, X_u)
print(f"π is {PRIOR}, found {found.prior:.2f} ({found.low:.2f} to {found.high:.2f})")

# %%
# The share among the new rows. Its interval includes the uncertainty about the first share.

classifier = DensityRatioClassifier(found.prior).fit_pu(X_p, X_u)
shift = estimate_test_prior(classifier, X_new, prior=(found.low, found.high))
print(f"π′ is {TEST_PRIOR}, found {shift.test_prior:.2f} ({shift.low:.2f} to {shift.high:.2f})")

# %%
# Decide, and count the decisions that would change somewhere within the two intervals.

classifier.set_params(test_prior=shift.test_prior)
accuracy = np.mean((classifier.predict(X_new) == 1) == truth)
result = classifier.sensitivity(X_new, (found.low, found.high), (shift.low, shift.high))
print(f"{accuracy:.1%} are right; {result.n_changed} of {result.n_rows} decisions may change")

# %%
# The share of rows that are called positive, over the test prior; one curve for each end of the
# interval of π.

_, axes = plt.subplots(layout="constrained")
result.plot(axes)
plt.show()
