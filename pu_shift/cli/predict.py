"""``pu-shift predict``."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from pu_shift._files import replacing, replacing_folder
from pu_shift.cli.cases import (
    OpenedModel,
    add_model,
    change_condition,
    find_test_prior,
    open_model,
    takes_any_condition,
)
from pu_shift.cli.common import (
    CommandError,
    add_cluster,
    check_out,
    cluster_of,
    progress_bar,
    share,
    stage,
)
from pu_shift.cli.costs import Costs, add_costs
from pu_shift.files import parquet
from pu_shift.files.predictions import CSVWriter, ParquetWriter, predict_rows, write_predictions

TEXTS = {
    "help": "classify the rows of a CSV, Parquet or .npy file",
    "description": "Classify rows. Writes one line per row: the predicted label (1 or -1) and "
    "the probability of the\npositive class at the test prior. The label is 1 where that "
    "probability exceeds alpha;\nwith costs, where probability x miss exceeds "
    "(1 - probability) x false alarm.",
    "epilog": "examples:\n  pu-shift predict model.npz new.csv --test-prior 0.7 --alpha 0.2 "
    "--out july.csv\n  pu-shift predict model.npz new.csv --keep id --out july.csv\n"
    "  pu-shift predict model.npz claims.csv --false-alarm 25 --miss amount --out flagged.csv\n"
    "  pu-shift predict model.npz cases/ --keep id --cluster tcp://host:8786 --out july.parquet"
    "\n\nColumns of a CSV or Parquet file are found by name, others than the model's are "
    "ignored;\nthose of a .npy matrix are taken in the order of the fit. Rows are streamed: "
    "the data may\nbe larger than the memory, and FILE appears when it is complete. With "
    "--cluster it is a\nfolder with a Parquet file for each partition of the data.",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_model(parser)
    parser.add_argument("--prior", type=share, help="another training prior (method ratio only)")
    parser.add_argument("--alpha", type=share, help="another false-alarm cost (method ratio only)")
    add_costs(parser)
    parser.add_argument(
        "--out", metavar="FILE", help="CSV or .parquet file to write (default: CSV, the terminal)"
    )
    add_cluster(parser)


def run(options: argparse.Namespace) -> int:
    """Classify rows."""
    if options.cluster is not None and options.out is None:
        raise CommandError("--cluster needs --out, a folder to write")
    if options.out is not None:
        check_out(options.out, [options.model, options.data], folder=options.cluster is not None)
    for name in options.keep:
        if name in ("label", "probability"):
            raise CommandError(f"--keep: the output has a column {name!r} of its own")
    costs = Costs.of(options)
    alpha = options.alpha if costs.alpha is None else costs.alpha
    if costs.columns and options.cluster is not None:
        raise CommandError("--cluster takes costs as numbers, not as columns")
    with cluster_of(options) as client:
        model = open_model(options, costs.columns)
        if costs.columns and not takes_any_condition(model.classifier):
            raise CommandError(
                f"{options.model} is of --method risk and was trained for one cost: for costs of "
                "each case, fit with --method ratio"
            )
        change_condition(options.model, model.classifier, {"prior": options.prior})
        changes = {"test_prior": find_test_prior(options, model), "alpha": alpha}
        change_condition(options.model, model.classifier, changes)
        if client is not None:
            found = _predict_there(options.out, model)
        else:
            found = _predict_here(options, model, costs)
    if options.out is None:
        return 0
    rows, positive = found
    print(f"{options.out}: {rows} rows, {positive / rows:.1%} predicted positive")
    return 0


def _predict_there(out: str, model: OpenedModel) -> tuple[int, int]:
    """Let the cluster classify the partitions of a table, into files of a folder."""
    names, keep, preparation = model.columns
    table: Any = model.table
    read = partial(parquet.prepared, preparation, names)
    predict = partial(predict_rows, model.estimator)
    with (
        stage("predicting"),
        table.naming_the_file(names, read),
        replacing_folder(out) as folder,
    ):
        found = parquet.write_predictions(folder, table.frame(names, keep), predict, model.columns)
        model.report(table.sums(_unseen, names, preparation), found[0])
        return found


def _unseen(prepared: tuple[Any, Any]) -> Any:
    return prepared[1]


def _predict_here(options: argparse.Namespace, model: OpenedModel, costs: Costs) -> tuple[int, int]:
    to_parquet = options.out is not None and Path(options.out).suffix in parquet.SUFFIXES
    writer: Any = ParquetWriter if to_parquet else CSVWriter
    with progress_bar("predict", options) as bar:
        if options.out is None:
            output = writer(sys.stdout, options.keep)
            return write_predictions(output, model.estimator, model.blocks(), bar, costs)
        with replacing(options.out, binary=to_parquet) as file:
            output = writer(file, options.keep)
            return write_predictions(output, model.estimator, model.blocks(), bar, costs)
