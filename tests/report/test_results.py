import json

import pandas as pd
import pytest

from pu_shift.paper.claims import NO_DATA
from pu_shift.paper.protocol import Protocol
from pu_shift.paper.settings import EXTRA_METHODS
from pu_shift.paper.store import StoreError
from pu_shift.report.results import headlines, read_results
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
    figures = headlines(results.comparison)
    assert {name: part.cells for name, part in figures.items()} == {
        "Table 4, out of sample": 36,
        "Tables 1, 3, which guided the protocol": 36 + 48,
        "Tables 1, 3, 4": len(results.comparison),
    }
    # Table 3 gives each block the right prior: there is no curve in it.
    assert [curves.title[:7] for curves in results.curves] == ["Table 1", "Table 4"]
    given = results.curves[0].summary.query("dataset == 'susy' and method == 'DH-Lin'")
    assert given["given_prior"].tolist() == [0.3, 0.4, 0.5]
    (run,) = results.runs
    assert run["folders"] == ["table1", "table3", "table4"]
    assert run["protocol"] == Protocol().as_dict()


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
    assert (first.title, first.test_prior) == ("Study: π = 0.3, π′ = 0.5", 0.5)
    assert first.summary["given_prior"].nunique() == 6


def break_trials(folder):
    path = next((folder / "table1" / "sets").iterdir())
    path.write_text(path.read_text().replace("banana", "", 1))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "table1" / "run.json").unlink(), "cannot read .*run.json"),
        (lambda folder: (folder / "table1" / "run.json").write_text("[]"), "not written by"),
        (break_trials, "json was changed after it was written"),
        (lambda folder: robustness(folder, prior=None), "does not hold the robustness study"),
    ],
)
def test_a_damaged_folder_is_an_error_in_one_line(folder, damage, message):
    damage(folder)
    with pytest.raises(StoreError, match=message) as caught:
        read_results(folder)
    assert "\n" not in str(caught.value)


def robustness(folder, name="run.json", old="", new="", **changes):
    """Write the study, with a text or fields of a file changed."""
    robustness_folder(folder)
    path = folder / "robustness" / name
    text = path.read_text()
    assert old in text
    text = json.dumps({**json.loads(text), **changes}) if changes else text.replace(old, new, 1)
    path.write_text(text)
