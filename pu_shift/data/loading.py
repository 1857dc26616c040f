"""Find a dataset's files, read and check them, cache the arrays; fetch missing files."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import multiprocessing
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from pu_shift._files import replacing
from pu_shift.data import parsers
from pu_shift.data.dataset import DataError, Dataset
from pu_shift.data.registry import Layout, Spec, lookup
from pu_shift.data.sources import Source, with_mirrors

logger = logging.getLogger("pu_shift.data")

_VERSION = 2  # of the parsers: raise it when they give other arrays for the same file
_ROOT = Path(__file__).resolve().parents[2]
CHECKOUT = _ROOT if (_ROOT / "datasets" / "fetch.py").is_file() else None
"""Root of the source tree; None when the package is installed without it."""


def raw_folder() -> Path:
    """Return where fetched files go: ``PU_SHIFT_CACHE``, the source tree, or the user's cache."""
    if os.environ.get("PU_SHIFT_CACHE"):
        return Path(os.environ["PU_SHIFT_CACHE"]).expanduser().absolute()
    if CHECKOUT is not None:
        return CHECKOUT / "datasets" / "raw"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pu-shift"


def search_path() -> list[Path]:
    """Return the folders in which files are looked for: ``PU_SHIFT_DATA``, then `raw_folder`."""
    named = filter(None, os.environ.get("PU_SHIFT_DATA", "").split(os.pathsep))
    folders = [Path(folder).expanduser() for folder in named]
    for folder in folders:
        if not folder.is_dir():
            logger.warning("PU_SHIFT_DATA names %s, which is not a folder", folder)
    return [*folders, raw_folder()]


@dataclass(frozen=True)
class Copy:
    """Files on disk that look like a dataset."""

    spec: Spec
    layout: Layout
    parts: tuple[tuple[Path, str | None], ...]  # each file, and its member if it is an archive

    @property
    def paths(self) -> list[Path]:
        """The files, each once."""
        return list(dict.fromkeys(path for path, _ in self.parts))

    @property
    def title(self) -> str:
        """The files, for a message."""
        first, *others = self.paths
        return ", ".join([str(first), *(path.name for path in others)])

    def read(self, fresh: bool = False) -> Dataset:
        """Map the cached arrays or, if `fresh` or there are none, read the files."""
        with parsers.reading(self.title):
            stamp = _stamp(self)
        data = None if fresh else _kept(self, stamp)
        if data is None:
            parsed = self.parse()
            _keep(self, stamp, parsed)
            # Without a place to write, the parsed arrays serve as they are.
            data = _kept(self, stamp) or parsed
        # Worker processes would repeat the warning of their parent.
        if data.content != self.spec.content and multiprocessing.parent_process() is None:
            logger.warning(
                "%s: its values are not those of the reference results, expected SHA-256 %.12s…, "
                "found %.12s…",
                *(self.title, self.spec.content, data.content),
            )
        return data

    def parse(self) -> Dataset:
        """Read and check the files; a `DataError` says what was expected and what was found."""
        with parsers.reading(self.title):
            X, y = _parse(self)
            if self.layout.part:
                X, y = _published(self.spec, X, y)
            _check(self, X, y)
            sha256 = _sha256(*(chunk for path in self.paths for chunk in _chunks(path)))
        X.flags.writeable = y.flags.writeable = False
        return self.dataset(X, y, sha256)

    def dataset(self, X: np.ndarray, y: np.ndarray, sha256: str) -> Dataset:
        """Return arrays as a dataset, with its facts and digests."""
        spec = self.spec
        return Dataset(spec.name, X, y, spec.positive_class, self.title, sha256, _sha256(X, y))


def copies(name: str) -> list[Copy]:
    """Find the copies of a dataset on the search path, in `load`'s order, without reading them."""
    spec = lookup(name)
    return [copy for folder in search_path() for copy in _copies_in(folder, spec)]


def load(name: str, offline: bool = False) -> Dataset:
    """Load one of the paper's datasets, fetching it where it is not at hand.

    The first good copy on `search_path` is used; a bad one is reported, and renamed to
    ``name.bad`` if it lies in `raw_folder`. Then, unless `offline` or ``PU_SHIFT_FETCH=off``,
    the dataset's sources are tried in turn. Where the data are not available, a `DataError` says
    what was tried, where to download it by hand and where to put it.
    """
    spec = lookup(name)
    problems: list[str] = []
    for copy in copies(name):
        ours = [path for path in copy.paths if path.parent == raw_folder()]
        try:
            return copy.read()
        except DataError as error:
            problems.append(f"rejected {error}")
            logger.warning(problems[-1])
            _set_aside(ours, raw_folder())
    offline |= os.environ.get("PU_SHIFT_FETCH", "").lower() in ("off", "no", "0", "false")
    for source in [] if offline else with_mirrors(spec.sources):
        logger.info("%s: trying %s", spec.name, source.title)
        try:
            dataset = _fetch(spec, source)
        except DataError as error:
            problems.append(f"tried {source.title}: {error}")
            logger.info(problems[-1])
        else:
            logger.info("%s: fetched into %s", spec.name, raw_folder())
            return dataset
    first = f"{spec.name} is not here" + (" and could not be fetched" * (not offline))
    *downloads, place = by_hand(name)
    # Those that were tried have been named.
    downloads = downloads if offline else downloads[:1]
    raise DataError("\n  ".join([first, *problems, *downloads, place]))


