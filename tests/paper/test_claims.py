import math

import numpy as np
import pandas as pd
import pytest
from claims import main
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pu_shift.paper.claims import (
    NOT,
    PARTLY,
    REPRODUCED,
    gain,
    judge,
)
from pu_shift.paper.settings import EXTRA_METHODS, METHODS, ROW
from pu_shift.paper.store import TrialStore
from tests.paper.simulate import trials

ALL = (*METHODS, *EXTRA_METHODS)


def as_claimed(cell):
    """Return accuracies of a world in which every claim holds."""
    if cell.method.endswith("Lin") and cell.dataset == "banana":
        return 100 * max(cell.test_prior, 1 - cell.test_prior) - 2
    level = {"p/u uLSIF": 90, "u/p uLSIF": 85, "DH-Lin": 92, "Sq-Lin": 92, "p/u uLSIF-Lin": 60}
    sensitivity = 20 if cell.method == "p/u uLSIF" else 40
    return level.get(cell.method, 75) - sensitivity * abs(cell.given_prior - cell.test_prior)


def opposite(cell):
    """Return accuracies of a world in which no claim holds."""
    level = {"u/p uLSIF": 85, "DH-Ker": 87, "Sq-Ker": 87, "p/u uLSIF-Lin": 81}
    sensitivity = 10 if cell.method == "p/u uLSIF" else -10
    return level.get(cell.method, 80) - sensitivity * abs(cell.given_prior - cell.test_prior)


def verdicts(accuracy, **options):
    data = pd.concat([trials(accuracy, number, methods=ALL, **options) for number in (1, 2, 3)])
    return [verdict.verdict for verdict in judge(data)]


def test_a_world_in_which_every_claim_holds():
    assert verdicts(as_claimed) == [REPRODUCED] * 6


def test_a_world_in_which_no_claim_holds():
    assert verdicts(opposite) == [NOT] * 6


@pytest.mark.parametrize("world", [as_claimed, opposite])
def test_printed_cells_and_their_trials_get_the_same_verdicts(world):
    data = pd.concat([trials(world, number, count=10, methods=ALL) for number in (1, 2, 3)])
    groups = data.groupby([*ROW, "method"], sort=False)["accuracy"]
    cells = groups.agg(mean="mean", se="sem").reset_index()
    for ours, printed in zip(judge(data), judge(cells)):
        assert ours.verdict == printed.verdict
        assert len(ours.evidence) == len(printed.evidence)
        # The mean differences do not depend on the pairing.
        for one, other in zip(ours.evidence, printed.evidence):
            assert one.split(" ± ")[0] == other.split(" ± ")[0]


def test_partly_is_in_between():
    def half(cell):
        helped = cell.method in METHODS[:3]
        gaussian = 6.0 * (cell.method == "p/u uLSIF")
        lead = gaussian * (1 if cell.dataset in ("banana", "susy", "magic", "MNIST") else -0.5)
        return 70 + lead - helped * 10 * abs(cell.given_prior - cell.test_prior)

    found = verdicts(half, count=10)
    assert found[0] == PARTLY
    assert found[1] == PARTLY
    assert found[4] == PARTLY


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=12))
def test_the_gain_of_one_pair_is_the_paired_t_test(pairs):
    better, worse = (
        pd.DataFrame({"prior": 0.3, "dataset": "a", "trial": range(len(pairs)), "accuracy": column})
        for column in zip(*pairs)
    )
    found = gain(better, worse, ["prior", "dataset"])
    delta = np.subtract(better["accuracy"], worse["accuracy"])
    assert found.mean == pytest.approx(delta.mean())
    if stats.sem(delta) > 0.03:
        expected = stats.ttest_rel(better["accuracy"], worse["accuracy"], alternative="greater")
        assert found.se == pytest.approx(stats.sem(delta))
        assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)


@settings(deadline=None)
@given(*[st.tuples(st.floats(0, 100), st.floats(0.03, 5))] * 2)
def test_the_gain_of_two_printed_cells_is_welchs_test(one, other):
    better, worse = (
        pd.DataFrame([{"prior": 0.3, "dataset": "a", "mean": mean, "se": se}])
        for mean, se in (one, other)
    )
    (mean1, se1), (mean2, se2) = one, other
    expected = stats.ttest_ind_from_stats(
        *(mean1, se1 * math.sqrt(10), 10, mean2, se2 * math.sqrt(10), 10),
        equal_var=False,
        alternative="greater",
    )
    found = gain(better, worse, ["prior", "dataset"])
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)


def test_cells_of_one_training_set_are_not_counted_as_independent():
    noise = np.random.default_rng(0).normal(size=10)
    rows = [
        {"prior": 0.3, "dataset": "a", "given_prior": given_prior, "trial": i, "accuracy": 70 + e}
        for given_prior in (0.3, 0.4, 0.5)
        for i, e in enumerate(noise)
    ]
    better = pd.DataFrame(rows)
    found = gain(better, better.assign(accuracy=70.0), ["prior", "dataset", "given_prior"])
    assert found.pairs == 3
    assert found.se == pytest.approx(stats.sem(noise))


def test_the_command_line(tmp_path, capsys):
    for number in (1, 3):
        folder = tmp_path / f"table{number}"
        with TrialStore(folder, {"table": number, "protocol": {}, "seed": 0}) as store:
            store.append(trials(as_claimed, number, methods=ALL).to_dict("records"))
    folders = [str(tmp_path / "table1"), str(tmp_path / "table3")]
    assert main(folders) == 0
    assert capsys.readouterr().out.count("Claim ") == 6
    assert main([folders[0], folders[0]]) == 2
    assert (
        "two folders hold the same trial: 0.3, 0.5, 0.3, MNIST, DH-Ker, 0"
        in capsys.readouterr().err
    )
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"{tmp_path} is not a folder of results")
