"""What each table of the paper shows: its priors, datasets and methods, in printed order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from pu_shift import _checks

METHODS = ("u/p uLSIF", "p/u uLSIF", "DH-Lin", "DH-Ker", "Sq-Lin", "Sq-Ker")
# Mentioned in the paper's discussion, in none of its tables.
EXTRA_METHODS = ("p/u uLSIF-Lin",)
DATASETS = ("banana", "ijcnn1", "MNIST", "susy", "cod-rna", "magic")
TRIALS = 10

# The columns that name one block of rows, one row, one cell and one trial.
BLOCK = ["prior", "test_prior", "given_prior"]
ROW = [*BLOCK, "dataset"]
CELL = [*ROW, "method"]
TRIAL = [*CELL, "trial"]


class Block(NamedTuple):
    """The priors shared by a block of rows of a table: one row per dataset."""

    prior: float
    test_prior: float
    given_prior: float


class Cell(NamedTuple):
    """One cell of a table."""

    prior: float
    test_prior: float
    given_prior: float
    dataset: str
    method: str


def key_prior(name: str, value: Any) -> float:
    """Return a class prior in the form that serves as a key: rounded to 6 decimals."""
    return round(_checks.open_unit(name, value), 6)


@dataclass(frozen=True)
class TableSetting:
    """The setting of one table: its number (0 if not the paper's) and its blocks, top down."""

    number: int
    blocks: tuple[Block, ...]

    def __post_init__(self) -> None:
        blocks = tuple(
            Block(*(key_prior(name, value) for name, value in zip(BLOCK, block)))
            for block in self.blocks
        )
        if not blocks or len(set(blocks)) != len(blocks):
            raise ValueError(f"blocks must be distinct and at least one, got {list(self.blocks)}")
        object.__setattr__(self, "number", _checks.positive_int("number", self.number, least=0))
        object.__setattr__(self, "blocks", blocks)

    @classmethod
    def shift(
        cls, number: int, prior: float, test_prior: float, given_priors: Iterable[float]
    ) -> TableSetting:
        """Return a table for one pair of priors, with a block per given prior."""
        return cls(number, tuple(Block(prior, test_prior, given) for given in given_priors))

    @classmethod
    def no_shift(cls, number: int, priors: Iterable[float]) -> TableSetting:
        """Return a table whose training, test and given prior are the same in each block."""
        return cls(number, tuple(Block(prior, prior, prior) for prior in priors))

    @property
    def title(self) -> str:
        """The table's number and its priors, in one line."""
        name = f"Table {self.number}" if self.number else "Setting"
        if all(block.prior == block.test_prior for block in self.blocks):
            return f"{name}: no class prior shift"
        pairs = dict.fromkeys((block.prior, block.test_prior) for block in self.blocks)
        return f"{name}: " + "; ".join(f"π = {prior:g}, π′ = {test:g}" for prior, test in pairs)

    def cells(
        self, datasets: Iterable[str] = DATASETS, methods: Iterable[str] = METHODS
    ) -> Iterator[Cell]:
        """Iterate over the cells in printed order: blocks, then datasets, then methods."""
        datasets, methods = list(datasets), list(methods)
        return (
            Cell(*block, dataset, method)
            for block in self.blocks
            for dataset in datasets
            for method in methods
        )


TABLES = {
    setting.number: setting
    for setting in (
        TableSetting.shift(1, 0.3, 0.5, [0.5, 0.4, 0.3]),
        TableSetting.shift(2, 0.7, 0.3, [0.3, 0.5, 0.7]),
        TableSetting.no_shift(3, [0.3, 0.4, 0.5, 0.7]),
        TableSetting.shift(4, 0.5, 0.3, [0.3, 0.4, 0.5]),
        TableSetting.shift(5, 0.3, 0.7, [0.7, 0.5, 0.3]),
        TableSetting.shift(6, 0.4, 0.8, [0.8, 0.6, 0.4]),
        TableSetting.shift(7, 0.8, 0.4, [0.4, 0.6, 0.8]),
    )
}

# Only these tables may guide a choice of the protocol; the others test it out of sample.
GUIDES = (1, 2, 3)
