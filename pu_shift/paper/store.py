"""The folder of one run, safe against a kill at any moment.

``sets/`` holds a small file per finished training set, written whole or not at all, with a
digest of its rows and the names of what made them; to resume is to see which are there.
``trials.csv`` is assembled from them when a run ends. A folder without ``sets/``, say one that
is kept under version control, is read and resumed from its ``trials.csv``.
"""

from __future__ import annotations

import csv
import fcntl
import hashlib
import io
import json
import math
import os
import platform
import shlex
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any, Union
from urllib.parse import quote

import pandas as pd
import threadpoolctl

from pu_shift import _checks
from pu_shift._files import (
    leftovers,
    open_regular,
    read_regular,
    remove,
    replacing,
    step,
    sync_folder,
)
from pu_shift._version import __version__
from pu_shift.paper.settings import BLOCK, CELL, TRIAL, key_prior

OUTPUTS = (
    *("trials.csv", "summary.csv", "table.md", "table.tex", "comparison.png", "figure.png"),
    "run.json",
)
SETS = "sets"
# What two runs must have in common to share a folder.
IDENTITY = ("table", "study", "prior", "test_prior", "files", "protocol", "seed")
HYPER = ("width", "lam", "step")
_PACKAGES = ("numpy", "scipy", "chainer", "pandas", "scikit-learn")
PathLike = Union[str, "os.PathLike[str]"]
Row = dict[str, Any]


class StoreError(ValueError):
    """A folder that a run cannot use; the message says why in one line."""


