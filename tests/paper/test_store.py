import errno
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pu_shift.paper.store import (
    OUTPUTS,
    StoreError,
    TrialStore,
    read_trials,
    table_columns,
    write_atomic,
)
from tests.paper.simulate import trial

RUN = {"table": 1, "protocol": {"folds": 5, "widths": (0.5, 1.0)}, "seed": 0}
ROOT = Path(__file__).resolve().parents[2]


def fill(folder, count=3, **options):
    with TrialStore(folder, RUN, **options) as store:
        store.append([trial(trial=index, accuracy=50 + index / 3) for index in range(count)])


def run_of(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def test_trials_come_back_as_they_went_in(tmp_path):
    odd = trial(dataset='a "b", π', width=0.1 + 0.2, lam=None, step=float("nan"), accuracy=200 / 3)
    with TrialStore(tmp_path / "new" / "folder", RUN) as store:
        store.append([trial()])
        store.append([odd])
        frame = store.frame()
    assert list(frame.columns) == list(trial())
    assert frame["accuracy"].tolist() == [52.5, 200 / 3]
    assert frame["width"].tolist()[1] == 0.1 + 0.2
    assert frame[["lam", "step"]].isna().values.tolist() == [[False, False], [True, True]]
    pd.testing.assert_frame_equal(read_trials(store.folder), frame)
    with TrialStore(store.folder, RUN) as again:
        pd.testing.assert_frame_equal(again.frame(), frame)
        assert again.done() == {
            (0.3, 0.5, 0.5, "banana", "DH-Lin", 0),
            (0.3, 0.5, 0.5, 'a "b", π', "DH-Lin", 0),
        }
    # What pandas reads is the same, for those who use the file directly.
    assert pd.read_csv(store.folder / "trials.csv")["dataset"].tolist()[1] == 'a "b", π'


def test_columns_of_the_hyper_parameters_are_the_callers(tmp_path):
    row = {name: value for name, value in trial().items() if name not in ("width", "lam", "step")}
    with TrialStore(tmp_path, RUN, columns=table_columns(["epochs"])) as store:
        store.append([{**row, "epochs": 20}])
    header = "table,prior,test_prior,given_prior,dataset,method,trial,accuracy,epochs,seconds"
    line = "1,0.3,0.5,0.5,banana,DH-Lin,0,52.5,20.0,1.25"
    check = f"{zlib.crc32((header + line).encode()):08x}"
    assert (tmp_path / "trials.csv").read_text().splitlines() == [
        f"{header},check",
        f"{line},{check}",
    ]
    assert read_trials(tmp_path)["epochs"].tolist() == [20.0]
    with pytest.raises(StoreError, match="line 1: the columns are not"), TrialStore(tmp_path, RUN):
        pass


def test_a_trial_counts_once(tmp_path):
    with TrialStore(tmp_path, RUN) as store:
        store.append([trial(accuracy=50), trial(accuracy=60)])
        store.append([trial(accuracy=70, prior=0.1 + 0.2)])
        assert store.frame()["accuracy"].tolist() == [50]
    lines = (tmp_path / "trials.csv").read_text().splitlines(keepends=True)
    assert len(lines) == 2
    (tmp_path / "trials.csv").write_text("".join([*lines, lines[1]]))
    assert read_trials(tmp_path)["accuracy"].tolist() == [50]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_kill_at_any_byte_costs_no_whole_line(tmp_path, data):
    folder = tmp_path / "run"
    fill(folder, fresh=folder.exists())
    content = (folder / "trials.csv").read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    (folder / "trials.csv").write_bytes(content[:cut])
    whole = max(content[:cut].count(b"\n") - 1, 0)
    assert len(read_trials(folder)) == whole
    with TrialStore(folder, RUN) as store:
        assert [key[-1] for key in sorted(store.done())] == list(range(whole))
        store.append([trial(trial=index, accuracy=50 + index / 3) for index in range(3)])
    assert (folder / "trials.csv").read_bytes() == content


@pytest.mark.parametrize("junk", [b"\x00" * 40, b"\x00\x00\n", b"1,0.3,0.5\n", b"\xff\xfe\n"])
def test_a_damaged_last_line_is_cut_off(tmp_path, junk):
    fill(tmp_path)
    path = tmp_path / "trials.csv"
    content = path.read_bytes()
    path.write_bytes(content + junk)
    with TrialStore(tmp_path, RUN) as store:
        assert len(store.done()) == 3
    assert path.read_bytes() == content


@pytest.fixture(scope="module")
def whole_file(tmp_path_factory):
    """Content of a sound trials.csv, and its rows."""
    folder = tmp_path_factory.mktemp("whole")
    fill(folder)
    return (folder / "trials.csv").read_bytes(), read_trials(folder)


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_changed_byte_changes_a_number_unnoticed(whole_file, tmp_path, data):
    whole, truth = whole_file
    content = bytearray(whole)
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    (tmp_path / "trials.csv").write_bytes(content)
    before_last_line = whole[:-1].rfind(b"\n")
    if place < before_last_line or content[place] == ord("\n"):
        with pytest.raises(StoreError, match="trials.csv line "):
            read_trials(tmp_path)
    else:  # A last line that is not whole is left out: it is computed again.
        sound = truth[: -2 if place == before_last_line else -1]
        pd.testing.assert_frame_equal(read_trials(tmp_path), sound)


def without_checks(folder):
    """Rewrite trials.csv as it was before there were checks; return its path."""
    path = folder / "trials.csv"
    lines = path.read_text().splitlines()
    path.write_text("".join(line.rpartition(",")[0] + "\n" for line in lines))
    return path


def test_a_file_without_checks_is_read_but_not_continued(tmp_path):
    fill(tmp_path)
    truth = read_trials(tmp_path)
    content = without_checks(tmp_path).read_bytes()
    pd.testing.assert_frame_equal(read_trials(tmp_path), truth)
    with pytest.raises(StoreError, match="line 1: the columns are not .*,seconds,check"):
        TrialStore(tmp_path, RUN).__enter__()
    assert (tmp_path / "trials.csv").read_bytes() == content


def test_a_deleted_line_is_computed_again(tmp_path):
    fill(tmp_path)
    path = tmp_path / "trials.csv"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"50.3", b"51.3")
    path.write_bytes(b"".join(lines))
    with pytest.raises(StoreError, match="line 3: it was changed .*; delete the line to compute"):
        TrialStore(tmp_path, RUN).__enter__()
    del lines[2]
    path.write_bytes(b"".join(lines))
    with TrialStore(tmp_path, RUN) as store:
        assert {key[-1] for key in store.done()} == {0, 2}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("50.0", "150.0", "accuracy must be in percent"),
        ("50.0", "", "accuracy must be a number, got ''"),
        ("0.3", "1.3", "prior must lie strictly between"),
        ("banana", "ban,ana", "13 fields instead of 12"),
        ("DH-Lin", '"DH-Lin', "unexpected end of data"),
        ("DH-Lin", "", "method must be a printable text"),
        ("1.25", "-1", "seconds must be a finite number >= 0"),
    ],
)
def test_without_checks_nonsense_is_still_reported(tmp_path, old, new, message):
    fill(tmp_path)
    path = without_checks(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    lines[1] = lines[1].replace(old, new, 1)
    path.write_text("".join(lines))
    with pytest.raises(StoreError, match=f"trials.csv line 2: {message}"):
        read_trials(tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (trial(accuracy=101), "accuracy must be in percent, got 101"),
        (trial(trial=-1), "trial must be an integer >= 0"),
        (trial(dataset="two\nlines"), "dataset must be a printable text"),
        (trial(lam="small"), "lam must be a number, got 'small'"),
        (trial(colour="red"), "a row must have the columns table,prior"),
        ({"table": 1}, "a row must have the columns table,prior"),
    ],
)
def test_bad_rows_are_refused_before_anything_is_written(tmp_path, row, message):
    with TrialStore(tmp_path, RUN) as store:
        with pytest.raises(ValueError, match=message):
            store.append([trial(), row])
        assert store.done() == set()
    assert len(read_trials(tmp_path)) == 0


