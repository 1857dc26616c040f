"""A folder of results as a report sees it: tables, claims, curves and what made them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pu_shift.paper.claims import Verdict, judge, printed_cells
from pu_shift.paper.compare import Headline, compare, headline, load_paper_table, summarize
from pu_shift.paper.outputs import printed_order
from pu_shift.paper.settings import TABLES
from pu_shift.paper.store import PathLike, StoreError, read_trials

# Where runs of methods that are in no table lie, beside the tables.
EXTRA_RUNS = "linear"
_CURVE_COLUMNS = ["dataset", "given_prior", "method", "n", "mean", "se"]


@dataclass(frozen=True)
class Curves:
    """Accuracies against the given prior.

    Attributes
    ----------
    title : str
        Where they come from.
    prior, test_prior : float
        The true π and π′.
    summary : DataFrame
        ``dataset``, ``given_prior``, ``method``, ``n``, ``mean`` and ``se``.
    """

    title: str
    prior: float
    test_prior: float
    summary: pd.DataFrame


@dataclass(frozen=True)
class Results:
    """What a folder of results holds.

    Attributes
    ----------
    tables : dict of int to DataFrame
        For each table the columns of its ``summary.csv``, made from the trials.
    trials : dict of int to DataFrame
        The trials of each table.
    claims : list of (Verdict, Verdict)
        Each claim judged from the trials and from the printed tables.
    curves : list of Curves
        Accuracy against the given prior, the study first if there is one.
    runs : list of dict
        What the folder's ``run.json`` files say, each with the names of the
        folders that say the same as ``folders``.
    """

    tables: dict[int, pd.DataFrame]
    trials: dict[int, pd.DataFrame]
    claims: list[tuple[Verdict, Verdict]]
    curves: list[Curves]
    runs: list[dict[str, Any]]

    @property
    def comparison(self) -> pd.DataFrame:
        """The cells of all tables, with the number of the ``table`` in front."""
        frames = [frame.assign(table=number) for number, frame in self.tables.items()]
        joined = pd.concat(frames, ignore_index=True)
        return joined[["table", *(name for name in joined if name != "table")]]

    @property
    def headline(self) -> Headline | None:
        """The agreement over all tables; None if no cell has a printed number."""
        comparison = self.comparison
        return headline(comparison) if comparison["paper_mean"].notna().any() else None


def read_results(folder: PathLike) -> Results:
    """Read every table and study of a folder that a report shows.

    Parameters
    ----------
    folder : path-like
        The folder that holds ``table1`` … ``table7``, or some of them; also
        read, if there are any: ``linear/table1`` …, runs of a method that is
        in no table, and ``robustness``, the study of that name.

    Returns
    -------
    Results
        The results.

    Raises
    ------
    StoreError
        If the folder holds no table, or a file in it cannot be used.

    Examples
    --------
    >>> read_results("no/such/folder")
    Traceback (most recent call last):
    ...
    pu_shift.paper.store.StoreError: no/such/folder is not a folder of results: ...
    """
    folder = Path(folder)
    trials = {number: read_trials(path) for number, path in _tables_of(folder)}
    trials = {number: rows for number, rows in trials.items() if len(rows)}
    if not trials:
        raise StoreError(
            f"{folder} is not a folder of results: it holds no trials in table1 … table7"
        )
    tables = {
        number: compare(printed_order(summarize(rows), TABLES[number]), load_paper_table(number))
        for number, rows in trials.items()
    }
    extra = list(_tables_of(folder / EXTRA_RUNS))
    judged = pd.concat([*trials.values(), *(read_trials(path) for _, path in extra)])
    study = folder / "robustness"
    paths = [path for _, path in (*_tables_of(folder), *extra)]
    return Results(
        tables=tables,
        trials=trials,
        claims=list(zip(judge(judged), judge(printed_cells()))),
        curves=[*_study_curves(study), *_table_curves(tables)],
        runs=_runs([*paths, *([study] if study.exists() else [])], folder),
    )


def _tables_of(folder: Path) -> Iterable[tuple[int, Path]]:
    for number in TABLES:
        if (folder / f"table{number}" / "trials.csv").exists():
            yield number, folder / f"table{number}"


def _table_curves(tables: dict[int, pd.DataFrame]) -> Iterable[Curves]:
    for number, frame in tables.items():
        for (prior, test_prior), part in frame.groupby(["prior", "test_prior"], sort=False):
            if part["given_prior"].nunique() > 1:
                ordered = part.sort_values("given_prior", kind="stable")
                title = f"Table {number}: π = {prior:g}, π′ = {test_prior:g}"
                yield Curves(title, prior, test_prior, ordered[_CURVE_COLUMNS])


def _study_curves(folder: Path) -> Iterable[Curves]:
    path = folder / "summary.csv"
    if not path.exists():
        return
    run = _run(folder)
    try:
        summary = pd.read_csv(path)[_CURVE_COLUMNS]
        prior, test_prior = float(run["prior"]), float(run["test_prior"])
    except (KeyError, TypeError, ValueError):
        raise StoreError(f"{folder} does not hold the robustness study") from None
    yield Curves(f"Study: π = {prior:g}, π′ = {test_prior:g}", prior, test_prior, summary)


def _run(folder: Path) -> dict[str, Any]:
    """Return the content of a ``run.json``."""
    path = folder / "run.json"
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        run = None
    if not isinstance(run, dict) or not isinstance(run.get("protocol"), dict):
        raise StoreError(f"{path} was not written by pu-shift")
    return run


def _runs(paths: Iterable[Path], folder: Path) -> list[dict[str, Any]]:
    """Return what made the results, one entry for all folders that were made alike."""
    runs: list[dict[str, Any]] = []
    for path in paths:
        run = _run(path)
        kept = {name: run.get(name) for name in ("command", "protocol", "seed", "versions")}
        name = path.relative_to(folder).as_posix()
        for known in runs:
            if all(known[field] == value for field, value in kept.items()):
                known["folders"].append(name)
                break
        else:
            runs.append({**kept, "folders": [name]})
    return runs
