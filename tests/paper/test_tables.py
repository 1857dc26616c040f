import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

from pu_shift.paper.compare import COLUMNS, compare, headline, load_paper_table, summarize
from pu_shift.paper.settings import CELL, DATASETS, EXTRA_METHODS, METHODS, TABLES, TableSetting
from pu_shift.paper.tables import (
    latex_table,
    markdown,
    markdown_table,
    text_diff,
    text_headline,
    text_table,
    write_outputs,
)
from tests.paper.simulate import trials


def printed(number):
    """Return a comparison in which our numbers are the printed ones."""
    paper = load_paper_table(number)
    return compare(paper.drop(columns="bold").assign(n=10), paper)


@pytest.mark.parametrize("number", [1, 3])
def test_text_table_has_the_papers_layout(number):
    comparison = printed(number)
    title, *blocks = text_table(comparison, TABLES[number]).split("\n\n")
    assert title.startswith(TABLES[number].title)
    header, *first = blocks[0].splitlines()
    assert re.split("  +", header) == ["dataset", "π_g", *METHODS]
    blocks[0] = "\n".join(first)
    assert len(blocks) == len(TABLES[number].blocks)
    for block, expected in zip(blocks, TABLES[number].blocks):
        lines = [line.split() for line in block.splitlines()]
        assert [line[0] for line in lines] == list(DATASETS)
        assert {float(line[1]) for line in lines} == {expected.given_prior}


def test_boldface_shows_with_and_without_colour():
    comparison = printed(1)
    bold = [f"{row.mean:.1f} ({row.se:.1f})" for row in comparison.itertuples() if row.bold]
    assert re.findall(r"\[(\d.*?)\]", text_table(comparison, TABLES[1])) == bold
    coloured = text_table(comparison, TABLES[1], colour=True)
    assert [text.strip() for text in re.findall("\x1b\\[1m(.*?)\x1b\\[0m", coloured)] == bold
    assert "\x1b" not in text_table(comparison, TABLES[1])


def test_diff_marks_what_is_not_consistent():
    comparison = printed(1)
    comparison.loc[3, ["delta", "consistent"]] = [-7.25, 0]
    comparison.loc[4, "delta"] = -0.01
    diff = text_diff(comparison, TABLES[1])
    assert re.findall(r"\S+\*", diff.split("\n\n", 1)[1]) == ["-7.2*"]
    assert "-0.0" not in diff
    assert "\x1b" not in diff
    coloured = text_diff(comparison, TABLES[1], colour=True)
    (marked,) = re.findall("\x1b\\[31m(.*?)\x1b\\[0m", coloured)
    assert marked.strip() == "-7.2*"
    assert coloured.count("\x1b[36m") == 107


def test_one_trial_has_no_standard_error_and_no_marker():
    data = trials(lambda cell: 70.0, count=1)
    comparison = compare(summarize(data), load_paper_table(1))
    assert "over 1 trial;" in text_table(comparison, TABLES[1])
    assert "(–)" in text_table(comparison, TABLES[1])
    diff = text_diff(comparison, TABLES[1], colour=True).split("\n\n", 1)[1]
    assert "*" not in diff
    assert "\x1b" not in diff
    assert "– of 108 cells" in text_headline(headline(comparison))
    assert "(--)" in latex_table(comparison, TABLES[1])


def test_missing_cells_are_dashes_and_trials_a_range():
    data = trials(lambda cell: 70.0, datasets=["susy"], methods=METHODS[:2])
    data = data[~((data["given_prior"] == 0.4) & (data["method"] == METHODS[0]))]
    comparison = compare(summarize(data.iloc[1:]))
    text = text_table(comparison, TABLES[1])
    assert "over 3 to 4 trials" in text
    assert re.search(r"susy\s+0\.4\s+–", text)
    assert re.search(r"susy &\s*0\.4 & --", latex_table(comparison, TABLES[1]))


def test_markdown_has_a_row_per_dataset_and_block():
    comparison = printed(1)
    text = markdown_table(comparison, TABLES[1], headline(comparison))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 * (2 + 18)
    assert {row.count("|") for row in rows} == {9}
    assert rows[0].split("|")[3].strip() == METHODS[0]
    assert text.count("**") == 2 * int(comparison["bold"].sum())
    assert "Consistent with the paper: 100.0 % of 108 cells" in text
    assert "Difference" not in markdown_table(comparison, TABLES[1])


def test_latex_is_well_formed():
    comparison = printed(3)
    text = latex_table(comparison, TABLES[3])
    body = text.split(r"\hline", 1)[1].split(r"\end{tabular}")[0]
    rows = [row for row in body.split(r"\\") if "&" in row]
    assert len(rows) == 1 + 24
    assert {row.count("&") for row in rows} == {7}
    for opening, closing in ("{}", ("\\begin", "\\end")):
        assert text.count(opening) == text.count(closing)
    assert text.count("$") % 2 == 0
    assert r"$\frac{p}{u}$uLSIF" in rows[0]
    assert text.count(r"\textbf") == int(comparison["bold"].sum())
    assert text.isascii()
    assert r"\caption{Reproduction of the paper's Table 3: no class prior shift. Mean" in text
    # The prior stands once in each block, beside the third row as in the paper.
    assert labels_of(rows) == [
        r"$\pi$",
        *(label for prior in ("0.3", "0.4", "0.5", "0.7") for label in ["", "", prior, "", "", ""]),
    ]


def labels_of(rows):
    return [row.split("&")[1].strip() for row in rows]


SETTING = TableSetting.shift(0, 0.3, 0.5, [0.5, 0.4, 0.3])


def test_names_cannot_break_the_latex():
    name = "[a]_b & 50%|{c}~^\\$<*>#"
    text = latex_table(compare(summarize(trials(lambda cell: 70.0, datasets=[name]))), SETTING)
    assert r"\caption{$\pi$ = 0.3, $\pi'$ = 0.5. Mean" in text
    row = next(line for line in text.splitlines() if "a{]}" in line)
    assert row.startswith(
        r"{[}a{]}\_b \& 50\%\textbar \{c\}\textasciitilde \textasciicircum \textbackslash \$"
        r"\textless {*}\textgreater \# & 0.5 & "
    )


@pytest.mark.parametrize(
    "name", ["a|b", "<img src=x>", "$\\pi$", "*a* _b_ `c`", "[d](e)", "&amp;", "~~f~~ #1 @me"]
)
def test_names_cannot_become_markup_in_markdown(name):
    data = trials(lambda cell: 70.0, datasets=[name])
    summary = summarize(data)
    comparison = compare(summary, summary[[*CELL, "mean", "se"]].assign(bold=0))
    text = markdown_table(comparison, SETTING, headline(comparison), covered=f"without {name}")
    rows = [line for line in text.splitlines() if line[:1] == "|"]
    assert {row.count("|") for row in rows} == {9}
    safe = re.sub(r"&#\d+;", "", text)
    assert not re.search(r"[<>$`_&@~\[\]]", safe.replace("π_g", ""))
    # In three rows of both grids, in the caption, and twice in the figures below.
    assert unescape(text).count(name) == 9
    assert markdown(name) != name == unescape(markdown(name))


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


def test_the_summary_is_the_same_to_the_last_digit_in_any_order_of_trials(tmp_path):
    data = trials(lambda cell: 70.0, count=10)
    contents = set()
    for seed in range(5):
        write_outputs(tmp_path, data.sample(frac=1, random_state=seed), TABLES[1])
        contents.add((tmp_path / "summary.csv").read_bytes())
    assert len(contents) == 1
