"""The choices that a number in a table depends on, and the methods fitted with them.

The paper states few of them. Each field says where its value comes from: the paper, a
convention of the field, or a fit to Tables 1-3. ``docs/PROTOCOL.md`` is made from this file.
"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from pu_shift._checks import one_of, positive, positive_int
from pu_shift._grids import check_grid
from pu_shift.data.sampling import Draw
from pu_shift.estimation.class_prior import PriorWarning
from pu_shift.estimators import DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.paper.settings import EXTRA_METHODS, METHODS
from pu_shift.ratios.base import GridEdgeWarning
from pu_shift.risks import CORRECTIONS

SCALINGS = ("none", "standard", "minmax")
STATED, CONVENTION, FITTED = (
    "stated in the paper",
    "convention of the field",
    "fitted to Tables 1–3",
)
# Public code of the same group.
_PYWSL = "as in the group's own toolbox (PU_SL in pywsl)"
_DRPU = "as in the group's later code for density ratios (Nakajima and Sugiyama's DRPU)"


def _field(default: Any, origin: str, why: str) -> Any:
    return field(default=default, metadata={"origin": origin, "why": why})


@dataclass(frozen=True)
class Protocol:
    """The experimental protocol. Each field's origin and reason are in its metadata.

    Examples
    --------
    >>> Protocol().n_p, Protocol(n_folds=3).n_folds
    (500, 3)
    >>> Protocol(n_folds=1)
    Traceback (most recent call last):
    ...
    pu_shift._checks.ArgumentError: n_folds must be an integer >= 2, got 1
    """

    n_p: int = _field(500, STATED, "“500 positive patterns” (Datasets)")
    n_u: int = _field(2000, STATED, "“2,000 unlabeled patterns” (Datasets)")
    n_test: int = _field(500, STATED, "“500 patterns” (Datasets)")
    counts: str = _field(
        "exact",
        FITTED,
        "class counts of U and of the test sets are π·n and π′·n exactly: cells printed with "
        "standard error 0.0 sit exactly on π′ or 1 − π′, which binomial counts of the test sets "
        "cannot give",
    )
    feature_scaling: str = _field(
        "none",
        FITTED,
        "features are raw ('none'), MNIST's pixels 0 to 255 included; with 'standard' or 'minmax' "
        "(each feature in [0, 1], both fitted on P ∪ U) Sq-Lin on MNIST is 11 to 14 points too "
        "good, and DH-Lin on cod-rna 17 to 29 too low",
    )
    n_folds: int = _field(5, CONVENTION, f"5-fold cross-validation, {_PYWSL}")
    n_centers: int = _field(
        100,
        CONVENTION,
        "Gaussian centres of uLSIF, drawn from P ∪ U: the usual number, the default of densratio",
    )
    width_factors: tuple[float, ...] = _field(
        tuple(np.logspace(-1, 1, 11).tolist()),
        CONVENTION,
        "widths of uLSIF and of the Ker models times the median distance within P ∪ U: "
        f"logspace(−1, 1, 11), {_PYWSL}; other dense grids do as well",
    )
    ratio_lams: tuple[float, ...] = _field(
        (1e-2, 1e-1),
        FITTED,
        "λ of uLSIF; from 0.005 ijcnn1 comes out 3 points too good, from 0.02 5 points too low",
    )
    clip_coefficients: bool = _field(
        False, FITTED, "uLSIF's coefficients are not clipped at 0: clipping costs up to 33 points"
    )
    ker_centers: int | str = _field(
        "features",
        FITTED,
        "Gaussian centres of the Ker models, drawn from P ∪ U: as many as there are features, at "
        "least 50. A guess: 50 fit five of the datasets, and leave MNIST with its 784 features 11 "
        "to 17 points too low. Their width is the one at which p/u uLSIF (λ = 10⁻²) has the best "
        "cross-validation score on the same training set, which is no choice of theirs",
    )
    correction: str | None = _field(
        None,
        FITTED,
        "risk minimisation uses the unbiased risk (null), or the non-negative one with its "
        "negative part cut at 0 ('max') or ascended ('ascent'), which differ on MNIST alone and "
        "fit it less",
    )
    learning_rate: float = _field(1e-3, CONVENTION, "AMSGrad's default in Chainer 7")
    n_batches: int = _field(
        5,
        CONVENTION,
        f"mini-batches per epoch, of 500 rows each from one shuffled pool of P and U, {_DRPU}; "
        "4 or 25 fit less",
    )
    n_steps: int = _field(
        500,
        CONVENTION,
        f"AMSGrad steps of the Lin and of the Ker models, 100 epochs {_DRPU}; with ten times as "
        "many single cells of ijcnn1 are up to 35 points too good",
    )
    risk_lams: tuple[float, ...] = _field(
        (0.0,),
        FITTED,
        "λ of the Lin and of the Ker models: none. Of several candidates the held-out risk would "
        "choose; grids up to 10⁻¹ for Lin and 10⁻² for Ker do as well",
    )

    def __post_init__(self) -> None:
        for name in ("n_p", "n_u", "n_test", "n_centers", "n_batches", "n_steps"):
            positive_int(name, getattr(self, name))
        if self.ker_centers != "features":
            positive_int("ker_centers", self.ker_centers)
        positive_int("n_folds", self.n_folds, least=2)
        object.__setattr__(self, "learning_rate", positive("learning_rate", self.learning_rate))
        one_of("counts", self.counts, ("exact", "binomial"))
        one_of("feature_scaling", self.feature_scaling, SCALINGS)
        one_of("correction", self.correction, CORRECTIONS)
        one_of("clip_coefficients", self.clip_coefficients, (True, False))
        grids = [item.name for item in fields(self) if isinstance(item.default, tuple)]
        for name in grids:
            grid = check_grid(name, getattr(self, name), allow_zero=name.endswith("lams"))
            object.__setattr__(self, name, tuple(float(value) for value in grid))

    def estimator(
        self,
        method: str,
        prior: float,
        test_prior: float | None = None,
        *,
        gpu: int = -1,
        random_state: Any = 0,
    ) -> DensityRatioClassifier | RiskMinimizationClassifier:
        """Return a method of the paper: the estimator that the tables fit.

        Parameters
        ----------
        method
            One of the six names in the tables, or ``'p/u uLSIF-Lin'``.
        prior, test_prior
            π, and the π′ that the method is given; by default no shift.
        gpu
            The CUDA device, or −1 for the CPU.
        random_state
            Seed of everything random in fitting. The tables give each training set its own.

        Returns
        -------
        DensityRatioClassifier or RiskMinimizationClassifier
            Not yet fitted: call ``fit_pu(X_p, X_u)``.

        Examples
        --------
        >>> Protocol().estimator("DH-Lin", prior=0.3, test_prior=0.5).loss
        'double_hinge'
        """
        one_of("method", method, (*METHODS, *EXTRA_METHODS))
        common: dict[str, Any] = {
            "prior": prior,
            "test_prior": test_prior,
            "n_folds": self.n_folds,
            "gpu": gpu,
            "random_state": random_state,
        }
        if "uLSIF" in method:
            return DensityRatioClassifier(
                direction=method[:3],
                estimator="ulsif",
                basis="linear" if method.endswith("-Lin") else "gaussian",
                n_centers=self.n_centers,
                width_factors=self.width_factors,
                lams=self.ratio_lams,
                clip_coefficients=self.clip_coefficients,
                **common,
            )
        return RiskMinimizationClassifier(
            loss="double_hinge" if method.startswith("DH") else "squared",
            basis="gaussian" if method.endswith("-Ker") else "linear",
            correction=self.correction,
            n_centers=self.ker_centers,
            width_factors=self.width_factors,
            width_rule="ulsif",
            scaling=None,
            safe=False,
            lams=self.risk_lams,
            solver="amsgrad",  # early-stopped, which a closed form is not
            n_steps=self.n_steps,
            n_batches=self.n_batches,
            learning_rate=self.learning_rate,
            **common,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return json.loads(json.dumps(asdict(self)))


def load_protocol(overrides: str | Path | Mapping[str, Any] | None = None) -> Protocol:
    """Return the protocol, with fields changed by a mapping or a JSON file."""
    if overrides is None:
        return Protocol()
    if not isinstance(overrides, Mapping):
        try:
            overrides = json.loads(Path(overrides).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or f"not JSON ({error})"
            raise ValueError(f"protocol {overrides}: {reason}") from None
        if not isinstance(overrides, dict):
            raise ValueError("protocol must be a JSON object of fields and values")
    known = {item.name for item in fields(Protocol)}
    for name in overrides:
        if name not in known:
            raise ValueError(f"protocol has no field {name!r}")
    return replace(Protocol(), **overrides)


def fit_method(
    protocol: Protocol,
    method: str,
    sample: Draw,
    prior: float,
    given_priors: Sequence[float],
    gpu: int = -1,
) -> dict[float, Any]:
    """Fit one method for every given test prior: the ratio once, the risks in one stack."""
    estimator = protocol.estimator(method, prior, gpu=gpu, random_state=sample.seed)
    with warnings.catch_warnings():
        # Grids and priors are the protocol's; doubts of them are no news to the user.
        for category in (GridEdgeWarning, PriorWarning):
            warnings.simplefilter("ignore", category)
        if isinstance(estimator, RiskMinimizationClassifier):
            conditions = [{"test_prior": given} for given in given_priors]
            fitted = estimator.fit_many(sample.positives, sample.unlabeled, conditions)
        else:
            estimator.fit_pu(sample.positives, sample.unlabeled)
            fitted = [copy.copy(estimator).set_params(test_prior=given) for given in given_priors]
    return dict(zip(given_priors, fitted))


def chosen(classifier: Any) -> dict[str, float]:
    """Return the chosen width and λ and the steps of training; NaN for what is not there."""
    if isinstance(classifier, RiskMinimizationClassifier):
        step = float(classifier.n_steps)
        return {"width": classifier.width_, "lam": classifier.lam_, "step": step}
    return {"width": classifier.ratio_.width_, "lam": classifier.ratio_.lam_, "step": np.nan}


def scale_features(sample: Draw, scaling: str) -> Draw:
    """Scale every feature by what P ∪ U show: ``'standard'``, ``'minmax'`` or ``'none'``."""
    if scaling == "none":
        return sample
    scaler = StandardScaler() if scaling == "standard" else MinMaxScaler()
    scaler.fit(np.concatenate([sample.positives, sample.unlabeled]))
    return replace(
        sample,
        positives=scaler.transform(sample.positives),
        unlabeled=scaler.transform(sample.unlabeled),
        tests={prior: (scaler.transform(X), y) for prior, (X, y) in sample.tests.items()},
    )
