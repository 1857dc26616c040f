"""How a command ends: by itself, by a signal, or because its output cannot be written.

====  ==========================================================
0     done
1     ``--check`` failed
2     wrong input: arguments, files, data, devices; or not enough memory
74    the standard output cannot be written
128+  a signal: 129 (SIGHUP), 130 (Ctrl-C), 143 (SIGTERM)
141   the reader of the output has gone (``| head``)
====  ==========================================================
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pu_shift._checks import one_line

UNWRITABLE, READER_GONE = 74, 141
_ENDINGS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}


def exit_status(run: Callable[[], int]) -> int:
    """Run a command and return its exit status, whatever ends it."""
    received: list[int] = []
    with _streams(), _signals(received):
        try:
            status = run() or 0
            sys.stdout.flush()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            if isinstance(stop.code, str):
                print(stop.code, file=sys.stderr)
        except KeyboardInterrupt:
            status = 128 + signal.SIGINT
            received = received or [signal.SIGINT]
        except (_OutputError, BrokenPipeError) as error:
            status = error.status if isinstance(error, _OutputError) else READER_GONE
            if status == UNWRITABLE:
                print(f"error: {error}", file=sys.stderr)
        except MemoryError as error:
            status = 2
            print(f"error: not enough memory: {one_line(error)}", file=sys.stderr)
        except BaseException:
            # A library that is interrupted may raise any error.
            if not received:
                raise
        if received:
            print(_ENDINGS[signal.Signals(received[0]).name], file=sys.stderr)
            return 128 + received[0]
        return status


class _OutputError(Exception):
    """The standard output cannot be written; no OSError, which may be about any file."""

    def __init__(self, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or str(error)
        super().__init__(f"the output cannot be written: {reason}")
        self.status = READER_GONE if isinstance(error, BrokenPipeError) else UNWRITABLE


class _Output:
    """The standard output, whose failures are told from those of other files."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> Any:
        return self._try("write", text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._try("flush")

    def _try(self, name: str, *arguments: str) -> Any:
        try:
            return getattr(self._stream, name)(*arguments)
        except (OSError, ValueError) as error:
            return self._failed(error)

    def _failed(self, error: Exception) -> None:
        raise _OutputError(error) from None


class _Messages(_Output):
    """The standard error output: a message that cannot be written does not stop the work."""

    def _failed(self, error: Exception) -> None:
        pass


@contextmanager
def _streams() -> Iterator[None]:
    """Tell failures of the standard streams from others, and leave none for the exit."""
    before = sys.stdout, sys.stderr
    # Python has None for a stream that was closed before the start.
    output, messages = (stream or open(os.devnull, "w") for stream in before)  # noqa: SIM115
    for stream in (output, messages):
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without π gets a question mark
    sys.stdout, sys.stderr = _Output(output), _Messages(messages)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        _emptied(output)
        _emptied(messages)


def _emptied(stream: Any) -> None:
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


@contextmanager
def _signals(received: list[int]) -> Iterator[None]:
    """Turn the signals that end a process into KeyboardInterrupt, and record them."""

    def interrupt(number: int, _: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    for name in _ENDINGS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        # What nohup or a shell's background job ignores stays ignored.
        if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
