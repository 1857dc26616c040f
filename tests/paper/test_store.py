import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pu_shift._checks import non_negative
from pu_shift.paper.store import (
    NUMERICS,
    TABLE_COLUMNS,
    Columns,
    StoreError,
    TrialStore,
    count,
    differing,
    read_trials,
    text,
)
from tests.paper.engine import killed_at
from tests.paper.simulate import trial

RUN = {"table": 1, "protocol": {"folds": 5, "widths": (0.5, 1.0)}, "seed": 0}
REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"


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
    assert frame["accuracy"].tolist() == [200 / 3, 52.5]
    assert frame["width"].tolist()[0] == 0.1 + 0.2
    assert frame[["lam", "step"]].isna().values.tolist() == [[True, True], [False, False]]
    pd.testing.assert_frame_equal(read_trials(store.folder), frame)
    with TrialStore(store.folder, RUN) as again:
        pd.testing.assert_frame_equal(again.frame(), frame)
        assert again.done() == {
            (0.3, 0.5, 0.5, "banana", "DH-Lin", 0),
            (0.3, 0.5, 0.5, 'a "b", π', "DH-Lin", 0),
        }
    # What pandas reads is the same, for those who use the file directly.
    assert pd.read_csv(store.folder / "trials.csv")["dataset"].tolist()[0] == 'a "b", π'


def test_other_columns_are_the_callers(tmp_path):
    columns = Columns(
        {"dataset": text, "trial": count, "value": count}, ("dataset", "trial"), ("trial",)
    )
    with TrialStore(tmp_path, RUN, columns=columns) as store:
        store.append(
            [{"dataset": "b", "trial": 0, "value": 2}, {"dataset": "a", "trial": 0, "value": 1}]
        )
    assert (tmp_path / "trials.csv").read_text() == "dataset,trial,value\na,0,1\nb,0,2\n"
    assert len(list((tmp_path / "sets").iterdir())) == 1
    with pytest.raises(StoreError, match="sets/.* was changed"), TrialStore(tmp_path, RUN):
        pass


def test_a_trial_counts_once(tmp_path):
    with TrialStore(tmp_path, RUN) as store:
        store.append([trial(accuracy=50), trial(accuracy=60)])
        store.append([trial(accuracy=70, prior=0.1 + 0.2)])
        assert store.frame()["accuracy"].tolist() == [50]
    assert read_trials(tmp_path)["accuracy"].tolist() == [50]


@pytest.mark.parametrize("name", ["x" * 250, "é/..%20b"])
def test_any_dataset_has_a_file_of_its_own(tmp_path, name):
    with TrialStore(tmp_path, RUN) as store:
        store.append([trial(dataset=name), trial(dataset=f"{name}x")])
    assert len(list((tmp_path / "sets").iterdir())) == 2
    assert set(read_trials(tmp_path)["dataset"]) == {name, f"{name}x"}


def set_files(folder):
    return sorted((folder / "sets").iterdir())


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory):
    """A sound folder."""
    folder = tmp_path_factory.mktemp("whole")
    fill(folder)
    return folder


def assert_noticed(folder, change, path, truth):
    content = path.read_bytes()
    path.write_bytes(change(content))
    try:
        pd.testing.assert_frame_equal(read_trials(folder), truth)
    except StoreError as error:
        said = str(error)
    else:
        said = f"{path} holds the same"
    finally:
        path.write_bytes(content)
    assert path.name in said
    assert "\n" not in said


@settings(max_examples=150)
@given(data=st.data())
def test_no_changed_byte_changes_a_number_unnoticed(whole_folder, data):
    truth, path = read_trials(whole_folder), set_files(whole_folder)[1]
    place = data.draw(st.integers(0, path.stat().st_size - 1))
    other = data.draw(st.integers(1, 255))

    def change(content):
        return content[:place] + bytes([content[place] ^ other]) + content[place + 1 :]

    assert_noticed(whole_folder, change, path, truth)
    assert_noticed(whole_folder, lambda content: content[:place], path, truth)


def test_a_changed_file_is_refused_and_computed_again_when_it_is_deleted(tmp_path):
    fill(tmp_path)
    path = set_files(tmp_path)[1]
    path.write_bytes(path.read_bytes().replace(b"50.3", b"51.3"))
    with pytest.raises(StoreError, match=f"{path.name} was changed .*: delete it to compute"):
        TrialStore(tmp_path, RUN).__enter__()
    path.unlink()
    with TrialStore(tmp_path, RUN) as store:
        assert {key[-1] for key in store.done()} == {0, 2}


