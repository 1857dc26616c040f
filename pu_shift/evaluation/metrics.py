r"""Metrics of a classifier without negatives, each a formula of what positives and U show.

Of any function h of a row, the mean over negatives follows from those over P and U,

.. math:: \mathbb{E}_\mathrm{n}[h] = \frac{\mathbb{E}_\mathrm{u}[h] - \pi\,\mathbb{E}_\mathrm{p}[h]}
          {1 - \pi},

and with it every metric at any test prior π′. Labelled negatives are the case π = 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

MAX_GROUPS = 4000
"""Of more distinct scores, neighbours are taken together."""


@dataclass(frozen=True)
class ScoredRows:
    """Rows of P and U in groups of equal score, the highest first.

    Parameters
    ----------
    counts_p, counts_u
        (k,) rows of each sample in each group.
    flagged
        (k,) whether the group is predicted positive.
    probability
        (k,) probability of the positive class that the classifier states, or ``None``.
    fold
        (k,) number of the classifier that scored the group, where there are several.
    """

    counts_p: np.ndarray
    counts_u: np.ndarray
    flagged: np.ndarray
    probability: np.ndarray | None
    fold: np.ndarray

    @classmethod
    def of(cls, *samples: Sequence[Any]) -> ScoredRows:
        """Group the scores, decisions, probabilities, if any folds, of rows of P and of U."""
        score, flagged = (np.concatenate([part[k] for part in samples]) for k in (0, 1))
        is_p = np.arange(len(score)) < len(samples[0][0])
        fold = np.zeros(len(score), dtype=int)
        if len(samples[0]) > 3:
            fold = np.concatenate([part[3] for part in samples]).astype(int)
        order = np.lexsort((fold, ~flagged, -score))
        score, kind, is_p = score[order], (2 * fold + flagged)[order], is_p[order]
        group = np.cumsum(np.append(False, (np.diff(score) != 0.0) | (np.diff(kind) != 0)))
        if group[-1] >= MAX_GROUPS:
            wide = group * MAX_GROUPS // (group[-1] + 1)
            # Of each kind its own, or neighbours of two folds could not be taken together.
            _, group = np.unique(wide * (kind.max() + 1) + kind, return_inverse=True)
        size, first = np.bincount(group), np.unique(group, return_index=True)[1]
        probability = None
        if samples[0][2] is not None:
            values = np.concatenate([part[2] for part in samples])[order]
            probability = np.bincount(group, values) / size
        counts_p = np.bincount(group, is_p)
        kind = kind[first]
        return cls(counts_p, size - counts_p, kind % 2 == 1, probability, kind // 2)

    def rates(self, prior: Any, test_prior: Any, alpha: float) -> Rates:
        """Return what these very rows say, with a first axis of length 1."""
        p, u = (counts[None] / counts.sum() for counts in (self.counts_p, self.counts_u))
        return Rates(self, p, u, np.atleast_1d(prior), np.atleast_1d(test_prior), alpha)

    def resampled(
        self, rng: np.random.Generator, prior: np.ndarray, test_prior: np.ndarray, alpha: float
    ) -> Rates:
        """Return what resampled rows say, one line for each π: a Bayesian bootstrap.

        Half a row is added at the highest and at the lowest score, which makes the share above a
        threshold Beta(x + ½, n − x + ½), the posterior of Jeffreys' prior: of few rows, too, and
        where all of them are found, its interval is about right. Folds get weights of their own.
        """
        of_fold = rng.standard_gamma(1.0, (len(prior), int(self.fold.max()) + 1))
        shares: list[np.ndarray] = []
        for counts in (self.counts_p, self.counts_u):
            weights = counts.astype(np.float64)
            weights[[0, -1]] += 0.5
            held = weights > 0.0
            drawn = np.zeros((len(prior), len(weights)))
            drawn[:, held] = rng.standard_gamma(weights[held], (len(prior), int(held.sum())))
            drawn *= of_fold[:, self.fold]
            shares.append(drawn / drawn.sum(axis=1, keepdims=True))
        return Rates(self, shares[0], shares[1], prior, test_prior, alpha)


@dataclass(frozen=True)
class Rates:
    """What metrics are formulas of; a line of each array is one sample, or a resampled one.

    Parameters
    ----------
    rows
        The groups of rows.
    p, u
        (b, k) shares of P and of U in each group.
    prior, test_prior
        (b,) values of π, of the rows of U, and of π′.
    alpha
        α, the cost of a false positive.
    """

    rows: ScoredRows
    p: np.ndarray
    u: np.ndarray
    prior: np.ndarray
    test_prior: np.ndarray
    alpha: float

    @cached_property
    def n(self) -> np.ndarray:
        """(b, k) shares of negatives in each group, which noise can make negative."""
        prior = self.prior[:, None]
        return (self.u - prior * self.p) / (1.0 - prior)

    @cached_property
    def recall(self) -> np.ndarray:
        """Share of positives that are flagged, t."""
        return self.p @ self.rows.flagged

    @cached_property
    def false_positive_rate(self) -> np.ndarray:
        """Share of negatives that are flagged, (f − πt)/(1 − π)."""
        return self.n @ self.rows.flagged

    @cached_property
    def share_flagged(self) -> np.ndarray:
        """Share of cases that are flagged at π′."""
        return self.expected(self.rows.flagged, self.rows.flagged)

    @cached_property
    def probability(self) -> np.ndarray:
        """(k,) stated probability of the positive class."""
        if self.rows.probability is None:
            raise ValueError("classifier must have predict_proba to be judged by probabilities")
        return self.rows.probability

    def expected(self, of_positive: np.ndarray, of_negative: np.ndarray) -> np.ndarray:
        """Mean at π′ of what a positive and a negative of each group cost or give."""
        positive, negative = self.p @ of_positive, self.n @ of_negative
        return self.test_prior * positive + (1.0 - self.test_prior) * negative

    def precision_at(self, recall: np.ndarray, false_positive_rate: np.ndarray) -> np.ndarray:
        """π′t/(π′t + (1 − π′)·FPR), not a number where nothing is flagged."""
        shape = (-1,) + (1,) * (np.ndim(recall) - 1)
        found = self.test_prior.reshape(shape) * recall
        flagged = found + (1.0 - self.test_prior.reshape(shape)) * false_positive_rate
        return np.divide(found, flagged, np.full_like(flagged, np.nan), where=flagged > 0.0)


@dataclass(frozen=True)
class Metric:
    """A metric, and how it is told.

    Parameters
    ----------
    formula
        The metric from :class:`Rates`, for each line of them.
    words
        What it says, with ``{}`` for the number and its interval, and the two costs by name.
    scale
        What the number is multiplied by in words, for instance 100 for 'of 100'.
    bounds
        The least and the greatest value that a metric can have.
    gain
        What a scorer makes of it, for greater to be better; ``None`` if it is no quality.
    of_probabilities
        Whether it needs the probabilities that the classifier states.
    """

    formula: Callable[[Rates], np.ndarray]
    words: str
    scale: float = 1.0
    bounds: tuple[float, float] = (0.0, 1.0)
    gain: Callable[[float], float] | None = operator.pos
    of_probabilities: bool = False


def _auc(rates: Rates) -> np.ndarray:
    above = np.cumsum(rates.p, axis=1) - 0.5 * rates.p
    return np.sum(rates.n * above, axis=1)


def _average_precision(rates: Rates) -> np.ndarray:
    found, false = np.cumsum(rates.p, axis=1), np.cumsum(rates.n, axis=1)
    precision = rates.precision_at(found, np.clip(false, 0.0, 1.0))
    return np.sum(rates.p * np.nan_to_num(precision), axis=1)


def _f1(rates: Rates) -> np.ndarray:
    both = rates.share_flagged + rates.test_prior
    return np.divide(
        2.0 * rates.test_prior * rates.recall, both, np.zeros_like(both), where=both > 0.0
    )


def _log_loss(rates: Rates) -> np.ndarray:
    q = np.clip(rates.probability, 1e-6, 1.0 - 1e-6)
    return rates.expected(-np.log(q), -np.log(1.0 - q))


# A new metric is an entry here: evaluate, the scorers and the command have it at once.
METRICS: dict[str, Metric] = {
    "recall": Metric(lambda rates: rates.recall, "of 100 positives it finds {}", 100.0),
    "false_positive_rate": Metric(
        lambda rates: rates.false_positive_rate,
        "of 100 negatives it flags {}",
        100.0,
        gain=operator.neg,
    ),
    "precision": Metric(
        lambda rates: rates.precision_at(rates.recall, rates.false_positive_rate),
        "of 100 flagged cases {} are positive",
        100.0,
    ),
    "f1": Metric(_f1, "F1, of recall and precision, is {}"),
    "share_flagged": Metric(
        lambda rates: rates.share_flagged, "of 100 cases it flags {}", 100.0, gain=None
    ),
    "error_rate": Metric(
        lambda rates: rates.expected(1.0 - rates.rows.flagged, rates.rows.flagged),
        "of 100 cases it gets {} wrong",
        100.0,
        gain=operator.neg,
    ),
    "expected_cost": Metric(
        lambda rates: rates.expected(
            (1.0 - rates.alpha) * (1.0 - rates.rows.flagged), rates.alpha * rates.rows.flagged
        ),
        "100 cases cost {}, at {false_alarm} for a false alarm and {miss} for a miss",
        100.0,
        gain=operator.neg,
    ),
    "auc": Metric(
        _auc, "of 100 pairs of a positive and a negative it has {} in the right order", 100.0
    ),
    "average_precision": Metric(_average_precision, "average precision is {}"),
    "brier": Metric(
        lambda rates: rates.expected((1.0 - rates.probability) ** 2, rates.probability**2),
        "the Brier score of its probabilities is {}",
        gain=operator.neg,
        of_probabilities=True,
    ),
    "log_loss": Metric(
        _log_loss,
        "the log loss of its probabilities is {}",
        bounds=(0.0, np.inf),
        gain=operator.neg,
        of_probabilities=True,
    ),
    "calibration": Metric(
        lambda rates: rates.expected(rates.probability, rates.probability) - rates.test_prior,
        "its mean probability exceeds the share of positives by {}",
        bounds=(-1.0, 1.0),
        gain=lambda value: -abs(value),
        of_probabilities=True,
    ),
}
