"""The base of both estimators: labels, samples, the condition and decisions.

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
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from pu_shift._checks import ArgumentError, is_dask, positive_int, shown
from pu_shift._labels import positive_label, without_missing
from pu_shift._seeds import Seed, as_seed, child
from pu_shift.bigdata import in_memory, map_rows, meta_of
from pu_shift.device import get_device
from pu_shift.estimation.class_prior import estimate_prior, warn_of_prior
from pu_shift.estimators.costs import alpha_of_costs
from pu_shift.priors import Condition, shift_posterior

# The parameters that say where a classifier is used.
CONDITION = ("prior", "test_prior", "alpha")


class LabelWarning(UserWarning):
    """The labels are legal, but may mean the opposite of what was intended."""


class PUClassifier(ClassifierMixin, BaseEstimator):
    """What both estimators share: labels, samples, condition, decisions."""

    _accept_sparse: str | bool = False

    # For metadata routing, which does not look into **fit_params.
    __metadata_request__fit: ClassVar[dict[str, None]] = {"sample_weight": None}

    @property
    def _accepts_missing(self) -> bool:
        """Whether rows may have missing values."""
        return False

    def set_params(self, **params: Any) -> PUClassifier:
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
            # A search sets parameters of fresh clones; PURiskScorer reads which.
            self._set_before_fit = changed.union(getattr(self, "_set_before_fit", ()))
        return super().set_params(**params)

    def fit(self, X: Any, y: Any, **fit_params: Any) -> PUClassifier:
        """Fit to rows of which some are labelled as positive.

        Parameters
        ----------
        X
            (n, d) features: an array or a data frame.
        y
            (n,) labels: 1 for labelled positives, 0 or −1 for unlabelled rows; or one label,
            and NaN or None for unlabelled rows, which become 1 and 0. ``'positive'`` and
            ``'unlabelled'`` are known. Of two other labels, numbers or strings, ``pos_label`` is
            that of the positives; without it the greater one, and a :class:`LabelWarning` says
            which that is.
        **fit_params
            What the ``fit`` of a classifier given as ``estimator`` takes, an array with an
            entry for each row: ``sample_weight``, or ``step__sample_weight`` of a pipeline.
            ``None`` is ignored. With metadata routing
            ``set_fit_request(sample_weight=True)`` asks for weights.

        Returns
        -------
        self
            The fitted classifier.
        """
        if is_dask(X):
            raise ValueError("X is a Dask collection: use fit_pu(X[y == 1], X[y != 1])")
        y, pos_label = without_missing(y, self.pos_label)
        X, y = validated(self, X, y, ensure_min_samples=2)
        classes = _classes(y, pos_label)
        places = [np.flatnonzero(y == label) for label in classes[::-1]]
        params = {}
        for name, value in fit_params.items():
            if value is None:
                continue
            value = np.asarray(value)
            if value.shape[:1] != y.shape:
                raise ValueError(f"{name} must have an entry for each of {len(y)} rows")
            params[name] = tuple(value[place] for place in places)
        samples = [X[place] for place in places]
        self._fit(*samples, params)
        self.classes_, self.fit_rows_ = classes, tuple(map(sums_of_rows, samples))
        return self

    def fit_pu(self, X_p: Any, X_u: Any) -> PUClassifier:
        """Fit to a positive and an unlabelled sample.

        Parameters
        ----------
        X_p, X_u
            (n, d) features of the positives and of the unlabelled rows. Each may be a Dask array
            or data frame of more rows than the memory holds: all rows are checked, and the fit
            is to a random sample of them, see :func:`pu_shift.bigdata.in_memory`.

        Returns
        -------
        self
            The fitted classifier; its ``classes_`` are −1 and 1.
        """
        samples = self._samples(X_p, X_u)
        self._fit(*samples, {})
        self.classes_, self.fit_rows_ = np.array([-1, 1]), tuple(map(sums_of_rows, samples))
        return self

    def _samples(self, X_p: Any, X_u: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check the two samples; both get the dtype of the first."""
        if is_dask(X_p) or is_dask(X_u):
            X_p, X_u = in_memory({"X_p": X_p, "X_u": X_u}, child(self._seed(), 10))
        X_p = validated(self, X_p, name="X_p")
        X_u = validated(self, X_u, name="X_u", reset=False)
        if issparse(X_p) != issparse(X_u):
            raise ValueError("X_u must be sparse if X_p is, and dense if it is dense")
        return X_p, X_u.astype(X_p.dtype, copy=False)

    def _seed(self) -> Seed:
        """Return the seed of everything random."""
        if self.random_state is None:
            return np.random.SeedSequence()
        if isinstance(self.random_state, np.random.RandomState):
            return as_seed("random_state", int(self.random_state.randint(2**31)))
        return as_seed("random_state", self.random_state)

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

    def _under(self, **condition: Any) -> PUClassifier:
        """Return the classifier as it is, or a copy with the parameters that are not None."""
        given = {name: value for name, value in condition.items() if value is not None}
        return copy.copy(self).set_params(**given) if given else self

    def predict(
        self,
        X: Any,
        *,
        test_prior: float | str | None = None,
        alpha: Any = None,
        false_positive_cost: Any = None,
        false_negative_cost: Any = None,
    ) -> np.ndarray:
        """Predict the class of least expected cost under the test condition.

        Parameters
        ----------
        X
            (n, d) features.
        test_prior, alpha
            Another condition for this call alone; what is ``None`` is the classifier's own. A
            risk minimiser refuses one that it was not fitted for. A density ratio also takes (n,)
            values of alpha, one for each case.
        false_positive_cost, false_negative_cost
            What a false alarm and a miss cost, in place of ``alpha``: numbers, or of a density
            ratio (n,) numbers. Positive is a case whose posterior q has
            q · false_negative_cost > (1 − q) · false_positive_cost.

        Returns
        -------
        numpy.ndarray
            (n,) labels from ``classes_``. Of a Dask array it is a Dask array, of a Dask data
            frame a series, which are computed when you ask for them; so are the results of the
            other methods that take rows.
        """
        alpha = alpha_of_costs(alpha, false_positive_cost, false_negative_cost)
        used = self._under(test_prior=test_prior, alpha=None if np.ndim(alpha) else alpha)
        if np.ndim(alpha):
            return used._predict_cases(X, alpha)
        if is_dask(X):
            return used._lazily("predict", X, "label")
        return self._labels(used.decision_function(X))

    def _predict_cases(self, X: Any, alpha: np.ndarray) -> np.ndarray:
        """Predict by a penalty for each case."""
        raise ArgumentError(
            "alpha",
            "must be one number: a risk minimiser is trained for one cost, another needs another "
            "fit; DensityRatioClassifier takes costs of each case",
        )

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
            (n, 2) probabilities of ``classes_``: the posterior of the fit, moved to π′ by
            Bayes' rule.
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

        Labels of PU data are no classes: select by :mod:`pu_shift.evaluation.scorers`.

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
        # One row shows the type of the result, and an error if columns are wrong.
        like = call(meta_of(X))[:0]
        return map_rows(call, X, like, self.classes_ if names is None else names)

    def _settled(self, X: Any) -> Any:
        """Return a copy that later changes of the parameters, or of the rows, do not change."""
        return copy.copy(self)

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        return self.classes_[(scores > 0).astype(int)]

    def _prepare(
        self, X_p: np.ndarray, X_u: np.ndarray, least: int = 2
    ) -> tuple[Any, Seed, Condition, tuple[float, float] | None]:
        """Check what both fits need, find the prior; return device, seed, condition, interval of π.

        Nothing is kept yet: a fit that fails leaves what was fitted before as it was.
        """
        n_p, n_u = X_p.shape[0], X_u.shape[0]
        if min(n_p, n_u) < least:
            raise ArgumentError(
                "X",
                f"must have at least {least} positive and {least} unlabelled rows, got {n_p} "
                f"and {n_u}",
            )
        seed = self._seed()
        device = get_device(self.gpu)
        prior, interval = self.prior, None
        if prior is None:
            if issparse(X_p):
                raise ValueError("prior must be given when X is sparse")
            if not all(np.isfinite(X).all() for X in (X_p, X_u)):
                raise ValueError("prior must be given when X has missing values")
            # An invalid test prior or alpha fails before the costly estimate.
            Condition(0.5, self._stated_test_prior, self.alpha)
            found = estimate_prior(X_p, X_u, random_state=child(seed, 9))
            prior, interval = found.prior, (found.low, found.high)
        return device, seed, Condition(prior, self._stated_test_prior, self.alpha), interval

    def _warn_of_prior(self, scores_p: np.ndarray, scores_u: np.ndarray) -> None:
        """Warn of a prior that was given, if held-out scores of P and U rule it out."""
        if self.prior is not None:
            warn_of_prior(self.prior, scores_p, scores_u)

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
        """Return n_folds, or fewer: each fold needs a row of P and one of U."""
        n_folds = positive_int("n_folds", self.n_folds, least=2)
        return min(n_folds, X_p.shape[0], X_u.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # In the data of scikit-learn's checks the second class has no positives, so that
        # accuracy on its labels says nothing about a PU classifier.
        tags.classifier_tags.poor_score = True
        return tags

    def _more_tags(self) -> dict[str, bool]:
        # For scikit-learn before 1.6.
        return {"binary_only": True, "poor_score": True}


def sums_of_rows(X: Any) -> np.ndarray:
    """Return the number of rows and the sum of their squares, by which rows are recognised."""
    values = X.data if issparse(X) else np.asarray(X)
    return np.array([X.shape[0], np.nansum(np.square(values, dtype=np.float64))])


def same_rows(classifier: Any, *sums: np.ndarray) -> bool:
    """Tell by their sums whether P and U are the rows that a classifier was fitted to."""
    own = getattr(classifier, "fit_rows_", None)
    return own is not None and np.allclose(own, sums, rtol=1e-9, atol=0.0)


def _classes(y: np.ndarray, pos_label: Any) -> np.ndarray:
    """Return the two labels, that of the positives last."""
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) > 2:
        # The first sentences are the ones that scikit-learn asks for.
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}: y must label positives by 1 and unlabelled rows by 0, "
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
    known = positive_label(classes.tolist(), False)
    if known is not None:
        return classes if classes[1] == known else classes[::-1]
    message = f"y has the labels {classes.tolist()}: the greater one is taken as positive, "
    message += f"{classes.tolist()[1]!r}; pos_label says it for certain"
    warnings.warn(message, LabelWarning, stacklevel=3)
    return classes


def _call_method(classifier: Any, method: str, arguments: tuple[Any, ...], X: Any) -> Any:
    return getattr(classifier, method)(X, *arguments)


def validated(estimator: Any, X: Any, *y: Any, name: str = "X", **options: Any) -> Any:
    """Check the input as scikit-learn does, of any supported version; complain in one line."""
    options = {
        "dtype": [np.float64, np.float32],
        "accept_sparse": estimator._accept_sparse,
        "order": "C",  # rounding, and with it a model, depends on the order in memory
        **options,
    }
    finite: Any = "allow-nan" if estimator._accepts_missing else True
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
    # Its estimator checks match all lines of the first kind, and the last line of the second.
    if "feature names" in first:
        return error
    if "Reshape" in str(error):
        first = f"{first} {rest[-1]}"
    elif "X contains NaN" in first:
        first = "Input X contains NaN: impute missing values, by SimpleImputer in a Pipeline"
    if re.search(r"\b[Xy]\b", first) is None:
        first = f"X: {first}"
    return ValueError(re.sub(r"\bX\b", name, first))
