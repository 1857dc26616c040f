"""The report as one HTML page that needs nothing but itself."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pu_shift._html import embed_json, fill_template
from pu_shift.paper.claims import NO_DATA, NOT, PARTLY, REPRODUCED, Verdict
from pu_shift.paper.compare import headline
from pu_shift.paper.protocol import STATED, Protocol
from pu_shift.paper.rendering import NOTHING_PRINTED
from pu_shift.paper.settings import BLOCK, CELL, GUIDES, TABLES
from pu_shift.paper.store import HYPER
from pu_shift.paper.style import (
    NEGATIVE_COLOUR,
    POSITIVE_COLOUR,
    STRONGEST_DELTA,
    dataset_marker,
    delta_colour,
    method_colour,
    method_dash,
)
from pu_shift.priors import Condition
from pu_shift.report.ideas import LEVELS, Surfaces
from pu_shift.report.results import Results

ASSETS = Path(__file__).resolve().parent / "assets"
SYMBOLS = {REPRODUCED: "✓", PARTLY: "◐", NOT: "✗", NO_DATA: "–"}
_HYPER_NAMES = dict(zip(HYPER, ("width", "λ", "steps")))
_NONE = "–"


def render(results: Results, condition: Condition, surfaces: Surfaces | None = None) -> str:
    """Return the page.

    Parameters
    ----------
    results : Results
        From :func:`pu_shift.report.results.read_results`.
    condition : Condition
        Where the explorer's sliders stand at first.
    surfaces : Surfaces, optional
        The banana data's surfaces; without them the page has no pictures of them.

    Returns
    -------
    str
        HTML with its styles, its script and its data inside.

    Examples
    --------
    >>> from pu_shift.paper.compare import compare, summarize
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> trials = pd.DataFrame([{**cell, "trial": i, "accuracy": 70.0 + i} for i in range(3)])
    >>> results = Results({1: compare(summarize(trials))}, {1: trials}, [], [], [])
    >>> "71.0" in render(results, Condition(0.3, 0.5))
    True
    """
    parts = {
        "style": _asset("page.css"),
        "script": _asset("page.js"),
        "data": embed_json(page_data(results, condition, surfaces)),
        "headline": _headline(results),
        "filters": _filters(results),
        "tables": _tables(results),
        "heat_map": _heat_map(results),
        "agreement": _agreement(results),
        "claims": "".join(_claim(ours, printed) for ours, printed in results.claims),
        "protocol": _protocols(results.runs),
        "versions": _versions(results.runs),
        "positive": POSITIVE_COLOUR,
        "negative": NEGATIVE_COLOUR,
    }
    return fill_template(_asset("page.html"), parts)


def page_data(
    results: Results, condition: Condition, surfaces: Surfaces | None = None
) -> dict[str, Any]:
    """Return the data that the page's script works on.

    Parameters
    ----------
    results, condition, surfaces
        As for :func:`render`.

    Returns
    -------
    dict
        Ready for JSON: ``methods``, ``datasets``, ``cells``, ``curves``, ``condition``
        and ``banana``.

    Examples
    --------
    >>> from pu_shift.paper.compare import compare, summarize
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> trials = pd.DataFrame([{**cell, "trial": i, "accuracy": 70.0 + i} for i in range(3)])
    >>> results = Results({1: compare(summarize(trials))}, {1: trials}, [], [], [])
    >>> page_data(results, Condition(0.3, 0.5))["cells"][0]["accuracies"]
    [70.0, 71.0, 72.0]
    """
    return {
        "methods": [
            {"name": name, "colour": method_colour(name), "dash": list(method_dash(name))}
            for name in _names(results, "method")
        ],
        "datasets": [
            {"name": name, "marker": dataset_marker(name)} for name in _names(results, "dataset")
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


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _number(value: Any, digits: int) -> float | None:
    return None if pd.isna(value) else round(float(value), digits)


def _numbered(results: Results) -> pd.DataFrame:
    """Return the cells of all tables, each with the ``number`` the script knows it by."""
    comparison = results.comparison
    return comparison.assign(number=range(len(comparison)))


def _printed(comparison: pd.DataFrame) -> pd.DataFrame:
    return comparison[comparison["paper_mean"].notna()]


def _names(results: Results, column: str) -> list[str]:
    return list(dict.fromkeys(results.comparison[column]))


def _cells(results: Results) -> list[dict[str, Any]]:
    """Return every cell as the page's script knows it; its position is its ``number``."""
    trials = {
        (number, *key): rows.sort_values("trial")
        for number, frame in results.trials.items()
        for key, rows in frame.groupby(CELL, sort=False)
    }
    cells = []
    for row in results.comparison.itertuples():
        key = (row.table, *(getattr(row, name) for name in CELL))
        rows = trials[key]
        chosen = {
            label: chosen_values(rows[name])
            for name, label in _HYPER_NAMES.items()
            if name in rows and rows[name].notna().any()
        }
        cells.append(
            {
                "table": row.table,
                "prior": row.prior,
                "test_prior": row.test_prior,
                "given_prior": row.given_prior,
                "dataset": row.dataset,
                "method": row.method,
                "mean": _number(row.mean, 4),
                "se": _number(row.se, 4),
                "paper_mean": _number(row.paper_mean, 4),
                "paper_se": _number(row.paper_se, 4),
                "delta": _number(row.delta, 4),
                "p": _number(row.p_value, 5),
                "consistent": None if pd.isna(row.consistent) else bool(row.consistent),
                "accuracies": [round(float(value), 4) for value in rows["accuracy"]],
                "chosen": chosen,
            }
        )
    return cells


