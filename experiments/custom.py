"""The methods in a setting of your own, on a known dataset or on your fully labelled file.

The draws need every row's true label: positives and unlabelled rows of your own are for
`pu-shift fit`.

Usage: python experiments/custom.py --prior 0.2 --test-prior 0.6 --given-prior 0.6 \
           --dataset path.csv --label kind --positive sick
"""

from __future__ import annotations

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pu_shift.paper.runner import Label
from pu_shift.paper.scripts import ending, run_settings, table_parser
from pu_shift.paper.settings import TableSetting


def parser() -> argparse.ArgumentParser:
    """Return the parser: what all tables take, priors, and files with their labels."""
    parser = table_parser(
        "Any setting: your priors, your fully labelled data.", "results/custom", ()
    )
    add = parser.add_argument
    sizes = "numbers of rows of P, U and each test set (default: the paper's 500, 2000, 500)"
    add("--sizes", type=int, nargs=3, metavar=("P", "U", "TEST"), help=sizes)
    add("--prior", type=float, required=True, help="π of the unlabelled data")
    add("--test-prior", type=float, help="π′ of the test data (default: π)")
    add("--given-prior", type=float, nargs="+", help="the π′ given to the methods (default: π′)")
    names = "names, or CSV/LIBSVM files"
    add("--dataset", nargs="+", required=True, dest="datasets", help=names)
    add("--label", type=column, help="the label column of a CSV file: name, or number from 0")
    positive = (
        "the labels of a file that are positive, all others being negative "
        "(default: 1, of the labels 1 and -1 or 1 and 0)"
    )
    add("--positive", nargs="+", metavar="LABEL", help=positive)
    return parser


def column(text: str) -> str | int:
    """Return a number if the text is one."""
    try:
        return int(text)
    except ValueError:
        return text


def main(argv: Sequence[str] | None = None) -> int:
    """Run the setting; return the exit status."""

    def run() -> int:
        options = parser().parse_args(argv)
        options.label = Label(options.label, options.positive and tuple(options.positive))
        test_prior = options.prior if options.test_prior is None else options.test_prior
        given = options.given_prior or [test_prior]
        setting = TableSetting.shift(0, options.prior, test_prior, given)
        return run_settings({Path(options.out): setting}, options)

    return ending(run)


if __name__ == "__main__":
    sys.exit(main())
