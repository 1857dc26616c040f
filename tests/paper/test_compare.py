import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pu_shift.paper.compare import (
    COLUMNS,
    LEAST_SE,
    bold,
    compare,
    headline,
    load_paper_table,
    noise_ceiling,
    summarize,
    welch_p,
)
from pu_shift.paper.settings import CELL, METHODS, ROW, TABLES
from tests.paper.simulate import trials

means = st.floats(0, 100)
errors = st.floats(LEAST_SE, 20)
counts = st.integers(2, 50)
ROW_KEY = {"prior": 0.3, "test_prior": 0.5, "given_prior": 0.5, "dataset": "susy"}


def cells(rows):
    """Return a row of cells from (n, mean, se) of each method."""
    return pd.DataFrame(
        [
            {**ROW_KEY, "method": METHODS[i], "n": n, "mean": mean, "se": se}
            for i, (n, mean, se) in enumerate(rows)
        ]
    )


def as_printed(summary, **changes):
    return summary[[*CELL, "mean", "se"]].assign(**{"bold": 0, **changes})


@settings(deadline=None)
@given(st.tuples(means, errors, counts), st.tuples(means, errors, counts))
def test_welch_is_the_textbook_formula(first, second):
    (mean1, se1, n1), (mean2, se2, n2) = first, second
    variances = se1**2, se2**2
    t = (mean1 - mean2) / math.sqrt(sum(variances))
    df = sum(variances) ** 2 / (variances[0] ** 2 / (n1 - 1) + variances[1] ** 2 / (n2 - 1))
    for alternative, expected in (
        ("two-sided", 2 * stats.t.sf(abs(t), df)),
        ("greater", stats.t.sf(t, df)),
    ):
        found = welch_p(*first, *second, alternative=alternative)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_welch_takes_a_vanishing_error_for_the_rounding():
    assert welch_p(70, 0.0, 10, 69.9, 0.0, 10) == welch_p(70, LEAST_SE, 10, 69.9, LEAST_SE, 10)
    assert np.isnan(welch_p(70, math.nan, 1, 69.9, 0.5, 10))


def test_summarize_is_the_textbook_formula():
    data = trials(lambda cell: 70.0, count=7)
    summary = summarize(data.sample(frac=1, random_state=0))
    assert len(summary) == 108
    for row in summary.sample(10, random_state=1).itertuples():
        same = np.logical_and.reduce([data[name] == getattr(row, name) for name in CELL])
        values = data.loc[same, "accuracy"].tolist()
        mean = sum(values) / 7
        variance = sum((value - mean) ** 2 for value in values) / 6
        assert (row.n, row.mean) == (7, pytest.approx(mean))
        assert row.se == pytest.approx(math.sqrt(variance / 7))


@settings(deadline=None)
@given(st.lists(st.tuples(counts, means, st.floats(0, 20)), min_size=1, max_size=6))
def test_bold_holds_the_best_and_is_not_fooled_by_order(rows):
    table = cells(rows)
    chosen = bold(table)
    assert chosen[table["mean"] == table["mean"].max()].all()
    backwards = table.iloc[::-1]
    # Among equally good ones the first is taken as the best.
    if table["mean"].is_unique:
        assert bold(backwards).tolist() == chosen.tolist()[::-1]


@settings(deadline=None)
@given(st.tuples(counts, means, errors), st.tuples(counts, means, errors))
def test_bold_is_scipys_one_sided_test(first, second):
    (n, mean, se), (n2, mean2, se2) = sorted([first, second], key=lambda row: -row[1])
    p_value = stats.ttest_ind_from_stats(
        mean,
        se * math.sqrt(n),
        n,
        mean2,
        se2 * math.sqrt(n2),
        n2,
        equal_var=False,
        alternative="greater",
    ).pvalue
    if abs(p_value - 0.05) > 1e-9:
        assert bold(cells([(n, mean, se), (n2, mean2, se2)])).tolist() == [True, p_value >= 0.05]


def test_compare_with_itself_is_consistent():
    summary = summarize(trials(lambda cell: 70.0))
    table = compare(summary, as_printed(summary))
    assert list(table.columns) == COLUMNS
    assert (table["delta"] == 0).all()
    assert (table["p_value"] == 1).all()
    assert (table["consistent"] == 1).all()


@settings(deadline=None)
@given(st.tuples(counts, means, errors), means, errors)
def test_consistent_is_scipys_two_sided_test(ours, paper_mean, paper_se):
    summary = cells([ours])
    table = compare(summary, as_printed(summary).assign(mean=paper_mean, se=paper_se))
    n, mean, se = ours
    p_value = stats.ttest_ind_from_stats(
        mean, se * math.sqrt(n), n, paper_mean, paper_se * math.sqrt(10), 10, equal_var=False
    ).pvalue
    assert table.loc[0, "p_value"] == pytest.approx(p_value, rel=1e-6, abs=1e-12)
    assert table.loc[0, "consistent"] == (table.loc[0, "p_value"] >= 0.05)
    assert table.loc[0, "delta"] == mean - paper_mean


