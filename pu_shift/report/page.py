"""The report as one HTML page that needs nothing but itself.

The template ``assets/page.html`` has the markup; here is what it shows, and the data of its script.
"""

from __future__ import annotations

import base64
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pu_shift._pages import render_page
from pu_shift.paper.claims import NO_DATA, NOT, PARTLY, REPRODUCED
from pu_shift.paper.compare import headline
from pu_shift.paper.figures import (
    NEGATIVE_COLOUR,
    POSITIVE_COLOUR,
    STRONGEST_DELTA,
    dataset_marker,
    delta_colour,
    delta_text,
    method_colour,
    method_dash,
)
from pu_shift.paper.protocol import STATED, Protocol
from pu_shift.paper.settings import BLOCK, CELL, GUIDES, TABLES
from pu_shift.paper.store import HYPER
from pu_shift.paper.tables import NOTHING_PRINTED, percent
from pu_shift.priors import Condition
from pu_shift.report.ideas import LEVELS, Surfaces
from pu_shift.report.results import Results, headlines

ASSETS = Path(__file__).resolve().parent / "assets"
SYMBOLS = {REPRODUCED: "✓", PARTLY: "◐", NOT: "✗", NO_DATA: "–"}
_HYPER_NAMES = dict(zip(HYPER, ("width", "λ", "steps")))
# Decimals of each number in the data of the page's script.
_DECIMALS = {"mean": 4, "se": 4, "paper_mean": 4, "paper_se": 4, "delta": 4, "p_value": 5}
Shown = dict[str, Any]


def render(results: Results, condition: Condition, surfaces: Surfaces | None = None) -> str:
    """Return the page, with its styles, its script and its data inside."""
    comparison = results.comparison
    # The script knows a cell by its number.
    numbered = comparison.assign(number=range(len(comparison)))
    printed = numbered[numbered["paper_mean"].notna()]
    return render_page(
        ASSETS / "page.html",
        data=page_data(results, condition, surfaces),
        nothing=NOTHING_PRINTED if printed.empty else "",
        headlines=headlines(printed) if len(printed) else {},
        filters={kind: list(comparison[kind].unique()) for kind in ("table", "dataset", "method")},
        tables=[_table(number, cells) for number, cells in numbered.groupby("table", sort=False)],
        heat_map=_heat_map(printed),
        agreement=_agreement(printed),
        guides=GUIDES,
        claims=results.claims,
        symbols=SYMBOLS,
        protocols=_protocols(results.runs),
        runs=results.runs,
        percent=percent,
        colour=method_colour,
        positive=POSITIVE_COLOUR,
        negative=NEGATIVE_COLOUR,
    )


def page_data(
    results: Results, condition: Condition, surfaces: Surfaces | None = None
) -> dict[str, Any]:
    """Return the data that the page's script works on, ready for JSON."""
    comparison = results.comparison
    return {
        "methods": [
            {"name": name, "colour": method_colour(name), "dash": list(method_dash(name))}
            for name in comparison["method"].unique()
        ],
        "datasets": [
            {"name": name, "marker": dataset_marker(name)}
            for name in comparison["dataset"].unique()
        ],
        "cells": _cells(results),
        "curves": [
            {
                "title": curves.title,
                "test_prior": curves.test_prior,
                "points": [
                    {
                        "dataset": row.dataset,
                        "method": row.method,
                        "given": row.given_prior,
                        "mean": _number(row.mean, 3),
                        "se": _number(row.se, 3),
                    }
                    for row in curves.summary.itertuples()
                ],
            }
            for curves in results.curves
        ],
        "condition": {
            "prior": condition.prior,
            "test_prior": condition.test_prior,
            "alpha": condition.alpha,
        },
        "banana": None if surfaces is None else _banana(surfaces),
    }


def chosen_values(values: pd.Series) -> str:
    """Condense what the trials of a cell chose: each value with its count, or their range."""
    values = values.dropna()
    counts = values.value_counts()
    if len(counts) == 1:
        return f"{counts.index[0]:.3g}"
    if len(counts) <= 4:
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(f"{value:.3g} ({count}×)" for value, count in ordered)
    return f"{values.min():.3g} to {values.max():.3g}, median {values.median():.3g}"