def test_the_last_digit_of_a_grid_makes_no_other_run():
    # numpy.logspace rounds as the processor does.
    other = {"protocol": {"folds": 5, "widths": [0.5 * (1 + 1e-15), 1.0]}, "seed": 0}
    assert (
        list(differing(RUN | {"protocol": {"folds": 5, "widths": [0.5, 1.0]}}, RUN | other)) == []
    )
    other["protocol"]["widths"][0] = 0.5 * (1 + 1e-9)
    ((name, _),) = differing({**RUN, "protocol": {"folds": 5, "widths": [0.5, 1.0]}}, RUN | other)
    assert name == "protocol.widths"


@pytest.mark.parametrize(
    "other", [{"seed": 1}, {"protocol": {"folds": 3}}, {"files": {"banana": "other"}}]
)
def test_a_file_of_another_run_is_refused(tmp_path, other):
    run = {**RUN, "files": {"banana": "one"}}
    for folder, info in (("a", run), ("b", {**run, **other})):
        with TrialStore(tmp_path / folder, info) as store:
            store.append([trial(trial=int(folder == "b"))])
    (stranger,) = set_files(tmp_path / "b")
    stranger.rename(tmp_path / "a" / "sets" / stranger.name)
    with pytest.raises(
        StoreError, match="holds another run: the (seed|protocol.folds|files.banana) of "
    ):
        TrialStore(tmp_path / "a", run).__enter__()


def without_sets(folder):
    """Leave what is kept under version control; return trials.csv."""
    shutil.rmtree(folder / "sets")
    return folder / "trials.csv"


def test_a_folder_with_trials_csv_alone_is_read_and_resumed(tmp_path):
    fill(tmp_path)
    truth = read_trials(tmp_path)
    content = without_sets(tmp_path).read_bytes()
    pd.testing.assert_frame_equal(read_trials(tmp_path), truth)
    with TrialStore(tmp_path, RUN) as store:
        assert len(store.done()) == 3
    assert (tmp_path / "trials.csv").read_bytes() == content
    fill(tmp_path, count=4)
    assert len(read_trials(tmp_path)) == 4
    assert len(pd.read_csv(tmp_path / "trials.csv")) == 4


@pytest.mark.parametrize("broken", [None, b"", b'{"versions": {"pu_sh', b"[3]"])
def test_finished_training_sets_are_resumed_whatever_became_of_run_json(tmp_path, broken):
    fill(tmp_path)
    truth = read_trials(tmp_path)
    path = tmp_path / "run.json"
    path.unlink() if broken is None else path.write_bytes(broken)
    pd.testing.assert_frame_equal(read_trials(tmp_path), truth)
    with pytest.raises(StoreError, match="holds another run: the seed of banana.* is 0, not 1"):
        TrialStore(tmp_path, {**RUN, "seed": 1}).__enter__()
    with TrialStore(tmp_path, RUN) as store:
        assert len(store.done()) == 3
    assert run_of(tmp_path)["finished"]


def test_a_training_set_of_other_numerics_is_not_resumed(tmp_path, monkeypatch):
    fill(tmp_path)
    monkeypatch.setattr("pu_shift.paper.store.NUMERICS", NUMERICS + 1)
    with pytest.raises(StoreError, match="holds another run: the numerics of banana"):
        TrialStore(tmp_path, RUN).__enter__()


def test_a_new_column_leaves_what_was_written_before_readable(tmp_path, monkeypatch):
    fill(tmp_path / "old")
    new = replace(
        TABLE_COLUMNS,
        checks={**TABLE_COLUMNS.checks, "log_loss": non_negative},
        optional=(*TABLE_COLUMNS.optional, "log_loss"),
    )
    monkeypatch.setattr("pu_shift.paper.store.TABLE_COLUMNS", new)
    for folder in (REFERENCE / "table1", tmp_path / "old"):
        assert read_trials(folder)["log_loss"].isna().all()
    with TrialStore(tmp_path / "old", RUN, columns=new) as store:
        store.append([trial(trial=7, log_loss=0.5)])
        assert store.frame()["log_loss"].tolist()[3:] == [0.5]
    without_sets(tmp_path / "old")
    monkeypatch.undo()
    # A version that does not know the column reads the others.
    truth = [trial(trial=index, accuracy=50 + index / 3) for index in range(3)]
    truth = pd.DataFrame([*truth, trial(trial=7)]).astype({"width": float, "step": float})
    pd.testing.assert_frame_equal(read_trials(tmp_path / "old"), truth)


