"""Costs of errors, alike for all cases or of each case, as penalties of false positives."""

from __future__ import annotations

from typing import Any

import numpy as np

from pu_shift._checks import ArgumentError, positive


def alpha_of_costs(alpha: Any, false_positive: Any, false_negative: Any) -> Any:
    """Return alpha, of costs c₊/(c₊ + c₋): a number, an array with one for each case, or None."""
    if false_positive is None and false_negative is None:
        if np.ndim(alpha) == 0:
            return alpha
        alpha = np.asarray(alpha, dtype=np.float64)
        if not ((alpha >= 0.0) & (alpha <= 1.0)).all():
            raise ArgumentError("alpha", "must lie between 0 and 1 for each case")
        return alpha
    if alpha is not None:
        raise ArgumentError("alpha", "must not be given together with costs")
    both = (
        _cost("false_positive_cost", false_positive),
        _cost("false_negative_cost", false_negative),
    )
    if len({np.shape(cost) for cost in both} - {()}) > 1:
        raise ArgumentError("false_positive_cost", "must have as many values as the other cost")
    if not np.all(both[0] + both[1] > 0.0):
        raise ArgumentError("false_positive_cost", "must not be 0 where the other cost is 0")
    return both[0] / (both[0] + both[1])


def _cost(name: str, cost: Any) -> Any:
    """Return a cost that is above 0, or one for each case, none of them below 0."""
    if cost is None:
        raise ArgumentError(name, "must be given, as the other cost is")
    if np.ndim(cost) == 0:
        return positive(name, cost)
    cost = np.asarray(cost, dtype=np.float64)
    if not (np.isfinite(cost) & (cost >= 0.0)).all():
        raise ArgumentError(name, "must be finite and not negative for each case")
    return cost
