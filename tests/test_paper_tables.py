"""The printed tables: extracted again from the LaTeX, and checked by the paper's bold rule."""

import csv
import importlib.util
import os
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pu_shift.paper.claims import printed_cells
from pu_shift.paper.compare import LEVEL, PAPER_TRIALS, bold, load_paper_table
from pu_shift.paper.settings import CELL, DATASETS, METHODS, ROW, TABLES

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "paper_tables"
SCRIPT = ROOT / "tools" / "extract_tables.py"
PAPER = Path(os.environ.get("PU_SHIFT_PAPER", ROOT / "paper")) / "paper.tex"

_spec = importlib.util.spec_from_file_location("extract", SCRIPT)
extract = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(extract)


# The source is not ours to distribute.
has_paper = pytest.mark.skipif(not PAPER.exists(), reason="PU_SHIFT_PAPER has no paper.tex")


@has_paper
def test_the_files_are_what_the_latex_says(tmp_path):
    assert extract.main([str(PAPER), "--out", str(tmp_path)]) == 0
    for name in ("table1.csv", "table2.csv", "table3.csv"):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


@has_paper
def test_every_printed_cell_is_in_the_files_in_order():
    # Read without the extractor: all that looks like a cell, from top to bottom.
    tables = PAPER.read_text(encoding="utf-8").split(r"\section{Experimental results}")[1]
    pattern = r"(\\textbf\{)?(\d\d\.\d) \((\d\.\d)\)"
    printed = [[mean, se, str(int(bool(start)))] for start, mean, se in re.findall(pattern, tables)]
    stored = []
    for number in (1, 2, 3):
        with open(FOLDER / f"table{number}.csv", encoding="utf-8") as file:
            stored += [row[-3:] for row in list(csv.reader(file))[1:]]
    assert stored == printed
    assert len(stored) == 360


LATEX = r"""
\begin{table}[t]
\centering
\caption{Trials, where  $\pi = 0.2$ and $\pi^*=0.6$. Boldface at 5\%.}
\scalebox{0.65}{\begin{tabular} { |L|L|L|L|}
\hline
\text{Dataset} & \pi_{\mathrm{g}}^*& \frac{u}{p}\text{uLSIF}& \text{DH-Lin}\\ \hline
\text{a} &  &85.2 (0.4) & \textbf{87.2 (0.7)}\\
\text{b} & \pi^* &1.0 (0.0) &2.0 (1.4) \\
\text{c} & 0.6& \textbf{3.0 (0.1)} &4.0 (0.2)\\
\hline
\text{a} & 0.4 &5.0 (0.4) &6.0 (0.7)\\
\hline
\end{tabular}}
\end{table}
"""


def test_extract_labels_whole_blocks_with_their_prior():
    (records,) = extract.extract(LATEX).values()
    rows = [tuple(record.values()) for record in records]
    assert rows[0] == ("0.2", "0.6", "0.6", "a", "u/p uLSIF", "85.2", "0.4", "0")
    assert rows[1] == ("0.2", "0.6", "0.6", "a", "DH-Lin", "87.2", "0.7", "1")
    assert rows[4][-3:] == ("3.0", "0.1", "1")
    assert [row[2] for row in rows] == ["0.6"] * 6 + ["0.4"] * 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" & 0.4 &", " & &", "one prior"),
        ("&6.0 (0.7)", "", "1 cells for 2 methods"),
        ("6.0 (0.7)", "6.0 0.7", "cannot read '6.0 0.7'"),
        (r"\textbf{3.0 (0.1)}", r"\textbf{3.0 (0.1)", "cannot read"),
    ],
)
def test_extract_refuses_what_it_cannot_read(old, new, message):
    assert old in LATEX
    with pytest.raises(ValueError, match=message):
        extract.extract(LATEX.replace(old, new))


@pytest.mark.parametrize("number", TABLES)
def test_cells_stand_in_printed_order(number):
    paper = load_paper_table(number)
    cells = paper[CELL].itertuples(index=False, name=None)
    assert list(cells) == [tuple(cell) for cell in TABLES[number].cells(DATASETS, METHODS)]


@pytest.mark.parametrize(
    ("number", "cells", "boldface", "means", "errors"),
    [  # counted and added up in the source by awk, without the extractor
        (1, 108, 30, 7656.3, 67.9),
        (2, 108, 36, 7294.2, 102.6),
        (3, 144, 45, 10945.0, 80.3),
        (4, 108, 47, 8320.9, 79.1),
        (5, 108, 32, 7445.6, 74.0),
        (6, 108, 35, 8041.4, 71.6),
        (7, 108, 43, 6677.2, 117.8),
    ],
)
def test_counts_and_sums_are_those_of_the_source(number, cells, boldface, means, errors):
    paper = load_paper_table(number)
    assert (len(paper), paper["bold"].sum()) == (cells, boldface)
    assert paper["mean"].sum() == pytest.approx(means)
    assert paper["se"].sum() == pytest.approx(errors)


def test_zero_standard_errors_sit_on_the_test_class_counts():
    # Such a method gave the same decision everywhere, up to the rounding of SE.
    cells = printed_cells()
    constant = cells[cells["se"] == 0]
    shares = np.minimum(
        (constant["mean"] - 100 * constant["test_prior"]).abs(),
        (constant["mean"] - 100 * (1 - constant["test_prior"])).abs(),
    )
    assert len(constant) > 10
    assert (shares <= 0.1 + 1e-9).all()


def test_bold_rule_explains_the_printed_boldface_up_to_rounding():
    cells = printed_cells().reset_index(drop=True)
    disagree = cells[bold(cells.assign(n=PAPER_TRIALS)) != cells["bold"].astype(bool)]
    agreement = 1 - len(disagree) / len(cells)
    assert agreement >= 0.99
    # For the rest, figures that round to the printed ones give the printed boldface.
    for cell in disagree.itertuples():
        assert not cell.bold
        row = cells[(cells[ROW] == [getattr(cell, name) for name in ROW]).all(axis=1)]
        best = row.loc[row["mean"].idxmax()]
        spread = [(se - 0.05) * np.sqrt(PAPER_TRIALS) for se in (best["se"], cell.se)]
        p_value = stats.ttest_ind_from_stats(
            best["mean"] + 0.05,
            spread[0],
            PAPER_TRIALS,
            cell.mean - 0.05,
            spread[1],
            PAPER_TRIALS,
            equal_var=False,
            alternative="greater",
        ).pvalue
        assert p_value < LEVEL
