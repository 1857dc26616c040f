"""What is made of pip-audit's answer."""

import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "audit.py"
SOUND = {"name": "numpy", "version": "2.0.0", "vulns": []}
HOLE = {"name": "left", "version": "1.0", "vulns": [{"id": "CVE-1"}, {"id": "CVE-2"}]}
# The one that is known, as pip-audit names it: by an id of its own, with aliases.
HARMLESS = {"id": "PYSEC-0", "aliases": ["CVE-2024-48206"]}
CHAINER = {"name": "chainer", "version": "7.8.1", "vulns": [HARMLESS]}
NOTE = "not counted, CVE-2024-48206, chainer: it is in chainermn, which is never imported here"
UNKNOWN = {"name": "pu-shift", "skip_reason": "not found"}


@pytest.fixture(scope="module")
def judge():
    spec = importlib.util.spec_from_file_location("audit_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.judge


@pytest.mark.parametrize(
    ("packages", "status", "lines"),
    [
        ([SOUND, UNKNOWN], 0, ["pip-audit: 1 of 2 packages checked, 0 holes known"]),
        (
            [SOUND, HOLE, UNKNOWN],
            1,
            [
                "left 1.0: CVE-1",
                "left 1.0: CVE-2",
                "pip-audit: 2 of 3 packages checked, 2 holes known",
            ],
        ),
        ([CHAINER], 0, ["pip-audit: 1 of 1 packages checked, 0 holes known"]),
        ([UNKNOWN], 0, ["pip-audit: nothing was checked: no answer about any of 1 packages"]),
    ],
    ids=["sound", "holes", "harmless", "no answer"],
)
def test_only_holes_fail_and_no_answer_is_not_called_clean(judge, packages, status, lines):
    found = judge(json.dumps({"dependencies": packages, "fixes": []}), "")
    assert found == (status, [NOTE, *lines])


@pytest.mark.parametrize("errors", ["", "WARNING: x\nERROR: cannot connect"])
def test_a_database_out_of_reach_is_said_in_one_line(judge, errors):
    status, (_, line) = judge("", errors)
    assert status == 0
    assert line == f"pip-audit: nothing was checked: {(errors or 'no answer').splitlines()[-1]}"
