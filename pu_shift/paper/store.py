"""The folder of one run: trials as they finish, safe against a kill at any moment."""

from __future__ import annotations

import csv
import errno
import fcntl
import io
import json
import math
import os
import platform
import shlex
import socket
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any, Union

import pandas as pd
import threadpoolctl

from pu_shift import _checks
from pu_shift._files import replacing
from pu_shift._version import __version__
from pu_shift.paper.settings import BLOCK, CELL, TRIAL, key_prior

OUTPUTS = (
    *("trials.csv", "summary.csv", "table.md", "table.tex", "comparison.png", "figure.png"),
    "run.json",
)
# What two runs must have in common to share a folder.
IDENTITY = ("table", "study", "prior", "test_prior", "files", "protocol", "seed")
HYPER = ("width", "lam", "step")

_LEADING = ("table", *TRIAL, "accuracy")
# The last column of the file: CRC-32 of the header and of the line before it.
_CHECK = b",check"
_PACKAGES = ("numpy", "scipy", "chainer", "pandas", "scikit-learn")
PathLike = Union[str, "os.PathLike[str]"]


class StoreError(ValueError):
    """A folder that a run cannot use; the message says why in one line."""


@dataclass(frozen=True)
class Columns:
    """What a line of ``trials.csv`` holds, without the check at its end.

    Attributes
    ----------
    checks : dict
        Name to a function of the name and a value (or its text) that returns the
        value in its type, or raises ``ValueError``.
    key : tuple of str
        The columns that tell one trial from another.
    optional : tuple of str
        The columns that may be empty.
    """

    checks: Mapping[str, Callable[[str, Any], Any]]
    key: tuple[str, ...]
    optional: tuple[str, ...] = ()

    @property
    def header(self) -> bytes:
        """The first line of the file, without the check."""
        return _line(self.checks).encode("utf-8")

    def key_of(self, row: Mapping[str, Any]) -> tuple:
        """Return what names the trial of a row."""
        return tuple(row[name] for name in self.key)

    def checked(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with every value in its type; ``ValueError`` if it is not a trial."""
        if set(row) - set(self.checks) or set(self.checks) - set(self.optional) - set(row):
            raise ValueError(
                f"a row must have the columns {','.join(self.checks)}, got {','.join(row)}"
            )
        values = {}
        for name, check in self.checks.items():
            value = row.get(name)
            absent = value is None or value != value or value == ""
            values[name] = math.nan if absent and name in self.optional else check(name, value)
        return values


def table_columns(hyper: Sequence[str] = HYPER) -> Columns:
    """Return the columns of a table's trials.

    Parameters
    ----------
    hyper : sequence of str
        The columns of the chosen hyper-parameters.

    Returns
    -------
    Columns
        With the accuracy in percent, and the seconds that the trial took.

    Examples
    --------
    >>> list(table_columns(["epochs"]).checks)[-3:]
    ['accuracy', 'epochs', 'seconds']
    """
    checks: dict[str, Callable[[str, Any], Any]] = {
        "table": count,
        **dict.fromkeys(BLOCK, key_prior),
        **dict.fromkeys(CELL[len(BLOCK) :], text),
        "trial": count,
        "accuracy": _percentage,
        **dict.fromkeys(hyper, _checks.non_negative),
        "seconds": _checks.non_negative,
    }
    return Columns(checks, tuple(TRIAL), tuple(hyper))


def count(name: str, value: Any) -> int:
    """Return a number or its text as an int that is not below 0.

    Examples
    --------
    >>> count("trial", "3")
    3
    """
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    return _checks.positive_int(name, value, least=0)


def text(name: str, value: Any) -> str:
    r"""Return a text that is printable and not empty.

    Examples
    --------
    >>> text("dataset", "two\nlines")
    Traceback (most recent call last):
    ...
    ValueError: dataset must be a printable text, got 'two\nlines'
    """
    # A line break inside a name would hide where a line ends.
    if not isinstance(value, str) or not value.isprintable() or not value:
        raise ValueError(f"{name} must be a printable text, got {value!r}")
    return value


def _percentage(name: str, value: Any) -> float:
    number = _checks.non_negative(name, value)
    if number > 100:
        raise ValueError(f"{name} must be in percent, got {value!r}")
    return number


def write_atomic(path: PathLike, content: str | bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part.

    Parameters
    ----------
    path : path-like
        The file.
    content : str or bytes
        What it shall hold; text is encoded as UTF-8.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomic(Path(folder) / "table.md", "one")
    ...     (Path(folder) / "table.md").read_text()
    'one'
    """
    # A fixed name: what a kill leaves is overwritten by the next.
    with replacing(path, binary=True, temporary=_temporary(Path(path).name)) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def _temporary(name: str) -> str:
    return f".{name}.tmp"


def environment() -> dict[str, Any]:
    """Describe what the results may depend on: versions, platform and BLAS.

    Returns
    -------
    dict
        ``versions``, ``platform`` and ``blas``, ready for JSON.

    Examples
    --------
    >>> sorted(environment())
    ['blas', 'platform', 'versions']
    """
    versions = {"python": platform.python_version(), "pu_shift": __version__}
    versions.update((name, metadata.version(name)) for name in _PACKAGES)
    # The libraries' paths say nothing that their versions do not.
    blas = [
        {name: value for name, value in library.items() if name not in ("filepath", "prefix")}
        for library in threadpoolctl.threadpool_info()
    ]
    machine = {"system": platform.platform(), "cores": os.cpu_count()}
    return {"versions": versions, "platform": machine, "blas": blas}


def read_trials(folder: PathLike) -> pd.DataFrame:
    """Read the finished trials of a folder, without changing or locking it.

    Parameters
    ----------
    folder : path-like
        The folder of a run, finished or still running.

    Returns
    -------
    DataFrame
        One row per trial of a cell, the first if there are several.

    Raises
    ------
    StoreError
        If ``trials.csv`` cannot be read or is damaged elsewhere than at its end.

    Examples
    --------
    >>> read_trials("none")
    Traceback (most recent call last):
    ...
    pu_shift.paper.store.StoreError: cannot read none/trials.csv: No such file or directory
    """
    path = Path(folder) / "trials.csv"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    header, line_end, _ = data.partition(b"\n")
    # Files from before there were checks can be read, but no run goes on with them.
    unchecked = header.endswith(b",seconds")
    names = header.decode("utf-8", "replace").split(",")
    hyper = names[len(_LEADING) : -1 if unchecked else -2] if line_end else HYPER
    columns = table_columns(hyper)
    rows, _ = _parse(path, data, columns, unchecked)
    return _frame(rows, columns)


def _frame(rows: Iterable[Mapping[str, Any]], columns: Columns) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=list(columns.checks))


