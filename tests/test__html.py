import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markupsafe import escape

from pu_shift._html import embed_json, fill_template, render_template


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


@given(st.text(alphabet="<>&\"'a{}% "))
def test_a_template_escapes_what_is_put_in_but_data_and_assets(text):
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "page.html").write_text(
            '<b t="{{ x }}">{{ x }}</b>{{ data }}{{ asset("s.css") }}'
        )
        (folder / "s.css").write_text("a > b {}")
        page = render_template(folder / "page.html", x=text, data=embed_json([text]))
    shown = escape(text)
    assert page == f'<b t="{shown}">{shown}</b>{embed_json([text])}a > b {{}}'


def test_a_value_that_a_template_lacks_is_an_error(tmp_path):
    (tmp_path / "page.html").write_text("{{ absent }}")
    with pytest.raises(UndefinedError, match="'absent' is undefined"):
        render_template(tmp_path / "page.html")
