"""
p/u is bounded, u/p is not
==========================

A density ratio can be estimated in two directions: positive over unlabelled (p/u), or unlabelled
over positive (u/p). With exact ratios the decisions are the same. With estimates they are not: the
first ratio never exceeds 1/π, the second has no upper bound (Proposition 9).
"""

# %%
# Two Gaussian classes on a line, for which both ratios are known. 30 % of the unlabelled rows are
# positive.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from pu_shift import DensityRatioClassifier
from pu_shift.priors import ratio_bounds

PRIOR, TEST_PRIOR = 0.3, 0.5
x = np.linspace(-3.5, 3.5, 141)
positive, negative = norm.pdf(x, 1.0), norm.pdf(x, -1.0)
unlabelled = PRIOR * positive + (1 - PRIOR) * negative
truth = {"p/u": positive / unlabelled, "u/p": unlabelled / positive}

# %%
# uLSIF estimates each of them from 200 positive and 800 unlabelled rows, ten times. Left of zero,
# where positives are rare, u/p rises to hundreds, and the estimate hangs on the few labelled
# positives that lie there.


def rows(n, prior, rng):
    """Draw rows of the two classes, and the classes."""
    y = np.where(np.arange(n) < round(prior * n), 1, -1)
    return rng.normal(y[:, None], 1.0, (n, 1)), y


figure, panels = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
accuracy = {direction: [] for direction in truth}
for draw in range(10):
    rng = np.random.default_rng(draw)
    X_p, X_u = rows(200, 1.0, rng)[0], rows(800, PRIOR, rng)[0]
    test_rows, y = rows(2000, TEST_PRIOR, rng)
    for direction, axes in zip(truth, panels):
        classifier = DensityRatioClassifier(
            PRIOR, TEST_PRIOR, direction=direction, estimator="ulsif"
        )
        ratio = classifier.fit_pu(X_p, X_u).predict_ratio(x[:, None])
        axes.plot(x, ratio, color="#56B4E9", linewidth=0.8)
        accuracy[direction].append(classifier.score(test_rows, y))
for direction, axes in zip(truth, panels):
    axes.plot(x, truth[direction], color="black", label="true ratio")
    axes.plot([], [], color="#56B4E9", label="ten estimates")
    for bound in ratio_bounds(PRIOR, direction):
        if np.isfinite(bound):
            axes.axhline(bound, linestyle=":", color="#D55E00")
    axes.set(title=f"{direction}; dotted: its bounds", xlabel="feature", ylabel="ratio")
    axes.legend(frameon=False)
panels[1].set_ylim(-1.0, 30.0)
plt.show()

# %%
# The accuracy of both, where half of the rows are positive.

for direction, values in accuracy.items():
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    print(f"{direction}: {np.mean(values):.1%}, standard error {error:.1%}")
