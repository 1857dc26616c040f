"""A finished table: laid out like the paper's, beside it, and written to its folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pu_shift.paper.compare import Headline, compare, headline, summarize
from pu_shift.paper.figures import comparison_figure, delta_text, png
from pu_shift.paper.settings import CELL, DATASETS, EXTRA_METHODS, METHODS, TRIAL, TableSetting
from pu_shift.paper.store import PathLike, write_atomic

_BOLD, _CONSISTENT, _INCONSISTENT = "1", "36", "31"
_NO_CELL = "–"
# Brackets and a star would belong to the line break before them.
_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{character: f"{{{character}}}" for character in "[]*"},
        **{"\\": r"\textbackslash ", "~": r"\textasciitilde ", "^": r"\textasciicircum "},
        **{"<": r"\textless ", ">": r"\textgreater ", "|": r"\textbar "},
    }
)
NOTHING_PRINTED = "No cell has a printed number to compare with."


@dataclass(frozen=True)
class Comparison:
    """A finished table beside the paper's.

    ``frame`` is what ``summary.csv`` holds of the cells that have trials, ``headline`` None if
    no cell has a printed number, ``text`` what the terminal shows.
    """

    trials: pd.DataFrame
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
    # Sorted, because the order of the terms changes the rounding of a sum.
    summary = summarize(trials.sort_values(TRIAL, kind="stable"))
    comparison = compare(printed_order(summary, setting), paper)
    covered = covered_cells([comparison], [setting], missing)
    text = [text_table(comparison, setting, colour, covered)]
    files: dict[str, str | bytes] = {}
    agreement = None
    if comparison["paper_mean"].notna().any():
        agreement = headline(comparison)
        text += [
            text_diff(comparison, setting, colour),
            text_headline(agreement, covered),
        ]
        title = "\n".join(filter(None, [setting.title, covered]))
        files["comparison.png"] = png(comparison_figure(comparison, title))
    else:
        text += [NOTHING_PRINTED]
        (folder / "comparison.png").unlink(missing_ok=True)
    whole = _with_missing(comparison, setting, missing)
    files["summary.csv"] = whole.to_csv(index=False)
    files["table.md"] = markdown_table(comparison, setting, agreement, covered)
    files["table.tex"] = latex_table(comparison, setting, covered)
    for name, content in files.items():
        write_atomic(folder / name, content)
    return Comparison(trials, comparison, agreement, "\n\n".join(text))


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


def text_table(
    comparison: pd.DataFrame, setting: TableSetting, colour: bool = False, covered: str = ""
) -> str:
    """Render our table for a terminal; without ANSI codes brackets stand for boldface."""

    def cell(row: Any) -> tuple[str, str]:
        return _mean(row, "{}" if colour else "[{}]"), _BOLD if colour and row.bold else ""

    shown = "" if colour else "; [ ] = boldface"
    caption = f"Accuracy in percent, mean (standard error) over {_trials(comparison)}{shown}"
    heading = "\n".join(filter(None, [setting.title, caption, covered]))
    return f"{heading}\n\n" + _text_grid(comparison, setting, cell)


def text_diff(comparison: pd.DataFrame, setting: TableSetting, colour: bool = False) -> str:
    """Render the differences from the printed means for a terminal."""

    def cell(row: Any) -> tuple[str, str]:
        if pd.isna(row.consistent) or not colour:
            return _delta(row), ""
        return _delta(row), _CONSISTENT if row.consistent else _INCONSISTENT

    caption = "Difference from the paper in points; * = not consistent (Welch t-test, 5 %)"
    return f"{caption}\n\n" + _text_grid(comparison, setting, cell)


def text_headline(figures: Headline, covered: str = "", name: Callable[[str], str] = str) -> str:
    """Render the headline figures, overall and per method and dataset, each as ``name`` has it."""
    groups = pd.concat([figures.by_method, figures.by_dataset])
    width = max(len(name(group)) for group in groups.index)
    lines = [
        f"Consistent with the paper: {_figures(figures)}, "
        f"boldface agrees on {percent(figures.bold_agreement)}"
        + (f" ({name(covered)})" if covered else "")
    ]
    lines += [f"  {name(group.Index):<{width}}  {_figures(group)}" for group in groups.itertuples()]
    lines += ["Ceiling: what a protocol identical to the authors' would get, trials being random"]
    return "\n".join(lines)


def markdown_table(
    comparison: pd.DataFrame,
    setting: TableSetting,
    agreement: Headline | None = None,
    covered: str = "",
) -> str:
    """Render ``table.md``: our table, then the differences if there is a printed table."""

    def grid(cell: Callable[[Any], str]) -> list[str]:
        header, blocks = _grid(comparison, setting, cell, markdown)
        rows = [header, *(row for block in blocks for row in block)]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return [lines[0], "|---" * len(header) + "|", *lines[1:]]

    caption = f"Accuracy in percent, mean (standard error) over {_trials(comparison)}."
    caption += f" {markdown(covered)}." if covered else ""
    lines = [f"# {setting.title}", "", caption, "", *grid(lambda row: _mean(row, "**{}**"))]
    if agreement is not None:
        lines += ["", "## Difference from the paper in points (\\* = not consistent)", ""]
        lines += grid(lambda row: _delta(row).strip().replace("*", "\\*"))
        figures = text_headline(agreement, covered, markdown).splitlines()
        lines += ["", *(f"- {line.strip()}" for line in figures)]
    return "\n".join(lines) + "\n"


def latex_table(comparison: pd.DataFrame, setting: TableSetting, covered: str = "") -> str:
    """Render ``table.tex``: our table as the paper sets it, in LaTeX without packages."""
    header, blocks = _grid(comparison, setting, lambda row: _mean(row, r"\textbf{{{}}}"), _latex)
    shifted = [block for block in setting.blocks if block.prior != block.test_prior]
    symbols = {f"{block.prior:g}": r"$\pi$" for block in shifted}
    symbols.update({f"{block.test_prior:g}": r"$\pi'$" for block in shifted})
    # The strut keeps the fractions off the lines.
    heads = [r"\rule[-1.2ex]{0pt}{3.8ex}Dataset", r"$\pi^{\mathrm{g}}$" if shifted else r"$\pi$"]
    lines = [" & ".join([*heads, *header[2:]]) + r" \\ \hline"]
    for block in blocks:
        # Like the paper: the given prior once per block, beside its middle, below its symbol.
        given = block[0][1]
        labels = [symbols[given], given] if given in symbols and len(block) > 1 else [given]
        start = (len(block) - len(labels)) // 2
        for position, (dataset, _, *cells) in enumerate(block):
            label = labels[position - start] if 0 <= position - start < len(labels) else ""
            cells = [cell.replace(_NO_CELL, "--") for cell in cells]
            lines.append(" & ".join([dataset, label, *cells]) + r" \\")
        lines.append(r"\hline")
    # LaTeX numbers the table itself, so the paper's number must not stand first.
    name, _, priors = setting.title.partition(": ")
    title = f"Reproduction of the paper's {name}: {priors}" if setting.number else priors
    title = title.replace("π′", r"$\pi'$").replace("π", r"$\pi$")
    caption = (
        f"{title}. Mean accuracy and standard error over {_trials(comparison)}. Bold: the best "
        r"and all that a one-sided Welch t-test at 5\,\% does not find worse."
    )
    caption += f" {_latex(covered)}." if covered else ""
    return "\n".join(
        [
            r"\begin{table}[t]",
            r"\centering\footnotesize",
            rf"\caption{{{caption}}}\smallskip",
            r"\setlength{\tabcolsep}{3pt}",
            rf"\begin{{tabular}}{{|l|l|{'l|' * len(header[2:])}}}",
            r"\hline",
            *lines,
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def markdown(name: str) -> str:
    """Return a name that Markdown shows as it is, be it HTML, a formula or a link."""
    return re.sub(r"[^\w .,;%()/-]|_", lambda match: f"&#{ord(match[0])};", name)


def percent(share: float) -> str:
    """Return a share in percent, a dash where nothing can be judged."""
    return _NO_CELL if pd.isna(share) else f"{100 * share:.1f} %"


def _grid(
    comparison: pd.DataFrame,
    setting: TableSetting,
    cell: Callable[[Any], Any],
    name: Callable[[str], str] = str,
) -> tuple[list[str], list[list[list[Any]]]]:
    """Return the header and the blocks of rows, made of cells and names by these functions."""
    methods = list(dict.fromkeys(comparison["method"]))
    blocks = []
    for block in setting.blocks:
        rows: dict[str, dict[str, Any]] = {}
        for row in comparison.itertuples(index=False):
            if (row.prior, row.test_prior, row.given_prior) == block:
                rows.setdefault(row.dataset, {})[row.method] = cell(row)
        given = f"{block.given_prior:g}"
        blocks.append(
            [
                [name(dataset), given, *(cells.get(method, _NO_CELL) for method in methods)]
                for dataset, cells in rows.items()
            ]
        )
    return ["dataset", "π_g", *map(name, methods)], [block for block in blocks if block]


def _text_grid(
    comparison: pd.DataFrame, setting: TableSetting, cell: Callable[[Any], tuple[str, str]]
) -> str:
    """Align a grid of (text, ANSI code) in columns; the codes take no width."""
    header, blocks = _grid(comparison, setting, cell)
    blocks = [[header], *blocks]
    for row in (row for block in blocks for row in block):
        row[:] = [entry if isinstance(entry, tuple) else (entry, "") for entry in row]
    columns = zip(*(row for block in blocks for row in block))
    widths = [max(len(text) for text, _ in column) for column in columns]

    def line(row: list[tuple[str, str]]) -> str:
        padded = [text.center(width) for (text, _), width in zip(row, widths)]
        padded[0] = row[0][0].ljust(widths[0])
        codes = [code for _, code in row]
        painted = [f"\x1b[{c}m{text}\x1b[0m" if c else text for text, c in zip(padded, codes)]
        return "  ".join(painted).rstrip()

    header_line, *rest = ["\n".join(map(line, block)) for block in blocks]
    return header_line + "\n" + "\n\n".join(rest)


def _mean(row: Any, emphasis: str) -> str:
    text = f"{row.mean:.1f} ({_NO_CELL if pd.isna(row.se) else format(row.se, '.1f')})"
    return emphasis.format(text) if row.bold else text


def _delta(row: Any) -> str:
    if pd.isna(row.delta):
        return _NO_CELL
    inconsistent = not pd.isna(row.consistent) and not row.consistent
    return delta_text(row.delta) + ("*" if inconsistent else " ")


def _trials(comparison: pd.DataFrame) -> str:
    least, most = comparison["n"].min(), comparison["n"].max()
    return f"{least} to {most} trials" if least < most else f"{most} trial{'s'[: most - 1]}"


def _figures(figures: Any) -> str:
    consistent, ceiling = percent(figures.consistent), percent(figures.ceiling)
    delta = figures.mean_abs_delta
    return f"{consistent} of {figures.cells} cells (ceiling {ceiling}), mean |Δ| {delta:.2f}"


def _latex(name: str) -> str:
    """Return a name that LaTeX prints as it is, a density ratio as a fraction."""
    ratio = re.fullmatch(r"([pu])/([pu]) (.*)", name)
    if ratio:
        return rf"$\frac{{{ratio[1]}}}{{{ratio[2]}}}${_latex(ratio[3])}"
    return name.translate(_LATEX)
