"""The figure that sets our means against the printed ones."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pu_shift.experiment.style import OTHER_COLOUR, dataset_marker, method_colour


def comparison_figure(comparison: pd.DataFrame, title: str = "") -> Figure:
    """Draw our means over the printed ones, with standard errors, a panel per method.

    Parameters
    ----------
    comparison : DataFrame
        From :func:`pu_shift.experiment.compare.compare`, with printed numbers.
    title : str
        The figure's title.

    Returns
    -------
    Figure
        A figure on an Agg canvas; cells that are not consistent are hollow.

    Examples
    --------
    >>> from pu_shift.experiment.compare import compare
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> ours = pd.DataFrame([{**cell, "n": 10, "mean": 72.0, "se": 0.5}])
    >>> paper = pd.DataFrame([{**cell, "mean": 70.7, "se": 0.4, "bold": 0}])
    >>> len(comparison_figure(compare(ours, paper)).axes)
    1
    """
    printed = comparison[comparison["paper_mean"].notna()]
    methods = list(dict.fromkeys(printed["method"]))
    if not methods:
        raise ValueError("comparison must hold printed numbers, got none")
    columns = min(3, len(methods))
    rows = -(-len(methods) // columns)
    width, height = 3.3 * columns + 0.5, 3.3 * rows + 1.2
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    means = np.concatenate([printed["mean"], printed["paper_mean"]])
    limits = (means.min() - 4, means.max() + 4)
    for axes, method in zip(grid.flat, methods):
        axes.plot(limits, limits, color="0.6", linewidth=0.8, zorder=0)
        _points(axes, printed[printed["method"] == method], method_colour(method))
        axes.set(xlim=limits, ylim=limits, aspect="equal", title=method)
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
    for axes in list(grid.flat)[len(methods) :]:
        axes.remove()
    for axes in grid[:, 0]:
        axes.set_ylabel("ours (%)")
    for axes in grid.flat[max(0, len(methods) - columns) : len(methods)]:
        axes.set_xlabel("paper (%)")
        axes.tick_params(labelbottom=True)
    # Margins in inches: the title above, the axes' label and the legend below.
    figure.subplots_adjust(
        left=0.65 / width,
        right=1 - 0.1 / width,
        bottom=1.1 / height,
        top=1 - 0.7 / height,
        hspace=0.18,
        wspace=0.08,
    )
    figure.suptitle(title)
    figure.legend(handles=_legend(printed), loc="lower center", ncol=4, frameon=False)
    return figure


def png(figure: Figure) -> bytes:
    """Render a figure.

    Parameters
    ----------
    figure : Figure
        Any figure.

    Returns
    -------
    bytes
        The content of a PNG file.

    Examples
    --------
    >>> png(Figure())[1:4]
    b'PNG'
    """
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130)
    return content.getvalue()


def _points(axes, cells: pd.DataFrame, colour: str) -> None:
    for cell in cells.itertuples():
        hollow = not pd.isna(cell.consistent) and not cell.consistent
        axes.errorbar(
            cell.paper_mean,
            cell.mean,
            xerr=cell.paper_se,
            yerr=None if pd.isna(cell.se) else cell.se,
            fmt=dataset_marker(cell.dataset),
            color=colour,
            markerfacecolor="white" if hollow else colour,
            markersize=4.5,
            elinewidth=1.0,
        )


def _legend(printed: pd.DataFrame) -> list[Line2D]:
    def entry(marker: str, label: str, **style: str) -> Line2D:
        return Line2D([], [], linestyle="", marker=marker, color=OTHER_COLOUR, label=label, **style)

    names = dict.fromkeys(printed["dataset"])
    hollow = entry("o", "hollow: not consistent", markerfacecolor="white")
    return [*(entry(dataset_marker(name), name) for name in names), hollow]
