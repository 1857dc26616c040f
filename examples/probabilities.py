"""
Probabilities at the place of use
=================================

``predict_proba`` gives the probability that a row is positive *where the classifier is used*. Tell
it another share of positives, and all probabilities move.
"""

# %%
# Two overlapping Gaussian classes, for which the true probability is known.

import matplotlib.pyplot as plt
import numpy as np

from pu_shift import DensityRatioClassifier
from pu_shift.plots import PosteriorDisplay, ReliabilityDisplay


def rows(n, share, rng):
    """Draw n rows, that share of them positive, and their classes."""
    y = np.where(np.arange(n) < round(share * n), 1, -1)
    return rng.normal(y[:, None], 1.0, (n, 2)), y


def true_probability(x, share):
    """Return the probability of a positive: Bayes' rule for the two Gaussians."""
    return 1.0 / (1.0 + (1.0 - share) / share * np.exp(-2.0 * x.sum(axis=1)))


rng = np.random.default_rng(0)
X_p, X_u = rows(400, 1.0, rng)[0], rows(1600, 0.3, rng)[0]
classifier = DensityRatioClassifier(prior=0.3).fit_pu(X_p, X_u)

# %%
# Along the line on which both features are equal: estimates, and the truth as dots.

line = np.repeat(np.linspace(-1.8, 1.8, 61)[:, None], 2, axis=1)
errors = {}
figure, axes = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
for share, colour in ((0.1, "#56B4E9"), (0.3, "#0072B2"), (0.7, "#D55E00")):
    probability = classifier.set_params(test_prior=share).predict_proba(line)[:, 1]
    truth = true_probability(line, share)
    errors[share] = np.abs(probability - truth).mean()
    axes.plot(line[:, 0], probability, color=colour, label=f"{share:.0%} positives")
    axes.plot(line[::3, 0], truth[::3], ".", color=colour)
axes.set(xlabel="both features", ylabel="probability of a positive")
axes.legend(frameon=False)
print("mean error of the probability:", {s: round(float(e), 3) for s, e in errors.items()})
plt.show()

# %%
# Rows whose classes you know show whether probabilities can be believed. They may come from
# anywhere: the display weights them to the share that the classifier was told.

X_known, y_known = rows(1000, 0.5, rng)
ReliabilityDisplay.from_estimator(classifier.set_params(test_prior=0.3), X_known, y_known)
plt.show()

# %%
# Without any known class: the mean probability of the unlabelled rows should be near the prior.

display = PosteriorDisplay.from_estimator(classifier, X_u)
plt.show()
