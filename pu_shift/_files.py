"""Files that are replaced whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(
    path: str | os.PathLike[str], binary: bool = False, temporary: str | None = None
) -> Iterator[IO[Any]]:
    r"""Open a file that takes the place of ``path`` when the block has ended well.

    A link stays one, and its target is replaced; the permissions of an old file are
    kept. What is no regular file (a pipe, ``/dev/null``) is written to.

    Parameters
    ----------
    path
        The file.
    binary
        Whether bytes are written; otherwise text, as UTF-8.
    temporary
        The name until then, in the same folder; by default one of this process alone:
        two may write the same file, and the last one wins whole.

    Yields
    ------
    file
        What is written to it is on the disk before the old file goes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "a.txt")) as file:
    ...         _ = file.write("one")
    ...         print(Path(folder, "a.txt").exists())
    ...     Path(folder, "a.txt").read_text()
    False
    'one'
    """
    target = Path(os.path.realpath(path))
    options: dict[str, Any] = {"mode": "wb"}
    if not binary:
        options = {"mode": "w", "encoding": "utf-8", "newline": "\n"}
    if target.exists() and not target.is_file():
        with open(target, **options) as file:
            yield file
        return
    part = target.with_name(temporary or f".{target.name}.{os.getpid()}.tmp")
    try:
        # Inside: a signal may come as soon as the file is there.
        try:
            file = open(part, **options)  # noqa: SIM115 - closed below, its errors are told apart
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):
            os.chmod(part, stat.S_IMODE(target.stat().st_mode))
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):  # a full disk needs the room
            part.unlink()
        raise
