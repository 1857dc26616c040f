"""Tables laid out like the paper's: for the terminal, in Markdown and in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pandas as pd

from pu_shift.paper.compare import Headline
from pu_shift.paper.settings import TableSetting

_BOLD, _CONSISTENT, _INCONSISTENT = "1", "36", "31"
_NO_CELL = "–"
NOTHING_PRINTED = "No cell has a printed number to compare with."


def text_table(
    comparison: pd.DataFrame, setting: TableSetting, colour: bool = False, covered: str = ""
) -> str:
    """Render our table for a terminal.

    Parameters
    ----------
    comparison : DataFrame
        From :func:`pu_shift.paper.compare.compare`.
    setting : TableSetting
        The table's blocks.
    colour : bool
        Whether to use ANSI codes; without them boldface is shown by brackets.
    covered : str
        How many cells are there, if not all.

    Returns
    -------
    str
        Mean (standard error) of each cell.

    Examples
    --------
    >>> from pu_shift.paper.compare import compare
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> ours = pd.DataFrame([{**cell, "n": 10, "mean": 72.0, "se": 0.5}])
    >>> paper = pd.DataFrame([{**cell, "mean": 70.7, "se": 0.4, "bold": 0}])
    >>> print(text_table(compare(ours, paper), TableSetting.shift(1, 0.3, 0.5, [0.5])))
    Table 1: π = 0.3, π′ = 0.5
    Accuracy in percent, mean (standard error) over 10 trials; [ ] = boldface
    <BLANKLINE>
    dataset  π_g     DH-Lin
    susy     0.5  [72.0 (0.5)]
    """

    def cell(row: Any) -> tuple[str, str]:
        return _mean(row, "{}" if colour else "[{}]"), _BOLD if colour and row.bold else ""

    shown = "" if colour else "; [ ] = boldface"
    caption = f"Accuracy in percent, mean (standard error) over {_trials(comparison)}{shown}"
    heading = "\n".join(filter(None, [setting.title, caption, covered]))
    return f"{heading}\n\n" + _text_grid(comparison, setting, cell)


def text_diff(comparison: pd.DataFrame, setting: TableSetting, colour: bool = False) -> str:
    """Render the differences from the printed means for a terminal.

    Parameters
    ----------
    comparison : DataFrame
        From :func:`pu_shift.paper.compare.compare`.
    setting : TableSetting
        The table's blocks.
    colour : bool
        Whether to use ANSI codes; the asterisk is there in any case.

    Returns
    -------
    str
        Δ of each cell.

    Examples
    --------
    >>> from pu_shift.paper.compare import compare
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> ours = pd.DataFrame([{**cell, "n": 10, "mean": 72.0, "se": 0.5}])
    >>> paper = pd.DataFrame([{**cell, "mean": 70.7, "se": 0.4, "bold": 0}])
    >>> print(text_diff(compare(ours, paper), TableSetting.shift(1, 0.3, 0.5, [0.5])))
    Difference from the paper in points; * = not consistent (Welch t-test, 5 %)
    <BLANKLINE>
    dataset  π_g  DH-Lin
    susy     0.5   +1.3
    """

    def cell(row: Any) -> tuple[str, str]:
        if pd.isna(row.consistent) or not colour:
            return _delta(row), ""
        return _delta(row), _CONSISTENT if row.consistent else _INCONSISTENT

    caption = "Difference from the paper in points; * = not consistent (Welch t-test, 5 %)"
    return f"{caption}\n\n" + _text_grid(comparison, setting, cell)


def text_headline(headline: Headline, covered: str = "") -> str:
    """Render the headline figures as plain text.

    Parameters
    ----------
    headline : Headline
        From :func:`pu_shift.paper.compare.headline`.
    covered : str
        How many cells are there, if not all.

    Returns
    -------
    str
        The overall line, then one for each method and dataset, then what the ceiling is.

    Examples
    --------
    >>> from pu_shift.paper.compare import compare, headline
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> ours = pd.DataFrame([{**cell, "n": 10, "mean": 72.0, "se": 0.5}])
    >>> paper = pd.DataFrame([{**cell, "mean": 70.7, "se": 0.4, "bold": 0}])
    >>> print(text_headline(headline(compare(ours, paper))))
    Consistent with the paper: 100.0 % of 1 cells (ceiling 94.7 %), mean |Δ| 1.30, boldface
    agrees on –
      DH-Lin  100.0 % of 1 cells (ceiling 94.7 %), mean |Δ| 1.30
      susy    100.0 % of 1 cells (ceiling 94.7 %), mean |Δ| 1.30
    Ceiling: what a protocol identical to the authors' would get, trials being random
    """
    groups = pd.concat([headline.by_method, headline.by_dataset])
    width = max(map(len, groups.index))
    lines = [
        f"Consistent with the paper: {_figures(headline)}, "
        f"boldface agrees on {_percent(headline.bold_agreement)}"
        + (f" ({covered})" if covered else "")
    ]
    lines += [f"  {group.Index:<{width}}  {_figures(group)}" for group in groups.itertuples()]
    lines += ["Ceiling: what a protocol identical to the authors' would get, trials being random"]
    return "\n".join(lines)


def markdown_table(
    comparison: pd.DataFrame,
    setting: TableSetting,
    headline: Headline | None = None,
    covered: str = "",
) -> str:
    """Render ``table.md``: our table, then the differences if there is a printed table.

    Parameters
    ----------
    comparison : DataFrame
        From :func:`pu_shift.paper.compare.compare`.
    setting : TableSetting
        The table's blocks.
    headline : Headline, optional
        The figures to put below; None if no cell has a printed number.
    covered : str
        How many cells are there, if not all.

    Returns
    -------
    str
        Markdown.

    Examples
    --------
    >>> from pu_shift.paper.compare import compare
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> ours = pd.DataFrame([{**cell, "n": 10, "mean": 72.0, "se": 0.5}])
    >>> paper = pd.DataFrame([{**cell, "mean": 70.7, "se": 0.4, "bold": 0}])
    >>> print(markdown_table(compare(ours, paper), TableSetting.shift(1, 0.3, 0.5, [0.5])))
    # Table 1: π = 0.3, π′ = 0.5
    <BLANKLINE>
    Accuracy in percent, mean (standard error) over 10 trials.
    <BLANKLINE>
    | dataset | π_g | DH-Lin |
    |---|---|---|
    | susy | 0.5 | **72.0 (0.5)** |
    <BLANKLINE>
    """

    def grid(cell: Callable[[Any], str]) -> list[str]:
        header, blocks = _grid(comparison, setting, cell)
        rows = [header, *(row for block in blocks for row in block)]
        lines = [f"| {' | '.join(text.replace('|', '&#124;') for text in row)} |" for row in rows]
        return [lines[0], "|---" * len(header) + "|", *lines[1:]]

    caption = f"Accuracy in percent, mean (standard error) over {_trials(comparison)}."
    caption += f" {covered}." if covered else ""
    lines = [f"# {setting.title}", "", caption, "", *grid(lambda row: _mean(row, "**{}**"))]
    if headline is not None:
        lines += ["", "## Difference from the paper in points (\\* = not consistent)", ""]
        lines += grid(lambda row: _delta(row).strip().replace("*", "\\*"))
        lines += [
            "",
            *(f"- {line.strip()}" for line in text_headline(headline, covered).splitlines()),
        ]
    return "\n".join(lines) + "\n"


def latex_table(comparison: pd.DataFrame, setting: TableSetting, covered: str = "") -> str:
    r"""Render ``table.tex``: our table as the paper sets it, in LaTeX without packages.

    Parameters
    ----------
    comparison : DataFrame
        From :func:`pu_shift.paper.compare.compare`.
    setting : TableSetting
        The table's blocks.
    covered : str
        How many cells are there, if not all.

    Returns
    -------
    str
        A ``table`` environment.

    Examples
    --------
    >>> from pu_shift.paper.compare import compare
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> ours = pd.DataFrame([{**cell, "n": 10, "mean": 72.0, "se": 0.5}])
    >>> paper = pd.DataFrame([{**cell, "mean": 70.7, "se": 0.4, "bold": 0}])
    >>> table = latex_table(compare(ours, paper), TableSetting.shift(1, 0.3, 0.5, [0.5]))
    >>> print(table.splitlines()[7])
    susy & 0.5 & \textbf{72.0 (0.5)} \\
    """
    header, blocks = _grid(comparison, setting, lambda row: _mean(row, r"\textbf{{{}}}"))
    methods = [_latex_method(method) for method in header[2:]]
    shifted = [block for block in setting.blocks if block.prior != block.test_prior]
    symbols = {f"{block.prior:g}": r"$\pi$" for block in shifted}
    symbols.update({f"{block.test_prior:g}": r"$\pi'$" for block in shifted})
    # The strut keeps the fractions off the lines.
    heads = [r"\rule[-1.2ex]{0pt}{3.8ex}Dataset", r"$\pi^{\mathrm{g}}$" if shifted else r"$\pi$"]
    lines = [" & ".join([*heads, *methods]) + r" \\ \hline"]
    for block in blocks:
        # Like the paper: the given prior once per block, beside its middle, below its symbol.
        given = block[0][1]
        labels = [symbols[given], given] if given in symbols and len(block) > 1 else [given]
        start = (len(block) - len(labels)) // 2
        for position, (dataset, _, *cells) in enumerate(block):
            label = labels[position - start] if 0 <= position - start < len(labels) else ""
            cells = [cell.replace(_NO_CELL, "--") for cell in cells]
            lines.append(" & ".join([_latex(dataset), label, *cells]) + r" \\")
        lines.append(r"\hline")
    # LaTeX numbers the table itself, so the paper's number must not stand first.
    name, _, priors = setting.title.partition(": ")
    title = f"Reproduction of the paper's {name}: {priors}" if setting.number else priors
    title = title.replace("π′", r"$\pi'$").replace("π", r"$\pi$")
    return "\n".join(
        [
            r"\begin{table}[t]",
            r"\centering\footnotesize",
            rf"\caption{{{title}. Mean accuracy and standard error over "
            rf"{_trials(comparison)}. Bold: the best and all that a one-sided Welch t-test at "
            r"5\,\% does not find worse."
            + (f" {_latex(covered)}." if covered else "")
            + r"}\smallskip",
            r"\setlength{\tabcolsep}{3pt}",
            rf"\begin{{tabular}}{{|l|l|{'l|' * len(methods)}}}",
            r"\hline",
            *lines,
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _grid(
    comparison: pd.DataFrame, setting: TableSetting, cell: Callable[[Any], Any]
) -> tuple[list[str], list[list[list[Any]]]]:
    """Return the header and the blocks of rows; ``cell`` makes an entry of each cell."""
    methods = list(dict.fromkeys(comparison["method"]))
    blocks = []
    for block in setting.blocks:
        rows: dict[str, dict[str, Any]] = {}
        for row in comparison.itertuples(index=False):
            if (row.prior, row.test_prior, row.given_prior) == block:
                rows.setdefault(row.dataset, {})[row.method] = cell(row)
        blocks.append(
            [
                [dataset, f"{block.given_prior:g}", *(cells.get(m, _NO_CELL) for m in methods)]
                for dataset, cells in rows.items()
            ]
        )
    return ["dataset", "π_g", *methods], [block for block in blocks if block]


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
    # Adding zero turns -0.0 into 0.0.
    return f"{round(row.delta, 1) + 0.0:+.1f}" + ("*" if inconsistent else " ")


def _trials(comparison: pd.DataFrame) -> str:
    least, most = comparison["n"].min(), comparison["n"].max()
    return f"{least} to {most} trials" if least < most else f"{most} trial{'s'[: most - 1]}"


def _percent(share: float) -> str:
    return _NO_CELL if pd.isna(share) else f"{100 * share:.1f} %"


def _figures(figures: Any) -> str:
    consistent, delta = _percent(figures.consistent), figures.mean_abs_delta
    ceiling = _percent(figures.ceiling)
    return f"{consistent} of {figures.cells} cells (ceiling {ceiling}), mean |Δ| {delta:.2f}"


def _latex(text: str) -> str:
    """Escape what LaTeX would not print as it stands."""
    text = re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", r"\textbackslash "))
    return text.replace("~", r"\textasciitilde ").replace("^", r"\textasciicircum ")


def _latex_method(method: str) -> str:
    ratio = re.fullmatch(r"(\w)/(\w) (.*)", method)
    return rf"$\frac{{{ratio[1]}}}{{{ratio[2]}}}${_latex(ratio[3])}" if ratio else _latex(method)
