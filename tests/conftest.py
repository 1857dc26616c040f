"""Settings that every test shares."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from tests.browser import driver  # noqa: F401

# Stand-ins for packages that are not installed: found by sub-processes only.
collect_ignore = ["doubles"]

# Machines are shared and noisy: a slow example is no failure. Derandomised, so
# that a failure on one machine can be seen on every other.
settings.register_profile(
    "pu_shift", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("pu_shift")

# A shell starts background jobs deaf to Ctrl-C, and what they start is deaf too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _ctrl_c_as_before():
    """Undo what a script does that is run in this process."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="session")
def _one_blas_thread_per_worker():
    """Keep workers × BLAS threads at the number of cores."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    with threadpool_limits(1):
        yield
