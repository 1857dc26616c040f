"""Everything that a run leaves behind beside its trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pu_shift.paper import figures, rendering
from pu_shift.paper.compare import Headline, compare, headline, summarize
from pu_shift.paper.settings import CELL, DATASETS, EXTRA_METHODS, METHODS, TRIAL, TableSetting
from pu_shift.paper.store import PathLike, write_atomic


@dataclass(frozen=True)
class Comparison:
    """A finished table beside the paper's.

    ``frame`` is what ``summary.csv`` holds of the cells that have trials, ``headline`` None if
    no cell has a printed number, ``text`` what the terminal shows.
    """

    frame: pd.DataFrame
    headline: Headline | None
    text: str


def write_outputs(
    folder: PathLike,
    trials: pd.DataFrame,
    setting: TableSetting,
    paper: pd.DataFrame | None = None,
    colour: bool = False,
    missing: Sequence[str] = (),
) -> Comparison:
    """Write ``summary.csv``, ``table.md``, ``table.tex`` and, if there is a paper, a figure.

    Cells of ``missing`` datasets are in ``summary.csv`` with ``n`` = 0, and everything else says
    how many cells it covers. ``ValueError`` if there is no trial of this setting.
    """
    folder = Path(folder)
    # Sorted, for sums round by the order of their terms.
    summary = summarize(trials.sort_values(TRIAL, kind="stable"))
    comparison = compare(printed_order(summary, setting), paper)
    covered = covered_cells([comparison], [setting], missing)
    text = [rendering.text_table(comparison, setting, colour, covered)]
    files: dict[str, str | bytes] = {}
    agreement = None
    if comparison["paper_mean"].notna().any():
        agreement = headline(comparison)
        text += [
            rendering.text_diff(comparison, setting, colour),
            rendering.text_headline(agreement, covered),
        ]
        title = "\n".join(filter(None, [setting.title, covered]))
        files["comparison.png"] = figures.png(figures.comparison_figure(comparison, title))
    else:
        text += [rendering.NOTHING_PRINTED]
        (folder / "comparison.png").unlink(missing_ok=True)
    whole = _with_missing(comparison, setting, missing)
    files["summary.csv"] = whole.to_csv(index=False)
    files["table.md"] = rendering.markdown_table(comparison, setting, agreement, covered)
    files["table.tex"] = rendering.latex_table(comparison, setting, covered)
    for name, content in files.items():
        write_atomic(folder / name, content)
    return Comparison(comparison, agreement, "\n\n".join(text))


def coverage(found: int, total: int, missing: Sequence[str] = (), what: str = "cells") -> str:
    """Say in one line how much of a table is there; nothing if it is whole."""
    if found >= total:
        return ""
    verb = "was" if len(missing) == 1 else "were"
    reason = f"; {', '.join(missing)} {verb} not available" if missing else ""
    return f"{found} of {total} {what}{reason}"


def covered_cells(
    frames: Sequence[pd.DataFrame], settings: Sequence[TableSetting], missing: Sequence[str] = ()
) -> str:
    """Say how many cells of the paper's tables are there, if not all; nothing of other settings."""
    cells = pd.concat(frames)
    known = cells["dataset"].isin(DATASETS) & cells["method"].isin(METHODS)
    total = sum(len(list(setting.cells())) for setting in settings if setting.number)
    return coverage(int(known.sum()), total, [name for name in missing if _absent(name, frames)])


def _absent(name: str, frames: Sequence[pd.DataFrame]) -> bool:
    """Tell whether a table lacks a dataset; an earlier run may have left it."""
    return any(name not in set(frame["dataset"]) for frame in frames)


def _with_missing(
    comparison: pd.DataFrame, setting: TableSetting, missing: Sequence[str]
) -> pd.DataFrame:
    """Add the cells of the datasets that were not available, with n = 0, in printed order."""
    absent = [name for name in missing if _absent(name, [comparison])]
    methods = list(dict.fromkeys(comparison["method"]))
    cells = pd.DataFrame(setting.cells(absent, methods))
    if cells.empty:
        return comparison
    whole = comparison.merge(cells, on=CELL, how="outer").fillna({"n": 0})
    return printed_order(whole.astype(comparison.dtypes.to_dict()), setting)


def printed_order(summary: pd.DataFrame, setting: TableSetting) -> pd.DataFrame:
    """Return the cells of a setting as the paper orders them, unknown names last.

    ``ValueError`` if there is none.
    """

    def rank(name: str, names: Sequence[str]) -> int:
        return names.index(name) if name in names else len(names)

    methods = (*METHODS, *EXTRA_METHODS)
    order = [
        (setting.blocks.index(tuple(block)), rank(dataset, DATASETS), rank(method, methods), row)
        for row, (*block, dataset, method) in enumerate(
            summary[CELL].itertuples(index=False, name=None)
        )
        if tuple(block) in setting.blocks
    ]
    if not order:
        raise ValueError(f"trials must hold some of {setting.title!r}, got none")
    return summary.iloc[[row for *_, row in sorted(order)]].reset_index(drop=True)