def chosen_values(values: pd.Series) -> str:
    """Condense what the trials of a cell chose for one hyper-parameter.

    Parameters
    ----------
    values : Series
        One value per trial; missing ones are left out.

    Returns
    -------
    str
        Each value with its count, the most frequent first; or, if there are
        more than four, their range and median.

    Examples
    --------
    >>> chosen_values(pd.Series([0.01, 0.1, 0.01])), chosen_values(pd.Series([500.0, 500.0]))
    ('0.01 (2×), 0.1 (1×)', '500')
    >>> chosen_values(pd.Series([0.41, 0.42, 0.43, 0.44, 0.48]))
    '0.41 to 0.48, median 0.43'
    """
    values = values.dropna()
    counts = values.value_counts()
    if len(counts) == 1:
        return f"{counts.index[0]:.3g}"
    if len(counts) <= 4:
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(f"{value:.3g} ({count}×)" for value, count in ordered)
    return f"{values.min():.3g} to {values.max():.3g}, median {values.median():.3g}"


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
    # Away from zero, so that no sign is lost.
    integers = (np.sign(scaled) * np.ceil(np.abs(scaled))).astype(dtype)
    return {
        "unit": max(top, 1e-12) / largest,
        "bits": np.dtype(dtype).itemsize * 8,
        "base64": base64.b64encode(integers.tobytes()).decode("ascii"),
    }


def _headline(results: Results) -> str:
    figures = results.headline
    numbers = ", ".join(map(str, results.tables))
    tiles = [("tables", f"{len(results.tables)} of {len(TABLES)}", f"Table {numbers}")]
    if figures is None:
        tiles.append(("compared cells", "0", NOTHING_PRINTED))
    else:
        compared = f"of {figures.cells} cells with a printed number"
        tiles += [
            ("consistent", _percent(figures.consistent), f"{compared} (Welch t-test, 5 %)"),
            ("noise ceiling", _percent(figures.ceiling), "for the authors' own protocol run again"),
            ("mean |Δ|", f"{figures.mean_abs_delta:.2f}", "points from the printed means"),
            ("boldface agrees", _percent(figures.bold_agreement), "of cells in whole rows"),
        ]
    return "".join(
        f'<div class="tile"><dt>{escape(name)}</dt><dd><strong>{escape(value)}</strong> '
        f"<span>{escape(note)}</span></dd></div>"
        for name, value, note in tiles
    )


