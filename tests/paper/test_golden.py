"""Training sets of Table 1, kept to the last digit: a change of the code alone changes nothing.

``python -m tests.paper.test_golden`` writes the file anew, after a change that is meant to.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from pu_shift.paper.protocol import Protocol
from pu_shift.paper.runner import Task, run_task
from pu_shift.paper.settings import METHODS, TABLES

FILE = Path(__file__).with_name("golden.json")
DATASETS = ("banana", "cod-rna")
KEPT = ("given_prior", "method", "accuracy", "width", "lam")


def trial(dataset):
    """Return what trial 0 of Table 1 gives: a row for each method and given prior."""
    task = Task(dataset, None, 0.3, 0, TABLES[1].blocks, METHODS)
    found = run_task(task, Protocol(), seed=0)
    # JSON has no NaN.
    rows = [{name: row[name] for name in KEPT} for row in found]
    return [{key: None if value != value else value for key, value in row.items()} for row in rows]


def machine():
    """Return what rounding depends on."""
    kernels = {str(library.get("architecture")) for library in threadpool_info()}
    return {"numpy": np.__version__, "kernels": sorted(kernels)}


@pytest.mark.parametrize(
    "dataset", [pytest.param(name, marks=pytest.mark.needs_data(name)) for name in DATASETS]
)
def test_a_trial_is_what_it_was(dataset):
    golden = json.loads(FILE.read_text(encoding="utf-8"))
    if golden["machine"] != machine():
        pytest.skip("made with another NumPy or processor, which round differently")
    found = trial(dataset)
    assert len(found) == len(golden[dataset]) == 3 * len(METHODS)
    for row, kept in zip(found, golden[dataset]):
        width = kept.pop("width")
        assert row.pop("width") == (width and pytest.approx(width, rel=1e-12)), kept
        assert row == kept


if __name__ == "__main__":
    content = {"machine": machine(), **{dataset: trial(dataset) for dataset in DATASETS}}
    FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
