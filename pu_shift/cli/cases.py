"""A model and the rows that it is for, for predict and explore."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from sklearn.pipeline import Pipeline

from pu_shift._checks import distinct
from pu_shift.cli.common import CommandError, add_data, share, stage
from pu_shift.estimation.test_prior import estimate_from_sums
from pu_shift.estimators import DensityRatioClassifier
from pu_shift.files.models import load_model
from pu_shift.files.parquet import ParquetTable, is_parquet
from pu_shift.files.predictions import sums_of_rows
from pu_shift.files.preparation import TablePreparation
from pu_shift.files.tables import Block, CellError, read_blocks


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a model, its rows and how to read them."""
    parser.add_argument("model", help="a file that 'pu-shift fit' wrote")
    add_data(parser, help="rows to classify: CSV, .npy, Parquet or a folder of it")
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


def _number_or_estimate(text: str) -> float | str:
    return text if text == "estimate" else share(text)


class OpenedModel(NamedTuple):
    """A model, its classifier, and rows that it is for.

    ``blocks`` begins to read the rows. ``columns`` are the features, those to keep, and whether
    features may be categories or missing; they are those of the table, if it is Parquet.
    """

    estimator: Any
    classifier: Any
    blocks: Callable[[], Iterator[Block]]
    columns: tuple[list[str], list[str], bool]
    table: ParquetTable | None = None


def open_model(options: argparse.Namespace) -> OpenedModel:
    """Open a model and the rows of a file."""
    distinct("keep", options.keep)
    estimator = load_model(options.model)
    first, classifier = estimator, estimator
    if isinstance(estimator, Pipeline):
        first, classifier = estimator[0], estimator[-1]
    # The reader finds the columns by these names; scikit-learn would miss them in its rows.
    names = vars(first).pop("feature_names_in_", None)
    categories = None
    if isinstance(first, TablePreparation) and names is not None:
        categories = [name for name, values in zip(names, first.categories_) if values is not None]
    n_features = first.n_features_in_
    if is_parquet(options.data):
        if names is None:
            raise CommandError(f"{options.model} has no names of features, which Parquet needs")
        columns = list(names), options.keep, categories is not None
        table = ParquetTable(options.data)
        return OpenedModel(estimator, classifier, partial(table.blocks, *columns), columns, table)
    read = partial(
        read_blocks, options.data, names, n_features, keep=options.keep, categories=categories
    )
    blocks = read if categories is not None else partial(_strict, read)
    return OpenedModel(estimator, classifier, blocks, ([], options.keep, categories is not None))


def _strict(read: Callable[[], Iterator[Block]]) -> Iterator[Block]:
    try:
        yield from read()
    except CellError as error:
        raise CommandError(
            f"{error}; a model that was fitted with --prepare takes categories and missing values"
        ) from None


def change_condition(path: str, classifier: Any, changes: dict[str, float | None]) -> None:
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


def find_test_prior(options: argparse.Namespace, model: OpenedModel) -> float | None:
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
    with stage("estimating the test prior"):
        function = partial(sums_of_rows, model.estimator)
        if model.table is None:
            sums: Any = sum(function(block.rows) for block in model.blocks())
        else:
            names, _, categories = model.columns
            sums = model.table.sums(function, names, categories)
        found = estimate_from_sums(classifier, sums)
    print(
        f"test prior {found.test_prior:.3f}, {100 * found.level:.3g}% interval {found.low:.3f} to "
        f"{found.high:.3f}, estimated from {found.n_rows} rows",
        file=sys.stderr,
    )
    return found.test_prior
