"""The report as one HTML page that needs nothing but itself."""

from __future__ import annotations

import base64
import json
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
from pu_shift.paper.rendering import NOTHING_PRINTED, percent
from pu_shift.paper.settings import BLOCK, CELL, GUIDES, TABLES
from pu_shift.paper.store import HYPER
from pu_shift.paper.style import (
    NEGATIVE_COLOUR,
    POSITIVE_COLOUR,
    STRONGEST_DELTA,
    dataset_marker,
    delta_colour,
    delta_text,
    method_colour,
    method_dash,
)
from pu_shift.priors import Condition
from pu_shift.report.ideas import LEVELS, Surfaces
from pu_shift.report.results import Results, headlines

ASSETS = Path(__file__).resolve().parent / "assets"
SYMBOLS = {REPRODUCED: "✓", PARTLY: "◐", NOT: "✗", NO_DATA: "–"}
_HYPER_NAMES = dict(zip(HYPER, ("width", "λ", "steps")))
_NONE = "–"
# The decimals that the page's script gets of each number.
_DECIMALS = {"mean": 4, "se": 4, "paper_mean": 4, "paper_se": 4, "delta": 4, "p_value": 5}


class Html(str):
    """Markup; any other text is escaped where it is put into it."""


def joined(parts: Iterable[Any]) -> Html:
    """Return parts as markup."""
    return Html("".join(x if isinstance(x, Html) else escape(str(x)) for x in parts))


def element(tag: str, *children: Any, **attributes: Any) -> Html:
    """Return an element; in names of attributes ``_`` stands for ``-``, at the end for nothing."""
    names = {name: name.rstrip("_").replace("_", "-") for name in attributes}
    opening = "".join(f' {names[name]}="{escape(str(x))}"' for name, x in attributes.items())
    return Html(f"<{tag}{opening}>{joined(children)}</{tag}>")


def render(results: Results, condition: Condition, surfaces: Surfaces | None = None) -> str:
    """Return the page, with its styles, its script and its data inside."""
    comparison = results.comparison
    # The script knows a cell by its number.
    numbered = comparison.assign(number=range(len(comparison)))
    printed = numbered[numbered["paper_mean"].notna()]
    nothing = element("p", NOTHING_PRINTED)
    parts = {
        "style": _asset("page.css"),
        "script": _asset("page.js"),
        "data": embed_json(page_data(results, condition, surfaces)),
        "headline": nothing if printed.empty else _headlines(comparison),
        "filters": _filters(comparison),
        "tables": _tables(numbered),
        "heat_map": nothing if printed.empty else _heat_map(printed),
        "agreement": nothing if printed.empty else _agreement(printed),
        "claims": joined(_claim(ours, theirs) for ours, theirs in results.claims),
        "protocol": _protocols(results.runs),
        "versions": _versions(results.runs),
        "positive": POSITIVE_COLOUR,
        "negative": NEGATIVE_COLOUR,
    }
    return fill_template(_asset("page.html"), parts)


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


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


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
    # Away from zero, so that no sign is lost.
    integers = (np.sign(scaled) * np.ceil(np.abs(scaled))).astype(dtype)
    return {
        "unit": max(top, 1e-12) / largest,
        "bits": np.dtype(dtype).itemsize * 8,
        "base64": base64.b64encode(integers.tobytes()).decode("ascii"),
    }


def _headlines(comparison: pd.DataFrame) -> Html:
    parts = []
    for name, figures in headlines(comparison).items():
        compared = f"of {figures.cells} cells with a printed number (Welch t-test, 5 %)"
        tiles = (
            ("consistent", percent(figures.consistent), compared),
            ("noise ceiling", percent(figures.ceiling), "for the authors' own protocol run again"),
            ("mean |Δ|", f"{figures.mean_abs_delta:.2f}", "points from the printed means"),
            ("boldface agrees", percent(figures.bold_agreement), "of cells in whole rows"),
        )
        shown = (_tile(title, element("strong", value), note) for title, value, note in tiles)
        parts += [element("h3", name), element("dl", *shown, class_="tiles")]
    return joined(parts)


def _tile(title: str, value: Html, note: str) -> Html:
    described = element("dd", value, " ", element("span", note))
    return element("div", element("dt", title), described, class_="tile")


def _filters(comparison: pd.DataFrame) -> Html:
    groups = []
    for kind in ("table", "dataset", "method"):
        chips = []
        for value in comparison[kind].unique():
            box = Html(f'<input type="checkbox" value="{escape(str(value))}" checked>')
            label = f"Table {value}" if kind == "table" else value
            chips.append(element("label", box, element("span", label), class_="chip"))
        legend = element("legend", f"{kind}s")
        groups.append(element("fieldset", legend, *chips, data_filter=kind))
    return joined(groups)


