"""A Dask cluster: getting hold of it, and of its results, without waiting for ever."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

from pu_shift._checks import one_line
from pu_shift._version import __version__

# Seconds that a Dask scheduler may take to answer at the start, that pass between looks for
# results and, without any, at the cluster, and that it may be without workers or an answer.
CONNECT_TIMEOUT = 20.0
POLL_EVERY = 0.02
LOOK_EVERY = 5.0
PATIENCE = 300.0
_LOG = logging.getLogger(__name__)


class ClusterError(RuntimeError):
    """The cluster's workers died, or it does not answer."""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield a client of a Dask scheduler, all of whose workers have this package."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("cluster needs dask: pip install '.[cluster]' in a clone") from None
    # A lost scheduler is our error to report, in one line; Dask logs its tracebacks.
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        try:
            client = Client(address, timeout=CONNECT_TIMEOUT)
        except Exception as error:  # anything may come from a server that is no scheduler
            raise ValueError(f"cluster {address} cannot be reached: {one_line(error)}") from None
        try:
            yield client
        finally:
            client.close(timeout=2)  # one that does not answer must not keep us
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def current_client() -> Any:
    """Return the Dask client in whose sphere the caller is, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def check_workers(client: Any) -> None:
    """Refuse workers that do not have this package, or have it in another version."""

    def version() -> str | None:
        # Local, so that it travels by its code: a worker may have nothing to import it from.
        try:
            from pu_shift._version import __version__ as found
        except ImportError:
            return None
        return found

    for address, found in client.run(version, on_error="ignore").items():
        if found != __version__:
            has = "does not have pu-shift" if found is None else f"has pu-shift {found}"
            raise ValueError(f"cluster: the worker {address} {has}, it needs {__version__}")


def finished(client: Any, futures: Collection[Any], what: str = "tasks") -> Iterator[Any]:
    """Yield the results of futures as they finish, in whatever order.

    ``ClusterError`` when the scheduler is lost, or has no workers or no answer for long.
    """
    from distributed import KilledWorker, as_completed
    from distributed.comm import CommClosedError

    # To wait for all of very many, one after the other, would take the square of their number.
    ready = as_completed(futures, loop=client.loop, with_results=True)
    looked = well = time.monotonic()
    try:
        while not ready.is_empty():
            if ready.has_ready():
                _, result = next(ready)
                if isinstance(result, CancelledError):
                    raise result
                yield result
                looked = well = time.monotonic()
            elif time.monotonic() - looked < LOOK_EVERY:
                time.sleep(POLL_EVERY)
            else:
                trouble, looked = _trouble(client), time.monotonic()
                if not trouble:
                    well = looked
                elif looked - well > PATIENCE:
                    raise ClusterError(
                        f"the cluster {trouble} for {PATIENCE:g} s, look after its scheduler and "
                        "workers"
                    )
                else:
                    _LOG.info("the cluster %s, %d %s wait", trouble, ready.count(), what)
    except (KilledWorker, CancelledError, CommClosedError) as error:
        raise ClusterError(f"workers died ({type(error).__name__})") from error


def with_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call with BLAS on one thread, in this process for good.

    The threads of a worker share the limit, and the first to finish would lift it for the others.
    """
    threadpool_limits(1)
    return function(*arguments)


def _trouble(client: Any) -> str:
    """Say what keeps a cluster from working, if anything."""
    try:
        cores = client.sync(client.scheduler.ncores, workers=None, callback_timeout=LOOK_EVERY)
    except (OSError, TimeoutError, asyncio.TimeoutError):  # CommClosedError is an OSError
        return "has not answered"
    return "" if cores else "has had no workers"
