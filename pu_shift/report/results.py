"""A folder of results as a report sees it: tables, claims, curves and what made them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from pu_shift._checks import one_line, open_unit
from pu_shift.paper.claims import Verdict, judge, printed_cells
from pu_shift.paper.compare import Headline, compare, headline, load_paper_table, summarize
from pu_shift.paper.protocol import Protocol, load_protocol
from pu_shift.paper.settings import DATASETS, GUIDES, METHODS, TABLES
from pu_shift.paper.store import StoreError, read_trials
from pu_shift.paper.tables import printed_order

# The folder with runs of methods that are in none of the tables.
EXTRA_RUNS = "linear"
_POINT = ["dataset", "given_prior", "method"]
_CURVE = [*_POINT, "n", "mean", "se"]


@dataclass(frozen=True)
class Curves:
    """Accuracies against the given prior; the summary has ``mean`` and ``se`` of each point."""

    title: str
    test_prior: float
    summary: pd.DataFrame


@dataclass(frozen=True)
class Results:
    """What a folder of results holds."""

    tables: dict[int, pd.DataFrame]  # the columns of summary.csv, made from the trials
    trials: dict[int, pd.DataFrame]
    claims: list[tuple[Verdict, Verdict]]  # from our trials and from the printed tables
    curves: list[Curves]  # the study first, if there is one
    runs: list[dict[str, Any]]  # of run.json, with the folders that share it

    @property
    def comparison(self) -> pd.DataFrame:
        """The cells of all tables, with the number of the ``table`` in front."""
        frames = [frame.assign(table=number) for number, frame in self.tables.items()]
        joined = pd.concat(frames, ignore_index=True)
        return joined[["table", *(name for name in joined if name != "table")]]


def headlines(comparison: pd.DataFrame) -> dict[str, Headline]:
    """Return the agreement out of sample, in sample and over all, as far as they are there."""
    printed = comparison[comparison["paper_mean"].notna()]
    guides = printed["table"].isin(GUIDES)
    parts = {", out of sample": printed[~guides], ", which guided the protocol": printed[guides]}
    parts = {name: part for name, part in parts.items() if len(part)}
    if len(parts) > 1:
        parts[""] = printed
    return {_numbers(part["table"]) + name: headline(part) for name, part in parts.items()}


def _numbers(tables: Iterable[int]) -> str:
    first, *rest = sorted(set(tables))
    if not rest:
        return f"Table {first}"
    if rest[-1] - first == len(rest):
        return f"Tables {first}–{rest[-1]}"
    return f"Tables {', '.join(map(str, (first, *rest)))}"


def read_results(folder: str | os.PathLike[str]) -> Results:
    """Read ``table1`` … ``table7``, ``linear/table1`` … and ``robustness``, as far as there."""
    folder = Path(folder)
    paths = dict(_tables_of(folder))
    trials = {number: read_trials(path) for number, path in paths.items()}
    trials = {number: rows for number, rows in trials.items() if len(rows)}
    if not trials:
        raise StoreError(
            f"{folder} is not a folder of results: it holds no trials in table1 … table7"
        )
    tables = {
        number: compare(printed_order(summarize(rows), TABLES[number]), load_paper_table(number))
        for number, rows in trials.items()
    }
    extra = [path for _, path in _tables_of(folder / EXTRA_RUNS)]
    judged = pd.concat([*trials.values(), *map(read_trials, extra)])
    study = folder / "robustness"
    studies = [study] if (study / "trials.csv").exists() else []
    return Results(
        tables=tables,
        trials=trials,
        claims=list(zip(judge(judged), judge(printed_cells()))),
        curves=[*map(_study_curves, studies), *_table_curves(tables)],
        runs=_runs([*paths.values(), *extra, *studies], folder),
    )


def run_protocol(run: Mapping[str, Any]) -> Protocol:
    """Return the protocol of a run, without fields that this version does not know."""
    known = {item.name for item in fields(Protocol)}
    return load_protocol({name: run["protocol"][name] for name in known & set(run["protocol"])})


def _tables_of(folder: Path) -> Iterable[tuple[int, Path]]:
    for number in TABLES:
        path = folder / f"table{number}"
        if any((path / name).exists() for name in ("run.json", "trials.csv")):
            yield number, path


def _table_curves(tables: dict[int, pd.DataFrame]) -> Iterable[Curves]:
    for number, frame in tables.items():
        for (prior, test_prior), part in frame.groupby(["prior", "test_prior"], sort=False):
            if part["given_prior"].nunique() > 1:
                ordered = part.sort_values("given_prior", kind="stable")
                title = f"Table {number}: π = {prior:g}, π′ = {test_prior:g}"
                yield Curves(title, test_prior, ordered[_CURVE])


def _study_curves(folder: Path) -> Curves:
    run = _run(folder)
    try:
        prior, test_prior = (open_unit(name, run.get(name)) for name in ("prior", "test_prior"))
        trials = pd.read_csv(folder / "trials.csv", dtype=dict.fromkeys(("dataset", "method"), str))
        values = trials.groupby(_POINT)["value"]
    except (KeyError, ValueError):
        raise StoreError(f"{folder} does not hold the robustness study") from None
    summary = values.agg(n="count", mean="mean", se="sem").reset_index()
    rank = {name: place for place, name in enumerate((*DATASETS, *METHODS))}

    def in_printed_order(column: pd.Series) -> pd.Series:
        return column if column.name == "given_prior" else column.map(rank).fillna(len(rank))

    summary = summary.sort_values(["dataset", "method", "given_prior"], key=in_printed_order)
    return Curves(f"Study: π = {prior:g}, π′ = {test_prior:g}", test_prior, summary)


def _run(folder: Path) -> dict[str, Any]:
    """Return the content of a ``run.json``, if it holds a protocol."""
    path = folder / "run.json"
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        run_protocol(run)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} was not written by pu-shift: {one_line(error)}") from None
    return run


def _runs(paths: Iterable[Path], folder: Path) -> list[dict[str, Any]]:
    """Return the distinct runs that made the results, each with its folders."""
    runs: list[dict[str, Any]] = []
    for path in paths:
        run = _run(path)
        kept = {name: run.get(name) for name in ("command", "protocol", "seed", "versions")}
        same = [known for known in runs if all(known[name] == kept[name] for name in kept)]
        if not same:
            runs.append({**kept, "folders": []})
        (same or runs)[-1]["folders"].append(path.relative_to(folder).as_posix())
    return runs
