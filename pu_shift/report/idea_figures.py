"""Figures of the paper's ideas: the equivalent problems, decision regions, bounded ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from scipy.stats import norm

from pu_shift.paper.figures import (
    NEGATIVE_COLOUR,
    POSITIVE_COLOUR,
    method_colour,
    method_dash,
    new_figure,
)
from pu_shift.paper.settings import METHODS
from pu_shift.priors import Condition, ratio_bounds
from pu_shift.ratios.ulsif import ULSIF
from pu_shift.report.ideas import Surfaces

# The classes of the one-dimensional example: unit Gaussians at these means.
MEANS = {1: 1.0, -1: -1.0}
LINE = np.linspace(-4.0, 4.0, 161)
DIRECTIONS = ("p/u", "u/p")


class Problem(NamedTuple):
    """A problem of the paper's Figure 1: priors and penalty, and its Bayes classifier."""

    name: str
    where: str
    classifier: str


def problems(condition: Condition) -> list[Problem]:
    """Describe the target problem, its two equivalents and ordinary PU, as in Figure 1."""
    prior, alpha = f"{condition.prior:.3g}", f"{condition.alpha:.3g}"
    alpha_unif = f"{condition.alpha_unif:.3f}".rstrip("0")
    prior_unif = f"{condition.prior_unif:.3f}".rstrip("0")
    return [
        Problem(
            "shift and asymmetric error",
            f"π = {prior} → π′ = {condition.test_prior:.3g}, α = {alpha}",
            f"sign[π′·p/t − {alpha}]",
        ),
        Problem(
            "class prior shift",
            f"π = {prior} → π_unif = {prior_unif}, α = ½",
            "sign[π_unif·p/p_unif − ½]",
        ),
        Problem(
            "asymmetric error",
            f"π = {prior}, no shift, α_unif = {alpha_unif}",
            f"sign[π·p/u − {alpha_unif}]",
        ),
        Problem("ordinary PU", f"π = {prior}, no shift, α = ½", "sign[π·p/u − ½]"),
    ]


def relations_figure(condition: Condition) -> Figure:
    """Redraw the paper's Figure 1 with the numbers of a condition."""
    figure = new_figure(9.0, 5.4)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 9), ylim=(0, 5.4))
    axes.axis("off")
    centres = [(4.5, 4.05), (1.75, 2.15), (7.25, 2.15), (4.5, 0.55)]
    colours = ["#666666", POSITIVE_COLOUR, NEGATIVE_COLOUR, "#999999"]
    for problem, (x, y), colour in zip(problems(condition), centres, colours):
        box = FancyBboxPatch(
            (x - 1.6, y - 0.4),
            3.2,
            0.8,
            boxstyle="round,pad=0.06",
            facecolor=to_rgba(colour, 0.10),
            edgecolor=colour,
            linewidth=1.4,
        )
        axes.add_patch(box)
        for text, dy, weight in (
            (problem.name, 0.22, "bold"),
            (_mathtext(problem.where), -0.03, "normal"),
            (_mathtext(problem.classifier), -0.29, "normal"),
        ):
            axes.text(x, y + dy, text, ha="center", va="center", fontsize=10, weight=weight)

    def arrow(
        start: tuple, end: tuple, label: str, at: tuple, style: str = "-|>", **text: Any
    ) -> None:
        properties = {"arrowstyle": style, "color": "0.3", "linewidth": 1.2}
        axes.annotate("", end, start, arrowprops={**properties, "shrinkA": 0, "shrinkB": 0})
        axes.text(at[0], at[1], label, fontsize=9, color="0.2", va="center", **text)

    arrow((3.6, 3.55), (2.3, 2.65), "Theorem 3: $\\pi_{unif}$", (2.75, 3.2), ha="right")
    arrow((5.4, 3.55), (6.7, 2.65), "Corollary 4: $\\alpha_{unif}$", (6.25, 3.2), ha="left")
    arrow((3.45, 2.15), (5.55, 2.15), "Theorem 1, Corollary 2", (4.5, 2.32), "<|-|>", ha="center")
    arrow((2.3, 1.65), (3.6, 1.05), "special case: $\\pi'=\\pi$", (2.7, 1.2), ha="right")
    arrow((6.7, 1.65), (5.4, 1.05), "special case: $\\alpha=\\frac{1}{2}$", (6.3, 1.2), ha="left")
    convex = "guaranteed convex" if condition.is_convex else "not guaranteed convex"
    axes.text(
        4.5,
        4.98,
        "Three problems, one Bayes classifier: positive where "
        f"$p/u > \\alpha_{{unif}}/\\pi = {condition.ratio_threshold():.3f}$; "
        f"PU-shift risk {convex}",
        ha="center",
        va="center",
        fontsize=11,
    )
    return figure


def regions_figure(
    surfaces: Surfaces, given_priors: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9)
) -> Figure:
    """Draw where each method says +1 on the banana data, as the given prior moves."""
    rows = len(given_priors)
    height = 1.5 * rows + 0.95
    figure = new_figure(9.6, height, (0.4, 0.1, 0.36, 0.62), wspace=0.06, hspace=0.06)
    grid = figure.subplots(rows, len(METHODS), squeeze=False, sharex=True, sharey=True)
    for given, line in zip(given_priors, grid):
        for method, axes in zip(METHODS, line):
            _region(axes, surfaces, surfaces.scores[method][given], method_colour(method))
            if given == given_priors[0]:
                axes.set_title(method, fontsize=10)
        line[0].set_ylabel(rf"$\pi_g$ = {given:g}", fontsize=10)
    figure.suptitle(
        f"Where each method says +1 on banana, trained at π = {surfaces.prior:g}", fontsize=12
    )
    figure.text(
        0.5,
        0.12 / height,
        "filled, with a line around it: said to be +1; contours: density of the class "
        "+1 (solid) and −1 (dotted)",
        ha="center",
        fontsize=9,
    )
    return figure


