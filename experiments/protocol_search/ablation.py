"""What each choice of the protocol changes: one field at a time, on Tables 1-3.

Usage: python experiments/protocol_search/ablation.py        (--help lists the options)
"""

from __future__ import annotations

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from pu_shift.device import usable_gpu
from pu_shift.paper.compare import headline
from pu_shift.paper.protocol import load_protocol
from pu_shift.paper.runner import RunOptions, run_all
from pu_shift.paper.scripts import ending
from pu_shift.paper.settings import DATASETS, GUIDES, METHODS, TABLES
from pu_shift.paper.store import write_atomic

RATIO = ("u/p uLSIF", "p/u uLSIF")
KER = ("DH-Ker", "Sq-Ker")
LIN = ("DH-Lin", "Sq-Lin")
SIX = [1 / 8, 1 / 4, 1 / 2, 1.0, 3 / 2, 2.0]
LAMS = [10.0**k for k in range(-11, 0)]
RISK = ("DH-Lin", "DH-Ker", "Sq-Lin", "Sq-Ker")


@dataclass(frozen=True)
class Variant:
    """A change of the protocol and the methods that it can touch."""

    name: str
    overrides: dict[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] = METHODS


VARIANTS = (
    Variant("chosen protocol"),
    Variant("200 centres of uLSIF", {"n_centers": 200}, RATIO),
    Variant("100 centres of Ker", {"ker_centers": 100}, KER),
    Variant("250 centres of Ker", {"ker_centers": 250}, KER),
    Variant("widths 1/8 … 2, six of them", {"width_factors": SIX}, RATIO + KER),
    Variant("λ of uLSIF from 1e-3", {"ratio_lams": [1e-3, 1e-2, 1e-1]}, RATIO),
    Variant("coefficients clipped at 0", {"clip_coefficients": True}, RATIO),
    Variant("half the steps", {"n_steps": 250}, RISK),
    Variant("twice the steps", {"n_steps": 1000}, RISK),
    Variant("learning rate 1e-2", {"learning_rate": 1e-2}, RISK),
    Variant("learning rate 3e-4", {"learning_rate": 3e-4}, RISK),
    Variant("25 mini-batches", {"n_batches": 25}, RISK),
    Variant("all rows in every step", {"n_batches": 1}, RISK),
    Variant("binomial class counts", {"counts": "binomial"}),
    Variant("standardised features", {"feature_scaling": "standard"}),
    Variant("every feature in [0, 1]", {"feature_scaling": "minmax"}),
    Variant("non-negative risk (max)", {"correction": "max"}, RISK),
    Variant("non-negative risk (ascent)", {"correction": "ascent"}, RISK),
    Variant("λ of Lin 0, 1e-11 … 0.1", {"risk_lams": [0.0, *LAMS]}, LIN),
    Variant("λ of Ker 1e-7 … 1e-2", {"risk_lams": LAMS[4:10]}, KER),
    Variant("λ of Lin 0.1, 1, 10", {"risk_lams": [0.1, 1.0, 10.0]}, LIN),
    Variant("ten times the steps", {"n_steps": 5000}, LIN),
)


def run_variant(
    variant: Variant,
    folder: Path,
    n_trials: int,
    datasets: Sequence[str] = DATASETS,
    jobs: int | None = None,
    gpu: int = -1,
) -> pd.DataFrame:
    """Run Tables 1–3 with one change and return the comparison with the paper.

    Parameters
    ----------
    variant
        The change.
    folder
        Where the runs go; finished trials there are not run again.
    n_trials, datasets, jobs, gpu
        As for :class:`pu_shift.paper.runner.RunOptions`.

    Returns
    -------
    DataFrame
        One row per cell, with the columns of ``summary.csv``.

    Examples
    --------
    >>> import tempfile
    >>> variant = Variant("quick", {"n_centers": 20}, ("p/u uLSIF",))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(run_variant(variant, Path(folder), 1, ["banana"], jobs=1))
    10
    """
    name = "".join(c if c.isalnum() else "-" for c in variant.name)
    settings = {folder / name / f"table{number}": TABLES[number] for number in GUIDES}
    protocol = load_protocol(variant.overrides)
    options = RunOptions(datasets, variant.methods, n_trials, protocol, jobs=jobs, gpu=gpu)
    results = run_all(settings, options)
    return pd.concat([result.frame for result in results.values()], ignore_index=True)


