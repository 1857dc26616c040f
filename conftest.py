"""Which data the tests see: what is at hand, made-up rows for some of the rest, no downloads.

A test that needs the real rows of a dataset says so with
``@pytest.mark.needs_data("susy")`` and is skipped without them. Where Chainer is not installed
(`make test-ratio`), a test is skipped once it asks for a risk minimiser or a network by name;
what else needs Chainer fails.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from pu_shift._chainer import ChainerMissingError
from pu_shift.data import copies
from tests import stand_ins

os.environ["PU_SHIFT_FETCH"] = "off"  # for the processes that tests start, too
WANT = "for want of data:"
RISK_MINIMISERS = (
    "RiskMinimizationClassifier",
    "LinearModel",
    "GaussianKernelModel",
    "MLP",
    "DeepRatio",
    "Deep",
    "risk minimisation",
)


def at_hand(name: str) -> bool:
    """Tell whether a real copy of a dataset is on the search path."""
    return any(copy.paths[0].parent.name != stand_ins.FOLDER for copy in copies(name))


def pytest_configure(config: pytest.Config) -> None:
    """Put made-up rows at the end of the search path, where a dataset is missing."""
    config.addinivalue_line("markers", "needs_data(*names): needs the real rows of these datasets")
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # it inherits the search path
    folder = os.path.join(tempfile.mkdtemp(), stand_ins.FOLDER)
    os.mkdir(folder)
    for name, write in stand_ins.WRITERS.items():
        if not at_hand(name):
            write(folder)
    paths = [path for path in (os.environ.get("PU_SHIFT_DATA"), folder) if path]
    os.environ["PU_SHIFT_DATA"] = os.pathsep.join(paths)
    config.add_cleanup(lambda: shutil.rmtree(os.path.dirname(folder)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Skip a test whose data are not at hand."""
    asked = [name for mark in item.iter_markers("needs_data") for name in mark.args]
    missing = [name for name in asked if not at_hand(name)]
    if missing:
        pytest.skip(f"{WANT} {', '.join(missing)}")
    with _risk_minimisers_skipped():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip a test of risk minimisers where Chainer is not installed."""
    with _risk_minimisers_skipped():
        return (yield)


@contextmanager
def _risk_minimisers_skipped() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # A search or a check of scikit-learn's raises an error of its own from it.
        text = "".join(traceback.format_exception(error))
        if not any(str(ChainerMissingError(name)) in text for name in RISK_MINIMISERS):
            raise
        pytest.skip("risk minimisation needs Chainer, which is not installed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped for want of which data."""
    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])]
    wanted = Counter(reason.split(WANT)[1].strip() for reason in reasons if WANT in reason)
    if wanted:
        each = "; ".join(f"{names} ({count})" for names, count in sorted(wanted.items()))
        terminalreporter.write_line(f"{wanted.total()} tests skipped {WANT} {each}")
    else:
        terminalreporter.write_line(f"no test skipped {WANT[:-1]}")
