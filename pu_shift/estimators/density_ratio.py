"""PU classification by a density ratio, which is fitted once and decided under any condition."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from pu_shift._checks import ArgumentError, is_dask, one_of, shown
from pu_shift._seeds import Seed, child
from pu_shift.estimation.sensitivity import Sensitivity, decision_sensitivity
from pu_shift.estimation.test_prior import estimate_from_sums, test_sums
from pu_shift.estimators.base import PUClassifier, validated
from pu_shift.estimators.costs import alpha_of_costs
from pu_shift.estimators.ratio_options import check_fit_params, kernel_ratio
from pu_shift.estimators.state import RatioState
from pu_shift.priors import DIRECTIONS, Condition, posterior_at, ratio_sums, within_bounds
from pu_shift.ratios.average import RatioAverage, fit_average
from pu_shift.ratios.kernels import at_most
from pu_shift.ratios.registry import (
    BASIS_RATIOS,
    accepts_missing,
    check_candidates,
    for_sparse,
    takes,
)

# Rows of P, and of U, whose held-out ratios the estimate of π′ rests on at most.
MAX_HELD_OUT_ROWS = 100_000


class DensityRatioClassifier(RatioState, PUClassifier):
    r"""PU classification by a density ratio: fitted once, decided under any condition.

    .. math:: \mathrm{sign}\left[\pi\,\frac{p_\mathrm{p}(x)}{p_\mathrm{u}(x)}
              - \alpha_\mathrm{unif}\right]

    ``set_params(test_prior=…)``, ``alpha=…`` and ``prior=…`` change the predictions at once,
    without another ``fit``.

    Parameters
    ----------
    prior
        π, the share of positives among the unlabelled rows; ``None`` estimates it, see
        :func:`pu_shift.estimation.class_prior.estimate_prior`.
    test_prior
        π′, the share of positives where the classifier will be used; ``None`` means π, and
        ``'estimate'`` the share among the very rows that are to be predicted, see
        :func:`pu_shift.estimate_test_prior`.
    alpha
        α, the penalty of a false positive; 1 − α is that of a false negative.
    direction
        ``'p/u'`` (bounded, the better choice) or ``'u/p'``. uLSIF and KLIEP estimate that
        ratio; of other estimators ``'u/p'`` is the inverse, and decisions are the same.
    estimator
        Where the ratio comes from:

        - ``'ulsif'`` or ``'kliep'``, as published, on the features as they are;
        - a scikit-learn classifier with ``predict_proba``, which is trained to tell P from U:
          the ratio is n_u/n_p times its odds, calibrated on held-out rows. It gets X as an
          array; missing values are passed on if it accepts them, and ``prior`` is given;
        - ``'linear'`` or ``'nystroem'`` (logistic regression on the features, or on Gaussian
          kernels of them), ``'boosting'`` (boosted trees);
        - a Chainer link, such as :class:`pu_shift.MLP`, which is trained as the ratio itself: a
          :class:`pu_shift.ratios.deep.DeepRatio` of it, which may also be given, with options;
        - a sequence of names, classifiers and links: their average, weighted as in
          :func:`pu_shift.ratios.average.fit_average` by the least-squares criterion J;
        - ``'auto'``: the average of :data:`pu_shift.ratios.registry.AUTO`; it is ``'ulsif'``
          if one of uLSIF's options below is given, and ``'linear'`` if X is sparse.
    basis, selection, clip_coefficients
        Of uLSIF, as for :class:`pu_shift.ratios.ulsif.ULSIF`.
    n_centers
        Of uLSIF and KLIEP: number of Gaussian centres. By default 4√n for n rows, between
        100 and 500.
    widths, width_factors
        Candidates of the kernel width: numbers, or multiples of the median distance (by default
        1/8 … 2 of an estimate of it from 1,000 rows).
    lams
        Candidates of λ (by default 1e-5 … 10). Of grids of your own a
        :class:`pu_shift.ratios.base.GridEdgeWarning` says when the best lies on the edge.
    n_folds
        Number of folds, at most as many as the smaller sample has rows.
    pos_label
        The label of positives in ``fit``; ``None`` takes the greater one.
    n_jobs
        Candidates and folds that are fitted at a time, as everywhere in scikit-learn.
    gpu
        The CUDA device of uLSIF and KLIEP, or −1 for the CPU.
    random_state
        Seed of everything random: an integer, a ``SeedSequence``, a ``RandomState``, or
        ``None`` for a new one in each fit.

    Attributes
    ----------
    classes_ : numpy.ndarray
        The labels; the second is the positive class.
    ratio_ : pu_shift.ratios.base.Ratio
        The fitted ratio.
    candidates_ : dict
        Of each candidate its held-out criterion J (``'score'``, lower is better) and its
        ``'weight'`` in the average.
    held_out_ : tuple of numpy.ndarray or None
        The average p_p/p_u of rows of P and of U that its parts did not see.
    cross_fit_ : pu_shift.ratios.average.CrossFit or None
        The candidates that were fitted without a fold.
    cross_fitted_ : tuple of numpy.ndarray
        (3, n) arrays of P and of U that :func:`pu_shift.evaluate` judges by, see
        :class:`pu_shift.ratios.average.CrossFit`.
    prior_, prior_interval_ : float, tuple of float or None
        π as given in ``fit``, or as estimated, with its 95 % interval.
    ratio_sums_ : numpy.ndarray
        (2, 3) what the estimate of π′ needs to know of held-out rows of P and U.
    test_prior_ : pu_shift.estimation.test_prior.ShiftEstimate
        With ``test_prior='estimate'``: π′ as found in the rows that were last predicted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_p = rng.normal(1.0, 1.0, (200, 1))
    >>> X_u = np.concatenate([rng.normal(1.0, 1.0, (300, 1)), rng.normal(-1.0, 1.0, (700, 1))])
    >>> classifier = DensityRatioClassifier(prior=0.3).fit_pu(X_p, X_u)
    >>> classifier.predict([[0.2]]).tolist()
    [-1]
    >>> classifier.set_params(test_prior=0.7).predict([[0.2]]).tolist()
    [1]
    >>> _ = classifier.set_params(test_prior="estimate").predict(X_u)
    >>> round(classifier.test_prior_.test_prior, 1)
    0.3
    >>> from sklearn.linear_model import LogisticRegression
    >>> DensityRatioClassifier(0.3, 0.7, estimator=LogisticRegression()).fit_pu(X_p, X_u).predict(
    ...     [[1.0], [-2.0]]
    ... ).tolist()
    [1, -1]
    """

    _accept_sparse = "csr"

    def __init__(
        self,
        prior: float | None = None,
        test_prior: float | str | None = None,
        alpha: float = 0.5,
        direction: str = "p/u",
        *,
        estimator: Any = "auto",
        basis: str = "gaussian",
        n_centers: int | None = None,
        widths: float | Iterable[float] | None = None,
        width_factors: float | Iterable[float] | None = None,
        lams: float | Iterable[float] | None = None,
        selection: str = "kfold",
        n_folds: int = 5,
        clip_coefficients: bool = False,
        pos_label: Any = None,
        n_jobs: int | None = None,
        gpu: int = -1,
        random_state: int | np.random.SeedSequence | np.random.RandomState | None = 0,
    ) -> None:
        self.prior = prior
        self.test_prior = test_prior
        self.alpha = alpha
        self.direction = direction
        self.estimator = estimator
        self.basis = basis
        self.n_centers = n_centers
        self.widths = widths
        self.width_factors = width_factors
        self.lams = lams
        self.selection = selection
        self.n_folds = n_folds
        self.clip_coefficients = clip_coefficients
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.gpu = gpu
        self.random_state = random_state

    def _fit(self, X_p: Any, X_u: Any, fit_params: dict[str, Any]) -> None:
        one_of("direction", self.direction, DIRECTIONS)
        candidates = self._candidates(issparse(X_p))
        check_fit_params(candidates, fit_params)
        kernels = not BASIS_RATIOS.keys().isdisjoint(candidates)
        alone = kernels and len(candidates) == 1
        # An average also fits its kernels without a fold, to two rows at least.
        least = 3 if kernels and not alone else 2
        device, seed, condition, interval = self._prepare(X_p, X_u, least)
        n_folds = self._n_folds(X_p, X_u)
        ratio: Any
        if alone:
            (name,) = candidates
            with device.use():
                P, U = device.send((X_p, X_u))
                ratio = kernel_ratio(self, name, P, U, n_folds, seed)
                known = self._held_out_ratios(ratio, P, U, child(seed, 8))
            self.candidates_ = {name: {"score": float(ratio.scores_.min()), "weight": 1.0}}
            self.held_out_ = self.cross_fit_ = None
            cross_fitted = tuple(np.stack([part, part, 0.0 * part]) for part in known)
            self._warn_of_prior(*known)
        else:
            work = {"fit_params": fit_params, "device": device, "n_jobs": self.n_jobs}
            ratio, self.candidates_, self.held_out_, self.cross_fit_ = fit_average(
                X_p, X_u, candidates, condition.prior, n_folds=n_folds, seed=seed, **work
            )
            known, cross_fitted = self.held_out_, self.cross_fit_.values
            self._warn_of_prior(*self.cross_fit_.scores)
        sums = np.stack([ratio_sums(part, "p/u") for part in known])
        self.ratio_, self.ratio_sums_, self.cross_fitted_ = ratio, sums, cross_fitted
        self._inputs_of = self.estimator, self._inputs
        # The ratio is of this direction whatever the parameter becomes.
        self.direction_ = self.direction
        self.prior_, self.prior_interval_ = condition.prior, interval
        self.__dict__.pop("test_prior_", None)

    def _held_out_ratios(self, ratio: Any, X_p: Any, X_u: Any, seed: Seed) -> tuple[Any, ...]:
        """Return p_p/p_u of P and U, by ratios of the same width and λ fitted without the row."""
        step = 1 if self.direction == "p/u" else -1
        X_p, X_u = (
            at_most(X, MAX_HELD_OUT_ROWS, child(seed, 3, part)) for part, X in enumerate((X_p, X_u))
        )
        parts = ratio.held_out(*(X_p, X_u)[::step], self._n_folds(X_p, X_u), seed)[::step]
        return tuple(part if step == 1 else 1.0 / np.maximum(part, 1e-12) for part in parts)

    @property
    def _stated_test_prior(self) -> float | None:
        if self.test_prior != "estimate":
            return super()._stated_test_prior
        found = getattr(self, "test_prior_", None)
        return None if found is None else found.test_prior

    def _settled(self, X: Any) -> Any:
        settled = copy.copy(self)
        # Predictions do not need them, and workers receive a copy.
        settled.held_out_ = settled.cross_fit_ = settled.cross_fitted_ = None
        if self.test_prior == "estimate":
            self.test_prior_ = estimate_from_sums(self, test_sums(self, X))
            settled.test_prior = self.test_prior_.test_prior
        return settled

    def _ratio_in_use(self, X: Any) -> np.ndarray:
        """Ratios of rows whose test prior is estimated first, if it is to be."""
        ratio = self.predict_ratio(X)
        if self.test_prior == "estimate":
            self.test_prior_ = estimate_from_sums(self, ratio_sums(ratio, self.direction_))
        return ratio

    def sensitivity(
        self,
        X: Any,
        prior: float | tuple[float, float] | None = None,
        test_prior: float | tuple[float, float] | None = None,
    ) -> Sensitivity:
        """Count the decisions that change while π and π′ move within intervals.

        Parameters
        ----------
        X
            (n, d) features.
        prior, test_prior
            Intervals (low, high), or numbers; by default what the classifier decides by. A test
            prior that neither says is the prior; one that is estimated has its own interval.

        Returns
        -------
        Sensitivity
            The counts, exact, and a plot: see
            :func:`pu_shift.estimation.sensitivity.decision_sensitivity`.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X_p, X_u = rng.normal(1.0, 1.0, (99, 1)), rng.normal(0.0, 1.5, (299, 1))
        >>> classifier = DensityRatioClassifier(prior=0.4, widths=1.0, lams=0.1).fit_pu(X_p, X_u)
        >>> found = classifier.sensitivity(X_u, prior=(0.3, 0.5), test_prior=(0.4, 0.4))
        >>> 0 < found.n_changed < found.n_rows
        True
        """
        ratio = self._ratio_in_use(X)
        own = self.condition
        if test_prior is None and self.test_prior is not None:
            estimated = self.test_prior == "estimate"
            found = self.test_prior_ if estimated else None
            test_prior = own.test_prior if found is None else (found.low, found.high)
        given = own.prior if prior is None else prior
        return decision_sensitivity(ratio, given, test_prior, own.alpha, self.direction_)

    def _candidates(self, sparse: bool) -> dict[str, Any]:
        """Return the candidates by name, and refuse options that they do not have."""
        shared = {name: getattr(self, name) for name in ("n_centers", "widths", "width_factors")}
        own = {"lams": self.lams, "basis": self.basis != "gaussian" or None}
        own["selection"] = self.selection != "kfold" or None
        own["clip_coefficients"] = self.clip_coefficients or None
        given = [name for name, value in {**shared, **own}.items() if value is not None]
        auto = isinstance(self.estimator, str) and self.estimator == "auto"
        candidates = check_candidates("ulsif" if auto and given else self.estimator)
        if list(candidates) != ["ulsif"]:
            known = shared if list(candidates) == ["kliep"] else ()
            for name in given:
                if name not in known:
                    raise ValueError(
                        f"{name} is an option of estimator='ulsif', got estimator="
                        f"{shown(self.estimator)}"
                    )
        return for_sparse(candidates, self.estimator) if sparse else candidates

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.allow_nan = self._takes()
        return tags

    def _more_tags(self) -> dict[str, bool]:
        return {**super()._more_tags(), "allow_nan": self._takes()[1]}

    def _takes(self) -> tuple[bool, ...]:
        """Return whether sparse rows and missing values are supported, for scikit-learn's tags."""
        # The prior can be estimated from neither.
        return self._inputs[:2] if self.prior is not None else (False, False)

    @property
    def _accepts_missing(self) -> bool:
        return self._inputs[2]

    @property
    def _inputs(self) -> tuple[bool, ...]:
        """Tags for sparse rows and missing values, and whether these are passed on."""
        estimator, found = getattr(self, "_inputs_of", (None, ()))
        if found and estimator is self.estimator:  # checked by fit
            return found
        candidates = check_candidates(self.estimator).values()
        auto = isinstance(self.estimator, str) and self.estimator == "auto"
        tags = zip(*map(takes, ["linear"] if auto else candidates))
        return *(all(tag) for tag in tags), all(map(accepts_missing, candidates))

    def predict_ratio(self, X: Any) -> np.ndarray:
        """Return the estimated density ratio, which no condition changes.

        Parameters
        ----------
        X
            (n, d) features.

        Returns
        -------
        numpy.ndarray
            (n,) values of p_p/p_u or p_u/p_p, unclipped.
        """
        check_is_fitted(self, "ratio_")
        if is_dask(X):
            return self._lazily("predict_ratio", X, "ratio")
        X = validated(self, X, reset=False)
        if self.direction != self.direction_:
            raise NotFittedError(
                f"direction was {self.direction_!r} in fit and is now {self.direction!r}: "
                "call fit again"
            )
        if isinstance(self.ratio_, RatioAverage):
            ratio = self.ratio_(X)
            return ratio if self.direction == "p/u" else 1.0 / ratio
        return self.ratio_.predict_numpy(X)

    def _decide(self, X: Any) -> np.ndarray:
        return self._decided(self._ratio_in_use(X), self.condition)  # in this order: it finds π′

    def _decided(self, ratio: np.ndarray, condition: Condition) -> np.ndarray:
        """Return signed scores under a condition, which agree with the posteriors."""
        return condition.classify_ratio(self._bounded(ratio, condition.prior), self.direction)

    def _bounded(self, ratio: np.ndarray, prior: float) -> np.ndarray:
        """Move calibrated ratios within their bounds; others are used as published."""
        return within_bounds(ratio, prior, self.direction, getattr(self.ratio_, "margin", 0.0))

    def _posterior(self, X: Any) -> tuple[np.ndarray, float]:
        ratio, prior = self._ratio_in_use(X), self.condition.prior
        return posterior_at(self._bounded(ratio, prior), prior, self.direction), prior

    def predict(
        self,
        X: Any,
        *,
        test_prior: float | str | None = None,
        alpha: Any = None,
        false_positive_cost: Any = None,
        false_negative_cost: Any = None,
        conditions: Sequence[Condition | Mapping[str, float]] | None = None,
    ) -> np.ndarray:
        """Predict the class of least expected cost under the test condition, or under many.

        A pipeline hands the keywords on: ``pipeline.predict(X, test_prior=0.7)``. With metadata
        routing ask for them: ``set_predict_request(test_prior=True, alpha=True, conditions=True)``.

        Parameters
        ----------
        X
            (n, d) features.
        test_prior, alpha
            Another condition for this call alone; ``alpha`` may be (n,) values, of each case.
        false_positive_cost, false_negative_cost
            Costs of a false alarm and of a miss in place of ``alpha``, alike or of each case: with
            q its posterior at π′, positive is q · c₋ > (1 − q) · c₊.
        conditions
            Many conditions, as for :meth:`predict_many`, each completed by what else is given.

        Returns
        -------
        numpy.ndarray
            (n,) labels from ``classes_``; (len(conditions), n) with ``conditions``.

        Examples
        --------
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(1.0, 1.0, (99, 1)), rng.normal(0.0, 1.5, (299, 1))])
        >>> y = np.repeat([1, 0], [99, 299])
        >>> classifier = DensityRatioClassifier(prior=0.4, widths=1.0, lams=0.1)
        >>> pipeline = make_pipeline(StandardScaler(), classifier).fit(X, y)
        >>> pipeline.predict([[0.5]], test_prior=0.1).tolist()
        [0]
        >>> pipeline.predict([[0.5]], conditions=[{"test_prior": 0.9}, {"alpha": 0.9}]).tolist()
        [[1], [0]]
        >>> costs = {"false_positive_cost": 5.0, "false_negative_cost": [3.0, 300.0]}
        >>> pipeline.predict([[0.1], [0.1]], **costs).tolist()
        [0, 1]
        """
        alpha = alpha_of_costs(alpha, false_positive_cost, false_negative_cost)
        if conditions is None:
            return super().predict(X, test_prior=test_prior, alpha=alpha)
        if np.ndim(alpha):
            raise ArgumentError("alpha", "must be one number where there are conditions")
        return self._under(test_prior=test_prior, alpha=alpha).predict_many(X, conditions)

    def _predict_cases(self, X: Any, alpha: np.ndarray) -> np.ndarray:
        if is_dask(X):
            raise ArgumentError("alpha", "must be one number where X is a Dask collection")
        posterior = self.predict_proba(X)[:, 1]
        if alpha.shape != posterior.shape:
            raise ArgumentError("alpha", f"or costs must be of {len(posterior)} rows")
        return self.classes_[(posterior > alpha).astype(int)]

    def predict_many(
        self, X: Any, conditions: Sequence[Condition | Mapping[str, float]]
    ) -> np.ndarray:
        """Predict under many conditions from one evaluation of the ratio.

        Parameters
        ----------
        X
            (n, d) features.
        conditions
            :class:`pu_shift.Condition` objects, or mappings with any of ``prior``, ``test_prior``
            and ``alpha``; what a mapping leaves out is taken from the classifier.

        Returns
        -------
        numpy.ndarray
            (len(conditions), n) labels. Of a Dask array it is a Dask array, of a Dask data
            frame one of n rows, with a column for each condition.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X_p, X_u = rng.normal(1.0, 1.0, (99, 1)), rng.normal(0.0, 1.5, (299, 1))
        >>> classifier = DensityRatioClassifier(prior=0.4, widths=1.0, lams=0.1).fit_pu(X_p, X_u)
        >>> months = [{"test_prior": 0.1}, {"test_prior": 0.9}, {"alpha": 0.9}]
        >>> classifier.predict_many([[0.5]], months).tolist()
        [[-1], [1], [-1]]
        """
        if is_dask(X):
            wanted = self._wanted(conditions, self._settled(X).condition)
            labels = self._lazily("_predict_columns", X, range(len(wanted)), wanted)
            return labels if hasattr(X, "columns") else labels.T
        ratio = self._ratio_in_use(X)
        wanted = self._wanted(conditions, self.condition)
        return np.stack([self._labels(self._decided(ratio, item)) for item in wanted])

    def _predict_columns(self, X: Any, conditions: Sequence[Condition]) -> np.ndarray:
        return self.predict_many(X, conditions).T
