r"""Scikit-learn estimators for positive and unlabelled data under a given test condition.

The training data say little about where a classifier will be used: the test prior π′ and the
false-positive penalty α are given by the user. Both estimators take them, and differ in when:

:class:`DensityRatioClassifier`
    fits p_p/p_u (or p_u/p_p) once; π, π′ and α move only a threshold and may change after
    ``fit``.
:class:`RiskMinimizationClassifier`
    minimises the risk of one condition; another one needs another ``fit``.

Labels
------
``fit(X, y)`` takes y = 1 for labelled positives and 0 (or −1) for unlabelled
rows. As everywhere in scikit-learn ``classes_`` are the two labels seen, the
greater of them is the positive class, and ``predict`` returns labels from
``classes_``; ``fit_pu(X_p, X_u)``, which sees no labels, has −1 and 1. A
prediction of ``classes_[0]`` means "negative", not "unlabelled".

Probabilities
-------------
``predict_proba`` is the posterior at the *test* prior π′. It does not depend
on α; ``predict`` is the decision of least expected cost, the positive class
where the posterior exceeds α.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from pu_shift._chainer import require_chainer
from pu_shift._checks import ArgumentError, one_of, positive_int, shown
from pu_shift._grids import (
    RATIO_LAMS,
    RISK_LAMS,
    RISK_WIDTH_FACTORS,
    WIDTH_FACTORS,
    assign_folds,
    check_grid,
)
from pu_shift._seeds import Seed, as_seed, child
from pu_shift._sklearn import fit_scaler
from pu_shift.bigdata import as_blocks, in_blocks, is_dask, map_rows, meta_of
from pu_shift.device import array_module, device_of, get_device, to_numpy
from pu_shift.estimation.class_prior import estimate_prior
from pu_shift.estimation.test_prior import (
    Sensitivity,
    decision_sensitivity,
    estimate_from_sums,
    posterior_at,
    squashed,
    sums_of,
    test_sums,
)
from pu_shift.estimators.cross_validation import cross_validate
from pu_shift.losses import get_loss, surrogates
from pu_shift.models import GaussianKernelModel, LinearModel, score_rows
from pu_shift.priors import DIRECTIONS, Condition, shift_posterior
from pu_shift.ratios.average import (
    KERNELS,
    RatioAverage,
    check_candidates,
    check_streams,
    default_centers,
    fit_average,
    for_sparse,
    lets_gaps_in,
    takes,
)
from pu_shift.ratios.kernels import (
    at_most,
    check_scale,
    choose_centers,
    kernel_from_distances,
    median_distance,
    squared_distances,
)
from pu_shift.ratios.ulsif import BASES, KLIEP, ULSIF, GridEdgeWarning
from pu_shift.risks import CORRECTIONS, Risk, nnpu_shift_risk, risk_weights
from pu_shift.training import train

# The parameters that say where a classifier is used.
CONDITION = ("prior", "test_prior", "alpha")
# Centres of a kernel model at least, when there are as many as features.
LEAST_CENTERS = 50
# λ of the uLSIF that chooses a width.
WIDTH_LAM = 1e-2
# Training is called unfinished when more of the risk's fall than this came in its last tenth.
LATE = 0.02
# Rows of P, and of U, whose held-out ratios the estimate of π′ rests on at most.
MAX_HELD_OUT_ROWS = 100_000


class LabelWarning(UserWarning):
    """The labels are legal, but may mean the opposite of what was intended."""


class NonConvexWarning(UserWarning):
    """The unbiased risk of this condition is not convex: training may run away from it."""


class FallbackWarning(UserWarning):
    """The trained model was no better than a constant on held-out rows."""


class _Fitted(NamedTuple):
    """A trained model, its hyper-parameters, and scores of P and U to calibrate it by.

    ``late`` is the share of the fall of the training risk that came in the last tenth of the steps.
    """

    model: Any
    width: float
    lam: float
    scores: tuple[np.ndarray, ...]
    late: float


class _PUClassifier(ClassifierMixin, BaseEstimator):
    """What both estimators share: labels, samples, condition, decisions."""

    _accept_sparse: str | bool = False
    _accept_blocks = False

    # For metadata routing, which does not look into **fit_params.
    __metadata_request__fit: ClassVar[dict[str, None]] = {"sample_weight": None}

    @property
    def _accept_gaps(self) -> bool:
        """Whether rows may have missing values."""
        return False

    def set_params(self, **params: Any) -> _PUClassifier:
        """Set parameters; those of the condition take effect as the class says.

        Parameters
        ----------
        **params
            Parameters of the constructor, and ``estimator__…`` of a nested one.

        Returns
        -------
        self
            The classifier.
        """
        changed = set(CONDITION).intersection(params)
        if changed and not hasattr(self, "classes_"):
            # What a search does to a fresh clone, which PURiskScorer asks for.
            self._set_before_fit = changed.union(getattr(self, "_set_before_fit", ()))
        return super().set_params(**params)

    def fit(self, X: Any, y: Any, **fit_params: Any) -> _PUClassifier:
        """Fit to rows of which some are labelled as positive.

        Parameters
        ----------
        X
            (n, d) features: an array or a data frame.
        y
            (n,) labels: 1 for labelled positives, 0 or −1 for unlabelled rows. Of two
            other labels, numbers or strings, ``pos_label`` marks the positives; without it
            the greater one, and a :class:`LabelWarning` says which that is.
        **fit_params
            What the ``fit`` of a classifier given as ``estimator`` takes, an array with an
            entry for each row: ``sample_weight``, or ``step__sample_weight`` of a pipeline.
            ``None`` is as good as nothing. With metadata routing
            ``set_fit_request(sample_weight=True)`` asks for weights.

        Returns
        -------
        self
            The fitted classifier.
        """
        if is_dask(X) or in_blocks(X):
            raise ValueError("X comes in blocks: use fit_pu(X[y == 1], X[y != 1])")
        X, y = validated(self, X, y, ensure_min_samples=2)
        classes = _classes(y, self.pos_label)
        places = [np.flatnonzero(y == label) for label in classes[::-1]]
        params = {}
        for name, value in fit_params.items():
            if value is None:
                continue
            value = np.asarray(value)
            if value.shape[:1] != y.shape:
                raise ValueError(f"{name} must have an entry for each of {len(y)} rows")
            params[name] = tuple(value[place] for place in places)
        self._fit(*(X[place] for place in places), params)
        self.classes_ = classes
        return self

    def fit_pu(self, X_p: Any, X_u: Any) -> _PUClassifier:
        """Fit to a positive and an unlabelled sample.

        Parameters
        ----------
        X_p, X_u
            (n, d) features of the positives and of the unlabelled rows. For
            :class:`DensityRatioClassifier` each may be more than the memory holds: a Dask array
            or data frame, or :class:`pu_shift.RowBlocks`.

        Returns
        -------
        self
            The fitted classifier; its ``classes_`` are −1 and 1.
        """
        self._fit(*self._samples(X_p, X_u), {})
        self.classes_ = np.array([-1, 1])
        return self

    def _samples(self, X_p: Any, X_u: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check the two samples; both get the dtype of the first."""
        X_p, X_u = as_blocks("X_p", X_p), as_blocks("X_u", X_u)
        if in_blocks(X_p, X_u) and not self._accept_blocks:
            raise ValueError(
                f"{'X_p' if in_blocks(X_p) else 'X_u'} comes in blocks, but "
                f"{type(self).__name__} needs all rows in memory: give it a sample of them, or "
                "use DensityRatioClassifier"
            )
        X_p = self._sample("X_p", X_p)
        X_u = self._sample("X_u", X_u, reset=False)
        if issparse(X_p) != issparse(X_u):
            raise ValueError("X_u must be sparse if X_p is, and dense if it is dense")
        return X_p, X_u.astype(X_p.dtype, copy=False)

    def _sample(self, name: str, X: Any, **options: Any) -> Any:
        """Check a sample; rows in blocks check themselves, but for their names."""
        rows = validated(self, X.example if in_blocks(X) else X, name=name, **options)
        return X if in_blocks(X) else rows

    @property
    def condition(self) -> Condition:
        """The condition that the parameters describe; an estimated prior if none is given."""
        prior = self.prior
        if prior is None:
            check_is_fitted(self, "prior_")
            prior = self.prior_
        return Condition(prior, self._stated_test_prior, self.alpha)

    @property
    def _stated_test_prior(self) -> float | None:
        """π′ as far as it is known without rows."""
        return self.test_prior

    def _under(self, **condition: Any) -> _PUClassifier:
        """Return the classifier as it is, or a copy with the parameters that are not None."""
        given = {name: value for name, value in condition.items() if value is not None}
        return copy.copy(self).set_params(**given) if given else self

    def predict(
        self, X: Any, *, test_prior: float | str | None = None, alpha: float | None = None
    ) -> np.ndarray:
        """Predict the class of least expected cost under the test condition.

        Parameters
        ----------
        X
            (n, d) features.
        test_prior, alpha
            Another condition for this call alone; what is ``None`` is the classifier's own. A
            risk minimiser refuses one that it was not fitted for.

        Returns
        -------
        numpy.ndarray
            (n,) labels from ``classes_``. Of a Dask array it is a Dask array, of a Dask data
            frame a series, which are computed when you ask for them; so are the results of the
            other methods that take rows.
        """
        if is_dask(X):
            return self._under(test_prior=test_prior, alpha=alpha)._lazily("predict", X, "label")
        return self._labels(self.decision_function(X, test_prior=test_prior, alpha=alpha))

    def decision_function(
        self, X: Any, *, test_prior: float | str | None = None, alpha: float | None = None
    ) -> np.ndarray:
        """Signed score under the test condition: positive means the positive class.

        Parameters
        ----------
        X
            (n, d) features.
        test_prior, alpha
            As for ``predict``.

        Returns
        -------
        numpy.ndarray
            (n,) scores: g(x) of a risk minimiser, of a density ratio
            :meth:`pu_shift.priors.Condition.classify_ratio`.
        """
        used = self._under(test_prior=test_prior, alpha=alpha)
        return used._lazily("decision_function", X, "score") if is_dask(X) else used._decide(X)

    def predict_proba(self, X: Any, *, test_prior: float | str | None = None) -> np.ndarray:
        """Class probabilities at the test prior.

        Parameters
        ----------
        X
            (n, d) features.
        test_prior
            As for ``predict``.

        Returns
        -------
        numpy.ndarray
            (n, 2) probabilities of ``classes_``; Bayes' rule moves the posterior that the fit
            tells to π′.
        """
        used = self._under(test_prior=test_prior)
        if is_dask(X):
            return used._lazily("predict_proba", X)
        posterior, prior = used._posterior(X)
        # After the posterior: π′ may be found in these rows.
        positive = shift_posterior(posterior, prior, used.condition.test_prior)
        return np.stack([1.0 - positive, positive], axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on rows whose true classes are known.

        Labels of PU data are no classes: select by :mod:`pu_shift.estimators.cross_validation`.

        Parameters
        ----------
        X
            (n, d) features.
        y
            (n,) true classes: ``classes_[1]`` is positive, ``classes_[0]``, 0 and −1 are
            negative.
        sample_weight
            (n,) weights.

        Returns
        -------
        float
            The share of rows that are classified correctly.
        """
        scores = self.decision_function(X)
        y = np.asarray(y)
        negatives = [self.classes_[0], *([-1, 0] if y.dtype.kind in "biuf" else [])]
        positive = y == self.classes_[1]
        if y.shape != scores.shape or not (positive | np.isin(y, negatives)).all():
            raise ValueError(
                f"y must hold one of the classes {self.classes_.tolist()} for each row of X"
            )
        return float(np.average((scores > 0) == positive, weights=sample_weight))

    def _lazily(self, method: str, X: Any, names: Any = None, *arguments: Any) -> Any:
        """Call a method for each partition of a Dask collection, when that is computed.

        The parameters of the classifier are those of now. Without names, columns are classes.
        """
        check_is_fitted(self, "classes_")
        call = partial(_call_method, self._settled(X), method, arguments)
        # One row tells the type of the result, and whether the columns are right.
        like = call(meta_of(X))[:0]
        return map_rows(call, X, like, self.classes_ if names is None else names)

    def _settled(self, X: Any) -> Any:
        """Return a copy that later changes of the parameters, or of the rows, do not change."""
        return copy.copy(self)

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        return self.classes_[(scores > 0).astype(int)]

    def _prepare(
        self, X_p: np.ndarray, X_u: np.ndarray, least: int = 2
    ) -> tuple[Any, Seed, Condition]:
        """Check what both fits need, find the prior; return device, seed and condition.

        Nothing is kept yet: a fit that fails leaves what was fitted before as it was.
        """
        n_p, n_u = X_p.shape[0], X_u.shape[0]
        if min(n_p, n_u) < least:
            raise ArgumentError(
                "X",
                f"must have at least {least} positive and {least} unlabelled rows, got {n_p} "
                f"and {n_u}",
            )
        if self.random_state is None:
            seed = np.random.SeedSequence()
        elif isinstance(self.random_state, np.random.RandomState):
            seed = as_seed("random_state", int(self.random_state.randint(2**31)))
        else:
            seed = as_seed("random_state", self.random_state)
        device = get_device(self.gpu)
        prior = self.prior
        if prior is None:
            if issparse(X_p):
                raise ValueError("prior must be given when X is sparse")
            if self._accept_gaps and not all(
                in_blocks(X) or np.isfinite(X).all() for X in (X_p, X_u)
            ):
                raise ValueError("prior must be given when X has missing values")
            # A bad test prior or alpha fails before the work.
            Condition(0.5, self._stated_test_prior, self.alpha)
            prior = estimate_prior(X_p, X_u, seed=child(seed, 9)).prior
        return device, seed, Condition(prior, self._stated_test_prior, self.alpha)

    def _wanted(
        self, conditions: Sequence[Condition | Mapping[str, float]], own: Condition
    ) -> list[Condition]:
        """Complete conditions by what the classifier's own one says."""
        stated = self._stated_test_prior
        known: dict[str, Any] = {"prior": own.prior, "test_prior": stated, "alpha": own.alpha}
        wanted = []
        for item in conditions:
            if isinstance(item, Condition):
                wanted.append(item)
            elif isinstance(item, Mapping) and set(item) <= set(known):
                wanted.append(Condition(**{**known, **item}))
            else:
                raise ValueError(
                    "conditions must be Condition objects or mappings with prior, test_prior "
                    f"or alpha, got {shown(item)}"
                )
        if not wanted:
            raise ValueError("conditions must not be empty")
        return wanted

    def _n_folds(self, X_p: np.ndarray, X_u: np.ndarray) -> int:
        """No more folds than rows: each fold needs one of P and one of U."""
        n_folds = positive_int("n_folds", self.n_folds, least=2)
        return min(n_folds, X_p.shape[0], X_u.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # The checks' second class holds no positives, unlike unlabelled rows of
        # any prior, so that they cannot ask for accuracy on their labels.
        tags.classifier_tags.poor_score = True
        return tags

    def _more_tags(self) -> dict[str, bool]:
        # For scikit-learn before 1.6.
        return {"binary_only": True, "poor_score": True}


class DensityRatioClassifier(_PUClassifier):
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
          array; missing values are let through if it takes them, and ``prior`` is given;
        - ``'linear'`` or ``'nystroem'`` (logistic regression on the features, or on Gaussian
          kernels of them), ``'boosting'`` (boosted trees);
        - a sequence of names and classifiers: their average, weighted as in
          :func:`pu_shift.ratios.average.fit_average` by the least-squares criterion J;
        - ``'auto'``: the average of :data:`pu_shift.ratios.average.AUTO`; it is ``'ulsif'``
          if one of uLSIF's options below is given, and ``'linear'`` if X is sparse.

        Of rows that come in blocks, uLSIF and classifiers that have ``partial_fit`` are fitted
        to all of them. The other names are fitted to a random sample of 50,000, and other
        classifiers are refused.
    basis, selection, clip_coefficients
        Of uLSIF, as for :class:`pu_shift.ratios.ulsif.ULSIF`.
    n_centers
        Of uLSIF and KLIEP: number of Gaussian centres. By default 4√n for n rows, between
        100 and 500.
    widths, width_factors
        Candidates of the kernel width: numbers, or multiples of the median distance (by default
        1/8 … 2 of it).
    lams
        Candidates of λ (by default 1e-5 … 10). Of grids of your own a
        :class:`pu_shift.ratios.ulsif.GridEdgeWarning` says when the best lies on the edge.
    n_folds
        Number of folds, at most as many as the smaller sample has rows.
    pos_label
        The label that marks positives in ``fit``; ``None`` takes the greater one.
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
    ratio_ : pu_shift.ratios.ulsif.DensityRatio or pu_shift.ratios.average.RatioAverage
        The fitted ratio.
    candidates_ : dict
        Of each candidate its held-out criterion J (``'score'``, lower is better) and its
        ``'weight'`` in the average.
    held_out_ : tuple of numpy.ndarray or None
        The average p_p/p_u of rows of P and of U that its parts did not see.
    cross_fit_ : pu_shift.ratios.average.CrossFit or None
        The candidates that were fitted without a fold.
    prior_ : float
        π as given or estimated in ``fit``.
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
    _accept_blocks = True

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
        _check_fit_params(candidates, fit_params)
        streamed = in_blocks(X_p, X_u)
        if streamed:
            check_streams(candidates)
        alone = list(candidates) in (["ulsif"], ["kliep"])
        # An average also fits its kernels without a fold, to two rows at least.
        least = 2 if alone or KERNELS.isdisjoint(candidates) else 3
        device, seed, condition = self._prepare(X_p, X_u, least)
        if streamed and device.name != "@numpy":
            raise ValueError(f"gpu must be -1 for rows that come in blocks, got {self.gpu}")
        n_folds = self._n_folds(X_p, X_u)
        ratio: Any
        if alone:
            (name,) = candidates
            with device.use():
                P, U = (X_p, X_u) if streamed else device.send((X_p, X_u))
                ratio = self._kernel_ratio(name, P, U, seed)
                sums = self._held_out_sums(ratio, P, U, child(seed, 8))
            score = float(ratio.scores.min())
            self.candidates_ = {name: {"score": score, "weight": 1.0}}
            self.held_out_ = self.cross_fit_ = None
        else:
            ratio, self.candidates_, self.held_out_, self.cross_fit_ = fit_average(
                X_p,
                X_u,
                candidates,
                condition.prior,
                n_folds=n_folds,
                fit_params=fit_params,
                device=device,
                n_jobs=self.n_jobs,
                seed=seed,
            )
            sums = np.stack([sums_of(squashed(part, "p/u")) for part in self.held_out_])
        self.ratio_, self.ratio_sums_ = ratio, sums
        # The ratio is of this direction whatever the parameter becomes.
        self.direction_, self.prior_ = self.direction, condition.prior
        if hasattr(self, "test_prior_"):
            del self.test_prior_

    def _held_out_sums(self, ratio: Any, X_p: Any, X_u: Any, seed: Seed) -> np.ndarray:
        """Sum over P and U, by ratios of the same width and λ that do not know the row."""
        step = 1 if self.direction == "p/u" else -1
        X_p, X_u = (
            at_most(X, MAX_HELD_OUT_ROWS, child(seed, 3, part)) for part, X in enumerate((X_p, X_u))
        )
        parts = ratio.held_out(*(X_p, X_u)[::step], self._n_folds(X_p, X_u), seed)[::step]
        return np.stack([sums_of(squashed(to_numpy(part), self.direction)) for part in parts])

    @property
    def _stated_test_prior(self) -> float | None:
        if self.test_prior != "estimate":
            return super()._stated_test_prior
        found = getattr(self, "test_prior_", None)
        return None if found is None else found.test_prior

    def _settled(self, X: Any) -> Any:
        settled = copy.copy(self)
        # Predictions do not need them, and what is sent to workers should be small.
        settled.held_out_ = settled.cross_fit_ = None
        if self.test_prior == "estimate":
            self.test_prior_ = estimate_from_sums(self, test_sums(self, X))
            settled.test_prior = self.test_prior_.test_prior
        return settled

    def _ratio_in_use(self, X: Any) -> np.ndarray:
        """Ratios of rows whose test prior is estimated first, if it is to be."""
        ratio = self.predict_ratio(X)
        if self.test_prior == "estimate":
            sums = sums_of(squashed(ratio, self.direction_))
            self.test_prior_ = estimate_from_sums(self, sums)
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
            :func:`pu_shift.estimation.test_prior.decision_sensitivity`.

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

    def _kernel_ratio(self, name: str, X_p: Any, X_u: Any, seed: Seed) -> Any:
        """Fit uLSIF or KLIEP as published, where the samples are."""
        numerator, denominator = (X_p, X_u) if self.direction == "p/u" else (X_u, X_p)
        n_centers = self.n_centers
        if n_centers is None:
            n_centers = default_centers(X_p.shape[0] + X_u.shape[0])
        options: dict[str, Any] = {
            "widths": self.widths,
            "width_factors": WIDTH_FACTORS if self.width_factors is None else self.width_factors,
            "n_folds": self._n_folds(X_p, X_u),
            "seed": seed,
        }
        with warnings.catch_warnings():
            if self.widths is None and self.width_factors is None and self.lams is None:
                warnings.simplefilter("ignore", GridEdgeWarning)
            if name == "kliep":
                # Its centres are rows of the numerator.
                n_centers = min(n_centers, numerator.shape[0])
                return KLIEP(numerator, denominator, n_centers=n_centers, **options)
            return ULSIF(
                numerator,
                denominator,
                n_centers=n_centers,
                lams=RATIO_LAMS if self.lams is None else self.lams,
                basis=self.basis,
                selection=self.selection,
                clip_coefficients=self.clip_coefficients,
                **options,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.allow_nan = self._takes()
        return tags

    def _more_tags(self) -> dict[str, bool]:
        return {**super()._more_tags(), "allow_nan": self._takes()[1]}

    def _takes(self) -> tuple[bool, ...]:
        """Return whether sparse rows and missing values may come, as far as candidates say."""
        if self.prior is None:  # it can be estimated from neither
            return False, False
        auto = isinstance(self.estimator, str) and self.estimator == "auto"
        candidates = ["linear"] if auto else check_candidates(self.estimator).values()
        return tuple(all(found) for found in zip(*map(takes, candidates)))

    @property
    def _accept_gaps(self) -> bool:
        return all(map(lets_gaps_in, check_candidates(self.estimator).values()))

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
        # Where it was fitted, whatever the parameter has become.
        device = device_of(self.ratio_.coefficients)
        with device.use():
            return to_numpy(self.ratio_(device.send(X)))

    def _decide(self, X: Any) -> np.ndarray:
        ratio = self._ratio_in_use(X)
        return self.condition.classify_ratio(ratio, self.direction)

    def _posterior(self, X: Any) -> tuple[np.ndarray, float]:
        ratio, prior = self._ratio_in_use(X), self.condition.prior
        return posterior_at(ratio, prior, self.direction), prior

    def predict(
        self,
        X: Any,
        *,
        test_prior: float | str | None = None,
        alpha: float | None = None,
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
            Another condition for this call alone; what is ``None`` is the classifier's own.
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
        """
        if conditions is None:
            return super().predict(X, test_prior=test_prior, alpha=alpha)
        return self._under(test_prior=test_prior, alpha=alpha).predict_many(X, conditions)

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
        return np.stack(
            [self._labels(item.classify_ratio(ratio, self.direction)) for item in wanted]
        )

    def _predict_columns(self, X: Any, conditions: Sequence[Condition]) -> np.ndarray:
        return self.predict_many(X, conditions).T


class RiskMinimizationClassifier(_PUClassifier):
    r"""PU classification by minimising the PU-shift risk of one condition.

    A penalty α and a shift to π′ are trained as the equivalent shift to π_unif (Theorem 3):
    conditions that are equivalent give the same classifier. Width and λ are chosen by the
    held-out risk at that condition.

    After ``fit`` the condition is fixed: with other parameters the classifier refuses to predict
    until it is fitted again.

    The minimiser tells the posterior q at π_unif: (1 + g)/2, cut to [0, 1], of the squared and
    the modified Huber loss, 1/(1 + exp(−g)) of the logistic loss. That of the double hinge is
    only the sign of q − ½; there q = 1/(1 + exp(−s·g)) with the slope s that minimises the
    non-negative logistic PU-shift risk of the held-out scores (of the training scores with
    ``model``).

    Parameters
    ----------
    prior, test_prior, alpha, n_folds, pos_label, gpu, random_state
        As for :class:`DensityRatioClassifier`; ``random_state`` also deals the mini-batches.
    loss
        ``'squared'``, ``'double_hinge'``, ``'logistic'`` or ``'modified_huber'``.
    basis
        ``'linear'`` or ``'gaussian'``; not used with ``model``.
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
        each centre tells little.
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
    n_steps, n_batches, learning_rate
        AMSGrad; ``n_batches=None`` takes all rows in every step.
    nn_beta, nn_gamma
        β and γ of the correction, see :func:`pu_shift.risks.nnpu_risk`.
    safe
        Whether the fit looks after itself. A model whose zero-one risk on held-out rows is not
        a standard error below that of the best constant, min(π_unif, 1 − π_unif), is replaced
        by the constant, with a :class:`FallbackWarning`. Further warnings are of
        :class:`NonConvexWarning` (an unbiased risk that was asked for, and is not convex),
        scikit-learn's ``ConvergenceWarning`` (the risk was still falling when training
        ended) and :class:`pu_shift.ratios.ulsif.GridEdgeWarning` (the largest λ was the best).

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
        s of the double hinge.

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
        basis: str = "linear",
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
        device, seed, condition = self._prepare(X_p, X_u)
        X_p, X_u, scales = self._standardised(X_p, X_u)
        (fitted,) = self._fit_all(X_p, X_u, [condition], device, seed)
        self._keep(fitted, condition, scales)

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
        device, seed, own = self._prepare(X_p, X_u)
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
        one_of("basis", self.basis, BASES)
        one_of("correction", self.correction, ("auto", *CORRECTIONS))
        one_of("width_rule", self.width_rule, ("risk", "ulsif"))
        one_of("scaling", self.scaling, ("auto", "standard", None))
        one_of("criterion", self.criterion, ("surrogate", "zero_one"))

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

    def _keep(self, fitted: _Fitted, condition: Condition, scales: tuple[Any, Any]) -> None:
        """Make a result of training the classifier's own, or the constant in its place."""
        shift = _as_shift(condition)
        self.model_, self.width_, self.lam_, scores, _ = fitted
        self.slope_, self.fallback_ = np.nan, False
        if not get_loss(self.loss).is_proper:
            self.slope_ = _platt_slope(scores[0], scores[1], shift)
        if self.safe:
            self._guard(fitted, shift)
        self.prior_, self.condition_, self.loss_ = condition.prior, condition, self.loss
        self.mean_, self.scale_ = scales

    def _guard(self, fitted: _Fitted, shift: Condition) -> None:
        """Warn of what went wrong in training, and become the constant that would be better."""
        risk, error = _zero_one_risk(fitted.scores, shift)
        constant = min(shift.test_prior, 1.0 - shift.test_prior)
        # Rounding must not part a model that is the constant from the constant.
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
                f"{fitted.late:.0%} of the fall of the risk came in the last tenth of n_steps = "
                f"{self.n_steps}: increase n_steps or learning_rate",
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
    ) -> list[_Fitted]:
        """Train for every condition, on the device; those of one correction in one run."""
        default = RISK_LAMS if self.model is None else 0.0
        lams = check_grid("lams", default if self.lams is None else self.lams, allow_zero=True)
        shifts = [_as_shift(condition) for condition in conditions]
        corrections = [self._correction(shift) for shift in shifts]
        fitted: dict[int, _Fitted] = {}
        dtype = X_p.dtype if self.model is None else np.float32
        X_p, X_u = device.send((X_p.astype(dtype, copy=False), X_u.astype(dtype, copy=False)))
        for correction in dict.fromkeys(corrections):
            places = [place for place, own in enumerate(corrections) if own == correction]
            options = correction, self.nn_beta, self.nn_gamma
            risk = Risk([shifts[place] for place in places], self.loss, "pu-shift", *options)
            with device.use():
                if self.model is None:
                    results = self._fit_basis(X_p, X_u, risk, lams, seed)
                else:
                    results = [
                        self._fit_network(
                            X_p, X_u, replace(risk, condition=one), lams, device, seed
                        )
                        for one in risk.conditions
                    ]
            fitted.update(zip(places, results))
        return [fitted[place] for place in range(len(conditions))]

    def _training_options(self, seed: Seed) -> dict[str, Any]:
        return {
            "n_steps": self.n_steps,
            "n_batches": self.n_batches,
            "learning_rate": self.learning_rate,
            "seed": child(seed, 3),
            "record": (0, int(0.9 * self.n_steps), self.n_steps) if self.safe else (),
        }

    def _fit_basis(
        self, X_p: Any, X_u: Any, risk: Risk, lams: np.ndarray, seed: Seed
    ) -> list[_Fitted]:
        """Train all conditions, widths, λ and folds, and keep the best of each condition."""
        check_scale(X_p, X_u, linear=self.basis == "linear")
        k = self._n_folds(X_p, X_u)
        folds = [
            assign_folds(name, len(X), k, child(seed, 1, part))
            for part, (name, X) in enumerate((("P", X_p), ("U", X_u)))
        ]
        centers = None
        widths = np.array([np.nan])
        if self.basis == "gaussian":
            n_centers: Any = self.n_centers
            if n_centers == "features":
                n_centers = max(LEAST_CENTERS, X_p.shape[1])
            centers = choose_centers(X_p, X_u, n_centers, "both", child(seed, 2))
            distances = [squared_distances(X, centers) for X in (X_p, X_u)]
            widths = self._widths(X_p, X_u)
            if self.width_rule == "ulsif":
                ratio = ULSIF(X_p, X_u, widths=widths, lams=WIDTH_LAM, n_folds=k, seed=seed)
                widths = np.array([ratio.width])
        best: list[Any] = [(np.inf, None)] * len(risk.conditions)
        for width in widths:
            features = [X_p, X_u]
            if centers is not None:
                features = [kernel_from_distances(part, width) for part in distances]
            criterion = None if self.criterion == "surrogate" else "zero_one"
            options = self._training_options(seed)
            result = cross_validate(features, folds, risk, lams, criterion, **options)
            for c, place in enumerate(result.risks.argmin(axis=1)):
                if result.risks[c, place] < best[c][0]:
                    weights = result.weights[:, c, place, -1]
                    model = _linear_model(weights, result.biases[c, place, -1:], centers, width)
                    scores = result.held_out_scores(features, folds, (c, place))
                    late = _late(result.progress[:, c, place, -1] if self.safe else None)
                    fitted = _Fitted(model, float(width), float(lams[place]), scores, late)
                    best[c] = result.risks[c, place], fitted
        return [fitted for _, fitted in best]

    def _widths(self, X_p: Any, X_u: Any) -> np.ndarray:
        """Return the candidates of the kernel width."""
        if self.widths is not None:
            return check_grid("widths", self.widths, allow_zero=False)
        factors = RISK_WIDTH_FACTORS if self.width_factors is None else self.width_factors
        both = array_module(X_p).concatenate([X_p, X_u])
        return check_grid("width_factors", factors, allow_zero=False) * median_distance(both)

    def _fit_network(
        self, X_p: Any, X_u: Any, risk: Risk, lams: np.ndarray, device: Any, seed: Seed
    ) -> _Fitted:
        """Train a copy of the network; scores are those of the training rows."""
        if len(lams) > 1:
            raise ValueError(
                f"lams must be one number with model, got {len(lams)}: "
                "search with GridSearchCV and pu_shift.estimators.cross_validation"
            )
        model, lam = copy.deepcopy(self.model), float(lams[0])
        model.to_device(device.name)
        shape = score_rows(model, X_p[:1]).shape
        if shape != (1,):
            raise ValueError(f"model must give one score per row, got shape {shape} for one row")
        done = train(model, X_p, X_u, risk, lam=lam, **self._training_options(seed))
        scores = to_numpy(score_rows(model, X_p)), to_numpy(score_rows(model, X_u))
        return _Fitted(model, np.nan, lam, scores, _late(done.risks if self.safe else None))

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
        """Return the posterior at π_unif that the minimiser of the loss tells."""
        scores = self.decision_function(X).astype(np.float64, copy=False)
        return get_loss(self.loss).posterior(scores, self.slope_), self.condition_.prior_unif


def _classes(y: np.ndarray, pos_label: Any) -> np.ndarray:
    """Return the two labels, that of the positives last."""
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) > 2:
        # The first sentences are the ones that scikit-learn asks for.
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}: y must mark positives by 1 and unlabelled rows by 0, "
            f"got {len(classes)} classes"
        )
    if pos_label is not None:
        if len(classes) < 2 or pos_label not in classes.tolist():
            raise ValueError(
                f"pos_label must be one of two labels of y, got {shown(pos_label)} and the labels "
                f"{classes.tolist()}"
            )
        return classes if classes[1] == pos_label else classes[::-1]
    if len(classes) < 2 or list(classes) == [-1, 0]:
        raise ValueError(
            "y must hold two classes, 1 for labelled positives and 0 or -1 for unlabelled "
            f"rows, got {classes.tolist()}"
        )
    if classes.dtype.kind not in "biuf" or classes[1] != 1 or classes[0] not in (-1, 0):
        message = f"y has the labels {classes.tolist()}: the greater one is taken as positive, "
        warnings.warn(message + repr(classes.tolist()[1]), LabelWarning, stacklevel=3)
    return classes


