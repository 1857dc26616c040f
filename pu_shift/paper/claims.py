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

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from pu_shift.paper.compare import LEAST_SE, LEVEL, PAPER_TRIALS, load_paper_table, welch
from pu_shift.paper.settings import CELL, EXTRA_METHODS, METHODS, ROW, TABLES, TRIAL
from pu_shift.paper.store import PathLike, StoreError, read_trials

REPRODUCED, PARTLY, NOT, NO_DATA = "reproduced", "partly", "not", "no data"
RATIO_UP, RATIO_PU, *RISK_METHODS = METHODS
(RATIO_LINEAR,) = EXTRA_METHODS
LINEAR, KERNEL = ("DH-Lin", "Sq-Lin"), ("DH-Ker", "Sq-Ker")
POPULATION = ["dataset", "prior"]
# What the words of the paper are taken to mean.
ALMOST_ALL = 0.9  # share of cells
SUBSTANTIAL = 5.0  # points of accuracy


@dataclass(frozen=True)
class Verdict:
    """The judgement on one claim.

    Parameters
    ----------
    number : int
        Which claim.
    claim : str
        What the paper says.
    verdict : str
        ``reproduced``, ``partly``, ``not`` or ``no data``.
    evidence : tuple of str
        The statistics that decided, one per line.
    """

    number: int
    claim: str
    verdict: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gain:
    """How much one group of cells is ahead of another.

    Parameters
    ----------
    pairs : int
        The number of pairs of cells.
    ahead, significantly_ahead, significantly_behind : float
        The shares of pairs with a positive, a significantly positive and a
        significantly negative difference.
    mean, se, p_value : float
        The mean difference in points, its standard error, and the one-sided
        probability of one this large if there were none.
    """

    pairs: int
    ahead: float
    significantly_ahead: float
    significantly_behind: float
    mean: float
    se: float
    p_value: float

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
    """Measure how much the cells of one frame are ahead of their partners in another.

    Parameters
    ----------
    better, worse : DataFrame
        Rows with ``trial`` and ``accuracy``, or printed cells with ``mean`` and ``se``.
    pair_by : sequence of str
        The columns that name a pair; ``dataset`` and ``prior`` must be among them.

    Returns
    -------
    Gain or None
        The differences; None if there is no pair with at least two trials.

    Examples
    --------
    >>> row = dict(prior=0.3, dataset="susy", se=0.5)
    >>> better, worse = (pd.DataFrame([{**row, "mean": mean}]) for mean in (75.0, 70.0))
    >>> print(gain(better, worse, ["prior", "dataset"]))
    +5.0 ± 0.7 points (p < 0.001), ahead in 100% of 1 pairs (100% significantly, 0%
    significantly behind)
    """
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
    """Return difference, standard error and degrees of freedom of each pair of printed cells."""
    sample, other = (
        [pairs[name + suffix] for name in ("mean", "se")] + [PAPER_TRIALS]
        for suffix in ("", "_worse")
    )
    _, df = welch(*sample, *other)
    se = np.hypot(sample[1].clip(lower=LEAST_SE), other[1].clip(lower=LEAST_SE))
    return pairs.assign(delta=sample[0] - other[0], se=se, df=df)


def _pooled(parts: pd.DataFrame) -> dict[str, float]:
    """Return the mean of independent differences, with Satterthwaite's degrees of freedom."""
    variance = parts["se"] ** 2
    return {
        "delta": float(parts["delta"].mean()),
        "se": float(np.sqrt(variance.sum()) / len(parts)),
        "df": float(variance.sum() ** 2 / (variance**2 / parts["df"]).sum()),
    }


