import json

import numpy as np
import pandas as pd
import pytest

from pu_shift.paper.claims import NO_DATA
from pu_shift.paper.protocol import Protocol
from pu_shift.paper.settings import EXTRA_METHODS
from pu_shift.paper.store import StoreError
from pu_shift.report.results import read_results
from tests.paper.simulate import results_folder, robustness_folder, trials

TWO = ("banana", "susy")


def constant(cell):
    return 70.0


@pytest.fixture
def folder(tmp_path):
    return results_folder(
        tmp_path, {f"table{n}": trials(constant, number=n, datasets=TWO) for n in (1, 3, 4)}
    )


def test_tables_curves_and_runs_are_read(folder):
    results = read_results(folder)
    assert list(results.tables) == [1, 3, 4]
    assert results.headline.cells == len(results.comparison) == 36 + 48 + 36
    # Table 3 gives each block the right prior: there is no curve in it.
    assert [curves.title[:7] for curves in results.curves] == ["Table 1", "Table 4"]
    given = results.curves[0].summary.query("dataset == 'susy' and method == 'DH-Lin'")
    assert given["given_prior"].tolist() == [0.3, 0.4, 0.5]
    (run,) = results.runs
    assert run["folders"] == ["table1", "table3", "table4"]
    assert run["protocol"] == Protocol().as_dict()


def test_runs_of_another_protocol_are_told_apart(folder):
    rows = trials(constant, number=2, count=2, datasets=TWO)
    results_folder(folder, {"table2": rows}, Protocol(n_centers=50))
    assert [run["folders"] for run in read_results(folder).runs] == [
        ["table1", "table3", "table4"],
        ["table2"],
    ]


def test_a_method_of_no_table_serves_the_claims_alone(folder):
    before = read_results(folder)
    assert before.claims[4][0].verdict == NO_DATA
    rows = trials(lambda cell: 60.0, methods=EXTRA_METHODS, datasets=TWO)
    results_folder(folder, {"linear/table1": rows})
    after = read_results(folder)
    assert after.claims[4][0].verdict != NO_DATA
    pd.testing.assert_frame_equal(after.comparison, before.comparison)


def test_the_study_comes_first_among_the_curves(folder):
    robustness_folder(folder)
    first = read_results(folder).curves[0]
    assert (first.title, first.prior, first.test_prior) == ("Study: π = 0.3, π′ = 0.5", 0.3, 0.5)
    assert first.summary["given_prior"].nunique() == 6


def test_cells_without_printed_numbers_have_no_headline(tmp_path):
    rows = trials(constant, number=5, datasets=["mine"])
    results = read_results(results_folder(tmp_path, {"table5": rows}))
    assert results.headline is None
    assert np.isnan(results.comparison["paper_mean"]).all()


def break_trials(folder):
    path = folder / "table1" / "trials.csv"
    path.write_text(path.read_text().replace("banana", "", 1))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "table1" / "run.json").unlink(), "cannot read .*run.json"),
        (lambda folder: (folder / "table1" / "run.json").write_text("{"), "not written by"),
        (lambda folder: (folder / "table1" / "run.json").write_text("[]"), "not written by"),
        (break_trials, "trials.csv line 2: it was changed after it was written"),
        (lambda folder: robustness_without(folder, "prior"), "does not hold the robustness study"),
    ],
)
def test_a_damaged_folder_is_an_error_in_one_line(folder, damage, message):
    damage(folder)
    with pytest.raises(StoreError, match=message) as caught:
        read_results(folder)
    assert "\n" not in str(caught.value)


def robustness_without(folder, field):
    robustness_folder(folder)
    path = folder / "robustness" / "run.json"
    run = json.loads(path.read_text())
    del run[field]
    path.write_text(json.dumps(run))


def test_a_folder_without_trials_is_refused(tmp_path):
    (tmp_path / "table1").mkdir()
    (tmp_path / "table1" / "trials.csv").write_text("")
    with pytest.raises(StoreError, match="it holds no trials"):
        read_results(tmp_path)
