"""Positive and unlabelled rows from files, for fit and estimate-prior."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from pu_shift._checks import ArgumentError
from pu_shift.cli.common import CommandError, add_cluster, add_data, stage
from pu_shift.estimation.class_prior import estimate_prior
from pu_shift.files import parquet
from pu_shift.files.columns import check_drop, missing_column, separator_hint, split_names
from pu_shift.files.parquet import Samples, is_parquet
from pu_shift.files.preparation import TablePreparation
from pu_shift.files.tables import CellError, check_features, column_names, read_csv

FILES = """\
files:
  CSV with a header line; commas, semicolons or tabs; .gz, .bz2, .xz or .zip as
  well. All columns but the label and those that you --drop are features: numbers
  or, with --prepare, categories and missing values too. Either one file with a column
  --label that is 1 for labelled positives and 0 (or -1) for unlabelled rows, or
  two files, positives and unlabelled rows, with the same columns.
  Parquet files, and folders of them, may be larger than the memory: of more than a
  million rows a random sample is taken, with --cluster by the workers of a Dask
  cluster.
"""


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the files of P and U."""
    add_data(parser, nargs="+", help="one CSV or Parquet file, or two: P and U")
    parser.add_argument("--label", metavar="COLUMN", help="the label column of a single file")
    parser.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="columns that are no features, for instance id,date; may be repeated",
    )
    parser.add_argument(
        "--prepare",
        action="store_true",
        help="allow categories, which become columns of 0 and 1, and missing values, which become "
        "the column's median",
    )
    add_cluster(parser)


def read_samples(options: argparse.Namespace) -> Samples:
    """Read P and U, of Parquet at most a sample of each."""
    paths, label = options.data, options.label
    if (len(paths), label is None) not in ((1, False), (2, True)):
        raise CommandError(
            "data must be one file with --label, or two files, positives and unlabelled rows, "
            "without"
        )
    if any(map(is_parquet, paths)):
        return _parquet_samples(options)
    tables = [column_names(path) for path in paths]
    options.drop = split_names(options.drop, tables)
    check_drop(paths[0], options.drop, label, tables)
    features = [
        [name for name in names if name != label and name not in options.drop] for names in tables
    ]
    try:
        with stage(f"reading {' and '.join(paths)}"):
            if label is None:
                X_p, X_u = _two_samples(options, *features)
            else:
                X_p, X_u = _labelled(options, tables[0], features[0])
    except CellError as error:
        hint = separator_hint(tables[0])
        if not hint and not options.prepare:
            hint = "; --prepare takes categories and missing values, --drop leaves a column out"
        raise CommandError(f"{error}{hint}") from None
    preparation = None
    if options.prepare:
        both = np.concatenate([X_p, X_u])
        try:
            preparation = TablePreparation().fit(both, feature_names=features[0])
        except ArgumentError as error:
            raise ArgumentError(error.name, f"{error.rule} by --drop") from None
        X_p, X_u = preparation.transform(X_p), preparation.transform(X_u)
    return Samples(np.array(features[0], dtype=object), X_p, X_u, preparation)


def _parquet_samples(options: argparse.Namespace) -> Samples:
    if not all(map(is_parquet, options.data)):
        raise CommandError("data must be two files of one kind, CSV or Parquet")
    shared = options.label, options.drop, options.prepare, options.seed
    with stage(f"reading {' and '.join(options.data)}"):
        return parquet.read_samples(options.data, *shared)


def _labelled(
    options: argparse.Namespace, names: Sequence[str], features: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    (path,), label, prepare = options.data, options.label, options.prepare
    if label not in names:
        raise CommandError(f"--label: {path} {missing_column(label, names)}")
    read = [*features, label]
    rows = read_csv(path, read, categories=read if prepare else [label])
    labels = rows[:, -1]
    strange = labels[~((labels == 1) | (labels == 0) | (labels == -1))].tolist()
    if strange:
        found = repr(strange[0]) if isinstance(strange[0], str) else f"{strange[0]:g}"
        raise CommandError(
            f"--label: column {label!r} must be 1 for labelled positives and 0 or -1 for "
            f"unlabelled rows, found {found}"
        )
    positive = labels == 1
    if positive.all() or not positive.any():
        raise CommandError(f"--label: column {label!r} must label both kinds of rows")
    rows = check_features(path, features, rows[:, :-1], missing=prepare)
    return rows[positive], rows[~positive]


def _two_samples(
    options: argparse.Namespace, names_p: Sequence[str], names_u: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    path_p, path_u = options.data
    for path, names, others in ((path_u, names_u, names_p), (path_p, names_p, names_u)):
        missing = [name for name in others if name not in names]
        if missing:
            raise CommandError(f"data: {path} {missing_column(missing[0], names)}")
    categories = names_p if options.prepare else ()
    X_p, X_u = (
        check_features(path, names_p, read_csv(path, names_p, categories), missing=options.prepare)
        for path in options.data
    )
    return X_p, X_u


def estimated_prior(X_p: Any, X_u: Any, seed: int, **options: Any) -> Any:
    """Estimate the prior, for estimate-prior and for fit alike."""
    with stage("estimating the prior"):
        return estimate_prior(X_p, X_u, random_state=seed, **options)
