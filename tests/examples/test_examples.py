"""Every example of the gallery runs, draws, and shows what its page says."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def one_fit(seen):
    """Nobody beats the classifier that was told the truth."""
    for truth in seen["TEST_PRIORS"]:
        of_truth = {told: seen["accuracy"][told, truth] for told in seen["TEST_PRIORS"]}
        assert max(of_truth, key=of_truth.get) == truth


def months(seen):
    ignored, prior_told, all_told = seen["costs"]
    # January is the training condition: there is nothing to tell.
    assert ignored[0] == prior_told[0] == all_told[0]
    assert all_told.mean() < prior_told.mean() < ignored.mean()


def costs(seen):
    assert seen["condition"].alpha == pytest.approx(20 / 520)
    assert seen["expected"] == pytest.approx(seen["cost"], rel=0.5)


def probabilities(seen):
    assert max(seen["errors"].values()) < 0.1
    assert seen["display"].mean == pytest.approx(0.3, abs=0.05)


def any_classifier(seen):
    # No line divides two moons.
    assert seen["accuracy"]["the default"] > seen["accuracy"]["logistic regression"]
    weights = [part["weight"] for part in seen["fitted"]["the default"].candidates_.values()]
    assert sum(weights) == pytest.approx(1.0)


def unknown_priors(seen):
    assert seen["found"].low < seen["PRIOR"] < seen["found"].high
    assert seen["shift"].low < seen["TEST_PRIOR"] < seen["shift"].high
    assert 0 < seen["result"].n_changed < 100


def networks(seen):
    assert set(seen["accuracy"]) == {(*s, way) for s in seen["SHIFTS"] for way in seen["WAYS"]}
    rarer, more = (
        {way: seen["accuracy"][(*shift, way)] for way in seen["WAYS"]} for shift in seen["SHIFTS"]
    )
    assert max(rarer, key=rarer.get) == "nnPU-shift"
    assert min(more, key=more.get) == "PU-shift, unbiased"


def shift_is_cost(seen):
    assert seen["by_shift"] == seen["by_cost"]
    assert seen["thresholds"].min() < 0.1


def bounded_ratio(seen):
    assert np.mean(seen["accuracy"]["p/u"]) > np.mean(seen["accuracy"]["u/p"])


def lost_convexity(seen):
    assert min(seen["curvature"][0.9], seen["curvature"][0.7]) > 0.0 > seen["curvature"][0.05]
    assert seen["largest"][None] > 10.0 * seen["largest"]["auto"]


def reading_a_table(seen):
    assert len(seen["table"]) == len(seen["printed"]) == seen["figures"].cells
    assert seen["figures"].consistent < seen["figures"].ceiling


CHECKS = {
    check.__name__: check
    for check in (
        one_fit,
        months,
        costs,
        probabilities,
        any_classifier,
        unknown_priors,
        networks,
        shift_is_cost,
        bounded_ratio,
        lost_convexity,
        reading_a_table,
    )
}


@pytest.fixture
def shown(monkeypatch):
    """How many figures each call of show had to show."""
    calls = []
    plt.close("all")

    def show():
        calls.append(len(plt.get_fignums()))
        plt.close("all")

    monkeypatch.setattr(plt, "show", show)
    return calls


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_an_example_shows_what_it_says(name, shown, capsys):
    script = EXAMPLES / f"{name}.py"
    seen = {"__name__": name}
    for block in script.read_text(encoding="utf-8").split("\n# %%\n"):
        exec(compile(block, script, "exec"), seen)
        # The gallery takes an open figure as it is at the end of a block, finished or not.
        assert not plt.get_fignums()
    CHECKS[name](seen)
    assert shown
    assert all(shown)
    assert capsys.readouterr().out
