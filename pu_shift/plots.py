r"""Look at a classifier before you decide: displays in the style of scikit-learn.

Each display is made by ``from_estimator`` from a fitted classifier of this package, or
a pipeline that ends with one, and drawn by ``plot``; ``ax_`` (or ``axes_``) and
``figure_`` are Matplotlib's. The numbers that are drawn are its attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import matplotlib.pyplot as plt
import numpy as np

from pu_shift._checks import positive, positive_int
from pu_shift._grids import check_grid
from pu_shift.explorer import classifier_of, ratio_classifier_of, training_posterior
from pu_shift.priors import Condition

_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#777777"


Self = TypeVar("Self", bound="Display")


class Display:
    """A figure of one panel, which subclasses draw on ``ax_``."""

    ax_: Any
    figure_: Any

    def plot(self: Self, ax: Any = None) -> Self:
        """Draw the numbers of the display.

        Parameters
        ----------
        ax
            Matplotlib axes; new ones by default.

        Returns
        -------
        display
            The display itself.
        """
        self.ax_ = plt.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        self._draw()
        self.ax_.legend()
        return self

    def _draw(self) -> None:
        """Draw on ``ax_``: implemented by each subclass."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class ThresholdDisplay(Display):
    r"""Decision threshold against the test prior π′, one curve for each α.

    A row is positive where its posterior at the *training* prior exceeds

    .. math:: \alpha_\mathrm{unif} =
        \frac{\alpha\pi(1-\pi')}{\alpha\pi(1-\pi') + (1-\alpha)\pi'(1-\pi)}

    Parameters
    ----------
    condition
        The classifier's present condition, drawn as a point.
    test_priors
        (m,) values of π′.
    alphas
        (k,) values of α.
    thresholds
        (k, m) values of α_unif.

    Examples
    --------
    >>> from pu_shift import DensityRatioClassifier
    >>> rng = np.random.default_rng(0)
    >>> X_p, X_u = rng.normal(1.0, 1.0, (50, 1)), rng.normal(0.0, 1.0, (50, 1))
    >>> classifier = DensityRatioClassifier(0.4).fit_pu(X_p, X_u)
    >>> display = ThresholdDisplay.from_estimator(classifier, test_priors=[0.4], alphas=[0.2])
    >>> display.thresholds.round(6).tolist()
    [[0.2]]
    """

    condition: Condition
    test_priors: np.ndarray
    alphas: np.ndarray
    thresholds: np.ndarray

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        test_priors: Any = None,
        alphas: float | Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9),
        ax: Any = None,
    ) -> ThresholdDisplay:
        """Compute the thresholds of a classifier and draw them.

        Parameters
        ----------
        estimator
            A fitted ``DensityRatioClassifier``, or a pipeline that ends with one.
        test_priors
            Values of π′; 0.01 … 0.99 by default.
        alphas
            Values of α.
        ax
            Matplotlib axes; new ones by default.

        Returns
        -------
        ThresholdDisplay
            The display.
        """
        condition = ratio_classifier_of(estimator).condition
        test_priors = _test_priors(test_priors)
        levels = check_grid("alphas", alphas, allow_zero=True)
        thresholds = [
            [Condition(condition.prior, prior, alpha).alpha_unif for prior in test_priors]
            for alpha in levels
        ]
        return cls(condition, test_priors, levels, np.array(thresholds)).plot(ax)

    def _draw(self) -> None:
        shades = plt.get_cmap("viridis")(np.linspace(0.0, 0.85, len(self.alphas)))
        self.lines_ = [
            self.ax_.plot(self.test_priors, curve, color=shade, label=f"α = {alpha:g}")[0]
            for alpha, curve, shade in zip(self.alphas, self.thresholds, shades)
        ]
        condition = self.condition
        self.ax_.plot(condition.test_prior, condition.alpha_unif, "o", color="black", label="now")
        self.ax_.set(
            xlabel="test prior π′",
            ylabel=f"threshold on the posterior at π = {condition.prior:.3g}",
            xlim=(0.0, 1.0),
            ylim=(0.0, 1.0),
        )


