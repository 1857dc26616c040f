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

``import pu_shift`` lets later imports of Chainer pass through here; Chainer itself is imported
when something first needs it::

    from pu_shift._chainer import chainer

Chainer is an extra. Where it is not installed, the classes that derive from its own can be
imported all the same, and say how to install it when they are used.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any

import numpy

# Chainer's setup.py imports pkg_resources, which setuptools 82 no longer has; pip builds in an
# environment of its own, with the newest setuptools, unless it is told not to.
INSTALL = 'pip install "setuptools<82" wheel && pip install --no-build-isolation "chainer==7.8.1"'
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


class ChainerMissingError(ImportError):
    """Chainer, which is an extra, is not installed; the message says how to go on."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} needs Chainer, which is not installed: {INSTALL}", name="chainer")


class _NeedsChainer:
    """The base, without Chainer, of a class that derives from one of Chainer's."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ChainerMissingError(type(self).__name__)


class _NoChainer:
    """Takes the place of Chainer where it is not installed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ("optimizers", "adam"):  # where training finds its base classes
            return self
        if name[0].isupper():
            return _NeedsChainer
        raise ChainerMissingError("risk minimisation")


def require_chainer(what: str) -> None:
    """Raise the one-line error about what cannot be done, if Chainer is not installed."""
    if isinstance(_import_chainer(), _NoChainer):
        raise ChainerMissingError(what)


class _ChainerFinder(MetaPathFinder):
    """Finds Chainer as usual, and lets it be executed by ``_execute``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "chainer":
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is not None and found.loader is not None:
            execute = found.loader.exec_module
            vars(found.loader)["exec_module"] = partial(_execute, execute)
        return found


def _execute(execute: Callable[[types.ModuleType], None], module: types.ModuleType) -> None:
    """Execute Chainer among stand-ins for what is gone."""
    check = types.ModuleType("chainer._environment_check")
    vars(check)["check"] = lambda: None
    with old_sources(), stand_in(check.__name__, check):
        # CuPy warns of libraries that are not needed here, and from 14 on has no cuDNN.
        warnings.filterwarnings("ignore", category=UserWarning, module="cupy")
        warnings.filterwarnings("ignore", "cuDNN is not enabled", UserWarning)
        execute(module)
    as_strided = importlib.import_module("chainer.functions.array.as_strided")
    if not hasattr(numpy, "sctypes"):
        vars(as_strided)["np"] = _NumPyWithSctypes()


def mend_imports() -> None:
    """Let Chainer be imported from now on."""
    if not any(isinstance(finder, _ChainerFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _ChainerFinder())


@cache
def _import_chainer() -> Any:
    mend_imports()
    try:
        return importlib.import_module("chainer")
    except ModuleNotFoundError as error:
        if error.name != "chainer":  # it is there, and something that it needs is not
            raise
        return _NoChainer()


if TYPE_CHECKING:
    import chainer  # noqa: F401  (given by __getattr__)
else:

    def __getattr__(name: str) -> Any:
        if name == "chainer":
            return _import_chainer()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
