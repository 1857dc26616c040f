import io
import sys

import pytest
from matplotlib.colors import to_rgba
from matplotlib.image import imread

from pu_shift.paper.compare import compare, load_paper_table, summarize
from pu_shift.paper.figures import (
    comparison_figure,
    heat_map_figure,
    method_colour,
    png,
)
from pu_shift.paper.settings import METHODS
from tests.paper.simulate import trials


def comparison(count=4, **options):
    return compare(
        summarize(trials(lambda cell: 70.0, count=count, **options)), load_paper_table(1)
    )


def test_there_is_a_panel_per_method_with_a_point_per_cell():
    table = comparison()
    figure = comparison_figure(table, "Table 1")
    assert [axes.get_title() for axes in figure.axes] == list(METHODS)
    for axes in figure.axes:
        cells = table[table["method"] == axes.get_title()].reset_index(drop=True)
        diagonal, *points = [line for line in axes.get_lines() if len(line.get_xdata())]
        assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())
        assert len(points) == len(axes.containers) == 18
        for cell, line in zip(cells.itertuples(), points):
            assert (line.get_xdata()[0], line.get_ydata()[0]) == (cell.paper_mean, cell.mean)
            colour = method_colour(cell.method) if cell.consistent else "white"
            assert to_rgba(line.get_markerfacecolor()) == to_rgba(colour)
    assert "hollow: not consistent" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_png_is_an_image_and_pyplot_stays_out_of_it():
    before = "matplotlib.pyplot" in sys.modules
    image = imread(io.BytesIO(png(comparison_figure(comparison(methods=METHODS[:2])))))
    assert image.std() > 0
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_without_printed_numbers_there_is_no_figure():
    with pytest.raises(ValueError, match="comparison must hold printed numbers"):
        comparison_figure(compare(summarize(trials(lambda cell: 70.0))))


def test_the_heat_map_shows_every_difference_and_marks_the_inconsistent():
    table = comparison(methods=METHODS[:3])
    figure = heat_map_figure(table)
    assert [axes.get_title() for axes in figure.axes] == list(METHODS[:3])
    for axes in figure.axes:
        cells = table[table["method"] == axes.get_title()]
        shown = [text.get_text() for text in axes.texts]
        expected = [
            f"{round(cell.delta, 1) + 0.0:+.1f}" + ("" if cell.consistent else "*")
            for cell in cells.itertuples()
        ]
        assert shown == expected
