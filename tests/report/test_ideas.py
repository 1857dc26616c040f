import numpy as np
import pytest

from pu_shift.data.dataset import DataError
from pu_shift.paper.protocol import Protocol
from pu_shift.paper.settings import METHODS
from pu_shift.priors import Condition
from pu_shift.report.ideas import GIVEN_PRIORS, LEVELS, PRIORS, banana_surfaces
from tests.paper.simulate import small_surfaces


def test_every_method_prior_and_level_has_its_surface():
    surfaces = small_surfaces()
    assert list(surfaces.scores) == list(METHODS)
    for by_prior in surfaces.scores.values():
        assert tuple(by_prior) == GIVEN_PRIORS
        assert all(
            score.shape == (25, 25) and np.isfinite(score).all() for score in by_prior.values()
        )
    assert tuple(surfaces.posteriors) == tuple(surfaces.rates) == PRIORS
    assert {label: surface.max() for label, surface in surfaces.densities.items()} == {1: 1, -1: 1}


def test_a_given_prior_moves_only_the_threshold_of_a_ratio():
    surfaces = small_surfaces()
    p_over_u, u_over_p = surfaces.ratios["p/u"], surfaces.ratios["u/p"]
    for given in GIVEN_PRIORS:
        condition = Condition(surfaces.prior, given)
        for direction, ratio in (("p/u", p_over_u), ("u/p", u_over_p)):
            np.testing.assert_allclose(
                surfaces.scores[f"{direction} uLSIF"][given],
                condition.classify_ratio(ratio, direction),
                atol=1e-4,
            )
    np.testing.assert_allclose(
        surfaces.posteriors[surfaces.prior], surfaces.prior * p_over_u, atol=1e-5
    )


def test_rates_fall_with_the_level_and_tell_the_classes_apart():
    for positives, negatives in small_surfaces().rates.values():
        assert positives.shape == negatives.shape == LEVELS.shape
        assert (np.diff(positives) <= 0).all()
        assert (np.diff(negatives) <= 0).all()
        assert positives.mean() > negatives.mean() + 0.05


def test_a_prior_beyond_the_data_is_an_error_in_one_line():
    with pytest.raises(DataError, match="banana") as caught:
        banana_surfaces(Protocol(n_steps=1), prior=0.97)
    assert "\n" not in str(caught.value)
