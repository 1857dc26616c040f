#!/usr/bin/env python3
"""Ask pip-audit for known holes in installed packages, and say how many it knew.

By itself pip-audit calls an environment clean when it got no answer about any
of its packages. Exit status 1 only if a hole is known.

Usage: python tools/audit.py FOLDER        (a site-packages)
"""

from __future__ import annotations

import json
import subprocess
import sys

# Holes that cannot be reached from here, and why.
HARMLESS = {"CVE-2024-48206": "chainer: it is in chainermn, which is never imported here"}


def judge(output: str, errors: str) -> tuple[int, list[str]]:
    """Return the exit status and the lines to print for what pip-audit wrote."""
    notes = [f"not counted, {name}, {why}" for name, why in HARMLESS.items()]
    status, lines = _judge(output, errors)
    return status, [*notes, *lines]


def _judge(output: str, errors: str) -> tuple[int, list[str]]:
    try:
        packages = json.loads(output)["dependencies"]
    except ValueError:
        (*_, reason) = errors.splitlines() or ["no answer"]
        return 0, [f"pip-audit: nothing was checked: {reason}"]
    known = [package for package in packages if "skip_reason" not in package]
    holes = [
        f"{package['name']} {package['version']}: {hole['id']}"
        for package in known
        for hole in package["vulns"]
        if HARMLESS.keys().isdisjoint([hole["id"], *hole.get("aliases", [])])
    ]
    line = f"pip-audit: {len(known)} of {len(packages)} packages checked, {len(holes)} holes known"
    if not known:
        line = f"pip-audit: nothing was checked: no answer about any of {len(packages)} packages"
    return bool(holes), [*holes, line]


def main(folder: str) -> int:
    """Audit the packages of a folder."""
    command = [sys.executable, "-m", "pip_audit", "--progress-spinner", "off", "--format", "json"]
    done = subprocess.run([*command, "--path", folder], capture_output=True, text=True, check=False)
    status, lines = judge(done.stdout, done.stderr)
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
