"""The Ker models against the paper for every scaling, number of centres, width and step at once.

A map for choosing a protocol: one training run per dataset, prior, trial and width
records all steps, and each snapshot is compared with the printed cells. Beside
it stands the cross-validation score of uLSIF at every width and λ, from which
:mod:`pu_shift.experiment.rules` scores rules for the width without training again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Memory, Parallel, delayed
from threadpoolctl import threadpool_limits

from pu_shift._seeds import child
from pu_shift.data import load
from pu_shift.data.sampling import draw
from pu_shift.experiment.compare import load_paper_table
from pu_shift.experiment.methods import LOSSES, TrainingSet, basis_scales
from pu_shift.experiment.protocol import Protocol
from pu_shift.experiment.settings import CELL, GUIDES
from pu_shift.kernels import kernel_from_distances, squared_distances
from pu_shift.links import LinearModel
from pu_shift.priors import Condition
from pu_shift.training import train

DIRECTIONS = ("p/u", "u/p")
SETTING = ["method", "dataset", "scaling", "centers", "factor", "step"]


@dataclass(frozen=True)
class Grid:
    """What the map covers.

    Attributes
    ----------
    scalings, centers, factors, steps
        Scalings of the bases, numbers of centres, widths in units of the median
        distance, AMSGrad steps.
    lams
        λ of the uLSIF whose scores are recorded.
    """

    scalings: tuple[str, ...] = ("rms", "none")
    centers: tuple[int, ...] = (100, 125, 200)
    factors: tuple[float, ...] = (
        1 / 4, 1 / 3, 0.4, 0.45, 1 / 2, 0.525, 0.6, 1.0, 1.25, 1.375, 3 / 2, 2.0,
    )  # fmt: skip
    steps: tuple[int, ...] = (100, 150, 200, 250, 300, 500)
    lams: tuple[float, ...] = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class Record(NamedTuple):
    """What one training set and number of centres leave.

    Attributes
    ----------
    accuracies : numpy.ndarray
        (scalings, factors, steps, cells) accuracies in percent.
    scores : numpy.ndarray
        (directions, factors, λ) cross-validation scores of uLSIF.
    """

    accuracies: np.ndarray
    scores: np.ndarray


def printed_ker_cells() -> pd.DataFrame:
    """Return the printed cells of the Ker models in the tables that guide.

    Returns
    -------
    DataFrame
        As from :func:`pu_shift.experiment.compare.load_paper_table`.

    Examples
    --------
    >>> len(printed_ker_cells())
    120
    """
    cells = pd.concat([load_paper_table(number) for number in GUIDES], ignore_index=True)
    return cells[cells["method"].str.endswith("-Ker")].reset_index(drop=True)


def record_all(
    grid: Grid,
    cells: pd.DataFrame,
    n_trials: int,
    folder: Path | None = None,
    jobs: int = 1,
) -> dict[tuple[str, float, int], list[Record]]:
    """Train on every training set behind the cells.

    Parameters
    ----------
    grid
        What to train.
    cells
        The printed cells.
    n_trials
        Trials of each.
    folder
        Where finished records are kept, so that they are not made again.
    jobs
        Processes.

    Returns
    -------
    dict
        (dataset, prior, number of centres) to the records of its trials.

    Examples
    --------
    >>> cells = printed_ker_cells().query("dataset == 'banana' and prior == 0.4")
    >>> grid = Grid(("none",), (10,), (1.0,), (1, 2), (0.1,))
    >>> [one] = record_all(grid, cells, 1)["banana", 0.4, 10]
    >>> one.accuracies.shape, one.scores.shape
    ((1, 1, 2, 2), (2, 1, 1))
    """
    remembered = Memory(folder, verbose=0).cache(record)
    protocol = Protocol()
    tasks = [
        (str(dataset), float(prior), n_centers, trial)
        for n_centers in grid.centers
        for (dataset, prior), _ in cells.groupby(["dataset", "prior"])
        for trial in range(n_trials)
    ]
    # What else the grid holds is none of a record's business, nor of its name in the memory.
    records = Parallel(jobs)(
        delayed(remembered)(*task, _asked(cells, *task[:2]), replace(grid, centers=()), protocol)
        for task in tasks
    )
    found: dict[tuple[str, float, int], list[Record]] = {}
    for task, one in zip(tasks, records):
        found.setdefault(task[:3], []).append(one)
    return found


def _asked(cells: pd.DataFrame, dataset: str, prior: float) -> list[tuple[str, float, float]]:
    """Return method, test prior and given prior of the cells of one training set."""
    part = cells[(cells["dataset"] == dataset) & (cells["prior"] == prior)]
    return list(part[["method", "test_prior", "given_prior"]].itertuples(index=False, name=None))


def record(
    dataset: str,
    prior: float,
    n_centers: int,
    trial: int,
    asked: Sequence[tuple[str, float, float]],
    grid: Grid,
    protocol: Protocol,
) -> Record:
    """Train both losses on one training set at every scaling and width, recording all steps.

    Parameters
    ----------
    dataset, prior, n_centers, trial
        The training set.
    asked
        Method, test prior and given prior of each cell.
    grid
        What to train.
    protocol
        The rest of the protocol; models have no penalty.

    Returns
    -------
    Record
        Accuracies and scores.

    Examples
    --------
    >>> grid = Grid(("none",), (10,), (0.5, 1.0), (1,), (0.1,))
    >>> asked = [("DH-Ker", 0.5, 0.3), ("Sq-Ker", 0.5, 0.3)]
    >>> record("banana", 0.3, 10, 0, asked, grid, Protocol()).accuracies.shape
    (1, 2, 1, 2)
    """
    protocol = replace(protocol, n_centers=n_centers, ker_centers=n_centers)
    given = sorted({one for _, _, one in asked})
    accuracies = np.empty((len(grid.scalings), len(grid.factors), len(grid.steps), len(asked)))
    # One thread, as in the tables: more would change the rounding.
    with threadpool_limits(1):
        sample = draw(load(dataset), prior, sorted({to for _, to, _ in asked}), trial=trial)
        training = TrainingSet(sample.positives, sample.unlabeled, prior, protocol, sample.seed)
        far = {
            to: squared_distances(X, training.ker_centers) for to, (X, _) in sample.tests.items()
        }
        widths = np.array(grid.factors) * training.width_unit
        scores = [
            training.ratio(
                direction, grid.lams, np.float64, centers=training.centers, widths=widths
            ).scores
            for direction in DIRECTIONS
        ]
        for w, width in enumerate(widths):
            bases = [kernel_from_distances(d, width) for d in training.ker_distances]
            of_tests = {to: kernel_from_distances(d, width) for to, d in far.items()}
            for s, scaling in enumerate(grid.scalings):
                scales = basis_scales(bases, scaling)
                for name, loss in LOSSES.items():
                    result = train(
                        LinearModel(n_centers, len(given), dtype=bases[0].dtype),
                        bases[0] / scales,
                        bases[1] / scales,
                        [Condition(prior, one) for one in given],
                        loss=loss,
                        kind="pu-shift",
                        n_steps=max(grid.steps),
                        n_batches=protocol.n_batches,
                        learning_rate=protocol.learning_rate,
                        record=grid.steps,
                        seed=child(sample.seed, 3),
                    )
                    for c, (method, to, told) in enumerate(asked):
                        if method != f"{name}-Ker":
                            continue
                        column = given.index(told)
                        outputs = (of_tests[to] / scales) @ result.weights[:, :, column].T
                        positive = outputs + result.biases[:, column] > 0
                        right = positive == (sample.tests[to][1][:, None] > 0)
                        accuracies[s, w, :, c] = 100.0 * right.mean(axis=0)
    return Record(accuracies, np.stack(scores))


def sweep(
    records: dict[tuple[str, float, int], list[Record]], grid: Grid, cells: pd.DataFrame
) -> pd.DataFrame:
    """Return how far each setting of the Ker models is from the printed cells.

    Parameters
    ----------
    records, grid, cells
        As for :func:`record_all`, and what it returns.

    Returns
    -------
    DataFrame
        Columns method, dataset, scaling, centers, factor, step, then the mean over
        the printed cells of the difference and of its absolute value, in points.

    Examples
    --------
    >>> cells = printed_ker_cells().query("dataset == 'banana' and prior == 0.4")
    >>> grid = Grid(("none",), (10,), (1.0,), (1, 2), (0.1,))
    >>> table = sweep(record_all(grid, cells, 1), grid, cells)
    >>> table[["method", "step"]].values.tolist()
    [['DH-Ker', 1], ['DH-Ker', 2], ['Sq-Ker', 1], ['Sq-Ker', 2]]
    """
    rows = []
    for (dataset, prior, n_centers), trials in records.items():
        part = cells[(cells["dataset"] == dataset) & (cells["prior"] == prior)]
        means = np.mean([one.accuracies for one in trials], axis=0)
        index = pd.MultiIndex.from_product(
            [grid.scalings, grid.factors, grid.steps, range(len(part))],
            names=["scaling", "factor", "step", "cell"],
        )
        table = pd.DataFrame({"mean": means.ravel()}, index).reset_index()
        printed = part[[*CELL, "mean"]].reset_index(drop=True).iloc[table["cell"]]
        table["delta"] = table["mean"] - printed["mean"].to_numpy()
        table["method"] = printed["method"].to_numpy()
        rows.append(table.assign(dataset=dataset, centers=n_centers))
    found = pd.concat(rows)
    found["distance"] = found["delta"].abs()
    return found.groupby(SETTING, as_index=False)[["delta", "distance"]].mean()
