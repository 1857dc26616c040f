import io
import sys
from itertools import combinations

import pytest
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.image import imread

from pu_shift.paper.compare import compare, load_paper_table, summarize
from pu_shift.paper.figures import (
    comparison_figure,
    dataset_marker,
    delta_colour,
    delta_text,
    heat_map_figure,
    method_colour,
    method_dash,
    pdf,
    png,
)
from pu_shift.paper.settings import DATASETS, EXTRA_METHODS, METHODS
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


@pytest.mark.parametrize("methods", [METHODS[:1], METHODS[:4]])
def test_any_number_of_methods_is_laid_out(methods):
    figure = comparison_figure(comparison(methods=methods))
    assert [axes.get_title() for axes in figure.axes] == list(methods)


def test_one_trial_is_drawn_without_its_error_bar():
    figure = comparison_figure(comparison(count=1, methods=METHODS[:1]))
    assert not any(container.has_yerr for container in figure.axes[0].containers)


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


def test_pdf_carries_no_date():
    content = pdf(comparison_figure(comparison(methods=METHODS[:1])))
    assert content[:4] == b"%PDF"
    assert b"CreationDate" not in content


def test_pdf_has_no_type_3_font():
    content = pdf(comparison_figure(comparison(methods=METHODS[:1])))
    assert b"/TrueType" in content or b"/CIDFontType2" in content
    assert b"/Type3" not in content


# Linear RGB as seen without the red or the green cones (Viénot, Brettel and Mollon, 1999).
VISION = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
    "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
}


@pytest.mark.parametrize("matrix", VISION.values(), ids=VISION)
def test_methods_can_be_told_apart_by_the_colour_blind(matrix):
    seen = []
    for method in (*METHODS, *EXTRA_METHODS):
        linear = [channel**2.2 for channel in to_rgb(method_colour(method))]
        mixed = [sum(weight * c for weight, c in zip(row, linear)) for row in matrix]
        seen.append([max(value, 0) ** (1 / 2.2) for value in mixed])
    for one, other in combinations(seen, 2):
        assert sum((a - b) ** 2 for a, b in zip(one, other)) ** 0.5 > 0.1


def test_every_dataset_has_its_own_marker():
    assert len({dataset_marker(name) for name in (*DATASETS, "mine")}) == len(DATASETS) + 1
    assert method_colour("mine") not in {method_colour(name) for name in METHODS}


def test_every_method_has_its_own_dash():
    dashes = [method_dash(name) for name in (*METHODS, *EXTRA_METHODS)]
    assert len(set(dashes)) == len(dashes)
    assert method_dash("mine") == ()


def luminance(colour):
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))


def test_differences_are_paler_the_smaller_and_always_bear_black_text():
    for sign in (1, -1):
        levels = [luminance(delta_colour(sign * delta)) for delta in (0, 1, 3, 6, 10)]
        assert levels == sorted(levels, reverse=True)
        assert len(set(levels)) == 5
        assert (levels[-1] + 0.05) / 0.05 > 7
        assert delta_colour(sign * 30) == delta_colour(sign * 10)
    assert delta_colour(5) != delta_colour(-5)


def test_a_difference_has_its_sign_and_no_negative_zero():
    assert [delta_text(delta) for delta in (1.25, -0.04, -7.26)] == ["+1.2", "+0.0", "-7.3"]
