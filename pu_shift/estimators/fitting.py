"""How a risk minimiser is fitted by its parameters: a search over a basis, or a network."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from pu_shift._grids import RISK_WIDTH_FACTORS, assign_folds, check_grid
from pu_shift._seeds import Seed, child
from pu_shift.device import array_module, device_of, to_numpy
from pu_shift.estimators.cross_validation import cross_validate
from pu_shift.models import GaussianKernelModel, LinearModel, check_one_score, score_rows
from pu_shift.priors import Condition
from pu_shift.ratios.kernels import (
    at_most,
    check_scale,
    choose_centers,
    kernel_from_distances,
    median_distance,
    near_median_distance,
    squared_distances,
)
from pu_shift.ratios.odds import MAX_KERNEL_ROWS
from pu_shift.ratios.ulsif import BASES, ULSIF
from pu_shift.risks import Risk
from pu_shift.training import train

# Centres of a kernel model at least, when there are as many as features.
LEAST_CENTERS = 50
# λ of the uLSIF that chooses a width.
WIDTH_LAM = 1e-2


class Fitted(NamedTuple):
    """A trained model, its hyper-parameters, and scores of P and U to calibrate it by.

    ``late`` is what :func:`late_share` returns, ``risk`` the held-out risk that chose it.
    """

    model: Any
    width: float
    lam: float
    scores: tuple[np.ndarray, ...]
    late: float
    risk: float = np.nan


def fit_basis(
    classifier: Any, X_p: Any, X_u: Any, risk: Risk, lams: np.ndarray, n_folds: int, seed: Seed
) -> list[Fitted]:
    """Fit all conditions, widths, λ and folds, and keep the best of each condition.

    Of both bases that is the one of less held-out risk, and the linear one of equals. Kernels are
    then fitted to a sample of very many rows, so that memory stays bounded.
    """
    bases = BASES[::-1] if classifier.basis == "auto" else (classifier.basis,)
    found = []
    for basis in bases:
        P, U = X_p, X_u
        if classifier.basis == "auto" and basis == "gaussian":
            P = at_most(X_p, MAX_KERNEL_ROWS, child(seed, 5, 0))
            U = at_most(X_u, MAX_KERNEL_ROWS, child(seed, 5, 1))
        found.append(_fit_one(classifier, basis, P, U, risk, lams, n_folds, seed))
    return [min(of_bases, key=attrgetter("risk")) for of_bases in zip(*found)]


def _fit_one(
    classifier: Any,
    basis: str,
    X_p: Any,
    X_u: Any,
    risk: Risk,
    lams: np.ndarray,
    n_folds: int,
    seed: Seed,
) -> list[Fitted]:
    """Fit all conditions, widths, λ and folds of one basis."""
    check_scale(X_p, X_u, linear=basis == "linear")
    folds = [
        assign_folds(name, len(X), n_folds, child(seed, 1, part))
        for part, (name, X) in enumerate((("P", X_p), ("U", X_u)))
    ]
    centers = None
    widths = np.array([np.nan])
    if basis == "gaussian":
        n_centers: Any = classifier.n_centers
        if n_centers == "features":
            n_centers = max(LEAST_CENTERS, X_p.shape[1])
        centers = choose_centers(X_p, X_u, n_centers, "both", child(seed, 2))
        widths = _widths(classifier, X_p, X_u, seed)
        if classifier.width_rule == "ulsif":
            ratio = ULSIF(
                X_p, X_u, widths=widths, lams=WIDTH_LAM, n_folds=n_folds, random_state=seed
            )
            widths = np.array([ratio.width_])
    quadratic = risk.loss.curvature is not None and risk.correction is None
    options = {
        "criterion": None if classifier.criterion == "surrogate" else "zero_one",
        "closed_form": classifier.solver == "auto" and quadratic,
        **_training_options(classifier, seed),
    }
    samples = X_p, X_u
    if basis == "linear" or classifier.basis == "gaussian" or options["closed_form"]:
        return _best_models(samples, folds, risk, lams, centers, widths, options)
    # To train every width and λ would take far longer than the linear basis does: the squared
    # loss chooses, in closed form, where its risk is convex.
    found = []
    for one in risk.conditions:
        nearest = Condition(one.prior, max(one.prior, one.test_prior))
        convex = Risk([nearest], "squared", risk.kind)
        quick = {**options, "criterion": None, "closed_form": True}
        (chosen,) = _best_models(samples, folds, convex, lams, centers, widths, quick)
        width, lam = np.array([chosen.width]), np.array([chosen.lam])
        alone = replace(risk, condition=[one])
        found += _best_models(samples, folds, alone, lam, centers, width, options)
    return found


def fit_network(
    classifier: Any, X_p: Any, X_u: Any, risk: Risk, lams: np.ndarray, device: Any, seed: Seed
) -> Fitted:
    """Train a copy of the network; scores are those of the training rows."""
    if len(lams) > 1:
        raise ValueError(
            f"lams must be one number with model, got {len(lams)}: "
            "search with GridSearchCV and pu_shift.evaluation.scorers"
        )
    model, lam = copy.deepcopy(classifier.model), float(lams[0])
    model.to_device(device.name)
    check_one_score(model, X_p)
    done = train(model, X_p, X_u, risk, lam=lam, **_training_options(classifier, seed))
    scores = to_numpy(score_rows(model, X_p)), to_numpy(score_rows(model, X_u))
    return Fitted(model, np.nan, lam, scores, late_share(done.risks))


def _training_options(classifier: Any, seed: Seed) -> dict[str, Any]:
    return {
        "n_steps": classifier.n_steps,
        "n_batches": classifier.n_batches,
        "learning_rate": classifier.learning_rate,
        "random_state": child(seed, 3),
        "record": (0, int(0.9 * classifier.n_steps), classifier.n_steps) if classifier.safe else (),
    }


def _widths(classifier: Any, X_p: Any, X_u: Any, seed: Seed) -> np.ndarray:
    """Return the candidates of the kernel width."""
    if classifier.widths is not None:
        return check_grid("widths", classifier.widths, allow_zero=False)
    if classifier.width_factors is None:
        return np.array(RISK_WIDTH_FACTORS) * near_median_distance(X_p, X_u, child(seed, 4))
    both = array_module(X_p).concatenate([X_p, X_u])
    factors = check_grid("width_factors", classifier.width_factors, allow_zero=False)
    return factors * median_distance(both)


def _best_models(
    samples: Sequence[Any],
    folds: Sequence[np.ndarray],
    risk: Risk,
    lams: np.ndarray,
    centers: Any,
    widths: np.ndarray,
    options: Mapping[str, Any],
) -> list[Fitted]:
    """Cross-validate every width and λ; return the best model of each condition.

    Without centres the model is linear in the features, and there is one width, NaN. The options
    are those of :func:`cross_validate`.
    """
    distances = [] if centers is None else [squared_distances(X, centers) for X in samples]
    best: list[Any] = [(np.inf, None)] * len(risk.conditions)
    for width in widths:
        features = list(samples)
        if centers is not None:
            features = [kernel_from_distances(part, width) for part in distances]
        result = cross_validate(features, folds, risk, lams, **options)
        for c, place in enumerate(result.risks.argmin(axis=1)):
            if result.risks[c, place] < best[c][0]:
                weights = result.weights[:, c, place, -1]
                model = _linear_model(weights, result.biases[c, place, -1:], centers, width)
                scores = result.held_out_scores(features, folds, (c, place))
                late = late_share(result.progress[:, c, place, -1])
                risk_there = float(result.risks[c, place])
                fitted = Fitted(model, float(width), float(lams[place]), scores, late, risk_there)
                best[c] = risk_there, fitted
    return [fitted for _, fitted in best]


def late_share(risks: np.ndarray) -> float:
    """Share of the decrease of the training risk that came in the last tenth of the steps.

    The risks are those at the start, at 90 % of the steps and at the end; without any it is 0.
    """
    if not len(risks):
        return 0.0
    before, fall = risks[-2] if len(risks) > 1 else risks[-1], float(risks[0] - risks[-1])
    return float(before - risks[-1]) / fall if fall > 0.0 else 0.0


def _linear_model(weights: Any, bias: Any, centers: Any, width: float) -> LinearModel:
    """Make a single model of trained weights, where they are."""
    model: Any
    if centers is None:
        model = LinearModel(len(weights), dtype=weights.dtype)
    else:
        model = GaussianKernelModel(centers, width, dtype=weights.dtype)
    model.to_device(device_of(weights).name)
    model.W.array[...], model.b.array[...] = weights[:, None], bias
    return model
