import importlib.util
import sys
from pathlib import Path

import pytest

from pu_shift.data import loading
from tests.data import tiny
from tests.data.conftest import home  # noqa: F401

SCRIPT = Path(__file__).parents[1] / "datasets" / "fetch.py"
pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the script's main with these arguments; return its status and what it printed."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("fetch_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "NAMES", ("tiny",))

    def call(*arguments):
        try:
            status = module.main(arguments)
        except SystemExit as stop:
            status = stop.code
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return call


def put(content=None):
    path = loading.raw_folder() / "tiny.txt"
    path.write_bytes(tiny.libsvm() if content is None else content)
    return path


@pytest.mark.parametrize("arguments", [["--all"], ["tiny"], ["TINY", "--offline"]])
def test_what_is_here_is_shown_with_its_facts(run, arguments):
    path = put()
    status, out = run(*arguments)
    assert status == 0
    assert out.split() == ["tiny", "40", "×", "3", "15", "positive", str(path)]


def test_what_cannot_be_had_is_said_with_where_to_put_it(run):
    status, out = run("--all", "--offline")
    assert status == 1
    assert "tiny: is not available" in out
    assert f"into {loading.raw_folder()}" in out
    assert out.endswith("0 of 1 here; missing: tiny\n")


def test_the_list_says_what_is_here_and_how_big(run):
    status, out = run("--list")
    assert status == 0
    assert "not here; home: https://example.org" in out
    assert str(loading.raw_folder()) in out
    path = put()
    status, out = run("--list", "tiny")
    assert status == 0
    assert f"{path.stat().st_size / 1e6:.2f} MB  {path}" in out


def test_verify_tells_good_from_bad(run):
    assert run("--verify") == (0, "     tiny     not here\n")
    assert run("--verify", "tiny")[0] == 1
    put()
    status, out = run("--verify")
    assert status == 0
    assert out.startswith("good tiny")
    path = put(tiny.libsvm()[:100])
    status, out = run("--verify")
    assert status == 1
    assert out.startswith("BAD  tiny")
    assert path.exists()
