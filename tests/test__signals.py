"""However a command ends, its exit status says so. (The streams themselves: test_cli.)"""

import signal
import sys
import threading

import numpy as np
import pytest

from pu_shift._signals import exit_status


@pytest.fixture
def hears_hang_ups():
    """Under nohup a process is deaf to them."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def exit_with(code):
    def run():
        sys.exit(code)

    return run


@pytest.mark.parametrize(
    ("run", "status", "message"),
    [
        (lambda: 0, 0, ""),
        (lambda: None, 0, ""),
        (lambda: 1, 1, ""),
        (exit_with(2), 2, ""),
        (exit_with(None), 0, ""),
        (exit_with("wrong"), 1, "wrong\n"),
        (lambda: signal.raise_signal(signal.SIGINT), 130, "interrupted\n"),
        (lambda: signal.raise_signal(signal.SIGTERM), 143, "terminated\n"),
        (lambda: signal.raise_signal(signal.SIGHUP), 129, "hung up\n"),
        # A command within a command, as `pu-shift reproduce` runs one.
        (lambda: exit_status(lambda: signal.raise_signal(signal.SIGTERM)), 143, "terminated\n"),
    ],
)
def test_the_status_says_how_it_ended(run, status, message, hears_hang_ups, capsys):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert exit_status(run) == status
    assert capsys.readouterr().err == message
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_memory_that_does_not_suffice_is_told_in_one_line(capsys):
    def run():
        np.empty(1 << 58, dtype=np.float64)

    assert exit_status(run) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: not enough memory: Unable to allocate ")
    assert message.count("\n") == 1


def test_an_error_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        exit_status(lambda: 1 // 0)


def test_what_is_ignored_stays_ignored(hears_hang_ups):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert exit_status(lambda: signal.raise_signal(signal.SIGHUP)) == 0


def test_another_thread_has_no_signals():
    found = []
    thread = threading.Thread(target=lambda: found.append(exit_status(lambda: 3)))
    thread.start()
    thread.join()
    assert found == [3]


def test_a_reader_that_has_gone(monkeypatch):
    class Gone:
        def write(self, text):
            raise BrokenPipeError

        def flush(self):
            raise BrokenPipeError

        def fileno(self):
            raise OSError

    monkeypatch.setattr(sys, "stdout", Gone())
    assert exit_status(lambda: print("a")) == 141
