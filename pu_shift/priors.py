"""Class priors and error costs, and how each turns into the other.

Notation of the paper: π is the share of positives among the unlabelled training patterns
(``prior``), π′ the share among the test patterns (``test_prior``), α the penalty of a false
positive (``alpha``) and 1 − α that of a false negative. Theorems and equations are numbered as in
the paper, where theorems, corollaries and the proposition share one counter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pu_shift._checks import one_of, open_unit, positive

DIRECTIONS = ("p/u", "u/p")
# The part of the posterior's range that estimates beyond 1 are moved into.
MARGIN = 0.02


def alpha_from_test_prior(prior: float, test_prior: float) -> float:
    r"""Cost that is equivalent to a change of the class prior (Theorem 1, Equation 5).

    .. math:: \alpha = \frac{\pi - \pi\pi'}{\pi' + \pi - 2\pi\pi'}

    Parameters
    ----------
    prior, test_prior
        π and π′.

    Returns
    -------
    float
        The false-positive penalty α for which sign[p(y=+1|x) − α] under π is the Bayes classifier
        under π′.

    Examples
    --------
    >>> round(alpha_from_test_prior(0.3, 0.5), 6)
    0.3
    """
    prior = open_unit("prior", prior)
    test_prior = open_unit("test_prior", test_prior)
    # π(1−π′) / (π(1−π′) + π′(1−π)): the printed fraction without cancellation.
    false_positive = prior * (1.0 - test_prior)
    return false_positive / (false_positive + test_prior * (1.0 - prior))


def test_prior_from_alpha(prior: float, alpha: float) -> float:
    r"""Test prior that is equivalent to an error cost (Corollary 2).

    .. math:: \pi' = \frac{\pi - \alpha\pi}{\pi + \alpha - 2\alpha\pi}

    Parameters
    ----------
    prior, alpha
        π and α.

    Returns
    -------
    float
        The test prior π′ with the same Bayes classifier.

    Examples
    --------
    >>> round(test_prior_from_alpha(0.3, 0.3), 6)
    0.5
    """
    prior = open_unit("prior", prior)
    alpha = open_unit("alpha", alpha)
    false_negative = prior * (1.0 - alpha)
    return false_negative / (false_negative + alpha * (1.0 - prior))


# The name begins with "test" because the quantity is the test prior.
vars(test_prior_from_alpha)["__test__"] = False


def prior_unif(test_prior: float, alpha: float = 0.5) -> float:
    r"""Test prior that stands for both a shift and a cost (Theorem 3, Equation 8).

    .. math:: \pi_\mathrm{unif} =
              \frac{\pi' - \alpha\pi'}{\pi' + \alpha - 2\alpha\pi'}

    Parameters
    ----------
    test_prior, alpha
        π′ and α.

    Returns
    -------
    float
        π_unif: shift from π to π_unif with symmetric error is the same problem.

    Examples
    --------
    >>> round(prior_unif(0.4, alpha=0.5), 6), round(prior_unif(0.5, alpha=0.2), 6)
    (0.4, 0.8)
    """
    return test_prior_from_alpha(open_unit("test_prior", test_prior), alpha)


def alpha_unif(prior: float, test_prior: float, alpha: float = 0.5) -> float:
    r"""Cost that stands for both a shift and a cost (Corollary 4, Equation 9).

    .. math:: \alpha_\mathrm{unif} =
        \frac{\pi - \pi\pi_\mathrm{unif}}
             {\pi_\mathrm{unif} + \pi - 2\pi\pi_\mathrm{unif}}
        = \frac{\alpha\pi(1-\pi')}{\alpha\pi(1-\pi') + (1-\alpha)\pi'(1-\pi)}

    Parameters
    ----------
    prior, test_prior, alpha
        π, π′ and α.

    Returns
    -------
    float
        α_unif: penalty α_unif without a shift is the same problem.

    Examples
    --------
    >>> round(alpha_unif(0.3, 0.3, 0.2), 6), round(alpha_unif(0.7, 0.3), 6)
    (0.2, 0.844828)
    """
    prior = open_unit("prior", prior)
    test_prior = open_unit("test_prior", test_prior)
    alpha = open_unit("alpha", alpha)
    # Not by way of π_unif, which may round to 1.
    false_positive = alpha * prior * (1.0 - test_prior)
    return false_positive / (false_positive + (1.0 - alpha) * test_prior * (1.0 - prior))


def shift_posterior(posterior: Any, prior: float, test_prior: float) -> Any:
    r"""Class posterior after the prior has moved from π to π′ (Bayes' rule).

    .. math:: p_{\pi'}(y{=}{+}1|x) = \frac{\frac{\pi'}{\pi} q}
        {\frac{\pi'}{\pi} q + \frac{1-\pi'}{1-\pi}(1-q)},
        \qquad q = p_\pi(y{=}{+}1|x)

    Parameters
    ----------
    posterior
        q, within [0, 1]: a number or an array of any array module.
    prior
        π, the prior under which ``posterior`` holds.
    test_prior
        π′, the prior wanted.

    Returns
    -------
    number or array
        The posterior under π′, within [0, 1].

    Examples
    --------
    >>> round(shift_posterior(0.3, prior=0.3, test_prior=0.5), 6)
    0.5
    """
    prior = open_unit("prior", prior)
    test_prior = open_unit("test_prior", test_prior)
    positive = posterior * (test_prior / prior)
    negative = (1.0 - posterior) * ((1.0 - test_prior) / (1.0 - prior))
    return positive / (positive + negative)


def test_ratio(u_over_p: Any, prior: float, test_prior: float) -> Any:
    r"""Test density ratio from the training one (Theorem 10).

    .. math:: \frac{p_\mathrm{t}(x)}{p_\mathrm{p}(x)} = \frac{\gamma}{1-\pi} +
        \left(1 - \frac{\gamma}{1-\pi}\right)
        \frac{p_\mathrm{u}(x)}{p_\mathrm{p}(x)}, \qquad \gamma = \pi' - \pi

    Parameters
    ----------
    u_over_p
        p_u/p_p: a number or an array of any array module.
    prior, test_prior
        π and π′.

    Returns
    -------
    number or array
        p_t/p_p at the same points.

    Examples
    --------
    >>> round(test_ratio(1.0, prior=0.3, test_prior=0.5), 6)
    1.0
    """
    prior = open_unit("prior", prior)
    test_prior = open_unit("test_prior", test_prior)
    shift = (test_prior - prior) / (1.0 - prior)
    return shift + (1.0 - shift) * u_over_p


vars(test_ratio)["__test__"] = False


def ratio_bounds(prior: float, direction: str = "p/u") -> tuple[float, float]:
    r"""Range of the density ratios (Proposition 9).

    .. math:: 0 < \frac{p_\mathrm{p}}{p_\mathrm{u}} < \frac{1}{\pi},
              \qquad \pi < \frac{p_\mathrm{u}}{p_\mathrm{p}}

    Parameters
    ----------
    prior
        π, the class prior of the unlabelled data.
    direction
        ``'p/u'`` (bounded) or ``'u/p'`` (unbounded above).

    Returns
    -------
    tuple of float
        The lower and the upper bound.

    Examples
    --------
    >>> ratio_bounds(0.25, "p/u"), ratio_bounds(0.25, "u/p")
    ((0.0, 4.0), (0.25, inf))
    """
    prior = open_unit("prior", prior)
    if one_of("direction", direction, DIRECTIONS) == "p/u":
        return 0.0, 1.0 / prior
    return prior, float("inf")


def within_bounds(ratio: Any, prior: float, direction: str = "p/u", margin: float = MARGIN) -> Any:
    r"""Move estimates beyond the bound of Proposition 9 inside of it, in their order.

    With :math:`t = \pi\,p_\mathrm{p}/p_\mathrm{u}`, which is the posterior at π and can exceed 1
    only in an estimate, and a margin ε,

    .. math:: t \mapsto \begin{cases} t & t \le 1 - \varepsilon, \\
        1 - \varepsilon^2 / (t - 1 + 2\varepsilon) & \text{otherwise.} \end{cases}

    Parameters
    ----------
    ratio
        (n,) estimates of p_p/p_u or of p_u/p_p.
    prior
        π.
    direction
        Which of the two ratios it is.
    margin
        ε. With 0 nothing changes.

    Returns
    -------
    numpy.ndarray
        (n,) estimates: strictly increasing in ``ratio``, and for ``'p/u'`` below 1/π.

    Examples
    --------
    >>> (0.5 * within_bounds([1.0, 2.0, 4.0], prior=0.5)).round(4).tolist()
    [0.5, 0.99, 0.9996]
    """
    ratio = np.asarray(ratio)
    prior = open_unit("prior", prior)
    if margin == 0.0:
        return ratio
    if one_of("direction", direction, DIRECTIONS) == "u/p":
        with np.errstate(divide="ignore"):
            return 1.0 / within_bounds(1.0 / np.maximum(ratio, 0.0), prior, "p/u", margin)
    excess = np.maximum(prior * ratio - (1.0 - margin), 0.0)
    inside = (1.0 - margin**2 / (margin + excess)) / prior
    return np.where(excess > 0.0, inside, ratio)


def posterior_at(ratio: np.ndarray, prior: float, direction: str) -> np.ndarray:
    """P(y = +1 | x) at π from an estimated ratio, within [0, 1]."""
    if direction == "p/u":
        return np.clip(prior * ratio, 0.0, 1.0)
    return prior / np.maximum(ratio, prior)


def ratio_sums(ratio: np.ndarray, direction: str) -> np.ndarray:
    """Sum over rows 1, g and g², where g = p_p/(p_p + p_u) lies within [0, 1]."""
    ratio = np.maximum(ratio, 0.0).astype(np.float64)  # an estimate may be negative
    g = ratio / (1.0 + ratio) if direction == "p/u" else 1.0 / (1.0 + ratio)
    return np.array([len(g), g.sum(), (g**2).sum()])


@dataclass(frozen=True)
class Condition:
    r"""Where a classifier is trained and where it will be judged.

    Parameters
    ----------
    prior
        π, the class prior of the unlabelled training data.
    test_prior
        π′, the class prior of the test data; ``None`` means no shift.
    alpha
        α, the false-positive penalty; 1 − α is the false-negative penalty.

    Examples
    --------
    >>> shifted = Condition(prior=0.3, test_prior=0.5)
    >>> round(shifted.alpha_unif, 6), shifted.prior_unif, shifted.is_convex
    (0.3, 0.5, True)
    >>> Condition(prior=0.3, alpha=1.5)
    Traceback (most recent call last):
    ...
    pu_shift._checks.ArgumentError: alpha must lie strictly between 0 and 1, got 1.5
    """

    prior: float
    test_prior: float = None  # type: ignore[assignment]  # a float once it is checked
    alpha: float = 0.5

    if TYPE_CHECKING:

        def __init__(
            self, prior: float, test_prior: float | None = None, alpha: float = 0.5
        ) -> None: ...

    def __post_init__(self) -> None:
        prior = open_unit("prior", self.prior)
        test_prior = self.prior if self.test_prior is None else self.test_prior
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "test_prior", open_unit("test_prior", test_prior))
        object.__setattr__(self, "alpha", open_unit("alpha", self.alpha))

    @classmethod
    def from_costs(
        cls,
        prior: float,
        test_prior: float | None = None,
        *,
        false_positive: float,
        false_negative: float,
    ) -> Condition:
        r"""Return the condition in which errors have these costs.

        .. math:: \alpha = \frac{c_\mathrm{fp}}{c_\mathrm{fp} + c_\mathrm{fn}}

        Parameters
        ----------
        prior, test_prior
            π and π′, as for the class.
        false_positive, false_negative
            What a false alarm and what a miss cost, in any unit, for instance money.

        Returns
        -------
        Condition
            Only the ratio of the costs matters to it; :meth:`expected_cost` takes them again.

        Examples
        --------
        >>> round(Condition.from_costs(0.3, 0.1, false_positive=5, false_negative=200).alpha, 6)
        0.02439
        """
        false_positive = positive("false_positive", false_positive)
        false_negative = positive("false_negative", false_negative)
        return cls(prior, test_prior, false_positive / (false_positive + false_negative))

    def expected_cost(
        self, posterior: Any, *, false_positive: float, false_negative: float, cases: float = 1000.0
    ) -> float:
        r"""Cost to expect of the decisions of least cost, per so many cases.

        Where the posterior q exceeds α a case is called positive, and 1 − q is the chance that
        this is wrong; elsewhere the chance is q:

        .. math:: \frac{\mathrm{cases}}{n}\sum_i
            \left(c_\mathrm{fp}(1 - q_i)[q_i > \alpha] + c_\mathrm{fn}\,q_i[q_i \le \alpha]\right)

        Parameters
        ----------
        posterior
            (n,) probabilities of the positive class at π′, as ``predict_proba`` gives them.
        false_positive, false_negative
            What a false alarm and what a miss cost.
        cases
            How many cases the cost is of.

        Returns
        -------
        float
            The cost in the unit of the two costs.

        Examples
        --------
        >>> costs = {"false_positive": 5, "false_negative": 200}
        >>> condition = Condition.from_costs(0.3, 0.1, **costs)
        >>> round(condition.expected_cost([0.0, 0.01, 0.5, 1.0], **costs), 6)
        1125.0
        """
        false_positive = positive("false_positive", false_positive)
        false_negative = positive("false_negative", false_negative)
        posterior = np.asarray(posterior, dtype=np.float64)
        if posterior.size == 0 or not ((posterior >= 0.0) & (posterior <= 1.0)).all():
            raise ValueError("posterior must be probabilities between 0 and 1")
        wrong = np.where(
            posterior > self.alpha, false_positive * (1.0 - posterior), false_negative * posterior
        )
        return positive("cases", cases) * float(wrong.mean())

    @property
    def prior_unif(self) -> float:
        """π_unif: the equivalent test prior with symmetric error (Theorem 3)."""
        return prior_unif(self.test_prior, self.alpha)

    @property
    def alpha_unif(self) -> float:
        """α_unif: the equivalent penalty without a shift (Corollary 4)."""
        return alpha_unif(self.prior, self.test_prior, self.alpha)

    @property
    def is_convex(self) -> bool:
        """Whether Theorems 6 and 8 guarantee a convex risk: α_unif ≤ ½, that is π ≤ π_unif.

        Compared as odds, which is exact for π = π′ and for α = ½.
        """
        odds = self.prior / (1.0 - self.prior) * (self.alpha / (1.0 - self.alpha))
        return odds <= self.test_prior / (1.0 - self.test_prior)

    def ratio_threshold(self, direction: str = "p/u") -> float:
        r"""Threshold on a density ratio (Equations 12 and 13).

        A pattern is positive when p_p/p_u exceeds α_unif/π, which is the same as p_u/p_p below
        π/α_unif.

        Parameters
        ----------
        direction
            ``'p/u'`` or ``'u/p'``.

        Returns
        -------
        float
            The threshold.

        Examples
        --------
        >>> round(Condition(0.3, 0.5).ratio_threshold("p/u"), 6)
        1.0
        """
        one_of("direction", direction, DIRECTIONS)
        threshold = self.alpha_unif / self.prior
        return threshold if direction == "p/u" else 1.0 / threshold

    def classify_ratio(self, ratio: Any, direction: str = "p/u") -> Any:
        r"""Signed score of a density ratio: positive means class +1 (Equations 12 and 13).

        .. math:: \pi \frac{p_\mathrm{p}}{p_\mathrm{u}} - \alpha_\mathrm{unif}
           \quad\text{or}\quad
           \frac{\pi}{\alpha_\mathrm{unif}} - \frac{p_\mathrm{u}}{p_\mathrm{p}}

        Parameters
        ----------
        ratio
            An estimate of p_p/p_u (``'p/u'``) or of p_u/p_p (``'u/p'``).
        direction
            Which of the two it is.

        Returns
        -------
        number or array
            The score; its sign is the predicted class.

        Examples
        --------
        >>> Condition(0.3, 0.5).classify_ratio(2.0) > 0
        True
        """
        one_of("direction", direction, DIRECTIONS)
        if direction == "p/u":
            return self.prior * ratio - self.alpha_unif
        return self.prior / self.alpha_unif - ratio
