r"""The test prior from the rows that a score flags, as in DRPU (Nakajima & Sugiyama, 2023).

Of the rows that score at least c let q_p(c) be the share among positives and q_t(c) that among
the test rows. As q_t ≥ π′q_p, the ratio q_t/q_p bounds π′ from above, and is π′ itself where no
negative scores as high. In a sample the smallest of many ratios errs downwards. It is taken over
the c at which q_p exceeds the bound on its error,

.. math:: \varepsilon = \sqrt{\frac{4\log(e n_\mathrm{p}/2)}{n_\mathrm{p}}}
          + \sqrt{\frac{\log(2 n_\mathrm{p})}{2 n_\mathrm{p}}},

that holds for all c at once with probability 1 − 1/n_p (*Machine Learning*, 2023,
arXiv:2107.05045).
"""

from __future__ import annotations

import numpy as np

from pu_shift._seeds import Seed
from pu_shift.estimation.class_prior import share_from

N_RESAMPLES = 200


def flagged_prior(
    scores_p: np.ndarray, scores_test: np.ndarray, level: float, seed: Seed
) -> list[float]:
    """Estimate π′ from scores of positives and of test rows, with its bootstrap interval.

    Parameters
    ----------
    scores_p, scores_test
        Scores that are high where positives are likely, of rows they were not fitted to.
    level
        The interval's level.
    seed
        Seed of the bootstrap.

    Returns
    -------
    list
        The estimate, and the ends of its interval.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> positive, negative = rng.normal(2.0, 1.0, (2, 700)), rng.normal(-3.0, 1.0, 300)
    >>> found = flagged_prior(positive[0], np.append(positive[1], negative), 0.95, 0)
    >>> found[1] <= found[0] <= 0.7
    True
    """
    least = share_bound(len(scores_p))
    if not least < 1.0:
        raise ValueError(
            f"X_p has {len(scores_p)} rows, too few for method='drpu' to bound their shares"
        )
    rng = np.random.default_rng(seed)
    resamples = []
    for _ in range(N_RESAMPLES):
        of_p, of_test = (rng.choice(part, len(part)) for part in (scores_p, scores_test))
        resamples.append(_smallest(of_p, of_test, least))
    tail = 0.5 * (1.0 - level)
    low, high = np.quantile(resamples, [tail, 1.0 - tail])
    return [_smallest(scores_p, scores_test, least), float(low), float(high)]


def share_bound(n: int) -> float:
    """Return ε of n rows.

    Examples
    --------
    >>> round(share_bound(500), 2)
    0.31
    """
    return float(np.sqrt(4.0 * (1.0 + np.log(0.5 * n)) / n) + np.sqrt(np.log(2.0 * n) / (2.0 * n)))


def _smallest(scores_p: np.ndarray, scores_test: np.ndarray, least: float) -> float:
    thresholds = np.unique(scores_p)
    q_p = share_from(scores_p, thresholds)
    flagged = q_p > least
    return float(min(1.0, np.min(share_from(scores_test, thresholds[flagged]) / q_p[flagged])))
