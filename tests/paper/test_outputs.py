import numpy as np
import pandas as pd
import pytest

from pu_shift.paper.compare import COLUMNS, load_paper_table
from pu_shift.paper.outputs import write_outputs
from pu_shift.paper.settings import CELL, EXTRA_METHODS, METHODS, TABLES
from tests.paper.simulate import trials


def test_all_files_are_written_in_printed_order(tmp_path):
    data = trials(lambda cell: 70.0).sample(frac=1, random_state=0)
    result = write_outputs(tmp_path, data, TABLES[1], load_paper_table(1))
    assert {path.name for path in tmp_path.iterdir()} == {
        "summary.csv",
        "table.md",
        "table.tex",
        "comparison.png",
    }
    summary = pd.read_csv(tmp_path / "summary.csv")
    assert list(summary.columns) == COLUMNS
    expected = [tuple(cell) for cell in TABLES[1].cells()]
    assert list(summary[CELL].itertuples(index=False, name=None)) == expected
    for row in summary.iloc[::20].itertuples():
        same = np.logical_and.reduce([data[name] == getattr(row, name) for name in CELL])
        assert row.mean == pytest.approx(data.loc[same, "accuracy"].mean())
    for part in ("Table 1", "Difference from the paper", "Consistent with the paper"):
        assert part in result.text
    assert result.headline.cells == 108
    assert len(result.frame) == 108


def test_without_printed_numbers_the_text_says_so(tmp_path):
    (tmp_path / "comparison.png").write_text("of an earlier run")
    data = trials(lambda cell: 70.0, methods=EXTRA_METHODS)
    result = write_outputs(tmp_path, data, TABLES[1], load_paper_table(1))
    assert result.headline is None
    assert "No cell has a printed number" in result.text
    assert not (tmp_path / "comparison.png").exists()
    assert "Difference" not in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_trials_of_other_tables_are_left_out_and_unknown_names_come_last(tmp_path):
    mine = trials(
        lambda cell: 70.0, datasets=["mine", "susy"], methods=["p/u uLSIF-Lin", METHODS[5]]
    )
    data = pd.concat([trials(lambda cell: 70.0, number=2), mine])
    result = write_outputs(tmp_path, data, TABLES[1], load_paper_table(1))
    assert result.frame["dataset"].tolist() == ["susy", "susy", "mine", "mine"] * 3
    assert result.frame["method"].tolist() == [METHODS[5], "p/u uLSIF-Lin"] * 6
    assert result.headline.cells == 3


def test_no_trial_of_the_setting_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="trials must hold some of 'Table 1"):
        write_outputs(tmp_path, trials(lambda cell: 70.0, number=2), TABLES[1])


def test_a_name_is_no_formula_in_the_summary(tmp_path):
    data = trials(lambda cell: 70.0, datasets=["=1+1"], methods=METHODS[:1])
    write_outputs(tmp_path, data, TABLES[1])
    lines = (tmp_path / "summary.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert [line.split(",")[3] for line in lines] == ["'=1+1"] * 3
