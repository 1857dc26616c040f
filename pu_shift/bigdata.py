"""Rows that come in blocks: of a stream, of a Dask collection, of files that no memory holds.

All that a density ratio needs of a sample are sums over its rows, and a few rows by their
number. :class:`RowBlocks` gives both, wherever the rows are: it reads one block at a time here,
or lets Dask do it where the blocks are. Sums are merged in the order of the blocks, so that
they are the same for any number of workers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from pu_shift._checks import shown
from pu_shift._cluster import check_workers, current_client, finished
from pu_shift._seeds import child

# How many partial sums are merged by one task of a cluster.
MERGED_AT_ONCE = 8

Merge = Callable[[Any, Any], Any]


class Survey(NamedTuple):
    """What a first look at rows tells: how many there are in each part, and of each column.

    ``squares`` are the sums of squared distances from the mean.
    """

    counts: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    squares: np.ndarray

    @property
    def scale(self) -> np.ndarray:
        """Standard deviation of each column; 1 for one that is constant."""
        scale = np.sqrt(self.squares / sum(self.counts))
        return np.where(self.high > self.low, np.where(scale > 0.0, scale, 1.0), 1.0)

    @classmethod
    def of(cls, rows: np.ndarray) -> Survey:
        """Look at some rows, at least one."""
        mean = rows.mean(axis=0, dtype=np.float64)
        squares = np.square(rows - mean).sum(axis=0)
        return cls((len(rows),), rows.min(axis=0), rows.max(axis=0), mean, squares)

    def merged(self, other: Survey) -> Survey:
        """Join with the survey of the rows that follow."""
        n, m = sum(self.counts), sum(other.counts)
        if n == 0 or m == 0:
            seen = other if n == 0 else self
            return seen._replace(counts=self.counts + other.counts)
        apart = other.mean - self.mean
        return Survey(
            self.counts + other.counts,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.mean + apart * (m / (n + m)),
            self.squares + other.squares + apart**2 * (n * m / (n + m)),
        )


@dataclass(frozen=True)
class _Reader:
    """Makes a matrix of a block, scaled if that is asked for, and says what is wrong with it."""

    name: str
    columns: tuple[Any, ...] | None
    width: int
    dtype: np.dtype
    mean: np.ndarray | None = None
    scale: np.ndarray | None = None

    def __call__(self, block: Any, number: int) -> np.ndarray:
        names = column_names(block)
        if self.columns is not None and names is not None and names != self.columns:
            raise ValueError(
                f"{self.name} must have the columns {shown(list(self.columns))} in every block, "
                f"block {number} has {shown(list(names))}"
            )
        try:
            rows = np.asarray(block, dtype=self.dtype)
        except (TypeError, ValueError):
            raise ValueError(f"{self.name} must hold numbers, block {number} does not") from None
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise ValueError(
                f"{self.name} must have {self.width} columns in every block, block {number} has "
                f"the shape {rows.shape}"
            )
        wrong = ~np.isfinite(rows)
        if wrong.any():
            row, column = np.argwhere(wrong)[0].tolist()
            where = column + 1 if self.columns is None else shown(self.columns[column])
            raise ValueError(
                f"{self.name} must not contain NaN or infinity, found {rows[row, column]} in row "
                f"{row + 1} of block {number}, column {where}"
            )
        if self.mean is not None:
            rows = ((rows - self.mean) / self.scale).astype(self.dtype, copy=False)
        return rows


class RowBlocks:
    """Rows that come in blocks, for :meth:`pu_shift.DensityRatioClassifier.fit_pu`.

    Rows are read anew whenever they are needed, a few times in a fit, and one block is in memory
    at a time. Dask arrays and data frames need not be wrapped.

    Parameters
    ----------
    blocks
        A function without arguments that returns an iterator over blocks, the same ones each
        time; or a sequence of blocks. A block is an (n, d) array or a data frame.
    name
        What messages call the rows.

    Attributes
    ----------
    shape : tuple
        Numbers of rows and columns.
    dtype : numpy.dtype
        float32 if the first block is, else float64.
    columns : tuple or None
        Names of the columns, where blocks are data frames.

    Examples
    --------
    >>> blocks = RowBlocks(lambda: (np.full((2, 3), float(k)) for k in range(4)))
    >>> blocks.shape, blocks.take(np.array([7, 0])).tolist()
    ((8, 3), [[3.0, 3.0, 3.0], [0.0, 0.0, 0.0]])
    >>> float(blocks.reduce(lambda rows, start: rows.sum()))
    36.0
    """

    ndim = 2

    def __init__(
        self, blocks: Callable[[], Iterable[Any]] | Sequence[Any], name: str = "X"
    ) -> None:
        parts = [blocks if callable(blocks) else partial(iter, blocks)]
        stream = iter(parts[0]())
        first = next(stream, None)
        if hasattr(stream, "close"):
            stream.close()  # a file may be behind it
        if first is None:
            raise ValueError(f"{name} must have at least one block of rows")
        self._set(parts, _reader(name, first))

    def _set(self, parts: Sequence[Any], reader: _Reader, remote: bool = False) -> None:
        self._parts, self._reader, self._remote = parts, reader, remote
        # Something like tqdm, to show how many parts are done.
        self.progress: Callable[..., Any] = _NoBar

    @classmethod
    def of_parts(cls, parts: Sequence[Any], name: str, width: int, remote: bool) -> RowBlocks:
        """Make blocks of float64 out of functions that each return an iterator over some."""
        self = cls.__new__(cls)
        self._set(parts, _Reader(name, None, width, np.dtype(np.float64)), remote)
        return self

    @classmethod
    def of_dask(cls, collection: Any, name: str = "X") -> RowBlocks:
        """Make blocks of the partitions of a Dask array or data frame."""
        if len(collection.shape) != 2:
            raise ValueError(f"{name} must be a matrix of rows, got {shown(collection)}")
        self = cls.__new__(cls)
        example = meta_of(collection)
        if hasattr(collection, "rechunk"):
            collection = collection.rechunk({1: -1})
        self._set(np.ravel(collection.to_delayed()).tolist(), _reader(name, example), remote=True)
        return self

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers."""
        return self._reader.dtype

    @property
    def columns(self) -> tuple[Any, ...] | None:
        """Names of the columns, if they have any."""
        return self._reader.columns

    @property
    def example(self) -> Any:
        """A row of ones, in a data frame if the blocks are some."""
        row = np.ones((1, self._reader.width), self.dtype)
        if self.columns is None:
            return row
        import pandas as pd

        return pd.DataFrame(row, columns=list(self.columns))

    @cached_property
    def survey(self) -> Survey:
        """A first look at all rows, which are checked by it."""
        jobs = [(number, 0) for number in range(len(self._parts))]
        found = self._run(partial(_survey_part, self._reader), Survey.merged, jobs)
        if sum(found.counts) == 0:
            raise ValueError(f"{self._reader.name} must have at least one row")
        return found

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return sum(self.survey.counts), self._reader.width

    def astype(self, dtype: Any, copy: bool = True) -> RowBlocks:
        """Return the rows in another type; like an array's."""
        return self if self.dtype == dtype else self._changed(dtype=np.dtype(dtype))

    def scaled(self, mean: np.ndarray, scale: np.ndarray) -> RowBlocks:
        """Return (x − mean)/scale of the rows."""
        before = self._reader
        whole = mean, scale
        if before.mean is not None and before.scale is not None:
            whole = before.mean + before.scale * mean, before.scale * scale
        changed = self._changed(mean=whole[0], scale=whole[1])
        seen = self.survey
        low, high, middle = ((value - mean) / scale for value in (seen.low, seen.high, seen.mean))
        changed.survey = Survey(seen.counts, low, high, middle, seen.squares / scale**2)
        return changed

    def _changed(self, **changes: Any) -> RowBlocks:
        changed = copy.copy(self)
        changed._reader = replace(self._reader, **changes)
        return changed

    def reduce(self, function: Callable[[np.ndarray, int], Any], merge: Merge = add) -> Any:
        """Merge what a function gives for each block and the number of its first row.

        Parameters
        ----------
        function
            Called with an (n, d) matrix and the number of rows before it.
        merge
            Joins two results, of which the first is that of earlier rows.

        Returns
        -------
        Any
            The result for all rows.
        """
        jobs = list(enumerate(self._starts[:-1]))
        return self._run(partial(_reduce_part, self._reader, function, merge), merge, jobs)

    @property
    def _starts(self) -> list[int]:
        """How many rows come before each part, and how many there are."""
        return np.cumsum([0, *self.survey.counts]).tolist()

    def take(self, places: np.ndarray) -> np.ndarray:
        """Return rows by their numbers, from those parts alone that have some of them.

        Parameters
        ----------
        places
            (k,) row numbers, each at most once, in any order.

        Returns
        -------
        numpy.ndarray
            (k, d) rows, in that order.
        """
        places, order = np.asarray(places), np.argsort(places)
        if len(places) == 0:
            return np.empty((0, self._reader.width), self.dtype)
        starts = self._starts
        wanted = np.diff(np.searchsorted(places[order], starts))
        jobs = [(number, starts[number]) for number in np.flatnonzero(wanted).tolist()]
        task = partial(_reduce_part, self._reader, partial(_rows_at, places[order]), add)
        found = np.concatenate(self._run(task, add, jobs))
        rows = np.empty_like(found)
        rows[order] = found
        return rows

    def __iter__(self) -> Iterator[np.ndarray]:
        for number, part in enumerate(self._parts):
            blocks = [_computed(part)] if hasattr(part, "dask") else part()
            for block in blocks:
                yield self._reader(block, number)

    def _run(
        self, task: Callable[[Any, int, int], Any], merge: Merge, jobs: Sequence[tuple[int, int]]
    ) -> Any:
        """Merge what a task gives for parts, with their numbers and those of their first rows."""
        with self.progress(total=len(jobs)) as bar:
            if self._remote:
                return _by_dask(task, merge, [(self._parts[job[0]], *job) for job in jobs], bar)
            total = None
            for number, start in jobs:
                value = task(self._parts[number], number, start)
                total = value if total is None else merge(total, value)
                bar.update()
            return total


