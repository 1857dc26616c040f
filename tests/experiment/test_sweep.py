import numpy as np
import pandas as pd
import pytest

from pu_shift.data import load
from pu_shift.data.sampling import draw
from pu_shift.experiment.ablation import main
from pu_shift.experiment.compare import load_paper_table
from pu_shift.experiment.methods import TrainingSet
from pu_shift.experiment.protocol import Protocol
from pu_shift.experiment.settings import GUIDES
from pu_shift.experiment.sweep import _snapshots, sweep


@pytest.mark.parametrize("method", ["DH-Ker", "Sq-Ker"])
def test_a_snapshot_is_the_model_that_a_table_would_train(method):
    """The map at one width, step and number of centres against the method itself."""
    protocol = Protocol(ker_centers=20, ker_width_factors=[0.5], ker_lams=[0.0], ker_steps=40)
    printed = pd.concat([load_paper_table(number) for number in GUIDES])
    printed = printed[(printed["dataset"] == "banana") & (printed["method"] == method)]
    # At ½ the bias's first gradient is 0 but for rounding, which AMSGrad blows up to a step.
    printed = printed[printed["given_prior"] != 0.5]
    for prior, cells in printed.groupby("prior"):
        tests = sorted(cells["test_prior"].unique())
        sample = draw(load("banana"), prior, tests, seed=0, trial=0)
        data = TrainingSet(sample.positives, sample.unlabeled, prior, protocol, sample.seed)
        fitted = data.fit(method, sorted(cells["given_prior"].unique()))
        found = _snapshots("banana", prior, 0, 20, [0.5, 1.0], [20, 40], cells)
        assert len(found) == 4 * len(cells)
        found = found[(found["factor"] == 0.5) & (found["step"] == 40)]
        for (_, cell), delta in zip(cells.iterrows(), found["delta"]):
            X, y = sample.tests[cell["test_prior"]]
            right = (fitted[cell["given_prior"]].decide(X) > 0) == (y > 0)
            # One test pattern in 500 may lie on the boundary but for rounding.
            assert abs(100 * right.mean() - cell["mean"] - delta) < 0.21


def test_cells_are_averaged_over_trials_before_their_distance_is_taken(monkeypatch):
    def made_up(dataset, prior, trial, n_centers, factors, steps, cells):
        cells = cells[(cells["dataset"] == dataset) & (cells["prior"] == prior)]
        delta = np.where(cells["given_prior"] == 0.3, 1.0, -3.0) + (2.0 if trial else -2.0)
        return cells.assign(centers=n_centers, factor=factors[0], step=steps[0], delta=delta)

    monkeypatch.setattr("pu_shift.experiment.sweep._snapshots", made_up)
    table = sweep(["banana"], 2, [20], [0.5], [40])
    # 3 of the 10 printed cells of a method were given 0.3.
    assert table["method"].tolist() == ["DH-Ker", "Sq-Ker"]
    np.testing.assert_allclose(table["delta"], (3 * 1.0 - 7 * 3.0) / 10)
    np.testing.assert_allclose(table["distance"], (3 * 1.0 + 7 * 3.0) / 10)


def test_the_sweep_is_written_and_refuses_no_trials(tmp_path, monkeypatch, capsys):
    table = pd.DataFrame({"method": ["DH-Ker"], "delta": [1.234]})
    asked = {}
    monkeypatch.setattr(
        "pu_shift.experiment.ablation.sweep", lambda **options: asked.update(options) or table
    )
    assert main(["--sweep", "--trials", "3", "--out", str(tmp_path / "new")]) == 0
    assert asked["n_trials"] == 3
    assert (tmp_path / "new/ker_sweep.csv").read_text() == "method,delta\nDH-Ker,1.23\n"
    assert main(["--sweep", "--trials", "0", "--out", str(tmp_path)]) == 2
    assert "--trials must be an integer >= 1, got 0" in capsys.readouterr().err
