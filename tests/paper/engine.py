"""Small runs of the experiment engine for its tests."""

import contextlib
import itertools
import json
import os
import signal
import time
import warnings

import numpy as np
import pandas as pd

from pu_shift.paper.protocol import Protocol
from pu_shift.paper.settings import TRIAL
from pu_shift.paper.store import read_trials
from tests import children
from tests.children import ROOT

DATASETS = ["banana", "cod-rna"]
# Every part of the protocol at work, each small.
FAST = {
    "n_p": 100,
    "n_u": 300,
    "n_test": 100,
    "n_folds": 3,
    "n_centers": 30,
    "ker_centers": 30,
    "width_factors": [0.5, 1.0],
    "ratio_lams": [0.1, 1.0],
    "learning_rate": 1e-2,
    "n_batches": 2,
    "n_steps": 20,
    "risk_lams": [0.0, 0.1],
}
# The same with more steps, so that a run lasts long enough to be stopped in its middle.
SLOW = {**FAST, "n_steps": 150}
PROTOCOL = Protocol(**FAST)


def rows(folder):
    """Return the trials of a folder in a fixed order, without the times."""
    trials = read_trials(folder).drop(columns="seconds")
    return trials.sort_values(TRIAL, ignore_index=True)


def assert_same_rows(first, second):
    """Check that two folders hold the same trials, to the last digit."""
    first, second = (
        data if isinstance(data, pd.DataFrame) else rows(data) for data in (first, second)
    )
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def start(script, *arguments, **options):
    """Start a script of experiments/ in a session of its own."""
    path = ROOT / "experiments" / script
    return children.start(path, *arguments, start_new_session=True, **options)


def wait_for(condition, process=None, seconds=120):
    """Wait until a condition holds; fail when the process ends or time runs out."""
    deadline = time.monotonic() + seconds
    while not condition():
        if process is not None and process.poll() is not None:
            raise AssertionError(f"the process ended with {process.returncode}")
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        time.sleep(0.02)


def count_sets(folder):
    """Return the number of finished training sets of a folder that may not exist yet."""
    return len(list((folder / "sets").glob("*.json")))


def write_table(path, header="kind,first,second\n", label=0):
    """Write a table of two classes that overlap; the label is its first or its last column."""
    rng = np.random.default_rng(0)
    kinds = rng.permutation(np.repeat([0, 1], 400))
    values = rng.normal(kinds[:, None] * [2.0, 1.0], 1.0)
    lines = []
    for kind, (first, second) in zip(kinds, values):
        cells = [f"{first:.3f}", f"{second:.3f}"]
        cells.insert(label if label == 0 else 2, str(kind))
        lines.append(",".join(cells) + "\n")
    path.write_text(header + "".join(lines), encoding="utf-8")
    return path


class Cluster:
    """A Dask scheduler and workers of two threads, each a process on the loopback address."""

    def __init__(self, folder, workers):
        self.folder, self.processes = folder, []
        file = folder / "scheduler.json"
        self.scheduler = self.start("dask_scheduler", "--port", 0, "--scheduler-file", file)
        wait_for(lambda: file.exists() and file.read_text(encoding="utf-8"), self.scheduler)
        self.address = json.loads(file.read_text(encoding="utf-8"))["address"]
        self.workers = []
        for _ in range(workers):
            self.add_worker()

    def add_worker(self, path=()):
        options = ("--nthreads", 2, "--no-nanny", "--memory-limit", 0)
        self.workers.append(self.start("dask_worker", self.address, *options, path=path))

    def start(self, module, *arguments, path=()):
        with open(self.folder / "log.txt", "ab") as log:
            process = children.start(
                *("-m", f"distributed.cli.{module}", *arguments),
                *("--host", "127.0.0.1", "--no-dashboard"),
                path=path,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


def killed_at(step, run, *arguments, **options):
    """Call a function in a copy of this process that kills itself before a step on the disk.

    Returns whether it came so far; an error of the function is an error here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks in processes with threads
        child = os.fork()
    if child == 0:
        steps = itertools.count(1)

        def deadly(function):
            def call(*arguments, **options):
                if next(steps) == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **options)

            return call

        for name in ("fsync", "replace", "mkdir", "unlink"):
            setattr(os, name, deadly(getattr(os, name)))
        status = 1
        with contextlib.suppress(BaseException):
            status = run(*arguments, **options) or 0
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"status {status} instead of a kill at step {step}"
    return status != 0
