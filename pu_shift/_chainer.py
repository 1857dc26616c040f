"""Make Chainer 7.8.1 importable on today's Python and NumPy.

Chainer's last release asks, while it is being imported, for things that have since been
removed from the packages it stands on:

``numpy.distutils`` and ``pkg_resources``
    used by ``chainer._environment_check`` to warn about macOS Accelerate and about CuPy releases
    newer than Chainer knows;
``numpy.sctypes``
    used by ``chainer.functions.array.as_strided``.

This module supplies exactly these, only to Chainer and only where they are missing: the
environment check is replaced by one that does nothing, and ``numpy.sctypes`` exists for the
duration of the import and is afterwards seen by ``as_strided`` alone. No removed NumPy alias
stays behind.

Import Chainer through here, and before anything else imports it::

    from pu_shift._chainer import chainer
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy

_SCTYPES = {
    "int": [numpy.int8, numpy.int16, numpy.int32, numpy.int64],
    "uint": [numpy.uint8, numpy.uint16, numpy.uint32, numpy.uint64],
    "float": [numpy.float16, numpy.float32, numpy.float64],
    "complex": [numpy.complex64, numpy.complex128],
}


@contextlib.contextmanager
def stand_in(name: str, module: types.ModuleType) -> Iterator[None]:
    """Let ``import name`` find ``module`` inside the block, then undo it."""
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before


@contextlib.contextmanager
def old_sources() -> Iterator[None]:
    """Let sources of 2020 be imported: without today's deprecations, with ``numpy.sctypes``."""
    missing = "sctypes" not in vars(numpy)
    with warnings.catch_warnings():
        for category in (SyntaxWarning, DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        if missing:
            vars(numpy)["sctypes"] = _SCTYPES
        try:
            yield
        finally:
            if missing:
                del vars(numpy)["sctypes"]


class _NumPyWithSctypes:
    """NumPy plus ``sctypes``, for the one Chainer module that reads it late."""

    sctypes = _SCTYPES

    def __getattr__(self, name: str) -> object:
        return getattr(numpy, name)


def _import_chainer() -> types.ModuleType:
    if "chainer" in sys.modules:
        return sys.modules["chainer"]
    check = types.ModuleType("chainer._environment_check")
    vars(check)["check"] = lambda: None
    with old_sources(), stand_in(check.__name__, check):
        # CuPy warns of libraries that are not needed here, and from 14 on has no cuDNN.
        warnings.filterwarnings("ignore", category=UserWarning, module="cupy")
        warnings.filterwarnings("ignore", "cuDNN is not enabled", UserWarning)
        module = importlib.import_module("chainer")
    as_strided = importlib.import_module("chainer.functions.array.as_strided")
    if not hasattr(numpy, "sctypes"):
        vars(as_strided)["np"] = _NumPyWithSctypes()
    return module


if TYPE_CHECKING:
    import chainer
else:
    chainer = _import_chainer()
