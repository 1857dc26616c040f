"""A model and the rows that it is for, for predict and explore."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pu_shift._checks import distinct, shown
from pu_shift._sklearn import last_step, split_first
from pu_shift.cli.common import CommandError, add_data, add_format, check_inputs, share, stage
from pu_shift.files.columns import split_names
from pu_shift.files.parquet import ParquetTable, is_parquet
from pu_shift.files.predictions import sums_of_rows
from pu_shift.files.tables import Block, column_names, read_blocks

if TYPE_CHECKING:
    from pu_shift.files.preparation import TablePreparation

# A warning says so if more of a column's values are new.
WARN_SHARE = 0.05


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
    add_format(parser)
    parser.add_argument(
        "--keep",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column of the CSV file to carry to the output, for instance an id; may be repeated",
    )


def _number_or_estimate(text: str) -> float | str:
    return text if text == "estimate" else share(text)


@dataclass
class OpenedModel:
    """A model and rows that it is for.

    ``blocks`` begins to read the rows, in the numbers that ``estimator`` takes: what the model
    makes of a table's columns is done by then. ``columns`` are the features, those to keep, and
    how they become numbers; they are those of the table, if it is Parquet.
    """

    estimator: Any
    classifier: Any
    read: Callable[[], Iterator[Block]]
    columns: tuple[list[Any], list[str], TablePreparation]
    table: Any = None
    reported: bool = False

    def blocks(self) -> Iterator[Block]:
        """Yield the rows; at the end, report once what the fit had not seen of them."""
        n_rows, unseen = 0, np.zeros((len(self.columns[2].columns_), 2), dtype=np.int64)
        for block in self.read():
            n_rows += len(block.rows)
            unseen = unseen + block.unseen
            yield block
        self.report(unseen, n_rows)

    def report(self, unseen: np.ndarray, n_rows: int) -> None:
        """Say what the fit had not seen, with a warning where it is much."""
        if self.reported:
            return
        self.reported = True
        names, _, preparation = self.columns
        for name, column, (new, missing) in zip(names, preparation.columns_, unseen.tolist()):
            outside = "outside the dates of" if column.kind == "date" else "unseen in"
            for count, what in ((new, f"{outside} the fit"), (missing, "missing, none in the fit")):
                if count:
                    much = "warning: " if count > WARN_SHARE * n_rows else ""
                    told = f"{much}column {shown(name)}: {count} of {n_rows} values {what}"
                    print(told, file=sys.stderr)


def open_model(options: argparse.Namespace, also: Sequence[str] = ()) -> OpenedModel:
    """Open a model and the rows of a file, of which columns are kept, and others ``also``."""
    check_inputs([options.model, options.data])
    from pu_shift.files.models import load_model
    from pu_shift.files.preparation import TablePreparation

    estimator = load_model(options.model)
    first, rest = split_first(estimator)
    # The reader finds the columns by these names; scikit-learn would miss them in its rows.
    names = vars(first).pop("feature_names_in_", None)
    names = None if names is None else names.tolist()
    if isinstance(first, TablePreparation):
        preparation, estimator = first, rest
    else:
        preparation = TablePreparation.plain(first.n_features_in_)
    if options.decimal is not None:
        preparation = preparation.with_decimal(options.decimal)
    table = ParquetTable(options.data) if is_parquet(options.data) else None
    if table is not None and names is None:
        raise CommandError(f"{options.model} has no names of features, which Parquet needs")
    if any("," in name for name in options.keep) and Path(options.data).suffix != ".npy":
        present = column_names(options.data, options.encoding)[0] if table is None else table.names
        options.keep[:] = split_names(options.keep, [present])
    distinct("keep", options.keep)
    keep = [*options.keep, *also]
    columns = names or list(range(1, first.n_features_in_ + 1)), keep, preparation
    classifier = last_step(estimator)
    if table is not None:
        return OpenedModel(estimator, classifier, partial(table.blocks, *columns), columns, table)
    read = partial(
        read_blocks, options.data, names, preparation, keep=keep, encoding=options.encoding
    )
    return OpenedModel(estimator, classifier, read, columns)


def takes_any_condition(classifier: Any) -> bool:
    """Whether a classifier is of ``--method ratio``."""
    from pu_shift.estimators import DensityRatioClassifier

    return isinstance(classifier, DensityRatioClassifier)


def change_condition(path: str, classifier: Any, changes: dict[str, float | None]) -> None:
    """Change the condition, if the classifier takes another one."""
    wanted = {name: value for name, value in changes.items() if value is not None}
    before = classifier.condition
    classifier.set_params(**wanted)
    if classifier.condition == before or takes_any_condition(classifier):
        return
    raise CommandError(
        f"{path} is of --method risk and holds for test prior {before.test_prior:.3g} and alpha "
        f"{before.alpha:.3g} alone: fit it again for others, or fit with --method ratio, which "
        "takes any"
    )


def _of_prepared(function: Callable[[np.ndarray], Any], prepared: tuple[Any, Any]) -> Any:
    return function(prepared[0])


def find_test_prior(options: argparse.Namespace, model: OpenedModel) -> float | None:
    """Return the test prior that is given or, if asked for, found in a first look at the rows."""
    from pu_shift.estimation.test_prior import estimate_from_sums

    classifier = model.classifier
    wanted = classifier.test_prior if options.test_prior is None else options.test_prior
    if wanted != "estimate":
        return options.test_prior
    if not takes_any_condition(classifier):
        raise CommandError(
            f"--test-prior: {options.model} is of --method risk and holds for one test prior alone"
        )
    if not hasattr(classifier, "ratio_sums_"):
        raise CommandError(
            f"--test-prior: {options.model} is of an older release, which kept too little to "
            "estimate it: fit it again"
        )
    with stage("estimating the test prior"):
        function = partial(sums_of_rows, model.estimator)
        if model.table is None:
            sums: Any = sum(function(block.rows) for block in model.blocks())
        else:
            names, _, preparation = model.columns
            sums = model.table.sums(partial(_of_prepared, function), names, preparation)
        found = estimate_from_sums(classifier, sums)
    print(
        f"test prior {found.test_prior:.3f}, {100 * found.level:.3g}% interval {found.low:.3f} to "
        f"{found.high:.3f}, estimated from {found.n_rows} rows",
        file=sys.stderr,
    )
    return found.test_prior
