import importlib.util
import json
import re
from pathlib import Path

import pytest

from pu_shift.data.dataset import DataError
from pu_shift.paper.settings import METHODS
from pu_shift.priors import Condition
from pu_shift.report.idea_figures import relations_figure
from pu_shift.report.page import page_data
from pu_shift.report.results import read_results
from tests.paper.simulate import (
    results_folder,
    robustness_folder,
    small_surfaces,
    trials,
)

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "experiments" / "report.py"
# Under a name of its own: the benchmarks have a module of that name too.
_spec = importlib.util.spec_from_file_location("report_script", SCRIPT)
script = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(script)
main, report_figures, write_report = script.main, script.report_figures, script.write_report


@pytest.fixture
def folder(tmp_path):
    few = {"count": 3, "datasets": ["banana", "susy"], "methods": METHODS[1:3]}
    rows = {f"table{n}": trials(lambda c: 70.0, number=n, **few) for n in (4,)}
    return results_folder(tmp_path / "results", rows)


@pytest.fixture
def few_surfaces(monkeypatch):
    calls = []

    def surfaces(*arguments):
        calls.append(arguments)
        return small_surfaces()

    monkeypatch.setattr(script, "banana_surfaces", surfaces)
    return calls


def test_the_command_writes_the_page_and_every_figure_twice(folder, tmp_path, capsys, few_surfaces):
    robustness_folder(folder, methods=METHODS[:2])
    arguments = [str(folder), "--out", str(tmp_path / "out"), "--prior", "0.4", "--alpha", "0.2"]
    assert main(arguments) == 0
    names = {path.stem for path in (tmp_path / "out" / "figures").iterdir()}
    assert names == {
        "relations",
        "ratios",
        "regions",
        "comparison_table4",
        "scatter",
        "heat_map",
        "given_prior_study",
        "given_prior_table4",
    }
    for name in names:
        figure = tmp_path / "out" / "figures" / name
        assert figure.with_suffix(".png").read_bytes()[1:4] == b"PNG"
        assert figure.with_suffix(".pdf").read_bytes()[:4] == b"%PDF"
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert '"condition":{"prior":0.4,"test_prior":0.5,"alpha":0.2}' in text
    assert "report.html, and 16 files in" in capsys.readouterr().out
    ((_, prior, seed),) = few_surfaces
    assert (prior, seed) == (0.4, 0)


def test_two_reports_of_the_same_results_are_the_same_files(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(
        script, "report_figures", lambda *_: [("relations", relations_figure(Condition(0.3)))]
    )
    results = read_results(folder)
    files = [write_report(results, tmp_path / name, Condition(0.3, 0.5)) for name in ("one", "two")]
    assert len(files[0]) == len(files[1]) == 3
    for one, two in zip(*files):
        assert one.read_bytes() == two.read_bytes(), one.name


def test_without_the_data_the_page_is_built_without_their_pictures(
    folder, tmp_path, capsys, monkeypatch
):
    def unavailable(*_):
        raise DataError("banana: is not here\n  tried this\n  and that")

    monkeypatch.setattr(script, "banana_surfaces", unavailable)
    monkeypatch.setattr(script, "report_figures", lambda *_: [])
    assert main([str(folder), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == (
        "without pictures of the banana data: banana: is not here tried this and that\n"
    )
    assert '"banana":null' in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": {"n_p": "many"}}, "n_p must be .*"),
        ({"protocol": {"risk_lams": None}}, "risk_lams must be .*"),
    ],
)
def test_a_malformed_run_is_an_error_in_one_line(folder, capsys, few_surfaces, changes, message):
    path = folder / "table4" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    assert main([str(folder), "--out", str(folder / "out")]) == 2
    error = f"error: {path} was not written by pu-shift: {message}\n"
    assert re.fullmatch(error, capsys.readouterr().err)
    assert not (folder / "out").exists()


@pytest.mark.parametrize("content", ["{", "null"])
def test_what_is_no_run_is_an_error_in_one_line(folder, capsys, content):
    path = folder / "table4" / "run.json"
    path.write_text(content, encoding="utf-8")
    assert main([str(folder)]) == 2
    error = f"error: {path} was not written by pu-shift: .+\n"
    assert re.fullmatch(error, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "error: nowhere is not a folder of results: .*"),
        (["{folder}", "--prior", "1.5"], "error: prior must lie strictly between 0 and 1, got 1.5"),
        (["{folder}", "--out", "{folder}/table4/run.json"], "error: cannot write to .*"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(folder, arguments, message, capsys, few_surfaces):
    assert main([argument.format(folder=folder) for argument in arguments]) == 2
    assert re.fullmatch(message + "\n", capsys.readouterr().err)


def test_the_committed_page_is_that_of_the_reference_results():
    """If it is not, ``make report`` makes it again."""
    text = (ROOT / "docs" / "report.html").read_text(encoding="utf-8")
    shown = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    fresh = page_data(read_results(ROOT / "results" / "reference"), Condition(0.3, 0.5))
    for part in ("methods", "datasets", "cells", "curves", "condition"):
        assert shown[part] == json.loads(json.dumps(fresh[part]))
