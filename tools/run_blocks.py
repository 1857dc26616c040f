#!/usr/bin/env python3
"""Run the shell blocks of the pages that install something, as they stand, in copies of the tree.

Usage: python tools/run_blocks.py [DIST]        (the folder of the wheel; `make wheel` calls it)

The blocks of a page run one after the other in one bash session, as a reader would paste them; a
block that an earlier page has too runs once. The other blocks are run by tests/test_pages.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/install.md", "docs/start.md", "docs/command_line.md")
BLOCK = re.compile(r"^```(console|bash|shell|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALLING = re.compile(r"\bmake install\b|\bpip install\b|\buv \w")
USE_RATIO = """
import numpy as np
from pu_shift import DensityRatioClassifier, RiskMinimizationClassifier
rng = np.random.default_rng(0)
X_p, X_u = rng.normal(2.0, 1.0, (60, 2)), rng.normal(0.0, 2.0, (120, 2))
DensityRatioClassifier(prior=0.2).fit_pu(X_p, X_u).predict(X_u, test_prior=0.7)
"""
USE_RISK = (
    USE_RATIO
    + """
RiskMinimizationClassifier(prior=0.2, n_steps=20, safe=False).fit_pu(X_p, X_u).predict(X_u)
"""
)


def blocks(text: str) -> list[str]:
    """Return the commands of each shell block of a page."""
    found = []
    for _, block in BLOCK.findall(text):
        lines = block.splitlines()
        strange = [line for line in lines if not line.startswith(("$ ", "> "))]
        if strange:
            raise ValueError(f"a line of a shell block must begin with a prompt: {strange[0]}")
        found.append("\n".join(line[2:] for line in lines))
    return found


def installing(text: str) -> list[str]:
    """Return the blocks of a page that install packages."""
    return [block for block in blocks(text) if INSTALLING.search(block)]


def others(text: str) -> list[str]:
    """Return the blocks of a page that install nothing."""
    return [block for block in blocks(text) if not INSTALLING.search(block)]


def checked(block: str) -> str:
    """Return a block, and after it a use of what it installs: not of the tree, hence -I."""
    risk = "make install" in block or "chainer" in block
    lines = [block, f"python -I -c '{USE_RISK if risk else USE_RATIO}'", "pu-shift --version"]
    if "dist/" in block:
        lines.append("python -I -W error tools/use_installed.py")
    return "\n".join(lines)


def sessions() -> Iterator[tuple[str, str]]:
    """Yield the installing blocks of each page as one script."""
    done: set[str] = set()
    for page in PAGES:
        new = [b for b in installing((ROOT / page).read_text(encoding="utf-8")) if b not in done]
        done.update(new)
        if new:
            yield page, "\n".join(map(checked, new))


def copy_tree(place: Path, dist: Path) -> None:
    """Copy the files under version control, as they are now, and the built wheel."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    shutil.copytree(dist, place / "dist")


def main(argv: list[str]) -> int:
    """Run every session; return 1 if one fails."""
    dist = Path(argv[0] if argv else ROOT / "dist").resolve()
    # With nothing set, and with the interpreter and the uv of this environment.
    environment = {name: value for name, value in os.environ.items() if "CONSTRAINT" not in name}
    environment.pop("PYTHONPATH", None)
    environment.pop("MAKEFLAGS", None)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    failed = []
    for page, script in sessions():
        with tempfile.TemporaryDirectory() as folder:
            copy_tree(Path(folder), dist)
            start = time.monotonic()
            command = ["bash", "-c", f"set -eo pipefail\n{script}"]
            done = subprocess.run(command, cwd=folder, env=environment, check=False)
        outcome = f"exit {done.returncode}" if done.returncode else "done"
        print(f"{page}: {outcome} in {time.monotonic() - start:.0f} s", flush=True)
        failed += [page] if done.returncode else []
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
