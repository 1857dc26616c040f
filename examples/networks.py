"""
Networks and nnPU-shift
=======================

A network is flexible enough to make the unbiased PU risk negative: it overfits. The non-negative
risk of Kiryo et al. (nnPU) stops that. nnPU-shift is the same risk for another share of positives
at the place of use. Here one network is trained in three ways.
"""

# %%
# Even digits are positive. The images are MNIST if its files are on this machine (``python
# datasets/fetch.py MNIST`` gets them), and otherwise scikit-learn's 1,797 small digits. The line
# below says which.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from pu_shift import MLP, RiskMinimizationClassifier
from pu_shift.data import Dataset, copies, load
from pu_shift.data.sampling import draw

if copies("MNIST"):
    data, sizes, largest = load("MNIST"), {"n_p": 500, "n_u": 2000, "n_test": 1000}, 255.0
else:
    X, digit = load_digits(return_X_y=True)
    data = Dataset.of("digits", X, np.where(digit % 2 == 0, 1, -1))
    sizes, largest = {"n_p": 150, "n_u": 700, "n_test": 400}, 16.0
print(f"{data.name}: {len(data.X)} images")

# %%
# 150 steps for each network. ``safe=False`` and a fixed ``correction`` are for this comparison: by
# default the classifier chooses the risk and falls back to a constant where that is better.

SHIFTS = ((0.7, 0.3), (0.3, 0.7))
WAYS = {
    "nnPU, shift not told": (False, "ascent"),
    "PU-shift, unbiased": (True, None),
    "nnPU-shift": (True, "ascent"),
}
accuracy = {}
for prior, test_prior in SHIFTS:
    sample = draw(data, prior, test_prior, trial=1, **sizes)
    X_test, y_test = sample.tests[test_prior]
    for name, (told, correction) in WAYS.items():
        classifier = RiskMinimizationClassifier(
            prior=prior,
            test_prior=test_prior if told else None,
            loss="logistic",
            correction=correction,
            model=MLP(data.X.shape[1], 100, 2, random_state=0),
            n_steps=150,
            n_batches=5,
            safe=False,
        )
        classifier.fit_pu(sample.positives / largest, sample.unlabeled / largest)
        accuracy[prior, test_prior, name] = classifier.score(X_test / largest, y_test)
        print(f"π = {prior}, π′ = {test_prior}, {name:21} {accuracy[prior, test_prior, name]:.1%}")

# %%
# Where positives become rarer (left), nnPU-shift is the best of the three. Where they become more
# frequent (right), the unbiased risk overfits, and nnPU does as well without being told. This is
# one draw. The page "Which method when" has the means of five draws of MNIST.

figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
for i, name in enumerate(WAYS):
    values = [100.0 * accuracy[(*shift, name)] for shift in SHIFTS]
    colour = ("#777777", "#E69F00", "#0072B2")[i]
    axes.bar(np.arange(len(SHIFTS)) + 0.27 * (i - 1), values, 0.25, color=colour, label=name)
axes.set_xticks(range(len(SHIFTS)), [f"π = {a}, π′ = {b}" for a, b in SHIFTS])
axes.set(ylabel="test accuracy (%)", ylim=(40, 100), title=f"{data.name}, even against odd")
axes.legend(frameon=False, loc="upper left")
plt.show()