@dataclass(eq=False, repr=False)
class CostDisplay:
    r"""Expected cost and share of rows flagged against the test prior π′.

    With q the posterior at the training prior, rows drawn there give the rates at which
    positives and negatives are flagged,

    .. math:: t = \frac{\sum_i q_i [q_i > \alpha_\mathrm{unif}]}{\sum_i q_i}, \qquad
              f = \frac{\sum_i (1-q_i) [q_i > \alpha_\mathrm{unif}]}{\sum_i (1-q_i)},

    of which follow the share flagged at π′, π′t + (1 − π′)f, and the expected cost,
    c₊(1 − π′)f + c₋π′(1 − t). The costs rest on the model's own posteriors: they are as
    good as these are.

    Parameters
    ----------
    test_priors
        (m,) values of π′.
    cost
        (m,) expected cost of 1,000 cases when the classifier is given π′.
    cost_unmoved
        (m,) the same when it keeps the threshold of its training prior.
    share_flagged
        (m,) share of rows flagged when the classifier is given π′.
    test_prior
        The present π′, drawn as a line.

    Examples
    --------
    >>> from pu_shift import DensityRatioClassifier
    >>> rng = np.random.default_rng(0)
    >>> X_p, X_u = rng.normal(1.0, 1.0, (50, 1)), rng.normal(0.0, 1.0, (50, 1))
    >>> classifier = DensityRatioClassifier(0.4).fit_pu(X_p, X_u)
    >>> display = CostDisplay.from_estimator(classifier, X_u, false_positive=5, false_negative=200)
    >>> bool(display.cost.mean() < display.cost_unmoved.mean())
    True
    """

    test_priors: np.ndarray
    cost: np.ndarray
    cost_unmoved: np.ndarray
    share_flagged: np.ndarray
    test_prior: float

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        false_positive: float | None = None,
        false_negative: float | None = None,
        test_priors: Any = None,
        ax: Any = None,
    ) -> CostDisplay:
        """Compute the costs of a classifier and draw them.

        Parameters
        ----------
        estimator
            A fitted ``DensityRatioClassifier``, or a pipeline that ends with one.
        X
            Rows drawn at the training prior: the unlabelled rows, or others like them.
        false_positive, false_negative
            Cost of each error in your unit; α and 1 − α of the classifier by default.
        test_priors
            Values of π′; 0.01 … 0.99 by default.
        ax
            A pair of Matplotlib axes; new ones by default.

        Returns
        -------
        CostDisplay
            The display.
        """
        own = ratio_classifier_of(estimator).condition
        if (false_positive is None) != (false_negative is None):
            raise ValueError("false_positive and false_negative must be given together")
        if false_positive is None or false_negative is None:
            false_positive, false_negative = own.alpha, 1.0 - own.alpha
        false_positive = positive("false_positive", false_positive)
        false_negative = positive("false_negative", false_negative)
        alpha = false_positive / (false_positive + false_negative)
        test_priors = _test_priors(test_priors)
        posterior = training_posterior(estimator, X)
        moved = [Condition(own.prior, prior, alpha).alpha_unif for prior in test_priors]
        unmoved = Condition(own.prior, alpha=alpha).alpha_unif

        def expected(thresholds: Any) -> tuple[np.ndarray, np.ndarray]:
            flagged = posterior > np.reshape(thresholds, (-1, 1))
            found = flagged @ posterior / posterior.sum()
            false = flagged @ (1.0 - posterior) / (1.0 - posterior).sum()
            cost = false_positive * (1.0 - test_priors) * false
            cost = cost + false_negative * test_priors * (1.0 - found)
            return 1000.0 * cost, test_priors * found + (1.0 - test_priors) * false

        cost, share = expected(moved)
        return cls(test_priors, cost, expected(unmoved)[0], share, own.test_prior).plot(ax)

    def plot(self, ax: Any = None) -> CostDisplay:
        """Draw the cost on one pair of axes and the share flagged on the other.

        Parameters
        ----------
        ax
            A pair of Matplotlib axes; new ones by default.

        Returns
        -------
        CostDisplay
            The display itself.
        """
        if ax is None:
            _, ax = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
        self.axes_ = np.asarray(ax)
        if self.axes_.shape != (2,):
            raise ValueError(f"ax must be a pair of axes, got shape {self.axes_.shape}")
        self.figure_ = self.axes_[0].figure
        left, right = self.axes_
        left.plot(self.test_priors, self.cost, color=_BLUE, label="π′ given")
        left.plot(
            self.test_priors, self.cost_unmoved, "--", color=_ORANGE, label="threshold left at π"
        )
        left.set(ylabel="expected cost per 1,000 cases")
        left.set_ylim(bottom=0.0)
        right.plot(self.test_priors, self.share_flagged, color=_BLUE, label="π′ given")
        right.plot([0.0, 1.0], [0.0, 1.0], ":", color=_GREY, label="share of positives")
        right.set(ylabel="share flagged", ylim=(0.0, 1.0))
        for one in self.axes_:
            one.axvline(self.test_prior, color=_GREY, linewidth=0.8)
            one.set(xlabel="test prior π′", xlim=(0.0, 1.0))
            one.legend()
        return self


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Display):
    r"""Observed share of positives against the predicted probability, at the test prior.

    The area of a point is the share of rows in its bin.

    The rows' true classes are known. Whatever their share of positives, each class is
    weighted so that it has the share that the test prior gives it.

    Parameters
    ----------
    prob_true
        (k,) weighted share of positives in each bin that has rows.
    prob_pred
        (k,) weighted mean of the predicted probabilities there.
    weight
        (k,) share of the weights that lies in the bin.
    test_prior
        π′.

    Examples
    --------
    >>> from pu_shift import DensityRatioClassifier
    >>> rng = np.random.default_rng(0)
    >>> X_p, X_u = rng.normal(1.0, 1.0, (50, 1)), rng.normal(0.0, 1.0, (50, 1))
    >>> classifier = DensityRatioClassifier(0.4, test_prior=0.7).fit_pu(X_p, X_u)
    >>> X, y = [[-2.0], [-1.0], [0.0], [2.0]], [-1, -1, 1, 1]
    >>> display = ReliabilityDisplay.from_estimator(classifier, X, y, n_bins=1)
    >>> display.prob_true.round(6).tolist()
    [0.7]
    """

    prob_true: np.ndarray
    prob_pred: np.ndarray
    weight: np.ndarray
    test_prior: float

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None
    ) -> ReliabilityDisplay:
        """Compare a classifier's probabilities with rows whose classes are known.

        Parameters
        ----------
        estimator
            A fitted classifier of this package, or a pipeline that ends with one.
        X
            (n, d) features.
        y
            (n,) true classes: ``classes_[1]`` is positive, all others are negative.
        n_bins
            Number of bins of equal width in [0, 1].
        ax
            Matplotlib axes; new ones by default.

        Returns
        -------
        ReliabilityDisplay
            The display.
        """
        classifier = classifier_of(estimator)
        n_bins = positive_int("n_bins", n_bins)
        probability = estimator.predict_proba(X)[:, 1]
        is_positive = np.asarray(y) == classifier.classes_[1]
        if is_positive.shape != probability.shape or is_positive.all() or not is_positive.any():
            raise ValueError("y must hold both classes, one for each row of X")
        test_prior = classifier.condition.test_prior
        share = is_positive.mean()
        weights = np.where(is_positive, test_prior / share, (1.0 - test_prior) / (1.0 - share))
        bins = np.minimum((probability * n_bins).astype(int), n_bins - 1)
        total = np.bincount(bins, weights, n_bins)
        used = total > 0.0
        true, predicted = (
            np.bincount(bins, weights * values, n_bins)[used] / total[used]
            for values in (is_positive, probability)
        )
        return cls(true, predicted, total[used] / total.sum(), test_prior).plot(ax)

    def _draw(self) -> None:
        self.ax_.plot([0.0, 1.0], [0.0, 1.0], ":", color=_GREY, label="perfect")
        (self.line_,) = self.ax_.plot(self.prob_pred, self.prob_true, color=_BLUE)
        self.points_ = self.ax_.scatter(
            self.prob_pred, self.prob_true, s=10.0 + 300.0 * self.weight, color=_BLUE, label="bins"
        )
        self.ax_.set(
            xlabel=f"predicted probability at π′ = {self.test_prior:.3g}",
            ylabel="observed share of positives",
            aspect="equal",
        )


