"""Our trials against the printed numbers: means, boldface and which cells are consistent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from pu_shift._seeds import child
from pu_shift.paper.settings import BLOCK, CELL, METHODS, ROW, TABLES, TRIAL
from pu_shift.paper.store import PathLike

LEVEL = 0.05
# The rounding of a standard error printed to one decimal: 0.1 / sqrt(12).
LEAST_SE = 0.03
PAPER_TRIALS = 10
# Pairs of runs that are drawn for the noise ceiling of a cell.
CEILING_PAIRS = 20_000

COLUMNS = [*CELL, "n", "mean", "se", "bold"]
COLUMNS += ["paper_mean", "paper_se", "paper_bold", "delta", "p_value", "consistent"]
_PAPER_COLUMNS = [*CELL, "mean", "se", "bold"]


def _paper_table(number: int) -> Any:
    """Return a printed table: of the installed package, or of the source tree at its top."""
    packaged = files("pu_shift") / "paper_tables"
    tree = Path(__file__).resolve().parents[2] / "paper_tables"
    return (packaged if packaged.is_dir() else tree) / f"table{number}.csv"


def load_paper_table(number: int, folder: PathLike | None = None) -> pd.DataFrame | None:
    """Read and check a printed table of the paper.

    Parameters
    ----------
    number : int
        Which table.
    folder : path-like, optional
        Where ``table1.csv`` and so on are; the package's own by default.

    Returns
    -------
    DataFrame or None
        The cells, with mean, standard error (in percent) and boldface; None for
        a setting that is no table of the paper, and where the file is missing.

    Raises
    ------
    ValueError
        If the file does not hold every cell of the table once, with sensible values.

    Examples
    --------
    >>> load_paper_table(1, folder="no/such/folder") is None
    True
    """
    path = _paper_table(number) if folder is None else Path(folder) / f"table{number}.csv"
    if number not in TABLES or not path.is_file():
        return None
    with path.open("r", encoding="utf-8") as file:
        paper = _rounded(pd.read_csv(file))
    if list(paper.columns) != _PAPER_COLUMNS:
        raise ValueError(f"{path}: the columns must be {','.join(_PAPER_COLUMNS)}")
    cells = list(paper[CELL].itertuples(index=False, name=None))
    expected = {tuple(cell) for cell in TABLES[number].cells()}
    wrong = sorted(expected.symmetric_difference(cells))
    if wrong:
        raise ValueError(f"{path}: a cell is missing or does not belong: {wrong[0]}")
    if len(cells) != len(expected):
        raise ValueError(f"{path}: a cell occurs twice")
    sound = paper["mean"].between(0, 100) & paper["se"].between(0, 50) & paper["bold"].isin([0, 1])
    if not sound.all():
        raise ValueError(f"{path} line {2 + int(np.argmin(sound))}: bad mean, se or bold")
    return paper


def summarize(trials: pd.DataFrame) -> pd.DataFrame:
    """Summarize the accuracies of each cell over its trials.

    Parameters
    ----------
    trials : DataFrame
        One row per trial of a cell; a repeated trial counts once.

    Returns
    -------
    DataFrame
        For each cell the number of trials ``n``, the ``mean`` and its standard
        error ``se`` (NaN for one trial).

    Examples
    --------
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> trials = pd.DataFrame([{**cell, "trial": i, "accuracy": 70.0 + i} for i in range(3)])
    >>> summarize(trials)[["n", "mean", "se"]].round(3).values.tolist()
    [[3.0, 71.0, 0.577]]
    """
    trials = _rounded(trials).drop_duplicates(TRIAL)
    groups = trials.groupby(CELL, sort=False)["accuracy"]
    summary = groups.agg(n="count", mean="mean", se="sem").reset_index()
    return summary.astype({"mean": float, "se": float})


def welch(mean1: Any, se1: Any, n1: Any, mean2: Any, se2: Any, n2: Any) -> tuple[Any, Any]:
    """Return Welch's t statistic and its degrees of freedom from summary statistics.

    Parameters
    ----------
    mean1, se1, n1, mean2, se2, n2 : array-like
        Means, their standard errors, and sample sizes; a standard error below
        0.03, the rounding of a printed one, is taken as 0.03.

    Returns
    -------
    t, df : array
        The statistic of ``mean1 - mean2`` and its degrees of freedom.

    Examples
    --------
    >>> t, df = welch(73.0, 0.5, 10, 71.0, 0.5, 10)
    >>> round(float(t), 3), round(float(df), 3)
    (2.828, 18.0)
    """
    variance1, variance2 = (np.square(np.maximum(se, LEAST_SE)) for se in (se1, se2))
    total = variance1 + variance2
    # One trial has no variance: its standard error is NaN, and so is the result.
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.divide(variance1**2, np.subtract(n1, 1)) + np.divide(
            variance2**2, np.subtract(n2, 1)
        )
        return np.subtract(mean1, mean2) / np.sqrt(total), total**2 / rest


def bold(summary: pd.DataFrame) -> pd.Series:
    """Tell which cells the paper would print in boldface.

    They are the best of each row and all that a one-sided Welch t-test at 5 %
    does not find worse than it.

    Parameters
    ----------
    summary : DataFrame
        Cells with ``n``, ``mean`` and ``se``.

    Returns
    -------
    Series of bool
        One value per cell; if standard errors are missing, only the best is bold.

    Examples
    --------
    >>> row = dict(prior=0.3, test_prior=0.3, given_prior=0.3, dataset="susy", n=10, se=0.5)
    >>> means = [79.5, 78.4, 73.0]
    >>> bold(pd.DataFrame([{**row, "mean": mean} for mean in means])).tolist()
    [True, True, False]
    """
    summary = summary.reset_index(drop=True)
    best = summary.loc[summary.groupby(ROW, sort=False)["mean"].idxmax(), [*ROW, "n", "mean", "se"]]
    pair = summary[[*ROW, "n", "mean", "se"]].merge(best, on=ROW, suffixes=("", "_best"))
    t, df = welch(*(pair[name] for name in ("mean_best", "se_best", "n_best", "mean", "se", "n")))
    not_worse = stats.t.sf(t, df) >= LEVEL
    return pd.Series(not_worse | (pair["mean"] == pair["mean_best"]).to_numpy(), name="bold")


def compare(summary: pd.DataFrame, paper: pd.DataFrame | None = None) -> pd.DataFrame:
    """Compare our cells with the printed ones.

    A cell is consistent when a two-sided Welch t-test between our trials and
    the printed mean and standard error (ten trials) has p ≥ 0.05.

    Parameters
    ----------
    summary : DataFrame
        Our cells, from :func:`summarize`.
    paper : DataFrame, optional
        The printed cells, from :func:`load_paper_table`.

    Returns
    -------
    DataFrame
        The columns of ``summary.csv``; the paper's and what follows from them
        are missing where nothing is printed, ``p_value`` and ``consistent``
        also where there is but one trial.

    Examples
    --------
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> ours = pd.DataFrame([{**cell, "n": 10, "mean": 72.0, "se": 0.5}])
    >>> paper = pd.DataFrame([{**cell, "mean": 70.7, "se": 0.4, "bold": 0}])
    >>> compare(ours, paper)[["delta", "p_value", "consistent"]].round(3).values.tolist()
    [[1.3, 0.058, 1]]
    """
    table = _rounded(summary).reset_index(drop=True)
    table["bold"] = bold(table).astype("Int64")
    if paper is None:
        paper = pd.DataFrame([], columns=_PAPER_COLUMNS).astype(table[CELL].dtypes.to_dict())
    names = {name: f"paper_{name}" for name in ("mean", "se", "bold")}
    table = table.merge(_rounded(paper).rename(columns=names), on=CELL, how="left")
    table = table.astype({"paper_mean": float, "paper_se": float, "paper_bold": "Int64"})
    table["delta"] = table["mean"] - table["paper_mean"]
    table["p_value"] = _p_value(
        *(table[name] for name in ("mean", "se", "n", "paper_mean", "paper_se"))
    )
    judged = table["p_value"].notna()
    table["consistent"] = (table["p_value"] >= LEVEL).astype("Int64").where(judged)
    return table[COLUMNS]


def noise_ceiling(paper_se: Any, n: Any) -> np.ndarray:
    """Return the chance that a cell is consistent if our protocol is the authors' own.

    Even then two sets of trials differ by chance. Ten trials are drawn from a normal
    distribution with the printed mean and the standard deviation SE·√10, their mean and
    standard error rounded as in print; ``n`` more, independent of them, stand for ours.
    The chance is the share of 20,000 such pairs that the rule of :func:`compare` calls
    consistent: about 0.95, the level of the test, and 1 where the printed SE is 0.

    Parameters
    ----------
    paper_se : array-like
        The printed standard errors.
    n : array-like
        The numbers of our trials.

    Returns
    -------
    array
        One chance per cell, the same on every call; NaN for fewer than two trials.

    Examples
    --------
    >>> noise_ceiling([0.0, 0.5], 10).round(2).tolist()
    [1.0, 0.95]
    """
    return np.array([_chance(float(se), int(count)) for se, count in np.broadcast(paper_se, n)])


@cache
def _chance(paper_se: float, n: int) -> float:
    """Return the noise ceiling of one cell."""
    if n < 2 or not paper_se >= 0:
        return math.nan
    rng = np.random.default_rng(child(0, round(1000 * paper_se), n))

    def drawn(count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and SE of normal trials: independent, the second by a χ² law."""
        se = paper_se * math.sqrt(PAPER_TRIALS / count)
        chi2 = rng.chisquare(count - 1, CEILING_PAIRS) / (count - 1)
        return rng.normal(0.0, se, CEILING_PAIRS), se * np.sqrt(chi2)

    printed = (values.round(1) for values in drawn(PAPER_TRIALS))
    return float(np.mean(_p_value(*drawn(n), n, *printed) >= LEVEL))