def test_compare_without_a_printed_table_leaves_its_columns_empty(tmp_path):
    table = compare(summarize(trials(lambda cell: 70.0)))
    assert table[COLUMNS[9:]].isna().all(axis=None)
    assert table["bold"].notna().all()
    table.to_csv(tmp_path / "summary.csv", index=False)
    first = (tmp_path / "summary.csv").read_text().splitlines()[1]
    assert first.endswith("," * 6)


def test_compare_with_one_trial_judges_nothing():
    summary = summarize(trials(lambda cell: 70.0, count=1))
    table = compare(summary, as_printed(summary, se=0.5))
    assert (table["delta"] == 0).all()
    assert table[["se", "p_value", "consistent"]].isna().all(axis=None)
    figures = headline(table)
    assert (figures.cells, figures.mean_abs_delta) == (108, 0)
    assert math.isnan(figures.consistent)
    assert math.isnan(figures.bold_agreement)


def test_headline_counts():
    summary = cells([(10, 70.0 + i, 0.5) for i in range(6)])
    shifts = [0.0, 0.1, -10.0, 10.0, 0.0, 0.0]
    paper = as_printed(summary, bold=[0, 0, 0, 1, 1, 1])
    paper["mean"] = summary["mean"] - shifts
    figures = headline(compare(summary, paper))
    assert figures.cells == 6
    assert figures.consistent == pytest.approx(4 / 6)
    assert figures.mean_abs_delta == pytest.approx(20.1 / 6)
    # Ours in boldface: 75.0 and 74.0, which is not significantly worse.
    assert figures.bold_agreement == pytest.approx(5 / 6)
    names = ["cells", "consistent", "mean_abs_delta"]
    assert figures.by_method.loc[METHODS[2], names].tolist() == pytest.approx([1, 0, 10])
    assert figures.by_dataset.loc["susy", names].tolist() == pytest.approx([6, 4 / 6, 20.1 / 6])


def test_the_ceiling_is_the_level_of_the_test_where_theory_knows_it():
    # With very many trials of ours Welch's statistic is Student's with nine degrees of freedom;
    # with ten on each side the test is known to be a little conservative.
    error = 4 * math.sqrt(0.95 * 0.05 / 20_000)
    assert noise_ceiling(40.0, 10**6).item() == pytest.approx(0.95, abs=error)
    assert 0.95 - error < noise_ceiling(40.0, 10).item() < 0.96
    # Without noise all agrees; below the rounding too, by the least standard error.
    assert noise_ceiling([0.0, 0.01], 10).tolist() == [1.0, 1.0]
    assert np.isnan(noise_ceiling([0.5, math.nan], [1, 10])).all()


@pytest.mark.parametrize("se", [0.1, 0.3, 2.0])
def test_the_ceiling_is_the_share_of_consistent_cells_among_runs_drawn_trial_by_trial(se):
    count = 4000
    rng = np.random.default_rng(5)
    paper, ours = rng.normal(70.0, se * math.sqrt(10), (2, count, 10))
    keys = pd.DataFrame([{**ROW_KEY, "method": f"m{i}"} for i in range(count)])
    errors = [runs.std(axis=1, ddof=1) / math.sqrt(10) for runs in (paper, ours)]
    printed = keys.assign(mean=paper.mean(axis=1).round(1), se=errors[0].round(1), bold=0)
    table = compare(keys.assign(n=10, mean=ours.mean(axis=1), se=errors[1]), printed)
    expected = noise_ceiling(se, 10).item()
    error = 4 * math.sqrt(expected * (1 - expected) * (1 / count + 1 / 20_000))
    assert table["consistent"].mean() == pytest.approx(expected, abs=error)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda table: table.drop(columns="se"), "the columns must be"),
        (lambda table: table.iloc[1:], "a cell is missing"),
        (lambda table: table.replace("susy", "susi"), "a cell is missing or does not belong"),
        (lambda table: pd.concat([table, table.iloc[:1]]), "a cell occurs twice"),
        (lambda table: table.assign(mean=[*table["mean"][1:], 170]), "line 109: bad mean"),
        (lambda table: table.assign(bold=[2, *table["bold"][1:]]), "line 2: bad mean, se or bold"),
    ],
)
def test_damaged_paper_tables_are_refused(tmp_path, damage, message):
    damage(load_paper_table(1)).to_csv(tmp_path / "table1.csv", index=False)
    with pytest.raises(ValueError, match=message):
        load_paper_table(1, tmp_path)


def test_the_printed_tables_agree_with_themselves():
    for number in TABLES:
        paper = load_paper_table(number)
        figures = headline(compare(paper.drop(columns="bold").assign(n=10), paper))
        assert figures.consistent == 1
        assert figures.bold_agreement > 0.95
        assert len(paper.groupby(ROW)) * 6 == figures.cells
