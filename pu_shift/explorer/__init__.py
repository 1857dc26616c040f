"""A page for one model and a list of cases: move the prior and the costs, see who is flagged.

The page needs nothing but itself. It holds one number per case, its posterior at the
training prior; all else follows by the algebra of :mod:`pu_shift.priors`, which its
script repeats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pu_shift._checks import positive
from pu_shift._pages import render_page
from pu_shift._sklearn import last_step
from pu_shift.estimators import DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.priors import Condition, posterior_at, shift_posterior

MAX_CASES = 100_000
"""More would make a page that browsers are slow to open."""

Cost = float | tuple[str, Any]
"""A number, or the name of the column that has it for each case, and the values."""

_TEMPLATE = Path(__file__).resolve().parent / "assets" / "explorer.html"


def classifier_of(estimator: Any) -> Any:
    """Return the classifier of this package that an estimator is or, a pipeline, ends with."""
    classifier = last_step(estimator)
    if not isinstance(classifier, (DensityRatioClassifier, RiskMinimizationClassifier)):
        raise ValueError(
            "estimator must be a classifier of pu_shift or a pipeline that ends with one, "
            f"got {type(classifier).__name__}"
        )
    return classifier


def ratio_classifier_of(estimator: Any) -> DensityRatioClassifier:
    """Return the same if it can change its condition without another fit."""
    classifier = classifier_of(estimator)
    if not isinstance(classifier, DensityRatioClassifier):
        raise ValueError(
            "estimator must be a density ratio, which alone takes new priors and costs without "
            f"a new fit, got {type(classifier).__name__}"
        )
    return classifier


def training_posterior(estimator: Any, X: Any) -> np.ndarray:
    """Return the posterior at the training prior of each row, whatever the condition is now."""
    classifier = classifier_of(estimator)
    probability = estimator.predict_proba(X)[:, 1]
    # After the probabilities: the test prior may be found in these rows.
    condition = classifier.condition
    return shift_posterior(probability, condition.test_prior, condition.prior)


def held_out_posteriors(classifier: Any) -> tuple[np.ndarray, ...] | None:
    """Return posteriors at the training prior of rows of P and U that were left out, if kept."""
    kept, prior = getattr(classifier, "cross_fitted_", None), classifier.condition.prior
    return None if kept is None else tuple(posterior_at(part[0], prior, "p/u") for part in kept)


def explorer_page(
    posterior: Any,
    condition: Condition,
    *,
    keep: Mapping[str, Sequence[str]] | None = None,
    false_alarm: Cost | None = None,
    miss: Cost | None = None,
    unit: str = "",
    model: str = "model.npz",
    data: str = "cases.csv",
    held_out: Sequence[Any] | None = None,
    estimate: tuple[float, float, float] | None = None,
) -> str:
    r"""Return an HTML page that shows which cases are flagged under any prior and cost.

    With p the posterior of a case at π′ and α = c₊/(c₊ + c₋), a case is flagged where
    p > α. Expected are Σ (1 − p) false alarms over the flagged cases, Σ p misses over the
    others, and a cost of c₊ for each false alarm and c₋ for each miss. With ``held_out`` the page
    says where the errors will likely lie: chance, and how well so many rows show the rates t and
    FPR, which say nπ′(1 − t) misses and n(1 − π′)FPR false alarms of n cases. Where each case has
    a cost of its own it has a threshold of its own, and the page does not say where errors lie.

    Parameters
    ----------
    posterior
        (n,) posteriors of the cases at the *training* prior, see
        :func:`pu_shift.priors.shift_posterior`; the page has six digits of each.
    condition
        The training prior, and where the sliders stand at first.
    keep
        Columns that tell who the cases are, by name: (n,) texts each.
    false_alarm, miss
        The cost c₊ of a false alarm and c₋ of a miss at first; in the proportion of α by
        default. Or those of each case: the name of their column, and its (n,) values.
    unit
        What costs are counted in, for instance ``'€'``.
    model, data
        Names of the files, for the page to speak of.
    held_out
        Posteriors at the training prior of rows of P and of U that the model has not seen; the
        page has 1,001 quantiles of each.
    estimate
        The share of positives as estimated from the cases, and its interval, for a button.

    Returns
    -------
    str
        The page, with its styles, script and data inside.

    Examples
    --------
    >>> page = explorer_page([0.2, 0.9], Condition(0.3), keep={"name": ["Ann", "Bob"]})
    >>> '"posteriors":[0.2,0.9]' in page
    True
    """
    posterior = np.asarray(posterior, dtype=np.float64)
    keep = {} if keep is None else keep
    if posterior.ndim != 1 or not 0 < len(posterior) <= MAX_CASES:
        raise ValueError(
            f"posterior must hold 1 to {MAX_CASES:,} cases, got shape {posterior.shape}"
        )
    if not ((posterior >= 0.0) & (posterior <= 1.0)).all():
        raise ValueError("posterior must lie within 0 and 1")
    for name, column in keep.items():
        if len(column) != len(posterior):
            raise ValueError(f"keep: {name!r} has {len(column)} values for {len(posterior)} cases")
    if (false_alarm is None) != (miss is None):
        raise ValueError("false_alarm and miss must be given together")
    if false_alarm is None or miss is None:
        false_alarm, miss = _plain_costs(condition.alpha)
    alarms, misses = (
        _cost(name, cost, len(posterior))
        for name, cost in (("false_alarm", false_alarm), ("miss", miss))
    )
    if not np.all(np.add(alarms[1], misses[1]) > 0.0):
        raise ValueError("miss must not be 0 where false_alarm is 0")
    per_case = alarms[0] is not None or misses[0] is not None
    content = {
        "prior": condition.prior,
        "testPrior": condition.test_prior,
        "falseAlarm": alarms[1] if alarms[0] is None else None,
        "miss": misses[1] if misses[0] is None else None,
        "costs": {
            name: None if column is None else {"name": column, "values": values.tolist()}
            for name, (column, values) in (("falseAlarm", alarms), ("miss", misses))
        },
        "unit": unit,
        "model": model,
        "data": data,
        "posteriors": [float(f"{value:.6g}") for value in posterior.tolist()],
        "heldOut": None if held_out is None or per_case else list(map(_quantiles, held_out)),
        "estimate": estimate,
        "keep": [{"name": name, "values": list(column)} for name, column in keep.items()],
    }
    return render_page(
        _TEMPLATE,
        content=content,
        model=model,
        data=data,
        cases=f"{len(posterior):,}",
        prior=f"{100.0 * condition.prior:.3g} %",
    )


def _cost(name: str, cost: Cost, n: int) -> tuple[str | None, Any]:
    """Return the column of a cost, or None, and its values or the one number."""
    if not isinstance(cost, tuple):
        return None, positive(name, cost)
    values = np.asarray(cost[1], dtype=np.float64)
    if values.shape != (n,) or not (np.isfinite(values) & (values >= 0.0)).all():
        raise ValueError(f"{name} must have a finite number >= 0 for each of {n} cases")
    return cost[0], values


def _quantiles(posterior: Any) -> dict[str, Any]:
    """Return the number of rows and the posteriors of at most 1,001 of them, evenly spread."""
    ordered = np.sort(np.asarray(posterior, dtype=np.float64))
    places = np.linspace(0, len(ordered) - 1, min(len(ordered), 1001)).round().astype(int)
    return {"n": len(ordered), "posteriors": [float(f"{value:.6g}") for value in ordered[places]]}


def _plain_costs(alpha: float) -> tuple[float, float]:
    """Return costs in the proportion α : 1 − α of which the lesser is 1."""
    odds = alpha / (1.0 - alpha)
    return (odds, 1.0) if odds > 1.0 else (1.0, 1.0 / odds)
