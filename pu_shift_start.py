"""The first moments of a command, while the package is being imported.

``import pu_shift`` takes a second or two. This module imports next to nothing and lies outside of
the package, so that a command can answer Ctrl-C from the beginning.
"""

from __future__ import annotations

import os
import signal
from typing import Any


def answer_interrupts(module: str = "__main__") -> None:
    """Let Ctrl-C end a script, by its ``__name__``, with one word and status 130.

    So do the commands themselves, once they run; a script that is imported changes nothing.
    """
    # What nohup or a shell's background job ignores stays ignored.
    if module == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(*_: Any) -> None:
    # At once: an exception in the middle of an import may come out as any error.
    os.write(2, b"interrupted\n")
    os._exit(130)


def main() -> int:
    """Run the ``pu-shift`` command; return its exit status."""
    answer_interrupts()
    from pu_shift.cli import main as run

    return run()
