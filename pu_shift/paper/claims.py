"""The claims of the paper's discussion, judged from trials or from printed tables.

Every claim compares two groups of cells. With trials the comparison is paired:
trial i of a dataset at a prior is the same training set for every method and
given prior. From printed tables only the unpaired difference of the means is
left, with Welch's degrees of freedom. A difference is significant when a
one-sided t-test at 5 % says so; standard errors below 0.03, the rounding of
the printed ones, count as 0.03.

The mean over many cells is taken within each training population (dataset and
prior) first, then over these, which are independent of each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from pu_shift.paper.compare import LEAST_SE, LEVEL, PAPER_TRIALS, load_paper_table
from pu_shift.paper.settings import CELL, EXTRA_METHODS, METHODS, ROW, TABLES, TRIAL

REPRODUCED, PARTLY, NOT, NO_DATA = "reproduced", "partly", "not", "no data"
RATIO_UP, RATIO_PU, *RISK_METHODS = METHODS
(RATIO_LINEAR,) = EXTRA_METHODS
LINEAR, KERNEL = ("DH-Lin", "Sq-Lin"), ("DH-Ker", "Sq-Ker")
POPULATION = ["dataset", "prior"]
# How we read the words "almost all" and "substantially" of the paper.
ALMOST_ALL = 0.9  # share of cells
SUBSTANTIAL = 5.0  # points of accuracy


@dataclass(frozen=True)
class Verdict:
    """The judgement on one claim, with the statistics that decided, one per line."""

    number: int
    claim: str
    verdict: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gain:
    """How much one group of cells is ahead of another: shares of pairs, and points."""

    pairs: int
    ahead: float
    significantly_ahead: float
    significantly_behind: float
    mean: float
    se: float
    p_value: float  # one-sided, of the mean

    @property
    def is_significant(self) -> bool:
        """Whether the mean difference is significantly above zero."""
        return self.p_value < LEVEL

    def __str__(self) -> str:
        p_value = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        return (
            f"{self.mean:+.1f} ± {self.se:.1f} points ({p_value}), "
            f"ahead in {self.ahead:.0%} of {self.pairs} pairs "
            f"({self.significantly_ahead:.0%} significantly, "
            f"{self.significantly_behind:.0%} significantly behind)"
        )


def gain(better: pd.DataFrame, worse: pd.DataFrame, pair_by: Sequence[str]) -> Gain | None:
    """Measure how much trials or printed cells are ahead of their partners; None without any."""
    on = list(pair_by) + (["trial"] if "accuracy" in better else [])
    pairs = better.merge(worse, on=on, suffixes=("", "_worse"))
    if "accuracy" in better:
        pairs["delta"] = pairs["accuracy"] - pairs["accuracy_worse"]
        per_trial = pairs.groupby([*POPULATION, "trial"])["delta"].mean().reset_index()
        cells, populations = _paired(pairs, pair_by), _paired(per_trial, POPULATION)
    else:
        cells = _unpaired(pairs)
        populations = pd.DataFrame([_pooled(cell) for _, cell in cells.groupby(POPULATION)])
    if cells.empty:
        return None
    p_values = stats.t.sf(cells["delta"] / cells["se"], cells["df"])
    pooled = _pooled(populations)
    return Gain(
        pairs=len(cells),
        ahead=float((cells["delta"] > 0).mean()),
        significantly_ahead=float((p_values < LEVEL).mean()),
        significantly_behind=float((p_values > 1 - LEVEL).mean()),
        mean=pooled["delta"],
        se=pooled["se"],
        p_value=float(stats.t.sf(pooled["delta"] / pooled["se"], pooled["df"])),
    )


def _paired(pairs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return mean, standard error and degrees of freedom over the trials of each group."""
    cells = pairs.groupby(list(by))["delta"].agg(delta="mean", se="sem", df="count")
    cells = cells.assign(se=cells["se"].clip(lower=LEAST_SE), df=cells["df"] - 1)
    return cells[cells["df"] > 0].reset_index()