def shift_helps(data: pd.DataFrame) -> Verdict:
    """Judge claim 1: taking the shift into account improves every algorithm.

    For each algorithm, the accuracy with the test prior given is compared with
    that of ordinary PU classification (training prior given), over the datasets
    and the pairs of priors with a shift. Reproduced if every algorithm's mean
    gain is significant, partly if at least half are.

    Parameters
    ----------
    data : DataFrame
        Trials or printed cells.

    Returns
    -------
    Verdict
        The judgement.

    Examples
    --------
    >>> shift_helps(printed_cells()).verdict
    'reproduced'
    """
    shifted = data[data["prior"] != data["test_prior"]]
    informed = shifted[shifted["given_prior"] == shifted["test_prior"]]
    ordinary = shifted[shifted["given_prior"] == shifted["prior"]]
    pair_by = ["prior", "test_prior", "dataset", "method"]
    gains = {
        method: gain(_of(informed, method), _of(ordinary, method), pair_by) for method in METHODS
    }
    claim = "taking the shift into account improves every algorithm"
    return _judged(1, claim, gains)


def pu_beats_up(data: pd.DataFrame) -> Verdict:
    """Judge claim 2: p/u uLSIF outperforms u/p uLSIF in almost all cases.

    Reproduced if the mean gain is significant and p/u is ahead in at least 90 %
    of the cells, significantly in more than half; partly if the mean gain is
    significant and p/u is ahead in more than half.

    Parameters
    ----------
    data : DataFrame
        Trials or printed cells.

    Returns
    -------
    Verdict
        The judgement.

    Examples
    --------
    >>> pu_beats_up(printed_cells()).verdict
    'reproduced'
    """
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
    """Judge claim 3: p/u uLSIF is more robust to a wrong given prior than risk minimization.

    For each risk minimizer, its loss of accuracy from the right to a wrong given
    prior is compared with that of p/u uLSIF. Reproduced if p/u loses
    significantly less than every one, partly if than at least half. The
    accuracies under a wrong prior are shown beside it: a method that is no
    better than guessing has nothing to lose.

    Parameters
    ----------
    data : DataFrame
        Trials or printed cells.

    Returns
    -------
    Verdict
        The judgement.

    Examples
    --------
    >>> len(pu_is_robust(printed_cells()).evidence)
    8
    """
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
    beside = {
        f"(accuracy of p/u over {method} under a wrong prior)": gain(
            _of(wrong, RATIO_PU), _of(wrong, method), ROW
        )
        for method in RISK_METHODS
    }
    claim = "p/u uLSIF is more robust to a wrong given prior than risk minimization"
    return _judged(3, claim, gains, beside)


def kernels_trail(data: pd.DataFrame) -> Verdict:
    """Judge claim 4: the kernel models of risk minimization trail the other methods.

    Each is compared with p/u uLSIF and with the linear model of the same loss
    over all cells. Reproduced if all four mean gaps are significant, partly if
    at least two are.

    Parameters
    ----------
    data : DataFrame
        Trials or printed cells.

    Returns
    -------
    Verdict
        The judgement.

    Examples
    --------
    >>> len(kernels_trail(printed_cells()).evidence)
    4
    """
    gains = {
        f"{other} over {kernel}": gain(_of(data, other), _of(data, kernel), ROW)
        for linear, kernel in zip(LINEAR, KERNEL)
        for other in (RATIO_PU, linear)
    }
    return _judged(4, "the Ker models trail in risk minimization", gains)


def linear_ratio_fails(data: pd.DataFrame) -> Verdict:
    """Judge claim 5: linear features fail for density ratios.

    They fail on a dataset where Gaussian kernels make p/u uLSIF better by at least
    5 points in the mean, significantly so. Reproduced if they fail on all datasets,
    partly if on half of them.

    Parameters
    ----------
    data : DataFrame
        Trials or printed cells, with the method ``p/u uLSIF-Lin``.

    Returns
    -------
    Verdict
        The judgement.

    Examples
    --------
    >>> linear_ratio_fails(printed_cells()).verdict
    'no data'
    """
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
    """Judge claim 6: the linear models of risk minimization fail on banana.

    One fails if it is in the mean less than 5 points better than a constant
    guess of the more frequent class, and significantly behind p/u uLSIF.
    Reproduced if both fail, partly if one does.

    Parameters
    ----------
    data : DataFrame
        Trials or printed cells.

    Returns
    -------
    Verdict
        The judgement.

    Examples
    --------
    >>> linear_fails_on_banana(printed_cells()).verdict
    'reproduced'
    """
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
    """Judge the six claims.

    Parameters
    ----------
    data : DataFrame
        The trials of any number of tables, or their printed cells.

    Returns
    -------
    list of Verdict
        One per claim, in the paper's order.

    Examples
    --------
    >>> [verdict.number for verdict in judge(printed_cells())]
    [1, 2, 3, 4, 5, 6]
    """
    return [claim(data) for claim in CLAIMS]


