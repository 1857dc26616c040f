import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from multiprocessing import active_children

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from pu_shift import data
from pu_shift.data.sampling import draw
from pu_shift.paper import runner
from pu_shift.paper.protocol import Protocol, chosen, fit_method
from pu_shift.paper.runner import (
    Label,
    RunOptions,
    Task,
    WorkerError,
    open_dataset,
    run_task,
)
from pu_shift.paper.settings import DATASETS as ALL_DATASETS
from pu_shift.paper.settings import METHODS, TABLES, TRIAL, Block, TableSetting
from pu_shift.paper.store import StoreError
from tests import stand_ins
from tests.paper.engine import (
    DATASETS,
    PROTOCOL,
    SLOW,
    Cluster,
    assert_same_rows,
    count_sets,
    rows,
    start,
    wait_for,
    write_table,
)

ONE = TableSetting.shift(0, 0.3, 0.5, [0.5])
KIND = Label("kind")


def plan(settings, datasets, methods, trials, done=(), label=None):
    return runner.plan(settings, RunOptions(datasets, methods, trials, label=label), done)


def run_all(settings, datasets, methods, trials, protocol=PROTOCOL, progress=None, **options):
    return runner.run_all(
        settings, RunOptions(datasets, methods, trials, protocol, **options), progress
    )


def done_keys(tasks, names):
    return {
        (*block, names[task.dataset], method, task.trial)
        for task in tasks
        for block in task.blocks
        for method in task.methods
    }


class TestPlan:
    def test_seven_tables_need_five_training_sets_per_dataset_and_trial(self):
        tasks = plan(TABLES.values(), ALL_DATASETS, METHODS, 3)
        assert len(tasks) == 5 * 6 * 3
        keys = {(task.dataset, task.prior, task.trial) for task in tasks}
        assert len(keys) == len(tasks)
        asked = [
            (task.trial, task.dataset, block, method)
            for task in tasks
            for block in task.blocks
            for method in task.methods
        ]
        assert len(set(asked)) == len(asked)
        expected = {
            (trial, dataset, block, method)
            for trial in range(3)
            for dataset in ALL_DATASETS
            for setting in TABLES.values()
            for block in setting.blocks
            for method in METHODS
        }
        assert set(asked) == expected
        assert all(block.prior == task.prior for task in tasks for block in task.blocks)

    def test_the_first_trials_come_first(self):
        trials = [task.trial for task in plan([TABLES[3]], DATASETS, METHODS, 4)]
        assert trials == sorted(trials)

    def test_what_is_done_is_left_out(self):
        tasks = plan([TABLES[1]], DATASETS, METHODS, 2)
        names = dict(zip(DATASETS, DATASETS))
        assert plan([TABLES[1]], DATASETS, METHODS, 2, done_keys(tasks, names)) == []
        half = done_keys(tasks[:2], names)
        assert plan([TABLES[1]], DATASETS, METHODS, 2, half) == tasks[2:]
        more = plan([TABLES[1]], DATASETS, METHODS, 3, done_keys(tasks, names))
        assert {task.trial for task in more} == {2}

    def test_a_part_that_is_missing_is_run_with_all_blocks_for_its_methods(self):
        tasks = plan([TABLES[1]], ["banana"], METHODS, 1)
        done = done_keys(tasks, {"banana": "banana"})
        done.remove((*TABLES[1].blocks[1], "banana", "Sq-Lin", 0))
        (task,) = plan([TABLES[1]], ["banana"], METHODS, 1, done)
        assert task.methods == ("Sq-Lin",)
        assert task.blocks == TABLES[1].blocks

    def test_two_files_of_one_name_are_refused(self, tmp_path):
        paths = [tmp_path / folder / "mine.csv" for folder in "ab"]
        for path in paths:
            path.parent.mkdir()
            write_table(path)
        with pytest.raises(ValueError, match="datasets must be distinct, got 'mine' twice"):
            plan([ONE], [str(path) for path in paths], ["DH-Lin"], 1, label=KIND)


