r"""How good a density ratio is on held-out rows, and the monotone function that improves it.

Every ratio w = p_p/p_u, whatever it comes from, has the criterion that uLSIF minimises,

.. math:: J(w) = \tfrac12 \mathbb{E}_\mathrm{u}[w^2] - \mathbb{E}_\mathrm{p}[w]
          = \tfrac12 \mathbb{E}_\mathrm{u}\left[(w - p_\mathrm{p}/p_\mathrm{u})^2\right]
          + \text{const},

so J on held-out rows compares them all. It decides the monotone function that calibrates a
candidate, the candidate's score, and its weight in an average.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.isotonic import IsotonicRegression

from pu_shift.ratios.base import State, check_shape
from pu_shift.ratios.odds import odds_ratio


def least_squares_score(ratio_p: Any, ratio_u: Any) -> float:
    r"""Score of a density ratio on held-out rows: lower is better.

    .. math:: J = \tfrac12 \widehat{\mathbb{E}}_\mathrm{u}[w^2]
              - \widehat{\mathbb{E}}_\mathrm{p}[w]

    Parameters
    ----------
    ratio_p, ratio_u
        Values of w at held-out rows of P and of U.

    Returns
    -------
    float
        J; −½ for the constant w = 1.

    Examples
    --------
    >>> least_squares_score([1.0, 1.0], [1.0])
    -0.5
    """
    return float(0.5 * np.mean(np.square(ratio_u)) - np.mean(ratio_p))


def stack_weights(ratios_p: Any, ratios_u: Any) -> np.ndarray:
    r"""Weights of the average of K ratios that has the least J on held-out rows.

    .. math:: \min_w \tfrac12 w^\top A w - b^\top w \quad\text{s.t.}\quad
              w \ge 0,\ \textstyle\sum_k w_k = 1, \qquad
              A = \widehat{\mathbb{E}}_\mathrm{u}[r r^\top],\
              b = \widehat{\mathbb{E}}_\mathrm{p}[r]

    Parameters
    ----------
    ratios_p, ratios_u
        (K, n) values of the ratios at held-out rows of P and of U.

    Returns
    -------
    numpy.ndarray
        (K,) weights.

    Examples
    --------
    >>> stack_weights([[1.0, 1.0], [3.0, 1.0]], [[1.0, 1.0], [2.0, 0.0]]).round(6).tolist()
    [0.0, 1.0]
    """
    ratios_p, ratios_u = np.atleast_2d(ratios_p), np.atleast_2d(ratios_u)
    A, b = ratios_u @ ratios_u.T / ratios_u.shape[1], ratios_p.mean(axis=1)
    size = max(float(np.trace(A)), 1e-300)
    # A tiny ridge makes the weights of identical candidates equal.
    factor = np.linalg.cholesky(A + 1e-8 * size * np.eye(len(b)))
    # The sum is held to 1 by a row that outweighs the others.
    heavy = 1e4 * size**0.5 * np.ones(len(b))
    weights, _ = nnls(np.vstack([factor.T, heavy]), np.append(np.linalg.solve(factor, b), heavy[0]))
    return weights / weights.sum()


@dataclass(frozen=True)
class Calibration:
    r"""A strictly increasing function: linear between its knots, rational beyond them.

    Beyond the last knot c it rises from its value v there to a limit V, and falls likewise
    below the first one:

    .. math:: v + (V - v)\,\frac{r - c}{r - c + \varrho}

    Calibrations of files of version 2 have no ``tails``: they are constant beyond their knots.
    """

    knots: np.ndarray
    values: np.ndarray
    tails: np.ndarray | None = None  # limit and reach, below and above

    def __call__(self, ratio: np.ndarray) -> np.ndarray:
        """Return the calibrated ratios."""
        inside = np.interp(ratio, self.knots, self.values)
        if self.tails is None:
            return inside
        (low, reach_low), (high, reach_high) = self.tails
        below = np.maximum(self.knots[0] - ratio, 0.0)
        above = np.maximum(ratio - self.knots[-1], 0.0)
        rise = (high - self.values[-1]) * (above / (above + reach_high))
        return inside + rise - (self.values[0] - low) * (below / (below + reach_low))

    @classmethod
    def fit(cls, ratio_p: np.ndarray, ratio_u: np.ndarray) -> Calibration:
        """Smooth the monotone function of held-out ratios that has the least J.

        That is isotonic regression: in each block the share of P's rows over that of U's. A row
        of U above all others and the like of P below them keep it away from 0 and infinity.
        Each block gives its value to its mean, so that no two ratios become one. The outermost
        blocks end a standard error of their value further out.
        """
        n_p, n_u = len(ratio_p), len(ratio_u)
        ratio = np.concatenate([ratio_p, ratio_u], dtype=np.float64)
        ratio = np.concatenate([ratio, [ratio.max(), ratio.min()]])
        is_p = np.concatenate([np.ones(n_p), np.zeros(n_u), [0.0, 1.0]])
        weights = np.concatenate([np.ones(n_p + n_u), [1.0, n_p / n_u]])
        fitted = IsotonicRegression(y_min=0.0, y_max=1.0).fit(ratio, is_p, weights).predict(ratio)
        shares, block = np.unique(fitted, return_inverse=True)
        mass = np.bincount(block, weights)
        knots = np.bincount(block, weights * ratio) / mass
        values = odds_ratio(shares, n_p, n_u)
        of_p = mass * shares
        errors = 1.0 + np.sqrt(1.0 / of_p + 1.0 / np.maximum(mass - of_p, 1e-9))[[0, -1]]
        limits = values[0] / errors[0], values[-1] * errors[1]
        reaches = knots[0] - ratio.min(), ratio.max() - knots[-1]
        fallback = float(np.ptp(ratio)) or 1.0
        tails = [(limit, reach or fallback) for limit, reach in zip(limits, reaches)]
        return cls(knots, values, np.array(tails))

    def to_state(self) -> State:
        """Return the knots, their values, and the tails."""
        return {"knots": self.knots, "values": self.values, "tails": self.tails}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Calibration:
        """Return the calibration of a state, if it is an increasing positive function."""
        knots, values, tails = state["knots"], state["values"], state.get("tails")
        for name, array in (("knots", knots), ("values", values)):
            check_shape(name, array, (len(knots),))
            if len(array) == 0 or (np.diff(array) < 0.0).any():
                raise ValueError(f"{name} of a calibration must increase")
        low, high = values[[0, -1]]
        if tails is not None:
            check_shape("tails", tails, (2, 2))
            if not (tails[0, 0] <= low and high <= tails[1, 0] and (tails[:, 1] > 0.0).all()):
                raise ValueError("tails of a calibration must go on from its values")
            low = tails[0, 0]
        if low <= 0.0:
            raise ValueError("values of a calibration must be positive")
        return cls(knots, values, tails)
