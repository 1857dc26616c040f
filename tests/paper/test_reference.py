"""What chance and another processor are allowed, on committed and on made-up runs."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pu_shift.paper import reference
from pu_shift.paper.compare import compare, load_paper_table, summarize
from pu_shift.paper.reference import (
    chance_bounds,
    near_paper,
    other_run,
    reference_folder,
    reference_run,
    reference_trials,
    same_trials,
)
from pu_shift.paper.settings import CELL, DATASETS, GUIDES, METHODS, TABLES
from pu_shift.paper.store import read_trials


@pytest.fixture(autouse=True)
def _fewer_runs(monkeypatch):
    monkeypatch.setattr(reference, "RUNS_DRAWN", 400)


def compared(trials, number):
    """Return the cells of a table, of any trials."""
    blocks = pd.DataFrame(TABLES[number].blocks)
    mine = trials.merge(blocks, on=list(blocks))
    return compare(summarize(mine), load_paper_table(number))


@pytest.mark.parametrize("number", TABLES)
def test_the_reference_run_passes_by_table(number):
    assert near_paper(compared(reference_trials(), number), "it").passed


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_reference_run_passes_by_dataset(dataset):
    trials = reference_trials()
    mine = trials[trials["dataset"] == dataset]
    assert near_paper(pd.concat([compared(mine, number) for number in TABLES]), "it").passed


@pytest.mark.parametrize("count", [1, 2, 10])
def test_another_seed_passes_and_the_same_with_points_lost_does_not(count):
    folder = reference_folder() / "seed1"
    trials = pd.concat([read_trials(folder / f"table{number}") for number in GUIDES])
    trials = trials[trials["trial"] < count]
    worse = trials.assign(accuracy=trials["accuracy"] - 4.0)
    for kind, passed in ((trials, True), (worse, False)):
        cells = pd.concat([compared(kind, number) for number in GUIDES])
        assert near_paper(cells, "it").passed == passed


def made_up(keys, rng, mean, spread, count):
    """Return trials of cells whose accuracies share a part of their noise."""
    shared = rng.normal(size=(count, 1))
    noise = 0.6 * shared + 0.8 * rng.normal(size=(count, len(keys)))
    parts = [
        keys.assign(trial=trial, accuracy=mean + spread * row) for trial, row in enumerate(noise)
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize(
    ("methods", "blocks", "count"),
    [(METHODS, 3, 10), (METHODS, 3, 2), (METHODS[:1], 1, 10), (METHODS[:1], 1, 1)],
)
def test_chance_fails_a_run_as_seldom_as_is_said(monkeypatch, methods, blocks, count):
    keys = pd.DataFrame(TABLES[1].cells(["susy"], methods))
    keys = keys[keys["given_prior"].isin(keys["given_prior"].unique()[:blocks])]
    paper = keys.merge(load_paper_table(1), on=CELL)
    rng, failed, repeats = np.random.default_rng(0), 0, 60
    mean = paper["mean"].to_numpy() + rng.normal(0.0, 2.0, len(paper))  # our protocol is not theirs
    spread = rng.uniform(1.0, 5.0, len(paper))
    for repeat in range(repeats):
        trials = made_up(keys, rng, mean, spread, 10)
        monkeypatch.setattr(reference, "reference_trials", lambda trials=trials: trials)
        run = compare(summarize(made_up(keys, rng, mean, spread, count)), load_paper_table(1))
        bounds = chance_bounds(run, seed=repeat)
        failed += run["delta"].abs().mean() > bounds.mean_abs_delta
        failed += count > 1 and run["consistent"].mean() < bounds.consistent
    assert failed <= stats.binom.ppf(0.999, repeats, reference.FAILS_BY_CHANCE)


def test_of_one_cell_the_bound_is_that_of_students_t(monkeypatch):
    monkeypatch.setattr(reference, "RUNS_DRAWN", 20_000)
    keys = pd.DataFrame(TABLES[1].cells(["susy"], METHODS[:1])).iloc[:1]
    paper = float(keys.merge(load_paper_table(1), on=CELL)["mean"].iloc[0])
    # Far above the printed mean |Δ| is Δ, whose difference is Student's with nine degrees.
    trials = made_up(keys, np.random.default_rng(1), paper + 15.0, np.array([1.0]), 10)
    monkeypatch.setattr(reference, "reference_trials", lambda: trials)
    found = chance_bounds(keys.assign(n=4)).mean_abs_delta
    mean, spread = trials["accuracy"].mean(), trials["accuracy"].std()
    quantile = stats.t.ppf(1.0 - reference.FAILS_BY_CHANCE / 2.0, 9)
    expected = mean - paper + quantile * spread * np.sqrt(1 / 4 + 1 / 10)
    assert found == pytest.approx(expected, abs=0.15 * spread)


def first_two(**changes):
    trials = reference_trials()
    return trials[(trials["trial"] < 2) & trials["dataset"].isin(["banana", "magic"])].copy()


def failed(trials):
    return [check.claim for check in same_trials(trials) if check.passed is False]


def test_the_same_trials_are_the_same():
    assert failed(first_two()) == []


@pytest.mark.parametrize(
    ("method", "column", "count", "change", "claims"),
    [
        ("p/u uLSIF", "accuracy", 1, 0.2, []),  # another processor
        ("p/u uLSIF", "accuracy", 5, 0.2, ["accuracies of p/u uLSIF"]),
        ("DH-Lin", "accuracy", 12, 1.0, []),
        ("DH-Lin", "accuracy", 1, 1.2, ["accuracies of DH-Lin"]),
        ("Sq-Ker", "width", 1, 0.1, ["widths of Sq-Ker"]),
        ("u/p uLSIF", "lam", 1, 0.09, ["λ of u/p uLSIF"]),
    ],
)
def test_what_another_processor_may_change_and_what_not(method, column, count, change, claims):
    trials = first_two()
    places = trials.index[trials["method"] == method][-count:]
    trials.loc[places, column] += change
    assert failed(trials) == claims


def test_trials_that_the_reference_run_has_not_are_no_evidence():
    trials = first_two()
    assert failed(trials.assign(trial=trials["trial"] + 20)) == ["trials as in the reference run"]
    checks = same_trials(pd.concat([trials, trials.assign(trial=12)]))
    assert (
        str(checks[-1])
        == f"not checked: trials beyond the reference run: {len(trials)}, not compared"
    )


def test_another_run_is_told_by_what_differs():
    run = reference_run()
    assert other_run(run) == []
    assert other_run({**run, "seed": 3}) == ["seed is 3, the reference has 0"]
    changed = {**run, "files": {"banana": "0123"}, "protocol": {**run["protocol"], "n_u": 5}}
    assert [line.split(" is ")[0] for line in other_run(changed)] == [
        "files.banana",
        "protocol.n_u",
    ]
    assert other_run({**run, "files": {"mine": "0123"}}) == []
