"""The map of the Ker models: its snapshots are the tables' models, its scores the rule's."""

from dataclasses import replace

import numpy as np
import pytest

from pu_shift.data import load
from pu_shift.data.sampling import draw
from pu_shift.experiment import sweep as module
from pu_shift.experiment.methods import TrainingSet
from pu_shift.experiment.protocol import Protocol
from pu_shift.experiment.sweep import Grid, Record, printed_ker_cells, record, record_all, sweep

GRID = Grid(("rms", "none"), (20,), (0.5, 1.0), (20, 40), (1e-3, 1e-1))


def banana(method=None):
    cells = printed_ker_cells()
    cells = cells[cells["dataset"] == "banana"]
    return cells if method is None else cells[cells["method"] == method]


@pytest.mark.parametrize("scaling", GRID.scalings)
@pytest.mark.parametrize("method", ["DH-Ker", "Sq-Ker"])
def test_a_snapshot_is_the_model_that_a_table_would_train(method, scaling):
    """The map at one width, step and number of centres against the method itself."""
    protocol = Protocol(
        n_centers=20, ker_centers=20, ker_width_factors=[0.5], ker_lams=[0.0], ker_steps=40,
        ker_scaling=scaling,
    )  # fmt: skip
    # At ½ the bias's first gradient is 0 but for rounding, which AMSGrad blows up to a step.
    cells = banana(method)
    for prior, part in cells[cells["given_prior"] != 0.5].groupby("prior"):
        tests = sorted(part["test_prior"].unique())
        sample = draw(load("banana"), prior, tests, seed=0, trial=1)
        data = TrainingSet(sample.positives, sample.unlabeled, prior, protocol, sample.seed)
        fitted = data.fit(method, sorted(part["given_prior"].unique()))
        asked = list(part[["method", "test_prior", "given_prior"]].itertuples(index=False))
        found = record("banana", prior, 20, 1, asked, GRID, Protocol()).accuracies
        assert found.shape == (2, 2, 2, len(part))
        for (_, cell), accuracy in zip(part.iterrows(), found[GRID.scalings.index(scaling), 0, 1]):
            X, y = sample.tests[cell["test_prior"]]
            right = (fitted[cell["given_prior"]].decide(X) > 0) == (y > 0)
            # One test pattern in 500 may lie on the boundary but for rounding.
            assert abs(100 * right.mean() - accuracy) < 0.21


def test_the_recorded_scores_choose_the_width_that_the_protocol_would():
    lams = (1e-7, 1e-4, 1e-1)
    grid = Grid(("none",), (30,), (0.2, 0.525, 1.375), (1,), lams)
    for trial in range(3):
        one = record("banana", 0.4, 30, trial, [("DH-Ker", 0.4, 0.4)], grid, Protocol())
        for picked in ([0, 1], [1, 2], [0, 1, 2]):
            protocol = Protocol(
                n_centers=30, ker_centers=30, ker_lams=lams, ker_steps=1,
                ker_width_factors=[grid.factors[i] for i in picked],
            )  # fmt: skip
            sample = draw(load("banana"), 0.4, [0.4], seed=0, trial=trial)
            data = TrainingSet(sample.positives, sample.unlabeled, 0.4, protocol, sample.seed)
            width = data.fit("DH-Ker", [0.4])[0.4].hyper["width"]
            best = one.scores[0, picked].min(axis=1).argmin()
            assert width == pytest.approx(grid.factors[picked[best]] * data.width_unit)


def test_cells_are_averaged_over_trials_before_their_distance_is_taken():
    cells, grid = banana(), replace(GRID, scalings=("rms",), factors=(0.5,), steps=(40,))
    records = {}
    for (dataset, prior), part in cells.groupby(["dataset", "prior"]):
        off = np.where(part["given_prior"] == 0.3, 1.0, -3.0)
        trials = [(part["mean"].to_numpy() + off + moved)[None, None, None] for moved in (-2, 2)]
        records[dataset, prior, 20] = [Record(one, np.zeros((2, 1, 2))) for one in trials]
    table = sweep(records, grid, cells)
    # 3 of the 10 printed cells of a method were given 0.3.
    assert table["method"].tolist() == ["DH-Ker", "Sq-Ker"]
    np.testing.assert_allclose(table["delta"], (3 * 1.0 - 7 * 3.0) / 10)
    np.testing.assert_allclose(table["distance"], (3 * 1.0 + 7 * 3.0) / 10)


def test_what_is_finished_is_not_trained_again(tmp_path, monkeypatch):
    cells = banana()
    cells = cells[cells["prior"] == 0.4]
    grid = Grid(("none",), (5,), (1.0,), (1,), (0.1,))
    first = record_all(grid, cells, 1, tmp_path)
    monkeypatch.setattr(module, "train", None)  # a call would fail
    again = record_all(grid, cells, 1, tmp_path)
    for one, other in zip(first["banana", 0.4, 5], again["banana", 0.4, 5]):
        np.testing.assert_array_equal(one.accuracies, other.accuracies)
    # What is new in the grid is trained, which is what fails here.
    with pytest.raises(TypeError):
        record_all(replace(grid, centers=(5, 6)), cells, 1, tmp_path)


def test_the_printed_cells_are_those_of_the_tables_that_guide():
    cells = printed_ker_cells()
    assert set(cells["method"]) == {"DH-Ker", "Sq-Ker"}
    assert len(cells) == 120
