"""
Changing priors, month by month
===============================

A screening service knows some positive cases and many cases without a result. The share of
positives among new cases changes every month, and so does the cost of a false alarm. One
classifier serves all months: it is told the share and the cost of each.
"""

# %%
# The even digits of scikit-learn's ``digits`` stand for positive cases. 40 % of the unlabelled
# cases are positive.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from pu_shift import DensityRatioClassifier
from pu_shift.data import Dataset
from pu_shift.data.sampling import draw

PRIOR = 0.4
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun")
TEST_PRIORS = (0.4, 0.3, 0.2, 0.1, 0.6, 0.8)
ALPHAS = (0.5, 0.5, 0.5, 0.8, 0.3, 0.2)  # the cost of a false alarm; a miss costs the rest of 1

X, digit = load_digits(return_X_y=True)
cases = Dataset.of("digits", X, np.where(digit % 2 == 0, 1, -1))
sample = draw(cases, PRIOR, TEST_PRIORS, n_p=200, n_u=700, n_test=300)
service = DensityRatioClassifier(PRIOR).fit_pu(sample.positives, sample.unlabeled)

# %%
# Each month is decided three times: as if nothing had changed, with the new share of positives,
# and with the new share and the new cost. ``predict_many`` computes the density ratio once for all.

costs = np.empty((3, len(MONTHS)))
for month, (test_prior, alpha) in enumerate(zip(TEST_PRIORS, ALPHAS)):
    rows, truth = sample.tests[test_prior]
    told = [{}, {"test_prior": test_prior}, {"test_prior": test_prior, "alpha": alpha}]
    decisions = service.predict_many(rows, told)
    false_alarms = (decisions == 1) & (truth == -1)
    misses = (decisions == -1) & (truth == 1)
    costs[:, month] = 100.0 * np.mean(alpha * false_alarms + (1 - alpha) * misses, axis=1)

LABELS = ("nothing told", "share told", "share and cost told")
for label, values in zip(LABELS, costs):
    print(f"{label:20} {values.mean():5.2f} per 100 cases, mean of six months")

# %%
# January is like the training data, and February and March are close to it: there is nothing to
# gain. April, May and June are far from it, and there it pays to tell the classifier.

figure, axes = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
places = np.arange(len(MONTHS))
for i, (values, label) in enumerate(zip(costs, LABELS)):
    colour = ("#777777", "#56B4E9", "#0072B2")[i]
    axes.bar(places + 0.27 * (i - 1), values, 0.25, color=colour, label=label)
names = [f"{m}\nπ′ = {p}\nα = {a}" for m, p, a in zip(MONTHS, TEST_PRIORS, ALPHAS)]
axes.set_xticks(places, names)
axes.set(ylabel="cost per 100 cases", title="One classifier, six months, no refit")
axes.legend(frameon=False)
plt.show()
