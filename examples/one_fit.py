"""
One fit, three test priors
==========================

A classifier was trained where 30 % of the unlabelled rows are positive. It will be used where
10 % are, or 70 %. It is told so, and its decision boundary moves. It is not trained again.
"""

# %%
# Two half-moons are the two classes. We see 200 rows of one of them, the labelled positives, and
# 800 rows of both without any label.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from pu_shift import DensityRatioClassifier
from pu_shift.data import Dataset
from pu_shift.data.sampling import draw

X, y = make_moons(6000, noise=0.35, random_state=0)
moons = Dataset.of("moons", X, np.where(y == 1, 1, -1))
TEST_PRIORS = (0.1, 0.3, 0.7)
sample = draw(moons, prior=0.3, test_prior=TEST_PRIORS, n_p=200, n_u=800, n_test=1000)

# %%
# One ``fit_pu`` on both samples.

classifier = DensityRatioClassifier(prior=0.3).fit_pu(sample.positives, sample.unlabeled)

# %%
# Three places of use. The accuracy is of 1,000 rows that were not seen in training and whose true
# classes we know. It is best where the classifier was told the right share of positives.

accuracy = {}
for told in TEST_PRIORS:
    classifier.set_params(test_prior=told)
    for truth in TEST_PRIORS:
        accuracy[told, truth] = classifier.score(*sample.tests[truth])
print("share of positives   told 0.1   told 0.3   told 0.7")
for truth in TEST_PRIORS:
    print(f"{truth:18}", *(f"{accuracy[told, truth]:10.1%}" for told in TEST_PRIORS))

# %%
# The boundary gives way to the class that has become frequent.

figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
axes.plot(*sample.unlabeled.T, ".", color="0.7", markersize=4, label="unlabelled")
axes.plot(*sample.positives.T, ".", color="#D55E00", markersize=4, label="labelled positive")
grid = np.stack(np.meshgrid(np.linspace(-2.2, 3.2, 120), np.linspace(-1.6, 2.1, 120)), axis=-1)
for told, colour in zip(TEST_PRIORS, ("#56B4E9", "#0072B2", "#000000")):
    scores = classifier.set_params(test_prior=told).decision_function(grid.reshape(-1, 2))
    axes.contour(*grid.transpose(2, 0, 1), scores.reshape(120, 120), [0.0], colors=[colour])
    axes.plot([], [], color=colour, label=f"boundary for {told:.0%} positives")
axes.set(title="One fit, three test priors", xlabel="first feature", ylabel="second feature")
figure.legend(loc="outside lower center", ncols=3, frameon=False)
plt.show()
