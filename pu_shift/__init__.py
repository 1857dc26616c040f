"""PU classification under class prior shift and asymmetric error."""

from pu_shift import _chainer  # noqa: F401  (first: makes Chainer importable)
from pu_shift._version import __version__

__all__ = ["__version__"]
