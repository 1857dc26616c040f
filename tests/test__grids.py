"""Folds are balanced, disjoint and seeded; grids are checked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pu_shift import _grids
from pu_shift._grids import assign_folds, check_grid, random_folds, training_weights


@given(st.integers(2, 12), st.integers(0, 60), st.integers(0, 5))
def test_folds_are_as_even_as_possible(n_folds, extra, seed):
    folds = assign_folds("P", n_folds + extra, n_folds, seed)
    counts = np.bincount(folds, minlength=n_folds)
    assert counts.size == n_folds
    assert counts.max() - counts.min() <= 1
    np.testing.assert_array_equal(folds, assign_folds("P", n_folds + extra, n_folds, seed))


def test_training_weights_leave_each_row_out_once():
    folds = assign_folds("P", 23, 4, 0)
    weights = training_weights(folds, 4)
    assert weights.dtype == np.float32
    np.testing.assert_array_equal(weights[:, :4].sum(axis=1), 3)
    np.testing.assert_array_equal(weights[:, 4], 1)
    np.testing.assert_array_equal(np.argmin(weights[:, :4], axis=1), folds)


def test_too_few_rows_or_folds():
    with pytest.raises(ValueError, match="P must have at least n_folds = 5 rows, got 4"):
        assign_folds("P", 4, 5, 0)
    with pytest.raises(ValueError, match="n_folds must be an integer >= 2, got 1"):
        assign_folds("P", 4, 1, 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "non-empty"),
        ([[1.0]], "non-empty"),
        ("x", "must be numbers"),
        ([1.0, np.nan], "got nan"),
        ([np.inf], "got inf"),
        ([-0.5], "got -0.5"),
    ],
)
def test_bad_grid(values, message):
    with pytest.raises(ValueError, match=f"lams .*{message}"):
        check_grid("lams", values, allow_zero=True)


def test_zero_in_a_grid():
    assert check_grid("lams", 0.0, allow_zero=True).tolist() == [0.0]
    with pytest.raises(ValueError, match="widths must be finite numbers > 0, got 0.0"):
        check_grid("widths", [1.0, 0.0], allow_zero=False)


def test_folds_of_many_rows_are_balanced_and_of_few_one_permutation(monkeypatch):
    monkeypatch.setattr(_grids, "SHUFFLED_ROWS", 64)
    folds = random_folds("P", 500, 3, 7)
    assert np.bincount(folds.of_rows).tolist() == folds.counts.tolist() == [167, 167, 166]
    few = np.random.default_rng(7).permutation(np.arange(60) % 3)
    assert assign_folds("P", 60, 3, 7).tolist() == few.tolist()
    assert folds.of_rows[:64].tolist() == assign_folds("P", 64, 3, 7).tolist()