def _line(values: Iterable[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(
        "" if value is None or value != value else value for value in values
    )
    return line.getvalue()


def _check_of(line: bytes, columns: Columns) -> bytes:
    return b"%08x" % zlib.crc32(line, zlib.crc32(columns.header))


def _with_check(row: Mapping[str, Any], columns: Columns) -> bytes:
    line = _line(row.values()).encode("utf-8")
    return b"%s,%s\n" % (line, _check_of(line, columns))


def _parse_line(line: bytes, columns: Columns, unchecked: bool) -> dict[str, Any]:
    if not unchecked:
        line, _, check = line.rpartition(b",")
        if check != _check_of(line, columns):
            raise ValueError("it was changed after it was written, its check does not match")
    (fields,) = csv.reader([line.decode("utf-8")], strict=True)
    if len(fields) != len(columns.checks):
        raise ValueError(f"{len(fields)} fields instead of {len(columns.checks)}")
    return columns.checked(dict(zip(columns.checks, fields)))


def _parse(
    path: Path, data: bytes, columns: Columns, unchecked: bool = False
) -> tuple[list[dict], int]:
    """Return the rows of ``trials.csv`` and the length of its sound part in bytes.

    Only the last line can be torn by a kill or a power cut; damage elsewhere
    was not done by us and is for the user to look at.
    """
    header = columns.header + (b"" if unchecked else _CHECK) + b"\n"
    if header.startswith(data):
        return [], 0 if data != header else len(header)
    if not data.startswith(header):
        raise StoreError(f"{path} line 1: the columns are not {header.decode().strip()}")
    sound = len(header)
    rows: dict[tuple, dict[str, Any]] = {}
    *lines, tail = data[sound:].split(b"\n")
    for number, line in enumerate(lines, start=2):
        try:
            row = _parse_line(line, columns, unchecked)
        except (ValueError, csv.Error) as error:
            if number == len(lines) + 1 and not tail:
                break
            raise StoreError(
                f"{path} line {number}: {error}; delete the line to compute its trial again"
            ) from None
        rows.setdefault(columns.key_of(row), row)
        sound += len(line) + 1
    return list(rows.values()), sound


class TrialStore:
    """The results folder of one run, open for appending; use it in a ``with`` statement.

    ``trials.csv`` grows by whole lines, each with a check of its content at its
    end; a torn last line is cut off on opening, and a lock that the operating
    system releases keeps a second run out.

    Parameters
    ----------
    folder : path-like
        Where the results go; it is created if need be.
    run_info : dict
        Goes into ``run.json``. What `IDENTITY` names must equal that of the
        trials that the folder holds already; ``command`` is the command line
        unless given.
    fresh : bool
        Delete the folder's earlier results instead of resuming them.
    columns : Columns, optional
        What a trial holds; by default what a table's does.

    Raises
    ------
    StoreError
        On entering, if the folder cannot be written, is in use, or is not this run's.

    Examples
    --------
    >>> import tempfile
    >>> row = {"table": 1, "prior": 0.3, "test_prior": 0.5, "given_prior": 0.5,
    ...        "dataset": "banana", "method": "DH-Lin", "trial": 0, "accuracy": 52.2,
    ...        "lam": 0.01, "seconds": 1.5}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TrialStore(folder, {"protocol": {}, "seed": 0}) as store:
    ...         store.append([row])
    ...         store.done()
    {(0.3, 0.5, 0.5, 'banana', 'DH-Lin', 0)}
    """

    def __init__(
        self,
        folder: PathLike,
        run_info: Mapping[str, Any],
        fresh: bool = False,
        columns: Columns | None = None,
    ) -> None:
        self.folder = Path(folder)
        self._columns = table_columns() if columns is None else columns
        self._fresh = fresh
        # Through JSON, so that tuples compare equal to the lists that are read back.
        self._info = json.loads(
            json.dumps({"command": shlex.join(["python", *sys.argv]), **run_info})
        )
        self._rows: dict[tuple, dict[str, Any]] = {}
        self._begun = False

    def __enter__(self) -> TrialStore:
        self._lock = self._fd = -1
        try:
            with self._one_line_errors():
                self.folder.mkdir(parents=True, exist_ok=True)
                self._earlier_run()  # before the lock: nothing is put into a stranger's folder
                self._lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
                self._acquire()
                self._open()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            with self._one_line_errors():
                if error is None:
                    self._begin()
                if self._begun:
                    self._write_run(finished=_now() if error is None else None)
        finally:
            self._close()

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add finished trials durably; those that the folder has already are left out.

        Parameters
        ----------
        rows : iterable of dict
            One per trial of a cell, by column; hyper-parameters may be missing or None.
        """
        new: dict[tuple, dict[str, Any]] = {}
        for row in rows:
            row = self._columns.checked(row)
            key = self._columns.key_of(row)
            if key not in self._rows:
                new.setdefault(key, row)
        with self._one_line_errors():
            self._begin()
            self._write(b"".join(_with_check(row, self._columns) for row in new.values()))
            self._rows.update(new)
            self._write_run()

    def done(self) -> set[tuple]:
        """Return the finished trials.

        Returns
        -------
        set of tuple
            The key of each; of a table's
            (prior, test_prior, given_prior, dataset, method, trial).
        """
        return set(self._rows)

    def frame(self) -> pd.DataFrame:
        """Return all trials of the folder.

        Returns
        -------
        DataFrame
            One row per trial of a cell, with the columns of ``trials.csv`` but the check.
        """
        return _frame(self._rows.values(), self._columns)

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"cannot write to {self.folder}: {error.strerror}") from None

    def _acquire(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._lock, 200).decode("utf-8", "replace") or "unknown"
            raise StoreError(
                f"{self.folder} is in use by another run ({holder}): "
                "wait for it or choose another --out"
            ) from None
        os.ftruncate(self._lock, 0)
        os.write(self._lock, f"pid {os.getpid()} on {socket.gethostname()}".encode())

    def _open(self) -> None:
        earlier = self._earlier_run()
        path = self.folder / "trials.csv"
        rows: list[dict[str, Any]] = []
        replaces = self._fresh and earlier is not None
        if replaces:
            earlier = None
        elif earlier is not None:
            content = path.read_bytes() if path.exists() else b""
            # A run that came to nothing, but for a header, says nothing about the next.
            if content.count(b"\n") > 1:
                self._refuse_other_run(earlier)
                rows, _ = _parse(path, content, self._columns)
                files = {**(earlier.get("files") or {}), **(self._info.get("files") or {})}
                self._info["files"] = files or None
        self._clock = time.monotonic()
        session = {**environment(), "started": _now(), "finished": None, "wall_seconds": 0.0}
        self._run = {**self._info, **session, "earlier_sessions": []}
        if earlier is not None:
            past = {name: earlier.get(name) for name in ("command", *session)}
            self._run["earlier_sessions"] = [*(earlier.get("earlier_sessions") or []), past]
        self._rows = {self._columns.key_of(row): row for row in rows}
        # What is to be replaced goes when there is something to replace it by.
        if not replaces:
            self._begin()

    def _begin(self) -> None:
        """Make the folder this run's: nothing in it is touched before."""
        if self._begun:
            return
        path = self.folder / "trials.csv"
        if self._fresh:
            for name in OUTPUTS[:-1]:  # run.json goes last: it marks the folder as ours
                (self.folder / name).unlink(missing_ok=True)
        self._write_run()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        _, sound = _parse(path, path.read_bytes(), self._columns)
        os.ftruncate(self._fd, sound)
        if sound == 0:
            self._write(self._columns.header + _CHECK + b"\n")
        self._begun = True

    def _earlier_run(self) -> dict[str, Any] | None:
        """Return the folder's ``run.json``, or None for a new folder."""
        path = self.folder / "run.json"
        if path.exists():
            try:
                run = json.loads(path.read_text(encoding="utf-8"))
            except (ValueError, RecursionError):
                run = None
            if isinstance(run, dict) and _is_run(run):
                return run
            raise StoreError(f"{path} was not written by pu-shift: choose another --out")
        harmless = {".lock", *map(_temporary, OUTPUTS)}
        strangers = sorted(set(os.listdir(self.folder)) - harmless)
        if strangers:
            raise StoreError(
                f"{self.folder} is not a results folder (it holds {strangers[0]} but no "
                "run.json): choose another --out"
            )
        return None

    def _refuse_other_run(self, earlier: Mapping[str, Any]) -> None:
        ours, theirs = ({name: run.get(name) for name in IDENTITY} for run in (self._info, earlier))
        # Data are compared where both runs have them: others may be added.
        digests = [run["files"] or {} for run in (ours, theirs)]
        for run, own, other in zip((ours, theirs), digests, digests[::-1]):
            run["files"] = {name: digest for name, digest in own.items() if name in other}
        for field, (new, old) in _differences(ours, theirs):
            raise StoreError(
                f"{self.folder} holds another run: its {field} is {json.dumps(old)}, not "
                f"{json.dumps(new)}; choose another --out or delete its results with --fresh"
            )

    def _write(self, data: bytes) -> None:
        size = os.fstat(self._fd).st_size
        if os.write(self._fd, data) != len(data):
            os.ftruncate(self._fd, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(self._fd)

    def _write_run(self, finished: str | None = None) -> None:
        self._run["finished"] = finished
        self._run["wall_seconds"] = round(time.monotonic() - self._clock, 3)
        text = json.dumps(self._run, indent=2, ensure_ascii=False) + "\n"
        write_atomic(self.folder / "run.json", text)

    def _close(self) -> None:
        for fd in (self._fd, self._lock):
            if fd >= 0:
                os.close(fd)
        self._fd = self._lock = -1


def _is_run(run: Mapping[str, Any]) -> bool:
    """Whether a ``run.json`` has the parts that we write."""
    parts = {"versions": dict, "files": dict, "earlier_sessions": list}
    sound = all(isinstance(run.get(name) or kind(), kind) for name, kind in parts.items())
    return sound and "pu_shift" in (run.get("versions") or ())


def _now() -> str:
    # By time.time, the one clock that a test can turn back in a whole process.
    return datetime.fromtimestamp(time.time(), timezone.utc).isoformat(timespec="seconds")


def _differences(new: Any, old: Any, name: str = "") -> Iterable[tuple[str, tuple]]:
    """Yield the dotted names of the fields that differ, with both values."""
    if isinstance(new, dict) and isinstance(old, dict):
        for field in sorted({**old, **new}):
            dotted = f"{name}.{field}" if name else field
            yield from _differences(new.get(field), old.get(field), dotted)
    elif new != old:
        yield name, (new, old)
