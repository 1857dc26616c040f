r"""A classifier in use: the share of positives group by group, and what depends on it.

For each group of rows, for instance a month, π′ is estimated from the ratio as in
:func:`pu_shift.estimate_test_prior`,

.. math:: s = \frac{\mathbb E_\mathrm{t}[g] - \mathbb E_\mathrm{u}[g]}
                   {\mathbb E_\mathrm{p}[g] - \mathbb E_\mathrm{u}[g]}, \qquad
          \pi' = \pi + s(1 - \pi),

and the decisions are counted that its interval could flip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pu_shift._checks import ArgumentError
from pu_shift._seeds import Seed, child
from pu_shift._sklearn import split_steps
from pu_shift.estimation.sensitivity import decision_sensitivity
from pu_shift.estimation.shift_check import check_shift
from pu_shift.estimation.test_prior import LEAST_ROWS, estimate_from_sums
from pu_shift.estimators.density_ratio import DensityRatioClassifier
from pu_shift.priors import Condition, ratio_sums

# An interval of π′ that is wider is said to be.
WIDE = 0.2
# Groups that differ by chance alone are called another shift this often.
SHIFT_LEVEL = 0.01


@dataclass(frozen=True)
class Group:
    """What is known of the rows of one group.

    Attributes
    ----------
    group : object
        Its value of ``by``.
    n_rows : int
        Its rows.
    test_prior, low, high : float
        The estimate of π′ and its interval; NaN where there are too few rows.
    share_flagged : float
        The share of rows that is decided as positive.
    n_flips : int
        Decisions that differ between the ends of the interval; all rows where there is none.
    p_value : float
        That of :func:`pu_shift.check_shift`; NaN where it cannot be had.
    note : str
        What to be careful about.
    """

    group: Any
    n_rows: int
    test_prior: float
    low: float
    high: float
    share_flagged: float
    n_flips: int
    p_value: float
    note: str


@dataclass(frozen=True)
class Monitor:
    """The groups that :func:`monitor` looked at, in the order of their values.

    Attributes
    ----------
    groups : list of Group
        One entry for each.
    level : float
        The level of the intervals.
    stated : float or None
        The π′ that decisions were made at; ``None`` if at that of each group.
    """

    groups: list[Group]
    level: float
    stated: float | None

    def to_frame(self) -> Any:
        """Return a data frame with a row for each group."""
        import pandas as pd

        return pd.DataFrame([asdict(one) for one in self.groups])

    def __str__(self) -> str:
        return self.to_frame().to_string(index=False, float_format="{:.3f}".format)

    def plot(self, axes: Any = None) -> Any:
        """Draw π′ with its intervals, and the share that is flagged, over the groups.

        Parameters
        ----------
        axes
            Matplotlib's axes to draw into; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        if axes is None:
            from matplotlib.figure import Figure

            axes = Figure(figsize=(7.0, 3.6), layout="constrained").add_subplot()
        places = np.arange(len(self.groups))
        found, low, high, flagged = (
            np.array([getattr(one, name) for one in self.groups])
            for name in ("test_prior", "low", "high", "share_flagged")
        )
        axes.fill_between(places, low, high, color="C0", alpha=0.2, lw=0)
        axes.plot(places, found, "o-", color="C0", label=f"π′, {100 * self.level:.3g}% interval")
        axes.plot(places, flagged, "s--", color="C1", label="share flagged")
        other = np.array([one.p_value < SHIFT_LEVEL for one in self.groups])
        if other.any():
            axes.plot(places[other], found[other], "rx", ms=11, label="not a shift of priors alone")
        few = np.isnan(found)
        if few.any():
            axes.plot(places[few], flagged[few], "k.", label=f"fewer than {LEAST_ROWS} rows")
        if self.stated is not None:
            axes.axhline(self.stated, color="0.5", lw=1, label="π′ of the decisions")
        step = max(1, len(places) // 12)
        axes.set_xticks(places[::step], [str(one.group) for one in self.groups[::step]])
        axes.tick_params(axis="x", rotation=30)
        axes.set(ylabel="share of positives", ylim=(-0.02, 1.02))
        axes.legend(frameon=False, fontsize="small")
        return axes


def monitor(
    classifier: Any,
    X: Any,
    by: Any,
    *,
    level: float = 0.95,
    X_p: Any = None,
    X_u: Any = None,
    random_state: Seed = 0,
) -> Monitor:
    """Look at a classifier in use: π′, decisions and other shifts, group by group.

    Parameters
    ----------
    classifier
        A fitted :class:`pu_shift.DensityRatioClassifier`, or a pipeline that ends with one. With
        ``test_prior='estimate'`` the decisions of a group are those at its own π′.
    X
        (n, d) rows.
    by
        (n,) the group of each row, for instance its month; or the name of a column of the data
        frame X, which is no feature then.
    level
        The level of the intervals of π′.
    X_p, X_u
        The rows it was fitted to, for the test for other shifts; only needed where
        :func:`pu_shift.check_shift` needs them.
    random_state
        Seed of that test.

    Returns
    -------
    Monitor
        A table when printed; ``to_frame()`` and ``plot()``.

    Examples
    --------
    >>> from pu_shift import DensityRatioClassifier
    >>> rng = np.random.default_rng(0)
    >>> rows = lambda n, prior: rng.normal(np.where(rng.random((n, 1)) < prior, 2.0, -2.0), 1.0)
    >>> classifier = DensityRatioClassifier(0.3, estimator="linear")
    >>> _ = classifier.fit_pu(rows(300, 1.0), rows(900, 0.3))
    >>> months = monitor(classifier, np.concatenate([rows(400, 0.2), rows(400, 0.6)]),
    ...                  np.repeat(["June", "July"], 400))
    >>> [(one.group, round(one.test_prior, 1)) for one in months.groups]
    [('July', 0.6), ('June', 0.2)]
    """
    if isinstance(by, str):
        X, by = X.drop(columns=by), X[by]
    by = np.asarray(by)
    by = by.astype(str) if by.dtype.kind == "M" else by
    before, classifier = split_steps(classifier)
    rows = X if before is None else before.transform(X)
    if by.shape != (len(rows),):
        raise ArgumentError("by", f"must have a group for each of {len(rows)} rows of X")
    _check(classifier)
    ratio = classifier.predict_ratio(rows)
    ratios, p_values = {}, {}
    for place, group in enumerate(np.unique(by).tolist()):
        chosen = np.flatnonzero(by == group)
        ratios[group] = ratio[chosen]
        can_test = X_p is not None or getattr(classifier, "cross_fit_", None) is not None
        if can_test and len(chosen) >= LEAST_ROWS:
            part = rows.iloc[chosen] if hasattr(rows, "iloc") else rows[chosen]
            samples = {"X_p": X_p, "X_u": X_u, "random_state": child(random_state, place)}
            p_values[group] = check_shift(classifier, part, **samples).p_value
    return monitor_ratios(classifier, ratios, p_values, level)


def monitor_ratios(
    classifier: Any,
    ratios: Mapping[Any, np.ndarray],
    p_values: Mapping[Any, float],
    level: float = 0.95,
) -> Monitor:
    """Monitor groups of which the ratios are known, and p-values as far as they are."""
    _check(classifier)
    stated = None if classifier.test_prior == "estimate" else classifier.condition.test_prior
    groups = [
        _group(classifier, group, ratio, p_values.get(group, np.nan), level, stated)
        for group, ratio in ratios.items()
    ]
    return Monitor(groups, level, stated)


def _check(classifier: Any) -> None:
    if not isinstance(classifier, DensityRatioClassifier):
        raise ArgumentError(
            "classifier",
            "must be a density ratio: a risk minimiser holds for one prior alone and cannot tell "
            "another",
        )


def _group(
    classifier: Any, group: Any, ratio: np.ndarray, p_value: float, level: float, at: float | None
) -> Group:
    prior, alpha, direction = classifier.condition.prior, classifier.alpha, classifier.direction_
    found, low, high, notes = np.nan, np.nan, np.nan, []
    flips = len(ratio)
    if len(ratio) < LEAST_ROWS:
        notes.append(f"fewer than {LEAST_ROWS} rows: no estimate")
    else:
        estimate = estimate_from_sums(classifier, ratio_sums(ratio, direction), level)
        found, low, high = estimate.test_prior, estimate.low, estimate.high
        ends = tuple(np.clip((low, high), 1e-6, 1.0 - 1e-6).tolist())
        flips = decision_sensitivity(ratio, prior, ends, alpha, direction).n_changed
        if high - low > WIDE:
            notes.append("few rows: the interval is wide")
    if p_value < SHIFT_LEVEL:
        notes.append("not a shift of priors alone: the estimate may be wrong")
    used = found if at is None else at
    condition = Condition(prior, None if np.isnan(used) else used, alpha)
    flagged = float(np.mean(classifier._decided(ratio, condition) > 0))
    return Group(
        group, len(ratio), found, low, high, flagged, flips, float(p_value), "; ".join(notes)
    )
