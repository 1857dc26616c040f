"""The short list of plain protocols for the Ker models, compared on Tables 1-3.

Every training set is fitted once at each width; a protocol of the list is a pair of widths (or
three) and a rule that takes one of them, from P and U alone. 500 centres, unscaled bases and
as many steps as Lin are common to all.

Usage: python experiments/protocol_search/short_list.py        (--help lists the options)
"""

from __future__ import annotations

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from pu_shift.paper.compare import compare, headline, load_paper_table, summarize
from pu_shift.paper.methods import fit_method
from pu_shift.paper.protocol import Protocol
from pu_shift.paper.runner import RunOptions, Task, draw_set, open_dataset, plan
from pu_shift.paper.scripts import ending
from pu_shift.paper.settings import DATASETS, GUIDES, KER_METHODS, TABLE_PRIORS, TABLES, TRIALS
from pu_shift.paper.store import write_atomic
from pu_shift.paper.workers import in_parallel

WIDTHS = (1 / 2, 2 / 3, 1.0, 3 / 2, 2.0)
GRIDS = {
    "½, 1, 2": (1 / 2, 1.0, 2.0),
    "½, 2": (1 / 2, 2.0),
    "⅔, 2": (2 / 3, 2.0),
    "½, 3/2": (1 / 2, 3 / 2),
    "⅔, 3/2": (2 / 3, 3 / 2),
}
RULES = {
    "each draw": ("most", ["dataset", "prior", "trial"]),
    "mean score of the ten draws of a prior": ("mean", ["dataset", "prior"]),
    "mean score of all draws of a dataset": ("mean", ["dataset"]),
    "most of the ten draws of a prior": ("most", ["dataset", "prior"]),
    "most of all draws of a dataset": ("most", ["dataset"]),
}
PLAIN = Protocol(ker_lams=(0.0,), ker_width_factors=WIDTHS)


def accuracies(task: Task, seed: int) -> pd.DataFrame:
    """Return the accuracy of both Ker models at each width, on one training set."""
    rows: list[dict[str, Any]] = []
    with threadpool_limits(1):
        tests = sorted({block.test_prior for block in task.blocks})
        given = sorted({block.given_prior for block in task.blocks})
        sample = draw_set(open_dataset(task.dataset), task.prior, tests, task.trial, PLAIN, seed)
        for factor, method in product(WIDTHS, KER_METHODS):
            protocol = replace(PLAIN, ker_width_factors=(factor,))
            fitted = fit_method(protocol, method, sample, task.prior, given)
            for block in task.blocks:
                score = fitted[block.given_prior].score(*sample.tests[block.test_prior])
                cell = {**block._asdict(), "dataset": task.dataset, "method": method}
                rows.append(
                    {**cell, "trial": task.trial, "factor": factor, "accuracy": 100.0 * score}
                )
    return pd.DataFrame(rows)


def ratio_scores(dataset: str, prior: float, trial: int, seed: int) -> pd.DataFrame:
    """Return p/u uLSIF's cross-validation score at each width, on one training set."""
    protocol = Protocol(ker_width_factors=WIDTHS)
    with threadpool_limits(1):
        sample = draw_set(open_dataset(dataset), prior, [], trial, protocol, seed)
        scores = protocol.ratio_scores(sample)
    key = {"dataset": dataset, "prior": prior, "trial": trial}
    return pd.DataFrame([{**key, "factor": f, "score": s} for f, s in zip(WIDTHS, scores)])


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


def chosen(scores: pd.DataFrame, widths: Sequence[float], how: str, by: list[str]) -> pd.DataFrame:
    """Return the width of each group: of the least mean score, or the best of most draws."""
    mine = scores[np.isclose(scores["factor"].to_numpy()[:, None], widths).any(axis=1)]
    if how == "mean":
        means = mine.groupby([*by, "factor"])["score"].mean().reset_index()
        return means.loc[means.groupby(by)["score"].idxmin(), [*by, "factor"]]
    best = mine.loc[mine.groupby(["dataset", "prior", "trial"])["score"].idxmin()]
    votes = best.groupby([*by, "factor"]).size().rename("votes").reset_index()
    # Of a tie the wider one, which is the last.
    return votes.sort_values(["votes", "factor"]).groupby(by).tail(1)[[*by, "factor"]]


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
    """Judge every protocol of the list with one seed."""
    options = RunOptions(DATASETS, KER_METHODS, trials)
    tasks = plan([TABLES[number] for number in GUIDES], options)
    fits = {
        f"{task.dataset}-{task.prior}-{task.trial}.csv": joblib.delayed(accuracies)(task, seed)
        for task in tasks
    }
    draws = {
        f"{dataset}-{prior}-{trial}.csv": joblib.delayed(ratio_scores)(dataset, prior, trial, seed)
        for dataset, prior, trial in product(DATASETS, TABLE_PRIORS, range(trials))
    }
    fitted = gather(folder / f"seed{seed}" / "fits", fits, jobs)
    scores = gather(folder / f"seed{seed}" / "scores", draws, jobs)
    rows = []
    for (grid, widths), (rule, (how, by)) in product(GRIDS.items(), RULES.items()):
        choice = chosen(scores, widths, how, by)
        # Read from CSV the factors are equal to the last bit.
        trials_of_choice = fitted.merge(choice, on=list(choice))
        figures = judged(trials_of_choice)
        rows.append({"seed": seed, "widths": grid, "rule": rule, **figures})
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
        means = table.drop(columns="seed").groupby(["widths", "rule"], sort=False).mean()
        print(means.round(3).to_string())
        return 0

    return ending(run)


if __name__ == "__main__":
    sys.exit(main())
