"""Calls on worker processes, here (joblib) or on a cluster (Dask)."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any

import joblib

from pu_shift.bigdata import ClusterError, results


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
    """Ignore a terminal's signals here for a moment, and for good in what is started meanwhile.

    A terminal sends them to the workers too, and each would print its traceback.
    They inherit that they are ignored, so they are deaf from their first instruction on.
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
