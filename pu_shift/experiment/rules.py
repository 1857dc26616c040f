"""Rules that choose the width of the Ker models by uLSIF's cross-validation, scored on one map.

A rule has a few widths and takes, for each training set, the one at which uLSIF
(p/u or u/p, with a range of λ) has the best score. It sees P and U only. All
rules are scored on the same trained models, see :mod:`pu_shift.experiment.sweep`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.special import stdtr

from pu_shift.experiment.compare import LEVEL, PAPER_TRIALS, welch
from pu_shift.experiment.sweep import DIRECTIONS, Grid, Record

LARGEST = 3


class Rule(NamedTuple):
    """A rule for the width: which candidates, and which scores of uLSIF decide.

    Attributes
    ----------
    direction : int
        Place in :data:`pu_shift.experiment.sweep.DIRECTIONS`.
    lams : tuple of int
        First and last place of λ.
    widths : tuple of int
        Places of the widths.
    """

    direction: int
    lams: tuple[int, int]
    widths: tuple[int, ...]


def all_rules(n_widths: int, n_lams: int, largest: int = LARGEST) -> Iterator[Rule]:
    """Yield every rule of at most ``largest`` widths and an unbroken range of λ.

    Parameters
    ----------
    n_widths, n_lams
        Sizes of the grid.
    largest
        Most widths of a rule.

    Yields
    ------
    Rule
        A single width needs no score, and is one rule.

    Examples
    --------
    >>> sum(1 for _ in all_rules(3, 2, largest=2))
    21
    """
    for place in range(n_widths):
        yield Rule(0, (0, 0), (place,))
    ranges = [(a, b) for a in range(n_lams) for b in range(a, n_lams)]
    for direction in range(len(DIRECTIONS)):
        for lams in ranges:
            for size in range(2, largest + 1):
                for widths in combinations(range(n_widths), size):
                    yield Rule(direction, lams, widths)


def choose(rule: Rule, scores: np.ndarray) -> np.ndarray:
    """Return the place of the width that a rule takes.

    Parameters
    ----------
    rule
        The rule.
    scores
        (..., directions, widths, λ) scores of uLSIF, lower is better.

    Returns
    -------
    numpy.ndarray
        (...) places.

    Examples
    --------
    >>> scores = np.array([[[3.0], [1.0], [2.0]]])
    >>> int(choose(Rule(0, (0, 0), (0, 2)), scores))
    2
    """
    first, last = rule.lams
    best = scores[..., rule.direction, :, first : last + 1].min(axis=-1)
    widths = np.array(rule.widths)
    return widths[best[..., widths].argmin(axis=-1)]


def score_rules(
    records: dict[tuple[str, float, int], list[Record]],
    grid: Grid,
    cells: pd.DataFrame,
    largest: int = LARGEST,
    jobs: int = 1,
) -> pd.DataFrame:
    """Score every rule, and return the best of each kind.

    Parameters
    ----------
    records, grid, cells
        As for :func:`pu_shift.experiment.sweep.sweep`; at least two trials.
    largest
        Most widths of a rule.
    jobs
        Processes.

    Returns
    -------
    DataFrame
        For each scaling, number of centres, steps, direction and number of
        widths: how many rules there are, the one with the least mean |Δ|, that
        distance for both losses and for each, and the consistent cells.

    Examples
    --------
    >>> from pu_shift.experiment.sweep import printed_ker_cells, record_all
    >>> cells = printed_ker_cells().query("dataset == 'banana' and prior == 0.4")
    >>> grid = Grid(("none",), (10,), (0.5, 1.0), (1,), (0.1,))
    >>> table = score_rules(record_all(grid, cells, 2), grid, cells)
    >>> table[["n_widths", "rules"]].values.tolist()
    [[1, 2], [2, 1], [2, 1]]
    """
    sets = cells.groupby(["dataset", "prior"])
    tasks = []
    for n_centers in grid.centers:
        found = [records[dataset, prior, n_centers] for dataset, prior in sets.indices]
        scores = np.array([[one.scores for one in trials] for trials in found])
        accuracies = np.empty((len(cells), len(found[0]), *found[0][0].accuracies.shape[:-1]))
        for trials, rows in zip(found, sets.indices.values()):
            accuracies[rows] = np.moveaxis(np.array([one.accuracies for one in trials]), -1, 0)
        tasks += [
            ({"scaling": scaling, "centers": n_centers, "step": step},
             np.ascontiguousarray(accuracies[:, :, s, :, t]), scores, sets.ngroup().to_numpy())
            for s, scaling in enumerate(grid.scalings)
            for t, step in enumerate(grid.steps)
        ]  # fmt: skip
    best = Parallel(jobs)(delayed(_best)(*task, grid, cells, largest) for task in tasks)
    return pd.concat(best, ignore_index=True).sort_values("distance", kind="stable")


def _best(
    setting: dict[str, object],
    accuracies: np.ndarray,
    scores: np.ndarray,
    sets: np.ndarray,
    grid: Grid,
    cells: pd.DataFrame,
    largest: int,
) -> pd.DataFrame:
    """Score every rule at one scaling, number of centres and step: the best of each kind.

    ``accuracies`` is (cells, trials, widths), ``scores`` (training sets, trials,
    directions, widths, λ), and ``sets`` tells the training set of each cell.
    """

    def chosen(rule: Rule) -> np.ndarray:
        places = choose(rule, scores)[sets]
        return np.take_along_axis(accuracies, places[..., None], 2)[..., 0]

    printed, se = cells["mean"].to_numpy(), cells["se"].to_numpy()
    hinge = cells["method"].str.startswith("DH").to_numpy()
    best: dict[tuple[int, int], tuple[float, Rule]] = {}
    counts: dict[tuple[int, int], int] = {}
    for rule in all_rules(len(grid.factors), len(grid.lams), largest):
        kind = rule.direction, len(rule.widths)
        distance = float(np.abs(chosen(rule).mean(axis=1) - printed).mean())
        counts[kind] = counts.get(kind, 0) + 1
        if kind not in best or distance < best[kind][0]:
            best[kind] = distance, rule
    rows = []
    for kind, (distance, rule) in best.items():
        taken = chosen(rule)
        n = taken.shape[1]
        means, errors = taken.mean(axis=1), taken.std(axis=1, ddof=1) / n**0.5
        t, df = welch(means, errors, n, printed, se, PAPER_TRIALS)
        consistent = 2 * stdtr(df, -np.abs(t)) >= LEVEL
        off = np.abs(means - printed)
        rows.append(
            {
                **setting,
                "direction": DIRECTIONS[rule.direction] if len(rule.widths) > 1 else "",
                "n_widths": len(rule.widths),
                "rules": counts[kind],
                "widths": " ".join(f"{grid.factors[w]:.4g}" for w in rule.widths),
                "lams": " ".join(f"{grid.lams[place]:g}" for place in rule.lams)
                if len(rule.widths) > 1
                else "",
                "distance": distance,
                "distance_dh": off[hinge].mean(),
                "distance_sq": off[~hinge].mean(),
                "consistent_dh": int(consistent[hinge].sum()),
                "consistent_sq": int(consistent[~hinge].sum()),
            }
        )
    return pd.DataFrame(rows)
