"""The Ker models against the paper for every width, number of centres and step at once.

A map for choosing a protocol: one training run per dataset, prior and width
records all steps, and each snapshot is compared with the printed cells. Nothing
is selected here, so the map shows what a rule for the width could reach at best.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from pu_shift._seeds import child
from pu_shift.data import load
from pu_shift.data.sampling import draw
from pu_shift.experiment.compare import load_paper_table
from pu_shift.experiment.methods import LOSSES, basis_scales
from pu_shift.experiment.protocol import Protocol
from pu_shift.experiment.settings import CELL, DATASETS, GUIDES
from pu_shift.kernels import (
    choose_centers,
    kernel_from_distances,
    median_distance,
    squared_distances,
)
from pu_shift.links import LinearModel
from pu_shift.priors import Condition
from pu_shift.training import train

CENTERS = (100, 125, 200)
FACTORS = (1 / 3, 0.45, 0.525, 0.6, 1.0, 1.375, 2.0)
STEPS = (150, 200, 250, 300, 500)
SETTING = ["method", "dataset", "centers", "factor", "step"]


def sweep(
    datasets: Sequence[str] = DATASETS,
    n_trials: int = 2,
    centers: Sequence[int] = CENTERS,
    factors: Sequence[float] = FACTORS,
    steps: Sequence[int] = STEPS,
    jobs: int = 1,
) -> pd.DataFrame:
    """Return how far each setting of the Ker models is from the printed cells.

    Parameters
    ----------
    datasets
        Names of datasets.
    n_trials
        Trials of each cell.
    centers, factors, steps
        Numbers of centres, widths in units of the median distance, AMSGrad steps.
    jobs
        Processes.

    Returns
    -------
    DataFrame
        Columns method, dataset, centers, factor, step, then the mean over the
        printed cells of the difference and of its absolute value, in points.

    Examples
    --------
    >>> table = sweep(["banana"], 1, [10], [1.0], [1, 2])
    >>> table[["method", "step"]].values.tolist()
    [['DH-Ker', 1], ['DH-Ker', 2], ['Sq-Ker', 1], ['Sq-Ker', 2]]
    """
    cells = pd.concat([load_paper_table(number) for number in GUIDES])
    cells = cells[cells["method"].str.endswith("Ker")]
    tasks = [
        (dataset, prior, trial, n)
        for n in centers
        for dataset in datasets
        for prior in sorted(cells["prior"].unique())
        for trial in range(n_trials)
    ]
    rows = Parallel(jobs)(delayed(_snapshots)(*task, factors, steps, cells) for task in tasks)
    table = pd.concat(rows).groupby([*SETTING, *CELL[:3]], as_index=False)["delta"].mean()
    table["distance"] = table["delta"].abs()
    return table.groupby(SETTING, as_index=False)[["delta", "distance"]].mean()


def _snapshots(
    dataset: str,
    prior: float,
    trial: int,
    n_centers: int,
    factors: Sequence[float],
    steps: Sequence[int],
    cells: pd.DataFrame,
) -> pd.DataFrame:
    """Return the difference from every printed cell of one training set at every step."""
    protocol = Protocol()
    cells = cells[(cells["dataset"] == dataset) & (cells["prior"] == prior)]
    sample = draw(load(dataset), prior, sorted(cells["test_prior"].unique()), seed=0, trial=trial)
    given = sorted(cells["given_prior"].unique())
    P, U = sample.positives, sample.unlabeled
    median = median_distance(np.concatenate([P, U]))
    chosen = choose_centers(P, U, n_centers, protocol.center_source, child(sample.seed, 0))
    far = [squared_distances(rows, chosen) for rows in (P, U)]
    far_tests = {to: squared_distances(X, chosen) for to, (X, _) in sample.tests.items()}
    rows = []
    for factor in factors:
        features = [kernel_from_distances(d, factor * median) for d in far]
        scales = basis_scales(features, protocol.ker_scaling)
        features = [bases / scales for bases in features]
        tests = {
            p: kernel_from_distances(d, factor * median) / scales for p, d in far_tests.items()
        }
        for name, loss in LOSSES.items():
            result = train(
                LinearModel(n_centers, len(given), dtype=features[0].dtype),
                features[0],
                features[1],
                [Condition(prior, one) for one in given],
                loss=loss,
                kind="pu-shift",
                n_steps=max(steps),
                n_batches=protocol.n_batches,
                learning_rate=protocol.learning_rate,
                record=steps,
                seed=child(sample.seed, 3),
            )
            for _, cell in cells[cells["method"] == f"{name}-Ker"].iterrows():
                column = given.index(cell["given_prior"])
                scores = tests[cell["test_prior"]] @ result.weights[:, :, column].T
                positive = scores + result.biases[:, column] > 0
                truth = sample.tests[cell["test_prior"]][1][:, None] > 0
                accuracy = 100 * (positive == truth).mean(axis=0)
                rows += [
                    {**cell[CELL], "centers": n_centers, "factor": factor, "step": step,
                     "delta": one - cell["mean"]}
                    for step, one in zip(result.steps, accuracy)
                ]  # fmt: skip
    return pd.DataFrame(rows)
