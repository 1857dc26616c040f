"""``pu-shift explore``."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from pu_shift._files import replacing
from pu_shift.cli.cases import (
    add_model,
    change_condition,
    find_test_prior,
    open_model,
    takes_any_condition,
)
from pu_shift.cli.common import CommandError, check_out, progress_bar
from pu_shift.cli.costs import Costs, add_costs
from pu_shift.files.predictions import sums_of_rows, texts

TEXTS = {
    "help": "write a page to try priors and costs on your cases",
    "description": "Write one HTML page for your cases. Move the share of positives and the "
    "costs of both errors,\nand see which cases are flagged, which errors and costs to expect, "
    "and download the list.",
    "epilog": "examples:\n  pu-shift explore model.npz cases.csv --keep id --false-alarm 20 "
    "--miss 500 --unit EUR\n"
    "  pu-shift explore model.npz claims.csv --false-alarm 25 --miss amount --unit EUR\n\n"
    "The page needs no network and no other file. It holds the "
    "columns that you --keep and one\nnumber per case. The model must be of --method ratio.",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_model(parser)
    add_costs(parser)
    parser.add_argument("--unit", default="", help="what costs are counted in, for instance EUR")
    parser.add_argument(
        "--out",
        metavar="FILE",
        default="explorer.html",
        help="the page to write (default: explorer.html)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the page."""
    check_out(options.out, [options.model, options.data])
    if len(set(options.keep) & {"row", "label", "probability"}) > 0:
        raise CommandError("--keep: the list has columns row, probability and label of its own")
    costs = Costs.of(options)
    model = open_model(options, costs.columns)
    from pu_shift.explorer import (
        MAX_CASES,
        explorer_page,
        held_out_posteriors,
        training_posterior,
    )

    estimator, classifier = model.estimator, model.classifier
    if not takes_any_condition(classifier):
        raise CommandError(
            f"{options.model} is of --method risk and holds for one prior and cost alone: to "
            "explore others, fit with --method ratio"
        )
    test_prior = find_test_prior(options, model)
    change_condition(options.model, classifier, {"test_prior": test_prior})
    posteriors: list[np.ndarray] = []
    sums = np.zeros(3)
    kept: list[list[str]] = [[] for _ in options.keep]
    of_cases: tuple[list[Any], list[Any]] = [], []
    with progress_bar("explore", options) as bar:
        for block in model.blocks():
            bar.total = block.size
            posteriors.append(training_posterior(estimator, block.rows))
            sums += sums_of_rows(estimator, block.rows)
            own, both = costs.of_cases(block)
            for column, cells in zip(kept, own):
                column.extend(texts(cells))
            for values, cost in zip(of_cases, both):
                values.append(cost)
            if sum(map(len, posteriors)) > MAX_CASES:
                raise CommandError(
                    f"data: {options.data} has more than {MAX_CASES:,} cases, too many for a "
                    "page: explore a sample of them, and use 'pu-shift predict' for all"
                )
            bar.update(block.position - bar.n)
    false_alarm, miss = (
        (given, np.concatenate(values)) if isinstance(given, str) else given
        for given, values in zip(costs.both, of_cases)
    )
    page = explorer_page(
        np.concatenate(posteriors),
        classifier.condition,
        keep=dict(zip(options.keep, kept)),
        false_alarm=false_alarm,
        miss=miss,
        unit=options.unit,
        model=options.model,
        data=options.data,
        held_out=held_out_posteriors(classifier),
        estimate=_estimated_share(classifier, sums),
    )
    with replacing(options.out) as file:
        file.write(page)
    print(f"{options.out}: {sum(map(len, posteriors)):,} cases; open it in a browser")
    return 0


def _estimated_share(classifier: Any, sums: np.ndarray) -> Any:
    """Return the share of positives among the cases, and its interval, or ``None``."""
    from pu_shift.estimation.test_prior import estimate_from_sums

    try:
        found = estimate_from_sums(classifier, sums)
    except ValueError:  # too few cases, or a model that tells nothing apart
        return None
    return found.test_prior, found.low, found.high
