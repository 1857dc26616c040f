"""What held-out scores say of a trained model: its zero-one risk, the slope of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from pu_shift.priors import Condition
from pu_shift.risks import Risk, risk_weights


def zero_one_risk(scores: Sequence[np.ndarray], shift: Condition) -> tuple[float, float]:
    """Return the PU-shift risk with the zero-one loss, and its standard error."""
    scores_p, scores_u = scores
    prior, positive, negative = (float(part[0]) for part in risk_weights(shift, "pu-shift"))
    of_p = np.where(scores_p > 0.0, -negative * prior, positive)
    of_u = np.where(scores_u > 0.0, negative, 0.0)
    variance = of_p.var() / len(of_p) + of_u.var() / len(of_u)
    return float(of_p.mean() + of_u.mean()), float(variance**0.5)


class PlattSlope:
    """Scale of held-out scores whose logistic nnPU-shift risk is least, fitted on first use."""

    def __init__(self, scores: Sequence[np.ndarray] = (), shift: Any = None) -> None:
        self.scores, self.shift = scores, shift

    @cached_property
    def value(self) -> float:
        """The slope."""
        scores_p, scores_u = (part.astype(np.float64) for part in self.scores)
        risk = Risk(self.shift, "logistic", "pu-shift", "max")

        def risk_at(log_slope: float) -> float:
            slope = np.exp(log_slope)
            return float(risk(slope * scores_p, slope * scores_u).array)

        return float(np.exp(minimize_scalar(risk_at, bounds=(-5.0, 5.0), method="bounded").x))

    def __getstate__(self) -> dict[str, Any]:
        # The scores, one for each training row, do not go into a pickle.
        return {"value": self.value}
