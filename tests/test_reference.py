"""The committed reference run: complete, consistent with itself, and reproducible here."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from asymmetric import STUDY as ASYMMETRIC
from estimated_prior import STUDY as ESTIMATED_PRIOR
from networks import STUDY as NETWORKS
from robustness import STUDY as ROBUSTNESS
from studies import study_main

from pu_shift.paper import tables
from pu_shift.paper.compare import load_paper_table
from pu_shift.paper.protocol import Protocol
from pu_shift.paper.runner import Task, run_task
from pu_shift.paper.settings import CELL, DATASETS, GUIDES, TABLES
from pu_shift.paper.store import differing, read_trials
from pu_shift.paper.tables import write_outputs

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference"
# Folder, number of the table, seed.
RUNS = [
    *((REFERENCE / f"table{number}", number, 0) for number in TABLES),
    *((REFERENCE / "seed1" / f"table{number}", number, 1) for number in GUIDES),
]


@pytest.mark.parametrize(("folder", "number", "seed"), RUNS)
def test_every_cell_has_ten_trials_made_with_the_protocol(folder, number, seed):
    trials = read_trials(folder)
    expected = [(*cell, trial) for cell in TABLES[number].cells() for trial in range(10)]
    found = trials[[*CELL, "trial"]].itertuples(index=False, name=None)
    assert sorted(found) == sorted(expected)
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert not list(differing(run, {**run, "protocol": Protocol().as_dict()}))
    assert run["seed"] == seed
    assert run["finished"]


@pytest.mark.parametrize(("folder", "number", "seed"), RUNS)
def test_the_summary_is_that_of_the_trials(folder, number, seed, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "png", lambda figure: b"")  # drawing takes long
    write_outputs(tmp_path, read_trials(folder), TABLES[number], load_paper_table(number))
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "summary.csv"), pd.read_csv(folder / "summary.csv")
    )


@pytest.mark.parametrize(
    ("dataset", "methods"),
    [
        pytest.param(dataset, methods, marks=pytest.mark.needs_data(dataset), id=dataset)
        for dataset, methods in {
            "banana": ("u/p uLSIF", "p/u uLSIF", "DH-Ker", "Sq-Ker"),
            "ijcnn1": ("p/u uLSIF",),
            "MNIST": ("p/u uLSIF",),
            "susy": ("u/p uLSIF", "DH-Lin"),
            "cod-rna": ("p/u uLSIF", "Sq-Lin"),
            "magic": ("p/u uLSIF", "DH-Lin", "Sq-Ker"),
        }.items()
    ],
)
def test_some_trials_come_out_the_same_again(dataset, methods):
    """Within 0.4 points, two test patterns: other BLAS builds round differently."""
    blocks = tuple(block for block in TABLES[3].blocks if block.prior == 0.3)
    trials = read_trials(REFERENCE / "table3").set_index([*CELL, "trial"])["accuracy"]
    for row in run_task(Task(dataset, None, 0.3, 4, blocks, methods), Protocol(), seed=0):
        key = tuple(row[name] for name in [*CELL, "trial"])
        assert row["accuracy"] == pytest.approx(trials[key], abs=0.4), key


@pytest.mark.needs_data(*DATASETS)  # the folder says of which files it was made
@pytest.mark.parametrize(
    "study", [ROBUSTNESS, ASYMMETRIC, ESTIMATED_PRIOR, NETWORKS], ids=lambda s: s.name
)
def test_a_study_is_complete_and_its_summary_that_of_its_trials(study, tmp_path):
    folder = Path(shutil.copytree(REFERENCE / study.name, tmp_path / study.name))
    summary = pd.read_csv(folder / "summary.csv")
    trials = pd.read_csv(folder / "trials.csv")
    count = summary["n"].unique().item()
    # Another protocol than today's would be refused.
    of = ["--datasets", *summary["dataset"].unique(), "--trials", str(count)]
    assert study_main(study, ["--out", str(folder), *of, "--quiet"]) == 0
    # The rows of a finished study are all in one file, so nothing was left to compute.
    assert [path.name for path in (folder / "sets").iterdir()] == ["earlier.json"]
    found = pd.read_csv(folder / "trials.csv")
    key = list(study.columns.key)
    pd.testing.assert_frame_equal(
        found, trials[list(found)].sort_values(key, ignore_index=True), check_exact=True
    )
    pd.testing.assert_frame_equal(pd.read_csv(folder / "summary.csv"), summary)
