"""What ``pu-shift`` does: fit, predict, explore, estimate-prior and reproduce."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from pu_shift._checks import distinct
from pu_shift._cluster import ClusterError, check_workers, connected
from pu_shift._files import replacing
from pu_shift._version import __version__
from pu_shift.bigdata import in_blocks, survey_of
from pu_shift.device import DeviceError
from pu_shift.estimation.class_prior import PRIOR_METHODS, estimate_prior
from pu_shift.estimation.test_prior import estimate_from_sums
from pu_shift.estimators.classifiers import (
    SURROGATES,
    DensityRatioClassifier,
    RiskMinimizationClassifier,
)
from pu_shift.explorer import MAX_CASES, explorer_page, training_posterior
from pu_shift.files.models import load_model, save_model
from pu_shift.files.parquet import SUFFIXES, ParquetRows, Samples, is_parquet, open_samples
from pu_shift.files.predictions import (
    CSVWriter,
    ParquetWriter,
    sums_of_blocks,
    sums_on_cluster,
    texts,
    write_folder,
    write_predictions,
)
from pu_shift.files.preparation import TablePreparation
from pu_shift.files.tables import (
    Block,
    CellError,
    check_drop,
    check_features,
    column_names,
    missing_column,
    one_line,
    read_blocks,
    read_csv,
    separator_hint,
)
from pu_shift.priors import Condition
from pu_shift.ratios.average import PLAIN
from pu_shift.ratios.kernels import SCALE_CURE, at_most
from pu_shift.ratios.ulsif import GridEdgeWarning

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
  pu-shift explore model.npz new.csv --out explorer.html

The last three need no new fit. 'pu-shift COMMAND --help' tells more.
"""

FILES = """\
files:
  CSV with a header line; commas, semicolons or tabs; .gz, .bz2, .xz or .zip as
  well. All columns but the label and those that you --drop are features: numbers
  or, with --prepare, words and missing values too. Either one file with a column
  --label that is 1 for labelled positives and 0 (or -1) for unlabelled rows, or
  two files, positives and unlabelled rows, with the same columns.
  Parquet files, and folders of them, are read block by block and may be larger
  than the memory, with --cluster on the workers of a Dask cluster.
"""


