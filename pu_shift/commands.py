"""What ``pu-shift`` does: fit, predict, estimate-prior and reproduce."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from pu_shift._files import replacing
from pu_shift._version import __version__
from pu_shift.class_prior import PRIOR_METHODS, estimate_prior
from pu_shift.classifiers import SURROGATES, DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.device import DeviceError
from pu_shift.model_file import load_model, save_model
from pu_shift.row_files import Block, check_features, one_line, read_blocks, read_csv
from pu_shift.shift_estimation import ShiftEstimate, estimate_from_sums, test_sums
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


COMMANDS: dict[str, dict[str, Any]] = {
    "fit": {
        "help": "learn a classifier from a CSV file",
        "description": "Learn a classifier from positive and unlabelled rows and save it.",
        "epilog": f"{FILES}\nexample:\n  pu-shift fit data.csv --label labelled --prior 0.3 "
        "--out model.npz",
    },
    "predict": {
        "help": "classify the rows of a CSV or .npy file",
        "description": "Classify rows. Writes one line per row: the predicted label (1 or -1) and "
        "the probability of the\npositive class at the test prior. The label is 1 where that "
        "probability exceeds alpha.",
        "epilog": "example:\n  pu-shift predict model.npz new.csv --test-prior 0.7 --alpha 0.2 "
        "--out july.csv\n\nColumns of a CSV file are found by name, others than the model's are "
        "ignored; those of\na .npy matrix are taken in the order of the fit. Rows are streamed: "
        "the data may be larger\nthan the memory, and FILE appears when it is complete.",
    },
    "estimate-prior": {
        "help": "estimate the share of positives among unlabelled rows",
        "description": "Estimate the class prior, with an interval.",
        "epilog": f"{FILES}\nexample:\n  pu-shift estimate-prior data.csv --label labelled\n\n"
        "Estimate and interval lie too high when some negatives look just like positives, which\n"
        "no data can tell; the upper bound holds all the same.",
    },
    "reproduce": {
        "help": "run a table of the paper",
        "description": "Run one of the paper's tables, or all. Further options are those of "
        "experiments/table1.py:\n--trials, --datasets, --methods, --gpu, --jobs, --out, …",
        "epilog": "example:\n  pu-shift reproduce table1 --trials 10 --datasets banana magic\n"
        "  pu-shift reproduce table1 --help",
    },
}


class CommandError(ValueError):
    """Something that the user of the command line has to put right."""


def run_command(argv: Sequence[str] | None) -> int:
    """Do what the arguments ask for and return the exit status, or exit with its own."""
    options = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            # The grids are the command's own.
            warnings.simplefilter("ignore", GridEdgeWarning)
            return options.run(options)
    except (ValueError, DeviceError, OSError) as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="pu-shift", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=raw
    )
    parser.add_argument("--version", action="version", version=f"pu-shift {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    options = (_fit_options, _predict_options, _estimate_options, _reproduce_options)
    for (name, texts), add_options in zip(COMMANDS.items(), options):
        add_options(commands.add_parser(name, formatter_class=raw, **texts))
    return parser


def _fit_options(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    parser.add_argument(
        "--out", required=True, metavar="MODEL", help="the model file to write, .npz"
    )
    parser.add_argument(
        "--method",
        choices=("ratio", "risk"),
        default="ratio",
        help="ratio: density ratio, takes new priors and costs without a new fit (default); "
        "risk: risk minimisation, for one condition",
    )
    parser.add_argument("--prior", type=float, help="share of positives (default: estimated)")
    parser.add_argument("--test-prior", type=float, help="share at test (default: prior)")
    parser.add_argument("--alpha", type=float, default=0.5, help="false-alarm cost (default: 0.5)")
    parser.add_argument(
        "--basis", choices=("gaussian", "linear"), default="gaussian", help="(default: gaussian)"
    )
    parser.add_argument(
        "--loss", choices=SURROGATES, help="of --method risk only (default: squared)"
    )
    parser.add_argument(
        "--non-negative", action="store_true", help="of --method risk only: non-negative correction"
    )
    parser.add_argument(
        "--no-scale", action="store_true", help="do not scale the features to unit variance"
    )
    parser.add_argument("--gpu", type=int, default=-1, help="CUDA device; -1 is the CPU (default)")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of everything random (default: 0)"
    )
    parser.set_defaults(run=_fit)


def _predict_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a file that 'pu-shift fit' wrote")
    parser.add_argument("data", help="CSV or .npy file of rows to classify")
    parser.add_argument(
        "--test-prior",
        type=_test_prior,
        help="another test prior, or 'estimate': the one of the rows of this file, which is then "
        "read twice (method ratio only)",
    )
    parser.add_argument("--alpha", type=float, help="another false-alarm cost (method ratio only)")
    parser.add_argument("--out", metavar="FILE", help="CSV file to write (default: the terminal)")
    parser.set_defaults(run=_predict)


def _estimate_options(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    parser.add_argument(
        "--method", choices=PRIOR_METHODS, default="auto", help="estimator (default: auto)"
    )
    parser.add_argument(
        "--level", type=float, default=0.95, help="level of the interval (default: 0.95)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed (default: 0)")
    parser.set_defaults(run=_estimate)


def _test_prior(text: str) -> float | str:
    return text if text == "estimate" else float(text)


def _reproduce_options(parser: argparse.ArgumentParser) -> None:
    tables = [*map(str, range(1, 8)), "all"]
    parser.add_argument(
        "table",
        type=lambda text: text.removeprefix("table"),
        choices=tables,
        metavar="TABLE",
        help=f"which table: {', '.join(tables)}; table1 is the same as 1",
    )
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of the table's script")
    parser.set_defaults(run=_reproduce)


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="+", help="one CSV file, or two: P and U")
    parser.add_argument("--label", metavar="COLUMN", help="the label column of a single file")


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
    names, X, y = _samples(options.data, options.label)
    shared = {
        "prior": options.prior,
        "test_prior": options.test_prior,
        "alpha": options.alpha,
        "basis": options.basis,
        "gpu": options.gpu,
        "random_state": options.seed,
    }
    classifier: Any
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
    # As scikit-learn does for a data frame.
    (classifier if options.no_scale else estimator[0]).feature_names_in_ = names
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
    first, classifier = estimator, estimator
    if isinstance(estimator, Pipeline):
        first, classifier = estimator[0], estimator[-1]
    # The reader finds the columns by these names; scikit-learn would miss them in its rows.
    names = vars(first).pop("feature_names_in_", None)
    test_prior = options.test_prior
    if test_prior == "estimate":
        found = _estimated(
            options, estimator, read_blocks(options.data, names, first.n_features_in_)
        )
        test_prior = found.test_prior
    changes = {"test_prior": test_prior, "alpha": options.alpha}
    classifier.set_params(**{name: value for name, value in changes.items() if value is not None})
    blocks = read_blocks(options.data, names, first.n_features_in_)
    try:
        if options.out is None:
            _write(sys.stdout, estimator, blocks)
            return 0
        with replacing(options.out) as file:
            rows, positive = _write(file, estimator, blocks)
    except NotFittedError as error:
        raise CommandError(f"{options.model} was {error}") from None
    print(f"{options.out}: {rows} rows, {positive / rows:.1%} predicted positive")
    return 0


def _estimated(
    options: argparse.Namespace, estimator: Any, blocks: Iterator[Block]
) -> ShiftEstimate:
    """Estimate the test prior from a file and say what was found."""
    if not os.path.isfile(options.data):
        raise CommandError(f"test-prior: {options.data} is read twice and must be a file")
    sums, classifier = np.zeros(3), estimator
    for block in blocks:
        rows = block.rows
        if isinstance(estimator, Pipeline):
            rows, classifier = estimator[0].transform(rows), estimator[-1]
        sums += test_sums(classifier, rows)
    found = estimate_from_sums(classifier, sums)
    print(
        f"test prior {found.test_prior:.3f}, {100 * found.level:.3g}% interval {found.low:.3f} to "
        f"{found.high:.3f}, estimated from {found.n_rows} rows",
        file=sys.stderr,
    )
    return found


def _write(file: IO[str], estimator: Any, blocks: Iterator[Block]) -> tuple[int, int]:
    """Write a line per row; return how many rows there were and how many are positive."""
    total = positive = 0
    with tqdm(unit="B", unit_scale=True, disable=None, desc="predict") as bar:
        for block in blocks:
            bar.total = block.size
            is_positive = estimator.predict(block.rows) == estimator.classes_[1]
            probability = estimator.predict_proba(block.rows)[:, 1]
            if total == 0:
                file.write("label,probability\n")
            labels = [1 if row else -1 for row in is_positive.tolist()]
            # Several times faster than cell by cell.
            file.writelines(map("%d,%.6g\n".__mod__, zip(labels, probability.tolist())))
            total += len(labels)
            positive += int(is_positive.sum())
            bar.update(block.position - bar.n)
    return total, positive


def _estimate(options: argparse.Namespace) -> int:
    _, X, y = _samples(options.data, options.label)
    found = estimate_prior(X[y == 1], X[y == -1], options.method, options.level, seed=options.seed)
    level = f"{100 * found.level:.3g}%"
    print(
        f"prior {found.prior:.3f}, {level} interval {found.low:.3f} to {found.high:.3f} "
        f"({found.method}); {level} upper bound under no assumption {found.bound:.3f}"
    )
    return 0


def _reproduce(options: argparse.Namespace) -> int:
    from pu_shift.paper.scripts import all_tables_main, table_main

    if options.table == "all":
        return all_tables_main(options.options)
    return table_main(int(options.table), options.options)


def _samples(paths: Sequence[str], label: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the features' names, their rows, and y = 1 for positives and −1 for unlabelled."""
    if len(paths) == 1 and label is not None:
        return _labelled(paths[0], label)
    if len(paths) == 2 and label is None:
        return _two_samples(paths)
    raise CommandError(
        "data must be one file with --label, or two files, positives and unlabelled rows, without"
    )


