"""``pu-shift monitor``."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from pu_shift._files import replacing
from pu_shift._sklearn import split_steps
from pu_shift.cli.cases import add_model, change_condition, open_model, takes_any_condition
from pu_shift.cli.common import CommandError, check_out, progress_bar
from pu_shift.files.predictions import texts

TEXTS = {
    "help": "follow the share of positives, and what depends on it, over groups of rows",
    "description": "Per group of rows, for instance a month: the test prior with its interval, "
    "the share of\nrows that are flagged, and how many decisions the interval could flip.",
    "epilog": "example:\n  pu-shift monitor model.npz cases.csv --by month --out months.csv "
    "--plot months.png\n\nThe rows are streamed; one number is kept of each. The model must be of "
    "--method ratio.\nIn Python pu_shift.evaluation.monitor also tests for other shifts.",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_model(parser)
    parser.add_argument("--by", metavar="COLUMN", required=True, help="the column of the groups")
    parser.add_argument("--out", metavar="FILE", help="CSV file to write (default: the terminal)")
    parser.add_argument("--plot", metavar="FILE", help="picture of the groups in their order")


def run(options: argparse.Namespace) -> int:
    """Monitor the groups."""
    for path in (options.out, options.plot):
        if path is not None:
            check_out(path, [options.model, options.data])
    model = open_model(options, [options.by])
    classifier = model.classifier
    if not takes_any_condition(classifier):
        raise CommandError(f"{options.model} is of --method risk and cannot tell another prior")
    change_condition(options.model, classifier, {"test_prior": options.test_prior})
    before, _ = split_steps(model.estimator)
    parts: dict[str, list[np.ndarray]] = {}
    with progress_bar("monitor", options) as bar:
        for block in model.blocks():
            bar.total = block.size
            rows = block.rows if before is None else before.transform(block.rows)
            ratio, groups = classifier.predict_ratio(rows), np.array(texts(block.kept[-1]))
            for group in np.unique(groups):
                parts.setdefault(str(group), []).append(ratio[groups == group])
            bar.update(block.position - bar.n)
    from pu_shift.evaluation.monitor import monitor_ratios

    found = monitor_ratios(classifier, {g: np.concatenate(parts[g]) for g in sorted(parts)}, {})
    # The test for other shifts needs the fits without each fold, which a model file has not.
    frame = found.to_frame().drop(columns="p_value").rename(columns={"group": options.by})
    if options.out is None:
        frame.to_csv(sys.stdout, index=False, float_format="%.4g")
    else:
        with replacing(options.out) as file:
            frame.to_csv(file, index=False, float_format="%.4g", lineterminator="\n")
        print(f"{options.out}: {len(frame)} groups")
    if options.plot is not None:
        figure: Any = found.plot().figure
        figure.savefig(options.plot, dpi=120)
    return 0
