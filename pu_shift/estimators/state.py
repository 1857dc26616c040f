"""What a model file keeps of the classifiers: parameters, labels and the fit, as plain values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pu_shift._checks import finite, non_negative, one_of, open_unit, positive, positive_int, shown
from pu_shift.losses import get_loss, surrogates
from pu_shift.models import link_from_state, link_to_state, score_rows, sizes_of
from pu_shift.priors import DIRECTIONS, Condition
from pu_shift.ratios.base import Ratio, check_shape
from pu_shift.ratios.deep import candidate_from_state, candidate_to_state


class _State:
    """What both classifiers keep."""

    # What the classifiers have of scikit-learn and of the fit.
    get_params: Any
    alpha: Any
    classes_: Any
    prior_: float
    prior_interval_: tuple[float, float] | None
    fit_rows_: Any
    n_features_in_: int
    _stated_test_prior: Any

    def to_state(self) -> dict[str, Any]:
        """Return what a model file keeps: parameters other than the defaults, and the fit.

        Returns
        -------
        dict
            Numbers, texts, arrays, and dicts and lists of them; see :meth:`from_state`.
        """
        check_is_fitted(self, "classes_")
        defaults = type(self)().get_params(deep=False)
        params = {
            name: value
            for name, value in self.get_params(deep=False).items()
            # A model is loaded on the CPU.
            if name != "gpu" and not (value is defaults[name] or _equal(value, defaults[name]))
        }
        return {
            "params": params,
            "n_features": int(self.n_features_in_),
            "classes": self.classes_.tolist(),
            "prior": self.prior_,
            "prior_interval": getattr(self, "prior_interval_", None),
            "fit_rows": getattr(self, "fit_rows_", None),
            **self._fitted_state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Any:
        """Return the fitted classifier of a state.

        Parameters
        ----------
        state
            What :meth:`to_state` returned.

        Returns
        -------
        estimator
            The classifier, on the CPU.
        """
        classifier = cls(**state["params"])
        classes = np.array(state["classes"])
        if classes.shape != (2,) or classes.dtype.kind not in "biufU" or classes[0] == classes[1]:
            raise ValueError(f"classes must be two labels, got {shown(state['classes'])}")
        classifier.classes_, classifier.prior_ = classes, open_unit("prior", state["prior"])
        classifier.n_features_in_ = positive_int("n_features", state["n_features"])
        interval = state.get("prior_interval")
        classifier.prior_interval_ = None if interval is None else (interval[0], interval[1])
        classifier.fit_rows_ = state.get("fit_rows")
        classifier._restore_fit(state)
        # Parts that do not belong together fail here, and not in a prediction.
        Condition(classifier.prior_, classifier._stated_test_prior, classifier.alpha)
        classifier._score_row(np.broadcast_to(np.float32(0.0), (1, classifier.n_features_in_)))
        return classifier

    @abstractmethod
    def _fitted_state(self) -> dict[str, Any]:
        """Return what the fit of this kind of classifier found."""

    @abstractmethod
    def _restore_fit(self, state: Mapping[str, Any]) -> None:
        """Take over what ``_fitted_state`` returned."""

    @abstractmethod
    def _score_row(self, X: np.ndarray) -> None:
        """Evaluate the fit at a row; raises if its parts do not belong together."""


class RatioState(_State):
    """What a density ratio keeps."""

    estimator: Any

    def to_state(self) -> dict[str, Any]:
        """Return what a model file keeps; of a network in the parameters its sizes."""
        state = super().to_state()
        if "estimator" in state["params"]:
            state["params"]["estimator"] = _each(candidate_to_state, self.estimator)
        return state

    def _fitted_state(self) -> dict[str, Any]:
        return {
            "direction": self.direction_,
            "ratio": self.ratio_.to_state(),
            "ratio_sums": getattr(self, "ratio_sums_", None),
            "candidates": self.candidates_,
            "cross_fitted": _single_precision(getattr(self, "cross_fitted_", None)),
        }

    def _restore_fit(self, state: Mapping[str, Any]) -> None:
        self.estimator = _each(candidate_from_state, self.estimator)
        self.direction_ = one_of("direction", state["direction"], DIRECTIONS)
        self.ratio_ = Ratio.from_state(state["ratio"])
        self.candidates_ = {
            name: {key: _or_nan(value) for key, value in found.items()}
            for name, found in state["candidates"].items()
        }
        sums = state["ratio_sums"]
        # Models of the first releases have none.
        if sums is not None:
            self.ratio_sums_ = check_shape("ratio_sums", sums, (2, 3))
            if not (sums[:, 0] >= 2).all():
                raise ValueError("ratio_sums must be of two rows at least")

        kept = state.get("cross_fitted")
        for part in kept or ():
            check_shape("cross_fitted", part, (3, np.shape(part)[-1]))
        self.cross_fitted_ = kept

    def _score_row(self, X: np.ndarray) -> None:
        self.ratio_(X)


class RiskState(_State):
    """What a risk minimiser keeps."""

    model: Any

    def _fitted_state(self) -> dict[str, Any]:
        condition = self.condition_
        return {
            "condition": [condition.prior, condition.test_prior, condition.alpha],
            "width": _or_none(self.width_),
            "lam": _or_none(self.lam_),
            "slope": _or_none(self.slope_),
            "loss": self.loss_,
            "fallback": bool(self.fallback_),
            "mean": self.mean_,
            "scale": self.scale_,
            "model": link_to_state(self.model_),
        }

    def to_state(self) -> dict[str, Any]:
        """Return what a model file keeps; of a network in the parameters its sizes."""
        state = super().to_state()
        if self.model is not None:
            state["params"]["model"] = sizes_of(self.model)
        return state

    def _restore_fit(self, state: Mapping[str, Any]) -> None:
        self.condition_ = Condition(*state["condition"])
        self.width_, self.lam_, self.slope_ = (
            np.nan if state[name] is None else check(name, state[name])
            for name, check in (("width", positive), ("lam", non_negative), ("slope", positive))
        )
        self.loss_ = one_of("loss", state["loss"], surrogates())
        if np.isnan(self.slope_) != get_loss(self.loss_).is_proper:
            raise ValueError(f"slope does not belong to the loss {self.loss_}")
        self.fallback_, self.mean_, self.scale_ = (
            state[name] for name in ("fallback", "mean", "scale")
        )
        self.model_ = link_from_state(state["model"])
        if self.model is not None:
            # Its weights are those of a new network: training started from them.
            self.model = type(self.model_)(**sizes_of(self.model_))

    def _score_row(self, X: np.ndarray) -> None:
        if self.mean_ is not None:
            for part in (self.mean_, self.scale_):
                if np.shape(part) != X[0].shape:
                    raise ValueError("mean and scale must have a number for each feature")
            if not (self.scale_ > 0.0).all():
                raise ValueError("scale must be positive")
        score_rows(self.model_, X)


def _each(function: Callable[[Any], Any], item: Any) -> Any:
    """Apply a function to an item, or to each of a list of them."""
    return [function(one) for one in item] if isinstance(item, (list, tuple)) else function(item)


def _equal(value: Any, default: Any) -> bool:
    """Whether a parameter has its default's value and type."""
    return type(value) is type(default) and not isinstance(value, np.ndarray) and value == default


def _single_precision(parts: Any) -> Any:
    """Half the size is enough for what is counted."""
    return None if parts is None else [part.astype(np.float32) for part in parts]


def _or_nan(value: Any) -> float:
    return np.nan if value is None else finite("score", value)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
