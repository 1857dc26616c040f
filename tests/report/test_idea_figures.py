import pytest

from pu_shift.paper.figures import png
from pu_shift.paper.settings import METHODS
from pu_shift.priors import Condition
from pu_shift.report.idea_figures import (
    problems,
    ratios_figure,
    regions_figure,
    relations_figure,
)
from tests.paper.simulate import small_surfaces


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.mark.parametrize(
    "condition", [Condition(0.3, 0.5), Condition(0.7, 0.3, 0.2), Condition(0.25, 0.6, 0.9)]
)
def test_the_relations_show_the_numbers_of_the_condition(condition):
    shown = " ".join(texts(relations_figure(condition)))
    assert f"{condition.ratio_threshold():.3f}" in shown
    both, shift, cost, ordinary = problems(condition)
    assert f"π′ = {condition.test_prior:g}" in both.where
    assert float(shift.where.split("= ")[2].split(",")[0]) == pytest.approx(
        condition.prior_unif, abs=5e-4
    )
    assert float(cost.where.split("= ")[-1]) == pytest.approx(condition.alpha_unif, abs=5e-4)
    assert "no shift" in ordinary.where
    assert ("not guaranteed convex" in shown) == (not condition.is_convex)


def test_the_regions_have_a_row_per_given_prior_and_a_column_per_method():
    figure = regions_figure(small_surfaces(), [0.2, 0.8])
    assert [axes.get_title() for axes in figure.axes] == [*METHODS, *[""] * len(METHODS)]
    assert [axes.get_ylabel() for axes in figure.axes[:: len(METHODS)]] == [
        "$\\pi_g$ = 0.2",
        "$\\pi_g$ = 0.8",
    ]
    assert png(figure)[1:4] == b"PNG"


def test_the_exact_ratios_respect_their_bounds():
    condition = Condition(0.4, 0.6)
    upper, lower = ratios_figure(condition).axes
    for axes, bounds in ((upper, (0, 1 / 0.4)), (lower, (0.4, float("inf")))):
        exact = axes.get_lines()[0].get_ydata()
        assert bounds[0] < exact.min() < exact.max() < bounds[1]
    (threshold,) = [line for line in upper.get_lines() if line.get_label() == "threshold"]
    assert threshold.get_ydata()[0] == condition.ratio_threshold()


def test_with_surfaces_the_ratios_have_maps_below():
    assert len(ratios_figure(Condition(0.3, 0.5), small_surfaces()).axes) == 6
