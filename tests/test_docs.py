"""The documents say what the code and the committed results say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_documents_are_what_make_docs_writes():
    run = subprocess.run(
        [sys.executable, "tools/write_docs.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