@dataclass(eq=False, repr=False)
class PosteriorDisplay(Display):
    r"""Histogram of the posterior of unlabelled rows, with the decision threshold.

    The posterior is that at the training prior π, at which the rows were drawn: its mean
    over them should be near π. The threshold is α_unif, so that the rows to its right are
    those that the present condition flags.

    Parameters
    ----------
    counts
        (k,) number of rows in each bin.
    edges
        (k + 1,) edges of the bins.
    mean
        Mean posterior of the rows.
    condition
        The classifier's present condition.

    Examples
    --------
    >>> from pu_shift import DensityRatioClassifier
    >>> rng = np.random.default_rng(0)
    >>> X_p, X_u = rng.normal(1.0, 1.0, (50, 1)), rng.normal(0.0, 1.0, (50, 1))
    >>> classifier = DensityRatioClassifier(0.4).fit_pu(X_p, X_u)
    >>> int(PosteriorDisplay.from_estimator(classifier, X_u).counts.sum())
    50
    """

    counts: np.ndarray
    edges: np.ndarray
    mean: float
    condition: Condition

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, n_bins: int = 25, ax: Any = None
    ) -> PosteriorDisplay:
        """Compute the posteriors of rows and draw their histogram.

        Parameters
        ----------
        estimator
            A fitted classifier of this package, or a pipeline that ends with one.
        X
            Rows drawn at the training prior: the unlabelled rows, or others like them.
        n_bins
            Number of bins of equal width in [0, 1].
        ax
            Matplotlib axes; new ones by default.

        Returns
        -------
        PosteriorDisplay
            The display.
        """
        posterior = training_posterior(estimator, X)
        condition = classifier_of(estimator).condition
        counts, edges = np.histogram(posterior, positive_int("n_bins", n_bins), (0.0, 1.0))
        return cls(counts, edges, float(posterior.mean()), condition).plot(ax)

    def _draw(self) -> None:
        prior, threshold = self.condition.prior, self.condition.alpha_unif
        self.bars_ = self.ax_.bar(
            self.edges[:-1], self.counts, np.diff(self.edges), align="edge", color=_BLUE, alpha=0.6
        )
        for place, style, colour, label in (
            (threshold, "-", _ORANGE, f"threshold {threshold:.3g}"),
            (self.mean, "--", "black", f"mean {self.mean:.3g}, should be near π = {prior:.3g}"),
        ):
            self.ax_.axvline(place, linestyle=style, color=colour, label=label)
        self.ax_.set(
            xlabel=f"posterior at π = {prior:.3g}", ylabel="unlabelled rows", xlim=(0.0, 1.0)
        )


def _test_priors(given: Any) -> np.ndarray:
    values = np.linspace(0.01, 0.99, 99) if given is None else given
    return check_grid("test_priors", values, allow_zero=True)
