"""The paper's tables from the command line to the last file, ten trials each."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"
MINUTES_TARGET = 20.0


def run(repeats: int) -> list[dict[str, Any]]:
    """Time Table 1 and all seven, once, and where the time of the latter goes."""
    rows = []
    for name, script, target in (
        ("Table 1", "table1.py", None),
        ("all seven tables", "all_tables.py", MINUTES_TARGET),
    ):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, EXPERIMENTS / script, "--quiet", "--out", folder]
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            minutes = (time.perf_counter() - start) / 60.0
            rows.append(
                {
                    "case": f"{name}, ten trials, {os.cpu_count()} workers",
                    "minutes": minutes,
                    "at_most": target,
                    "breakdown": breakdown(Path(folder)),
                }
            )
    return rows


def breakdown(folder: Path) -> dict[str, dict[str, float]]:
    """Sum the seconds of fitting over trials: dataset to method to seconds."""
    frames = [pd.read_csv(path) for path in sorted(folder.rglob("trials.csv"))]
    trials = pd.concat(frames)
    # The given priors of a training set, and the tables, share one fit.
    fits = trials.drop_duplicates(["prior", "dataset", "method", "trial"])
    seconds = fits.groupby(["dataset", "method"], sort=False)["seconds"].sum()
    return {
        str(dataset): {str(method): round(float(s), 1) for (_, method), s in part.items()}
        for dataset, part in seconds.groupby(level=0, sort=False)
    }
