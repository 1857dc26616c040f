"""Everything that a run leaves behind beside its trials."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pu_shift.experiment import figures, tables
from pu_shift.experiment.compare import Headline, compare, headline, summarize
from pu_shift.experiment.settings import BLOCK, DATASETS, EXTRA_METHODS, METHODS, TableSetting
from pu_shift.experiment.store import PathLike, write_atomic


@dataclass(frozen=True)
class Comparison:
    """A finished table beside the paper's.

    Parameters
    ----------
    frame : DataFrame
        What ``summary.csv`` holds.
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
    figure_path = folder / "comparison.png"
    text = [tables.text_table(comparison, setting, colour)]
    if comparison["paper_mean"].notna().any():
        figures_of_run = headline(comparison)
        text += [
            tables.text_diff(comparison, setting, colour),
            tables.text_headline(figures_of_run),
        ]
        figure = figures.comparison_figure(comparison, setting.title)
        write_atomic(figure_path, figures.png(figure))
    else:
        figures_of_run = None
        text += [tables.NOTHING_PRINTED]
        figure_path.unlink(missing_ok=True)
    write_atomic(folder / "summary.csv", comparison.to_csv(index=False))
    write_atomic(folder / "table.md", tables.markdown_table(comparison, setting, figures_of_run))
    write_atomic(folder / "table.tex", tables.latex_table(comparison, setting))
    return Comparison(comparison, figures_of_run, "\n\n".join(text))


def printed_order(summary: pd.DataFrame, setting: TableSetting) -> pd.DataFrame:
    """Return the cells of a setting as the paper orders them, unknown names last.

    Parameters
    ----------
    summary : DataFrame
        From :func:`pu_shift.experiment.compare.summarize`; may hold other settings too.
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
