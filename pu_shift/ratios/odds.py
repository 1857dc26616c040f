r"""The density ratio p_nu/p_de from a classifier that tells the two samples apart.

It estimates s(x), the share of the numerator's rows among all rows at x, and

.. math:: \frac{p_\mathrm{nu}(x)}{p_\mathrm{de}(x)}
          = \frac{n_\mathrm{de}}{n_\mathrm{nu}} \cdot \frac{s(x)}{1 - s(x)}.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression

from pu_shift._checks import finite
from pu_shift._grids import Folds
from pu_shift._seeds import Seed, child
from pu_shift.ratios.base import DensityRatio, Expansion, State, default_centers
from pu_shift.ratios.kernels import near_median_distance
from pu_shift.ratios.trees import LARGEST_LOG, BoostedTrees, odds_ratio

# Rows that the kernel features of a logistic regression are made of at most.
MAX_KERNEL_ROWS = 20_000


class ClassifierRatio(DensityRatio, BaseEstimator):
    """The odds of any classifier with ``predict_proba``.

    Parameters
    ----------
    classifier
        The classifier; it is copied before it is fitted.
    """

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier

    def fit(self, numerator: Any, denominator: Any, **fit_params: Any) -> ClassifierRatio:
        """Fit to a sample of each density.

        Parameters
        ----------
        numerator, denominator
            (n, d) samples of p_nu and p_de.
        **fit_params
            Parameters of the classifier's ``fit``: pairs of arrays, for the rows of each sample.

        Returns
        -------
        self
            The fitted ratio.
        """
        X, is_numerator = join(numerator, denominator)
        joined = {name: np.concatenate(parts) for name, parts in fit_params.items()}
        self.classifier_ = clone(self.classifier).fit(X, is_numerator, **joined)
        self.totals_: tuple[float, float] = (numerator.shape[0], denominator.shape[0])
        for name, parts in fit_params.items():
            if name.rpartition("__")[2] == "sample_weight":
                self.totals_ = parts[0].sum(), parts[1].sum()
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return w(x) for each row; see :meth:`DensityRatio.predict`."""
        return odds_ratio(self.classifier_.predict_proba(X)[:, 1], *self.totals_)

    @property
    def can_be_saved(self) -> bool:
        """Whether the fit is made of numbers alone: that of boosted trees is."""
        return type(self.classifier) is HistGradientBoostingClassifier

    def to_state(self) -> State:
        """Return the fitted state of boosted trees; other classifiers are code."""
        if not self.can_be_saved:
            return super().to_state()
        return BoostedTrees.of(self.classifier_, self.totals_).to_state()


class LogisticRatio(DensityRatio, BaseEstimator):
    r"""The odds of a logistic regression, on the features or on Gaussian kernels of them.

    .. math:: w(x) = \exp\Bigl(b + \sum_l \theta_l \varphi_l(x)\Bigr)

    Parameters
    ----------
    width_factor
        Width of the kernels (Nyström's features) in units of the median distance; ``None`` takes
        the features themselves.
    seed
        Seed of the centres.
    """

    shares_folds = True
    expansion_: Expansion
    offset_: float
    width_: float
    nystroem_: Nystroem | None

    def __init__(self, width_factor: float | None = None, seed: Seed = 0) -> None:
        self.width_factor = width_factor
        self.seed = seed

    def fit(self, numerator: Any, denominator: Any) -> LogisticRatio:
        """Fit to a sample of each density; see :meth:`DensityRatio.fit`."""
        if self.width_factor is not None:
            seed = child(self.seed, 1)
            numerator, denominator = subsample(MAX_KERNEL_ROWS, numerator, denominator, seed)[:2]
        self.width_, self.nystroem_ = np.nan, None
        if self.width_factor is not None:
            median = near_median_distance(numerator, denominator, child(self.seed, 3))
            self.width_ = self.width_factor * median
            X, _ = join(numerator, denominator)
            self.nystroem_ = Nystroem(
                gamma=0.5 / self.width_**2,
                n_components=default_centers(len(X)),
                random_state=small_seed(self.seed),
            ).fit(X)
        self._train(self._features(numerator), self._features(denominator))
        return self

    def without_folds(
        self,
        samples: Sequence[Any],
        folds: Sequence[Folds],
        only: Iterable[int],
        fit_params: Mapping[str, Any],
    ) -> list[tuple[Any, list[np.ndarray]]]:
        """See :meth:`DensityRatio.without_folds`; the features are computed once for all folds."""
        features, found = [self._features(X) for X in samples], []
        places = [one.of_rows for one in folds]
        for fold in only:
            ratio = copy.copy(self)
            weights = ratio._train(*(part[of != fold] for part, of in zip(features, places)))
            held_out = (part[of == fold] for part, of in zip(features, places))
            found.append((ratio, [ratio._from_log(part @ weights) for part in held_out]))
        return found

    def _features(self, X: Any) -> Any:
        return X if self.nystroem_ is None else self.nystroem_.transform(X)

    def _train(self, numerator: Any, denominator: Any) -> np.ndarray:
        """Fit to features, and return their weights."""
        logistic = LogisticRegression(max_iter=1000).fit(*join(numerator, denominator))
        weights = logistic.coef_[0].astype(np.float64)
        self.offset_ = float(logistic.intercept_[0])
        self.offset_ += float(np.log(len(denominator) / len(numerator)))
        if self.nystroem_ is None:
            self.expansion_ = Expansion(np.append(weights, 0.0), len(weights))
        else:
            centers = self.nystroem_.components_
            # Nyström's features are the kernels times a matrix, which belongs to the weights.
            coefficients = self.nystroem_.normalization_.T @ weights
            self.expansion_ = Expansion(coefficients, centers.shape[1], centers, self.width_)
        return weights

    def predict(self, X: Any) -> np.ndarray:
        """Return w(x) for each row; see :meth:`DensityRatio.predict`."""
        return self._from_log(self.expansion_(X).astype(np.float64, copy=False))

    def _from_log(self, log_ratio: np.ndarray) -> np.ndarray:
        return np.exp(np.clip(log_ratio + self.offset_, -LARGEST_LOG, LARGEST_LOG))

    def _state(self) -> State:
        return {**self.expansion_.to_state(), "offset": self.offset_}

    @classmethod
    def _restore(cls, state: Mapping[str, Any]) -> LogisticRatio:
        ratio = cls()
        ratio.expansion_ = Expansion.from_state(state)
        ratio.offset_ = finite("offset", state["offset"])
        return ratio


def small_seed(seed: Seed) -> int:
    """Return a seed for scikit-learn, which takes 32 bits."""
    return int(child(seed, 2).generate_state(1)[0] >> 1)


def join(first: Any, second: Any) -> tuple[Any, np.ndarray]:
    """Put the first sample above the second, and tell them apart by 1 and 0."""
    stacked = issparse(first)
    X = sparse_vstack([first, second], format="csr") if stacked else np.concatenate([first, second])
    return X, np.repeat([1, 0], [first.shape[0], second.shape[0]])


def subsample(limit: int, first: Any, second: Any, seed: Seed) -> Any:
    """Return at most so many rows, half of each if there are as many, and which they are."""
    sizes = first.shape[0], second.shape[0]
    rng, kept = np.random.default_rng(seed), []
    for n, other in (sizes, sizes[::-1]):
        most = min(n, max(limit // 2, limit - other))
        kept.append(np.sort(rng.choice(n, most, replace=False)) if most < n else np.arange(n))
    return first[kept[0]], second[kept[1]], kept
