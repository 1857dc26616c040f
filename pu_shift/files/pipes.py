"""Files to be read, also from the standard input and from pipes, which are kept while needed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from pu_shift._checks import one_line
from pu_shift.files.unpacking import DataError, reading

STANDARD_INPUT = "-"
# What a pipe holds can be read but once: it is copied into a temporary file.
_COPIES: dict[str, Any] = {}


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """Open a file for reading bytes, from its beginning."""
    if path != STANDARD_INPUT and not os.path.exists(path):
        raise DataError(f"data: no such file: {one_line(repr(path))}")
    if path == STANDARD_INPUT or not os.path.isfile(path):
        with reading(f"data: {shown_path(path)}", mark=""):
            file = _copied(path)
        file.seek(0)
        yield file
        return
    with open(path, "rb", buffering=0) as file:
        yield file


def _copied(path: str) -> Any:
    if os.path.isdir(path):
        raise DataError("is a folder, not a file")
    if path not in _COPIES:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (read again by later calls)
        _COPIES[path] = file
        here = path == STANDARD_INPUT
        with nullcontext(sys.stdin.buffer) if here else open(path, "rb") as source:
            shutil.copyfileobj(source, file)
    return _COPIES[path]


def forget_pipes() -> None:
    """Let go of what was read of pipes."""
    while _COPIES:
        _COPIES.popitem()[1].close()


def shown_path(path: str) -> str:
    """Return how messages name a file."""
    return "standard input" if path == STANDARD_INPUT else one_line(path)
