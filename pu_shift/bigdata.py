"""Rows that do not fit into memory: Dask collections in, Dask collections out.

A fit is to a random sample of the rows (:func:`in_memory`). Predictions are of all rows, lazily,
partition by partition. Whatever runs on a cluster first compares the version of the package there
with the one that sent it (:func:`on_worker`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from pu_shift._checks import ArgumentError, is_dask, one_line, shown
from pu_shift._seeds import Seed, child
from pu_shift._version import __version__

# Rows, and cells, that a sample for a fit has at most.
MAX_SAMPLE_ROWS, MAX_SAMPLE_CELLS = 10**6, 5 * 10**7
# Seconds that a scheduler may take to answer, and to have a worker.
CONNECT_TIMEOUT, WORKER_TIMEOUT = 20.0, 60.0

Check = Callable[[str, Any, int, Any], int]


class ClusterError(RuntimeError):
    """The cluster's workers died, or it does not answer."""


def in_memory(samples: Mapping[str, Any], seed: Seed, check: Check | None = None) -> list[Any]:
    """Check all rows of Dask collections, and bring a random sample of each into memory.

    The sample depends on the seed and on the order of the rows, not on the partitions or on the
    number of workers. It has all rows if they are at most 10⁶, and 5·10⁷ cells.

    Parameters
    ----------
    samples
        Names and rows; what is no Dask collection is returned as it is.
    seed
        Seed of the sample.
    check
        A function of the name, the names of the columns, the number of a partition and the
        partition. It returns the number of rows, or raises an error that says what is wrong. By
        default rows must be finite numbers.

    Returns
    -------
    list
        Arrays of Dask arrays, data frames of Dask data frames.

    Examples
    --------
    >>> import dask.array as da
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> in_memory({"X": da.from_array(X, chunks=(2, 2))}, seed=0)[0].tolist()
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    """
    parts = {name: partitions(name, X) for name, X in samples.items() if is_dask(X)}
    calls = [
        (name, getattr(samples[name], "columns", None), number, part)
        for name, own in parts.items()
        for number, part in enumerate(own)
    ]
    counts = iter(compute(count_rows if check is None else check, calls))
    found = []
    for place, (name, X) in enumerate(samples.items()):
        if name in parts:
            starts = np.cumsum([0, *(next(counts) for _ in parts[name])])
            X = _sample(name, parts[name], starts, X.shape[1], child(seed, place))
        found.append(X)
    return found


