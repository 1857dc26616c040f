"""Cost-weighted error for α = 0.1 … 0.9, and how α and the equivalent π′ agree in practice.

A penalty α is given to the methods as the equivalent test prior (Corollary 2). The
cost-weighted error is α·FP + (1 − α)·FN per test row, divided by the cost of the better
constant classifier.

Usage: python experiments/asymmetric.py --trials 10        (--help lists the options)
"""

from __future__ import annotations

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import sys
from itertools import product

import numpy as np
from studies import Rows, Study, StudyOptions, study_main

from pu_shift.data.sampling import Draw
from pu_shift.device import get_device, to_numpy
from pu_shift.models import LinearModel, score_rows
from pu_shift.priors import Condition, test_prior_from_alpha
from pu_shift.risks import Risk
from pu_shift.training import train

PRIOR = 0.3
ALPHAS = tuple(round(0.1 * i, 1) for i in range(1, 10))
# What else is trained, directly at α and at the equivalent π′, to see whether both decide alike.
AGREEMENT = {"agreement DH-Lin": "double_hinge", "agreement Sq-Lin": "squared"}


def run(dataset: str, trial: int, options: StudyOptions) -> Rows:
    """Return costs in percent, and the agreement in percent of the test rows."""
    sample = options.draw(dataset, trial, options.prior, options.prior)
    X, y = sample.tests[options.prior]
    given = {alpha: test_prior_from_alpha(options.prior, alpha) for alpha in ALPHAS}
    rows = []
    for method in options.methods:
        fitted = options.fit(method, sample, options.prior, list(given.values()))
        for alpha, prior in given.items():
            wrong = fitted[prior].predict(X) != y
            cost = np.where(y > 0, 1.0 - alpha, alpha)
            constant = min(np.mean(cost * (y > 0)), np.mean(cost * (y < 0)))
            value = 100.0 * float(np.mean(cost * wrong) / constant)
            rows.append({"alpha": alpha, "method": method, "value": value})
    for (name, loss), alpha in product(AGREEMENT.items(), ALPHAS):
        value = agreement(sample, X, options, alpha, loss)
        rows.append({"alpha": alpha, "method": name, "value": value})
    return rows


def agreement(sample: Draw, X: np.ndarray, options: StudyOptions, alpha: float, loss: str) -> float:
    """Return the share of rows that the PU-asym and the equivalent PU-shift risk decide alike."""
    prior, protocol, device = options.prior, options.protocol, get_device(options.gpu)
    P, U, X = device.send((sample.positives, sample.unlabeled, X))
    scores = []
    for kind, condition in (
        ("pu-asym", Condition(prior, alpha=alpha)),
        ("pu-shift", Condition(prior, test_prior_from_alpha(prior, alpha))),
    ):
        model = LinearModel(X.shape[1])
        model.to_device(device.name)
        train(
            model,
            P,
            U,
            Risk(condition, loss, kind),
            n_steps=protocol.n_steps,
            n_batches=protocol.n_batches,
            learning_rate=protocol.learning_rate,
            random_state=sample.seed,
        )
        scores.append(to_numpy(score_rows(model, X)))
    return 100.0 * float(np.mean((scores[0] > 0) == (scores[1] > 0)))


STUDY = Study(
    name="asymmetric",
    title="Asymmetric error: cost of a method in percent of the better constant classifier",
    run=run,
    points=lambda options: [
        (alpha, method) for method in (*options.methods, *AGREEMENT) for alpha in ALPHAS
    ],
    axis="alpha",
    axis_label="α, the penalty of a false positive",
    value_label="relative cost (%)",
    defaults={"prior": PRIOR},
    reference=100.0,
    highest=250.0,  # the constant classifier is the scale; far worse would hide the rest
)

if __name__ == "__main__":
    sys.exit(study_main(STUDY))