# Rows of a sample, and cells of it, that a fit is to at most.
MAX_SAMPLE_ROWS, MAX_SAMPLE_CELLS = 10**6, 5 * 10**7


def is_lazy(X: Any) -> bool:
    """Tell whether rows come in blocks."""
    return is_dask(X) or isinstance(X, RowBlocks)


def in_memory(samples: dict[str, Any], seed: Any) -> list[Any]:
    """Return rows in memory: of each sample all, or a random sample."""
    found = []
    for part, (name, X) in enumerate(samples.items()):
        blocks = as_blocks(name, X)
        if isinstance(blocks, RowBlocks):
            n, d = blocks.shape
            most = min(MAX_SAMPLE_ROWS, max(1, MAX_SAMPLE_CELLS // d))
            places = np.arange(n)
            if n > most:
                rng = np.random.default_rng(child(seed, part))
                places = np.sort(rng.choice(n, most, replace=False))
            X = blocks.take(places)
            if blocks.columns is not None:
                import pandas as pd

                X = pd.DataFrame(X, columns=list(blocks.columns))
        found.append(X)
    return found


def as_blocks(name: str, X: Any) -> Any:
    """Return rows that come in blocks as such, and anything else as it is."""
    if isinstance(X, RowBlocks):
        return X._changed(name=name)
    return RowBlocks.of_dask(X, name) if is_dask(X) else X


def in_blocks(*samples: Any) -> bool:
    """Tell whether the rows of one of the samples come in blocks."""
    return any(isinstance(X, RowBlocks) for X in samples)


def is_dask(X: Any) -> bool:
    """Tell whether this is a Dask collection, without importing Dask."""
    return hasattr(X, "dask") and hasattr(X, "to_delayed")


def meta_of(collection: Any) -> Any:
    """Return a row like those of a Dask collection, which is not computed."""
    if hasattr(collection, "columns"):
        return collection._meta_nonempty.iloc[:1]
    return np.ones((1, collection.shape[1]), dtype=collection.dtype)


def column_names(block: Any) -> tuple[Any, ...] | None:
    """Return the names of a data frame's columns."""
    names = getattr(block, "columns", None)
    return None if names is None else tuple(names)


def map_rows(function: Callable[[Any], np.ndarray], X: Any, like: np.ndarray, names: Any) -> Any:
    """Apply a function to the blocks of a Dask collection, when it is computed.

    ``like`` is the function's result for no rows. That of a data frame is a series of the name,
    or a data frame with these columns, with the index of the rows.
    """
    if hasattr(X, "columns"):
        framed = partial(_framed, function, like, names)
        return X.map_partitions(framed, meta=framed(X._meta))
    X = X.rechunk({1: -1})
    changes: dict[str, Any] = {"drop_axis": 1}
    if like.ndim == 2:
        changes = {"chunks": (X.chunks[0], (like.shape[1],))}
    call = partial(_of_some, function, like)
    return X.map_blocks(call, dtype=like.dtype, meta=like, **changes)


def _of_some(function: Callable[[Any], np.ndarray], like: np.ndarray, block: Any) -> np.ndarray:
    return function(block) if len(block) else like


def _framed(function: Callable[[Any], np.ndarray], like: np.ndarray, names: Any, block: Any) -> Any:
    import pandas as pd

    values = _of_some(function, like, block)
    if like.ndim == 1:
        return pd.Series(values, index=block.index, name=names)
    return pd.DataFrame(values, index=block.index, columns=names)


def survey_of(X: Any) -> Survey:
    """Look at the rows of an array, or at those that come in blocks."""
    return X.survey if isinstance(X, RowBlocks) else Survey.of(np.asarray(X))


def _reader(name: str, first: Any) -> _Reader:
    rows = np.asarray(first)
    if rows.ndim != 2:
        raise ValueError(f"{name} must have blocks that are matrices of rows, got {shown(first)}")
    dtype = np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)
    return _Reader(name, column_names(first), rows.shape[1], dtype)


def _matrices(reader: _Reader, part: Any, number: int) -> Iterator[np.ndarray]:
    """Yield the matrices of a part: a function that returns blocks, or a block itself."""
    if not callable(part):
        yield reader(part, number)
        return
    for place, block in enumerate(part()):
        yield reader(block, number + place)


def _survey_part(reader: _Reader, part: Any, number: int, _: int) -> Survey:
    nothing = np.zeros(reader.width)
    seen = Survey((0,), nothing, nothing, nothing, nothing)
    for rows in _matrices(reader, part, number):
        if len(rows):
            seen = seen.merged(Survey.of(rows))
    return seen._replace(counts=(sum(seen.counts),))


def _reduce_part(
    reader: _Reader, function: Any, merge: Merge, part: Any, number: int, start: int
) -> Any:
    total = None
    for rows in _matrices(reader, part, number):
        value = function(rows, start)
        total = value if total is None else merge(total, value)
        start += len(rows)
    # Of a part without blocks: what no rows give.
    return function(np.empty((0, reader.width), reader.dtype), start) if total is None else total


def _rows_at(places: np.ndarray, rows: np.ndarray, start: int) -> list[np.ndarray]:
    first, last = np.searchsorted(places, (start, start + len(rows)))
    return [rows[places[first:last] - start]]


class _NoBar:
    """Shows nothing."""

    def __init__(self, total: int) -> None:
        pass

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def update(self) -> None:
        pass


def _by_dask(task: Callable[..., Any], merge: Merge, jobs: Sequence[Any], bar: Any) -> Any:
    """Run a task with the arguments of each job and merge the results, on a cluster or here."""
    from dask import delayed

    client = current_client()
    if client is not None:
        check_workers(client)
    # One node of the graph, on which all depend: it holds the centres.
    shared, call = delayed(task), delayed(_called)
    level = [call(shared, *job) for job in jobs]
    ticks = [delayed(_tick)(result) for result in level]
    join = delayed(partial(reduce, merge))
    while len(level) > 1:
        groups = range(0, len(level), MERGED_AT_ONCE)
        level = [join(level[i : i + MERGED_AT_ONCE]) for i in groups]
    if client is None:
        return level[0].compute()
    total = client.compute(level[0])
    for tick in finished(client, [*client.compute(ticks), total]):
        if tick is None:
            bar.update()
        else:
            result = tick
    return result


def _tick(_: Any) -> None:
    """Tell that a result is there, without sending it."""


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _computed(part: Any) -> Any:
    client = current_client()
    if client is None:
        return part.compute()
    (block,) = finished(client, [client.compute(part)])
    return block
