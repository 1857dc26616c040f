from itertools import combinations

import pytest
from matplotlib.cbook import is_math_text
from matplotlib.colors import to_rgb

from pu_shift.paper.figures import new_figure, png
from pu_shift.paper.settings import DATASETS, EXTRA_METHODS, METHODS
from pu_shift.paper.style import (
    dataset_marker,
    delta_colour,
    delta_text,
    literal,
    method_colour,
    method_dash,
)

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


def test_a_literal_name_is_no_formula():
    title = new_figure(2, 1).suptitle("")
    for name in ("$a", "$\\no$", "a\\$b$c"):
        title.set_text(literal(name))
        png(title.figure)  # a wrong formula would be an error here
        assert not is_math_text(title.get_text())