def _sample(name: str, parts: Sequence[Any], starts: np.ndarray, d: int, seed: Seed) -> Any:
    """Return a random sample of rows of partitions, in their order."""
    n, most = int(starts[-1]), max(1, min(MAX_SAMPLE_ROWS, MAX_SAMPLE_CELLS // d))
    if n == 0:
        raise ArgumentError(name, "must have at least one row")
    places = np.arange(n)
    if n > most:
        places = np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
    bounds = np.searchsorted(places, starts)
    calls = [
        (part, places[low:high] - start)
        for part, low, high, start in zip(parts, bounds, bounds[1:], starts)
        if high > low
    ]
    taken = compute(_take, calls)
    if not hasattr(taken[0], "columns"):
        return np.concatenate(taken)
    import pandas as pd

    return pd.concat(taken, ignore_index=True)


def _take(part: Any, places: np.ndarray) -> Any:
    return part.iloc[places] if hasattr(part, "iloc") else np.asarray(part)[places]


def count_rows(name: str, columns: Any, number: int, part: Any) -> int:
    """Return the number of rows of a partition, if it has these columns and finite numbers."""
    if columns is not None and list(part.columns) != list(columns):
        raise ArgumentError(
            name,
            f"must have the columns {shown(list(columns))} in every partition, partition "
            f"{number} has {shown(list(part.columns))}",
        )
    try:
        rows = np.asarray(part, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(name, f"must hold numbers, partition {number} does not") from None
    wrong = ~np.isfinite(rows)
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        where = column + 1 if columns is None else shown(columns[column])
        raise ArgumentError(
            name,
            f"must not contain NaN or infinity, found {rows[row, column]} in row {row + 1} of "
            f"partition {number}, column {where}",
        )
    return len(rows)


def partitions(name: str, X: Any) -> list[Any]:
    """Return the partitions of a Dask array or data frame, each with all columns."""
    if len(X.shape) != 2:
        raise ArgumentError(name, f"must be a matrix of rows, got {shown(X)}")
    if hasattr(X, "rechunk"):
        X = X.rechunk({1: -1})
    return np.ravel(X.to_delayed()).tolist()


def compute(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return the function of each call, on the current client's cluster or by threads here."""
    import dask

    task = dask.delayed(on_worker(function), pure=False)
    with cluster_errors():
        return list(dask.compute(*(task(*call) for call in calls)))


def on_worker(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that refuses to run on a worker with another version of the package.

    It can be unpickled on a worker without the package, unlike ``function`` itself.
    """
    from cloudpickle import dumps

    packed, needed = dumps(function), __version__

    def call(*arguments: Any, **options: Any) -> Any:
        # Pickled by its code: it can use only what it imports itself.
        import pickle

        try:
            from pu_shift._version import __version__ as found
        except ImportError:
            found = ""
        if found != needed:
            from distributed import get_worker

            has = "does not have pu-shift" if not found else f"has pu-shift {found}"
            raise ValueError(f"cluster: the worker {get_worker().address} {has}, it needs {needed}")
        return pickle.loads(packed)(*arguments, **options)

    return call


def meta_of(collection: Any) -> Any:
    """Return a row like those of a Dask collection, which is not computed."""
    if hasattr(collection, "columns"):
        return collection._meta_nonempty.iloc[:1]
    return np.ones((1, collection.shape[1]), dtype=collection.dtype)


def map_rows(function: Callable[[Any], np.ndarray], X: Any, like: np.ndarray, names: Any) -> Any:
    """Apply a function to the partitions of a Dask collection, when it is computed.

    ``like`` is the function's result for no rows. That of a data frame is a series of the name,
    or a data frame with these columns, with the index of the rows.
    """
    if hasattr(X, "columns"):
        framed = partial(_framed, function, like, names)
        return X.map_partitions(on_worker(framed), meta=framed(X._meta))
    X = X.rechunk({1: -1})
    changes: dict[str, Any] = {"drop_axis": 1}
    if like.ndim == 2:
        changes = {"chunks": (X.chunks[0], (like.shape[1],))}
    call = on_worker(partial(_of_some, function, like))
    return X.map_blocks(call, dtype=like.dtype, meta=like, **changes)


def _of_some(function: Callable[[Any], np.ndarray], like: np.ndarray, part: Any) -> np.ndarray:
    return function(part) if len(part) else like


def _framed(function: Callable[[Any], np.ndarray], like: np.ndarray, names: Any, part: Any) -> Any:
    import pandas as pd

    values = _of_some(function, like, part)
    if like.ndim == 1:
        return pd.Series(values, index=part.index, name=names)
    return pd.DataFrame(values, index=part.index, columns=names)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield a client of a Dask scheduler that has a worker."""
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
        except Exception as error:  # a server that is no scheduler may cause any error
            raise ValueError(f"cluster {address} cannot be reached: {one_line(error)}") from None
        try:
            _wait_for_a_worker(client, address)
            yield client
        finally:
            client.close(timeout=2)  # do not wait for one that does not answer
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def _wait_for_a_worker(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKER_TIMEOUT)
    except TimeoutError:
        raise ValueError(
            f"the cluster {address} has had no workers for {WORKER_TIMEOUT:g} s"
        ) from None


def results(
    client: Any, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    """Yield the function of each call as they finish on a cluster, in whatever order.

    Each call has one thread of BLAS. ``ClusterError`` when the scheduler is lost, or workers die
    again and again.
    """
    from distributed import as_completed

    # Dask runs the tasks of a lost worker again elsewhere; `retries` is for
    # tasks that themselves fail, say because a worker's disk was busy.
    futures = [
        client.submit(on_worker(partial(_with_one_thread, function, *call)), retries=2, pure=False)
        for call in calls
    ]
    with cluster_errors():
        for future in as_completed(futures):
            yield future.result()


def _with_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call with BLAS on one thread, a limit that stays.

    The threads of a worker share it: the first to finish would lift it for the others.
    """
    threadpool_limits(1)
    return function(*arguments)


@contextmanager
def cluster_errors() -> Iterator[None]:
    """Turn what Dask raises for a lost cluster into an error of one line."""
    try:
        yield
    except CancelledError as error:
        raise ClusterError(f"workers died ({type(error).__name__})") from error
    except Exception as error:
        if "distributed" in sys.modules:
            from distributed import KilledWorker
            from distributed.comm import CommClosedError

            if isinstance(error, (KilledWorker, CommClosedError)):
                raise ClusterError(f"workers died ({type(error).__name__})") from error
        raise
