"""The ``pu-shift`` command: fit, predict, estimate-prior and reproduce."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, Any

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from pu_shift._files import replacing
from pu_shift._version import __version__
from pu_shift.class_prior import PRIOR_METHODS, TRANSFORMS, estimate_prior
from pu_shift.classifiers import SURROGATES, DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.device import DeviceError
from pu_shift.model_file import load_model, save_model
from pu_shift.paper.scripts import all_tables_main, table_main
from pu_shift.paper.settings import TABLES
from pu_shift.row_files import Block, finite, read_blocks, read_csv
from pu_shift.ulsif import GridEdgeWarning

DESCRIPTION = """\
Learn a classifier from positive and unlabelled rows, and use it where the share
of positives (the class prior) or the cost of errors differs from training.

three numbers describe a task:
  --prior       share of positives among your unlabelled rows (estimated if you
                do not know it)
  --test-prior  share of positives where the classifier will be used; the same
                as --prior if you do not give it
  --alpha       cost of a false alarm; 1 - alpha is the cost of a miss. 0.5 is
                the usual error, 0.1 means that a miss costs nine times as much
"""

EXAMPLES = """\
a first session:
  pu-shift estimate-prior data.csv --label labelled
  pu-shift fit data.csv --label labelled --prior 0.3 --out model.npz
  pu-shift predict model.npz new.csv --out predictions.csv
  pu-shift predict model.npz new.csv --test-prior 0.7 --out july.csv
  pu-shift predict model.npz new.csv --alpha 0.1 --out careful.csv

The last two need no new fit. 'pu-shift COMMAND --help' tells more.
"""

FILES = """\
files:
  CSV with a header line; commas, semicolons or tabs. All columns but the label
  are numeric features. Either one file with a column --label that is 1 for
  labelled positives and 0 (or -1) for unlabelled rows, or two files, positives
  and unlabelled rows, with the same columns.
