"""Pages made from templates: what comes from outside stays text."""

import json
import shutil
import subprocess

import pytest
from jinja2 import UndefinedError

from pu_shift._pages import render_page
from pu_shift.priors import Condition, shift_posterior


@pytest.fixture
def template(tmp_path):
    path = tmp_path / "page.html"
    path.write_text('{{ text }}<script id="data">{{ data | tojson }}</script>{{ asset("a.css") }}')
    (tmp_path / "a.css").write_text("{{ as it is }} <&")
    return path


@pytest.mark.parametrize(
    "text", ["</script><script>alert(1)</script>", "{{ 7 * 7 }}", "a&<b\u2028"]
)
def test_nothing_that_is_put_in_becomes_markup(template, text):
    page = render_page(template, text=text, data={text: [text, 0.1, None]})
    assert page.count("<script") == 1
    shown, data = page.split('<script id="data">')
    assert "<" not in shown
    data, style = data.split("</script>")
    assert json.loads(data) == {text: [text, 0.1, None]}
    assert style == "{{ as it is }} <&"


def test_what_json_does_not_know_is_refused(template):
    with pytest.raises(ValueError, match="JSON"):
        render_page(template, text="", data=float("nan"))


def test_a_part_that_is_missing_is_no_empty_text(template):
    with pytest.raises(UndefinedError, match="'text' is undefined"):
        render_page(template, data=1)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_the_shared_script_computes_what_python_does(template):
    template.write_text('{{ asset("priors.js") }}')
    grid = [(0.3, 0.3, 0.5), (0.3, 0.7, 0.1), (0.05, 0.9, 0.99), (0.8, 1e-6, 0.4)]
    script = f"""{render_page(template)}
    console.log(JSON.stringify({json.dumps(grid)}.map(
      (given) => [priors.condition(...given), priors.shiftPosterior(0.4, given[0], given[1])])));"""
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    for given, (found, posterior) in zip(grid, json.loads(done.stdout)):
        condition = Condition(*given)
        for name, attribute in (("alphaUnif", "alpha_unif"), ("priorUnif", "prior_unif")):
            assert found[name] == getattr(condition, attribute)
        assert found["isConvex"] == condition.is_convex
        assert found["threshold"] == condition.alpha_unif / condition.prior
        assert posterior == shift_posterior(0.4, condition.prior, condition.test_prior)
