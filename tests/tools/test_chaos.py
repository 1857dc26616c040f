"""A short form of the fault campaign, and proof that it can tell survival from loss."""

import importlib.util
import shutil
from pathlib import Path

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
def test_a_full_disk_loses_nothing(chaos, bench):
    assert list(chaos.full_disks(bench, 1)) == [""]


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
