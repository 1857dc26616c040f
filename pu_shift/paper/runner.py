"""Run the trials of one or several tables, in parallel, resumable.

A task is one training set, (dataset, π, trial), with every test and given
prior that the tables ask of it: nothing is trained twice. Tasks are
independent, their seeds come from their names alone, and BLAS runs on one
thread in each, so the results are the same for any number of workers.
"""

from __future__ import annotations

import hashlib
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from pu_shift import data
from pu_shift._checks import distinct, one_of, positive_int
from pu_shift.bigdata import ClusterError, connected, results
from pu_shift.data.registry import lookup
from pu_shift.data.sampling import draw
from pu_shift.device import Device, get_device
from pu_shift.paper.compare import load_paper_table
from pu_shift.paper.protocol import Protocol, chosen, fit_method, scale_features
from pu_shift.paper.settings import (
    EXTRA_METHODS,
    METHODS,
    TRIALS,
    Block,
    TableSetting,
)
from pu_shift.paper.store import TrialStore
from pu_shift.paper.tables import Comparison, write_outputs

_KNOWN = {name.lower() for name in data.NAMES}
Rows = list[dict[str, Any]]


class Label(NamedTuple):
    """Where the user's own file holds its labels, and which of them are positive.

    By default the last column of a table, of ±1 or 0/1.
    """

    column: str | int | None = None
    positive: tuple[str, ...] | None = None


@dataclass(frozen=True)
class RunOptions:
    """What to run and how, checked before any work; ``datasets`` are names, or paths of files.

    ``jobs`` are worker processes (None: one per core, or one with a GPU), ``cluster`` is the
    address of a Dask scheduler instead; ``fresh`` deletes earlier results instead of resuming.
    Where another device was asked for than the one that is used, ``gpu_asked`` is that and
    ``gpu_problem`` says in one line what is wrong with it.
    """

    datasets: Sequence[str]
    methods: Sequence[str] = METHODS
    trials: int = TRIALS
    protocol: Protocol = field(default_factory=Protocol)
    seed: int = 0
    gpu: int = -1
    jobs: int | None = None
    cluster: str | None = None
    fresh: bool = False
    label: Label | None = None
    gpu_asked: int | None = None
    gpu_problem: str = ""

    def __post_init__(self) -> None:
        get_device(self.gpu)
        positive_int("seed", self.seed, least=0)
        positive_int("trials", self.trials)
        if self.jobs is not None:
            positive_int("jobs", self.jobs)
        for method in self.methods:
            one_of("method", method, (*METHODS, *EXTRA_METHODS))
        distinct("methods", self.methods)
        # Results are kept by name: two files of one name would pass for each other.
        distinct("datasets", self.names)

    @property
    def names(self) -> list[str]:
        """The names by which results go; one of the paper's datasets need not be here."""
        return [
            lookup(dataset).name
            if dataset.lower() in _KNOWN
            else open_dataset(dataset, self.label).name
            for dataset in self.datasets
        ]

    @property
    def n_workers(self) -> int:
        """How many worker processes run here."""
        if self.jobs is not None:
            return self.jobs
        return 1 if self.gpu >= 0 else joblib.cpu_count()

    @property
    def device(self) -> dict[str, str]:
        """The device that was asked for and the one that is used, as ``run.json`` has them."""
        asked = self.gpu if self.gpu_asked is None else self.gpu_asked
        return {"asked": Device(asked).name, "used": Device(self.gpu).name}

    @property
    def identity(self) -> dict[str, Any]:
        """What the trials depend on, as ``run.json`` has it."""
        protocol = self.protocol.as_dict()
        return {"protocol": protocol, "seed": self.seed, "files": self.fingerprints()}

    def fingerprints(self) -> dict[str, str]:
        """Return digests of the data: a name does not tell what a file or an edition holds."""
        digests = {}
        for dataset in (open_dataset(name, self.label) for name in self.datasets):
            digest = hashlib.sha256(np.ascontiguousarray(dataset.X).data)
            digest.update(np.ascontiguousarray(dataset.y).data)
            digests[dataset.name] = digest.hexdigest()[:12]
        return digests