def by_hand(name: str) -> list[str]:
    """Say where a dataset can be downloaded by hand and where to put it."""
    ways = [source.by_hand for source in lookup(name).sources]
    place = f"under its own name, into {raw_folder()} or a folder named in PU_SHIFT_DATA"
    return [*ways[:1], *(f"or {way}" for way in ways[1:]), f"and put it, {place}"]


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
    names = [file + suffix for suffix in parsers.SUFFIXES]
    for path in (folder / name for name in (*names, *archives)):
        if not path.is_file():
            continue
        inside = parsers.members(path) if path.suffix == ".zip" else []
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
            data = found.parse()
        except DataError as error:
            _set_aside(Path(scratch).iterdir(), folder)
            # The temporary folder no longer exists when the message is read.
            raise DataError(str(error).replace(f"{scratch}{os.sep}", "")) from None
        for path in found.paths:
            path.chmod(0o644)  # a temporary file's 0600 would lock out others who share the tree
            path.replace(folder / path.name)
    place = replace(
        found, parts=tuple((folder / path.name, inside) for path, inside in found.parts)
    )
    _keep(place, _stamp(place), data)
    return place.read()


def _set_aside(paths: Iterable[Path], folder: Path) -> None:
    """Rename bad files to ``name.bad``, which is never read."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.replace(folder / f"{path.name}.bad")


def _parse(copy: Copy) -> tuple[np.ndarray, np.ndarray]:
    layout = copy.layout
    contents = (parsers.read_content(path, member, layout.sample) for path, member in copy.parts)
    tables = parsers.FORMATS[layout.format](contents, copy.spec.shape[1], layout.label)
    X, labels = (np.concatenate(arrays) for arrays in zip(*tables))
    return np.ascontiguousarray(X, "<f4"), parsers.to_signs(
        labels, layout.positive, layout.negative
    )


def _published(spec: Spec, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the published rows, which lie in one piece, in a longer table."""
    rows = spec.shape[0]
    count = np.concatenate([[0], np.cumsum(y == 1)])
    for start in np.flatnonzero(count[rows:] - count[:-rows] == spec.positives):
        piece = slice(start, start + rows)
        if _sha256(X[piece], y[piece]) == spec.content:
            return X[piece].copy(), y[piece].copy()
    raise DataError(f"expected the {rows:,} published rows among {len(y):,}, found other values")


def _check(copy: Copy, X: np.ndarray, y: np.ndarray) -> None:
    spec = copy.spec
    if X.shape != spec.shape or y.shape != X.shape[:1]:
        raise DataError(
            f"expected {spec.shape[0]:,} rows × {spec.shape[1]} features, "
            f"found {X.shape[0]:,} × {X.shape[1]} and {len(y):,} labels"
        )
    positives = int((y == 1).sum())
    if abs(positives - spec.positives) > spec.spread:
        about = f" ± {spec.spread}" if spec.spread else ""
        raise DataError(f"expected {spec.positives:,}{about} positives, found {positives:,}")
    low, high = spec.span
    if not (X.min() >= low and X.max() <= high):  # so written that NaN fails too
        raise DataError(f"expected values from {low} to {high}, found {X.min()} to {X.max()}")
    content = _sha256(X, y)
    if copy.layout.exact and content != spec.content:
        raise DataError(f"expected values with SHA-256 {spec.content[:12]}…, found {content[:12]}…")


def _sha256(*chunks: Any) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _chunks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from iter(lambda: file.read(1 << 20), b"")


def _cached(spec: Spec) -> list[Path]:
    """Name the cached files: features, labels, and the digests of both."""
    return [raw_folder() / "cache" / f"{spec.name}.{end}" for end in ("X.npy", "y.npy", "sha256")]


def _stamp(copy: Copy) -> str:
    """Identify files by their paths, sizes and times of change, without reading them."""
    states = [(p.resolve(), p.stat().st_size, p.stat().st_mtime_ns) for p in copy.paths]
    return _sha256(f"{_VERSION} {copy.layout} {states}".encode(errors="surrogateescape"))


def _kept(copy: Copy, stamp: str) -> Dataset | None:
    """Map the cached arrays of a copy; None if there are none, or old or damaged ones."""
    *paths, digest_path = _cached(copy.spec)
    with contextlib.suppress(OSError):
        try:
            kept_stamp, sha256, content = digest_path.read_text(encoding="ascii").split()
            if kept_stamp != stamp:
                return None
            X, y = (np.load(path, mmap_mode="r", allow_pickle=False) for path in paths)
            fits = X.shape == copy.spec.shape and (X.dtype, y.dtype) == (np.float32, np.int8)
            data = copy.dataset(X, y, sha256)
            if fits and data.content == content:
                return data
        except (ValueError, EOFError, BufferError):  # what np.load and hashlib make of damage
            pass
        logger.warning(
            "%s: the cached arrays were damaged: the file is parsed again", copy.spec.name
        )
    return None


def _keep(copy: Copy, stamp: str, data: Dataset) -> None:
    """Cache arrays and digests, if the folder is writable; two processes may do so at once."""
    x_path, y_path, digest_path = _cached(copy.spec)
    try:
        x_path.parent.mkdir(parents=True, exist_ok=True)
        for path, array in ((x_path, data.X), (y_path, data.y)):
            with replacing(path, binary=True) as file:
                np.save(file, array, allow_pickle=False)
        with replacing(digest_path, binary=True) as file:
            file.write(f"{stamp} {data.sha256} {data.content}".encode("ascii"))
    except OSError as error:
        logger.info("not cached: %s", error)