def _call_method(classifier: Any, method: str, arguments: tuple[Any, ...], X: Any) -> Any:
    return getattr(classifier, method)(X, *arguments)


def _check_fit_params(candidates: Mapping[str, Any], fit_params: Mapping[str, Any]) -> None:
    """Refuse parameters that a candidate's fit does not take, before the work."""
    routed = get_config().get("enable_metadata_routing", False)
    for name in fit_params:
        for candidate, item in candidates.items():
            nested = hasattr(item, "steps") and ("__" in name or routed)
            if isinstance(item, str) or not (nested or has_fit_parameter(item, name)):
                hint = f": name the step, as in step__{name}" if hasattr(item, "steps") else ""
                raise ValueError(f"{name} is no parameter of fit of estimator={candidate!r}{hint}")
        if name.endswith("sample_weight"):
            for part in fit_params[name]:
                if not (np.isfinite(part).all() and part.min() >= 0.0 and part.max() > 0.0):
                    raise ValueError(
                        f"{name} must be finite and not negative, and leave rows of both classes, "
                        "P and U, some weight"
                    )


def _as_shift(condition: Condition) -> Condition:
    """Return the shift that is equivalent to the condition's shift and cost (Theorem 3)."""
    return Condition(condition.prior, condition.prior_unif)


