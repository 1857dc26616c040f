"""
Where convexity is lost
=======================

Risk minimisation trains a model by making a risk small. While positives become more frequent, the
risk is convex: it has one minimum, and training finds it. When they become rarer, the
theorems no longer promise that (6 and 8), and on a sample the risk may fall without end.
"""

# %%
# Rows on a line, 70 % of the unlabelled ones positive.

import matplotlib.pyplot as plt
import numpy as np

from pu_shift import Condition, RiskMinimizationClassifier
from pu_shift.risks import pu_shift_risk

PRIOR, TEST_PRIORS = 0.7, (0.9, 0.7, 0.3, 0.05)
rng = np.random.default_rng(0)
X_p = rng.normal(1.0, 1.0, (60, 1))
X_u = rng.normal(np.where(np.arange(240) < PRIOR * 240, 1.0, -1.0)[:, None], 1.0)

# %%
# A flexible model can put a bump wherever it likes. This one has a single bump, of height w, around
# the labelled positive that has the most labelled neighbours.


def bump(X, centre, width=0.3):
    """Return a Gaussian around the centre."""
    return np.exp(-0.5 * ((X[:, 0] - centre) / width) ** 2)


centre = max(X_p[:, 0], key=lambda place: bump(X_p, place).sum())
p, u = bump(X_p, centre), bump(X_u, centre)

# %%
# The risk of Theorem 5 with the squared loss, as the bump grows. Around this place the labelled
# sample happens to hold a larger share of the positives than the unlabelled sample. The risk
# subtracts the former from the latter: for a small test prior the difference is negative.

heights = np.linspace(-4.0, 8.0, 121)
figure, axes = plt.subplots(figsize=(7.2, 4.0), layout="constrained")
curvature = {}
for test_prior, colour in zip(TEST_PRIORS, ("#009E73", "#0072B2", "#E69F00", "#D55E00")):
    condition = Condition(PRIOR, test_prior)
    risks = [float(pu_shift_risk(w * p, w * u, condition, "squared").array) for w in heights]
    curvature[test_prior] = np.diff(risks, 2).mean()
    promise = "convex by Theorem 6" if condition.is_convex else "no promise"
    axes.plot(heights, risks, color=colour, label=f"π′ = {test_prior}: {promise}")
    print(f"π′ = {test_prior}: {promise}, curvature {curvature[test_prior]:+.5f}")
axes.set(xlabel="height w of the bump", ylabel="PU-shift risk", title=f"One sample, π = {PRIOR}")
axes.legend(frameon=False)
plt.show()

# %%
# Training with many such bumps, at π′ = 0.05. The unbiased risk runs away. ``correction='auto'``,
# the default, takes the non-negative risk (nnPU-shift) where convexity is not promised: no part of
# it falls below zero.

figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
x = np.linspace(-4.0, 4.0, 161)
largest = {}
for correction, colour in ((None, "#D55E00"), ("auto", "#0072B2")):
    classifier = RiskMinimizationClassifier(
        PRIOR,
        0.05,
        basis="gaussian",
        widths=0.3,
        lams=0.0,
        correction=correction,
        n_steps=2000,
        learning_rate=0.01,
        safe=False,
    )
    scores = classifier.fit_pu(X_p, X_u).decision_function(x[:, None])
    largest[correction] = np.abs(scores).max()
    axes.plot(x, scores, color=colour, label=f"correction={correction!r}")
    print(f"correction={correction!r}: the largest score is {largest[correction]:.1f}")
axes.axhline(0.0, color="0.6", linewidth=0.8)
axes.set(xlabel="feature", ylabel="score: positive above 0")
axes.legend(frameon=False)
plt.show()
