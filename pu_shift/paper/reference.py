"""The committed reference run beside another: trial by trial, and in distance from the paper."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from pu_shift._seeds import child
from pu_shift.paper.compare import LEVEL, PAPER_TRIALS, headline, load_paper_table, welch_p
from pu_shift.paper.settings import CELL, METHODS, TABLES, TRIAL
from pu_shift.paper.store import differing, read_run, read_trials

# Accuracies of trials 0 and 1 that another processor changed, of how many, by at most one point
# (docs/REPRODUCTION.md, "Another processor").
CHANGED = {"large features": (24, 132), "double hinge": (1, 396), "others": (0, 1056)}
LARGEST_CHANGE = 1.0
# A grid has widths that differ by a half; float32 has seven digits.
WIDTH_ROUNDING = 1e-5
# The chance that a run of the reference protocol fails the comparison with the paper.
FAILS_BY_CHANCE = 0.01
RUNS_DRAWN = 2000
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Check:
    """One claim, what was measured of it and what is allowed; ``passed`` is None if unchecked."""

    claim: str
    measured: str
    allowed: str = ""
    passed: bool | None = None

    def __str__(self) -> str:
        verdict = {True: "passed", False: "FAILED", None: "not checked"}[self.passed]
        allowed = f" (allowed: {self.allowed})" if self.allowed else ""
        return f"{verdict}: {self.claim}: {self.measured}{allowed}"


def reference_folder() -> Path:
    """Return the reference results: of the installed package, or of the source tree."""
    packaged = Path(str(files("pu_shift") / "reference"))
    in_tree = Path(__file__).resolve().parents[2] / "results" / "reference"
    return packaged if packaged.is_dir() else in_tree


@cache
def reference_trials() -> pd.DataFrame:
    """Return the trials of all tables of the reference run."""
    found = [read_trials(reference_folder() / f"table{number}") for number in TABLES]
    return pd.concat(found, ignore_index=True)


def reference_run() -> dict[str, Any]:
    """Return what made the reference run: its protocol, seed and data."""
    return read_run(reference_folder() / "table1")


def other_run(run: Mapping[str, Any]) -> list[str]:
    """Say what of protocol, seed and data differs from the reference run, a line for each."""
    return [
        f"{field} is {json.dumps(new)}, the reference has {json.dumps(old)}"
        for field, (new, old) in differing(run, reference_run())
        if field.split(".")[0] not in ("table", "study")
    ]


def same_trials(trials: pd.DataFrame) -> list[Check]:
    """Compare every accuracy, width and λ with that of the same trial of the reference run."""
    both = trials.merge(reference_trials(), on=TRIAL, suffixes=("", "_reference"))
    if both.empty:
        return [Check("trials as in the reference run", "none to compare", "some", False)]
    checks = []
    for method in METHODS:
        rows = both[both["method"] == method]
        if len(rows):
            checks += _same(method, rows)
    left = len(trials) - len(both)
    if left:
        checks.append(Check("trials beyond the reference run", f"{left}, not compared"))
    return checks


def _same(method: str, rows: pd.DataFrame) -> list[Check]:
    change = (rows["accuracy"] - rows["accuracy_reference"]).abs()
    changed, largest = int((change > 1e-6).sum()), float(change.max())
    kinds = rows["dataset"].map(lambda dataset: _kind(method, dataset))
    most = sum(_most_changed(kind, count) for kind, count in kinds.value_counts().items())
    checks = [
        Check(
            f"accuracies of {method}",
            f"{changed} of {len(rows)} differ, by {largest:.1f} points at most",
            f"{most}, by {LARGEST_CHANGE:.1f}",
            changed <= most and largest <= LARGEST_CHANGE + 1e-6,
        )
    ]
    if rows["width_reference"].notna().any():
        apart = (rows["width"] / rows["width_reference"] - 1.0).abs()
        wrong = int((~(apart <= WIDTH_ROUNDING)).sum())
        measured = f"{wrong} of {len(rows)} differ, relative difference {apart.max():.0e} at most"
        allowed = f"0 by more than {WIDTH_ROUNDING:.0e}"
        checks.append(Check(f"widths of {method}", measured, allowed, wrong == 0))
    wrong = int((rows["lam"] != rows["lam_reference"]).sum())
    checks.append(Check(f"λ of {method}", f"{wrong} of {len(rows)} differ", "0", wrong == 0))
    return checks


def _kind(method: str, dataset: str) -> str:
    """Return which of `CHANGED` the trials of a method belong to."""
    if method == "DH-Lin" and dataset in ("cod-rna", "magic", "MNIST"):
        return "large features"
    return "double hinge" if method.startswith("DH") else "others"


def _most_changed(kind: str, n: int) -> int:
    """Return how many of n accuracies another processor may change.

    The 99.9 % quantile of a binomial number, at the upper 95 % limit of the measured share.
    """
    changed, of = CHANGED[kind]
    share = stats.beta.ppf(0.95, changed + 1, of - changed)  # Clopper and Pearson
    return int(stats.binom.ppf(0.999, n, share))


@dataclass(frozen=True)
class Bounds:
    """What chance allows a run of the reference protocol, and what the reference run has."""

    consistent: float  # the least share of consistent cells, NaN if none is judged
    mean_abs_delta: float  # the largest mean |Δ|


def chance_bounds(cells: pd.DataFrame, seed: int = 0) -> Bounds:
    r"""Return how far from the paper a run of the reference protocol may lie by chance.

    Let S be the share of consistent cells and D the mean \|Δ\|, over any ``cells`` (with the
    number ``n`` of trials of each). Two independent runs of one protocol, of n and of ten trials,
    differ by S − S_ref and D − D_ref, whose distributions depend on the cells' means and on the
    covariance of the trials. Both are known from the reference run up to chance: a training set
    (dataset, π, trial) gives one vector of accuracies, vectors are independent, and their
    residuals R about the mean of ten give the covariance RᵀR/9. So 2,000 pairs of runs are drawn,

    .. math:: a_i = \bar a + \sqrt{9/\chi^2_9}\; z_i^\top R / 3, \qquad z_i \sim N(0, I_{10}),

    where the χ² factor, one for both runs, makes up for a covariance that is known from ten
    trials only: for the mean of a single cell the bound is that of Student's t. The bounds are
    S_ref and D_ref, plus the 0.5 % quantile of the differences of S and the 99.5 % quantile of
    those of D.

    Parameters
    ----------
    cells
        Any cells of the seven tables, with the columns of a cell and ``n``.
    seed
        Of the drawn pairs.

    Returns
    -------
    Bounds
        What about 99 % of the runs of the reference protocol keep; of a single cell 97 %, because
        the reference mean may lie on the printed one by luck.
    """
    asked = cells.loc[cells["n"] > 0, [*CELL, "n"]].merge(_printed(), on=CELL)
    rng, parts = np.random.default_rng(child(seed, len(asked))), []
    for _, group in asked.groupby(["dataset", "prior"], sort=False):
        accuracies = _accuracies(group)
        paper = group["mean"].to_numpy(), group["se"].to_numpy(), PAPER_TRIALS
        counts, ten = group["n"].to_numpy(), np.full(len(group), len(accuracies))
        mean, degrees = accuracies.mean(axis=0), len(accuracies) - 1
        root = (accuracies - mean) / np.sqrt(degrees)
        scale = np.sqrt(degrees / rng.chisquare(degrees, (RUNS_DRAWN, 1, 1)))
        se = accuracies.std(axis=0, ddof=1) / np.sqrt(ten)
        runs = (
            (*_drawn(mean, root, counts, scale, rng), counts),
            (*_drawn(mean, root, ten, scale, rng), ten),
            (mean[None], se[None], ten),
        )
        parts.append([_agreement(run, paper) for run in runs])
    judged = asked["n"].to_numpy() > 1
    deltas = [np.concatenate([part[k][1] for part in parts], axis=1) for k in range(3)]
    drawn, again, own = (delta.mean(axis=1) for delta in deltas)
    level = FAILS_BY_CHANCE / 2.0
    largest = own[0] + np.quantile(drawn - again, 1.0 - level, method="higher")
    if not judged.any():
        return Bounds(np.nan, float(largest))
    shares = [np.concatenate([part[k][0] for part in parts], axis=1) for k in range(3)]
    drawn, again, own = (share[:, judged].mean(axis=1) for share in shares)
    least = own[0] + np.quantile(drawn - again, level, method="lower")
    return Bounds(float(least), float(largest))


def near_paper(comparison: pd.DataFrame, what: str) -> Check:
    """Judge whether a run is as near to the paper as the reference run, chance allowed for.

    ``comparison`` has the columns of ``summary.csv``, of any cells.
    """
    claim = f"{what}: as near to the paper as the reference run, chance allowed for"
    printed = comparison[comparison["paper_mean"].notna() & (comparison["n"] > 0)]
    if printed.empty:
        return Check(claim, "no cell could be compared with the paper", passed=False)
    found, bounds = headline(printed), chance_bounds(printed)
    passed = found.mean_abs_delta <= bounds.mean_abs_delta + _ROUNDING
    measured, allowed = [], []
    if np.isfinite(found.consistent):
        passed &= found.consistent >= bounds.consistent - _ROUNDING
        measured.append(f"{found.consistent:.1%} consistent")
        allowed.append(f"at least {max(0.0, bounds.consistent):.1%}")
    measured.append(f"mean |Δ| {found.mean_abs_delta:.2f} on {found.cells} cells")
    allowed.append(f"at most {bounds.mean_abs_delta:.2f}")
    return Check(claim, ", ".join(measured), ", ".join(allowed), bool(passed))


@cache
def _printed() -> pd.DataFrame:
    tables = (load_paper_table(number) for number in TABLES)
    return pd.concat([table for table in tables if table is not None])


def _accuracies(cells: pd.DataFrame) -> np.ndarray:
    """Return (trials, cells) accuracies of the reference run, on one dataset at one prior."""
    found = reference_trials().merge(cells[CELL].assign(place=range(len(cells))), on=CELL)
    return found.pivot(index="trial", columns="place", values="accuracy").to_numpy()


def _drawn(
    mean: np.ndarray, root: np.ndarray, n: np.ndarray, scale: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw runs of n trials for each cell: (runs, cells) means and standard errors."""
    noise = rng.standard_normal((len(scale), n.max(), len(root)))
    trials = mean + scale * (noise @ root)
    means, errors = np.empty((2, len(scale), len(n)))
    for count in np.unique(n):
        some = trials[:, :count, n == count]
        means[:, n == count] = some.mean(axis=1)
        spread = some.std(axis=1, ddof=1) if count > 1 else np.nan
        errors[:, n == count] = spread / np.sqrt(count)
    return means, errors


def _agreement(run: tuple, paper: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Return which cells of drawn runs are consistent with the paper, and their |Δ|."""
    with np.errstate(invalid="ignore"):  # a single trial is not judged
        return welch_p(*run, *paper) >= LEVEL, np.abs(run[0] - paper[0])
