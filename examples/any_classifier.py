"""
Any classifier as the density ratio
===================================

A classifier of your own can do the learning, if it has ``predict_proba``. It learns to tell
labelled positives from unlabelled rows. pu-shift turns its odds into a density ratio, calibrates
the ratio on held-out rows, and moves the threshold for every new prior and cost.
"""

# %%
# Two half-moons are the two classes. There are 200 positive and 800 unlabelled rows. 70 % of the
# test rows are positive.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from pu_shift import DensityRatioClassifier
from pu_shift.data import Dataset
from pu_shift.data.sampling import draw

X, y = make_moons(6000, noise=0.35, random_state=0)
moons = Dataset.of("moons", X, np.where(y == 1, 1, -1))
sample = draw(moons, prior=0.3, test_prior=0.7, n_p=200, n_u=800, n_test=1000)

# %%
# Two classifiers of scikit-learn, uLSIF (the ratio estimator of the paper), and the default, which
# averages several.

CANDIDATES = {
    "logistic regression": LogisticRegression(),
    "30 neighbours": KNeighborsClassifier(30),
    "uLSIF": "ulsif",
    "the default": "auto",
}
fitted, accuracy = {}, {}
for name, estimator in CANDIDATES.items():
    classifier = DensityRatioClassifier(prior=0.3, test_prior=0.7, estimator=estimator)
    fitted[name] = classifier.fit_pu(sample.positives, sample.unlabeled)
    accuracy[name] = fitted[name].score(*sample.tests[0.7])
    print(f"{name:20} {accuracy[name]:.1%}")

# %%
# What the default is made of: the weight of each part, and its held-out score (less is better).

for name, part in fitted["the default"].candidates_.items():
    print(f"{name:10} weight {part['weight']:.2f}   score {part['score']:.3f}")

# %%
# Where each of them says "positive".

figure, panels = plt.subplots(
    2, 2, figsize=(7.2, 5.4), layout="constrained", sharex=True, sharey=True
)
grid = np.stack(np.meshgrid(np.linspace(-2.2, 3.2, 120), np.linspace(-1.6, 2.1, 120)), axis=-1)
rows, truth = sample.tests[0.7]
for axes, (name, classifier) in zip(panels.flat, fitted.items()):
    scores = classifier.decision_function(grid.reshape(-1, 2)).reshape(120, 120)
    axes.contourf(*grid.transpose(2, 0, 1), scores > 0, [0.5, 1.5], colors=["#F6D5BF"])
    for label, colour in ((-1, "0.55"), (1, "#D55E00")):
        axes.plot(*rows[truth == label][:200].T, ".", color=colour, markersize=3)
    axes.set_title(f"{name}: {accuracy[name]:.1%}")
plt.show()
