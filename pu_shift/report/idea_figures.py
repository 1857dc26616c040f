"""Figures of the paper's ideas: the equivalent problems, decision regions, bounded ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from scipy.stats import norm

from pu_shift.paper.settings import METHODS
from pu_shift.paper.style import NEGATIVE_COLOUR, POSITIVE_COLOUR, method_colour, method_dash
from pu_shift.priors import Condition, ratio_bounds
from pu_shift.report.ideas import Surfaces
from pu_shift.ulsif import ULSIF

# The classes of the one-dimensional example: unit Gaussians at these means.
MEANS = {1: 1.0, -1: -1.0}


def problems(condition: Condition) -> list[dict[str, str]]:
    """Describe the four problems of the paper's Figure 1, with the numbers of a condition.

    Parameters
    ----------
    condition
        π, π′ and α.

    Returns
    -------
    list of dict
        ``name``, ``where`` (priors and penalty) and ``classifier`` (Bayes) of the target
        problem, of the two that are equivalent to it, and of ordinary PU classification.

    Examples
    --------
    >>> for problem in problems(Condition(0.3, 0.5, alpha=0.2)):
    ...     print(problem["name"], "|", problem["where"], "|", problem["classifier"])
    shift and asymmetric error | π = 0.3 → π′ = 0.5, α = 0.2 | sign[π′·p/t − 0.2]
    class prior shift | π = 0.3 → π_unif = 0.8, α = ½ | sign[π_unif·p/p_unif − ½]
    asymmetric error | π = 0.3, no shift, α_unif = 0.097 | sign[π·p/u − 0.097]
    ordinary PU | π = 0.3, no shift, α = ½ | sign[π·p/u − ½]
    """
    prior, alpha = f"{condition.prior:.3g}", f"{condition.alpha:.3g}"
    alpha_unif = f"{condition.alpha_unif:.3f}".rstrip("0")
    prior_unif = f"{condition.prior_unif:.3f}".rstrip("0")
    return [
        {
            "name": "shift and asymmetric error",
            "where": f"π = {prior} → π′ = {condition.test_prior:.3g}, α = {alpha}",
            "classifier": f"sign[π′·p/t − {alpha}]",
        },
        {
            "name": "class prior shift",
            "where": f"π = {prior} → π_unif = {prior_unif}, α = ½",
            "classifier": "sign[π_unif·p/p_unif − ½]",
        },
        {
            "name": "asymmetric error",
            "where": f"π = {prior}, no shift, α_unif = {alpha_unif}",
            "classifier": f"sign[π·p/u − {alpha_unif}]",
        },
        {
            "name": "ordinary PU",
            "where": f"π = {prior}, no shift, α = ½",
            "classifier": "sign[π·p/u − ½]",
        },
    ]


def relations_figure(condition: Condition) -> Figure:
    """Redraw the paper's Figure 1 with the numbers of a condition.

    Parameters
    ----------
    condition
        π, π′ and α.

    Returns
    -------
    Figure
        Four boxes and the theorems that lead from one to another.

    Examples
    --------
    >>> len(relations_figure(Condition(0.3, 0.5)).axes)
    1
    """
    figure = _figure(9.0, 5.4)
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
            (problem["name"], 0.22, "bold"),
            (_mathtext(problem["where"]), -0.03, "normal"),
            (_mathtext(problem["classifier"]), -0.29, "normal"),
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
    """Draw where each method says +1 on the banana data, as the given prior moves.

    Parameters
    ----------
    surfaces
        From :func:`pu_shift.report.ideas.banana_surfaces`.
    given_priors
        One row of panels each.

    Returns
    -------
    Figure
        A row per given prior, a column per method.

    Examples
    --------
    >>> from pu_shift.report.ideas import banana_surfaces
    >>> from pu_shift.paper.protocol import Protocol
    >>> quick = Protocol(n_p=50, n_u=100, n_test=20, n_centers=5, n_folds=2, n_steps=1, ker_steps=1)
    >>> surfaces = banana_surfaces(quick, size=9)
    >>> len(regions_figure(surfaces, [0.3, 0.7]).axes)
    12
    """
    rows = len(given_priors)
    width, height = 9.6, 1.5 * rows + 0.95
    figure = _figure(width, height)
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
    figure.subplots_adjust(
        left=0.4 / width,
        right=1 - 0.1 / width,
        bottom=0.36 / height,
        top=1 - 0.62 / height,
        wspace=0.06,
        hspace=0.06,
    )
    return figure


def ratios_figure(condition: Condition, surfaces: Surfaces | None = None, seed: int = 0) -> Figure:
    """Draw p/u, which is bounded, beside u/p, which is not.

    Parameters
    ----------
    condition
        π, π′ and α; they give the bounds and the thresholds.
    surfaces
        The estimates on the banana data for the lower panels; without them
        there are only the upper ones.
    seed
        The seed of the samples from the two Gaussian classes of the upper panels.

    Returns
    -------
    Figure
        Above, exact ratios and uLSIF estimates for two Gaussian classes on the
        line; below, the estimates on the banana data.

    Examples
    --------
    >>> len(ratios_figure(Condition(0.3, 0.5)).axes)
    2
    """
    rows = 1 if surfaces is None else 2
    figure = _figure(9.0, 3.7 * rows)
    grid = figure.subplots(rows, 2, squeeze=False)
    rng = np.random.default_rng(seed)
    positives = rng.normal(MEANS[1], 1.0, (500, 1))
    labels = np.where(rng.random(2000) < condition.prior, 1, -1)
    unlabeled = rng.normal([[MEANS[label]] for label in labels], 1.0)
    x = np.linspace(-4.0, 4.0, 161)
    p, n = (norm.pdf(x, MEANS[label]) for label in (1, -1))
    p_over_u = p / (condition.prior * p + (1 - condition.prior) * n)
    samples = {"p/u": (positives, unlabeled), "u/p": (unlabeled, positives)}
    for axes, direction in zip(grid[0], samples):
        exact = p_over_u if direction == "p/u" else 1 / p_over_u
        colour, dash = method_colour(f"{direction} uLSIF"), method_dash("u/p uLSIF")
        estimate = np.asarray(ULSIF(*samples[direction], seed=seed)(x[:, None]))
        bound = next(limit for limit in ratio_bounds(condition.prior, direction) if limit > 0)
        axes.plot(x, exact, color="0.15", label="exact")
        axes.plot(x, estimate, color=colour, linestyle=(0, dash), label="uLSIF, 500 P and 2000 U")
        name = "1/π" if direction == "p/u" else "π"
        axes.axhline(bound, color="0.5", linewidth=0.9, linestyle=":", label=f"bound {name}")
        axes.axhline(
            condition.ratio_threshold(direction),
            color="0.5",
            linewidth=0.9,
            linestyle="-.",
            label="threshold",
        )
        axes.set(xlabel="x", ylim=(-0.3, 1.25 / condition.prior if direction == "p/u" else 15.0))
        axes.set_title(
            f"{direction}: {'at most 1/π' if direction == 'p/u' else 'without an upper bound'}"
        )
        axes.legend(fontsize=8, frameon=False)
    if surfaces is not None:
        for axes, direction in zip(grid[1], samples):
            _ratio_map(axes, figure, surfaces, direction, condition)
    figure.suptitle(f"Density ratios at π = {condition.prior:g}", fontsize=12)
    figure.tight_layout()
    return figure


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


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
    levels = np.linspace(0.0, 1.25 / surfaces.prior if direction == "p/u" else 15.0, 11)
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