def _number(value: Any, digits: int) -> float | None:
    return None if pd.isna(value) else round(float(value), digits)


def _cells(results: Results) -> list[dict[str, Any]]:
    """Return every cell as the page's script knows it; its position is its number."""
    trials = {
        (number, *key): rows.sort_values("trial")
        for number, frame in results.trials.items()
        for key, rows in frame.groupby(CELL, sort=False)
    }
    cells = []
    for row in results.comparison.to_dict("records"):
        names = {name: row[name] for name in ("table", *CELL)}
        rows = trials[tuple(names.values())]
        cells.append(
            {
                **names,
                **{name: _number(row[name], digits) for name, digits in _DECIMALS.items()},
                "consistent": None if pd.isna(row["consistent"]) else bool(row["consistent"]),
                "accuracies": [round(float(value), 4) for value in rows["accuracy"]],
                "chosen": {
                    label: chosen_values(rows[name])
                    for name, label in _HYPER_NAMES.items()
                    if name in rows and rows[name].notna().any()
                },
            }
        )
    return cells


def _banana(surfaces: Surfaces) -> dict[str, Any]:
    return {
        "x": [round(float(surfaces.x[i]), 4) for i in (0, -1)],
        "y": [round(float(surfaces.y[i]), 4) for i in (0, -1)],
        "size": len(surfaces.x),
        "prior": surfaces.prior,
        "densities": {
            str(label): _packed(surface, 1.0, "i1") for label, surface in surfaces.densities.items()
        },
        "scores": {
            method: {
                # Only the zero line is drawn: large scores may be cut.
                f"{given:g}": _packed(score, float(np.median(np.abs(score))), "i1")
                for given, score in by_prior.items()
            }
            for method, by_prior in surfaces.scores.items()
        },
        "posteriors": {
            f"{prior:g}": _packed(surface, 2.0, "<i2")
            for prior, surface in surfaces.posteriors.items()
        },
        "rates": {
            f"{prior:g}": [[round(float(value), 4) for value in rate] for rate in rates]
            for prior, rates in surfaces.rates.items()
        },
        "levels": len(LEVELS),
    }


def _packed(surface: np.ndarray, top: float, dtype: str) -> dict[str, Any]:
    """Return a surface as integers in base64, ±``top`` being the largest."""
    largest = np.iinfo(dtype).max
    scaled = np.clip(surface / max(top, 1e-12), -1.0, 1.0) * largest
    # Rounded away from zero, so that no value loses its sign.
    integers = (np.sign(scaled) * np.ceil(np.abs(scaled))).astype(dtype)
    return {
        "unit": max(top, 1e-12) / largest,
        "bits": np.dtype(dtype).itemsize * 8,
        "base64": base64.b64encode(integers.tobytes()).decode("ascii"),
    }


def _table(number: int, cells: pd.DataFrame) -> Shown:
    methods = list(cells["method"].unique())
    blocks = []
    for block in TABLES[number].blocks:
        part = cells[(cells[BLOCK] == list(block)).all(axis=1)]
        rows = {
            # A cell for every method; missing ones are empty.
            dataset: [_cell(cell) for cell in one.set_index("method").reindex(methods).itertuples()]
            for dataset, one in part.groupby("dataset", sort=False)
        }
        if rows:
            blocks.append({"title": _block_title(block), "rows": rows})
    return {"number": number, "title": TABLES[number].title, "methods": methods, "blocks": blocks}


def _block_title(block: Any) -> str:
    if block.prior == block.test_prior == block.given_prior:
        return f"π = π′ = {block.given_prior:g}"
    notes = {block.test_prior: " = π′: the right one", block.prior: " = π: ordinary PU"}
    return f"given prior {block.given_prior:g}{notes.get(block.given_prior, '')}"


