"""Error messages name the argument and stay on one line."""

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pu_shift import _checks

BAD_NUMBERS = [None, "a", [1, 2], math.nan, {}]


@pytest.mark.parametrize("check", [_checks.open_unit, _checks.non_negative, _checks.positive])
@pytest.mark.parametrize("value", BAD_NUMBERS, ids=repr)
def test_what_is_no_number_is_refused(check, value):
    with pytest.raises(ValueError, match=r"\Asomething must be a number, got .*\Z"):
        check("something", value)


@given(st.floats(allow_nan=False))
def test_open_unit_accepts_exactly_the_open_interval(value):
    if 0.0 < value < 1.0:
        assert _checks.open_unit("prior", value) == value
    else:
        with pytest.raises(ValueError, match="prior must lie strictly between 0 and 1"):
            _checks.open_unit("prior", value)


@given(st.floats(allow_nan=False))
def test_sign_checks(value):
    for check, good in (
        (_checks.non_negative, value >= 0 and math.isfinite(value)),
        (_checks.positive, value > 0 and math.isfinite(value)),
    ):
        if good:
            assert check("x", value) == value
        else:
            with pytest.raises(ValueError, match="x must be a finite number"):
                check("x", value)


@pytest.mark.parametrize("value", [0, -1, 1.0, "1", True, None])
def test_positive_int_refuses(value):
    with pytest.raises(ValueError, match="n must be an integer >= 1"):
        _checks.positive_int("n", value)


def test_one_of_names_the_choices():
    with pytest.raises(ValueError, match=r"loss must be one of 'a', None, got 'c'"):
        _checks.one_of("loss", "c", ["a", None])
    assert _checks.one_of("loss", None, ["a", None]) is None


def test_messages_are_put_into_one_line():
    assert _checks.one_line(ValueError("a\n  b\t c\n\n")) == "a b c"
    assert _checks.one_line("tried:\n  a\n  b", between="; ") == "tried:; a; b"
    assert _checks.one_line(OSError()) == "OSError"
    assert _checks.one_line("x" * 500) == "x" * 399 + "…"


def test_the_name_of_an_argument_can_be_read_off_and_survives_a_process():
    error = pickle.loads(pickle.dumps(_checks.ArgumentError("test_prior", "must be small")))
    assert (error.name, error.rule) == ("test_prior", "must be small")
    assert str(error) == "test_prior must be small"
    assert str(_checks.ArgumentError("drop", ": a.csv needs it")) == "drop: a.csv needs it"


def test_distinct_compares_no_more_often_than_there_are_values():
    class Text(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Text.compared += 1
            return str.__eq__(self, other)

    _checks.distinct("names", [Text(i) for i in range(10_000)])
    assert Text.compared < 10_000
    with pytest.raises(ValueError, match="names must be distinct, got 'a' twice"):
        _checks.distinct("names", ["a", "b", "a"])
