"""Positive and unlabelled rows from files, for fit and estimate-prior."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pu_shift._checks import ArgumentError, check_scales
from pu_shift.cli.common import CommandError, add_cluster, add_data, add_format, stage
from pu_shift.files.cells import check_sizes
from pu_shift.files.columns import (
    check_drop,
    label_test,
    missing_column,
    separator_hint,
    split_names,
)
from pu_shift.files.parquet import is_parquet
from pu_shift.files.unpacking import reading

if TYPE_CHECKING:
    from pu_shift.files.preparation import TablePreparation

FILES = """\
files:
  CSV with a header line; commas, semicolons or tabs; .gz, .bz2, .xz, .zip or .zst
  as well; - is the standard input. Either one file with a column --label that is
  1 for labelled positives and 0, -1 or empty for unlabelled rows, or two files,
  positives and unlabelled rows, with the same columns.
  All columns but the label and those that you --drop are features. Numbers stay as
  they are. Dates become days, categories columns of 0 and 1, missing numbers the
  median of their column; a line says what each column became, and the model does
  the same to new rows.
  Parquet files, and folders of them, may be larger than the memory: of more than a
  million rows a random sample is taken, with --cluster by the workers of a Dask
  cluster.
"""


class Samples(NamedTuple):
    """The features' names, the two samples in numbers, and how they came to be numbers."""

    names: np.ndarray
    X_p: Any
    X_u: Any
    preparation: TablePreparation


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the files of P and U."""
    add_data(parser, nargs="+", help="one CSV or Parquet file, or two: P and U")
    parser.add_argument("--label", metavar="COLUMN", help="the label column of a single file")
    parser.add_argument(
        "--positive", metavar="VALUE", help="the label of the positives, if it is not 1"
    )
    parser.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="columns that are no features, for instance id,date; may be repeated",
    )
    parser.add_argument(
        "--prepare",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="make numbers of dates, categories and missing values (default), or refuse them",
    )
    add_format(parser)
    add_cluster(parser)


def read_samples(options: argparse.Namespace) -> Samples:
    """Read P and U, of Parquet at most a sample of each, and prepare them together."""
    paths, label = options.data, options.label
    if (len(paths), label is None) not in ((1, False), (2, True)):
        raise CommandError(
            "data must be one file with --label, or two files, positives and unlabelled rows, "
            "without"
        )
    if label is None and options.positive is not None:
        raise CommandError("--positive needs --label: in two files the first holds the positives")
    as_parquet = [is_parquet(path) for path in paths]
    if any(as_parquet) and not all(as_parquet):
        raise CommandError("data must be two files of one kind, CSV or Parquet")
    with stage(f"reading {' and '.join(paths)}"):
        read = _parquet_frames if all(as_parquet) else _csv_frames
        frame_p, frame_u, decimal = read(options)
    import pandas as pd

    from pu_shift.files.preparation import ColumnsError, TablePreparation

    names = list(frame_p.columns)
    both = pd.concat([frame_p, frame_u[names]], ignore_index=True)
    preparation = TablePreparation(decimal=options.decimal or decimal)
    preparation.fit(both, feature_names=names)
    told = preparation.described()
    if not options.prepare and told:
        rule = "which --no-prepare does not allow"
        raise ColumnsError([ArgumentError("X", f": column {line}, {rule}") for line in told])
    if not options.prepare:
        preparation = TablePreparation.plain(names)
    if told and separator_hint(names):
        raise CommandError(f"data: {paths[0]} has one column{separator_hint(names)}")
    for line in told:
        print(line, file=sys.stderr)
    rows = preparation.convert(both, names=names)[0]
    if not told:
        check_scales(rows.min(axis=0), rows.max(axis=0), names)
    return Samples(
        np.array(names, dtype=object), rows[: len(frame_p)], rows[len(frame_p) :], preparation
    )


def _parquet_frames(options: argparse.Namespace) -> tuple[Any, Any, str]:
    from pu_shift.files import parquet

    shared = options.label, options.positive, options.drop, options.seed
    return *parquet.read_samples(options.data, *shared), "auto"


def _csv_frames(options: argparse.Namespace) -> tuple[Any, Any, str]:
    """Return P and U as data frames, and which decimal marks their separator allows."""
    from pu_shift.files.tables import column_names, read_csv

    paths, label = options.data, options.label
    heads = [column_names(path, options.encoding) for path in paths]
    tables = [names for names, _ in heads]
    options.drop = split_names(options.drop, tables)
    check_drop(paths[0], options.drop, label, tables)
    features = [[n for n in names if n != label and n not in options.drop] for names in tables]
    if label is not None and label not in tables[0]:
        raise CommandError(f"--label: {paths[0]} {missing_column(label, tables[0])}")
    for path, names, others in zip(paths[::-1], features[::-1], features):
        missing = [name for name in others if name not in names]
        if missing:
            raise CommandError(f"data: {path} {missing_column(missing[0], names)}")
    if not features[0]:
        raise CommandError(f"data: {paths[0]} has no column of features")
    # A comma in a cell between commas may as well stand between thousands.
    decimal = "." if any(mark == "," for _, mark in heads) else "auto"
    as_texts = options.decimal == ","
    frames = []
    for path in paths:
        frames.append(read_csv(path, features[0], options.encoding, as_texts))
        with reading(f"data: {path}", mark=""):
            check_sizes(frames[-1])
    if label is None:
        return *frames, decimal
    labels = read_csv(paths[0], [label], options.encoding, texts=True)[label]
    positive = label_test(label, labels.unique().tolist(), options.positive)(labels)
    return frames[0][positive], frames[0][~positive], decimal


def estimated_prior(X_p: Any, X_u: Any, seed: int, **options: Any) -> Any:
    """Estimate the prior, for estimate-prior and for fit alike."""
    from pu_shift.estimation.class_prior import estimate_prior

    with stage("estimating the prior"):
        return estimate_prior(X_p, X_u, random_state=seed, **options)