def _tables(cells: pd.DataFrame) -> Html:
    sections = []
    caption = "Accuracy in percent, mean (standard error). Upper line: ours; lower line: the paper."
    for number, frame in cells.groupby("table", sort=False):
        methods = list(frame["method"].unique())
        heads = [_head(_swatch(name), name, data_col=name) for name in methods]
        bodies = []
        for block in TABLES[number].blocks:
            part = frame[(frame[BLOCK] == list(block)).all(axis=1)]
            rows = [
                # A cell for every method; missing ones are empty.
                _row(dataset, map(_cell, one.set_index("method").reindex(methods).itertuples()))
                for dataset, one in part.groupby("dataset", sort=False)
            ]
            if rows:
                bodies.append(_body([_block_title(block)], len(methods), rows))
        title = f"title{number}"
        table = _table("cells", title, caption, [_head("dataset"), *heads], bodies)
        heading = element("h3", TABLES[number].title, id=title)
        section = {"class_": "table", "id": f"table{number}", "data_table": number}
        sections.append(element("section", heading, table, **section))
    return joined(sections)


def _table(
    kind: str, title: str, caption: str, heads: Iterable, bodies: Iterable, **more: Any
) -> Html:
    """Return a table that scrolls in itself, named by the element of the id ``title``."""
    named = {"aria_labelledby": title}
    parts = [
        element("caption", element("span", caption)),
        element("thead", element("tr", *heads)),
        *bodies,
    ]
    table = element("table", *parts, class_=kind, **more, **named)
    return element("div", table, class_="scroll", role="region", **named, tabindex="0")


def _head(*children: Any, **attributes: Any) -> Html:
    return element("th", *children, scope="col", **attributes)


def _row(name: Any, cells: Iterable[Html]) -> Html:
    return element("tr", element("th", name, scope="row"), *cells)


def _body(title: Iterable[Any], columns: int, rows: Iterable[Html]) -> Html:
    """Return a block of rows below a title of its own."""
    head = element("th", element("span", *title), scope="rowgroup", colspan=columns + 1)
    return element("tbody", element("tr", head, class_="block"), *rows)


def _block_title(block: Any) -> str:
    if block.prior == block.test_prior == block.given_prior:
        return f"π = π′ = {block.given_prior:g}"
    notes = {block.test_prior: " = π′: the right one", block.prior: " = π: ordinary PU"}
    return f"given prior {block.given_prior:g}{notes.get(block.given_prior, '')}"


def _swatch(method: str) -> Html:
    return element("span", class_="swatch", style=f"background:{method_colour(method)}")


def _cell(row: Any) -> Html:
    if pd.isna(row.number):
        return element("td", _NONE, data_col=row.Index)
    lines = [element("span", _mean(row.mean, row.se, row.bold), _mark(row), class_="ours")]
    if not pd.isna(row.paper_mean):
        printed = _mean(row.paper_mean, row.paper_se, row.paper_bold)
        lines.append(element("span", printed, class_="paper"))
    return _button(row.Index, row.number, lines)


def _button(column: str, number: float, children: Iterable[Any], **attributes: Any) -> Html:
    """Return a cell whose details the script shows."""
    button = element("button", *children, type="button", class_="cell", **attributes)
    return element("td", button, data_col=column, data_cell=int(number))


def _mark(row: Any) -> Html:
    if pd.isna(row.consistent) or row.consistent:
        return Html()
    return joined([" ", element("span", "≠", class_="mark")])


def _mean(mean: float, se: float, is_bold: Any) -> Html:
    text = f"{mean:.1f}"
    error = _NONE if pd.isna(se) else f"{se:.1f}"
    return joined([element("b", text) if is_bold else text, f" ({error})"])


def _heat_map(printed: pd.DataFrame) -> Html:
    keys = ["table", *BLOCK]
    blocks = list(printed[keys].drop_duplicates().itertuples(index=False, name=None))
    labels = {b: (f"T{b[0]}", f"{b[1]:g}→{b[2]:g}", f"{b[3]:g}") for b in blocks}
    names = {block: f"{t} {shift}, given {given}" for block, (t, shift, given) in labels.items()}
    heads = []
    for block in blocks:
        first, *rest = (element("span", label) for label in labels[block])
        spaced = [part for label in rest for part in (" ", label)]
        heads.append(_head(first, *spaced, data_col=names[block]))
    bodies = []
    for method, part in printed.groupby("method", sort=False):
        rows = []
        for dataset, cells in part.groupby("dataset", sort=False):
            by_block = dict(zip(zip(*(cells[key] for key in keys)), cells.itertuples()))
            shown = (_heat_cell(by_block.get(block), names[block]) for block in blocks)
            rows.append(_row(dataset, shown))
        bodies.append(_body([_swatch(method), method], len(blocks), rows))
    ramp = (
        element("span", f"{delta:+g}", style=f"background:{delta_colour(delta)}")
        for delta in np.linspace(-STRONGEST_DELTA, STRONGEST_DELTA, 9)
    )
    key = element("p", "points ", element("span", *ramp, class_="ramp"), class_="key")
    caption = (
        "Ours less the paper in points; ≠ marks a cell that is not consistent. Columns: table, "
        "π→π′, given prior."
    )
    heads = [_head("dataset"), *heads]
    return joined([key, _table("cells heat", "heat-title", caption, heads, bodies)])