def test_two_equal_runs_into_one_folder_leave_the_same_trials(tmp_path, whole_folder):
    with TrialStore(tmp_path, RUN) as first:
        first.append([trial(trial=0, accuracy=50)])
        fill(tmp_path)
        first.append([trial(trial=index, accuracy=50 + index / 3) for index in range(3)])
    for name in ("trials.csv", "sets"):
        assert (tmp_path / name).exists()
    pd.testing.assert_frame_equal(read_trials(tmp_path), read_trials(whole_folder))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("50.0", "150.0", "accuracy must be in percent"),
        ("50.0", "", "accuracy must be a number, got ''"),
        ("0.3", "1.3", "prior must lie strictly between"),
        ("banana", "ban,ana", "the number of fields is not that of the columns"),
        (",0.01,500.0,1.25", "", "the number of fields is not that of the columns"),
        ("DH-Lin", '"DH-Lin', "unexpected end of data"),
        ("DH-Lin", "", "method must be a printable text"),
        ("1.25", "-1", "seconds must be a finite number >= 0"),
    ],
)
def test_nonsense_in_a_file_alone_is_reported(tmp_path, old, new, message):
    fill(tmp_path, count=1)
    path = without_sets(tmp_path)
    (tmp_path / "run.json").unlink()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(StoreError, match=f"trials.csv line [12]: {message}"):
        read_trials(tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (trial(accuracy=101), "accuracy must be in percent, got 101"),
        (trial(trial=-1), "trial must be an integer >= 0"),
        (trial(dataset="two\nlines"), "dataset must be a printable text"),
        (trial(lam="small"), "lam must be a number, got 'small'"),
        ({"table": 1}, "the column prior is missing"),
    ],
)
def test_bad_rows_are_refused_before_anything_is_written(tmp_path, row, message):
    with TrialStore(tmp_path, RUN) as store:
        with pytest.raises(ValueError, match=message):
            store.append([trial(), row])
        assert store.done() == set()
    assert len(read_trials(tmp_path)) == 0


@pytest.mark.parametrize("begin", ["resumed", "fresh"])
def test_a_kill_before_any_step_on_the_disk_costs_nothing(tmp_path, whole_folder, begin):
    truth, steps, before = read_trials(whole_folder), 0, 0
    while True:
        folder = tmp_path / str(steps)
        with TrialStore(folder, {**RUN, "seed": int(begin == "fresh")}) as store:
            store.append([trial(trial=index, accuracy=50 + index / 3) for index in range(2)])
        before = 0 if begin == "fresh" else 2
        steps += 1
        if not killed_at(steps, fill, folder, fresh=begin == "fresh"):
            break
        if (folder / "run.json").exists():
            assert len(read_trials(folder)) >= before
        fill(folder, fresh=begin == "fresh")
        pd.testing.assert_frame_equal(read_trials(folder), truth)
    # Two steps for each of run.json, trials.csv, run.json again, and at least one set.
    assert steps > 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "the seed of banana.* is 0, not 1"),
        ({"table": 2}, "the table of banana.* is 1, not 2"),
        (
            {"protocol": {"folds": 2, "widths": [0.5, 1.0]}},
            "the protocol.folds of banana.* is 5, not 2",
        ),
        ({"protocol": {"folds": 5}}, r"the protocol.widths of banana.* is \[0.5, 1.0\], not null"),
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


def test_a_full_disk_costs_nothing_that_was_there(tmp_path, monkeypatch):
    def fail(fd):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with TrialStore(tmp_path, RUN) as store:
        store.append([trial()])
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(StoreError, match=os.strerror(errno.ENOSPC)):
            store.append([trial(trial=1)])
        monkeypatch.undo()
        assert len(store.done()) == 1
    assert len(read_trials(tmp_path)) == 1
    fill(tmp_path)
    assert len(read_trials(tmp_path)) == 3
