"""Calls on worker processes, here (joblib) or on a cluster (Dask)."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

# Seconds that a Dask scheduler may take to answer at the start, that pass between looks at a
# cluster that is at work, and that it may be without workers or without an answer.
CONNECT_TIMEOUT = 20.0
LOOK_EVERY = 5.0
PATIENCE = 300.0
_LOG = logging.getLogger(__name__)


class WorkerError(RuntimeError):
    """Workers died or do not answer; the trials that had finished are kept."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: finished trials are kept, run again to resume")


def _died(cause: BaseException) -> WorkerError:
    return WorkerError(f"workers died ({type(cause).__name__})")


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
            raise _died(error) from error


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


@contextmanager
def connected(address: str) -> Iterator[Any]:
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
        try:
            yield client
        finally:
            client.close(timeout=2)  # one that does not answer must not keep us
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def on_cluster(
    function: Callable[..., Any], tasks: Sequence[Any], shared: tuple[Any, ...], client: Any
) -> Iterator[Any]:
    """Yield the results of ``function(task, *shared)`` as they finish, in whatever order.

    ``WorkerError`` when the scheduler is lost, or has no workers or no answer for long.
    """
    from distributed import KilledWorker, wait
    from distributed.comm import CommClosedError

    # Dask runs the tasks of a lost worker again elsewhere; `retries` is for
    # tasks that themselves fail, say because a worker's disk was busy.
    arguments = [[argument] * len(tasks) for argument in (function, *shared)]
    pending = set(client.map(_with_one_thread, tasks, *arguments, retries=2, pure=False))
    well = time.monotonic()
    try:
        while pending:
            try:
                ended = wait(pending, timeout=LOOK_EVERY, return_when="FIRST_COMPLETED")
                future = next(iter(ended.done))
                # Its result is fetched by way of the scheduler, which may have frozen since.
                result = future.result(timeout=LOOK_EVERY)
            except (TimeoutError, asyncio.TimeoutError):
                trouble = _trouble(client)
                if not trouble:
                    well = time.monotonic()
                elif time.monotonic() - well > PATIENCE:
                    raise WorkerError(
                        f"the cluster {trouble} for {PATIENCE:g} s, look after its scheduler and "
                        "workers"
                    ) from None
                else:
                    _LOG.info("the cluster %s, %d training sets wait", trouble, len(pending))
                continue
            well = time.monotonic()
            pending.discard(future)
            yield result
    except (KilledWorker, CancelledError, CommClosedError) as error:
        raise _died(error) from error


def _trouble(client: Any) -> str:
    """Say what keeps a cluster from working, if anything."""
    try:
        cores = client.sync(client.scheduler.ncores, workers=None, callback_timeout=LOOK_EVERY)
    except (OSError, TimeoutError, asyncio.TimeoutError):  # CommClosedError is an OSError
        return "has not answered"
    return "" if cores else "has had no workers"


def _with_one_thread(task: Any, function: Callable[..., Any], *shared: Any) -> Any:
    # For good: the threads of a worker share the limit, and the first to finish
    # would lift it for the others.
    threadpool_limits(1)
    return function(task, *shared)
