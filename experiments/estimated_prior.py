"""Accuracy when π and π′ are estimated, less that with the true ones.

Usage: python experiments/estimated_prior.py --trials 10        (--help lists the options)
"""

from __future__ import annotations

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import sys
from itertools import product

from studies import Rows, Study, StudyOptions, study_main

from pu_shift.estimation.class_prior import estimate_prior
from pu_shift.estimation.test_prior import estimate_test_prior

PRIORS = (0.3, 0.5, 0.7)
PRIOR = 0.3  # may be another: then it is added to these
TEST_PRIOR = 0.7  # not ½: there the ratio's threshold is 1 whatever π is taken to be
ESTIMATES = ("estimate of 100 π", "estimate of 100 π′")


def priors(options: StudyOptions) -> list[float]:
    """Return every π that is tried."""
    return sorted({*PRIORS, options.prior})


def run(dataset: str, trial: int, options: StudyOptions) -> Rows:
    """Return 100·π̂ and 100·π̂′ as estimates, and what they cost each method, in points."""
    rows = []
    given = options.test_prior
    for prior in priors(options):
        sample = options.draw(dataset, trial, prior, given)
        X, y = sample.tests[given]
        found = estimate_prior(sample.positives, sample.unlabeled, random_state=sample.seed).prior
        ratio = options.fit("p/u uLSIF", sample, found, [given])[given]
        try:
            shifted = estimate_test_prior(ratio, X).test_prior
        except ValueError:
            shifted = found  # no shift can be seen where P and U look alike
        for name, value in zip(ESTIMATES, (found, shifted)):
            rows.append({"prior": prior, "method": name, "value": 100.0 * value})
        for method in options.methods:
            ours, true = (
                options.fit(method, sample, told, [told_test])[told_test].score(X, y)
                for told, told_test in ((found, shifted), (prior, given))
            )
            rows.append({"prior": prior, "method": method, "value": 100.0 * (ours - true)})
    return rows


STUDY = Study(
    name="estimated_prior",
    title="Accuracy with estimated π and π′, less that with the true ones",
    run=run,
    points=lambda options: product(priors(options), (*ESTIMATES, *options.methods)),
    axis="prior",
    axis_label="π",
    value_label="difference (points)",
    defaults={"prior": PRIOR, "test_prior": TEST_PRIOR},
    reference=0.0,
    one_scale=True,  # differences are compared: a panel's own scale would magnify its noise
)

if __name__ == "__main__":
    sys.exit(study_main(STUDY))
