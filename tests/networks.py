"""Networks as parameters of tests, which are made before a test could be skipped."""

from contextlib import suppress

from pu_shift._chainer import ChainerMissingError


def made(kind, *arguments):
    """Return a network; None where Chainer is not installed and the tests of it are skipped."""
    with suppress(ChainerMissingError):
        return kind(*arguments)
    return None