def _late(risks: np.ndarray | None) -> float:
    """Share of the fall of the training risk, at the start, 90 % and the end, after 90 %."""
    if risks is None:
        return 0.0
    before, fall = risks[-2] if len(risks) > 1 else risks[-1], float(risks[0] - risks[-1])
    return float(before - risks[-1]) / fall if fall > 0.0 else 0.0


def _zero_one_risk(scores: Sequence[np.ndarray], shift: Condition) -> tuple[float, float]:
    """Return the PU-shift risk with the zero-one loss, and its standard error."""
    scores_p, scores_u = scores
    prior, positive, negative = (float(part[0]) for part in risk_weights(shift, "pu-shift"))
    of_p = np.where(scores_p > 0.0, -negative * prior, positive)
    of_u = np.where(scores_u > 0.0, negative, 0.0)
    variance = of_p.var() / len(of_p) + of_u.var() / len(of_u)
    return float(of_p.mean() + of_u.mean()), float(variance**0.5)


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


def _platt_slope(scores_p: np.ndarray, scores_u: np.ndarray, target: Condition) -> float:
    """Scale of the scores whose logistic nnPU-shift risk is least."""
    scores_p, scores_u = scores_p.astype(np.float64), scores_u.astype(np.float64)

    def risk(log_slope: float) -> float:
        slope = np.exp(log_slope)
        value = nnpu_shift_risk(
            slope * scores_p, slope * scores_u, target, "logistic", correction="max"
        )
        return float(value.array)

    return float(np.exp(minimize_scalar(risk, bounds=(-5.0, 5.0), method="bounded").x))


