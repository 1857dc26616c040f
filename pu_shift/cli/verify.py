"""``pu-shift verify``."""

from __future__ import annotations

import argparse
from pathlib import Path

from pu_shift.cli.common import CommandError

TEXTS = {
    "help": "check that this machine gives the published results",
    "description": "Run trials of the paper's tables again and compare each accuracy, width and λ "
    "with the committed\nones; compute the numbers of the pages again; try the identities of the "
    "theory on random numbers.\nOne line for each claim; the exit status is 1 if one fails.",
    "epilog": "examples:\n  pu-shift verify                          trials 0 and 1 of Tables 1-3\n"
    "  pu-shift verify --full --jobs 4          all seven tables, ten trials\n"
    "  pu-shift verify --results results/all    the trials of a run of your own",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add = parser.add_argument
    add("--full", action="store_true", help="all seven tables, ten trials, and against the paper")
    add("--results", metavar="DIR", help="judge the trials of a results folder; run none")
    add("--datasets", nargs="+", default=(), help="which datasets (default: all that can be had)")
    add("--trials", type=int, help="how many trials (default: 2, with --full 10)")
    add("--jobs", type=int, help="worker processes (default: one per core)")
    kept = "where --full keeps its trials, and resumes (default: %(default)s)"
    add("--out", default="results/verify", metavar="DIR", help=kept)
    add("--report", metavar="FILE", help="write the checks and this machine to a JSON file")


def run(options: argparse.Namespace) -> int:
    """Verify and print one line for each claim."""
    from pu_shift.paper import verify
    from pu_shift.paper.runner import WorkerError

    asked = verify.VerifyOptions(
        datasets=options.datasets,
        trials=options.trials,
        jobs=options.jobs,
        full=options.full,
        out=Path(options.out),
        results=Path(options.results) if options.results else None,
    )
    report = verify.Report()
    try:
        for check in verify.checks(asked):
            report.checks.append(check)
            print(check, flush=True)
    except WorkerError as error:
        raise CommandError(str(error)) from None
    print(report)
    if options.report:
        report.write(options.report)
        print(f"report: {options.report}")
    return 0 if report.passed else 1
