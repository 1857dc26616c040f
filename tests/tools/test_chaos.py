"""A short form of the fault campaign, and proof that it can tell survival from loss."""

import importlib.util
import io
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pu_shift.paper.store import TrialStore, read_trials

SCRIPT = Path(__file__).parents[2] / "tools" / "chaos.py"


@pytest.fixture(scope="module")
def chaos():
    spec = importlib.util.spec_from_file_location("chaos_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bench(chaos, tmp_path_factory):
    return chaos.Bench(tmp_path_factory.mktemp("bench"), seed=0, short=True)


# Killed runs, signals, workers and schedulers have their tests beside the runner's and the store's.
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("corrupt_trials", 9),
        ("unwritable_outputs", 1),
        ("corrupt_caches", 8),
        ("corrupt_data", 8),
        ("full_disks", 1),
        ("read_only", 1),
        ("two_at_once", 1),
    ],
)
def test_nothing_is_lost(chaos, bench, kind, count):
    assert list(getattr(chaos, kind)(bench, count)) == [""] * count


def test_what_is_lost_is_noticed(chaos, bench):
    out = bench.new_folder()
    shutil.copytree(bench.whole, out)
    assert bench.lost(out) == ""
    first, second = (out / "sets").iterdir()
    first.unlink()
    assert "a trial is lost" in bench.lost(out)
    assert bench.lost(out, before=set()) == ""
    second.write_bytes(second.read_bytes().replace(b"p/u", b"u/p"))
    assert f"{second.name} was changed" in bench.lost(out)


def test_a_wrong_number_is_noticed(chaos, bench):
    out = bench.new_folder()
    rows = read_trials(bench.whole).to_dict("records")
    rows[0]["accuracy"] += 0.1
    with TrialStore(out, {"table": 1, "protocol": {}, "seed": 0}) as store:
        store.append(rows)
    assert "a trial differs" in bench.lost(out)


@pytest.mark.parametrize(
    ("status", "errors"), [(2, "error: a\nTraceback"), (1, "error: a"), (2, "a"), (2, "error: b")]
)
def test_a_failure_that_is_not_one_line_is_noticed(chaos, status, errors):
    assert chaos.not_one_line(2, "error: a", "a") == ""
    assert chaos.not_one_line(status, errors, "a") != ""


def test_damage_changes_the_content(chaos):
    rng = np.random.default_rng(0)
    content = b"1,0.3,0.5,0.5,banana,0,52.5\n" * 9
    assert all(chaos.damage(content, rng) != content for _ in range(100))


def test_the_tally_is_printed_and_a_loss_fails(chaos, capsys, monkeypatch):
    def one_of_two(bench, count):
        yield from ["", "a trial is lost"][:count]

    monkeypatch.setattr(chaos, "Bench", lambda *arguments: None)
    monkeypatch.setattr(chaos, "KINDS", {one_of_two: ("a fault", 2, 1)})
    assert chaos.main([]) == 1
    printed = capsys.readouterr()
    table = [line.split() for line in printed.out.splitlines()]
    assert table == [
        ["fault", "tried", "survived", "lost"],
        ["a", "fault", "2", "1", "1"],
        ["all", "2", "1", "1"],
    ]
    assert printed.err == "lost: a fault: a trial is lost\n"
    assert chaos.main(["--short"]) == 0


def test_a_run_that_hangs_is_ended_and_said(chaos):
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    process.log = io.StringIO()
    with process.stdin:
        assert chaos.ended(process, 0.1) == (-signal.SIGKILL, "did not end within 0.1 seconds")
