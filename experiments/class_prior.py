"""Estimates of the class prior at π = 0.3, 0.5 and 0.7, by every estimator.

Usage: python experiments/class_prior.py --trials 5        (--help lists the options)
"""

from __future__ import annotations

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import sys
from itertools import product

from studies import Rows, Study, StudyOptions, study_main

from pu_shift.estimation.class_prior import PRIOR_METHODS, estimate_prior

PRIORS = (0.3, 0.5, 0.7)
TRIALS = 5


def run(dataset: str, trial: int, options: StudyOptions) -> Rows:
    """Return every estimate of every π."""
    rows = []
    for prior in PRIORS:
        sample = options.draw(dataset, trial, prior, prior)
        found = estimate_prior(sample.positives, sample.unlabeled, random_state=sample.seed)
        for method, estimate in found.parts.items():
            rows.append({"prior": prior, "method": method, "value": estimate})
    return rows


STUDY = Study(
    name="class_prior",
    title="Estimates of the class prior",
    run=run,
    points=lambda options: product(PRIORS, PRIOR_METHODS),
    axis="prior",
    axis_label="π",
    value_label="estimate",
    trials=TRIALS,
    methods=(),
    reference="diagonal",
)

if __name__ == "__main__":
    sys.exit(study_main(STUDY))
