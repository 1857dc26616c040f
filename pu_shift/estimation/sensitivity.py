"""What uncertain priors change: the decisions that depend on where π and π′ lie."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from pu_shift._checks import open_interval
from pu_shift.priors import Condition


@dataclass(frozen=True)
class Sensitivity:
    """How many decisions depend on where π and π′ lie within intervals.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    n_changed : int
        How many are decided one way at some priors within the intervals, and the other way at
        others.
    changed : numpy.ndarray
        (n_rows,) which ones.
    thresholds : tuple of float
        The least and the greatest threshold on the ratio.
    prior, test_prior : tuple of float
        The intervals; a ``test_prior`` of ``None`` goes with the prior.
    alpha : float
        The penalty of a false positive.
    ratio : numpy.ndarray
        (n_rows,) the estimated ratios.
    direction : str
        Of the ratio.
    """

    n_rows: int
    n_changed: int
    changed: np.ndarray
    thresholds: tuple[float, float]
    prior: tuple[float, float]
    test_prior: tuple[float, float] | None
    alpha: float
    ratio: np.ndarray
    direction: str

    @property
    def share(self) -> float:
        """The share of rows whose decision changes."""
        return self.n_changed / self.n_rows

    def plot(self, axes: Any = None) -> Any:
        """Draw the share of rows decided as positive over the test prior, for the ends of π.

        Parameters
        ----------
        axes
            Matplotlib's axes to draw into; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Examples
        --------
        >>> found = decision_sensitivity([0.5, 1.0, 2.0], (0.2, 0.4), (0.3, 0.6))
        >>> found.plot().get_title()
        '1 of 3 decisions change within the intervals'
        """
        if axes is None:
            from matplotlib.figure import Figure

            axes = Figure(figsize=(5.0, 3.4), layout="constrained").add_subplot()
        grid = np.linspace(0.01, 0.99, 197)
        if self.test_prior is None:
            shares = [self._positive(Condition(p, None, self.alpha)) for p in grid]
            axes.plot(grid, shares, color="C0")
        else:
            for prior, style in zip(self.prior, ("--", "-")):
                shares = [self._positive(Condition(prior, p, self.alpha)) for p in grid]
                axes.plot(grid, shares, style, color="C0", label=f"π = {prior:.3g}")
            axes.legend(frameon=False)
        axes.axvspan(*(self.test_prior or self.prior), color="C1", alpha=0.2, lw=0)
        axes.set(
            xlabel="prior π = test prior π′" if self.test_prior is None else "test prior π′",
            ylabel="share decided as positive",
            xlim=(0.0, 1.0),
            ylim=(-0.02, 1.02),
            title=f"{self.n_changed:,} of {self.n_rows:,} decisions change within the intervals",
        )
        return axes

    def _positive(self, condition: Condition) -> float:
        return float(np.mean(condition.classify_ratio(self.ratio, self.direction) > 0))


def decision_sensitivity(
    ratio: Any,
    prior: float | tuple[float, float],
    test_prior: float | tuple[float, float] | None = None,
    alpha: float = 0.5,
    direction: str = "p/u",
) -> Sensitivity:
    r"""Count the decisions that change while π and π′ move within intervals.

    The threshold on p_p/p_u,

    .. math:: \frac{\alpha_\mathrm{unif}}{\pi} = \frac{\alpha(1-\pi')}
        {\alpha\pi(1-\pi') + (1-\alpha)\pi'(1-\pi)},

    is monotone in π at any π′, and in π′ at any π, and so is the one with π′ = π. Its extremes
    lie in the corners of the intervals: what is counted is exact, not sampled.

    Parameters
    ----------
    ratio
        (n,) estimated ratios.
    prior, test_prior
        Intervals of π and π′, or numbers; a ``test_prior`` of ``None`` goes with the prior.
    alpha
        The penalty of a false positive.
    direction
        ``'p/u'`` or ``'u/p'``.

    Returns
    -------
    Sensitivity
        The counts, with a plot.

    Examples
    --------
    >>> found = decision_sensitivity([0.5, 1.0, 2.0], prior=(0.2, 0.4), test_prior=0.4)
    >>> found.n_changed, [round(value, 3) for value in found.thresholds]
    (0, [1.25, 1.364])
    """
    ratio = np.asarray(ratio)
    priors = open_interval("prior", prior)
    if test_prior is None:
        test_priors = None
        corners = [Condition(value, None, alpha) for value in priors]
    else:
        test_priors = open_interval("test_prior", test_prior)
        corners = [Condition(*pair, alpha) for pair in product(priors, test_priors)]
    decided = np.stack([corner.classify_ratio(ratio, direction) > 0 for corner in corners])
    changed = np.asarray(decided.any(axis=0) & ~decided.all(axis=0))
    thresholds = [corner.ratio_threshold(direction) for corner in corners]
    return Sensitivity(
        len(ratio),
        int(changed.sum()),
        changed,
        (min(thresholds), max(thresholds)),
        priors,
        test_priors,
        corners[0].alpha,
        ratio,
        direction,
    )