COMMANDS: dict[str, dict[str, Any]] = {
    "fit": {
        "help": "learn a classifier from a CSV file or Parquet",
        "description": "Learn a classifier from positive and unlabelled rows and save it.",
        "epilog": f"{FILES}\nexamples:\n  pu-shift fit data.csv --label labelled --prior 0.3 "
        "--out model.npz\n  pu-shift fit data.csv.gz --label labelled --drop id --prepare "
        "--out model.npz",
    },
    "predict": {
        "help": "classify the rows of a CSV, Parquet or .npy file",
        "description": "Classify rows. Writes one line per row: the predicted label (1 or -1) and "
        "the probability of the\npositive class at the test prior. The label is 1 where that "
        "probability exceeds alpha.",
        "epilog": "examples:\n  pu-shift predict model.npz new.csv --test-prior 0.7 --alpha 0.2 "
        "--out july.csv\n  pu-shift predict model.npz new.csv --keep id --out july.csv\n"
        "  pu-shift predict model.npz cases/ --keep id --cluster tcp://host:8786 --out july.parquet"
        "\n\nColumns of a CSV or Parquet file are found by name, others than the model's are "
        "ignored;\nthose of a .npy matrix are taken in the order of the fit. Rows are streamed: "
        "the data may\nbe larger than the memory, and FILE appears when it is complete. With "
        "--cluster it is a\nfolder with a Parquet file for each row group of the data.",
    },
    "explore": {
        "help": "write a page to try priors and costs on your cases",
        "description": "Write one HTML page for your cases. Move the share of positives and the "
        "costs of both errors,\nand see which cases are flagged, which errors and costs to expect, "
        "and download the list.",
        "epilog": "example:\n  pu-shift explore model.npz cases.csv --keep id --false-alarm 20 "
        "--miss 500 --unit EUR\n\nThe page needs no network and no other file. It holds the "
        "columns that you --keep and one\nnumber per case, of at most "
        f"{MAX_CASES:,} cases. The model must be of --method ratio.",
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


PATIENCE = 2.0
"""Seconds after which a command says what it is doing."""

KEPT_CELLS = 10_000_000
"""Cells of Parquet up to which a sample is kept in memory, and not read again and again."""

# What the library calls its arguments, and what the command line calls them.
WORDS = {
    "prior": "--prior",
    "test_prior": "--test-prior",
    "alpha": "--alpha",
    "random_state": "--seed",
    "seed": "--seed",
    "false_alarm": "--false-alarm",
    "path": "model",
    "X": "data",
    "X_test": "data",
    "X_p": "data: the positive rows",
    "X_u": "data: the unlabelled rows",
}


# What the command line itself calls by the names of its options.
OPTIONS = frozenset(("out", "label", "drop", "keep", "gpu", "level", "miss"))
# Advice to users of the library, and what it is here.
ADVICE = {
    SCALE_CURE: "Fit without --no-scale",
    "no feature, leave it out": "no feature, leave it out by --drop",
    "has no values, leave it out": "has no values, leave it out by --drop",
    " or a SeedSequence": "",
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
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            return options.run(options)
    except (ValueError, DeviceError, ClusterError, OSError) as error:
        print(f"error: {_in_own_words(error)}", file=sys.stderr)
        return 2


def _show_warning(message: Any, *_: Any) -> None:
    print(f"warning: {_in_own_words(message)}", file=sys.stderr)


def _in_own_words(message: object) -> str:
    """Return a message in one line; the library's arguments by the options' names."""
    text = one_line(message)
    for advice, own in ADVICE.items():
        text = text.replace(advice, own)
    argument, *rest = text.split(" ", 1)
    name = argument.removesuffix(":")
    name, colon = f"--{name}" if name in OPTIONS else WORDS.get(name, name), argument[len(name) :]
    return " ".join([name + colon, *rest])


@contextmanager
def _stage(what: str, *samples: Any) -> Iterator[None]:
    """Say on a terminal what takes longer than two seconds, and for how long it has.

    Samples that come in blocks show bars of their own.
    """
    if not sys.stderr.isatty() or in_blocks(*samples):
        yield
        return
    done, start = threading.Event(), time.monotonic()

    def tell() -> None:
        told = ""
        while not done.wait(1.0 if told else PATIENCE):
            told = f"\r{what} … {time.monotonic() - start:.0f} s"
            print(told, end="", file=sys.stderr, flush=True)
        print(f"\r{' ' * len(told)}\r" if told else "", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class _Parser(argparse.ArgumentParser):
    """A parser that complains in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {one_line(message)}; see '{self.prog} --help'\n")


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog="pu-shift", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"pu-shift {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    options = {
        "fit": _fit_options,
        "predict": _predict_options,
        "explore": _explore_options,
        "estimate-prior": _estimate_options,
        "reproduce": _reproduce_options,
    }
    for name, add_options in options.items():
        texts = COMMANDS[name]
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
        "--basis",
        choices=("gaussian", "linear"),
        help="--method ratio: uLSIF with this basis (default: an average of several ratios); "
        "--method risk: that of the model (default: gaussian)",
    )
    parser.add_argument(
        "--loss", choices=SURROGATES, help="of --method risk only (default: squared)"
    )
    parser.add_argument(
        "--non-negative", action="store_true", help="of --method risk only: non-negative correction"
    )
    parser.add_argument(
        "--no-scale",
        action="store_true",
        help="do not scale the features to unit variance (an average of ratios scales by itself)",
    )
    parser.add_argument("--gpu", type=int, default=-1, help="CUDA device; -1 is the CPU (default)")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of everything random (default: 0)"
    )
    parser.set_defaults(run=_fit)


def _predict_options(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    parser.add_argument("--alpha", type=float, help="another false-alarm cost (method ratio only)")
    parser.add_argument(
        "--out", metavar="FILE", help="CSV or .parquet file to write (default: CSV, the terminal)"
    )
    _add_cluster(parser)
    parser.set_defaults(run=_predict)


def _explore_options(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    parser.add_argument("--false-alarm", type=float, help="cost of a false alarm at first")
    parser.add_argument("--miss", type=float, help="cost of a miss at first")
    parser.add_argument("--unit", default="", help="what costs are counted in, for instance EUR")
    parser.add_argument(
        "--out",
        metavar="FILE",
        default="explorer.html",
        help="the page to write (default: explorer.html)",
    )
    parser.set_defaults(run=_explore)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a file that 'pu-shift fit' wrote")
    parser.add_argument("data", help="rows to classify: CSV, .npy, Parquet or a folder of it")
    parser.add_argument(
        "--test-prior",
        type=_number_or_estimate,
        help="another test prior, or 'estimate': the one of the rows of this file, which is then "
        "read twice (method ratio only)",
    )
    parser.add_argument(
        "--keep",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column of the CSV file to carry to the output, for instance an id; may be repeated",
    )


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


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="of a Dask scheduler, whose workers read the Parquet data by the same path",
    )


def _number_or_estimate(text: str) -> float | str:
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
    parser.add_argument("data", nargs="+", help="one CSV or Parquet file, or two: P and U")
    parser.add_argument("--label", metavar="COLUMN", help="the label column of a single file")
    parser.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column that is no feature, for instance an id; may be repeated",
    )
    parser.add_argument(
        "--prepare",
        action="store_true",
        help="allow words, which become columns of 0 and 1, and missing values, which become "
        "the column's median",
    )
    _add_cluster(parser)


def _check_out(out: str, inputs: Sequence[str], folder: bool = False) -> None:
    """Refuse an output that cannot be written, before the work, or that is an input."""
    if folder and os.path.lexists(out):
        raise CommandError(f"out: with --cluster it must be a new folder, {out} exists")
    parent = os.path.dirname(os.path.realpath(out))
    if not os.path.isdir(parent):
        raise CommandError(f"out: {out} needs a folder that exists, {parent} does not")
    if os.path.isdir(out):
        raise CommandError(f"out must be a file, {out} is a folder")
    if not os.access(out if os.path.exists(out) else parent, os.W_OK):
        raise CommandError(f"out: {out} cannot be written")
    for path in inputs:
        if os.path.exists(out) and os.path.exists(path) and os.path.samefile(out, path):
            raise CommandError(f"out must be another file than {path}, which is read")


def _fit(options: argparse.Namespace) -> int:
    _check_out(options.out, options.data)
    if options.method == "ratio" and (options.loss is not None or options.non_negative):
        name = "loss" if options.loss is not None else "non-negative"
        raise CommandError(f"--{name} needs --method risk, the method is ratio")
    # A bad test prior or alpha fails before the work.
    Condition(options.prior or 0.5, options.test_prior, options.alpha)
    with _cluster_of(options):
        names, X_p, X_u, preparation = _samples(options)
        if options.method == "risk" and in_blocks(X_p, X_u):
            X_p, X_u = (at_most(X, X.shape[0], 0) for X in (X_p, X_u))
        prior, how = options.prior, "given"
        if prior is None:
            estimate = _estimated_prior(X_p, X_u, options.seed)
            prior, how = estimate.prior, f"estimated by {estimate.method}"
        classifier = _new_classifier(options, prior)
        scaler = None if options.no_scale else _fitted_scaler(X_p, X_u)
        with _stage("fitting", X_p, X_u):
            classifier.fit_pu(*(_scaled(scaler, X) for X in (X_p, X_u)))
    steps = {"prepare": preparation, "scale": scaler, "classify": classifier}
    used = [(name, step) for name, step in steps.items() if step is not None]
    # As scikit-learn does for a data frame.
    used[0][1].feature_names_in_ = names
    save_model(options.out, classifier if len(used) == 1 else Pipeline(used))
    condition = classifier.condition
    print(
        f"{options.out}: fitted to {X_p.shape[0]} positive and {X_u.shape[0]} unlabelled rows "
        f"of {len(names)} features; prior {condition.prior:.3f} ({how}), test prior "
        f"{condition.test_prior:.3f}, alpha {condition.alpha:.3g}"
    )
    return 0


def _new_classifier(options: argparse.Namespace, prior: float) -> Any:
    shared = {
        "prior": prior,
        "test_prior": options.test_prior,
        "alpha": options.alpha,
        "gpu": options.gpu,
        "random_state": options.seed,
    }
    if options.method == "ratio":
        # Trees, which may be part of the library's own choice, cannot be saved without code.
        ratio = "ulsif" if options.basis else list(PLAIN)
        return DensityRatioClassifier(**shared, estimator=ratio, basis=options.basis or "gaussian")
    return RiskMinimizationClassifier(
        **shared,
        loss=options.loss or "squared",
        basis=options.basis or "gaussian",
        correction="ascent" if options.non_negative else "auto",
        scaling=None,  # the command's own, or none
    )


def _fitted_scaler(X_p: Any, X_u: Any) -> StandardScaler:
    """Return a scaler that was fitted to both samples, which may come in blocks."""
    seen = survey_of(X_p).merged(survey_of(X_u))
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_, scaler.var_ = seen.mean, seen.scale, seen.scale**2
    scaler.n_features_in_, scaler.n_samples_seen_ = len(seen.mean), sum(seen.counts)
    return scaler


def _scaled(scaler: StandardScaler | None, X: Any) -> Any:
    if scaler is None:
        return X
    return X.scaled(scaler.mean_, scaler.scale_) if in_blocks(X) else scaler.transform(X)


@contextmanager
def _cluster_of(options: argparse.Namespace) -> Iterator[Any]:
    """Connect to the cluster, if there is to be one."""
    if options.cluster is None:
        yield None
        return
    data = options.data if isinstance(options.data, list) else [options.data]
    if not all(map(is_parquet, data)):
        raise CommandError(f"--cluster needs data in Parquet, {data[0]} is not")
    with connected(options.cluster) as client:
        check_workers(client)
        yield client


def _predict(options: argparse.Namespace) -> int:
    if options.cluster is not None and options.out is None:
        raise CommandError("--cluster needs --out, a folder to write")
    if options.out is not None:
        _check_out(options.out, [options.model, options.data], folder=options.cluster is not None)
    for name in options.keep:
        if name in ("label", "probability"):
            raise CommandError(f"keep: the output has a column {name!r} of its own")
    with _cluster_of(options) as client:
        model = _opened(options)
        test_prior = _test_prior(options, model, client)
        changes = {"test_prior": test_prior, "alpha": options.alpha}
        _change(options.model, model.classifier, changes)
        if client is not None:
            groups = ParquetRows(options.data).groups_with(*model.columns)
            found = write_folder(options.out, model.estimator, groups, model.columns, client)
        else:
            found = _predict_here(options, model)
    if options.out is None:
        return 0
    rows, positive = found
    print(f"{options.out}: {rows} rows, {positive / rows:.1%} predicted positive")
    return 0


def _predict_here(options: argparse.Namespace, model: _Model) -> tuple[int, int]:
    to_parquet = options.out is not None and Path(options.out).suffix in SUFFIXES
    writer: Any = ParquetWriter if to_parquet else CSVWriter
    with _bar("predict", options) as bar:
        if options.out is None:
            output = writer(sys.stdout, options.keep)
            return write_predictions(output, model.estimator, model.blocks, bar)
        with replacing(options.out, binary=to_parquet) as file:
            output = writer(file, options.keep)
            return write_predictions(output, model.estimator, model.blocks, bar)


def _bar(what: str, options: argparse.Namespace) -> tqdm:
    """Return a bar of the bytes that were read, of Parquet of the rows."""
    unit = "rows" if is_parquet(options.data) else "B"
    return tqdm(unit=unit, unit_scale=True, disable=None, desc=what)


class _Model(NamedTuple):
    """A model, its classifier, and rows that it is for.

    ``columns`` are the features, those to keep, and whether features may be words or missing.
    """

    estimator: Any
    classifier: Any
    blocks: Iterator[Block]
    columns: tuple[list[str], list[str], bool]


def _opened(options: argparse.Namespace) -> _Model:
    """Open a model and the rows of a file."""
    distinct("--keep", options.keep)
    estimator = load_model(options.model)
    first, classifier = estimator, estimator
    if isinstance(estimator, Pipeline):
        first, classifier = estimator[0], estimator[-1]
    # The reader finds the columns by these names; scikit-learn would miss them in its rows.
    names = vars(first).pop("feature_names_in_", None)
    words = None
    if isinstance(first, TablePreparation) and names is not None:
        words = [name for name, values in zip(names, first.categories_) if values is not None]
    n_features = first.n_features_in_
    if is_parquet(options.data):
        if names is None:
            raise CommandError(f"{options.model} has no names of features, which Parquet needs")
        columns = list(names), options.keep, words is not None
        return _Model(estimator, classifier, ParquetRows(options.data).blocks(*columns), columns)
    blocks = read_blocks(options.data, names, n_features, keep=options.keep, words=words)
    if words is None:
        blocks = _strict(blocks)
    return _Model(estimator, classifier, blocks, ([], options.keep, words is not None))


def _strict(blocks: Iterator[Block]) -> Iterator[Block]:
    try:
        yield from blocks
    except CellError as error:
        raise CommandError(
            f"{error}; a model that was fitted with --prepare takes words and missing values"
        ) from None


def _change(path: str, classifier: Any, changes: dict[str, float | None]) -> None:
    """Change the condition, if the classifier takes another one."""
    wanted = {name: value for name, value in changes.items() if value is not None}
    before = classifier.condition
    classifier.set_params(**wanted)
    if classifier.condition == before or isinstance(classifier, DensityRatioClassifier):
        return
    raise CommandError(
        f"{path} is of --method risk and holds for test prior {before.test_prior:.3g} and alpha "
        f"{before.alpha:.3g} alone: fit it again for others, or fit with --method ratio, which "
        "takes any"
    )


def _test_prior(options: argparse.Namespace, model: _Model, client: Any = None) -> float | None:
    """Return the test prior that is given or, if asked for, found in a first look at the rows."""
    classifier = model.classifier
    wanted = classifier.test_prior if options.test_prior is None else options.test_prior
    if wanted != "estimate":
        return options.test_prior
    if not isinstance(classifier, DensityRatioClassifier):
        raise CommandError(
            f"--test-prior: {options.model} is of --method risk and holds for one test prior alone"
        )
    if not hasattr(classifier, "ratio_sums_"):
        raise CommandError(
            f"--test-prior: {options.model} is of an older release, which kept too little to "
            "estimate it: fit it again"
        )
    if not (os.path.isfile(options.data) or is_parquet(options.data)):
        raise CommandError(f"--test-prior: {options.data} is read twice and must be a file")
    with _stage("estimating the test prior"):
        if client is None:
            sums = sums_of_blocks(model.estimator, _opened(options).blocks)
        else:
            groups = ParquetRows(options.data).groups_with(*model.columns)
            sums = np.sum(
                [*sums_on_cluster(model.estimator, groups, model.columns, client)], axis=0
            )
        found = estimate_from_sums(classifier, sums)
    print(
        f"test prior {found.test_prior:.3f}, {100 * found.level:.3g}% interval {found.low:.3f} to "
        f"{found.high:.3f}, estimated from {found.n_rows} rows",
        file=sys.stderr,
    )
    return found.test_prior


def _explore(options: argparse.Namespace) -> int:
    _check_out(options.out, [options.model, options.data])
    if len(set(options.keep) & {"row", "label", "probability"}) > 0:
        raise CommandError("keep: the list has columns row, probability and label of its own")
    if (options.false_alarm is None) != (options.miss is None):
        raise CommandError("--false-alarm and --miss must be given together")
    model = _opened(options)
    estimator, classifier, blocks, _ = model
    if not isinstance(classifier, DensityRatioClassifier):
        raise CommandError(
            f"{options.model} is of --method risk and holds for one prior and cost alone: to "
            "explore others, fit with --method ratio"
        )
    test_prior = _test_prior(options, model)
    _change(options.model, classifier, {"test_prior": test_prior})
    posteriors: list[np.ndarray] = []
    kept: list[list[str]] = [[] for _ in options.keep]
    with _bar("explore", options) as bar:
        for block in blocks:
            bar.total = block.size
            posteriors.append(training_posterior(estimator, block.rows))
            for column, cells in zip(kept, block.kept):
                column.extend(texts(cells))
            if sum(map(len, posteriors)) > MAX_CASES:
                raise CommandError(
                    f"data: {options.data} has more than {MAX_CASES:,} cases, too many for a "
                    "page: explore a sample of them, and use 'pu-shift predict' for all"
                )
            bar.update(block.position - bar.n)
    page = explorer_page(
        np.concatenate(posteriors),
        classifier.condition,
        keep=dict(zip(options.keep, kept)),
        false_alarm=options.false_alarm,
        miss=options.miss,
        unit=options.unit,
        model=options.model,
        data=options.data,
    )
    with replacing(options.out) as file:
        file.write(page)
    print(f"{options.out}: {sum(map(len, posteriors)):,} cases; open it in a browser")
    return 0


def _estimate(options: argparse.Namespace) -> int:
    with _cluster_of(options):
        sample = _samples(options)
        found = _estimated_prior(
            sample.X_p, sample.X_u, options.seed, method=options.method, level=options.level
        )
    level = f"{100 * found.level:.3g}%"
    print(
        f"prior {found.prior:.3f}, {level} interval {found.low:.3f} to {found.high:.3f} "
        f"({found.method}); {level} upper bound under no assumption {found.bound:.3f}"
    )
    return 0


def _estimated_prior(X_p: Any, X_u: Any, seed: int, **options: Any) -> Any:
    """Estimate the prior, for estimate-prior and for fit alike."""
    with _stage("estimating the prior", X_p, X_u):
        return estimate_prior(X_p, X_u, seed=seed, **options)


def _reproduce(options: argparse.Namespace) -> int:
    from pu_shift.paper.scripts import all_tables_main, table_main

    if options.table == "all":
        return all_tables_main(options.options)
    return table_main(int(options.table), options.options)


def _samples(options: argparse.Namespace) -> Samples:
    """Read P and U, or open them to be read in blocks."""
    paths, label = options.data, options.label
    if (len(paths), label is None) not in ((1, False), (2, True)):
        raise CommandError(
            "data must be one file with --label, or two files, positives and unlabelled rows, "
            "without"
        )
    if any(map(is_parquet, paths)):
        return _parquet_samples(options)
    tables = [column_names(path) for path in paths]
    check_drop(paths[0], options.drop, label, tables)
    features = [
        [name for name in names if name != label and name not in options.drop] for names in tables
    ]
    try:
        with _stage(f"reading {' and '.join(paths)}"):
            if label is None:
                X_p, X_u = _two_samples(options, *features)
            else:
                X_p, X_u = _labelled(options, tables[0], features[0])
    except CellError as error:
        hint = separator_hint(tables[0])
        if not hint and not options.prepare:
            hint = "; --prepare takes words and missing values, --drop leaves a column out"
        raise CommandError(f"{error}{hint}") from None
    preparation = None
    if options.prepare:
        both = np.concatenate([X_p, X_u])
        preparation = TablePreparation().fit(both, feature_names=features[0])
        X_p, X_u = preparation.transform(X_p), preparation.transform(X_u)
    return Samples(np.array(features[0], dtype=object), X_p, X_u, preparation)


def _parquet_samples(options: argparse.Namespace) -> Samples:
    if not all(map(is_parquet, options.data)):
        raise CommandError("data must be two files of one kind, CSV or Parquet")
    remote = options.cluster is not None
    shared = options.drop, options.prepare, options.seed, remote
    samples = open_samples(options.data, options.label, *shared)
    for name in ("X_p", "X_u"):
        X = getattr(samples, name)
        X.progress = partial(tqdm, unit="part", leave=False, disable=None, desc="reading")
        if X.shape[0] * X.shape[1] <= KEPT_CELLS:
            samples = samples._replace(**{name: at_most(X, X.shape[0], 0)})
    return samples


def _labelled(
    options: argparse.Namespace, names: Sequence[str], features: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    (path,), label, prepare = options.data, options.label, options.prepare
    if label not in names:
        raise CommandError(f"label: {path} {missing_column(label, names)}")
    read = [*features, label]
    rows = read_csv(path, read, words=read if prepare else [label])
    marks = rows[:, -1]
    strange = marks[~((marks == 1) | (marks == 0) | (marks == -1))].tolist()
    if strange:
        found = repr(strange[0]) if isinstance(strange[0], str) else f"{strange[0]:g}"
        raise CommandError(
            f"label: column {label!r} must be 1 for labelled positives and 0 or -1 for "
            f"unlabelled rows, found {found}"
        )
    positive = marks == 1
    if positive.all() or not positive.any():
        raise CommandError(f"label: column {label!r} must mark both kinds of rows")
    rows = check_features(path, features, rows[:, :-1], gaps=prepare)
    return rows[positive], rows[~positive]


def _two_samples(
    options: argparse.Namespace, names_p: Sequence[str], names_u: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    path_p, path_u = options.data
    for path, names, others in ((path_u, names_u, names_p), (path_p, names_p, names_u)):
        missing = [name for name in others if name not in names]
        if missing:
            raise CommandError(f"data: {path} {missing_column(missing[0], names)}")
    words = names_p if options.prepare else ()
    X_p, X_u = (
        check_features(path, names_p, read_csv(path, names_p, words), gaps=options.prepare)
        for path in options.data
    )
    return X_p, X_u
