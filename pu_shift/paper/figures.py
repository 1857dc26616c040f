"""The figures that set our means against the printed ones, and the look of every figure.

A method has a colour and a dash, a dataset a marker. The colours are safe for the colour-blind;
dashes and markers say the same without colour.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pu_shift.paper.settings import BLOCK, DATASETS, EXTRA_METHODS, METHODS

# The palette of Okabe and Ito, without its yellow, which is too pale on white.
_COLOURS = ("#E69F00", "#0072B2", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
METHOD_COLOURS = dict(zip((*METHODS, *EXTRA_METHODS), _COLOURS))
# Lengths of strokes and gaps; none is a solid line.
_DASHES = ((5, 2), (), (1, 1.5), (7, 2, 1, 2), (3, 1), (5, 1, 1, 1, 1, 1), (2, 4))
METHOD_DASHES = dict(zip(METHOD_COLOURS, _DASHES))
DATASET_MARKERS = dict(zip(DATASETS, "osD^v>"))  # all wide enough to be seen as hollow
OTHER_COLOUR = "#777777"
OTHER_MARKER = "X"
# The classes +1 and −1, and the signs of a difference.
POSITIVE_COLOUR, NEGATIVE_COLOUR = "#0072B2", "#D55E00"
# A difference of as many points has the strongest colour of a heat map.
STRONGEST_DELTA = 10.0


def method_colour(method: str) -> str:
    """Return the colour of a method; one that the paper does not know is grey."""
    return METHOD_COLOURS.get(method, OTHER_COLOUR)


def method_dash(method: str) -> tuple[float, ...]:
    """Return the strokes and gaps of a method's lines, in points; empty for a solid line."""
    return METHOD_DASHES.get(method, ())


def dataset_marker(dataset: str) -> str:
    """Return the Matplotlib marker of a dataset; those the paper does not know share one."""
    return DATASET_MARKERS.get(dataset, OTHER_MARKER)


