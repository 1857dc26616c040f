"""``pu-shift estimate-prior``."""

from __future__ import annotations

import argparse

from pu_shift.cli.common import add_seed, cluster_of, share
from pu_shift.cli.samples import FILES, add_files, estimated_prior, read_samples

TEXTS = {
    "help": "estimate the share of positives among unlabelled rows",
    "description": "Estimate the class prior, with an interval.",
    "epilog": f"{FILES}\nexample:\n  pu-shift estimate-prior data.csv --label labelled\n\n"
    "Estimate and interval lie too high when some negatives look just like positives, which\n"
    "no data can tell; the upper bound holds all the same.",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from pu_shift.estimation.class_prior import PRIOR_METHODS

    add_files(parser)
    parser.add_argument(
        "--method", choices=PRIOR_METHODS, default="auto", help="estimator (default: auto)"
    )
    parser.add_argument(
        "--level", type=share, default=0.95, help="level of the interval (default: 0.95)"
    )
    add_seed(parser)


def run(options: argparse.Namespace) -> int:
    """Print the estimate."""
    with cluster_of(options):
        sample = read_samples(options)
        found = estimated_prior(
            sample.X_p, sample.X_u, options.seed, method=options.method, level=options.level
        )
    print(found)
    return 0