def ratios_figure(condition: Condition, surfaces: Surfaces | None = None, seed: int = 0) -> Figure:
    """Draw p/u, which is bounded, beside u/p, which is not; below, on the banana data."""
    rows = 1 if surfaces is None else 2
    figure = new_figure(9.0, 3.7 * rows)
    grid = figure.subplots(rows, 2, squeeze=False)
    rng = np.random.default_rng(seed)
    positives = rng.normal(MEANS[1], 1.0, (500, 1))
    labels = np.where(rng.random(2000) < condition.prior, 1, -1)
    unlabelled = rng.normal([[MEANS[label]] for label in labels], 1.0)
    p, n = (norm.pdf(LINE, MEANS[label]) for label in (1, -1))
    p_over_u = p / (condition.prior * p + (1 - condition.prior) * n)
    for axes, direction, exact, samples in zip(
        grid[0],
        DIRECTIONS,
        (p_over_u, 1 / p_over_u),
        ((positives, unlabelled), (unlabelled, positives)),
    ):
        estimate = np.asarray(ULSIF(*samples, random_state=seed)(LINE[:, None]))
        _ratio_lines(axes, condition, direction, exact, estimate)
    if surfaces is not None:
        for axes, direction in zip(grid[1], DIRECTIONS):
            _ratio_map(axes, figure, surfaces, direction, condition)
    figure.suptitle(f"Density ratios at π = {condition.prior:g}", fontsize=12)
    figure.tight_layout()
    return figure


def _ratio_lines(
    axes: Any, condition: Condition, direction: str, exact: np.ndarray, estimate: np.ndarray
) -> None:
    bounded = direction == "p/u"
    colour, dash = method_colour(f"{direction} uLSIF"), method_dash("u/p uLSIF")
    axes.plot(LINE, exact, color="0.15", label="exact")
    axes.plot(LINE, estimate, color=colour, linestyle=(0, dash), label="uLSIF, 500 P and 2000 U")
    bound = next(limit for limit in ratio_bounds(condition.prior, direction) if limit > 0)
    levels = {
        f"bound {'1/π' if bounded else 'π'}": (bound, ":"),
        "threshold": (condition.ratio_threshold(direction), "-."),
    }
    for label, (level, style) in levels.items():
        axes.axhline(level, color="0.5", linewidth=0.9, linestyle=style, label=label)
    axes.set(xlabel="x", ylim=(-0.3, _top(direction, condition.prior)))
    axes.set_title(f"{direction}: {'at most 1/π' if bounded else 'without an upper bound'}")
    axes.legend(fontsize=8, frameon=False)


def _top(direction: str, prior: float) -> float:
    """Return where an axis of ratios ends."""
    return 1.25 / prior if direction == "p/u" else 15.0


def _mathtext(text: str) -> str:
    """Set the subscripts of π_unif, α_unif and p_unif."""
    for name, symbol in (("π", "\\pi"), ("α", "\\alpha"), ("p", "p")):
        text = text.replace(f"{name}_unif", f"${symbol}_{{unif}}$")
    return text


def _densities(axes: Any, surfaces: Surfaces, colour: str = "0.35") -> None:
    for label, style in ((1, "-"), (-1, ":")):
        axes.contour(
            surfaces.x,
            surfaces.y,
            surfaces.densities[label],
            levels=[0.3, 0.7],
            colors=colour,
            linewidths=0.6 if label == 1 else 0.9,
            linestyles=style,
        )


def _region(axes: Any, surfaces: Surfaces, score: np.ndarray, colour: str) -> None:
    axes.set_facecolor("0.97")
    # A method may say +1 everywhere or nowhere: then there is no line to draw.
    if score.max() > 0:
        top = max(float(score.max()), 1e-9)
        axes.contourf(surfaces.x, surfaces.y, score, levels=[0.0, top], colors=[colour], alpha=0.45)
        if score.min() < 0:
            axes.contour(
                surfaces.x, surfaces.y, score, levels=[0.0], colors=[colour], linewidths=1.2
            )
    _densities(axes, surfaces)
    axes.set(xticks=[], yticks=[])


def _ratio_map(
    axes: Any, figure: Figure, surfaces: Surfaces, direction: str, condition: Condition
) -> None:
    ratio = surfaces.ratios[direction]
    levels = np.linspace(0.0, _top(direction, surfaces.prior), 11)
    filled = axes.contourf(
        surfaces.x, surfaces.y, ratio, levels=levels, cmap="cividis", extend="both"
    )
    figure.colorbar(filled, ax=axes, ticks=levels[::2], format="%.2g")
    threshold = Condition(surfaces.prior, condition.test_prior, condition.alpha).ratio_threshold(
        direction
    )
    if ratio.min() < threshold < ratio.max():
        axes.contour(surfaces.x, surfaces.y, ratio, levels=[threshold], colors="white")
    _densities(axes, surfaces, "0.75")
    axes.set(xticks=[], yticks=[])
    axes.set_title(f"banana: {direction} by uLSIF, white line: threshold", fontsize=10)