def _heat_cell(row: Any, column: str) -> Html:
    if row is None:
        return element("td", _NONE, data_col=column)
    style = f"background:{delta_colour(row.delta)}"
    return _button(column, row.number, [delta_text(row.delta), _mark(row)], style=style)


def _agreement(printed: pd.DataFrame) -> Html:
    datasets = list(printed["dataset"].unique())
    parts: list[tuple[Any, pd.DataFrame]] = [
        (joined([_swatch(method), method]), part)
        for method, part in printed.groupby("method", sort=False)
    ]
    parts.append(("all methods", printed))
    parts += [(f"Table {n}", part) for n, part in printed.groupby("table", sort=False)]
    rows = []
    for name, part in parts:
        groups = [*(part[part["dataset"] == dataset] for dataset in datasets), part]
        rows.append(_row(name, map(_agreement_cell, groups)))
    caption = (
        "Share of consistent cells (bar), their number, the noise ceiling, and the mean |Δ| in "
        "points. The ceiling is the share that a protocol identical to the authors' would get, "
        f"trials being random. Only Tables {GUIDES[0]} to {GUIDES[-1]} guided the choice of the "
        "protocol."
    )
    heads = map(_head, ["cells", *datasets, "all datasets"])
    return _table("agreement", "agreement-title", caption, heads, [element("tbody", *rows)])


def _agreement_cell(cells: pd.DataFrame) -> Html:
    if cells.empty:
        return element("td", _NONE)
    figures = headline(cells)
    judged = int(cells["consistent"].notna().sum())
    share = 0.0 if pd.isna(figures.consistent) else figures.consistent
    return element(
        "td",
        element("span", element("span", style=f"width:{100 * share:.0f}%"), class_="bar"),
        *(element("b", percent(figures.consistent)), " "),
        *(element("span", f"{round(share * judged)} of {judged}"), " "),
        *(element("span", f"ceiling {percent(figures.ceiling)}"), " "),
        element("span", f"|Δ| {figures.mean_abs_delta:.2f}"),
    )


def _claim(ours: Verdict, printed: Verdict) -> Html:
    def column(title: str, verdict: Verdict) -> Html:
        symbol = element("span", SYMBOLS[verdict.verdict], aria_hidden="true")
        kind = f"verdict {verdict.verdict.replace(' ', '-')}"
        shown = element(
            "p", f"{title}: ", element("span", symbol, " ", verdict.verdict, class_=kind)
        )
        lines = [element("li", line) for line in verdict.evidence]
        evidence = element("details", element("summary", "evidence"), element("ul", *lines))
        return element("div", shown, evidence if lines else "")

    columns = column("our trials", ours), column("printed tables", printed)
    claim = element("p", ours.claim, class_="claim")
    return element("li", claim, element("div", *columns, class_="verdicts"), value=ours.number)


def _protocols(runs: list[dict[str, Any]]) -> Html:
    """Return a table for each distinct protocol."""
    distinct: dict[str, tuple[Mapping[str, Any], list[str]]] = {}
    for run in runs:
        text = json.dumps(run["protocol"], sort_keys=True)
        distinct.setdefault(text, (run["protocol"], []))[1].extend(run["folders"])
    tables = []
    for protocol, folders in distinct.values():
        rows = [_protocol_row(name, value) for name, value in protocol.items()]
        heads = map(_head, ("field", "value", "origin", "reason"))
        caption = f"Used by {', '.join(folders)}"
        body = element("tbody", *rows)
        # On a phone the rows are blocks; the roles keep it a table all the same.
        tables.append(_table("protocol", "protocol-title", caption, heads, [body], role="table"))
    return joined(tables)


def _protocol_row(name: str, value: Any) -> Html:
    known = {item.name: item.metadata for item in fields(Protocol)}
    origin, why = "not known to this version", ""
    if name in known:
        origin, why = known[name]["origin"], known[name]["why"]
        default = Protocol().as_dict()[name]
        if value != default:
            origin = "changed"
            why = f"{json.dumps(default)} in the protocol of this version: {why}"
    symbol = element("span", "■" if origin == STATED else "□", aria_hidden="true")
    cells = ([element("code", json.dumps(value))], [symbol, f" {origin}"], [why])
    head = element("th", element("code", name), scope="row", role="rowheader")
    return element("tr", head, *(element("td", *cell, role="cell") for cell in cells), role="row")


def _versions(runs: list[dict[str, Any]]) -> Html:
    entries = []
    for run in runs:
        versions = ", ".join(f"{name} {value}" for name, value in (run["versions"] or {}).items())
        entries.append(element("h3", ", ".join(run["folders"])))
        if run["command"]:
            entries.append(element("pre", element("code", run["command"])))
        entries.append(element("p", f"seed {run['seed']}; {versions}"))
    return joined(entries)