def _cell(row: Any) -> Shown:
    """Return a cell of a table, whose Index is the method; empty ones have no number."""
    if pd.isna(row.number):
        return {"column": row.Index, "number": None}
    lines = {"ours": (row.mean, row.se, row.bold)}
    if not pd.isna(row.paper_mean):
        lines["paper"] = (row.paper_mean, row.paper_se, row.paper_bold)
    return {
        "column": row.Index,
        "number": int(row.number),
        "lines": [
            (kind, f"{mean:.1f}", _error(se), bold) for kind, (mean, se, bold) in lines.items()
        ],
        "differs": _differs(row),
    }


def _error(se: float) -> str:
    return "–" if pd.isna(se) else f"{se:.1f}"


def _differs(row: Any) -> bool:
    return not (pd.isna(row.consistent) or row.consistent)


def _heat_map(printed: pd.DataFrame) -> Shown:
    keys = ["table", *BLOCK]
    blocks = list(printed[keys].drop_duplicates().itertuples(index=False, name=None))
    labels = {b: (f"T{b[0]}", f"{b[1]:g}→{b[2]:g}", f"{b[3]:g}") for b in blocks}
    names = {block: f"{t} {shift}, given {given}" for block, (t, shift, given) in labels.items()}
    methods: dict[str, dict[str, list[Shown]]] = {}
    for (method, dataset), cells in printed.groupby(["method", "dataset"], sort=False):
        by_block = dict(zip(zip(*(cells[key] for key in keys)), cells.itertuples()))
        methods.setdefault(method, {})[dataset] = [
            _heat_cell(by_block.get(block), names[block]) for block in blocks
        ]
    steps = np.linspace(-STRONGEST_DELTA, STRONGEST_DELTA, 9)
    return {
        "ramp": [(f"{delta:+g}", delta_colour(delta)) for delta in steps],
        "columns": [(names[block], labels[block]) for block in blocks],
        "methods": methods,
    }


def _heat_cell(row: Any, column: str) -> Shown:
    if row is None:
        return {"column": column, "number": None}
    shown = {"text": delta_text(row.delta), "colour": delta_colour(row.delta)}
    return {"column": column, "number": int(row.number), **shown, "differs": _differs(row)}


def _agreement(printed: pd.DataFrame) -> Shown:
    """Return the agreement with the paper per method and table, on each dataset and on all."""
    datasets = list(printed["dataset"].unique())
    parts: list[tuple[str, pd.DataFrame]] = list(printed.groupby("method", sort=False))
    parts += [("all methods", printed)]
    parts += [(f"Table {n}", part) for n, part in printed.groupby("table", sort=False)]
    rows = []
    for name, part in parts:
        groups = [*(part[part["dataset"] == dataset] for dataset in datasets), part]
        rows.append((name, [_agreement_cell(group) for group in groups]))
    return {"datasets": datasets, "methods": list(printed["method"].unique()), "rows": rows}


def _agreement_cell(cells: pd.DataFrame) -> Shown | None:
    if cells.empty:
        return None
    figures = headline(cells)
    share = 0.0 if pd.isna(figures.consistent) else figures.consistent
    judged = int(cells["consistent"].notna().sum())
    return {"figures": figures, "share": share, "judged": judged, "found": round(share * judged)}


def _protocols(runs: list[dict[str, Any]]) -> list[Shown]:
    """Return each distinct protocol, with the folders that used it."""
    distinct: dict[str, Shown] = {}
    for run in runs:
        rows = [_protocol_row(name, value) for name, value in run["protocol"].items()]
        text = json.dumps(run["protocol"], sort_keys=True)
        distinct.setdefault(text, {"rows": rows, "folders": []})["folders"] += run["folders"]
    return list(distinct.values())


def _protocol_row(name: str, value: Any) -> Shown:
    known = {item.name: item.metadata for item in fields(Protocol)}
    origin, why = "not known to this version", ""
    if name in known:
        origin, why = known[name]["origin"], known[name]["why"]
        default = Protocol().as_dict()[name]
        if value != default:
            origin = "changed"
            why = f"{json.dumps(default)} in the protocol of this version: {why}"
    symbol = "■" if origin == STATED else "□"
    return {
        "name": name,
        "value": json.dumps(value),
        "symbol": symbol,
        "origin": origin,
        "why": why,
    }