@dataclass(frozen=True)
class Task:
    """One training set and all that is asked of it."""

    dataset: str
    label: Label | None
    prior: float
    trial: int
    blocks: tuple[Block, ...]
    methods: tuple[str, ...]


@cache
def open_dataset(dataset: str, label: Label | None = None) -> data.Dataset:
    """Load a dataset by its name, or the user's own file by its path; later calls reuse it."""
    if dataset.lower() in _KNOWN:
        return data.load(dataset)
    if not Path(dataset).exists():
        raise ValueError(
            f"dataset must be a file or one of {', '.join(data.NAMES)}, got {dataset!r}"
        )
    own = data.load_file(dataset, *(label or Label()))
    if own.name.lower() in _KNOWN:
        # Results go by the name, and would be compared with the paper's.
        raise ValueError(f"dataset {dataset} is named like one of the paper's: rename the file")
    return own


def gather(datasets: Sequence[str], label: Label | None = None) -> dict[str, data.DataError]:
    """Open datasets, fetching them in parallel; return the error of each that is not available."""
    with ThreadPoolExecutor(max(1, len(datasets))) as pool:
        opened = [pool.submit(open_dataset, dataset, label) for dataset in datasets]
    problems = {}
    for dataset, future in zip(datasets, opened):
        error = future.exception()
        if isinstance(error, data.DataError):
            problems[dataset] = error
        elif error is not None:
            raise error
    return problems


def draw_set(
    dataset: data.Dataset,
    prior: float,
    test_priors: Sequence[float],
    trial: int,
    protocol: Protocol,
    seed: int,
) -> Any:
    """Draw one training set and its test sets as the protocol says."""
    sizes = (protocol.n_p, protocol.n_u, protocol.n_test)
    sample = draw(dataset, prior, test_priors, *sizes, seed, trial, protocol.counts)
    return scale_features(sample, protocol.feature_scaling)


def run_task(task: Task, protocol: Protocol, seed: int, gpu: int = -1) -> Rows:
    """Return a row of ``trials.csv``, but for ``table``, per block and method of a task.

    ``seconds`` is the time of the method on the training set, which its given priors share.
    """
    dataset = open_dataset(task.dataset, task.label)
    test_priors = sorted({block.test_prior for block in task.blocks})
    given_priors = sorted({block.given_prior for block in task.blocks})
    rows = []
    # One thread: with more, rounding would depend on the number of workers.
    with threadpool_limits(1):
        sample = draw_set(dataset, task.prior, test_priors, task.trial, protocol, seed)
        for method in task.methods:
            start = time.perf_counter()
            fitted = fit_method(protocol, method, sample, task.prior, given_priors, gpu)
            seconds = time.perf_counter() - start
            for block in task.blocks:
                classifier = fitted[block.given_prior]
                accuracy = classifier.score(*sample.tests[block.test_prior])
                rows.append(
                    {
                        **block._asdict(),
                        "dataset": dataset.name,
                        "method": method,
                        "trial": task.trial,
                        "accuracy": round(100.0 * accuracy, 6),
                        **chosen(classifier),
                        "seconds": round(seconds, 3),
                    }
                )
    return rows


def plan(
    settings: Iterable[TableSetting], options: RunOptions, done: Iterable[tuple] = ()
) -> list[Task]:
    """List the tasks that are not finished, trial by trial; ``done`` are keys of trials.

    A task with a missing trial is run again, whole, for the methods concerned: a stack of
    other candidates could differ in the last bit.
    """
    blocks: dict[float, list[Block]] = {}
    for setting in settings:
        for block in setting.blocks:
            if block not in blocks.setdefault(block.prior, []):
                blocks[block.prior].append(block)
    done, tasks = set(done), []
    for trial in range(options.trials):
        for dataset, name in zip(options.datasets, options.names):
            for prior, asked in blocks.items():
                missing = tuple(
                    method
                    for method in options.methods
                    if any((*block, name, method, trial) not in done for block in asked)
                )
                if missing:
                    tasks.append(Task(dataset, options.label, prior, trial, tuple(asked), missing))
    return tasks


