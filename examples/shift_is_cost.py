"""
A shift is a cost
=================

To tell a classifier that positives are more frequent is the same as to tell it that missing one
costs more (Theorem 1 of the paper). One number, a threshold, is enough for both.
"""

# %%
# Two Gaussian classes on a line. 30 % of the unlabelled rows are positive, and 60 % of the test
# rows.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from pu_shift import Condition
from pu_shift.priors import alpha_from_test_prior, shift_posterior

PRIOR, TEST_PRIOR = 0.3, 0.6
x = np.linspace(-4.0, 4.0, 801)
positive, negative = norm.pdf(x, 1.0), norm.pdf(x, -1.0)
unlabelled = PRIOR * positive + (1 - PRIOR) * negative
test = TEST_PRIOR * positive + (1 - TEST_PRIOR) * negative

# %%
# The probability of a positive in the training data, the same in the test data, and where the
# decision changes: by the shift, and by the cost α that Theorem 1 gives.

posterior = PRIOR * positive / unlabelled
moved = shift_posterior(posterior, PRIOR, TEST_PRIOR)
alpha = alpha_from_test_prior(PRIOR, TEST_PRIOR)
by_shift, by_cost = x[np.argmax(moved > 0.5)], x[np.argmax(posterior > alpha)]
print(f"test prior {TEST_PRIOR} is the cost α = {alpha:.4f}")
print(f"the decision changes at {by_shift:.2f} by the shift, at {by_cost:.2f} by the cost")

# %%
# Left: the three distributions. Right: the probability of a positive, in the training data (grey)
# and in the test data (blue). Blue passes ½ where grey passes α: whether the shift is told or the
# cost, the decision changes at the same place.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained")
left.plot(x, positive, color="#D55E00", label="positive")
left.plot(x, unlabelled, color="#777777", label=f"unlabelled, {PRIOR:.0%} positive")
left.plot(x, test, color="#0072B2", label=f"test, {TEST_PRIOR:.0%} positive")
left.set(xlabel="feature", ylabel="density", title="Three distributions")
left.legend(frameon=False)
right.plot(x, posterior, color="#777777", label="in the training data")
right.plot(x, moved, color="#0072B2", label="in the test data")
right.plot([-4, by_shift], [0.5, 0.5], ":", color="#0072B2")
right.plot([-4, by_cost], [alpha, alpha], ":", color="#777777")
right.axvline(by_shift, color="black", linewidth=0.8)
right.set(
    xlabel="feature", ylabel="probability of a positive", title="Two thresholds, one decision"
)
right.legend(frameon=False)
plt.show()

# %%
# Both at once are still one threshold, α_unif (Corollary 4). The lines of equal threshold in the
# plane of shift and cost:

priors, alphas = np.meshgrid(np.linspace(0.02, 0.98, 97), np.linspace(0.02, 0.98, 97))
thresholds = np.vectorize(lambda p, a: Condition(PRIOR, p, a).alpha_unif)(priors, alphas)
figure, axes = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
lines = axes.contour(priors, alphas, thresholds, np.arange(0.1, 1.0, 0.1), cmap="viridis")
axes.clabel(lines)
axes.plot(PRIOR, 0.5, "o", color="#D55E00", label="the training data")
axes.set(
    xlabel="test prior π′", ylabel="cost of a false positive α", title="Equal threshold α_unif"
)
axes.legend(frameon=False)
plt.show()