@dataclass(frozen=True)
class Headline:
    """How well a run agrees with the paper; shares are NaN where nothing can be judged.

    Parameters
    ----------
    cells : int
        The number of cells that have a printed number.
    consistent : float
        The share of consistent cells among those with at least two trials.
    ceiling : float
        The share that a protocol identical to the authors' would have, from
        :func:`noise_ceiling`.
    mean_abs_delta : float
        The mean absolute difference from the printed means, in points.
    bold_agreement : float
        The share of cells with the paper's boldface, over rows with all six methods.
    by_method, by_dataset : DataFrame
        ``cells``, ``consistent``, ``ceiling`` and ``mean_abs_delta`` of each.
    """

    cells: int
    consistent: float
    ceiling: float
    mean_abs_delta: float
    bold_agreement: float
    by_method: pd.DataFrame
    by_dataset: pd.DataFrame


def headline(comparison: pd.DataFrame) -> Headline:
    """Condense a comparison to its headline figures.

    Parameters
    ----------
    comparison : DataFrame
        From :func:`compare`.

    Returns
    -------
    Headline
        The figures.

    Examples
    --------
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> ours = pd.DataFrame([{**cell, "n": 10, "mean": 72.0, "se": 0.5}])
    >>> paper = pd.DataFrame([{**cell, "mean": 70.7, "se": 0.4, "bold": 0}])
    >>> headline(compare(ours, paper)).consistent
    1.0
    """
    printed = comparison[comparison["paper_mean"].notna()]
    printed = printed.assign(
        consistent=printed["consistent"].astype(float),
        ceiling=noise_ceiling(printed["paper_se"], printed["n"]),
        delta=printed["delta"].abs(),
    )
    judged = printed[printed["p_value"].notna()]
    whole = judged[judged.groupby(ROW)["method"].transform("size") == len(METHODS)]

    def by(column: str) -> pd.DataFrame:
        groups = printed.groupby(column, sort=False)
        return groups.agg(
            cells=("delta", "size"),
            consistent=("consistent", "mean"),
            ceiling=("ceiling", "mean"),
            mean_abs_delta=("delta", "mean"),
        )

    return Headline(
        cells=len(printed),
        consistent=float(judged["consistent"].mean()),
        ceiling=float(judged["ceiling"].mean()),
        mean_abs_delta=float(printed["delta"].mean()),
        bold_agreement=float((whole["bold"] == whole["paper_bold"]).astype(float).mean()),
        by_method=by("method"),
        by_dataset=by("dataset"),
    )


def _p_value(mean: Any, se: Any, n: Any, paper_mean: Any, paper_se: Any) -> Any:
    """Return the p-value of the two-sided test between our trials and the printed ones."""
    t, df = welch(mean, se, n, paper_mean, paper_se, PAPER_TRIALS)
    return 2 * stats.t.sf(np.abs(t), df)


def _rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Round the priors, which serve as keys."""
    priors = {name: table[name].astype(float).round(6) for name in BLOCK if name in table}
    return table.assign(**priors)
