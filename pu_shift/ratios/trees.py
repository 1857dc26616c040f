r"""Boosted trees as arrays: what scikit-learn's histogram boosting predicts, without its code.

.. math:: w(x) = \frac{n_\mathrm{de}}{n_\mathrm{nu}} e^{f(x)}, \qquad f(x) = b + \sum_t v_t(x)

v_t(x) is the value of the leaf of tree t that x comes to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import expit

from pu_shift._checks import LARGEST, finite, positive
from pu_shift.ratios.base import Ratio, State, check_shape

# Rows that go down the trees at once: what is looked up stays in the processor's cache.
CHUNK_ROWS = 4096
LARGEST_LOG = 30.0


def odds_ratio(share: Any, n_p: float, n_u: float) -> np.ndarray:
    r"""Density ratio from a classifier of P against U.

    .. math:: \frac{p_\mathrm{p}}{p_\mathrm{u}}
              = \frac{n_\mathrm{u}}{n_\mathrm{p}} \cdot \frac{s}{1 - s}

    Parameters
    ----------
    share
        s, the probabilities of P, within [0, 1].
    n_p, n_u
        Numbers of rows it was trained with.

    Returns
    -------
    numpy.ndarray
        p_p/p_u, finite.

    Examples
    --------
    >>> odds_ratio([0.2, 0.5], n_p=100, n_u=400).tolist()
    [1.0, 4.0]
    """
    share = np.asarray(share, dtype=np.float64)
    return n_u / n_p * share / np.maximum(1.0 - share, np.exp(-LARGEST_LOG))


class BoostedTrees(Ratio):
    """The odds of boosted trees that a ``HistGradientBoostingClassifier`` has grown.

    Parameters
    ----------
    nodes
        Per node of all trees, one tree after the other: ``feature`` (−1 in a leaf), ``threshold``,
        ``missing_left``, the nodes ``left`` and ``right`` below it, and ``value``.
    roots
        The first node of each tree.
    baseline
        b, the value before the first tree.
    totals
        Numbers of rows of the numerator and of the denominator.
    """

    def __init__(
        self,
        nodes: Mapping[str, np.ndarray],
        roots: np.ndarray,
        baseline: float,
        totals: tuple[float, float],
    ) -> None:
        self.nodes, self.roots = dict(nodes), roots
        self.baseline, self.totals = baseline, totals

    @classmethod
    def of(cls, classifier: Any, totals: tuple[float, float]) -> BoostedTrees:
        """Return the trees of a fitted classifier of two classes without categorical features."""
        trees = [tree.nodes for (tree,) in classifier._predictors]
        roots = np.cumsum([0, *map(len, trees)])[:-1]
        joined = np.concatenate(trees)
        own = np.arange(len(joined))
        first = np.repeat(roots, [len(tree) for tree in trees])
        leaf = joined["is_leaf"].astype(bool)
        if (joined["is_categorical"].astype(bool) & ~leaf).any():
            raise ValueError("trees with categorical features cannot be saved without code")
        nodes = {
            "feature": np.where(leaf, -1, joined["feature_idx"]).astype(np.int32),
            # No feature is larger, and a file holds no infinity.
            "threshold": np.where(leaf, 0.0, np.minimum(joined["num_threshold"], LARGEST)),
            "missing_left": joined["missing_go_to_left"].astype(bool),
            "left": np.where(leaf, own, joined["left"] + first).astype(np.int32),
            "right": np.where(leaf, own, joined["right"] + first).astype(np.int32),
            "value": joined["value"].astype(np.float64),
        }
        return cls(
            nodes,
            roots.astype(np.int32),
            float(np.ravel(classifier._baseline_prediction)[0]),
            totals,
        )

    def predict(self, X: Any) -> np.ndarray:
        """Return w(x) for each row; see :meth:`Ratio.predict`."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        raw = [self._raw(X[start : start + CHUNK_ROWS]) for start in range(0, len(X), CHUNK_ROWS)]
        return odds_ratio(expit(np.concatenate(raw)), *self.totals)

    def _raw(self, X: np.ndarray) -> np.ndarray:
        feature, threshold, missing_left, left, right, value = (
            self.nodes[name]
            for name in ("feature", "threshold", "missing_left", "left", "right", "value")
        )
        rows, total = np.arange(len(X)), np.full(len(X), self.baseline)
        has_missing = np.isnan(X).any()
        for root in self.roots:
            place = np.full(len(X), root)
            while (column := feature[place]).max() >= 0:
                cells = X[rows, column]  # those of leaves do not matter: they stay where they are
                to_left = cells <= threshold[place]
                if has_missing:
                    to_left |= np.isnan(cells) & missing_left[place]
                place = np.where(to_left, left[place], right[place])
            total += value[place]
        return total

    def _state(self) -> State:
        return {
            **self.nodes,
            "roots": self.roots,
            "baseline": self.baseline,
            "totals": list(map(float, self.totals)),
        }

    @classmethod
    def _restore(cls, state: Mapping[str, Any]) -> BoostedTrees:
        n = len(state["feature"])
        names = ("feature", "threshold", "missing_left", "left", "right", "value")
        nodes = {name: check_shape(name, state[name], (n,)) for name in names}
        inner, own = nodes["feature"] >= 0, np.arange(n)
        for name in ("left", "right"):
            # A way down comes to an end, because every node lies behind the one above it.
            if (nodes[name] < own + inner).any() or (nodes[name] >= n).any():
                raise ValueError(f"{name} must lead to later nodes")
        roots = state["roots"]
        if not len(roots) or (roots < 0).any() or (roots >= n).any():
            raise ValueError("roots must be nodes")
        totals = [positive("totals", total) for total in state["totals"]]
        return cls(nodes, roots, finite("baseline", state["baseline"]), (totals[0], totals[1]))
