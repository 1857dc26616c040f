"""The folder of one run.

``sets/`` holds a small JSON file per finished training set, written whole or not at all, with
the identity of what made it; to resume is to see that the file is there and fits the run.
``trials.csv`` is assembled from them when a run ends. A folder without ``sets/``, say one that
is kept under version control, is read from its ``trials.csv``, and resumed if ``run.json`` says
what made it.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any, Union
from urllib.parse import quote

import pandas as pd
import threadpoolctl

from pu_shift import _checks
from pu_shift._files import leftovers, replacing
from pu_shift._version import __version__
from pu_shift.paper.settings import BLOCK, CELL, TRIAL, key_prior

OUTPUTS = (
    *("trials.csv", "summary.csv", "table.md", "table.tex", "comparison.png", "figure.png"),
    "run.json",
)
SETS = "sets"
# Raised when the same seed gives other numbers: older training sets are then not resumed.
NUMERICS = 1
# Two runs that agree in these fields and in the data may share training sets.
IDENTITY = ("table", "study", "prior", "test_prior", "protocol", "seed", "numerics")
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
    set from another. The ``optional`` columns may be empty, or missing in older files (NaN);
    columns that are not known are ignored.
    """

    checks: Mapping[str, Callable[[str, Any], Any]]
    key: tuple[str, ...]
    file: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def checked(self, row: Mapping[str, Any]) -> Row:
        """Return the known columns of a row, each in its type; ``ValueError`` if one is wrong."""
        values = {}
        for name, check in self.checks.items():
            value = row.get(name)
            if name in self.optional and (value is None or value != value or value == ""):
                values[name] = math.nan
            elif name not in row:
                raise ValueError(f"the column {name} is missing")
            else:
                values[name] = check(name, value)
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
    optional=(*HYPER, "seconds"),
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
    """Read a table's finished trials, without changing the folder.

    The run may be finished, still running or killed. ``StoreError`` if a file cannot be read.
    """
    folder = Path(folder)
    if not _files_with_trials(folder) and not (folder / "run.json").exists():
        raise StoreError(f"{folder} is not a folder of results: it has no {SETS} and no trials.csv")
    try:
        return _assembled(folder, TABLE_COLUMNS)
    except OSError as error:
        raise StoreError(f"cannot read {error.filename}: {error.strerror}") from None


def _assembled(folder: Path, columns: Columns) -> pd.DataFrame:
    rows = (row for _, _, rows in _read_stored(folder, columns) for row in rows)
    return columns.frame({columns.key_of(row): row for row in rows}.values())


def _read_stored(
    folder: Path, columns: Columns, accept: Callable[[Path, Row], None] = lambda *_: None
) -> Iterator[tuple[Path, Row, list[Row]]]:
    """Yield each file that holds trials, the identity of what made it, and its rows.

    ``accept`` sees file and identity before the rows are looked at.
    """
    run = read_run(folder)
    for path in _files_with_trials(folder):
        if path.name == "trials.csv":
            accept(path, run)
            yield path, run, _read_csv(path, columns)
        else:
            made_by, rows = _read_set(path)
            accept(path, made_by or run)
            try:
                yield path, made_by or run, [columns.checked(row) for row in rows]
            except (ValueError, TypeError):
                raise _changed(path) from None


def _files_with_trials(folder: Path) -> list[Path]:
    trials = folder / "trials.csv"
    return sorted((folder / SETS).glob("*.json")) or [trials] * trials.exists()


