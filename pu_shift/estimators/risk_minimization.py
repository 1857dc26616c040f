"""PU classification by minimising the risk of one condition; Chainer trains the model."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from pu_shift._chainer import require_chainer
from pu_shift._checks import one_of
from pu_shift._grids import RISK_LAMS, check_grid
from pu_shift._seeds import Seed
from pu_shift._sklearn import fit_scaler
from pu_shift.device import to_numpy
from pu_shift.estimators.base import PUClassifier, validated
from pu_shift.estimators.fitting import Fitted, fit_basis, fit_network
from pu_shift.estimators.held_out import PlattSlope, zero_one_risk
from pu_shift.estimators.state import RiskState
from pu_shift.losses import get_loss, surrogates
from pu_shift.models import (
    GaussianKernelModel,
    LinearModel,
    score_rows,
)
from pu_shift.priors import Condition
from pu_shift.ratios.base import GridEdgeWarning
from pu_shift.ratios.ulsif import BASES
from pu_shift.risks import CORRECTIONS, Risk

# Training is unfinished if more than this share of the risk's decrease came in its last tenth.
LATE = 0.02


class NonConvexWarning(UserWarning):
    """The unbiased risk of this condition is not convex: training may diverge."""


class FallbackWarning(UserWarning):
    """The trained model was no better than a constant on held-out rows."""


class RiskMinimizationClassifier(RiskState, PUClassifier):
    r"""PU classification by minimising the PU-shift risk of one condition.

    A penalty α and a shift to π′ are trained as the equivalent shift to π_unif (Theorem 3):
    conditions that are equivalent give the same classifier. The basis, linear or Gaussian, its
    width and λ are chosen by the held-out risk at that condition.

    After ``fit`` the condition is fixed: with other parameters the classifier refuses to predict
    until it is fitted again.

    The link of the loss gives the posterior q at π_unif (:meth:`pu_shift.losses.Loss.posterior`):
    (1 + g)/2, cut to [0, 1], for the squared and the modified Huber loss, 1/(1 + exp(−g)) for the
    logistic loss. The double hinge determines only the sign of q − ½; there q = 1/(1 + exp(−s·g))
    with the slope s that minimises the non-negative logistic PU-shift risk of the held-out scores
    (of the training scores with ``model``).

    Parameters
    ----------
    prior, test_prior, alpha, n_folds, pos_label, gpu, random_state
        As for :class:`DensityRatioClassifier`; ``random_state`` also draws the mini-batches.
    loss
        ``'squared'``, ``'double_hinge'``, ``'logistic'`` or ``'modified_huber'``.
    basis
        ``'linear'``, ``'gaussian'``, or ``'auto'``: that of less held-out risk. Where the
        Gaussian one has to be trained step by step, the squared loss chooses its width and λ for
        ``'auto'``, in closed form at π_unif or, where that is not convex, at π. Of more than
        20,000 rows of P, or of U, a sample fits it then. Not used with ``model``.
    correction
        ``None`` for the unbiased risk; of the non-negative ones (nnPU-shift, nnPU-asym)
        ``'ascent'`` for Kiryo's gradient step, ``'max'`` for the risk as the paper prints it.
        ``'auto'`` is ``None`` where Theorems 6 and 8 promise a convex risk
        (:attr:`pu_shift.Condition.is_convex`), and ``'ascent'`` elsewhere and with ``model``.
    model
        A Chainer link that gives one score per row, for instance :class:`pu_shift.MLP`. It is
        copied, and training starts from its weights. There is no search then: ``lams`` is one
        number.
    n_centers
        Number of Gaussian centres, drawn from P ∪ U. ``'features'`` takes as many as X has
        features, at least 50: distances between rows of many features are much alike, so that
        a single centre says little.
    widths, width_factors, lams
        Candidates, as for :class:`DensityRatioClassifier`; by default widths of 1/4 … 2 of the
        median distance and λ of 0 … 1 (with ``model`` 0).
    width_rule
        What chooses among several widths: ``'risk'``, the model's own held-out risk, or
        ``'ulsif'``, the cross-validation score of p/u uLSIF with 100 centres and λ = 10⁻². The
        held-out risk of a PU model prefers narrow kernels; uLSIF's score does not. It is the
        same for every condition, and one width is trained instead of all.
    scaling
        ``'standard'`` trains on features of mean 0 and standard deviation 1 (over P ∪ U), and
        keeps ``mean_`` and ``scale_`` for new rows; ``None`` takes features as they are.
        ``'auto'`` standardises unless every feature has a standard deviation between 1/3 and 3
        and a mean within 3 of 0; with ``model`` it does not.
    criterion
        The held-out risk that selects: ``'surrogate'`` (the training loss) or ``'zero_one'``.
    solver
        ``'amsgrad'`` trains by Chainer's AMSGrad. ``'auto'`` solves the squared loss without a
        correction, where its risk is convex, in closed form
        (:mod:`pu_shift.estimators.closed_form`), and trains everything else.
    n_steps, n_batches, learning_rate
        AMSGrad; ``n_batches=None`` takes all rows in every step.
    nn_beta, nn_gamma
        β and γ of the correction, see :func:`pu_shift.risks.nnpu_risk`.
    safe
        Whether the fit is checked. A model whose zero-one risk on held-out rows is not
        a standard error below that of the best constant, min(π_unif, 1 − π_unif), is replaced
        by the constant, with a :class:`FallbackWarning`. Further warnings are of
        :class:`NonConvexWarning` (an unbiased risk that was asked for, and is not convex),
        scikit-learn's ``ConvergenceWarning`` (the risk was still falling when training
        ended) and :class:`pu_shift.ratios.base.GridEdgeWarning` (the largest λ was the best).

    Attributes
    ----------
    classes_ : numpy.ndarray
        The labels; the second is the positive class.
    condition_ : pu_shift.Condition
        The condition it was fitted for.
    model_ : chainer.Link
        The trained model g.
    width_, lam_ : float
        The chosen hyper-parameters.
    mean_, scale_ : numpy.ndarray or None
        What the features are standardised by.
    fallback_ : bool
        Whether the constant took the place of the trained model.
    slope_ : float
        s of the double hinge, fitted when probabilities are first asked for.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_p = rng.normal(1.0, 1.0, (100, 1))
    >>> X_u = np.concatenate([rng.normal(1.0, 1.0, (150, 1)), rng.normal(-1.0, 1.0, (350, 1))])
    >>> classifier = RiskMinimizationClassifier(prior=0.3, test_prior=0.7, n_steps=300)
    >>> classifier.fit_pu(X_p, X_u).predict([[2.0], [-2.0]]).tolist()
    [1, -1]
    >>> classifier.set_params(test_prior=0.5).predict([[2.0]])
    Traceback (most recent call last):
    ...
    sklearn.exceptions.NotFittedError: fitted for Condition(prior=0.3, ...): call fit again, ...
    """

    def __init__(
        self,
        prior: float | None = None,
        test_prior: float | None = None,
        alpha: float = 0.5,
        loss: str = "squared",
        basis: str = "auto",
        correction: str | None = "auto",
        *,
        model: Any = None,
        n_centers: int | str = 100,
        widths: float | Iterable[float] | None = None,
        width_factors: float | Iterable[float] | None = None,
        width_rule: str = "risk",
        scaling: str | None = "auto",
        lams: float | Iterable[float] | None = None,
        n_folds: int = 5,
        criterion: str = "surrogate",
        solver: str = "auto",
        n_steps: int = 1000,
        n_batches: int | None = None,
        learning_rate: float = 1e-2,
        nn_beta: float = 0.0,
        nn_gamma: float = 1.0,
        safe: bool = True,
        pos_label: Any = None,
        gpu: int = -1,
        random_state: int | np.random.SeedSequence | np.random.RandomState | None = 0,
    ) -> None:
        self.prior = prior
        self.test_prior = test_prior
        self.alpha = alpha
        self.loss = loss
        self.basis = basis
        self.correction = correction
        self.model = model
        self.n_centers = n_centers
        self.widths = widths
        self.width_factors = width_factors
        self.width_rule = width_rule
        self.scaling = scaling
        self.lams = lams
        self.n_folds = n_folds
        self.criterion = criterion
        self.solver = solver
        self.n_steps = n_steps
        self.n_batches = n_batches
        self.learning_rate = learning_rate
        self.nn_beta = nn_beta
        self.nn_gamma = nn_gamma
        self.safe = safe
        self.pos_label = pos_label
        self.gpu = gpu
        self.random_state = random_state

    def _fit(self, X_p: np.ndarray, X_u: np.ndarray, fit_params: dict[str, Any]) -> None:
        for name in fit_params:
            raise ValueError(f"{name} is no parameter of RiskMinimizationClassifier.fit")
        self._check_options()
        device, seed, condition, interval = self._prepare(X_p, X_u)
        X_p, X_u, scales = self._standardised(X_p, X_u)
        (fitted,) = self._fit_all(X_p, X_u, [condition], device, seed)
        self._keep(fitted, condition, scales)
        self.prior_interval_ = interval

    def fit_many(
        self, X_p: Any, X_u: Any, conditions: Sequence[Condition | Mapping[str, float]]
    ) -> list[RiskMinimizationClassifier]:
        """Fit one classifier per condition, all of them in one training run.

        The conditions are further columns of the stack that trains widths, λ and folds side by
        side. Each result is what a ``fit_pu`` for its condition alone gives, to rounding.

        Parameters
        ----------
        X_p, X_u
            (n, d) features of the positives and of the unlabelled rows.
        conditions
            As for :meth:`DensityRatioClassifier.predict_many`.

        Returns
        -------
        list of RiskMinimizationClassifier
            Fitted classifiers, in the order of the conditions.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X_p, X_n = rng.normal(2.0, 1.0, (99, 1)), rng.normal(-2.0, 1.0, (180, 1))
        >>> X_u = np.concatenate([rng.normal(2.0, 1.0, (120, 1)), X_n])
        >>> months = [{"test_prior": 0.1}, {"test_prior": 0.9}]
        >>> fitted = RiskMinimizationClassifier(prior=0.4, n_steps=300).fit_many(X_p, X_u, months)
        >>> [classifier.predict([[0.0]]).tolist() for classifier in fitted]
        [[-1], [1]]
        """
        self._check_options()
        X_p, X_u = self._samples(X_p, X_u)
        device, seed, own, _ = self._prepare(X_p, X_u)
        wanted = self._wanted(conditions, own)
        X_p, X_u, scales = self._standardised(X_p, X_u)
        classifiers = []
        for fitted, condition in zip(self._fit_all(X_p, X_u, wanted, device, seed), wanted):
            classifier = copy.copy(self).set_params(
                prior=condition.prior, test_prior=condition.test_prior, alpha=condition.alpha
            )
            classifier._keep(fitted, condition, scales)
            classifier.classes_ = np.array([-1, 1])
            classifiers.append(classifier)
        return classifiers

    def _check_options(self) -> None:
        require_chainer(type(self).__name__)
        one_of("loss", self.loss, surrogates())
        one_of("basis", self.basis, ("auto", *BASES))
        one_of("correction", self.correction, ("auto", *CORRECTIONS))
        one_of("width_rule", self.width_rule, ("risk", "ulsif"))
        one_of("scaling", self.scaling, ("auto", "standard", None))
        one_of("criterion", self.criterion, ("surrogate", "zero_one"))
        one_of("solver", self.solver, ("auto", "amsgrad"))

    def _standardised(self, X_p: Any, X_u: Any) -> tuple[Any, Any, tuple[Any, Any]]:
        """Return the samples as they are trained on, and what new rows are standardised by."""
        if self.scaling is None or (self.scaling == "auto" and self.model is not None):
            return X_p, X_u, (None, None)
        scaler = fit_scaler(X_p, X_u)
        mean, scale = (part.astype(X_p.dtype) for part in (scaler.mean_, scaler.scale_))
        fine = (scale >= 1 / 3) & (scale <= 3.0) & (np.abs(mean) <= 3.0)
        if self.scaling == "auto" and fine.all():
            return X_p, X_u, (None, None)
        return (X_p - mean) / scale, (X_u - mean) / scale, (mean, scale)

    def _keep(self, fitted: Fitted, condition: Condition, scales: tuple[Any, Any]) -> None:
        """Keep a result of training, or the constant in its place."""
        shift = _as_shift(condition)
        self.model_, self.width_, self.lam_, scores, *_ = fitted
        self.slope_, self.fallback_ = np.nan, False
        if not get_loss(self.loss).is_proper:
            self._slope = PlattSlope(scores, shift)
        if self.safe:
            self._guard(fitted, shift)
        self.prior_, self.condition_, self.loss_ = condition.prior, condition, self.loss
        self.mean_, self.scale_ = scales

    @property
    def slope_(self) -> float:
        """S of a loss that is not proper; it is fitted when it is first needed."""
        return self._slope.value

    @slope_.setter
    def slope_(self, value: float) -> None:
        self._slope = PlattSlope()
        self._slope.value = value

    def _guard(self, fitted: Fitted, shift: Condition) -> None:
        """Warn of problems in training, and fall back on the constant if it is better."""
        risk, error = zero_one_risk(fitted.scores, shift)
        constant = min(shift.test_prior, 1.0 - shift.test_prior)
        # Tolerance: a model equal to the constant may differ from it by rounding.
        if risk + error >= constant - 1e-9:
            # A network's scores are of training rows, and it cannot be made a constant.
            self.fallback_ = self.model is None
            what = "was replaced by" if self.fallback_ else "may be no better than"
            warnings.warn(
                f"the model {what} a constant, whose zero-one risk is {constant:.3f}: its own on "
                f"held-out rows is {risk:.3f}, with a standard error of {error:.3f}",
                FallbackWarning,
                stacklevel=5,
            )
        if self.fallback_:
            self._become_constant(shift.test_prior)
            return
        if self._correction(shift) is None and not shift.is_convex and self.model is None:
            warnings.warn(
                "the unbiased risk is not convex where pi exceeds pi_unif (here "
                f"{shift.prior:.3g} and {shift.test_prior:.3g}): use correction='auto'",
                NonConvexWarning,
                stacklevel=5,
            )
        if fitted.late > LATE:
            warnings.warn(
                f"{fitted.late:.0%} of the decrease of the risk came in the last tenth of "
                f"n_steps = {self.n_steps}: increase n_steps or learning_rate",
                ConvergenceWarning,
                stacklevel=5,
            )
        lams = check_grid("lams", RISK_LAMS if self.lams is None else self.lams, allow_zero=True)
        if self.model is None and len(lams) > 1 and self.lam_ == np.max(lams):
            warnings.warn(
                f"the best of lams is {self.lam_:.3g}, the largest: try larger ones",
                GridEdgeWarning,
                stacklevel=5,
            )

    def _become_constant(self, share: float) -> None:
        """Score every row by the constant of least risk, whose posterior is the share."""
        loss = get_loss(self.loss)
        if not loss.is_proper:
            self.slope_ = max(abs(np.log(share / (1.0 - share))), 1e-12)
        self.model_.W.array[...], self.model_.b.array[...] = 0.0, loss.margin(share)

    def _correction(self, condition: Condition) -> str | None:
        """Return the correction that a condition is trained with."""
        if self.correction != "auto":
            return self.correction
        return None if condition.is_convex and self.model is None else "ascent"

    def _fit_all(
        self, X_p: Any, X_u: Any, conditions: list[Condition], device: Any, seed: Seed
    ) -> list[Fitted]:
        """Train for every condition, on the device; those of one correction in one run."""
        default = RISK_LAMS if self.model is None else 0.0
        lams = check_grid("lams", default if self.lams is None else self.lams, allow_zero=True)
        shifts = [_as_shift(condition) for condition in conditions]
        corrections = [self._correction(shift) for shift in shifts]
        fitted: dict[int, Fitted] = {}
        dtype = X_p.dtype if self.model is None else np.float32
        X_p, X_u = device.send((X_p.astype(dtype, copy=False), X_u.astype(dtype, copy=False)))
        for correction in dict.fromkeys(corrections):
            places = [place for place, own in enumerate(corrections) if own == correction]
            options = correction, self.nn_beta, self.nn_gamma
            risk = Risk([shifts[place] for place in places], self.loss, "pu-shift", *options)
            with device.use():
                if self.model is None:
                    results = fit_basis(self, X_p, X_u, risk, lams, self._n_folds(X_p, X_u), seed)
                else:
                    results = [
                        fit_network(
                            self, X_p, X_u, replace(risk, condition=one), lams, device, seed
                        )
                        for one in risk.conditions
                    ]
            fitted.update(zip(places, results))
        return [fitted[place] for place in range(len(conditions))]

    def _decide(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "model_")
        X = validated(self, X, reset=False)
        if self.condition != self.condition_:
            raise NotFittedError(
                f"fitted for {self.condition_}, not for {self.condition}: call fit again, or use "
                "DensityRatioClassifier, which changes its condition without a fit"
            )
        if self.loss != self.loss_:
            raise NotFittedError(
                f"loss was {self.loss_!r} in fit and is now {self.loss!r}: call fit again"
            )
        if self.mean_ is not None:
            X = (X - self.mean_) / self.scale_
        if not isinstance(self.model_, (LinearModel, GaussianKernelModel)):
            X = X.astype(np.float32, copy=False)
        return to_numpy(score_rows(self.model_, self.model_.device.send(X)))

    def _posterior(self, X: Any) -> tuple[np.ndarray, float]:
        """Return the posterior at π_unif, by the link of the loss."""
        scores = self.decision_function(X).astype(np.float64, copy=False)
        return get_loss(self.loss).posterior(scores, self.slope_), self.condition_.prior_unif


def _as_shift(condition: Condition) -> Condition:
    """Return the shift that is equivalent to the condition's shift and cost (Theorem 3)."""
    return Condition(condition.prior, condition.prior_unif)
