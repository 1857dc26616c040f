"""Packed files: what they hold, as a stream that is bounded by what was read of it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pu_shift._checks import one_line

# Tables compress up to 50-fold (SUSY 3, MNIST as CSV 9), a bomb thousands of times. The
# floor lets small files of equal rows pass.
UNPACKED_FLOOR, UNPACKED_RATIO = 16 << 20, 250
# Other methods of the zip format are unpacked by the standard library without a bound.
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_COMPRESSIONS: tuple[tuple[bytes, Callable[[Any], Any]], ...] = (
    (b"\x1f\x8b", lambda stream: gzip.GzipFile(fileobj=stream)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
    (b"\x28\xb5\x2f\xfd", lambda stream: _zstandard(stream)),
)


class DataError(ValueError):
    """Data that are not available, or that are not what they should be."""


def _zstandard(stream: Any) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise DataError("is packed by zstd, which needs pyarrow: unpack it first") from None
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(stream, "r"), "zstd")


def decompressed(stream: Any, member: str | None = None) -> io.BufferedReader:
    """Open a binary stream, or a member of the zip archive it is, for reading its content.

    Compression is told by the first bytes, not by a name.
    """
    source = _Counted(stream)
    if member is None:
        content = _layer(io.BufferedReader(source, 1 << 18))
    else:
        archive = zipfile.ZipFile(source)
        _check_method(archive.getinfo(member).compress_type)
        content = _layer(archive.open(member))
    return io.BufferedReader(_Bounded(content, source), 1 << 18)


def may_unpack(total: int, read: int) -> bool:
    """Tell whether so many bytes may come out of so many that were read."""
    return total <= UNPACKED_FLOOR + UNPACKED_RATIO * read


def _layer(stream: Any) -> Any:
    head = stream.peek(6)
    for magic, opener in _COMPRESSIONS:
        if head.startswith(magic):
            return opener(stream)
    if head.startswith(b"PK\x03\x04"):
        return _layer(io.BufferedReader(_FirstMember(stream), 1 << 18))
    return stream


def _check_method(method: int) -> None:
    if method not in ZIP_METHODS:
        raise DataError(f"expected a deflated zip archive, found method {method}")


class _Raw(io.RawIOBase):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True


class _Counted(_Raw):
    """A stream that knows how much was read of it."""

    count = 0

    def seekable(self) -> bool:
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        size = self._stream.readinto(buffer) or 0
        self.count += size
        return size


class _Bounded(_Raw):
    """What a stream unpacks to, as long as it is in proportion to what was read of it."""

    def __init__(self, stream: Any, source: _Counted) -> None:
        super().__init__(stream)
        self._source, self._total = source, 0

    def readinto(self, buffer: Any) -> int:
        size = self._stream.readinto(buffer)
        self._total += size
        if not may_unpack(self._total, self._source.count):
            raise DataError(
                f"unpacks to more than {UNPACKED_RATIO} times its size: if that is right, unpack "
                "it first"
            )
        return size


class _FirstMember(_Raw):
    """The first file of a zip archive that streams by; its index comes only at the end."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        header = stream.read(30)
        if len(header) < 30:
            raise EOFError("the archive ends in its first header")
        method, size, *names = struct.unpack_from("<H8xI4xHH", header, 8)
        _check_method(method)
        stream.read(sum(names))
        # Not every writer knows the size in advance, and 4 GB do not fit.
        self._left = size if 0 < size < 2**32 - 1 else sys.maxsize
        self._inflate = zlib.decompressobj(-15) if method else None

    def readinto(self, buffer: Any) -> int:
        if self._inflate is None:
            chunk = self._stream.read(min(len(buffer), self._left))
            self._left -= len(chunk)
        else:
            chunk = b""
            while not chunk and not self._inflate.eof:
                packed = self._inflate.unconsumed_tail or self._stream.read(1 << 16)
                if not packed:
                    raise EOFError("the archive ends before its first file does")
                chunk = self._inflate.decompress(packed, len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)


@contextmanager
def reading(label: str, mark: str = ":") -> Iterator[None]:
    """Turn what a damaged file makes the readers raise into one `DataError` of one line."""
    try:
        yield
    except DataError as error:
        raise type(error)(f"{label}{mark} {error}") from None
    # zipfile raises RuntimeError for a password, or a compression it does not know.
    except (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError) as e:
        raise DataError(f"{label} is truncated or corrupt: {one_line(e)}") from None
