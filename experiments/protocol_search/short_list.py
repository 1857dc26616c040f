"""The short list of plain protocols for the Ker models, compared on Tables 1-3.

Every entry is one rule for all datasets that names none, and is fitted by the estimators that
ship. Widths are median × logspace(-1, 1, 11), and bases and batches are those of the protocol.

Usage: python experiments/protocol_search/short_list.py        (--help lists the options)
"""

from __future__ import annotations

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from pu_shift.data.sampling import Draw
from pu_shift.paper.compare import compare, headline, load_paper_table, summarize
from pu_shift.paper.protocol import Protocol
from pu_shift.paper.runner import RunOptions, Task, draw_set, in_parallel, open_dataset, plan
from pu_shift.paper.scripts import ending
from pu_shift.paper.settings import DATASETS, GUIDES, TABLES, TRIALS
from pu_shift.paper.store import write_atomic
from pu_shift.ratios.base import GridEdgeWarning
from pu_shift.ratios.ulsif import ULSIF

KER_METHODS = ("DH-Ker", "Sq-Ker")
WIDTHS = np.logspace(-1, 1, 11)
LAMS = tuple(10.0**k for k in range(-7, -1))


@dataclass(frozen=True)
class Entry:
    """One rule: the number of centres for so many features, and how the width is chosen.

    ``width`` is that of p/u uLSIF with the model's own centres (``'own centres'``) or with
    uLSIF's 100 (``'uLSIF'``), or that of the least held-out risk (``'own risk'``).
    """

    name: str
    n_centers: Callable[[int], int]
    n_steps: int
    width: str
    lams: tuple[float, ...] = (0.0,)
    glance: bool = False  # at trial 0 of π = 0.3 and seed 0 alone: it is several times the work


ENTRIES = (
    Entry("50 centres, 500 steps", lambda d: 50, 500, "own centres"),
    Entry("50 centres, 500 steps", lambda d: 50, 500, "uLSIF"),
    Entry("100 centres, 250 steps", lambda d: 100, 250, "uLSIF"),
    Entry("max(50, d) centres, 500 steps", lambda d: max(50, d), 500, "uLSIF"),
    Entry("max(100, d) centres, 250 steps", lambda d: max(100, d), 250, "uLSIF"),
    Entry(
        "max(50, d) centres, 500 steps, λ 1e-7 … 1e-2",
        lambda d: max(50, d),
        500,
        "uLSIF",
        LAMS,
        True,
    ),
    Entry("100 centres, 500 steps, λ 0.1", lambda d: 100, 500, "own risk", (0.1,), glance=True),
)


def fit_at(
    sample: Draw,
    prior: float,
    given: Sequence[float],
    method: str,
    n_centers: int,
    n_steps: int,
    lams: tuple[float, ...],
    width: float | None,
    rule: str,
) -> dict[float, Any]:
    """Fit a Ker model for every given prior, at a width or at the one that a rule takes."""
    estimator = (
        Protocol()
        .estimator(method, prior, random_state=sample.seed)
        .set_params(
            n_centers=n_centers,
            n_steps=n_steps,
            lams=lams,
            widths=width,
            width_factors=WIDTHS,
            width_rule=rule,
        )
    )
    conditions = [{"test_prior": value} for value in given]
    return dict(zip(given, estimator.fit_many(sample.positives, sample.unlabeled, conditions)))


