"""Our trials against the printed numbers: means, boldface and which cells are consistent."""

from __future__ import annotations

import math
import os
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

LEVEL = 0.05
# The rounding of a standard error printed to one decimal: 0.1 / sqrt(12).
LEAST_SE = 0.03
PAPER_TRIALS = 10
# Pairs of runs that are drawn for the noise ceiling of a cell.
CEILING_PAIRS = 20_000

COLUMNS = [*CELL, "n", "mean", "se", "bold"]
COLUMNS += ["paper_mean", "paper_se", "paper_bold", "delta", "p_value", "consistent"]
_PAPER_COLUMNS = [*CELL, "mean", "se", "bold"]


def load_paper_table(
    number: int, folder: str | os.PathLike[str] | None = None
) -> pd.DataFrame | None:
    """Read and check a printed table; None where there is none of this number."""
    path = _paper_tables() if folder is None else Path(folder)
    path = path / f"table{number}.csv"
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


def _paper_tables() -> Any:
    """Return the folder of printed tables: of the installed package, or of the source tree."""
    packaged = files("pu_shift") / "paper_tables"
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[2] / "paper_tables"


def _rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Round the priors, which serve as keys."""
    priors = {name: table[name].astype(float).round(6) for name in BLOCK if name in table}
    return table.assign(**priors)


def summarize(trials: pd.DataFrame) -> pd.DataFrame:
    """Return ``n``, ``mean`` and ``se`` of each cell; a repeated trial counts once."""
    trials = _rounded(trials).drop_duplicates(TRIAL)
    groups = trials.groupby(CELL, sort=False)["accuracy"]
    summary = groups.agg(n="count", mean="mean", se="sem").reset_index()
    return summary.astype({"mean": float, "se": float})


def welch_p(
    mean1: Any, se1: Any, n1: Any, mean2: Any, se2: Any, n2: Any, *, alternative: str = "two-sided"
) -> Any:
    """Return the p-value of Welch's t-test; a standard error counts as 0.03 at least."""
    std1, std2 = (np.maximum(se, LEAST_SE) * np.sqrt(n) for se, n in ((se1, n1), (se2, n2)))
    samples = map(np.asarray, (mean1, std1, n1, mean2, std2, n2))
    return stats.ttest_ind_from_stats(*samples, equal_var=False, alternative=alternative).pvalue


def bold(summary: pd.DataFrame) -> pd.Series:
    """Tell which cells the paper would print in boldface."""
    # The best of each row and all that a one-sided Welch t-test at 5 % does not find worse
    # than it; if standard errors are missing, the best alone.
    summary = summary.reset_index(drop=True)
    best = summary.loc[summary.groupby(ROW, sort=False)["mean"].idxmax(), [*ROW, "n", "mean", "se"]]
    pair = summary[[*ROW, "n", "mean", "se"]].merge(best, on=ROW, suffixes=("", "_best"))
    names = ("mean_best", "se_best", "n_best", "mean", "se", "n")
    not_worse = welch_p(*(pair[name] for name in names), alternative="greater") >= LEVEL
    return pd.Series(not_worse | (pair["mean"] == pair["mean_best"]), name="bold")


def compare(summary: pd.DataFrame, paper: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return our cells beside the printed ones, with the columns of ``summary.csv``."""
    # A cell is consistent when a two-sided Welch t-test between our trials and the printed
    # mean and standard error (ten trials) has p ≥ 0.05. What follows from the paper is missing
    # where nothing is printed, p_value and consistent also where there is but one trial.
    table = _rounded(summary).reset_index(drop=True)
    table["bold"] = bold(table).astype("Int64")
    if paper is None:
        paper = pd.DataFrame([], columns=_PAPER_COLUMNS).astype(table[CELL].dtypes.to_dict())
    names = {name: f"paper_{name}" for name in ("mean", "se", "bold")}
    table = table.merge(_rounded(paper).rename(columns=names), on=CELL, how="left")
    table = table.astype({"paper_mean": float, "paper_se": float, "paper_bold": "Int64"})
    table["delta"] = table["mean"] - table["paper_mean"]
    ours, printed = (table["mean"], table["se"]), (table["paper_mean"], table["paper_se"])
    table["p_value"] = welch_p(*ours, table["n"], *printed, PAPER_TRIALS)
    judged = table["p_value"].notna()
    table["consistent"] = (table["p_value"] >= LEVEL).astype("Int64").where(judged)
    return table[COLUMNS]


def noise_ceiling(paper_se: Any, n: Any) -> np.ndarray:
    """Return the chance that a cell is consistent if our protocol is the authors' own."""
    # Even then two sets of trials differ by chance. Ten trials are drawn from a normal
    # distribution with the printed mean and the standard deviation SE·√10, their mean and
    # standard error rounded as in print; n more, independent of them, stand for ours.
    # The chance is the share of 20,000 such pairs that the rule of `compare` calls
    # consistent: about 0.95, the level of the test, and 1 where the printed SE is 0.
    return np.array([_chance(float(se), int(count)) for se, count in np.broadcast(paper_se, n)])


@cache
def _chance(paper_se: float, n: int) -> float:
    if n < 2 or not paper_se >= 0:
        return math.nan
    rng = np.random.default_rng(child(0, round(1000 * paper_se), n))

    def drawn(count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and SE of normal trials: independent, the second by a χ² law."""
        se = paper_se * math.sqrt(PAPER_TRIALS / count)
        chi2 = rng.chisquare(count - 1, CEILING_PAIRS) / (count - 1)
        return rng.normal(0.0, se, CEILING_PAIRS), se * np.sqrt(chi2)

    mean, se = drawn(PAPER_TRIALS)
    p_values = welch_p(*drawn(n), n, mean.round(1), se.round(1), PAPER_TRIALS)
    return float(np.mean(p_values >= LEVEL))


@dataclass(frozen=True)
class Headline:
    """How well a run agrees with the paper; shares are NaN where nothing can be judged."""

    cells: int  # with a printed number
    consistent: float  # share of those with at least two trials
    ceiling: float  # the share that a protocol identical to the authors' would have
    mean_abs_delta: float  # in points
    bold_agreement: float  # share of the cells in rows with all six methods
    by_method: pd.DataFrame  # the first four of each
    by_dataset: pd.DataFrame


def headline(comparison: pd.DataFrame) -> Headline:
    """Condense a comparison to its headline figures."""
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
