"""Networks: nnPU without the shift, the unbiased PU-shift risk, and nnPU-shift.

Three ways to train the same multilayer perceptron on the same rows. Both directions of the
shift are run, because they differ: π′ = 1 − π.

Usage: python experiments/networks.py --datasets MNIST --trials 5        (--gpu 0 on a GPU)
"""

from __future__ import annotations

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import sys
from itertools import product

import numpy as np
from studies import Rows, Study, StudyOptions, study_main

from pu_shift import MLP, RiskMinimizationClassifier

PRIORS = (0.7, 0.3)
# Whether the test prior is told, and the correction of the risk.
WAYS = {"nnPU": (False, "ascent"), "PU-shift": (True, None), "nnPU-shift": (True, "ascent")}
UNITS, HIDDEN, STEPS = 100, 2, 300
# Draw 0 served to look at settings; what is reported comes from the draws after it.
FIRST_TRIAL = 1


def run(dataset: str, trial: int, options: StudyOptions) -> Rows:
    """Return the test accuracy of the three, in percent, for both directions of the shift."""
    rows = []
    for prior in PRIORS:
        test_prior = round(1.0 - prior, 6)
        sample = options.draw(dataset, FIRST_TRIAL + trial, prior, test_prior)
        X, y = sample.tests[test_prior]
        largest = max(np.abs(part).max() for part in (sample.positives, sample.unlabeled))
        for name, (told, correction) in WAYS.items():
            classifier = RiskMinimizationClassifier(
                prior=prior,
                test_prior=test_prior if told else None,
                correction=correction,
                loss="logistic",
                model=MLP(X.shape[1], UNITS, HIDDEN, random_state=FIRST_TRIAL + trial),
                n_steps=STEPS,
                n_batches=5,
                learning_rate=1e-3,
                safe=False,  # the bad ways are compared, too
                gpu=options.gpu,
            )
            classifier.fit_pu(sample.positives / largest, sample.unlabeled / largest)
            value = 100.0 * classifier.score(X / largest, y)
            rows.append({"prior": prior, "method": name, "value": value})
    return rows


STUDY = Study(
    name="networks",
    title="Networks trained in three ways, π′ = 1 − π",
    run=run,
    points=lambda options: product(PRIORS, WAYS),
    axis="prior",
    axis_label="π",
    value_label="accuracy (%)",
    trials=5,
    methods=(),
)

if __name__ == "__main__":
    sys.exit(study_main(STUDY))