def _percent(share: float) -> str:
    return _NONE if math.isnan(share) else f"{100 * share:.1f} %"


def _filters(results: Results) -> str:
    groups = {
        "table": [(str(number), f"Table {number}") for number in results.tables],
        "dataset": [(name, name) for name in _names(results, "dataset")],
        "method": [(name, name) for name in _names(results, "method")],
    }
    return "".join(
        f'<fieldset data-filter="{kind}"><legend>{kind}s</legend>'
        + "".join(
            f'<label class="chip"><input type="checkbox" value="{escape(value)}" checked>'
            f"<span>{escape(label)}</span></label>"
            for value, label in options
        )
        + "</fieldset>"
        for kind, options in groups.items()
    )


def _tables(results: Results) -> str:
    sections = []
    for number, frame in _numbered(results).groupby("table", sort=False):
        methods = list(dict.fromkeys(frame["method"]))
        setting = TABLES[number]
        heads = "".join(
            f'<th scope="col" data-col="{escape(name)}">{_swatch(name)}{escape(name)}</th>'
            for name in methods
        )
        bodies = []
        for block in setting.blocks:
            part = frame[(frame[BLOCK] == list(block)).all(axis=1)]
            if part.empty:
                continue
            rows = "".join(
                f'<tr><th scope="row">{escape(dataset)}</th>'
                + "".join(_cell(row) for row in cells.itertuples())
                + "</tr>"
                for dataset, cells in _padded(part, methods)
            )
            bodies.append(
                f'<tbody><tr class="block"><th scope="rowgroup" colspan="{len(methods) + 1}">'
                f"<span>{escape(_block_title(block))}</span></th></tr>{rows}</tbody>"
            )
        sections.append(
            f'<section class="table" id="table{number}" data-table="{number}">'
            f'<h3 id="title{number}">{escape(setting.title)}</h3>'
            f'<div class="scroll" role="region" aria-labelledby="title{number}" tabindex="0">'
            f'<table class="cells" aria-labelledby="title{number}"><caption><span>Accuracy in '
            "percent, mean (standard error). Upper line: ours; lower line: the paper.</span>"
            f'</caption><thead><tr><th scope="col">dataset</th>{heads}</tr></thead>'
            f"{''.join(bodies)}</table></div></section>"
        )
    return "".join(sections)


def _padded(part: pd.DataFrame, methods: list[str]) -> Iterable[tuple[str, pd.DataFrame]]:
    """Yield the rows of a block, each with a cell for every method, missing ones empty."""
    for dataset, cells in part.groupby("dataset", sort=False):
        yield dataset, cells.set_index("method").reindex(methods).reset_index()


def _block_title(block: Any) -> str:
    if block.prior == block.test_prior == block.given_prior:
        return f"π = π′ = {block.given_prior:g}"
    notes = {block.test_prior: " = π′: the right one", block.prior: " = π: ordinary PU"}
    return f"given prior {block.given_prior:g}{notes.get(block.given_prior, '')}"


def _swatch(method: str) -> str:
    return f'<span class="swatch" style="background:{method_colour(method)}"></span>'


def _cell(row: Any) -> str:
    column = f'data-col="{escape(row.method)}"'
    if pd.isna(row.number):
        return f"<td {column}>{_NONE}</td>"
    printed = ""
    if not pd.isna(row.paper_mean):
        printed = (
            f'<span class="paper">{_mean(row.paper_mean, row.paper_se, row.paper_bold)}</span>'
        )
    return (
        f'<td {column} data-cell="{int(row.number)}"><button type="button" class="cell">'
        f'<span class="ours">{_mean(row.mean, row.se, row.bold)}{_mark(row)}</span>{printed}'
        "</button></td>"
    )


def _mark(row: Any) -> str:
    return "" if pd.isna(row.consistent) or row.consistent else ' <span class="mark">≠</span>'


