"""Files that are replaced whole or not at all, and never opened through a link by mistake."""

from __future__ import annotations

import errno
import itertools
import os
import re
import secrets
import shutil
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

# Names a number n: the process kills itself before its n-th step on the disk. tools/chaos.py
# goes through all of them.
KILL_AT = "PU_SHIFT_KILL_AT_STEP"
_steps = itertools.count(1)
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp")


def step() -> None:
    """Come before every change of the disk: here a kill hurts most, and is tested."""
    if KILL_AT in os.environ and next(_steps) == int(os.environ[KILL_AT]):
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def replacing(
    path: str | os.PathLike[str], binary: bool = False, follow: bool = True
) -> Iterator[IO[Any]]:
    """Open a file that takes the place of ``path`` when the block has ended well.

    A link stays one, and its target is replaced; unless ``follow`` is False, then the link
    itself is. The permissions of an old file are kept. With ``follow``, what is no regular
    file (a pipe, ``/dev/null``) is written to. Of two writers the last one wins whole.
    """
    target = Path(os.path.realpath(path)) if follow else Path(path)
    options: dict[str, Any] = {} if binary else {"encoding": "utf-8", "newline": "\n"}
    if follow and target.exists() and not target.is_file():
        with open(target, "wb" if binary else "w", **options) as file:
            yield file
        return
    # A fresh name, created exclusively: no link that lies there is followed.
    part = target.with_name(f".{secrets.token_hex(8)}.tmp")
    step()
    try:
        # Inside: a signal may come as soon as the file is there.
        try:
            file = open(part, "xb" if binary else "x", **options)  # noqa: SIM115 - closed below
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        with file:
            yield file
            file.flush()
            step()
            os.fsync(file.fileno())
        with suppress(OSError):
            mode = os.lstat(target).st_mode
            if stat.S_ISREG(mode):
                os.chmod(part, stat.S_IMODE(mode))
        step()
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):  # a full disk needs the room
            part.unlink()
        raise
    step()
    sync_folder(target.parent)


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder that gets the name ``path``, which is free, when the block has ended well."""
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{secrets.token_hex(8)}.tmp")
    step()
    try:
        part.mkdir()
        yield part
        step()
        part.rename(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder survive a power cut, where the file system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file, or the link in its place, if it is there."""
    step()
    path.unlink(missing_ok=True)


def leftovers(folder: Path) -> list[Path]:
    """Return what killed processes left: the temporary files of `replacing`."""
    return [path for path in folder.glob(".*.tmp") if _TEMPORARY.fullmatch(path.name)]


def open_regular(path: str | os.PathLike[str], mode: str = "rb") -> IO[Any]:
    """Open a regular file; a link is not followed, and a pipe or device not waited for."""

    def open_it(name: str, flags: int) -> int:
        wrong = OSError(errno.EINVAL, f"{os.path.basename(name)} is not a regular file", name)
        try:
            descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        except OSError as error:
            # What Linux and the BSDs say of a link, and what all say of a socket.
            links = (errno.ELOOP, errno.EMLINK, errno.ENXIO)
            raise (wrong if error.errno in links else error) from None
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise wrong

    return open(path, mode, opener=open_it)


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Return what a regular file holds, see `open_regular`."""
    with open_regular(path) as file:
        return file.read()
