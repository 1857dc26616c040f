"""A small made-up dataset in every format, with a specification like the real ones."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import struct
import zipfile
from functools import partial

import numpy as np

from pu_shift.data.registry import Layout, Spec

ROWS, FEATURES, POSITIVES = 40, 3, 15
X = np.random.default_rng(7).integers(-99, 99, (ROWS, FEATURES)).astype(np.float32) / 8
Y = np.where(np.arange(ROWS) % 8 < 3, 1, -1).astype(np.int8)

COMPRESS = {
    "": bytes,
    ".gz": partial(gzip.compress, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def libsvm(X=X, y=Y) -> bytes:
    """Write LIBSVM text, without the zeros."""
    lines = (
        f"{label} " + " ".join(f"{j}:{float(v)!r}" for j, v in enumerate(row, 1) if v)
        for label, row in zip(y, X)
    )
    return "".join(f"{line}\n" for line in lines).encode()


def table(X=X, y=Y, header: str = "", separator: str = ",") -> bytes:
    """Write a table with the label last."""
    lines = (separator.join([*(repr(float(v)) for v in row), str(k)]) for row, k in zip(X, y))
    return (header + "".join(f"{line}\n" for line in lines)).encode()


def idx(array) -> bytes:
    """Write an idx file of bytes."""
    array = np.asarray(array, dtype=np.uint8)
    return struct.pack(f">I{array.ndim}I", 0x800 + array.ndim, *array.shape) + array.tobytes()


def zipped(files: dict[str, bytes]) -> bytes:
    """Write a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def spec(*sources, **changes) -> Spec:
    """Return the specification, with these sources."""
    fields = {
        "name": "tiny",
        "shape": (ROWS, FEATURES),
        "positives": POSITIVES,
        "positive_class": "one",
        "home": "https://example.org",
        "citation": "none",
        "licence": "none",
        "span": (-12.5, 12.5),
        "content": hashlib.sha256(X.tobytes() + Y.tobytes()).hexdigest(),
        "layouts": (Layout(("tiny.txt",), "libsvm", exact=True), Layout(("tiny.dat",), "table")),
        "archives": ("tiny.zip",),
        "sources": sources,
    }
    return Spec(**{**fields, **changes})
