"""Made-up trials for the tests of what is done with them."""

import json
from functools import cache

import numpy as np
import pandas as pd

from pu_shift.paper.protocol import Protocol
from pu_shift.paper.settings import DATASETS, METHODS, TABLES
from pu_shift.paper.store import TrialStore
from pu_shift.report.ideas import banana_surfaces


def trial(**changes):
    """Return one row of trials.csv."""
    row = {
        "table": 1,
        "prior": 0.3,
        "test_prior": 0.5,
        "given_prior": 0.5,
        "dataset": "banana",
        "method": "DH-Lin",
        "trial": 0,
        "accuracy": 52.5,
        "width": None,
        "lam": 0.01,
        "step": 500,
        "seconds": 1.25,
    }
    row.update(changes)
    return row


def trials(accuracy, number=1, count=4, datasets=DATASETS, methods=METHODS, seed=0):
    """Return trials of a table whose expected accuracy is a function of the cell."""
    noise = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            trial(table=number, **cell._asdict(), trial=index, accuracy=accuracy(cell) + error)
            for cell in TABLES[number].cells(datasets, methods)
            for index, error in enumerate(noise.normal(size=count))
        ]
    )


def results_folder(folder, tables, protocol=None, run=None):
    """Write trials as the runner does: a folder for each name of ``tables``."""
    for name, rows in tables.items():
        info = {
            "table": int(rows["table"].iloc[0]),
            "protocol": (protocol or Protocol()).as_dict(),
            "seed": 0,
            "command": "python experiments/made_up.py",
            **(run or {}),
        }
        with TrialStore(folder / name, info) as store:
            store.append(rows.to_dict("records"))
    return folder


def robustness_folder(folder, datasets=("banana",), methods=METHODS):
    """Write the study of the given prior, as far as a report reads it."""
    rows = [
        {"dataset": d, "given_prior": g, "method": m, "trial": t, "value": 60 + 10 * g + i + t % 2}
        for d in datasets
        for g in (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)
        for i, m in enumerate(methods)
        for t in range(4)
    ]
    (folder / "robustness").mkdir(parents=True)
    points = pd.DataFrame(rows).groupby(["dataset", "given_prior", "method"], sort=False)["value"]
    summary = points.agg(n="count", mean="mean", se="sem").reset_index()
    pd.DataFrame(rows).to_csv(folder / "robustness" / "trials.csv", index=False)
    summary.to_csv(folder / "robustness" / "summary.csv", index=False)
    run = {"study": "robustness", "prior": 0.3, "test_prior": 0.5, "seed": 0}
    run.update(protocol=Protocol().as_dict(), versions={"python": "3.11"})
    (folder / "robustness" / "run.json").write_text(json.dumps(run))


@cache
def small_surfaces():
    """Return surfaces of the banana data from a protocol that takes little time."""
    protocol = Protocol(
        n_p=150,
        n_u=400,
        n_test=200,
        n_centers=30,
        n_folds=2,
        n_steps=60,
    )
    return banana_surfaces(protocol, size=25)
