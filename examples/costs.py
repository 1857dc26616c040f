"""
Changing costs
==============

A missed case costs 500, a false alarm 20. What should the classifier flag, and what will it cost
in a place where more, or fewer, cases are positive?
"""

# %%
# Made-up cases with eight features. 30 % of the unlabelled cases are positive, and 10 % of the new
# ones.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from pu_shift import Condition, DensityRatioClassifier
from pu_shift.data import Dataset
from pu_shift.data.sampling import draw
from pu_shift.plots import CostDisplay, ThresholdDisplay

X, y = make_classification(8000, 8, n_informative=5, n_redundant=0, flip_y=0.0, random_state=1)
cases = Dataset.of("cases", X, np.where(y == 1, 1, -1))
sample = draw(cases, prior=0.3, test_prior=0.1, n_p=300, n_u=1200, n_test=1000)
classifier = DensityRatioClassifier(prior=0.3).fit_pu(sample.positives, sample.unlabeled)

# %%
# ``Condition.from_costs`` turns money into α, the share of both costs that a false alarm has.

condition = Condition.from_costs(0.3, 0.1, false_positive=20, false_negative=500)
print(f"α = {condition.alpha:.4f}")
classifier.set_params(test_prior=condition.test_prior, alpha=condition.alpha)
rows, truth = sample.tests[0.1]
flagged = classifier.predict(rows) == 1
print(f"{flagged.sum()} of {len(rows)} rows are flagged, {(truth == 1).sum()} are positive")
missed, false_alarms = ((truth == 1) & ~flagged).sum(), ((truth == -1) & flagged).sum()
cost = 500 * missed + 20 * false_alarms
print(f"missed: {missed}, false alarms: {false_alarms}; they cost {cost}")

# %%
# What to expect, from the probabilities alone. That needs no true class.

p = classifier.predict_proba(rows)[:, 1]
expected = condition.expected_cost(p, false_positive=20, false_negative=500)
spread = np.sqrt((np.where(flagged, 20, 500) ** 2 * p * (1 - p)).sum())
print(f"expected cost per 1,000 cases: {expected:.0f}, standard deviation {spread:.0f}")

# %%
# The two costs answer two questions. The first is what happened to these 1,000 cases, which only
# their true classes tell. The second is what such cases cost on average if the probabilities are
# right; a few missed cases more or fewer make the standard deviation. A difference of several of
# it would say that the probabilities are wrong.

# %%
# The same over all shares of positives. The dashed curve is a classifier whose threshold was left
# where the training data put it.

CostDisplay.from_estimator(classifier, sample.unlabeled, false_positive=20, false_negative=500)
plt.show()

# %%
# The threshold behind it. A row is flagged when its probability *in the training data* is above
# the curve; each curve is one cost.

ThresholdDisplay.from_estimator(classifier)
plt.show()
