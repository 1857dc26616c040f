"""Accuracy when the class prior is estimated, less that with the true one.

Usage: python experiments/estimated_prior.py --trials 10        (--help lists the options)
"""

from __future__ import annotations

import sys
from itertools import product

from studies import Rows, Study, StudyOptions, study_main

from pu_shift.class_prior import estimate_prior

PRIORS = (0.3, 0.5, 0.7)
PRIOR = 0.3  # may be another: then it is added to these
TEST_PRIOR = 0.7  # not ½: there the ratio's threshold is 1 whatever π is taken to be


def priors(options: StudyOptions) -> list[float]:
    """Return every π that is tried."""
    return sorted({*PRIORS, options.prior})


def run(dataset: str, trial: int, options: StudyOptions) -> Rows:
    """Return 100·π̂ as the method 'estimate', and what it costs each method, in points."""
    rows = []
    given = options.test_prior
    for prior in priors(options):
        sample = options.draw(dataset, trial, prior, given)
        estimate = estimate_prior(sample.positives, sample.unlabeled, seed=sample.seed).prior
        rows.append({"prior": prior, "method": "estimate", "value": 100.0 * estimate})
        for method in options.methods:
            ours, true = (
                options.fit(method, sample, told, [given])[given].score(*sample.tests[given])
                for told in (estimate, prior)
            )
            rows.append({"prior": prior, "method": method, "value": 100.0 * (ours - true)})
    return rows


STUDY = Study(
    name="estimated_prior",
    title="Accuracy with an estimated class prior, less that with the true one",
    run=run,
    points=lambda options: product(priors(options), ("estimate", *options.methods)),
    axis="prior",
    axis_label="π, estimated by 'auto'",
    value_label="difference (points)",
    defaults={"prior": PRIOR, "test_prior": TEST_PRIOR},
    reference=0.0,
    one_scale=True,  # differences are compared: a panel's own scale would magnify its noise
)

if __name__ == "__main__":
    sys.exit(study_main(STUDY))
