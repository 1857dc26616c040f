"""Rules for the width: every one of them, scored as a table would be."""

import itertools

import numpy as np
import pandas as pd
import pytest

from pu_shift.experiment.compare import compare
from pu_shift.experiment.rules import Rule, all_rules, choose, score_rules
from pu_shift.experiment.settings import CELL
from pu_shift.experiment.sweep import Grid, Record, printed_ker_cells

rng = np.random.default_rng(0)
GRID = Grid(("rms", "none"), (100, 200), (0.25, 0.5, 1.0, 2.0), (150, 250), (1e-3, 1e-2, 1e-1))
TRIALS = 3


@pytest.fixture(scope="module")
def cells():
    cells = printed_ker_cells()
    return cells[cells["dataset"].isin(["banana", "magic"])].reset_index(drop=True)


@pytest.fixture(scope="module")
def records(cells):
    return {
        (dataset, prior, n): [
            Record(
                np.clip(part["mean"].to_numpy() + rng.normal(0, 5, (2, 4, 2, len(part))), 0, 100),
                rng.normal(size=(2, 4, 3)),
            )
            for _ in range(TRIALS)
        ]
        for (dataset, prior), part in cells.groupby(["dataset", "prior"])
        for n in GRID.centers
    }


def by_hand(rule, setting, records, cells):
    """Mean |Δ| and the number of consistent cells, cell by cell with the tables' own code."""
    s, t = GRID.scalings.index(setting["scaling"]), GRID.steps.index(setting["step"])
    rows = []
    for (dataset, prior), part in cells.groupby(["dataset", "prior"]):
        for one in records[dataset, prior, setting["centers"]]:
            low, high = rule.lams
            best = [one.scores[rule.direction, w, low : high + 1].min() for w in rule.widths]
            w = rule.widths[int(np.argmin(best))]
            rows.append(part[CELL].assign(accuracy=one.accuracies[s, w, t]))
    ours = pd.concat(rows).groupby(CELL)["accuracy"].agg(n="count", mean="mean", se="sem")
    table = compare(ours.reset_index(), cells)
    return table["delta"].abs().mean(), int(table["consistent"].sum())


def test_rules_are_counted_by_hand():
    rules = list(all_rules(4, 3))
    assert len(rules) == len(set(rules)) == 4 + 2 * 6 * (6 + 4)
    for rule in rules:
        assert len(rule.widths) == len(set(rule.widths)) <= 3
        assert rule.lams[0] <= rule.lams[1]


def test_the_best_of_each_kind_is_the_best_of_all_by_brute_force(records, cells):
    table = score_rules(records, GRID, cells)
    # Scalings, centres, steps; single widths, then two and three widths by either ratio.
    assert len(table) == 2 * 2 * 2 * 5
    assert table["distance"].is_monotonic_increasing
    assert table["rules"].sum() == 8 * len(list(all_rules(4, 3)))
    kinds = [(0, 1), *itertools.product((0, 1), (2, 3))]
    for setting in ({"scaling": "none", "centers": 200, "step": 250},):
        here = table[(table[list(setting)] == pd.Series(setting)).all(axis=1)]
        assert len(here) == len(kinds)
        for direction, size in kinds:
            rules = [
                rule
                for rule in all_rules(4, 3)
                if rule.direction == direction and len(rule.widths) == size
            ]
            scored = [by_hand(rule, setting, records, cells) for rule in rules]
            best = min(range(len(rules)), key=lambda k: scored[k][0])
            name = ["p/u", "u/p"][direction] if size > 1 else ""
            [row] = here[(here["direction"] == name) & (here["n_widths"] == size)].itertuples()
            assert row.rules == len(rules)
            assert row.distance == pytest.approx(scored[best][0])
            assert row.consistent_dh + row.consistent_sq == scored[best][1]
            assert row.distance == pytest.approx((row.distance_dh + row.distance_sq) / 2)
            expected = " ".join(f"{GRID.factors[w]:.4g}" for w in rules[best].widths)
            assert row.widths == expected


def test_a_rule_looks_at_its_own_scores_only():
    scores = rng.normal(size=(5, 2, 4, 3))
    rule = Rule(1, (1, 2), (0, 3))
    taken = choose(rule, scores)
    scores[:, 0], scores[:, :, 1:3], scores[..., 0] = 9.0, -9.0, -9.0
    np.testing.assert_array_equal(choose(rule, scores), taken)
    assert set(taken) <= {0, 3}
