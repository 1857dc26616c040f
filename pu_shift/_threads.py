"""Linear algebra on one thread: more change the rounding, and wait for each other."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    # To look for the libraries of the process takes milliseconds, as long as a small fit.
    return ThreadpoolController()


def one_thread(library: str | None = "blas") -> Any:
    """Return a context in which BLAS, or ``None``: every library, runs on one thread."""
    return _controller().limit(limits=1, user_api=library)