class TestTask:
    TASK = Task("banana", None, 0.3, 1, (Block(0.3, 0.5, 0.3), Block(0.3, 0.7, 0.6)), METHODS)

    def test_accuracies_are_those_of_the_models_on_the_test_sets(self):
        found = run_task(self.TASK, PROTOCOL, seed=4)
        assert [(row["method"], row["given_prior"]) for row in found] == [
            (method, block.given_prior) for method in METHODS for block in self.TASK.blocks
        ]
        sample = draw(data.load("banana"), 0.3, [0.5, 0.7], 100, 300, 100, 4, 1, PROTOCOL.counts)
        with threadpool_limits(1):
            for row in found:
                assert (row["dataset"], row["trial"], row["prior"]) == ("banana", 1, 0.3)
                # Both given priors, because one alone would be another stack.
                fitted = fit_method(PROTOCOL, row["method"], sample, 0.3, [0.3, 0.6])
                model = fitted[row["given_prior"]]
                X, y = sample.tests[row["test_prior"]]
                assert row["accuracy"] == pytest.approx(100 * np.mean(model.predict(X) == y))
                hyper = chosen(model)
                np.testing.assert_equal({name: row[name] for name in hyper}, hyper)
                assert row["seconds"] >= 0

    def test_seed_and_trial_decide_the_draw(self):
        def accuracies(task, seed):
            return [row["accuracy"] for row in run_task(task, PROTOCOL, seed)]

        other = Task(*[*self.TASK.__dict__.values()][:3], 2, self.TASK.blocks, METHODS)
        assert accuracies(self.TASK, 4) == accuracies(self.TASK, 4)
        assert accuracies(self.TASK, 4) != accuracies(self.TASK, 5)
        assert accuracies(self.TASK, 4) != accuracies(other, 4)


