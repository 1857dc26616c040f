"""``pu-shift evaluate``."""

from __future__ import annotations

import argparse
import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from pu_shift._checks import ArgumentError
from pu_shift._files import replacing
from pu_shift._sklearn import last_step, split_steps
from pu_shift.cli.cases import open_model
from pu_shift.cli.common import (
    CommandError,
    add_data,
    add_format,
    add_seed,
    check_inputs,
    check_out,
    progress_bar,
    share,
)
from pu_shift.files.columns import label_test
from pu_shift.files.predictions import texts

if TYPE_CHECKING:
    from pu_shift.evaluation.evaluator import Evaluation

TEXTS = {
    "help": "say how good a model is, with intervals, from rows without negatives",
    "description": "Say how good a model is at a test prior and cost: recall, precision, F1, error "
    "rate, AUC and\nmore, each with a 95 % interval. No negatives are needed.",
    "epilog": "examples:\n  pu-shift evaluate model.npz --test-prior 0.7\n"
    "  pu-shift evaluate model.npz held_out.csv --label labelled --plot curves.png\n"
    "  pu-shift evaluate model.npz checked.csv --truth is_fraud --out metrics.csv\n\n"
    "Without data the model is judged by the rows of its fit, each scored by a part of the model "
    "that\nhas not seen it; rows of the fit that are given are recognised. Unlabelled rows must "
    "have the\nshare of positives of --prior, which is that of the fit.",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", help="a file that 'pu-shift fit' wrote")
    add_data(parser, nargs="*", help="rows that the model has not seen: one file, or two: P and U")
    column = parser.add_mutually_exclusive_group()
    column.add_argument(
        "--label",
        metavar="COLUMN",
        help="the column of a single file with 1 for positives and 0 or -1 for unlabelled rows",
    )
    column.add_argument(
        "--truth",
        metavar="COLUMN",
        help="the column with true classes, 1 for positives and 0 or -1 for negatives",
    )
    parser.add_argument(
        "--positive", metavar="VALUE", help="the label of the positives, if it is not 1"
    )
    parser.add_argument(
        "--prior",
        type=_share_or_interval,
        help="share of positives among the unlabelled rows, or its interval as 0.2,0.4 "
        "(default: that of the model)",
    )
    parser.add_argument("--test-prior", type=share, help="share at test (default: the model's)")
    parser.add_argument("--alpha", type=share, help="false-alarm cost (default: the model's)")
    parser.add_argument("--out", metavar="FILE", help="a CSV file of the metrics to write")
    parser.add_argument("--plot", metavar="FILE", help="a picture of the curves to write, .png")
    add_format(parser)
    add_seed(parser)


def _share_or_interval(text: str) -> Any:
    ends = [share(part) for part in text.split(",")]
    if len(ends) > 2:
        raise argparse.ArgumentTypeError(f"must be a share, or two as 0.2,0.4, got {text!r}")
    return ends[0] if len(ends) == 1 else tuple(ends)


def run(options: argparse.Namespace) -> int:
    """Judge the model and print the table."""
    column = options.label or options.truth
    if (len(options.data), column is None) not in ((0, True), (1, False), (2, True)):
        raise CommandError(
            "data must be one file with --label or --truth, two files, positives and unlabelled "
            "rows, without, or no file"
        )
    check_inputs([options.model, *options.data])
    for out in filter(None, (options.out, options.plot)):
        check_out(out, [options.model, *options.data])
    found = _of_files(options, column) if options.data else _of_the_fit(options)
    print(found)
    if options.out is not None:
        with replacing(options.out) as file:
            file.write(found.to_frame().to_csv(index_label="metric", float_format="%.6g"))
    if options.plot is not None:
        figure = found.plot()[0].figure
        with replacing(options.plot, binary=True) as file:
            figure.savefig(file, format="png", dpi=150)
    return 0


def _of_the_fit(options: argparse.Namespace) -> Evaluation:
    """Judge the model by what its file keeps of the rows of the fit."""
    from pu_shift.evaluation.evaluator import cross_fitted, evaluation_of, judged_condition
    from pu_shift.files.models import load_model

    classifier, given = last_step(load_model(options.model)), _given(options)
    rows, source = cross_fitted(classifier, judged_condition(classifier, *given))
    seed = np.random.SeedSequence(options.seed)
    return evaluation_of(classifier, rows, source, given=given, seed=seed)


def _given(options: argparse.Namespace) -> tuple[Any, Any, Any]:
    return options.prior, options.test_prior, options.alpha


def _of_files(options: argparse.Namespace, column: str | None) -> Evaluation:
    """Score the rows of the files as they are read; a few numbers of each are kept."""
    from pu_shift.estimators.base import same_rows
    from pu_shift.evaluation.evaluator import (
        evaluation_of,
        judged_condition,
        rows_of_fit,
        scored,
    )
    from pu_shift.evaluation.metrics import ScoredRows

    given, labels = _given(options), []
    parts: list[tuple[Any, ...]] = []
    for path, kind in zip(options.data, ("positive", "unlabelled")):
        own = copy.copy(options)
        own.data, own.keep = path, [] if column is None else [column]
        model = open_model(own)
        classifier = split_steps(model.estimator)[1]
        condition = judged_condition(classifier, *given)
        with progress_bar("evaluate", own) as bar:
            for block in model.blocks():
                bar.total = block.size
                rows = _transformed(model.estimator, block.rows)
                squares = np.nansum(np.square(rows, dtype=np.float64), axis=1)
                parts.append((*scored(classifier, condition, rows), squares))
                labels += [kind] * len(rows) if column is None else texts(block.kept[0])
                bar.update(block.position - bar.n)
    positive = _positive(options, column, labels)
    joined: list[Any] = [None if own[0] is None else np.concatenate(own) for own in zip(*parts)]
    squares = joined.pop()
    samples: list[Any] = [
        tuple(None if value is None else value[kind] for value in joined)
        for kind in (positive, ~positive)
    ]
    sums = [np.array([kind.sum(), squares[kind].sum()]) for kind in (positive, ~positive)]
    if options.truth is None and same_rows(classifier, *sums):
        of_rows, source = rows_of_fit(classifier, condition, *samples)
    else:
        of_rows, source = ScoredRows.of(*samples), " and ".join(options.data)
    return evaluation_of(
        classifier,
        of_rows,
        source,
        given=given,
        labelled=options.truth is not None,
        seed=np.random.SeedSequence(options.seed),
    )


def _positive(options: argparse.Namespace, column: str | None, labels: list[str]) -> np.ndarray:
    if column is None:
        return np.array([label == "positive" for label in labels])
    try:
        return label_test(column, labels, options.positive)(labels)
    except ArgumentError as error:
        raise ArgumentError("label" if options.truth is None else "truth", error.rule) from None


def _transformed(estimator: Any, rows: np.ndarray) -> np.ndarray:
    """Return rows as the classifier at the end takes them."""
    before = split_steps(estimator)[0]
    return rows if before is None else before.transform(rows)