"""


class CommandError(ValueError):
    """Something that the user of the command line has to put right."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ``pu-shift`` command.

    Parameters
    ----------
    argv
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit status: 0; 2 when the command cannot be done; 130 after Ctrl-C, and
        141 when whoever reads the output has gone.

    Examples
    --------
    >>> main(["predict", "no-such-model.npz", "rows.csv"])
    2
    """
    options = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            # The grids are the command's own.
            warnings.simplefilter("ignore", GridEdgeWarning)
            return options.run(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever reads the output has seen enough; flushing at the end would fail again.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, DeviceError, OSError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="pu-shift", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=raw
    )
    parser.add_argument("--version", action="version", version=f"pu-shift {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    fit = commands.add_parser(
        "fit",
        help="learn a classifier from a CSV file",
        description="Learn a classifier from positive and unlabelled rows and save it.",
        epilog=f"{FILES}\nexample:\n  pu-shift fit data.csv --label labelled --prior 0.3 "
        "--out model.npz",
        formatter_class=raw,
    )
    _add_files(fit)
    fit.add_argument("--out", required=True, metavar="MODEL", help="the model file to write, .npz")
    fit.add_argument(
        "--method",
        choices=("ratio", "risk"),
        default="ratio",
        help="ratio: density ratio, takes new priors and costs without a new fit (default); "
        "risk: risk minimisation, for one condition",
    )
    _add_condition(fit)
    fit.add_argument(
        "--basis",
        choices=("gaussian", "linear"),
        default="gaussian",
        help="(default: gaussian)",
    )
    fit.add_argument("--loss", choices=SURROGATES, help="of --method risk only (default: squared)")
    fit.add_argument(
        "--non-negative", action="store_true", help="of --method risk only: non-negative correction"
    )
    fit.add_argument(
        "--no-scale", action="store_true", help="do not scale the features to unit variance"
    )
    fit.add_argument("--gpu", type=int, default=-1, help="CUDA device; -1 is the CPU (default)")
    fit.add_argument("--seed", type=int, default=0, help="seed of everything random (default: 0)")
    fit.set_defaults(run=_fit)

    predict = commands.add_parser(
        "predict",
        help="classify the rows of a CSV or .npy file",
        description="Classify rows. Writes one line per row: the predicted label (1 or -1) and "
        "the probability of the\npositive class at the test prior. The label is 1 where that "
        "probability exceeds alpha.",
        epilog="example:\n  pu-shift predict model.npz new.csv --test-prior 0.7 --alpha 0.2 "
        "--out july.csv\n\nColumns of a CSV file are found by name, others than the model's are "
        "ignored; those of\na .npy matrix are taken in the order of the fit. Rows are streamed: "
        "the data may be larger\nthan the memory, and FILE appears when it is complete.",
        formatter_class=raw,
    )
    predict.add_argument("model", help="a file that 'pu-shift fit' wrote")
    predict.add_argument("data", help="CSV or .npy file of rows to classify")
    predict.add_argument("--test-prior", type=float, help="another test prior (method ratio only)")
    predict.add_argument("--alpha", type=float, help="another false-alarm cost (method ratio only)")
    predict.add_argument("--out", metavar="FILE", help="CSV file to write (default: the terminal)")
    predict.set_defaults(run=_predict)

    estimate = commands.add_parser(
        "estimate-prior",
        help="estimate the share of positives among unlabelled rows",
        description="Estimate the class prior, with a bootstrap interval.",
        epilog=f"{FILES}\nexample:\n  pu-shift estimate-prior data.csv --label labelled\n\n"
        "The estimate lies too high when some negatives look just like positives.",
        formatter_class=raw,
    )
    _add_files(estimate)
    estimate.add_argument(
        "--method", choices=PRIOR_METHODS, default="auto", help="estimator (default: auto)"
    )
    estimate.add_argument(
        "--transform",
        choices=TRANSFORMS,
        help="raw features or a fitted score",
    )
    estimate.add_argument(
        "--bootstrap", type=int, default=50, help="bootstrap samples; 0 for none (default: 50)"
    )
    estimate.add_argument("--level", type=float, default=0.95, help="its level (default: 0.95)")
    estimate.add_argument("--seed", type=int, default=0, help="seed (default: 0)")
    estimate.set_defaults(run=_estimate)

    reproduce = commands.add_parser(
        "reproduce",
        help="run a table of the paper",
        description="Run one of the paper's tables, or all. Further options are those of "
        "experiments/table1.py:\n--trials, --datasets, --methods, --gpu, --jobs, --out, …",
        epilog="example:\n  pu-shift reproduce table1 --trials 10 --datasets banana magic\n"
        "  pu-shift reproduce table1 --help",
        formatter_class=raw,
    )
    tables = [*map(str, TABLES), "all"]
    reproduce.add_argument(
        "table",
        type=lambda text: text.removeprefix("table"),
        choices=tables,
        metavar="TABLE",
        help=f"which table: {', '.join(tables)}; table1 is the same as 1",
    )
    reproduce.add_argument("options", nargs=argparse.REMAINDER, help="of the table's script")
    reproduce.set_defaults(run=_reproduce)
    return parser


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="+", help="one CSV file, or two: P and U")
    parser.add_argument("--label", metavar="COLUMN", help="the label column of a single file")


def _add_condition(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prior", type=float, help="share of positives (default: estimated)")
    parser.add_argument("--test-prior", type=float, help="share at test (default: prior)")
    parser.add_argument("--alpha", type=float, default=0.5, help="false-alarm cost (default: 0.5)")


def _check_out(out: str, inputs: Sequence[str]) -> None:
    """Refuse an output that cannot be written, before the work, or that is an input."""
    folder = os.path.dirname(os.path.realpath(out))
    if not os.path.isdir(folder):
        raise CommandError(f"out: {out} needs a folder that exists, {folder} does not")
    if os.path.isdir(out):
        raise CommandError(f"out must be a file, {out} is a folder")
    if not os.access(out if os.path.exists(out) else folder, os.W_OK):
        raise CommandError(f"out: {out} cannot be written")
    for path in inputs:
        if os.path.exists(out) and os.path.exists(path) and os.path.samefile(out, path):
            raise CommandError(f"out must be another file than {path}, which is read")


def _fit(options: argparse.Namespace) -> int:
    _check_out(options.out, options.data)
    if options.method == "ratio" and (options.loss is not None or options.non_negative):
        name = "loss" if options.loss is not None else "non-negative"
        raise CommandError(f"{name} needs --method risk, the method is ratio")
    X, y = _samples(options.data, options.label)
    shared = {
        "prior": options.prior,
        "test_prior": options.test_prior,
        "alpha": options.alpha,
        "basis": options.basis,
        "gpu": options.gpu,
        "random_state": options.seed,
    }
    if options.method == "ratio":
        classifier = DensityRatioClassifier(**shared)
    else:
        correction = "ascent" if options.non_negative else None
        loss = options.loss or "squared"
        classifier = RiskMinimizationClassifier(**shared, loss=loss, correction=correction)
    estimator = classifier
    if not options.no_scale:
        estimator = Pipeline([("scale", StandardScaler()), ("classify", classifier)])
    estimator.fit(X, y)
    save_model(options.out, estimator)
    condition = classifier.condition
    how = "given" if options.prior is not None else "estimated"
    print(
        f"{options.out}: fitted to {(y == 1).sum()} positive and {(y == -1).sum()} unlabelled rows "
        f"of {X.shape[1]} features; prior {condition.prior:.3g} ({how}), test prior "
        f"{condition.test_prior:.3g}, alpha {condition.alpha:.3g}"
    )
    return 0


def _predict(options: argparse.Namespace) -> int:
    if options.out is not None:
        _check_out(options.out, [options.model, options.data])
    estimator = load_model(options.model)
    classifier = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    changes = {"test_prior": options.test_prior, "alpha": options.alpha}
    classifier.set_params(**{name: value for name, value in changes.items() if value is not None})
    first = estimator[0] if isinstance(estimator, Pipeline) else estimator
    names = getattr(first, "feature_names_in_", None)
    blocks = read_blocks(options.data, names, first.n_features_in_)
    try:
        if options.out is None:
            _write(sys.stdout, estimator, blocks)
            sys.stdout.flush()
            return 0
        with replacing(options.out) as file:
            rows, positive = _write(file, estimator, blocks)
    except NotFittedError as error:
        raise CommandError(f"{options.model} was {error}") from None
    print(f"{options.out}: {rows} rows, {positive / rows:.1%} predicted positive")
    return 0


def _write(file: IO[str], estimator: Any, blocks: Iterator[Block]) -> tuple[int, int]:
    """Write a line per row; return how many rows there were and how many are positive."""
    total = positive = 0
    with tqdm(unit="B", unit_scale=True, disable=None, desc="predict") as bar:
        for block in blocks:
            bar.total = block.size
            labels = np.where(estimator.predict(block.rows) == estimator.classes_[1], 1, -1)
            probability = estimator.predict_proba(block.rows)[:, 1]
            if total == 0:
                file.write("label,probability\n")
            # Several times faster than pandas, which would format cell by cell.
            lines = map("%d,%.6g\n".__mod__, zip(labels.tolist(), probability.tolist()))
            file.writelines(lines)
            total += len(labels)
            positive += int((labels == 1).sum())
            bar.update(block.position - bar.n)
    return total, positive


def _estimate(options: argparse.Namespace) -> int:
    X, y = _samples(options.data, options.label)
    rows = X.to_numpy()
    estimate = estimate_prior(
        rows[y == 1],
        rows[y == -1],
        options.method,
        options.transform,
        options.bootstrap,
        options.level,
        seed=options.seed,
    )
    line = f"prior {estimate.prior:.3f}"
    if options.bootstrap:
        line += f", {100 * estimate.level:.3g}% interval {estimate.low:.3f} to {estimate.high:.3f}"
    print(f"{line} ({estimate.method} on {estimate.transform})")
    return 0


def _reproduce(options: argparse.Namespace) -> int:
    if options.table == "all":
        return all_tables_main(options.options)
    return table_main(int(options.table), options.options)


def _samples(paths: Sequence[str], label: str | None) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features as a data frame, and y = 1 for positives and −1 for unlabelled rows."""
    frames = [read_csv(path) for path in paths]
    if len(frames) == 1 and label is not None:
        (frame,) = frames
        if label not in frame.columns:
            raise CommandError(f"label: {paths[0]} has no column {label!r}")
        y = frame.pop(label)
        if not y.isin([1, 0, -1]).all():
            wrong = y[~y.isin([1, 0, -1])].tolist()[0]
            raise CommandError(
                f"label: column {label!r} must be 1 for labelled positives and 0 or -1 for "
                f"unlabelled rows, found {wrong!r}"
            )
        y = np.where(y == 1, 1, -1)
        if len(np.unique(y)) < 2:
            raise CommandError(f"label: column {label!r} must mark both kinds of rows")
        return finite(paths[0], frame), y
    if len(frames) == 2 and label is None:
        for path, other, frame in zip(paths[::-1], frames, frames[::-1]):
            missing = [name for name in other.columns if name not in frame.columns]
            if missing:
                raise CommandError(f"data: {path} has no column {missing[0]!r}")
        parts = [finite(path, frame[list(frames[0].columns)]) for path, frame in zip(paths, frames)]
        y = np.repeat([1, -1], [len(part) for part in parts])
        return pd.concat(parts, ignore_index=True), y
    raise CommandError(
        "data must be one file with --label, or two files, positives and unlabelled rows, without"
    )
