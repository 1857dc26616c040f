"""Accuracy against the given test prior, from 0.05 to 0.95.

Usage: python experiments/robustness.py --trials 10        (--help lists the options)
"""

from __future__ import annotations

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import sys

from studies import Rows, Study, StudyOptions, study_main

PRIOR, TEST_PRIOR = 0.3, 0.5
GIVEN_PRIORS = tuple(round(0.05 * i, 2) for i in range(1, 20))


def run(dataset: str, trial: int, options: StudyOptions) -> Rows:
    """Return the accuracy of every method and given prior, in percent."""
    sample = options.draw(dataset, trial, options.prior, options.test_prior)
    test = sample.tests[options.test_prior]
    return [
        {"given_prior": given, "method": method, "value": 100.0 * classifier.score(*test)}
        for method in options.methods
        for given, classifier in options.fit(method, sample, options.prior, GIVEN_PRIORS).items()
    ]


STUDY = Study(
    name="robustness",
    title="Accuracy against the given test prior",
    run=run,
    points=lambda options: [
        (given, method) for method in options.methods for given in GIVEN_PRIORS
    ],
    axis="given_prior",
    axis_label="given prior",
    value_label="accuracy (%)",
    defaults={"prior": PRIOR, "test_prior": TEST_PRIOR},
)

if __name__ == "__main__":
    sys.exit(study_main(STUDY))