def delta_colour(delta: float) -> str:
    """Return the background of a difference: white for 0, blue above, vermilion below."""
    strongest = POSITIVE_COLOUR if delta > 0 else NEGATIVE_COLOUR
    # At most 60 % of the colour: black on it keeps a contrast above 7:1.
    share = 0.6 * min(abs(delta) / STRONGEST_DELTA, 1.0)
    channels = (int(strongest[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + share * (channel - 255)):02x}" for channel in channels)


def delta_text(delta: float) -> str:
    """Return a difference in points with its sign."""
    # Adding zero turns -0.0 into 0.0.
    return f"{round(delta, 1) + 0.0:+.1f}"


def new_figure(width: float, height: float, margins: Sequence[float] = (), **gaps: float) -> Figure:
    """Return a figure on an Agg canvas; left, right, bottom and top margins are in inches."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    if margins:
        left, right, bottom, top = margins
        figure.subplots_adjust(
            left=left / width,
            right=1 - right / width,
            bottom=bottom / height,
            top=1 - top / height,
            **gaps,
        )
    return figure


def comparison_figure(comparison: pd.DataFrame, title: str = "") -> Figure:
    """Draw our means over the printed ones, a panel per method; hollow is not consistent."""
    printed, methods = _printed(comparison)
    columns = min(3, len(methods))
    rows = -(-len(methods) // columns)
    # The title above, the axes' label and the legend below.
    margins = (0.65, 0.1, 1.1, 0.7)
    figure = new_figure(3.3 * columns + 0.5, 3.3 * rows + 1.2, margins, hspace=0.18, wspace=0.08)
    panels = _panels(figure, rows, columns, len(methods))
    means = np.concatenate([printed["mean"], printed["paper_mean"]])
    limits = (means.min() - 4, means.max() + 4)
    for axes, method in zip(panels, methods):
        axes.plot(limits, limits, color="0.6", linewidth=0.8, zorder=0)
        _points(axes, printed[printed["method"] == method], method_colour(method))
        axes.set(xlim=limits, ylim=limits, aspect="equal", title=method)
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
    for axes in panels[::columns]:
        axes.set_ylabel("ours (%)")
    for axes in panels[-columns:]:
        axes.set_xlabel("paper (%)")
        axes.tick_params(labelbottom=True)
    figure.suptitle(title)
    figure.legend(handles=_legend(printed), loc="lower center", ncol=4, frameon=False)
    return figure


def heat_map_figure(comparison: pd.DataFrame) -> Figure:
    """Draw the differences from the printed means, datasets by blocks, a panel per method."""
    printed, methods = _printed(comparison)
    datasets = list(dict.fromkeys(printed["dataset"]))
    blocks = list(dict.fromkeys(printed[BLOCK].itertuples(index=False, name=None)))
    # Side by side only while the figure stays as wide as a page.
    columns = min(2 if len(blocks) <= 12 else 1, len(methods))
    rows = -(-len(methods) // columns)
    width = columns * (0.52 * len(blocks) + 0.5) + 0.6
    height = rows * (0.27 * len(datasets) + 0.4) + 1.25
    figure = new_figure(width, height, (0.75, 0.1, 0.65, 0.65), wspace=0.04, hspace=0.25)
    for axes, method in zip(_panels(figure, rows, columns, len(methods)), methods):
        image = np.full((len(datasets), len(blocks), 3), 1.0)
        for cell in printed[printed["method"] == method].itertuples():
            block = (cell.prior, cell.test_prior, cell.given_prior)
            row, column = datasets.index(cell.dataset), blocks.index(block)
            image[row, column] = to_rgb(delta_colour(cell.delta))
            text = delta_text(cell.delta) + ("*" if _inconsistent(cell) else "")
            axes.text(column, row, text, ha="center", va="center", fontsize=7)
        axes.imshow(image, aspect="auto")
        axes.set_title(method, fontsize=10)
        axes.set_yticks(range(len(datasets)))
        axes.set_yticklabels(datasets, fontsize=8)
        axes.set_xticks(range(len(blocks)))
        labels = [f"{prior:g}→{test:g}\n{given:g}" for prior, test, given in blocks]
        axes.set_xticklabels(labels, fontsize=7)
        axes.tick_params(length=0)
    title = "Difference from the paper in points; * = not consistent"
    figure.suptitle(title, fontsize=11, y=1 - 0.12 / height)
    figure.text(0.5, 0.12 / height, "π→π′, and below the given prior", ha="center", fontsize=8)
    return figure


def png(figure: Figure) -> bytes:
    """Return a figure as the content of a PNG file."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130)
    return content.getvalue()


def pdf(figure: Figure) -> bytes:
    """Return a figure as a PDF file without a date, so that equal figures are equal files."""
    content = io.BytesIO()
    # As TrueType: many publishers refuse Matplotlib's own choice, Type 3.
    # fontTools warns about the dates in the font.
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    with rc_context({"pdf.fonttype": 42}):
        figure.savefig(content, format="pdf", metadata={"CreationDate": None})
    return content.getvalue()


def _panels(figure: Figure, rows: int, columns: int, count: int) -> list[Axes]:
    """Return panels that share their axes, without those of the last row that are not needed."""
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes in grid.flat[count:]:
        axes.remove()
    return list(grid.flat[:count])


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
        axes.errorbar(
            cell.paper_mean,
            cell.mean,
            xerr=cell.paper_se,
            yerr=None if pd.isna(cell.se) else cell.se,
            fmt=dataset_marker(cell.dataset),
            color=colour,
            markerfacecolor="white" if _inconsistent(cell) else colour,
            markersize=4.5,
            elinewidth=1.0,
        )


def _legend(printed: pd.DataFrame) -> list[Line2D]:
    def entry(marker: str, label: str, **style: Any) -> Line2D:
        return Line2D([], [], linestyle="", marker=marker, color=OTHER_COLOUR, label=label, **style)

    names = dict.fromkeys(printed["dataset"])
    hollow = entry("o", "hollow: not consistent", markerfacecolor="white")
    return [*(entry(dataset_marker(name), name) for name in names), hollow]