def _mean(mean: float, se: float, is_bold: Any) -> str:
    text = f"{mean:.1f}"
    return f"<b>{text}</b> ({_se(se)})" if is_bold else f"{text} ({_se(se)})"


def _se(se: float) -> str:
    return _NONE if pd.isna(se) else f"{se:.1f}"


def _heat_map(results: Results) -> str:
    printed = _printed(_numbered(results))
    if printed.empty:
        return f"<p>{NOTHING_PRINTED}</p>"
    blocks = list(dict.fromkeys(printed[["table", *BLOCK]].itertuples(index=False, name=None)))
    names = {
        block: f"T{block[0]} {block[1]:g}→{block[2]:g}, given {block[3]:g}" for block in blocks
    }
    heads = "".join(
        f'<th scope="col" data-col="{escape(names[block])}"><span>T{block[0]}</span> '
        f"<span>{block[1]:g}→{block[2]:g}</span> <span>{block[3]:g}</span></th>"
        for block in blocks
    )
    bodies = []
    for method, part in printed.groupby("method", sort=False):
        rows = []
        for dataset, cells in part.groupby("dataset", sort=False):
            by_block = {
                (row.table, row.prior, row.test_prior, row.given_prior): row
                for row in cells.itertuples(index=False)
            }
            rows.append(
                f'<tr><th scope="row">{escape(dataset)}</th>'
                + "".join(_heat_cell(by_block.get(block), names[block]) for block in blocks)
                + "</tr>"
            )
        bodies.append(
            f'<tbody><tr class="block"><th scope="rowgroup" colspan="{len(blocks) + 1}">'
            f"<span>{_swatch(method)}{escape(method)}</span></th></tr>{''.join(rows)}</tbody>"
        )
    key = "".join(
        f'<span style="background:{delta_colour(delta)}">{delta:+g}</span>'
        for delta in np.linspace(-STRONGEST_DELTA, STRONGEST_DELTA, 9)
    )
    return (
        f'<p class="key">points <span class="ramp">{key}</span></p>'
        '<div class="scroll" role="region" aria-labelledby="heat-title" tabindex="0">'
        '<table class="cells heat" aria-labelledby="heat-title"><caption><span>Ours less the '
        "paper in points; ≠ marks a cell that is not consistent. Columns: table, π→π′, given "
        f'prior.</span></caption><thead><tr><th scope="col">dataset</th>{heads}</tr></thead>'
        f"{''.join(bodies)}</table></div>"
    )


def _heat_cell(row: Any, column: str) -> str:
    if row is None:
        return f'<td data-col="{escape(column)}">{_NONE}</td>'
    return (
        f'<td data-col="{escape(column)}" data-cell="{int(row.number)}">'
        f'<button type="button" class="cell" style="background:{delta_colour(row.delta)}">'
        f"{round(row.delta, 1) + 0.0:+.1f}{_mark(row)}</button></td>"
    )


