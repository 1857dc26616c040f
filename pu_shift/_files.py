"""Files and folders that are replaced whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

# A write that fails for want of room does not say of which file.
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp")


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
    # A new name, created exclusively, so that no existing link is followed.
    part = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        # Opened inside the try block: a signal may come as soon as the file exists.
        try:
            file = open(part, "xb" if binary else "x", **options)  # noqa: SIM115 - closed below
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):
            mode = os.lstat(target).st_mode
            if stat.S_ISREG(mode):
                os.chmod(part, stat.S_IMODE(mode))
        os.replace(part, target)
    except BaseException as error:
        with suppress(OSError):  # a full disk needs the room
            part.unlink()
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise
    sync_folder(target.parent)


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder that gets the name ``path``, which is free, when the block has ended well."""
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        part.mkdir()
        yield part
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


def leftovers(folder: Path) -> list[Path]:
    """Return the temporary files of `replacing` that killed processes left."""
    return [path for path in folder.glob(".*.tmp") if _TEMPORARY.fullmatch(path.name)]