def effects(comparisons: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Tabulate share of consistent cells and mean |Δ| per variant and method.

    Parameters
    ----------
    comparisons
        Variant to its comparison; the first is the reference.

    Returns
    -------
    DataFrame
        Columns variant, method, cells, consistent, mean_abs_delta, and the
        same two for the reference on the same method.

    Examples
    --------
    >>> from pu_shift.paper.compare import compare
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> paper = pd.DataFrame([{**cell, "mean": 70.7, "se": 0.4, "bold": 0}])
    >>> ours = pd.DataFrame([{**cell, "n": 10, "mean": 72.7, "se": 0.5}])
    >>> effects({"chosen": compare(ours, paper)})["mean_abs_delta"].round(6).tolist()
    [2.0]
    """
    table = pd.concat(
        [
            headline(frame).by_method.reset_index().assign(variant=name)
            for name, frame in comparisons.items()
        ],
        ignore_index=True,
    )
    table = table[["variant", "method", "cells", "consistent", "mean_abs_delta"]]
    reference = table[table["variant"] == next(iter(comparisons))]
    columns = ["method", "consistent", "mean_abs_delta"]
    return table.merge(reference[columns], how="left", on="method", suffixes=("", "_chosen"))


def by_dataset(comparisons: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Tabulate mean Δ and consistent cells per variant, method and dataset.

    Parameters
    ----------
    comparisons
        Variant to its comparison.

    Returns
    -------
    DataFrame
        Columns variant, method, dataset, cells, consistent, mean_delta and
        mean_abs_delta, in points.

    Examples
    --------
    >>> cells = pd.DataFrame({"method": "DH-Lin", "dataset": "susy", "delta": [1.0, -3.0],
    ...                       "consistent": [True, False]})
    >>> by_dataset({"chosen": cells}).iloc[:, 3:].values.tolist()
    [[2.0, 1.0, -1.0, 2.0]]
    """
    cells = pd.concat([frame.assign(variant=name) for name, frame in comparisons.items()])
    cells = cells.assign(distance=cells["delta"].abs())
    groups = cells.groupby(["variant", "method", "dataset"], sort=False)
    return groups.agg(
        cells=("delta", "size"),
        consistent=("consistent", "sum"),
        mean_delta=("delta", "mean"),
        mean_abs_delta=("distance", "mean"),
    ).reset_index()


def markdown(table: pd.DataFrame) -> str:
    """Lay out the effects as a table: a row per variant, a column per method.

    Parameters
    ----------
    table
        What :func:`effects` returns.

    Returns
    -------
    str
        Markdown; each entry is the share of consistent cells and mean |Δ|.

    Examples
    --------
    >>> table = pd.DataFrame([{"variant": "a", "method": "DH-Lin", "cells": 10,
    ...                        "consistent": 0.5, "mean_abs_delta": 1.25}])
    >>> print(markdown(table))
    | variant | DH-Lin |
    |---|---|
    | a | 50 % · 1.2 |
    """
    methods = [method for method in METHODS if method in set(table["method"])]
    lines = [f"| variant | {' | '.join(methods)} |", "|" + "---|" * (len(methods) + 1)]
    for name, rows in table.groupby("variant", sort=False):
        cells = rows.set_index("method")
        entries = [
            f"{cells['consistent'][m]:.0%} · {cells['mean_abs_delta'][m]:.1f}".replace("%", " %")
            if m in cells.index
            else ""
            for m in methods
        ]
        lines.append(f"| {name} | {' | '.join(entries)} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ablation from the command line.

    Parameters
    ----------
    argv
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit status: 0, or 2 when it cannot be run.

    Examples
    --------
    >>> main(["--trials", "0"])
    2
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10, help="trials of every variant")
    parser.add_argument("--out", default="results/protocol_search", help="results folder")
    parser.add_argument("--gpu", type=int, default=-1, help="CUDA device; -1 is the CPU")
    parser.add_argument("--only", nargs="+", help="names of variants to run")

    def run() -> int:
        options = parser.parse_args(argv)
        out, comparisons = Path(options.out), {}
        gpu, problem = usable_gpu(options.gpu)
        for variant in VARIANTS:
            if options.only and variant.name not in options.only:
                continue
            comparisons[variant.name] = run_variant(variant, out / "runs", options.trials, gpu=gpu)
            total = headline(comparisons[variant.name])
            print(
                f"{variant.name}: {total.consistent:.1%} of {total.cells} cells consistent "
                f"(ceiling {total.ceiling:.1%}), mean |Δ| {total.mean_abs_delta:.2f}",
                flush=True,
            )
            table = effects(comparisons)
            write_atomic(out / "ablation.csv", table.round(4).to_csv(index=False))
            write_atomic(out / "ablation.md", markdown(table) + "\n")
            table = by_dataset(comparisons)
            write_atomic(out / "ablation_datasets.csv", table.round(4).to_csv(index=False))
        if problem:
            print(problem)
        return 0

    return ending(run)


if __name__ == "__main__":
    sys.exit(main())