def run_all(
    settings: dict[Path, TableSetting],
    options: RunOptions,
    progress: Callable[[list[Task], Iterator[Rows]], Iterator[Rows]] | None = None,
    missing: Sequence[str] = (),
    colour: bool = False,
) -> dict[Path, Comparison]:
    """Run tables, each into its own folder, and write and return their outputs.

    ``progress`` is given the tasks and the iterator over their results and returns an iterator
    over the same results. ``missing`` names the datasets that were not available, as the outputs
    say. Finished trials are kept whatever happens.
    """
    papers = {folder: load_paper_table(setting.number) for folder, setting in settings.items()}
    identity = {**options.identity, "device": options.device}
    with ExitStack() as stack:
        client = None
        if options.cluster is not None:
            client = stack.enter_context(connected(options.cluster))
        stores = {
            folder: stack.enter_context(
                TrialStore(folder, {"table": setting.number, **identity}, options.fresh)
            )
            for folder, setting in settings.items()
        }
        tasks = plan(settings.values(), options, _done(settings, stores))
        shared = (options.protocol, options.seed, options.gpu)
        results: Iterator[Rows]
        if client is None:
            calls = [joblib.delayed(run_task)(task, *shared) for task in tasks]
            # Closed in any case: an interrupt must not leave workers busy.
            results = stack.enter_context(closing(in_parallel(calls, options.n_workers)))
        else:
            results = on_cluster(run_task, tasks, shared, client)
        for rows in results if progress is None else progress(tasks, results):
            for folder, setting in settings.items():
                stores[folder].append(
                    {"table": setting.number, **row}
                    for row in rows
                    if Block(*(row[name] for name in Block._fields)) in setting.blocks
                )
        return {
            folder: write_outputs(
                folder, store.frame(), settings[folder], papers[folder], colour, missing
            )
            for folder, store in stores.items()
        }


def _done(settings: dict[Path, TableSetting], stores: dict[Path, TrialStore]) -> set[tuple]:
    """Return the trials that every table that wants them has."""
    done = {folder: store.done() for folder, store in stores.items()}
    return {
        key
        for key in set().union(*done.values())
        if all(
            key in done[folder]
            for folder, setting in settings.items()
            if Block(*key[: len(Block._fields)]) in setting.blocks
        )
    }


class WorkerError(RuntimeError):
    """Workers died or do not answer; the trials that had finished are kept."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: finished trials are kept, run again to resume")


def in_parallel(calls: Sequence[tuple], jobs: int) -> Generator[Any, None, None]:
    """Yield the results of ``joblib.delayed`` calls as they finish, in whatever order.

    With one job they run here. ``WorkerError`` when a worker died.
    """
    if jobs == 1 or len(calls) <= 1:
        for function, arguments, options in calls:
            yield function(*arguments, **options)
        return
    with warnings.catch_warnings():
        # joblib warns of the tasks that an interrupt cancels.
        warnings.filterwarnings("ignore", category=UserWarning, module="joblib")
        workers = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        try:
            with _terminal_ignored():
                results = workers(calls)  # starts the workers
            yield from results
        except BrokenExecutor as error:
            raise WorkerError(f"workers died ({type(error).__name__})") from error


@contextmanager
def _terminal_ignored() -> Iterator[None]:
    """Ignore the signals of a terminal while worker processes start, which then ignore them too.

    A terminal sends Ctrl-C to the workers as well, and each would print its traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python sets handlers in the main thread only
        return
    numbers = (signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def on_cluster(
    function: Callable[..., Any], tasks: Sequence[Any], shared: tuple[Any, ...], client: Any
) -> Iterator[Any]:
    """Yield the results of ``function(task, *shared)`` as they finish, in whatever order.

    ``WorkerError`` when the scheduler is lost, or workers die again and again.
    """
    try:
        yield from results(client, function, [(task, *shared) for task in tasks])
    except ClusterError as error:
        raise WorkerError(str(error)) from error