def _labelled(path: str, label: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    names, rows = read_csv(path)
    if label not in names:
        raise CommandError(f"label: {path} has no column {label!r}")
    place = names.index(label)
    marks = rows[:, place]
    strange = marks[~np.isin(marks, (1, 0, -1))]
    if len(strange):
        raise CommandError(
            f"label: column {label!r} must be 1 for labelled positives and 0 or -1 for "
            f"unlabelled rows, found {strange[0]:g}"
        )
    y = np.where(marks == 1, 1, -1)
    if len(np.unique(y)) < 2:
        raise CommandError(f"label: column {label!r} must mark both kinds of rows")
    features = [name for name in names if name != label]
    X = check_features(path, features, np.delete(rows, place, axis=1))
    return np.array(features, dtype=object), X, y


def _two_samples(paths: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tables = [read_csv(path) for path in paths]
    for path, (other, _), (names, _) in zip(paths[::-1], tables, tables[::-1]):
        missing = [name for name in other if name not in names]
        if missing:
            raise CommandError(f"data: {path} has no column {missing[0]!r}")
    features = tables[0][0]
    parts = [
        check_features(path, features, rows[:, [names.index(name) for name in features]])
        for path, (names, rows) in zip(paths, tables)
    ]
    y = np.repeat([1, -1], [len(part) for part in parts])
    return np.array(features, dtype=object), np.concatenate(parts), y