def accuracies(task: Task, seed: int) -> pd.DataFrame:
    """Return the accuracy of both Ker models by each entry, on one training set."""
    tests = sorted({block.test_prior for block in task.blocks})
    given = sorted({block.given_prior for block in task.blocks})
    dataset, rows = open_dataset(task.dataset), []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", GridEdgeWarning)
        sample = draw_set(dataset, task.prior, tests, task.trial, Protocol(), seed)
        # What two entries have in common is fitted once.
        fit = cache(partial(fit_at, sample, task.prior, given))
        samples = sample.positives, sample.unlabeled
        ratio = ULSIF(*samples, width_factors=WIDTHS, lams=1e-2, random_state=sample.seed)
        glance = (task.trial, task.prior, seed) == (0, 0.3, 0)
        entries = [entry for entry in ENTRIES if glance or not entry.glance]
        for entry, method in product(entries, KER_METHODS):
            n_centers, width, rule = entry.n_centers(dataset.X.shape[1]), None, "risk"
            if entry.width == "uLSIF":
                width = ratio.width
            elif entry.width == "own centres":
                # One step: the width does not depend on the training.
                one = fit("Sq-Ker", n_centers, 1, (0.0,), None, "ulsif")
                width = one[given[0]].width_
            fitted = fit(method, n_centers, entry.n_steps, entry.lams, width, rule)
            for block in task.blocks:
                model = fitted[block.given_prior]
                rows.append(
                    {
                        **block._asdict(),
                        "dataset": task.dataset,
                        "method": method,
                        "trial": task.trial,
                        "entry": entry.name,
                        "width": entry.width,
                        "chosen": model.width_,
                        "accuracy": 100.0 * model.score(*sample.tests[block.test_prior]),
                    }
                )
    return pd.DataFrame(rows)


def gather(folder: Path, calls: dict[str, Any], jobs: int) -> pd.DataFrame:
    """Make what the folder does not hold yet, a file per call, and return all of it."""
    missing = {name: call for name, call in calls.items() if not (folder / name).exists()}
    folder.mkdir(parents=True, exist_ok=True)
    named = [joblib.delayed(_named)(name, call) for name, call in missing.items()]
    for done, (name, frame) in enumerate(in_parallel(named, jobs), start=1):
        write_atomic(folder / name, frame.to_csv(index=False))
        print(f"{done} of {len(missing)}: {folder / name}", file=sys.stderr, flush=True)
    return pd.concat([pd.read_csv(folder / name) for name in calls], ignore_index=True)


def _named(name: str, call: tuple) -> tuple[str, pd.DataFrame]:
    function, arguments, options = call
    return name, function(*arguments, **options)


def judged(trials: pd.DataFrame) -> dict[str, float]:
    """Return share of consistent cells, mean |Δ| (also by method and dataset) and mean SE."""
    printed = pd.concat([load_paper_table(number) for number in GUIDES])
    cells = compare(summarize(trials), printed)
    total = headline(cells)
    figures = {"consistent": total.consistent, "mean_abs_delta": total.mean_abs_delta}
    for group, part in pd.concat([total.by_method, total.by_dataset]).iterrows():
        figures[f"{group} consistent"] = part["consistent"]
        figures[f"{group} mean_abs_delta"] = part["mean_abs_delta"]
    return {**figures, "mean_se": cells["se"].mean(), "paper_mean_se": cells["paper_se"].mean()}


def short_list(folder: Path, seed: int, trials: int, jobs: int) -> list[dict[str, Any]]:
    """Judge every entry of the list with one seed."""
    options = RunOptions(DATASETS, KER_METHODS, trials)
    tasks = plan([TABLES[number] for number in GUIDES], options)
    calls = {
        f"{task.dataset}-{task.prior}-{task.trial}.csv": joblib.delayed(accuracies)(task, seed)
        for task in tasks
    }
    fitted = gather(folder / f"seed{seed}", calls, jobs)
    rows = []
    for (name, width), part in fitted.groupby(["entry", "width"], sort=False):
        done = part["trial"].nunique()
        rows.append({"seed": seed, "entry": name, "width": width, "trials": done, **judged(part)})
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison from the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=TRIALS, help="trials of every setting")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1], help="seeds")
    parser.add_argument("--jobs", type=int, default=joblib.cpu_count(), help="worker processes")
    parser.add_argument("--out", default="results/protocol_search", help="results folder")

    def run() -> int:
        options = parser.parse_args(argv)
        out = Path(options.out)
        rows = [
            row
            for seed in options.seeds
            for row in short_list(out / "runs" / "short_list", seed, options.trials, options.jobs)
        ]
        table = pd.DataFrame(rows).round(4)
        write_atomic(out / "short_list.csv", table.to_csv(index=False))
        means = table.drop(columns="seed").groupby(["entry", "width"], sort=False).mean()
        print(means.round(3).to_string())
        return 0

    return ending(run)


if __name__ == "__main__":
    sys.exit(main())
