import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pu_shift.data import DataError, Dataset
from pu_shift.data.sampling import draw

# One feature that numbers the rows, so that a draw shows which rows it took.
NUMBERED = Dataset.of("numbered", np.arange(4000.0)[:, None], np.repeat([1, -1], 2000))
SIZES = {"n_p": 50, "n_u": 200, "n_test": 60}
priors = st.floats(0.05, 0.95)


def rows(X):
    return X[:, 0].astype(int).tolist()


@settings(deadline=None)
@given(
    priors, st.lists(priors, max_size=3), st.integers(0, 5), st.sampled_from(["exact", "binomial"])
)
def test_parts_are_disjoint_and_have_their_sizes_and_labels(prior, test_priors, trial, counts):
    one = draw(NUMBERED, prior, test_priors, **SIZES, trial=trial, counts=counts)
    p, u = rows(one.positives), rows(one.unlabeled)
    assert (len(set(p)), len(set(u))) == (50, 200)
    assert not set(p) & set(u)
    assert (NUMBERED.y[p] == 1).all()
    np.testing.assert_array_equal(NUMBERED.y[u], one.unlabeled_labels)
    assert set(one.tests) == set(test_priors)
    for X, y in one.tests.values():
        assert len(set(rows(X))) == 60
        assert not set(rows(X)) & (set(p) | set(u))
        np.testing.assert_array_equal(NUMBERED.y[rows(X)], y)
    for X in (one.positives, one.unlabeled, *(X for X, _ in one.tests.values())):
        assert X.dtype == np.float32
        assert X.flags.c_contiguous


@settings(deadline=None)
@given(st.integers(1, 99))
def test_class_counts_are_the_prior_rounded_with_halves_up(percent):
    one = draw(NUMBERED, percent / 100, percent / 100, n_p=1, n_u=50, n_test=10)
    assert (one.unlabeled_labels == 1).sum() == (percent * 50 + 50) // 100
    (_, y) = one.tests[percent / 100]
    assert (y == 1).sum() == (percent * 10 + 50) // 100


def test_binomial_counts_vary_around_the_prior():
    found = [
        (draw(NUMBERED, 0.3, [], **SIZES, trial=t, counts="binomial").unlabeled_labels == 1).sum()
        for t in range(100)
    ]
    assert len(set(found)) > 10
    # Four standard errors of the mean of 100 binomials.
    assert abs(np.mean(found) - 60) < 4 * np.sqrt(200 * 0.3 * 0.7 / 100)


def test_a_part_does_not_depend_on_what_else_is_asked_for():
    alone = draw(NUMBERED, 0.3, 0.5, **SIZES, trial=3)
    among = draw(NUMBERED, 0.3, [0.7, 0.5, 0.3], **SIZES, trial=3)
    bare = draw(NUMBERED, 0.1 + 0.2, [], **SIZES, trial=3)
    for other in (among, bare):
        np.testing.assert_array_equal(alone.positives, other.positives)
        np.testing.assert_array_equal(alone.unlabeled, other.unlabeled)
    np.testing.assert_array_equal(alone.tests[0.5][0], among.tests[0.5][0])


def test_the_name_the_prior_the_seed_and_the_trial_each_change_the_draw():
    renamed = Dataset.of("renamed", NUMBERED.X, NUMBERED.y)
    draws = [
        draw(NUMBERED, 0.3, [], **SIZES),
        draw(renamed, 0.3, [], **SIZES),
        draw(NUMBERED, 0.4, [], **SIZES),
        draw(NUMBERED, 0.3, [], **SIZES, seed=1),
        draw(NUMBERED, 0.3, [], **SIZES, trial=1),
    ]
    assert len({tuple(rows(one.positives)) for one in draws}) == len(draws)


def test_the_draw_is_the_same_with_every_version():
    # Once drawn, for ever drawn: the published results rest on these rows.
    one = draw(NUMBERED, 0.3, 0.5, n_p=3, n_u=4, n_test=2)
    again = draw(Dataset.of("NUMBERED", NUMBERED.X, NUMBERED.y), 0.3, 0.5, n_p=3, n_u=4, n_test=2)
    for same in (one, again):
        assert rows(same.positives) == [1901, 493, 1171]
        assert rows(same.unlabeled) == [3019, 1818, 2166, 2173]
        assert rows(same.tests[0.5][0]) == [1070, 3889]


def test_rows_are_drawn_evenly():
    hits = np.zeros(4000)
    for trial in range(200):
        one = draw(NUMBERED, 0.5, 0.5, n_p=100, n_u=200, n_test=100, trial=trial)
        hits[rows(one.positives)] += 1
        hits[rows(one.unlabeled)] += 1
        hits[rows(one.tests[0.5][0])] += 1
    # 250 of 2,000 positives and 150 of 2,000 negatives each time, 200 times.
    assert hits[:2000].mean() == 25
    assert hits[2000:].mean() == 15
    assert hits[:2000].min() > 5
    assert hits[:2000].max() < 55
    np.testing.assert_allclose(hits[:2000].std(), np.sqrt(200 * 0.125 * 0.875), rtol=0.1)


@pytest.mark.parametrize(
    ("prior", "sizes", "message"),
    [
        (0.5, {"n_p": 1901}, "has 2000 positive rows, the draw needs 2001: 1901 for P + 100 for U"),
        (0.1, {"n_u": 3000}, "has 2000 negative rows, the draw needs 2700: 2700 for U"),
        (0.5, {"n_test": 3900}, "needs 2100: 50 for P + 100 for U + 1950 for a test set"),
        (0.1, {"n_u": 2000, "n_test": 500}, "needs 2050: 1800 for U + 250 for a test set"),
    ],
)
def test_too_few_rows_of_a_class_is_one_clear_line(prior, sizes, message):
    with pytest.raises(DataError, match=re.escape(message)):
        draw(NUMBERED, prior, 0.5, **{**SIZES, **sizes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prior": 0}, "prior must lie strictly between 0 and 1"),
        ({"test_prior": [0.5, 1.0]}, "test_prior must lie strictly between 0 and 1"),
        ({"n_p": 0}, "n_p must be an integer >= 1"),
        ({"n_u": 2.5}, "n_u must be an integer >= 1"),
        ({"n_test": 0}, "n_test must be an integer >= 1"),
        ({"seed": -1}, "seed must be an integer >= 0"),
        ({"trial": None}, "trial must be an integer >= 0"),
        ({"counts": "poisson"}, "counts must be one of 'exact', 'binomial'"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        draw(**{"dataset": NUMBERED, "prior": 0.3, "test_prior": 0.5, **changes})