def validated(estimator: Any, X: Any, *y: Any, name: str = "X", **options: Any) -> Any:
    """Check the input as scikit-learn does, of any supported version; complain in one line."""
    if in_blocks(X):
        raise ValueError("X comes in blocks: call the method for each of them")
    options = {
        "dtype": [np.float64, np.float32],
        "accept_sparse": estimator._accept_sparse,
        **options,
    }
    finite: Any = "allow-nan" if estimator._accept_gaps else True
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # scikit-learn before 1.6
        check, options["force_all_finite"] = estimator._validate_data, finite
    else:
        check, options["ensure_all_finite"] = partial(validate_data, estimator), finite
    try:
        return check(X, *y, **options)
    except ValueError as error:
        raise _in_one_line(error, name) from None


def _in_one_line(error: ValueError, name: str) -> ValueError:
    """Return an error of scikit-learn without its advice on other estimators, and its rows."""
    first, *rest = str(error).splitlines()
    # Its own checks ask for all lines of the one, and for the last of the other.
    if "feature names" in first:
        return error
    if "Reshape" in str(error):
        first = f"{first} {rest[-1]}"
    elif "X contains NaN" in first:
        first = "Input X contains NaN: impute missing values, by SimpleImputer in a Pipeline"
    if re.search(r"\b[Xy]\b", first) is None:
        first = f"X: {first}"
    return ValueError(re.sub(r"\bX\b", name, first))