def _unpaired(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the same of each pair of printed cells, with Welch's degrees of freedom."""
    one, other = (pairs[name].clip(lower=LEAST_SE) ** 2 for name in ("se", "se_worse"))
    return pairs.assign(
        delta=pairs["mean"] - pairs["mean_worse"],
        se=np.sqrt(one + other),
        df=(PAPER_TRIALS - 1) * (one + other) ** 2 / (one**2 + other**2),
    )


def _pooled(parts: pd.DataFrame) -> dict[str, float]:
    """Return the mean of independent differences, with Satterthwaite's degrees of freedom."""
    variance = parts["se"] ** 2
    return {
        "delta": float(parts["delta"].mean()),
        "se": float(np.sqrt(variance.sum()) / len(parts)),
        "df": float(variance.sum() ** 2 / (variance**2 / parts["df"]).sum()),
    }


def shift_helps(data: pd.DataFrame) -> Verdict:
    """Judge claim 1, from the gain of the given test prior over ordinary PU where they differ."""
    shifted = data[data["prior"] != data["test_prior"]]
    informed = shifted[shifted["given_prior"] == shifted["test_prior"]]
    ordinary = shifted[shifted["given_prior"] == shifted["prior"]]
    pair_by = ["prior", "test_prior", "dataset", "method"]
    gains = {
        method: gain(_of(informed, method), _of(ordinary, method), pair_by) for method in METHODS
    }
    return _judged(1, "taking the shift into account improves every algorithm", gains)


def pu_beats_up(data: pd.DataFrame) -> Verdict:
    """Judge claim 2, by the share of cells in which p/u is ahead."""
    found = gain(_of(data, RATIO_PU), _of(data, RATIO_UP), ROW)
    claim = "p/u uLSIF outperforms u/p uLSIF in almost all cases"
    if found is None:
        return Verdict(2, claim, NO_DATA)
    verdict = NOT
    if found.is_significant and found.ahead > 0.5:
        verdict = PARTLY
        if found.ahead >= ALMOST_ALL and found.significantly_ahead > 0.5:
            verdict = REPRODUCED
    return Verdict(2, claim, verdict, (f"p/u over u/p: {found}",))


def pu_is_robust(data: pd.DataFrame) -> Verdict:
    """Judge claim 3, from what a wrong given prior costs each method."""
    right = data[data["given_prior"] == data["test_prior"]].drop(columns="given_prior")
    wrong = data[data["given_prior"] != data["test_prior"]]
    loss = wrong.merge(right, on=[name for name in TRIAL if name in right], suffixes=("_wrong", ""))
    if "accuracy" in loss:
        loss["accuracy"] = loss["accuracy"] - loss["accuracy_wrong"]
    else:
        loss["mean"] = loss["mean"] - loss["mean_wrong"]
        loss["se"] = np.hypot(loss["se"], loss["se_wrong"])
    gains = {
        f"loss of {method} over that of p/u": gain(_of(loss, method), _of(loss, RATIO_PU), ROW)
        for method in RISK_METHODS
    }
    # Shown because a method that is no better than guessing cannot lose accuracy.
    beside = {
        f"(accuracy of p/u over {method} under a wrong prior)": gain(
            _of(wrong, RATIO_PU), _of(wrong, method), ROW
        )
        for method in RISK_METHODS
    }
    claim = "p/u uLSIF is more robust to a wrong given prior than risk minimization"
    return _judged(3, claim, gains, beside)


def kernels_trail(data: pd.DataFrame) -> Verdict:
    """Judge claim 4, from how far p/u and the linear model of the same loss are ahead."""
    gains = {
        f"{other} over {kernel}": gain(_of(data, other), _of(data, kernel), ROW)
        for linear, kernel in zip(LINEAR, KERNEL)
        for other in (RATIO_PU, linear)
    }
    return _judged(4, "the Ker models trail in risk minimization", gains)


def linear_ratio_fails(data: pd.DataFrame) -> Verdict:
    """Judge claim 5, by the datasets on which Gaussian kernels are substantially ahead."""
    linear = _of(data, RATIO_LINEAR)
    found = gain(_of(data, RATIO_PU), linear, ROW)
    claim = "linear features fail for density ratios"
    if found is None:
        return Verdict(5, claim, NO_DATA)
    evidence = {
        "Gaussian over linear features": found,
        "linear features over a constant guess": gain(linear, _constant(linear), ROW),
    }
    fails = []
    for dataset in dict.fromkeys(linear["dataset"]):
        here = data[data["dataset"] == dataset]
        gap = gain(_of(here, RATIO_PU), _of(here, RATIO_LINEAR), ROW)
        if gap:
            fails.append(gap.mean >= SUBSTANTIAL and gap.is_significant)
            evidence[f"Gaussian over linear features on {dataset}"] = gap
    return Verdict(5, claim, _share_verdict(fails), _lines(evidence))


def linear_fails_on_banana(data: pd.DataFrame) -> Verdict:
    """Judge claim 6: less than substantially above a constant guess, and behind p/u."""
    banana = data[data["dataset"] == "banana"]
    fails, evidence = [], {}
    for method in LINEAR:
        ours = _of(banana, method)
        over_guess = gain(ours, _constant(ours), ROW)
        gap = gain(_of(banana, RATIO_PU), ours, ROW)
        if over_guess and gap:
            fails.append(over_guess.mean < SUBSTANTIAL and gap.is_significant)
            evidence[f"{method} over a constant guess"] = over_guess
            evidence[f"p/u uLSIF over {method}"] = gap
    return Verdict(6, "the Lin models fail on banana", _share_verdict(fails), _lines(evidence))


CLAIMS: tuple[Callable[[pd.DataFrame], Verdict], ...] = (
    shift_helps,
    pu_beats_up,
    pu_is_robust,
    kernels_trail,
    linear_ratio_fails,
    linear_fails_on_banana,
)


def judge(data: pd.DataFrame) -> list[Verdict]:
    """Judge the six claims from the trials of any number of tables, or from printed cells."""
    return [claim(data) for claim in CLAIMS]


def printed_cells(folder: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Return the cells of all printed tables."""
    found = [load_paper_table(number, folder) for number in TABLES]
    tables = [table for table in found if table is not None]
    return pd.concat(tables) if tables else pd.DataFrame(columns=[*CELL, "mean", "se"])


def _of(data: pd.DataFrame, method: str) -> pd.DataFrame:
    return data[data["method"] == method]


def _constant(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the same cells with the accuracy of guessing the more frequent class."""
    accuracy = 100 * np.maximum(cells["test_prior"], 1 - cells["test_prior"])
    if "accuracy" in cells:
        return cells.assign(accuracy=accuracy)
    return cells.assign(mean=accuracy, se=0.0)


def _judged(
    number: int,
    claim: str,
    gains: Mapping[str, Gain | None],
    beside: Mapping[str, Gain | None] | None = None,
) -> Verdict:
    """Judge by the share of significant gains; those in ``beside`` are shown, not judged."""
    verdict = _share_verdict([found.is_significant for found in gains.values() if found])
    return Verdict(number, claim, verdict, _lines({**gains, **(beside or {})}))


def _share_verdict(successes: Sequence[bool]) -> str:
    """Return reproduced if all hold, partly if at least half of them do."""
    if not successes:
        return NO_DATA
    share = sum(successes) / len(successes)
    return REPRODUCED if share == 1 else PARTLY if share >= 0.5 else NOT


def _lines(gains: Mapping[str, Gain | None]) -> tuple[str, ...]:
    return tuple(f"{name}: {found}" for name, found in gains.items() if found)
