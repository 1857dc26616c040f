"""Everything that a run leaves behind beside its trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pu_shift.paper import figures, rendering
from pu_shift.paper.compare import Headline, compare, headline, summarize
from pu_shift.paper.settings import BLOCK, CELL, DATASETS, EXTRA_METHODS, METHODS, TableSetting
from pu_shift.paper.store import PathLike, write_atomic


@dataclass(frozen=True)
class Comparison:
    """A finished table beside the paper's.

    Parameters
    ----------
    frame : DataFrame
        What ``summary.csv`` holds of the cells that have trials.
    headline : Headline or None
        The headline figures; None if no cell has a printed number.
    text : str
        What the terminal shows.
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
    """Write ``summary.csv``, ``table.md``, ``table.tex`` and ``comparison.png``.

    Parameters
    ----------
    folder : path-like
        An existing folder.
    trials : DataFrame
        The finished trials; those of other settings are left out.
    setting : TableSetting
        The table.
    paper : DataFrame, optional
        The printed table; without it there is no ``comparison.png``.
    colour : bool
        Whether the text is for a terminal that understands ANSI codes.
    missing : sequence of str
        Datasets that were not available. Their cells are in ``summary.csv`` with
        ``n`` = 0, and everything else says how many cells it covers.

    Returns
    -------
    Comparison
        The comparison and the text for the terminal.

    Raises
    ------
    ValueError
        If there is no trial of this setting.

    Examples
    --------
    >>> import tempfile
    >>> cell = dict(prior=0.2, test_prior=0.6, given_prior=0.6, dataset="mine", method="DH-Lin")
    >>> trials = pd.DataFrame([{**cell, "trial": i, "accuracy": 70.0 + i} for i in range(3)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = write_outputs(folder, trials, TableSetting.shift(0, 0.2, 0.6, [0.6]))
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['summary.csv', 'table.md', 'table.tex']
    >>> print(result.text)
    Setting: π = 0.2, π′ = 0.6
    Accuracy in percent, mean (standard error) over 3 trials; [ ] = boldface
    <BLANKLINE>
    dataset  π_g     DH-Lin
    mine     0.6  [71.0 (0.6)]
    <BLANKLINE>
    No cell has a printed number to compare with.
    """
    folder = Path(folder)
    comparison = compare(printed_order(summarize(trials), setting), paper)
    covered = covered_cells([comparison], [setting], missing)
    figure_path = folder / "comparison.png"
    text = [rendering.text_table(comparison, setting, colour, covered)]
    if comparison["paper_mean"].notna().any():
        figures_of_run = headline(comparison)
        text += [
            rendering.text_diff(comparison, setting, colour),
            rendering.text_headline(figures_of_run, covered),
        ]
        title = "\n".join(filter(None, [setting.title, covered]))
        figure = figures.comparison_figure(comparison, title)
        write_atomic(figure_path, figures.png(figure))
    else:
        figures_of_run = None
        text += [rendering.NOTHING_PRINTED]
        figure_path.unlink(missing_ok=True)
    write_atomic(
        folder / "summary.csv", rendering.csv_table(_with_missing(comparison, setting, missing))
    )
    write_atomic(
        folder / "table.md", rendering.markdown_table(comparison, setting, figures_of_run, covered)
    )
    write_atomic(folder / "table.tex", rendering.latex_table(comparison, setting, covered))
    return Comparison(comparison, figures_of_run, "\n\n".join(text))


def coverage(found: int, total: int, missing: Sequence[str] = (), what: str = "cells") -> str:
    """Say how much of a table is there, if not all of it.

    Parameters
    ----------
    found, total : int
        How many cells there are, and how many there should be.
    missing : sequence of str
        Datasets that were not available.
    what : str
        What is counted.

    Returns
    -------
    str
        One line, empty if nothing is missing.

    Examples
    --------
    >>> coverage(54, 108, ["ijcnn1", "susy", "cod-rna"])
    '54 of 108 cells; ijcnn1, susy, cod-rna were not available'
    """
    if found >= total:
        return ""
    verb = "was" if len(missing) == 1 else "were"
    reason = f"; {', '.join(missing)} {verb} not available" if missing else ""
    return f"{found} of {total} {what}{reason}"


def covered_cells(
    frames: Sequence[pd.DataFrame], settings: Sequence[TableSetting], missing: Sequence[str] = ()
) -> str:
    """Say how many cells of the paper's tables are there, if not all.

    Parameters
    ----------
    frames : sequence of DataFrame
        The cells that are there, of each table.
    settings : sequence of TableSetting
        The tables.
    missing : sequence of str
        Datasets that were not available.

    Returns
    -------
    str
        From :func:`coverage`; empty for a setting of one's own.

    Examples
    --------
    >>> cells = pd.DataFrame({"dataset": ["banana"] * 18, "method": ["DH-Lin"] * 18})
    >>> covered_cells([cells], [TableSetting.shift(1, 0.3, 0.5, [0.5, 0.4, 0.3])], ["susy"])
    '18 of 108 cells; susy was not available'
    """
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

    Parameters
    ----------
    summary : DataFrame
        From :func:`pu_shift.paper.compare.summarize`; may hold other settings too.
    setting : TableSetting
        The table.

    Returns
    -------
    DataFrame
        The rows of ``summary`` that belong to the table. ``ValueError`` if there is none.

    Examples
    --------
    >>> row = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy")
    >>> cells = pd.DataFrame([{**row, "method": name} for name in ("Sq-Ker", "DH-Lin")])
    >>> printed_order(cells, TableSetting.shift(1, 0.3, 0.5, [0.5]))["method"].tolist()
    ['DH-Lin', 'Sq-Ker']
    """
    ranks = [
        {tuple(block): rank for rank, block in enumerate(setting.blocks)},
        {dataset: rank for rank, dataset in enumerate(DATASETS)},
        {method: rank for rank, method in enumerate((*METHODS, *EXTRA_METHODS))},
    ]
    blocks = pd.Series(list(summary[BLOCK].itertuples(index=False, name=None)), dtype=object)
    order = pd.DataFrame(
        {
            "block": blocks.map(ranks[0]).to_numpy(),
            "dataset": summary["dataset"].map(ranks[1]).to_numpy(),
            "method": summary["method"].map(ranks[2]).to_numpy(),
        }
    )
    order = order[order["block"].notna()].sort_values(list(order), kind="stable")
    if order.empty:
        raise ValueError(f"trials must hold some of {setting.title!r}, got none")
    return summary.iloc[order.index].reset_index(drop=True)
