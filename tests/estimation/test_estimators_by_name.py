"""Estimators of π′ by name: mean embeddings and flagged rows, against known mixtures."""

import numpy as np
import pytest

from pu_shift import DensityRatioClassifier, estimate_test_prior
from pu_shift.estimation.flagged import flagged_prior, share_bound
from pu_shift.estimation.mean_embedding import _means_of_pairs, embedding_shift
from tests.mixtures import pu_samples

X_P, X_U = pu_samples(400, 900, 0.3, gap=4.0)
CLASSIFIER = DensityRatioClassifier(0.3, estimator="linear").fit_pu(X_P, X_U)


@pytest.mark.parametrize("method", ["kernel", "drpu"])
@pytest.mark.parametrize("test_prior", [0.15, 0.7])
def test_a_known_mixture_is_found(method, test_prior):
    _, X = pu_samples(2, 800, test_prior, gap=4.0, seed=5)
    samples = (X_P, X_U) if method == "kernel" else None
    found = estimate_test_prior(CLASSIFIER, X, method, samples=samples)
    assert abs(found.test_prior - test_prior) < 0.1
    assert found.low <= found.test_prior <= found.high
    assert found.method == method


def test_means_of_pairs_leave_a_row_with_itself_out():
    kernel = np.exp(-(np.subtract.outer(np.arange(4.0), np.arange(4.0)) ** 2))
    weights = np.full((4, 1), 0.25)
    expected = kernel[~np.eye(4, dtype=bool)].mean()
    assert _means_of_pairs(weights, kernel @ weights)[0] == pytest.approx(expected)


def test_flagged_rows_by_brute_force():
    rng = np.random.default_rng(0)
    of_p, of_test = rng.normal(1.0, 1.0, 300), rng.normal(0.0, 1.0, 200)
    least = share_bound(300)
    ratios = [
        (of_test >= c).mean() / (of_p >= c).mean() for c in of_p if (of_p >= c).mean() > least
    ]
    assert flagged_prior(of_p, of_test, 0.95, 0)[0] == pytest.approx(min(ratios))


def test_what_cannot_be_estimated_is_said_in_one_line():
    X = X_U[:100]
    with pytest.raises(ValueError, match=r"\Asamples must be given as \(X_p, X_u\) for"):
        estimate_test_prior(CLASSIFIER, X, "kernel")
    with pytest.raises(ValueError, match=r"\AX_u cannot be told from X_p by their mean"):
        embedding_shift(X_U[:300], X_U[300:], X, 0.95, 0)
    with pytest.raises(ValueError, match=r"\AX_p has 10 rows, too few for method='drpu'"):
        flagged_prior(np.arange(10.0), np.arange(10.0), 0.95, 0)