def _agreement(results: Results) -> str:
    printed = _printed(results.comparison)
    if printed.empty:
        return f"<p>{NOTHING_PRINTED}</p>"
    datasets = list(dict.fromkeys(printed["dataset"]))
    parts = {
        _swatch(method) + escape(method): part
        for method, part in printed.groupby("method", sort=False)
    }
    parts["all methods"] = printed
    parts.update({f"Table {n}": part for n, part in printed.groupby("table", sort=False)})
    rows = []
    for name, part in parts.items():
        groups = [*(part[part["dataset"] == dataset] for dataset in datasets), part]
        cells = "".join(map(_agreement_cell, groups))
        rows.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in [*datasets, "all datasets"])
    return (
        '<div class="scroll" role="region" aria-labelledby="agreement-title" tabindex="0">'
        '<table class="agreement" aria-labelledby="agreement-title"><caption><span>Share of '
        "consistent cells (bar), their number, the noise ceiling, and the mean |Δ| in points. The "
        "ceiling is the share that a protocol identical to the authors' would get, trials being "
        f"random. Only Tables {GUIDES[0]} to {GUIDES[-1]} guided the choice of the protocol.</span>"
        f'</caption><thead><tr><th scope="col">cells</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _agreement_cell(cells: pd.DataFrame) -> str:
    if cells.empty:
        return f"<td>{_NONE}</td>"
    figures = headline(cells)
    judged = int(cells["consistent"].notna().sum())
    share = 0.0 if math.isnan(figures.consistent) else figures.consistent
    return (
        f'<td><span class="bar"><span style="width:{100 * share:.0f}%"></span></span>'
        f"<b>{_percent(figures.consistent)}</b> <span>{round(share * judged)} of {judged}</span> "
        f"<span>ceiling {_percent(figures.ceiling)}</span> "
        f"<span>|Δ| {figures.mean_abs_delta:.2f}</span></td>"
    )


def _claim(ours: Verdict, printed: Verdict) -> str:
    def column(title: str, verdict: Verdict) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in verdict.evidence)
        kind = verdict.verdict.replace(" ", "-")
        evidence = f"<details><summary>evidence</summary><ul>{lines}</ul></details>"
        return (
            f'<div><p>{title}: <span class="verdict {kind}"><span aria-hidden="true">'
            f"{SYMBOLS[verdict.verdict]}</span> {escape(verdict.verdict)}</span></p>"
            f"{evidence if lines else ''}</div>"
        )

    return (
        f'<li value="{ours.number}"><p class="claim">{escape(ours.claim)}</p>'
        f'<div class="verdicts">{column("our trials", ours)}'
        f"{column('printed tables', printed)}</div></li>"
    )


def _protocols(runs: list[dict[str, Any]]) -> str:
    """Return a table for each distinct protocol."""
    distinct: list[tuple[Mapping[str, Any], list[str]]] = []
    for run in runs:
        for protocol, folders in distinct:
            if protocol == run["protocol"]:
                folders += run["folders"]
                break
        else:
            distinct.append((run["protocol"], list(run["folders"])))
    known, defaults = {item.name: item for item in fields(Protocol)}, Protocol().as_dict()
    tables = []
    for protocol, folders in distinct:
        rows = []
        for name, value in protocol.items():
            origin, why = "not known to this version", ""
            if name in known:
                origin, why = (known[name].metadata[key] for key in ("origin", "why"))
                if value != defaults[name]:
                    origin = "changed"
                    why = f"{json.dumps(defaults[name])} in the protocol of this version: {why}"
            symbol = "■" if origin == STATED else "□"
            rows.append(
                f'<tr role="row"><th scope="row" role="rowheader"><code>{escape(name)}</code></th>'
                f'<td role="cell"><code>{escape(json.dumps(value))}</code></td>'
                f'<td role="cell"><span aria-hidden="true">{symbol}</span> {escape(origin)}</td>'
                f'<td role="cell">{escape(why)}</td></tr>'
            )
        tables.append(
            '<div class="scroll" role="region" aria-label="Protocol" tabindex="0">'
            # On a phone the rows are blocks; the roles keep it a table all the same.
            '<table class="protocol" role="table">'
            f"<caption>Used by {escape(', '.join(folders))}</caption>"
            '<thead><tr><th scope="col">field</th><th scope="col">value</th><th scope="col">'
            'origin</th><th scope="col">reason</th></tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div>"
        )
    return "".join(tables)


def _versions(runs: list[dict[str, Any]]) -> str:
    entries = []
    for run in runs:
        versions = ", ".join(f"{name} {value}" for name, value in (run["versions"] or {}).items())
        command = f"<pre><code>{escape(run['command'])}</code></pre>" if run["command"] else ""
        entries.append(
            f"<h3>{escape(', '.join(run['folders']))}</h3>{command}"
            f"<p>seed {escape(str(run['seed']))}; {escape(versions)}</p>"
        )
    return "".join(entries)