HOLDER = """
import sys
from pu_shift.paper.store import TrialStore
with TrialStore(sys.argv[1], {"table": 1, "protocol": {}, "seed": 0}):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_two_runs_into_one_folder_are_refused_until_the_first_is_gone(tmp_path):
    run = {"table": 1, "protocol": {}, "seed": 0}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    with holder:
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(StoreError, match=f"in use by another run .pid {holder.pid} on "):
            TrialStore(tmp_path, run, fresh=True).__enter__()
        holder.kill()
    with TrialStore(tmp_path, run) as store:
        store.append([trial()])
    assert run_of(tmp_path)["earlier_sessions"][0]["finished"] is None


def test_a_store_leaves_its_folder_free_when_it_fails_to_open(tmp_path):
    fill(tmp_path)
    with pytest.raises(StoreError, match="holds another run"):
        TrialStore(tmp_path, {**RUN, "seed": 1}).__enter__()
    fill(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "its seed is 0, not 1"),
        ({"table": 2}, "its table is 1, not 2"),
        ({"protocol": {"folds": 2, "widths": [0.5, 1.0]}}, "its protocol.folds is 5, not 2"),
        ({"protocol": {"folds": 5}}, r"its protocol.widths is \[0.5, 1.0\], not null"),
    ],
)
def test_the_folder_of_another_run_is_refused(tmp_path, change, message):
    fill(tmp_path)
    before = (tmp_path / "trials.csv").read_bytes()
    with pytest.raises(StoreError, match=f"{message}; .*--out.*--fresh"):
        TrialStore(tmp_path, {**RUN, **change}).__enter__()
    assert (tmp_path / "trials.csv").read_bytes() == before
    with TrialStore(tmp_path, {**RUN, **change}, fresh=True) as store:
        assert store.done() == set()


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(
    ("name", "content"), [("thesis.tex", ""), ("run.json", "{"), ("run.json", '{"speed": 3}')]
)
def test_a_strangers_folder_is_refused_and_left_alone(tmp_path, fresh, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(StoreError, match=f"{name}.*choose another --out"):
        TrialStore(tmp_path, RUN, fresh=fresh).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_fresh_deletes_our_files_only(tmp_path):
    fill(tmp_path)
    for name in (*OUTPUTS[1:-1], "notes.txt"):
        (tmp_path / name).write_text("old")
    with TrialStore(tmp_path, RUN, fresh=True) as store:
        assert store.done() == set()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".lock", "trials.csv", "run.json", "notes.txt"}
    assert run_of(tmp_path)["earlier_sessions"] == []


def test_a_run_killed_before_its_first_file_can_be_resumed(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / ".run.json.tmp").write_text('{"proto')
    fill(tmp_path)
    assert len(read_trials(tmp_path)) == 3


def test_run_json_tells_what_made_the_results(tmp_path):
    with pytest.raises(KeyboardInterrupt), TrialStore(tmp_path, RUN):
        raise KeyboardInterrupt
    with TrialStore(tmp_path, {**RUN, "command": "make table1", "device": "cpu"}) as store:
        store.append([trial()])
        assert run_of(tmp_path)["finished"] is None
    run = run_of(tmp_path)
    assert run["protocol"] == {"folds": 5, "widths": [0.5, 1.0]}
    assert (run["seed"], run["command"], run["device"]) == (0, "make table1", "cpu")
    assert {"python", "numpy", "scipy", "chainer", "pandas", "scikit-learn", "pu_shift"} == set(
        run["versions"]
    )
    assert run["versions"]["pandas"] == pd.__version__
    assert run["platform"]["cores"] == os.cpu_count()
    assert all("filepath" not in library for library in run["blas"])
    assert run["started"] <= run["finished"]
    assert run["wall_seconds"] >= 0
    (first,) = run["earlier_sessions"]
    assert first["finished"] is None
    assert first["command"].startswith("python ")


@pytest.mark.parametrize("inside", ["file/results", "file"])
def test_an_unwritable_folder_is_one_line(tmp_path, inside):
    (tmp_path / "file").touch()
    with pytest.raises(
        StoreError, match=r"cannot write to .*file.*: (Not a directory|File exists)"
    ):
        TrialStore(tmp_path / inside, RUN).__enter__()


def test_a_full_disk_leaves_whole_lines(tmp_path, monkeypatch):
    real_write = os.write
    with TrialStore(tmp_path, RUN) as store:
        store.append([trial()])
        before = (tmp_path / "trials.csv").read_bytes()
        monkeypatch.setattr(os, "write", lambda fd, data: real_write(fd, data[:10]))
        with pytest.raises(StoreError, match=os.strerror(errno.ENOSPC)):
            store.append([trial(trial=1)])
        monkeypatch.undo()
        assert len(store.done()) == 1
    assert (tmp_path / "trials.csv").read_bytes() == before


def test_write_atomic_replaces_the_whole_file(tmp_path):
    write_atomic(tmp_path / "a", "long old text")
    write_atomic(tmp_path / "a", "π")
    assert (tmp_path / "a").read_bytes() == "π".encode()
    write_atomic(tmp_path / "a", b"\x00")
    assert (tmp_path / "a").read_bytes() == b"\x00"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_write_atomic_keeps_the_old_file_on_failure(tmp_path, monkeypatch):
    write_atomic(tmp_path / "a", "old")

    def fail(fd):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="full"):
        write_atomic(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]