def printed_cells(folder: PathLike | None = None) -> pd.DataFrame:
    """Return the cells of all printed tables.

    Parameters
    ----------
    folder : path-like, optional
        Where they are; the package's own by default.

    Returns
    -------
    DataFrame
        Cells with ``mean`` and ``se``.

    Examples
    --------
    >>> len(printed_cells())
    792
    """
    found = [load_paper_table(number, folder) for number in TABLES]
    tables = [table for table in found if table is not None]
    return pd.concat(tables) if tables else pd.DataFrame(columns=[*CELL, "mean", "se"])


def report(ours: Iterable[Verdict], paper: Iterable[Verdict]) -> str:
    """Render our verdicts, each beside what the printed numbers say.

    Parameters
    ----------
    ours, paper : iterable of Verdict
        From :func:`judge`, on trials and on the printed cells.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> print(report([Verdict(5, "linear features fail", NOT, ("a",))],
    ...              [Verdict(5, "linear features fail", NO_DATA)]))
    Claim 5: linear features fail
      ours: not
        a
      printed tables: no data
    """
    lines = []
    for our, printed in zip(ours, paper):
        lines.append(f"Claim {our.number}: {our.claim}")
        for name, verdict in (("ours", our), ("printed tables", printed)):
            lines.append(f"  {name}: {verdict.verdict}")
            lines += [f"    {line}" for line in verdict.evidence]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the claims from the results folders named on the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line; that of the process by default.

    Returns
    -------
    int
        The exit code: 0, or 2 if a folder cannot be used.

    Examples
    --------
    >>> main(["no/such/folder"])
    2
    """
    parser = argparse.ArgumentParser(description="Judge the paper's claims from results folders.")
    parser.add_argument("folders", nargs="+", metavar="DIR", help="a folder with a trials.csv")
    folders = parser.parse_args(arguments).folders
    try:
        trials = pd.concat([read_trials(folder) for folder in folders], ignore_index=True)
        if trials.duplicated(TRIAL).any():
            first = trials[trials.duplicated(TRIAL)].iloc[0]
            raise StoreError(
                f"two folders hold the same trial: {', '.join(map(str, first[TRIAL]))}"
            )
        printed = printed_cells()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(report(judge(trials), judge(printed)))
    return 0


def _of(data: pd.DataFrame, method: str) -> pd.DataFrame:
    return data[data["method"] == method]


def _constant(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the same cells with the accuracy of guessing the more frequent class."""
    accuracy = 100 * np.maximum(cells["test_prior"], 1 - cells["test_prior"])
    if "accuracy" in cells:
        return cells.assign(accuracy=accuracy)
    return cells.assign(mean=accuracy, se=0.0)


def _share_verdict(successes: Sequence[bool]) -> str:
    if not successes:
        return NO_DATA
    share = sum(successes) / len(successes)
    return REPRODUCED if share == 1 else PARTLY if share >= 0.5 else NOT


def _judged(
    number: int,
    claim: str,
    gains: dict[str, Gain | None],
    beside: dict[str, Gain | None] | None = None,
) -> Verdict:
    verdict = _share_verdict([found.is_significant for found in gains.values() if found])
    return Verdict(number, claim, verdict, _lines({**gains, **(beside or {})}))


def _lines(gains: Mapping[str, Gain | None]) -> tuple[str, ...]:
    return tuple(f"{name}: {found}" for name, found in gains.items() if found)
