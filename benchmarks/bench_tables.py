"""The paper's tables from the command line to the last file, two of their ten trials."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
# Ten trials take five times as long, and may take ten minutes.
TRIALS, MINUTES_TARGET = 2, 2.0


def run(repeats: int) -> list[dict[str, Any]]:
    """Time Table 1 and all seven, once, and where the time of the latter goes."""
    rows = []
    for name, script, target in (
        ("Table 1", "table1.py", None),
        ("all seven tables", "all_tables.py", MINUTES_TARGET),
    ):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, ROOT / "experiments" / script, "--quiet", "--out", folder]
            command += ["--trials", str(TRIALS)]
            start, cpu = time.perf_counter(), _children_seconds()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            minutes = (time.perf_counter() - start) / 60.0
            trials = pd.concat(pd.read_csv(path) for path in Path(folder).rglob("trials.csv"))
        rows.append(
            {
                "case": f"{name}, {TRIALS} trials, {os.cpu_count()} workers",
                "minutes": minutes,
                "cpu_minutes": (_children_seconds() - cpu) / 60.0,
                "at_most": target,
                "breakdown": breakdown(trials),
                "largest_change": largest_change(trials),
            }
        )
    return rows


def _children_seconds() -> float:
    """CPU seconds of all processes started so far and finished, workers included."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def breakdown(trials: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Sum the seconds of fitting over trials: dataset to method to seconds."""
    # The given priors of a training set, and the tables, share one fit.
    fits = trials.drop_duplicates(["prior", "dataset", "method", "trial"])
    seconds = fits.pivot_table(
        index="dataset", columns="method", values="seconds", aggfunc="sum", sort=False
    )
    return seconds.round(1).to_dict(orient="index")


def largest_change(trials: pd.DataFrame) -> float:
    """Return by how many points an accuracy differs from the reference run at the most."""
    paths = (ROOT / "results" / "reference").glob("table*/trials.csv")
    reference = pd.concat(pd.read_csv(path) for path in paths)
    key = ["table", "prior", "test_prior", "given_prior", "dataset", "method", "trial"]
    both = trials.merge(reference, on=key, suffixes=("", "_reference"))
    return float((both["accuracy"] - both["accuracy_reference"]).abs().max())