def _read_set(path: Path) -> tuple[Row | None, list[Row]]:
    content = path.read_bytes()
    try:
        held = json.loads(content)
        if held["sha256"] != _digest([held["made_by"], held["rows"]]):
            raise ValueError
        # Earlier versions kept a digest of the run here; run.json says the rest.
        return held["made_by"] if "seed" in held["made_by"] else None, held["rows"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _changed(path) from None


def _changed(path: Path) -> StoreError:
    return StoreError(
        f"{path} was changed after it was written: delete it to compute its trials again"
    )


def _read_csv(path: Path, columns: Columns) -> list[Row]:
    rows, needed = [], set(columns.checks) - set(columns.optional)
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        try:
            absent = sorted(needed - set(reader.fieldnames or ()))
            if absent:
                raise ValueError(f"the columns {','.join(absent)} are missing")
            for row in reader:
                if None in row or None in row.values():
                    raise ValueError("the number of fields is not that of the columns")
                rows.append(columns.checked(row))
        except (ValueError, csv.Error) as error:
            raise StoreError(f"{path} line {max(1, reader.line_num)}: {error}") from None
    return rows


def read_run(folder: Path) -> dict[str, Any]:
    """Return the content of ``run.json``; nothing if it is not there, cut off or not ours."""
    try:
        run = json.loads((folder / "run.json").read_bytes())
        return run if "pu_shift" in run["versions"] else {}
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8")).hexdigest()


class TrialStore:
    """The results folder of one run, open for appending; use it in a ``with`` statement.

    ``run_info`` goes into ``run.json``; what `IDENTITY` names in it, and the digests of the data
    in its ``files``, must equal those of the trials that the folder holds already, unless they
    are deleted (``fresh``). ``StoreError`` on entering, if the folder cannot be written or is not
    this run's. Two equal runs into one folder do the same work twice and leave the same trials.
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
        about = {"command": shlex.join(["python", *sys.argv]), "numerics": NUMERICS, **run_info}
        # Through JSON, so that tuples compare equal to the lists that are read back.
        self._info = json.loads(json.dumps(about))
        self._sets: dict[str, dict[tuple, Row]] = {}

    def __enter__(self) -> TrialStore:
        with self._one_line_errors():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._open()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        # The error that ended the run is reported, not one that follows from it.
        with suppress(*(() if error is None else (StoreError,))), self._one_line_errors():
            if error is None:
                self._begin()
            if self._begun:
                self._finish(completed=error is None)

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

    def _open(self) -> None:
        run = read_run(self.folder)
        holds = {path.name for path in self.folder.iterdir()}
        others = sorted(holds - {path.name for path in leftovers(self.folder)})
        if others and not run and not list((self.folder / SETS).glob("*.json")):
            raise StoreError(
                f"{self.folder} is not a results folder (it holds {others[0]}, and no run.json "
                "of pu-shift): choose another --out"
            )
        if not self._fresh:
            self._take()
        self._clock = time.monotonic()
        session = {**environment(), "started": _now(), "finished": None, "wall_seconds": 0.0}
        past = []
        if run and not self._fresh:
            latest = {name: run.get(name) for name in ("command", "device", *session)}
            past = [*(run.get("earlier_sessions") or []), latest]
        self._run = {**self._info, **session, "earlier_sessions": past}
        # With --fresh, older results are deleted when the first new ones are written.
        if not (self._fresh and others):
            self._begin()

    def _take(self) -> None:
        """Take over the trials that the folder holds."""
        stored = _read_stored(self.folder, self._columns, self._refuse_other_run)
        for path, made_by, rows in stored:
            files = {**(made_by.get("files") or {}), **(self._info.get("files") or {})}
            self._info["files"] = files or None
            if path.name == "trials.csv":  # as one file, so that a kill cannot leave a part of it
                self._write_set("earlier.json", rows)
            for row in rows:
                own = self._sets.setdefault(self._columns.file_of(row), {})
                own.setdefault(self._columns.key_of(row), row)

    def _refuse_other_run(self, path: Path, made_by: Mapping[str, Any]) -> None:
        for field, (mine, its) in differing(self._info, made_by):
            raise StoreError(
                f"{self.folder} holds another run: the {field} of {path.name} is "
                f"{json.dumps(its)}, not {json.dumps(mine)}; choose another --out or delete its "
                "results with --fresh"
            )

    def _begin(self) -> None:
        """Write ``run.json``, after deleting older results if the run is fresh."""
        if self._begun:
            return
        if self._fresh:
            # run.json is replaced last: it marks the folder as one of ours.
            old = [*leftovers(self.folder), *leftovers(self.folder / SETS)]
            old += (self.folder / SETS).glob("*.json")
            for path in [*old, *(self.folder / name for name in OUTPUTS[:-1])]:
                path.unlink(missing_ok=True)
        self._write_run()
        self._begun = True

    def _write_set(self, name: str, rows: list[Row]) -> None:
        (self.folder / SETS).mkdir(exist_ok=True)
        files = self._info.get("files") or {}
        datasets = sorted({row["dataset"] for row in rows})
        made_by = {**_identity(self._info), "files": {name: files.get(name) for name in datasets}}
        # JSON has no NaN.
        plain = [{k: None if v != v else v for k, v in row.items()} for row in rows]
        held = {"made_by": made_by, "sha256": _digest([made_by, plain]), "rows": plain}
        write_atomic(self.folder / SETS / name, json.dumps(held, indent=1) + "\n")

    def _write_run(self) -> None:
        run = json.dumps(self._run, indent=2, ensure_ascii=False) + "\n"
        write_atomic(self.folder / "run.json", run)

    def _finish(self, completed: bool) -> None:
        if any((self.folder / SETS).glob("*.json")):
            # From the files: an interrupt may have come between writing one and counting it.
            trials = _assembled(self.folder, self._columns).to_csv(index=False)
            write_atomic(self.folder / "trials.csv", trials)
        self._run["finished"] = _now() if completed else None
        self._run["wall_seconds"] = round(time.monotonic() - self._clock, 3)
        self._write_run()


def _identity(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that identify a run; the first runs had no ``numerics``."""
    return {"numerics": 1, **{name: run[name] for name in IDENTITY if name in run}}


def differing(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterable[tuple[str, tuple]]:
    """Yield what differs of two runs' identities: dotted names of fields, with both values."""
    # Data are compared where both runs have them: others may be added.
    files = [run.get("files") or {} for run in (new, old)]
    both = sorted(set(files[0]) & set(files[1]))
    ours, theirs = (
        {**_identity(run), "files": {name: of[name] for name in both}}
        for run, of in zip((new, old), files)
    )
    return _differences(ours, theirs)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _differences(new: Any, old: Any, name: str = "") -> Iterable[tuple[str, tuple]]:
    """Yield the dotted names of the fields that differ, with both values."""
    if isinstance(new, dict) and isinstance(old, dict):
        for field in sorted({**old, **new}):
            dotted = f"{name}.{field}" if name else field
            yield from _differences(new.get(field), old.get(field), dotted)
    elif not _equal(new, old):
        yield name, (new, old)


def _equal(new: Any, old: Any) -> bool:
    """Tell whether two values of JSON are equal; the last digit of a grid is the processor's."""
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(_equal, new, old))
    if isinstance(new, float) and isinstance(old, float):
        return math.isclose(new, old, rel_tol=1e-12)
    return bool(new == old)