def test_files_are_opened_once_and_by_column_name_or_number(tmp_path):
    named = write_table(tmp_path / "named.csv")
    plain = write_table(tmp_path / "plain.csv", header="", label=2)
    by_name, by_number, last = (
        open_dataset(str(path), Label(label))
        for path, label in ((named, "kind"), (named, 0), (plain, 2))
    )
    assert by_name is open_dataset(str(named), KIND)
    np.testing.assert_array_equal(by_name.X, by_number.X)
    np.testing.assert_array_equal(by_name.y, last.y)
    with pytest.raises(data.DataError, match="path must be a file"):
        open_dataset(str(tmp_path))


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Table 1 by one worker: the folder, and what the run returned."""
    folder = tmp_path_factory.mktemp("reference") / "table1"
    (result,) = run_all({folder: TABLES[1]}, DATASETS, METHODS, 2, PROTOCOL, jobs=1).values()
    return folder, result


class TestRun:
    def test_every_output_is_written(self, reference):
        folder, result = reference
        assert {path.name for path in folder.iterdir()} == {
            "trials.csv",
            "summary.csv",
            "table.md",
            "table.tex",
            "run.json",
            "comparison.png",
            "sets",
        }
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        assert run["protocol"] == PROTOCOL.as_dict()
        assert (run["seed"], run["table"]) == (0, 1)
        assert run["finished"] is not None
        assert set(run["files"]) == set(DATASETS)
        trials = rows(folder)
        keys = {(*cell, trial) for cell in TABLES[1].cells(DATASETS, METHODS) for trial in range(2)}
        assert set(trials[TRIAL].itertuples(index=False, name=None)) == keys
        assert len(trials) == len(keys)
        assert trials["accuracy"].between(20, 100).all()
        assert result.headline.cells == 36

    def test_any_number_of_jobs_gives_the_same_rows(self, reference, tmp_path):
        run_all({tmp_path / "out": TABLES[1]}, DATASETS, METHODS, 2, PROTOCOL, jobs=2)
        assert_same_rows(tmp_path / "out", reference[0])
        for name in ("summary.csv", "table.md", "table.tex"):
            assert (tmp_path / "out" / name).read_bytes() == (reference[0] / name).read_bytes()

    def test_other_datasets_and_methods_change_nothing(self, reference, tmp_path):
        chosen = ["Sq-Ker", "p/u uLSIF"]
        run_all({tmp_path / "out": TABLES[1]}, ["cod-rna"], chosen, 1, PROTOCOL, jobs=1)
        whole = rows(reference[0])
        part = whole[whole["method"].isin(chosen) & (whole["dataset"] == "cod-rna")]
        part = part[part["trial"] == 0].reset_index(drop=True)
        assert_same_rows(rows(tmp_path / "out"), part)

    def test_tables_together_equal_tables_alone_within_rounding(self, reference, tmp_path):
        settings = {tmp_path / f"table{number}": TABLES[number] for number in (1, 3, 5)}
        results = run_all(settings, DATASETS, METHODS, 2, PROTOCOL, jobs=1)
        assert [result.frame["n"].eq(2).all() for result in results.values()] == [True] * 3
        assert [len(rows(folder)) for folder in settings] == [72, 96, 72]
        together, alone = rows(tmp_path / "table1"), rows(reference[0])
        pd.testing.assert_frame_equal(together[TRIAL], alone[TRIAL])
        ratio = alone["method"].str.contains("uLSIF")
        assert_same_rows(together[ratio], alone[ratio])
        # Another stack rounds differently, and AMSGrad may make a step of it.
        difference = (together["accuracy"] - alone["accuracy"]).abs()
        assert difference.max() <= 2
        assert difference.mean() <= 0.2
        assert (together["lam"] == alone["lam"]).mean() > 0.95

    def test_a_run_is_extended_without_repeating_anything(self, reference, tmp_path, monkeypatch):
        folder = tmp_path / "out"
        run_all({folder: TABLES[1]}, ["banana"], METHODS[:2], 1, PROTOCOL, jobs=1)
        seen = []

        def watched(task, *arguments):
            seen.append(task)
            return run_task(task, *arguments)

        monkeypatch.setattr(runner, "run_task", watched)
        run_all({folder: TABLES[1]}, DATASETS, METHODS, 2, PROTOCOL, jobs=1)
        assert [task.methods for task in seen] == [METHODS[2:], METHODS, METHODS, METHODS]
        assert_same_rows(folder, reference[0])
        seen.clear()
        run_all({folder: TABLES[1]}, DATASETS, METHODS, 2, PROTOCOL, jobs=1)
        assert seen == []

    def test_a_stop_between_two_folders_is_made_good(self, tmp_path):
        settings = {tmp_path / name: TABLES[number] for name, number in (("a", 1), ("b", 3))}
        arguments = (settings, ["banana"], ["DH-Lin", "p/u uLSIF"], 1, PROTOCOL)
        run_all(*arguments, jobs=1)
        whole = {folder: rows(folder) for folder in settings}
        next((tmp_path / "b" / "sets").iterdir()).unlink()
        run_all(*arguments, jobs=1)
        for folder, before in whole.items():
            assert_same_rows(folder, before)


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"jobs": 0}, "jobs must be an integer >= 1, got 0"),
            ({"methods": ["SVM"]}, "method must be"),
            ({"cluster": "nonsense"}, "cluster nonsense cannot be reached: "),
        ],
    )
    def test_earlier_results_survive_a_fresh_run_that_cannot_start(
        self, tmp_path, changes, message
    ):
        options = {"datasets": ["banana"], "methods": ["p/u uLSIF"], "trials": 1, "jobs": 1}
        run_all({tmp_path: ONE}, protocol=PROTOCOL, **options)
        before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
        with pytest.raises(ValueError, match=message):
            run_all({tmp_path: ONE}, protocol=PROTOCOL, fresh=True, **{**options, **changes})
        assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before

    def test_other_content_of_a_file_is_another_run(self, tmp_path):
        path, out = tmp_path / "mine.csv", tmp_path / "out"

        def run(label, **options):
            open_dataset.cache_clear()
            arguments = ({out: ONE}, [str(path)], ["p/u uLSIF"], 1, PROTOCOL)
            run_all(*arguments, jobs=1, label=Label(label), **options)

        write_table(path)
        run("kind")
        run(0)  # the same column
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("0,", "1,", 1), encoding="utf-8")
        with pytest.raises(StoreError, match="holds another run: the files.mine of .* is .*--out"):
            run("kind")
        run("kind", fresh=True)
        # Other data may be added, and are recorded.
        run_all({out: ONE}, ["banana"], ["p/u uLSIF"], 1, PROTOCOL, jobs=1)
        info = json.loads((out / "run.json").read_text(encoding="utf-8"))
        assert set(info["files"]) == {"mine", "banana"}
        # A file that has the name of a known dataset is not taken for it.
        named = path.rename(tmp_path / "Banana.csv")
        with pytest.raises(ValueError, match="is named like one of the paper's: rename the file"):
            run_all({out: ONE}, [str(named)], ["p/u uLSIF"], 1, PROTOCOL, jobs=1, label=KIND)

    def test_a_fresh_run_that_fails_leaves_what_was_there(self, tmp_path):
        folders = {tmp_path / "a": ONE, tmp_path / "b": ONE}
        run_all(folders, ["banana"], ["p/u uLSIF"], 1, PROTOCOL, jobs=1)
        before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
        many = replace(PROTOCOL, n_p=100_000)
        with pytest.raises(ValueError, match="banana has .* positive rows, the draw needs"):
            run_all(folders, ["banana"], ["p/u uLSIF"], 1, many, jobs=1, fresh=True)
        assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
        run_all(folders, ["banana"], ["Sq-Lin"], 1, PROTOCOL, jobs=1, fresh=True)
        assert set(rows(tmp_path / "a")["method"]) == {"Sq-Lin"}

    def test_without_dask_a_cluster_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(ValueError, match=r"cluster needs dask: pip install '\.\["):
            run_all({tmp_path: ONE}, ["banana"], METHODS, 1, PROTOCOL, cluster="tcp://x:1")


FEW = ["p/u uLSIF", "Sq-Ker"]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Rows of Table 1 by a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    run_all({folder: TABLES[1]}, DATASETS, FEW, 3, Protocol(**SLOW), jobs=1)
    return rows(folder)


def test_a_killed_run_resumes_to_the_rows_of_an_uninterrupted_one(uninterrupted, tmp_path):
    protocol, out = tmp_path / "slow.json", tmp_path / "killed"
    protocol.write_text(json.dumps(SLOW), encoding="utf-8")
    arguments = ["--trials", 3, "--datasets", *DATASETS, "--protocol", protocol]
    arguments += ["--methods", *FEW]
    process = start(
        "table1.py", *arguments, "--jobs", 2, "--out", out, "--quiet", stderr=subprocess.PIPE
    )
    wait_for(lambda: count_sets(out) > 1, process)
    os.killpg(process.pid, signal.SIGKILL)
    said = process.communicate()[1].decode().splitlines()
    # Made-up rows are reported, see conftest.py.
    assert [line for line in said if stand_ins.FOLDER not in line] == []
    assert process.returncode == -signal.SIGKILL
    kept = rows(out)
    assert 0 < len(kept) < len(uninterrupted) == 3 * 2 * 3 * len(FEW)
    assert json.loads((out / "run.json").read_text(encoding="utf-8"))["finished"] is None
    run_all({out: TABLES[1]}, DATASETS, FEW, 3, Protocol(**SLOW), jobs=1)
    assert_same_rows(rows(out), uninterrupted)
    assert len(uninterrupted.merge(kept)) == len(kept), "a row was changed"


def test_a_dead_worker_process_is_a_one_line_error_and_the_run_resumes(tmp_path):
    def kill_a_worker(tasks, finished):
        for number, found in enumerate(finished):
            if number == 0:
                os.kill(active_children()[0].pid, signal.SIGKILL)
            yield found

    arguments = ({tmp_path: ONE}, DATASETS, ["Sq-Ker"], 3, Protocol(**SLOW))
    with pytest.raises(WorkerError, match="^workers died .*finished trials are kept, run again"):
        run_all(*arguments, jobs=2, progress=kill_a_worker)
    before = rows(tmp_path)
    assert 0 < len(before) < 6
    run_all(*arguments, jobs=1)
    assert len(rows(tmp_path)) == 6
    assert len(rows(tmp_path).merge(before)) == len(before)


def test_a_cluster_that_loses_a_worker_gives_the_rows_of_a_local_run(uninterrupted, tmp_path):
    with Cluster(tmp_path, workers=2) as cluster:

        def kill_a_worker(tasks, finished):
            assert len(tasks) == 6
            for number, found in enumerate(finished):
                if number == 1:
                    cluster.workers[0].kill()
                yield found

        run_all(
            {tmp_path / "out": TABLES[1]},
            DATASETS,
            FEW,
            3,
            Protocol(**SLOW),
            cluster=cluster.address,
            progress=kill_a_worker,
        )
        assert cluster.workers[0].wait() == -signal.SIGKILL
        assert cluster.workers[1].poll() is None
    assert_same_rows(rows(tmp_path / "out"), uninterrupted)
