"""Costs of errors on the command line: numbers, or columns that have them for each case."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from pu_shift.cli.common import CommandError
from pu_shift.files.predictions import texts
from pu_shift.files.tables import Block

OPTIONS = ("--false-alarm", "--miss")


def add_costs(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what errors cost."""
    for option, what in zip(OPTIONS, ("a false alarm", "a miss")):
        parser.add_argument(
            option,
            metavar="COST",
            type=_number_or_column,
            help=f"cost of {what}: a number, or the column of the data that has it for each case",
        )


def _number_or_column(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


@dataclass
class Costs:
    """What a false alarm and a miss cost; ``None`` if it is not said."""

    both: tuple[Any, Any]
    n_rows: int = 0

    @classmethod
    def of(cls, options: argparse.Namespace) -> Costs:
        """Return the costs that were given, both of them or none."""
        if (options.false_alarm is None) != (options.miss is None):
            raise CommandError("--false-alarm and --miss must be given together")
        if options.miss is not None and getattr(options, "alpha", None) is not None:
            raise CommandError("--alpha must not be given together with costs")
        both = options.false_alarm, options.miss
        for option, cost in zip(OPTIONS, both):
            if isinstance(cost, float) and not 0.0 < cost < np.inf:
                raise CommandError(f"{option} must be a number > 0 or a column, got {cost:g}")
        return cls(both)

    @property
    def columns(self) -> list[str]:
        """The columns that have costs of each case."""
        return [cost for cost in self.both if isinstance(cost, str)]

    @property
    def alpha(self) -> float | None:
        """The penalty of a false positive, if there are costs that are alike for all cases."""
        if self.columns or None in self.both:
            return None
        from pu_shift.estimators.costs import alpha_of_costs

        return alpha_of_costs(None, *self.both)

    def __call__(self, block: Block) -> tuple[tuple[Any, ...], Any]:
        """Return what a block keeps for the output, and the penalty of each of its cases."""
        from pu_shift.estimators.costs import alpha_of_costs

        kept, both = self.of_cases(block)
        return kept, alpha_of_costs(None, *both) if self.columns else None

    def of_cases(self, block: Block) -> tuple[tuple[Any, ...], Any]:
        """Return what a block keeps for the output, and both costs: numbers, or of each case."""
        if not self.columns:
            return block.kept, self.both
        n_kept = len(block.kept) - len(self.columns)
        cells = iter(block.kept[n_kept:])
        values = [
            self._numbers(option, cost, texts(next(cells))) if isinstance(cost, str) else cost
            for option, cost in zip(OPTIONS, self.both)
        ]
        free = np.flatnonzero(np.add(*values) == 0.0)
        if len(free):
            raise CommandError(f"--miss: both costs are 0 in row {self.n_rows + free[0] + 1}")
        self.n_rows += len(block.rows)
        return block.kept[:n_kept], values

    def _numbers(self, option: str, column: str, cells: list[str]) -> np.ndarray:
        values = np.empty(len(cells))
        for row, cell in enumerate(cells):
            try:
                values[row] = float(cell)
            except ValueError:
                values[row] = np.nan
            if not 0.0 <= values[row] < np.inf:
                raise CommandError(
                    f"{option}: column {column!r} must hold numbers >= 0, found {cell!r} in row "
                    f"{self.n_rows + row + 1}"
                )
        return values
