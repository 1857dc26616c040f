"""The figures that set our means against the printed ones."""

from __future__ import annotations

import io
import logging
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pu_shift.paper.settings import BLOCK
from pu_shift.paper.style import OTHER_COLOUR, dataset_marker, delta_colour, method_colour


def comparison_figure(comparison: pd.DataFrame, title: str = "") -> Figure:
    """Draw our means over the printed ones, with standard errors, a panel per method.

    Parameters
    ----------
    comparison : DataFrame
        From :func:`pu_shift.paper.compare.compare`, with printed numbers.
    title : str
        The figure's title.

    Returns
    -------
    Figure
        A figure on an Agg canvas; cells that are not consistent are hollow.

    Examples
    --------
    >>> from pu_shift.paper.compare import compare
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> ours = pd.DataFrame([{**cell, "n": 10, "mean": 72.0, "se": 0.5}])
    >>> paper = pd.DataFrame([{**cell, "mean": 70.7, "se": 0.4, "bold": 0}])
    >>> len(comparison_figure(compare(ours, paper)).axes)
    1
    """
    printed, methods = _printed(comparison)
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


def heat_map_figure(comparison: pd.DataFrame) -> Figure:
    """Draw the differences from the printed means, a panel per method.

    Parameters
    ----------
    comparison : DataFrame
        From :func:`pu_shift.paper.compare.compare`, with printed numbers.

    Returns
    -------
    Figure
        Rows are datasets, columns blocks of the tables; an asterisk marks what
        is not consistent.

    Examples
    --------
    >>> from pu_shift.paper.compare import compare
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> ours = pd.DataFrame([{**cell, "n": 10, "mean": 72.0, "se": 0.5}])
    >>> paper = pd.DataFrame([{**cell, "mean": 70.7, "se": 0.4, "bold": 0}])
    >>> len(heat_map_figure(compare(ours, paper)).axes)
    1
    """
    printed, methods = _printed(comparison)
    datasets = list(dict.fromkeys(printed["dataset"]))
    blocks = list(dict.fromkeys(printed[BLOCK].itertuples(index=False, name=None)))
    # Side by side only while the figure stays as wide as a page.
    columns = min(2 if len(blocks) <= 12 else 1, len(methods))
    rows = -(-len(methods) // columns)
    width = columns * (0.52 * len(blocks) + 0.5) + 0.6
    height = rows * (0.27 * len(datasets) + 0.4) + 1.25
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes, method in zip(grid.flat, methods):
        image = np.full((len(datasets), len(blocks), 3), 1.0)
        for cell in printed[printed["method"] == method].itertuples():
            block = (cell.prior, cell.test_prior, cell.given_prior)
            row, column = datasets.index(cell.dataset), blocks.index(block)
            image[row, column] = to_rgb(delta_colour(cell.delta))
            mark = "*" if _inconsistent(cell) else ""
            text = f"{round(cell.delta, 1) + 0.0:+.1f}{mark}"
            axes.text(column, row, text, ha="center", va="center", fontsize=7)
        axes.imshow(image, aspect="auto")
        axes.set_title(method, fontsize=10)
        axes.set_yticks(range(len(datasets)))
        axes.set_yticklabels(datasets, fontsize=8)
        axes.set_xticks(range(len(blocks)))
        labels = [f"{prior:g}→{test:g}\n{given:g}" for prior, test, given in blocks]
        axes.set_xticklabels(labels, fontsize=7)
        axes.tick_params(length=0)
    for axes in list(grid.flat)[len(methods) :]:
        axes.remove()
    title = "Difference from the paper in points; * = not consistent"
    figure.suptitle(title, fontsize=11, y=1 - 0.12 / height)
    figure.text(0.5, 0.12 / height, "π→π′, and below the given prior", ha="center", fontsize=8)
    figure.subplots_adjust(
        left=0.75 / width,
        right=1 - 0.1 / width,
        bottom=0.65 / height,
        top=1 - 0.65 / height,
        wspace=0.04,
        hspace=0.25,
    )
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


def pdf(figure: Figure) -> bytes:
    """Render a figure for print.

    Parameters
    ----------
    figure : Figure
        Any figure.

    Returns
    -------
    bytes
        The content of a PDF file; it carries no date, so that equal figures are equal files.

    Examples
    --------
    >>> pdf(Figure())[:4]
    b'%PDF'
    """
    content = io.BytesIO()
    # As TrueType: many publishers refuse Matplotlib's own choice, Type 3.
    # fontTools remarks on the font's own dates.
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    with rc_context({"pdf.fonttype": 42}):
        figure.savefig(content, format="pdf", metadata={"CreationDate": None})
    return content.getvalue()


def _printed(comparison: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the cells with printed numbers, and their methods."""
    printed = comparison[comparison["paper_mean"].notna()]
    if printed.empty:
        raise ValueError("comparison must hold printed numbers, got none")
    return printed, list(dict.fromkeys(printed["method"]))


def _inconsistent(cell: Any) -> bool:
    return not pd.isna(cell.consistent) and not cell.consistent


def _points(axes: Axes, cells: pd.DataFrame, colour: str) -> None:
    for cell in cells.itertuples():
        hollow = _inconsistent(cell)
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
    def entry(marker: str, label: str, **style: Any) -> Line2D:
        return Line2D([], [], linestyle="", marker=marker, color=OTHER_COLOUR, label=label, **style)

    names = dict.fromkeys(printed["dataset"])
    hollow = entry("o", "hollow: not consistent", markerfacecolor="white")
    return [*(entry(dataset_marker(name), name) for name in names), hollow]
