import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pu_shift._html import embed_json, fill_template


@given(st.recursive(st.text() | st.integers() | st.none(), lambda x: st.lists(x, max_size=3)))
def test_embedded_json_is_the_same_data_without_markup(data):
    text = embed_json(data)
    assert json.loads(text) == data
    assert not set(text) & set("<>&\u2028\u2029")


def test_numbers_that_json_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="JSON"):
        embed_json(float("nan"))


def test_what_is_put_in_is_not_looked_at_again():
    parts = {"a": "{{b}}", "b": "<i>"}
    assert fill_template("{{a}}{{b}}", parts) == "{{b}}<i>"
