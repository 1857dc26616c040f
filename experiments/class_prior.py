"""Estimates of the class prior at π = 0.3, 0.5 and 0.7, by every estimator.

Usage: python experiments/class_prior.py --trials 5        (--help lists the options)
"""

from __future__ import annotations

import sys
from itertools import product

from studies import Rows, Study, StudyOptions, study_main

from pu_shift.class_prior import estimate_prior

PRIORS = (0.3, 0.5, 0.7)
TRIALS = 5
# Name to method and transform.
ESTIMATORS = {
    "auto": ("auto", None),
    "KM2": ("km2", "raw"),
    "penL1, score": ("pen-l1", "score"),
    "penL1": ("pen-l1", "raw"),
}


def run(dataset: str, trial: int, options: StudyOptions) -> Rows:
    """Return every estimate of every π."""
    rows = []
    for prior in PRIORS:
        sample = options.draw(dataset, trial, prior, prior)
        for name, how in ESTIMATORS.items():
            found = estimate_prior(sample.positives, sample.unlabeled, *how, seed=sample.seed)
            rows.append({"prior": prior, "method": name, "value": found.prior})
    return rows


STUDY = Study(
    name="class_prior",
    title="Estimates of the class prior",
    run=run,
    points=lambda options: product(PRIORS, ESTIMATORS),
    axis="prior",
    axis_label="π",
    value_label="estimate",
    trials=TRIALS,
    methods=(),
    reference="diagonal",
)

if __name__ == "__main__":
    sys.exit(study_main(STUDY))
