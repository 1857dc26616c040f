"""Processes of Python that tests start."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def start(*arguments, path=(), preexec_fn=None, **options):
    """Start Python with these arguments, and with these folders before the tree on its path."""
    paths = os.pathsep.join(map(str, [*path, ROOT]))
    environment = {**os.environ, "PYTHONPATH": paths, **options.pop("env", {})}

    def prepare():
        # What nohup makes the tests deaf to, their children would be deaf to as well.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        if preexec_fn:
            preexec_fn()

    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, preexec_fn=prepare, **options)


def python(*arguments, **options):
    """Run Python to its end; return it with its status, output and messages."""
    with start(*arguments, stdout=-1, stderr=-1, text=True, **options) as process:
        output, errors = process.communicate()
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)
