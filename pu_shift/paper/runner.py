"""Run the trials of one or several tables, in parallel, resumable.

A task is one training set, (dataset, π, trial), with every test and given
prior that the tables ask of it: nothing is trained twice. Tasks are
independent, their seeds come from their names alone, and BLAS runs on one
thread in each, so the results are the same for any number of workers.
"""

from __future__ import annotations

import hashlib
import logging
import signal
import threading
import time
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from pu_shift import data
from pu_shift._checks import distinct, one_of, positive_int
from pu_shift.data.registry import lookup
from pu_shift.data.sampling import draw
from pu_shift.device import get_device
from pu_shift.paper.compare import load_paper_table
from pu_shift.paper.methods import chosen, fit_method, scale_features
from pu_shift.paper.outputs import Comparison, write_outputs
from pu_shift.paper.protocol import Protocol
from pu_shift.paper.settings import EXTRA_METHODS, METHODS, Block, TableSetting
from pu_shift.paper.store import TrialStore

_KNOWN = {name.lower() for name in data.NAMES}
# How long a Dask scheduler may take to answer, in seconds.
CONNECT_TIMEOUT = 20


class WorkerError(RuntimeError):
    """Workers died; the trials that had finished are kept."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(
            f"workers died ({type(cause).__name__}): finished trials are kept, run again to resume"
        )


@dataclass(frozen=True)
class Task:
    """One training set and all that is asked of it.

    Attributes
    ----------
    dataset : str
        A dataset's name, or the path of a file of one's own.
    label : Label, str, int or None
        The labels of such a file, see :func:`open_dataset`.
    prior : float
        π of the unlabelled rows.
    trial : int
        The trial's number.
    blocks : tuple of Block
        Test and given priors.
    methods : tuple of str
        Which methods.
    """

    dataset: str
    label: Label | str | int | None
    prior: float
    trial: int
    blocks: tuple[Block, ...]
    methods: tuple[str, ...]


class Label(NamedTuple):
    """Where a file of one's own holds its labels, and which of them are positive.

    Attributes
    ----------
    column : str, int or None
        The label column of a table; by default the last.
    positive : tuple of str or None
        What becomes +1; everything else becomes −1. Not needed when the labels
        are ±1 or 0/1.
    """

    column: str | int | None = None
    positive: tuple[str, ...] | None = None


@cache
def open_dataset(dataset: str, label: Label | str | int | None = None) -> data.Dataset:
    """Load a dataset by name, or a file of one's own by its path.

    Parameters
    ----------
    dataset
        One of :data:`pu_shift.data.NAMES`, or a path.
    label
        The label column of a file: its name or its position; or a
        :class:`Label`, which also says which labels are positive.

    Returns
    -------
    Dataset
        The data; kept for the next call.

    Examples
    --------
    >>> open_dataset("no-such-set")
    Traceback (most recent call last):
    ...
    ValueError: dataset must be a file or one of banana, ijcnn1, MNIST, ..., got 'no-such-set'
    """
    if dataset.lower() in _KNOWN:
        return data.load(dataset)
    if not Path(dataset).exists():
        raise ValueError(
            f"dataset must be a file or one of {', '.join(data.NAMES)}, got {dataset!r}"
        )
    own = data.load_file(dataset, *(label if isinstance(label, Label) else Label(label)))
    if own.name.lower() in _KNOWN:
        # Results go by the name, and would be compared with the paper's.
        raise ValueError(f"dataset {dataset} is named like one of the paper's: rename the file")
    return own


def name_of(dataset: str, label: Label | str | int | None = None) -> str:
    """Return the name by which results go; one of the paper's datasets need not be here.

    Parameters
    ----------
    dataset, label
        As for :func:`open_dataset`.

    Returns
    -------
    str
        The name.

    Examples
    --------
    >>> name_of("mnist")
    'MNIST'
    """
    known = dataset.lower() in _KNOWN
    return lookup(dataset).name if known else open_dataset(dataset, label).name


def gather(
    datasets: Sequence[str], label: Label | str | int | None = None
) -> dict[str, data.DataError]:
    """Open datasets, together, so that those to be fetched are fetched at the same time.

    Parameters
    ----------
    datasets, label
        As for :func:`plan`.

    Returns
    -------
    dict
        Dataset to the reason, for each that cannot be had.

    Examples
    --------
    >>> gather(["banana"])
    {}
    """
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


def run_task(task: Task, protocol: Protocol, seed: int, gpu: int = -1) -> list[dict[str, Any]]:
    """Compute every accuracy that a task asks for.

    Parameters
    ----------
    task
        The task.
    protocol
        The protocol.
    seed
        The run's seed.
    gpu
        The CUDA device, or −1 for the CPU.

    Returns
    -------
    list of dict
        One row per block and method, with the columns of ``trials.csv`` except
        ``table``. ``seconds`` is the time of the method on the training set,
        which its given priors share.

    Examples
    --------
    >>> task = Task("banana", None, 0.3, 0, (Block(0.3, 0.5, 0.5),), ("p/u uLSIF",))
    >>> rows = run_task(task, Protocol(), seed=0)
    >>> rows[0]["dataset"], rows[0]["accuracy"] > 80
    ('banana', True)
    """
    dataset = open_dataset(task.dataset, task.label)
    test_priors = sorted({block.test_prior for block in task.blocks})
    given_priors = sorted({block.given_prior for block in task.blocks})
    # One thread: more would change the rounding with the number of workers.
    with threadpool_limits(1):
        sample = draw(
            dataset,
            task.prior,
            test_priors,
            protocol.n_p,
            protocol.n_u,
            protocol.n_test,
            seed,
            task.trial,
            protocol.counts,
        )
        sample = scale_features(sample, protocol.feature_scaling)
        rows = []
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
    settings: Iterable[TableSetting],
    datasets: Sequence[str],
    methods: Sequence[str],
    n_trials: int,
    done: Iterable[tuple] = (),
    label: Label | str | int | None = None,
) -> list[Task]:
    """List the tasks that are not finished, trial by trial.

    A task of which anything is missing is run whole for the methods that miss
    it: a stack of other candidates could differ in the last bit.

    Parameters
    ----------
    settings
        The tables.
    datasets, methods
        What to cover.
    n_trials
        Number of trials.
    done
        (prior, test_prior, given_prior, dataset, method, trial) of what is
        finished.
    label
        The labels of files of one's own, see :func:`open_dataset`.

    Returns
    -------
    list of Task
        What remains.

    Examples
    --------
    >>> from pu_shift.paper.settings import TABLES
    >>> len(plan([TABLES[1], TABLES[3]], ["banana"], ["p/u uLSIF"], n_trials=2))
    8
    """
    positive_int("trials", n_trials)
    for method in methods:
        one_of("method", method, (*METHODS, *EXTRA_METHODS))
    distinct("methods", methods)
    # Results are kept by name: two files of one name would pass for each other.
    distinct("datasets", [name_of(dataset, label) for dataset in datasets])
    blocks: dict[float, list[Block]] = {}
    for setting in settings:
        for block in setting.blocks:
            if block not in blocks.setdefault(block.prior, []):
                blocks[block.prior].append(block)
    done, tasks = set(done), []
    for trial in range(n_trials):
        for dataset in datasets:
            name = name_of(dataset, label)
            for prior, asked in blocks.items():
                missing = tuple(
                    method
                    for method in methods
                    if any((*block, name, method, trial) not in done for block in asked)
                )
                if missing:
                    tasks.append(Task(dataset, label, prior, trial, tuple(asked), missing))
    return tasks


def fingerprints(datasets: Sequence[str], label: Label | str | int | None = None) -> dict[str, str]:
    """Return digests of the data: a name does not tell what a file or an edition holds.

    Parameters
    ----------
    datasets
        Names and paths.
    label
        The label column of the files.

    Returns
    -------
    dict
        Name to digest.

    Examples
    --------
    >>> list(fingerprints(["banana"]))
    ['banana']
    """
    digests = {}
    for dataset in (open_dataset(name, label) for name in datasets):
        digest = hashlib.sha256(np.ascontiguousarray(dataset.X).data)
        digest.update(np.ascontiguousarray(dataset.y).data)
        digests[dataset.name] = digest.hexdigest()[:12]
    return digests


def run_all(
    settings: dict[Path, TableSetting],
    datasets: Sequence[str],
    methods: Sequence[str] = METHODS,
    n_trials: int = 10,
    protocol: Protocol | None = None,
    seed: int = 0,
    gpu: int = -1,
    jobs: int | None = None,
    cluster: str | None = None,
    fresh: bool = False,
    label: Label | str | int | None = None,
    colour: bool = False,
    progress: Any = None,
    missing: Sequence[str] = (),
) -> dict[Path, Comparison]:
    """Run tables, each into its own folder, and write their outputs.

    Parameters
    ----------
    settings
        Folder to table.
    datasets, methods, n_trials, protocol, seed, gpu, label
        What to run, see :func:`run_task` and :func:`plan`.
    jobs
        Worker processes; by default one per core, or one with a GPU.
    cluster
        Address of a Dask scheduler that runs the tasks instead.
    fresh
        Delete earlier results of the folders instead of resuming them.
    colour
        Whether the comparisons' texts carry ANSI colours.
    progress
        Called with the list of tasks and the iterator over their results, and
        returns an iterator over the same results: a progress display.
    missing
        Datasets of the tables that were not available; the outputs say so.

    Returns
    -------
    dict
        Folder to :class:`pu_shift.paper.outputs.Comparison`.

    Raises
    ------
    ValueError
        When an argument, the data or a folder cannot be used.
    DeviceError
        When the GPU cannot be used.
    WorkerError
        When workers died.

    Examples
    --------
    >>> import tempfile
    >>> setting = TableSetting.shift(0, 0.3, 0.5, [0.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = run_all({Path(folder): setting}, ["banana"], ["p/u uLSIF"], 2, jobs=1)
    >>> int(result[Path(folder)].frame["n"].iloc[0])
    2
    """
    protocol = Protocol() if protocol is None else protocol
    # What can fail fails before the work.
    positive_int("seed", seed, least=0)
    get_device(gpu)
    if jobs is None:
        jobs = 1 if gpu >= 0 else joblib.cpu_count()
    positive_int("jobs", jobs)
    plan(settings.values(), datasets, methods, n_trials, label=label)
    papers = {folder: load_paper_table(setting.number) for folder, setting in settings.items()}
    identity = {
        "protocol": protocol.as_dict(),
        "seed": seed,
        "files": fingerprints(datasets, label),
    }
    with ExitStack() as stack:
        client = None if cluster is None else stack.enter_context(_connect(cluster))
        stores = {
            folder: stack.enter_context(
                TrialStore(folder, {"table": setting.number, **identity}, fresh)
            )
            for folder, setting in settings.items()
        }
        tasks = plan(settings.values(), datasets, methods, n_trials, _done(settings, stores), label)
        finished = _execute(tasks, (protocol, seed, gpu), jobs, client)
        stack.callback(finished.close)  # an interrupt must not leave workers busy
        for rows in finished if progress is None else progress(tasks, finished):
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
    finished = {folder: store.done() for folder, store in stores.items()}
    return {
        key
        for key in set().union(*finished.values())
        if all(
            key in finished[folder]
            for folder, setting in settings.items()
            if Block(*key[: len(Block._fields)]) in setting.blocks
        )
    }


def _execute(
    tasks: list[Task], arguments: tuple[Any, ...], jobs: int, client: Any = None
) -> Generator[list[dict[str, Any]], None, None]:
    """Yield the rows of each task as it finishes, in whatever order."""
    if client is not None:
        yield from _on_cluster(tasks, arguments, client)
    else:
        yield from in_parallel([joblib.delayed(run_task)(task, *arguments) for task in tasks], jobs)


def in_parallel(calls: Sequence[tuple], jobs: int) -> Generator[Any, None, None]:
    """Yield the results of calls as they finish, in whatever order.

    Parameters
    ----------
    calls
        Made by ``joblib.delayed``.
    jobs
        Worker processes; with one the calls run here.

    Yields
    ------
    object
        What a call returned.

    Raises
    ------
    WorkerError
        When a worker died.

    Examples
    --------
    >>> list(in_parallel([joblib.delayed(abs)(-1), joblib.delayed(abs)(-2)], jobs=1))
    [1, 2]
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
            with _interrupt_ignored():
                results = workers(calls)  # starts the workers
            yield from results
        except BrokenExecutor as error:
            raise WorkerError(error) from error


@contextmanager
def _interrupt_ignored() -> Iterator[None]:
    """Ignore Ctrl-C here for a moment, and for good in the processes started meanwhile.

    A terminal interrupts the workers too, and each would print its traceback.
    They inherit that it is ignored, so they are deaf from their first instruction on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python sets handlers in the main thread only
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _connect(address: str) -> Iterator[Any]:
    """Yield a client of a Dask scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("cluster needs dask: pip install 'pu-shift[cluster]'") from None
    # A lost scheduler is our error to report, in one line; Dask logs its tracebacks.
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        try:
            client = Client(address, timeout=CONNECT_TIMEOUT)
        except Exception as error:  # anything may come from a server that is no scheduler
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ValueError(f"cluster {address} cannot be reached: {reason}") from None
        with client:
            yield client
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def _on_cluster(
    tasks: list[Task], arguments: tuple[Any, ...], client: Any
) -> Iterator[list[dict[str, Any]]]:
    from distributed import KilledWorker, as_completed
    from distributed.comm import CommClosedError

    # Dask runs the tasks of a lost worker again elsewhere; `retries` is for
    # tasks that themselves fail, say because a worker's disk was busy.
    shared = [[argument] * len(tasks) for argument in arguments]
    futures = client.map(_run_on_worker, tasks, *shared, retries=2, pure=False)
    try:
        for future in as_completed(futures):
            yield future.result()
    except (KilledWorker, CancelledError, CommClosedError) as error:
        raise WorkerError(error) from error


def _run_on_worker(*arguments: Any) -> list[dict[str, Any]]:
    # For good: the threads of a worker share the limit, and the first to finish
    # would lift it for the others.
    threadpool_limits(1)
    return run_task(*arguments)
