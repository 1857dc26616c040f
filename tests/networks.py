"""Tests of risk minimisers where Chainer may not be installed (`make test-ratio`)."""

from contextlib import suppress
from importlib.util import find_spec

import pytest

from pu_shift._chainer import ChainerMissingError

HAS_CHAINER = find_spec("chainer") is not None
needs_chainer = pytest.mark.skipif(not HAS_CHAINER, reason="Chainer is not installed")


def made(kind, *arguments):
    """Return a network, a parameter of tests; None where they will be skipped."""
    with suppress(ChainerMissingError):
        return kind(*arguments)
    return None
