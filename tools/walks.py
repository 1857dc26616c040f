#!/usr/bin/env python3
"""Count the modules of the package whose functions are called on the way of one number.

Usage: python tools/walks.py        (prints each way and its modules)
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pu_shift

PACKAGE = Path(pu_shift.__file__).parent
# Every step of the protocol, in little time.
SMALL = {"n_p": 100, "n_u": 300, "n_test": 100, "n_centers": 20, "n_steps": 20, "n_folds": 2}


def modules_called(run: Callable[[], Any]) -> list[str]:
    """Return the modules of pu_shift of which a function is called, but for imports."""
    found: set[str] = set()

    def watch(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        # Comprehensions and class bodies run as a module is imported.
        if event == "call" and code.co_name.isidentifier():
            found.add(code.co_filename)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    inside = (Path(name) for name in found if name.startswith(str(PACKAGE)))
    return sorted(path.relative_to(PACKAGE).with_suffix("").as_posix() for path in inside)


def samples() -> tuple[np.ndarray, np.ndarray]:
    """Return positives and unlabelled rows."""
    rng = np.random.default_rng(0)
    return rng.normal(1.0, 1.0, (100, 2)), rng.normal(rng.choice([-1, 1], (300, 1)), 1.0, (300, 2))


def number_of_a_table(folder: Path) -> list[str]:
    """DH-Lin on banana, from the raw file to the table."""
    from pu_shift.paper.scripts import table_main

    (folder / "small.json").write_text(json.dumps(SMALL), encoding="utf-8")
    of = ["--datasets", "banana", "--methods", "DH-Lin", "--trials", "1", "--jobs", "1", "--quiet"]
    command = [*of, "--protocol", str(folder / "small.json"), "--out", str(folder / "out")]
    return modules_called(lambda: table_main(1, command))


def predictions_of_a_file(folder: Path) -> list[str]:
    """``pu-shift predict`` on a model and a CSV file."""
    from pu_shift.cli import main
    from pu_shift.files.models import save_model

    positives, unlabelled = (pd.DataFrame(rows, columns=["a", "b"]) for rows in samples())
    classifier = pu_shift.DensityRatioClassifier(0.4, estimator="ulsif")
    classifier.fit_pu(positives, unlabelled)
    save_model(folder / "model.npz", classifier)
    unlabelled.to_csv(folder / "rows.csv", index=False)
    files = [str(folder / name) for name in ("model.npz", "rows.csv", "out.csv")]
    modules = modules_called(lambda: main(["predict", *files[:2], "--out", files[2]]))
    assert (folder / "out.csv").exists()
    return modules


def fit_and_predict(_: Path) -> list[str]:
    """Fit a density ratio and predict, in Python."""
    positives, unlabelled = samples()
    classifier = pu_shift.DensityRatioClassifier(0.4, test_prior=0.6)
    return modules_called(lambda: classifier.fit_pu(positives, unlabelled).predict(unlabelled))


# The ways that are followed.
WALKS = (number_of_a_table, predictions_of_a_file, fit_and_predict)


def walk(way: Callable[[Path], list[str]]) -> list[str]:
    """Go a way with everything imported before, and return its modules."""
    for module in pkgutil.walk_packages(pu_shift.__path__, "pu_shift."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return way(Path(folder))


def main() -> int:
    """Print the ways."""
    for way in WALKS:
        modules = walk(way)
        print(f"{len(modules):3} {way.__doc__} {', '.join(modules)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
