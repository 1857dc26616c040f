"""Curves of an evaluation: ROC, precision against recall, and reliability, with bands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pu_shift.evaluation.metrics import Rates

GRID = np.linspace(0.0, 1.0, 101)
N_BINS = 10
_BLUE, _GREY = "#0072B2", "#777777"


def roc_curve(rates: Rates) -> np.ndarray:
    """Return the (b, 101) share of positives found at each false positive rate of ``GRID``."""
    return np.stack([np.interp(GRID, *curve) for curve in _monotone(rates)])


def precision_recall_curve(rates: Rates) -> np.ndarray:
    """Return the (b, 101) precision at π′ at each recall of ``GRID``."""
    false = np.stack([np.interp(GRID, *curve[::-1]) for curve in _monotone(rates)])
    # At recall 0 it is that of the highest scores.
    recall = np.maximum(np.broadcast_to(GRID, false.shape), 1e-3)
    return rates.precision_at(recall, false)


def _monotone(rates: Rates) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return false and true positive rate, from (0, 0) on, neither of which may fall."""
    false = np.maximum.accumulate(np.clip(np.cumsum(rates.n, axis=1), 0.0, 1.0), axis=1)
    found = np.cumsum(rates.p, axis=1)
    return [(np.append(0.0, x), np.append(0.0, y)) for x, y in zip(false, found)]


def reliability(rates: Rates) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean probability stated in each tenth, and the (b, 10) share of positives at π′.

    Without rows, and where their shares of positives and negatives cancel, it is not a number.
    """
    bins = np.minimum((rates.probability * N_BINS).astype(int), N_BINS - 1)
    member = bins[:, None] == np.arange(N_BINS)
    size = (rates.rows.counts_p + rates.rows.counts_u) @ member
    mean = (rates.rows.counts_p + rates.rows.counts_u) * rates.probability @ member
    stated = np.divide(mean, size, np.full(N_BINS, np.nan), where=size > 0)
    return stated, rates.precision_at(rates.p @ member, np.maximum(rates.n @ member, 0.0))


def band_of(evaluation: Any, curve: Callable[[Rates], np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return a curve, and the lower and upper end of its interval at each point."""
    tail = 0.5 * (1.0 - evaluation.level)
    drawn = np.concatenate([curve(part) for part in evaluation.resamples()])
    (middle,) = curve(evaluation.rates)
    known = ~np.isnan(drawn).all(axis=0)
    low, high = np.full((2, drawn.shape[1]), np.nan)
    low[known], high[known] = np.nanquantile(drawn[:, known], [tail, 1.0 - tail], axis=0)
    return middle, np.fmin(low, middle), np.fmax(high, middle)


def draw_curves(evaluation: Any, axes: Any = None) -> np.ndarray:
    """Draw ROC, precision–recall and reliability with bands, and where the classifier decides."""
    n_axes = 2 if evaluation.rates.rows.probability is None else 3
    if axes is None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.3 * n_axes, 4.9), layout="constrained")
        axes = figure.subplots(1, n_axes)
    axes = np.asarray(axes)
    if axes.shape not in {(2,), (n_axes,)}:
        raise ValueError(f"axes must be two or {n_axes}, got shape {axes.shape}")
    value = {name: one.value for name, one in evaluation.metrics.items()}
    test_prior, text = evaluation.condition.test_prior, f"{100 * evaluation.level:.3g} % interval"
    places = (value["false_positive_rate"], value["recall"]), (value["recall"], value["precision"])
    for one, curve, place in zip(axes, (roc_curve, precision_recall_curve), places):
        middle, low, high = band_of(evaluation, curve)
        one.fill_between(GRID, low, high, color=_BLUE, alpha=0.2, linewidth=0.0, label=text)
        one.plot(GRID, middle, color=_BLUE)
        one.plot(*place, "o", color="black", label="where it decides")
    axes[0].plot([0.0, 1.0], [0.0, 1.0], ":", color=_GREY)
    axes[1].axhline(test_prior, linestyle=":", color=_GREY)
    axes[0].set(
        xlabel="false positive rate",
        ylabel="recall",
        title=f"ROC, area {value['auc']:.3f}",
    )
    axes[1].set(
        xlabel="recall",
        ylabel=f"precision at π′ = {test_prior:.3g}",
        title=f"average precision {value['average_precision']:.3f}",
    )
    if len(axes) == 3:
        _draw_reliability(evaluation, axes[2])
    for one in axes:
        one.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        one.legend(loc="lower left" if one is axes[1] else "lower right")
    return axes


def _draw_reliability(evaluation: Any, axes: Any) -> None:
    stated = reliability(evaluation.rates)[0]
    observed, low, high = band_of(evaluation, lambda rates: reliability(rates)[1])
    reach = [observed - low, high - observed]
    axes.plot([0.0, 1.0], [0.0, 1.0], ":", color=_GREY)
    axes.errorbar(stated, observed, reach, fmt="o-", color=_BLUE, capsize=2, label="tenths")
    test_prior = evaluation.condition.test_prior
    axes.set(
        xlabel=f"probability that it states at π′ = {test_prior:.3g}",
        ylabel="share of positives",
        title=f"Brier score {evaluation.metrics['brier'].value:.3f}",
    )