@dataclass(frozen=True)
class Columns:
    """What a row of ``trials.csv`` holds.

    ``checks`` maps a column to a function of its name and a value, or the value's text, that
    returns the value in its type; ``key`` tells one trial from another, ``file`` one training
    set from another; the ``optional`` columns may be empty.
    """

    checks: Mapping[str, Callable[[str, Any], Any]]
    key: tuple[str, ...]
    file: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def checked(self, row: Mapping[str, Any]) -> Row:
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

    def key_of(self, row: Mapping[str, Any]) -> tuple:
        """Return what names the trial of a row."""
        return tuple(row[name] for name in self.key)

    def file_of(self, row: Mapping[str, Any]) -> str:
        """Return the name of the file of a row's training set."""
        key = [row[name] for name in self.file]
        # The digest tells apart what is cut off; a name may be as long as the system allows.
        return f"{quote('-'.join(map(str, key)), safe='')[:80]}-{_digest(key)[:8]}.json"

    def frame(self, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
        """Return rows in the order of their keys: sums over them round alike in every run."""
        return pd.DataFrame(sorted(rows, key=self.key_of), columns=list(self.checks))


def count(name: str, value: Any) -> int:
    """Return a number or its text as an int that is not below 0."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    return _checks.positive_int(name, value, least=0)


def text(name: str, value: Any) -> str:
    """Return a text that is printable and not empty."""
    # A line break inside a name would hide where a line ends.
    if not isinstance(value, str) or not value.isprintable() or not value:
        raise ValueError(f"{name} must be a printable text, got {value!r}")
    return value


def _percentage(name: str, value: Any) -> float:
    number = _checks.non_negative(name, value)
    if number > 100:
        raise ValueError(f"{name} must be in percent, got {value!r}")
    return number


TABLE_COLUMNS = Columns(
    {
        "table": count,
        **dict.fromkeys(BLOCK, key_prior),
        **dict.fromkeys(CELL[len(BLOCK) :], text),
        "trial": count,
        "accuracy": _percentage,
        **dict.fromkeys(HYPER, _checks.non_negative),
        "seconds": _checks.non_negative,
    },
    key=tuple(TRIAL),
    file=("dataset", "prior", "trial"),
    optional=HYPER,
)


def write_atomic(path: PathLike, content: str | bytes) -> None:
    """Write a file of an output folder whole; a link in its place is replaced, not followed."""
    with replacing(path, binary=True, follow=False) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def environment() -> dict[str, Any]:
    """Describe what the results may depend on: versions, platform and BLAS."""
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
    """Read a table's finished trials, without changing or locking the folder.

    The run may be finished, still running or killed. ``StoreError`` if a file cannot be read or
    was changed.
    """
    folder = Path(folder)
    if not _files_with_trials(folder) and not (folder / "run.json").exists():
        raise StoreError(f"{folder} is not a folder of results: it has no {SETS} and no trials.csv")
    try:
        return _assembled(folder, TABLE_COLUMNS)
    except OSError as error:
        raise StoreError(f"cannot read {error.filename}: {error.strerror}") from None


def _assembled(folder: Path, columns: Columns) -> pd.DataFrame:
    stored = _read_stored(folder, columns)
    rows = {columns.key_of(row): row for _, _, rows in stored for row in rows}
    return columns.frame(rows.values())


def _read_stored(folder: Path, columns: Columns) -> list[tuple[Path, Any, list[Row]]]:
    """Return each file that holds trials, what made it (None: not said), and its rows."""
    return [
        (path, None, _read_csv(path, columns))
        if path.name == "trials.csv"
        else (path, *_read_set(path, columns))
        for path in _files_with_trials(folder)
    ]


def _files_with_trials(folder: Path) -> list[Path]:
    trials = folder / "trials.csv"
    return _set_files(folder) or [trials] * os.path.lexists(trials)


def _set_files(folder: Path) -> list[Path]:
    sets = folder / SETS
    if sets.is_symlink() or (sets.exists() and not sets.is_dir()):
        raise StoreError(f"{sets} is not a folder: choose another --out")
    return sorted(sets.glob("*.json"))


def _read_set(path: Path, columns: Columns) -> tuple[Any, list[Row]]:
    content = read_regular(path)
    try:
        held = json.loads(content)
        if held["sha256"] != _digest([held["made_by"], held["rows"]]):
            raise ValueError
        return held["made_by"], [columns.checked(row) for row in held["rows"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise StoreError(
            f"{path} was changed after it was written: delete it to compute its trials again"
        ) from None


def _read_csv(path: Path, columns: Columns) -> list[Row]:
    content = read_regular(path)
    try:
        known = _read_run(path.parent).get("trials")
    except (OSError, StoreError):  # a file alone can be read too
        known = None
    if known not in (None, hashlib.sha256(content).hexdigest()):
        raise StoreError(
            f"{path} was changed after it was written: its digest is not that in run.json"
        )
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8"), newline=""), strict=True)
    except UnicodeDecodeError:
        raise StoreError(f"{path} line 1: the file is not UTF-8") from None
    rows, names = [], list(columns.checks)
    try:
        header = next(reader, [])
        if header not in (names, [*names, "check"]):  # earlier versions ended lines with a check
            raise ValueError(f"the columns are not {','.join(names)}")
        for fields in reader:
            if len(fields) != len(header):
                raise ValueError(f"{len(fields)} fields instead of {len(header)}")
            rows.append(columns.checked(dict(zip(names, fields))))
        if not content.endswith(b"\n"):
            raise ValueError("it is cut off")
    except (ValueError, csv.Error) as error:
        raise StoreError(f"{path} line {max(1, reader.line_num)}: {error}") from None
    return rows


def _read_run(folder: Path) -> dict[str, Any]:
    """Return the content of ``run.json``, which must be ours."""
    path = folder / "run.json"
    try:
        run = json.loads(read_regular(path))
    except (ValueError, RecursionError):
        run = None
    parts = {"versions": dict, "files": dict, "earlier_sessions": list}
    if not isinstance(run, dict) or not all(
        isinstance(run.get(name) or kind(), kind) for name, kind in parts.items()
    ):
        run = {}
    if "pu_shift" not in (run.get("versions") or ()):
        raise StoreError(f"{path} was not written by pu-shift: choose another --out")
    return run


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8")).hexdigest()


class TrialStore:
    """The results folder of one run, open for appending; use it in a ``with`` statement.

    ``run_info`` goes into ``run.json``; what `IDENTITY` names in it must equal that of the
    trials that the folder holds already, unless they are deleted (``fresh``). A lock that the
    operating system releases keeps a second run out. ``StoreError`` on entering, if the folder
    cannot be written, is in use, or is not this run's.
    """

    def __init__(
        self,
        folder: PathLike,
        run_info: Mapping[str, Any],
        fresh: bool = False,
        columns: Columns = TABLE_COLUMNS,
    ) -> None:
        self.folder = Path(folder)
        self._columns, self._fresh, self._begun = columns, fresh, False
        # Through JSON, so that tuples compare equal to the lists that are read back.
        self._info = json.loads(
            json.dumps({"command": shlex.join(["python", *sys.argv]), **run_info})
        )
        self._sets: dict[str, dict[tuple, Row]] = {}

    def __enter__(self) -> TrialStore:
        with ExitStack() as stack, self._one_line_errors():
            step()
            self.folder.mkdir(parents=True, exist_ok=True)
            self._earlier_run()  # before the lock: nothing is put into a stranger's folder
            step()
            lock = stack.enter_context(open_regular(self.folder / ".lock", "a+b"))
            self._acquire(lock)
            self._open()
            self._unlock = stack.pop_all().close
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            # What ended the run is to be told, not what came of it.
            with suppress(*(() if error is None else (StoreError,))), self._one_line_errors():
                if error is None:
                    self._begin()
                if self._begun:
                    self._finish(completed=error is None)
        finally:
            self._unlock()

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add finished trials durably; those that the folder has already are left out."""
        new: dict[str, dict[tuple, Row]] = {}
        for row in rows:
            row = self._columns.checked(row)
            name, key = self._columns.file_of(row), self._columns.key_of(row)
            if key not in self._sets.get(name, ()):
                new.setdefault(name, {}).setdefault(key, row)
        with self._one_line_errors():
            self._begin()
            for name, added in new.items():
                whole = {**self._sets.get(name, {}), **added}
                self._write_set(name, list(whole.values()))
                self._sets[name] = whole

    def done(self) -> set[tuple]:
        """Return the keys of the finished trials."""
        return {key for rows in self._sets.values() for key in rows}

    def frame(self) -> pd.DataFrame:
        """Return all trials of the folder, in the order of their keys."""
        return self._columns.frame(row for rows in self._sets.values() for row in rows.values())

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"cannot write to {self.folder}: {error.strerror}") from None

    def _acquire(self, lock: Any) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read(200).decode("utf-8", "replace") or "unknown"
            raise StoreError(
                f"{self.folder} is in use by another run ({holder}): "
                "wait for it or choose another --out"
            ) from None
        lock.truncate(0)
        lock.write(f"pid {os.getpid()} on {socket.gethostname()}".encode())
        lock.flush()

    def _open(self) -> None:
        earlier = self._earlier_run()
        replaces = self._fresh and earlier is not None
        if replaces:
            earlier = None
        # A run that came to nothing says nothing about the next.
        if earlier is not None and _files_with_trials(self.folder):
            self._refuse_other_run(earlier)
            files = {**(earlier.get("files") or {}), **(self._info.get("files") or {})}
            self._info["files"] = files or None
            self._take(_read_stored(self.folder, self._columns))
        self._clock = time.monotonic()
        session = {**environment(), "started": _now(), "finished": None, "wall_seconds": 0.0}
        self._run = {**self._info, **session, "trials": None, "earlier_sessions": []}
        if earlier is not None:
            past = {name: earlier.get(name) for name in ("command", "device", *session)}
            self._run["trials"] = earlier.get("trials")
            self._run["earlier_sessions"] = [*(earlier.get("earlier_sessions") or []), past]
        # What is to be replaced goes when there is something to replace it by.
        if not replaces:
            self._begin()

    def _take(self, stored: list[tuple[Path, Any, list[Row]]]) -> None:
        """Go on with the trials that the folder holds."""
        for path, made_by, rows in stored:
            if made_by is None:  # as one file, so that a kill cannot leave a part of it
                self._write_set("earlier.json", rows)
            elif made_by != self._made_by(rows):
                raise StoreError(
                    f"{path} was made by another protocol, data or seed: delete it to compute its "
                    "trials again"
                )
            for row in rows:
                own = self._sets.setdefault(self._columns.file_of(row), {})
                own.setdefault(self._columns.key_of(row), row)

    def _begin(self) -> None:
        """Make the folder this run's: nothing in it is touched before."""
        if self._begun:
            return
        old = [*leftovers(self.folder), *leftovers(self.folder / SETS)]
        if self._fresh:
            # run.json goes last: it marks the folder as ours.
            old += [*_set_files(self.folder), *(self.folder / name for name in OUTPUTS[:-1])]
        for path in old:
            remove(path)
        self._write_run()
        self._begun = True

    def _earlier_run(self) -> dict[str, Any] | None:
        """Return the folder's ``run.json``, or None for a new folder."""
        _set_files(self.folder)
        if os.path.lexists(self.folder / "run.json"):
            return _read_run(self.folder)
        ours = {".lock", *(path.name for path in leftovers(self.folder))}
        strangers = sorted(set(os.listdir(self.folder)) - ours)
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

    def _made_by(self, rows: Iterable[Row]) -> dict[str, Any]:
        """Return what names the run and the data of rows."""
        run = {name: self._info.get(name) for name in IDENTITY if name != "files"}
        files = self._info.get("files") or {}
        names = sorted({row["dataset"] for row in rows})
        return {"run": _digest(run), "files": {name: files.get(name) for name in names}}

    def _write_set(self, name: str, rows: list[Row]) -> None:
        if not (self.folder / SETS).exists():
            step()
            (self.folder / SETS).mkdir()
            sync_folder(self.folder)
        made_by = self._made_by(rows)
        # JSON has no NaN.
        plain = [{k: None if v != v else v for k, v in row.items()} for row in rows]
        held = {"made_by": made_by, "sha256": _digest([made_by, plain]), "rows": plain}
        write_atomic(self.folder / SETS / name, json.dumps(held, indent=1) + "\n")

    def _write_run(self) -> None:
        run = json.dumps(self._run, indent=2, ensure_ascii=False) + "\n"
        write_atomic(self.folder / "run.json", run)

    def _finish(self, completed: bool) -> None:
        if _set_files(self.folder):
            # From the files: an interrupt may have come between writing one and counting it.
            trials = _assembled(self.folder, self._columns).to_csv(index=False).encode("utf-8")
            write_atomic(self.folder / "trials.csv", trials)
            self._run["trials"] = hashlib.sha256(trials).hexdigest()
        self._run["finished"] = _now() if completed else None
        self._run["wall_seconds"] = round(time.monotonic() - self._clock, 3)
        self._write_run()


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
