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
from pu_shift.experiment.sweep import sweep


@pytest.mark.parametrize("method", ["DH-Ker", "Sq-Ker"])
def test_a_snapshot_is_the_model_that_a_table_would_train(method):
    """The map at one width, step and number of centres against the method itself."""
    protocol = Protocol(ker_centers=20, ker_width_factors=[0.5], ker_lams=[0.0], n_steps=40)
    printed = pd.concat([load_paper_table(number) for number in GUIDES])
    printed = printed[(printed["dataset"] == "banana") & (printed["method"] == method)]
    deltas = []
    for prior, cells in printed.groupby("prior"):
        tests = sorted(cells["test_prior"].unique())
        sample = draw(load("banana"), prior, tests, seed=0, trial=0)
        data = TrainingSet(sample.positives, sample.unlabeled, prior, protocol, sample.seed)
        fitted = data.fit(method, sorted(cells["given_prior"].unique()))
        for _, cell in cells.iterrows():
            X, y = sample.tests[cell["test_prior"]]
            right = (fitted[cell["given_prior"]].decide(X) > 0) == (y > 0)
            deltas.append(100 * right.mean() - cell["mean"])
    table = sweep(["banana"], 1, [20, 30], [0.5, 1.0], [20, 40]).set_index(
        ["method", "centers", "factor", "step"]
    )
    assert len(table) == 16
    found = table.loc[(method, 20, 0.5, 40)]
    # A test pattern near the boundary may fall on the other side: 0.2 points of one cell.
    np.testing.assert_allclose(found["delta"], np.mean(deltas), atol=0.05)
    np.testing.assert_allclose(found["distance"], np.mean(np.abs(deltas)), atol=0.05)


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
