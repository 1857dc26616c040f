#!/usr/bin/env python3
"""Hurt runs on purpose, let them go on, and count what they survive.

Each kind of fault is tried many times, at moments and places that a seed
decides. A try is
survived when no trial that had finished is lost, the final trials equal those
of an undisturbed run row for row (but for the seconds), and whatever failed on
the way said so in one line. Exit status 1 if any try is lost.

Usage: python tools/chaos.py        (--help lists the options)
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pu_shift.paper.store import StoreError
from tests.paper.engine import SLOW, Cluster, rows, start, wait_for, write_table

METHODS = ("p/u uLSIF", "Sq-Lin")

Tries = Iterator[str]  # what was lost in each try; empty if nothing


class Bench:
    """The run that is hurt, and what it gives when nothing happens to it."""

    def __init__(self, folder: Path, seed: int, short: bool = False) -> None:
        self.folder, self.rng, self.count = folder, np.random.default_rng(seed), 0
        self.protocol = folder / "protocol.json"
        self.protocol.write_text(json.dumps(SLOW), encoding="utf-8")
        size = (2, 1, METHODS[:1]) if short else (6, 2, METHODS)
        self.rows = write_table(folder / "made-up.csv", header="", label=-1)
        self.options = ["--protocol", self.protocol, "--datasets", self.rows, "--quiet"]
        self.options += ["--trials", size[0], "--jobs", size[1], "--methods", *size[2]]
        begin = time.monotonic()
        self.whole = self.new_folder()
        status, errors = ended(self.start(self.whole))
        if status or errors:
            raise SystemExit(f"the undisturbed run failed: {errors}")
        self.seconds = time.monotonic() - begin
        self.truth = finished(self.whole)

    def new_folder(self) -> Path:
        """Return a results folder that does not exist yet."""
        self.count += 1
        return self.folder / f"run{self.count}"

    def start(self, out: Path, *more: object, **popen: object) -> subprocess.Popen:
        """Start the run into a folder, in a session of its own."""
        command = (*self.options, *more, "--out", out)
        # To a file: workers that outlive their parent would keep a pipe open.
        log = open(self.folder / "stderr", "w+", encoding="utf-8")  # noqa: SIM115
        os.unlink(log.name)
        process = start("table1.py", *command, stderr=log, **popen)
        process.log = log
        return process

    def moment(self) -> float:
        """Return some moment of a run, in seconds from its start."""
        return float(self.rng.uniform(0.0, self.seconds))

    def lost(self, out: Path, before: set[tuple] | None = None) -> str:
        """Say what is wrong with the trials of a folder, if anything.

        With `before`, those trials must still be there; others may be missing.
        """
        try:
            found = finished(out)
        except StoreError as error:
            return str(error)
        if found - self.truth:
            return f"{out.name}: a trial differs from that of the undisturbed run"
        least = self.truth if before is None else before
        return f"{out.name}: a trial is lost" if least - found else ""

    def resumed(self, out: Path) -> str:
        """Run what is missing undisturbed; say what is wrong with the result."""
        status, errors = ended(self.start(out))
        return errors or (f"status {status}" if status else "") or self.lost(out)


def ended(process: subprocess.Popen, seconds: float = 900) -> tuple[int, str]:
    """Wait for a run; return its exit status and what it printed on standard error."""
    with process.log as log:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.wait(), f"did not end within {seconds:g} seconds"
        log.seek(0)
        return process.returncode, log.read().strip()


def finished(out: Path) -> set[tuple]:
    """Return the trials of a folder, none if it has no file of them yet."""
    if not (out / "sets").exists() and not (out / "trials.csv").exists():
        return set()
    # None for NaN, because no NaN equals another.
    found = rows(out).itertuples(index=False, name=None)
    return {tuple(None if value != value else value for value in row) for row in found}


def not_one_line(status: int, errors: str, about: str) -> str:
    """Say in which way a failure was not one clear line."""
    clear = status == 2 and errors.startswith("error: ") and "\n" not in errors and about in errors
    return "" if clear else f"status {status}, expected one line about {about!r}: {errors}"


def kills(bench: Bench, count: int) -> Tries:
    """Kill -9 at random moments, the whole group or the main process only, and resume."""
    made, out, hurt, orphans = 0, bench.new_folder(), [], []
    while made < count:
        before = finished(out)
        process = bench.start(out)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(bench.moment())
        if process.poll() is None:
            made += 1
            if bench.rng.random() < 0.5:
                os.killpg(process.pid, signal.SIGKILL)
            else:  # its workers are at work while the next run resumes
                process.kill()
                orphans.append(process.pid)
            _, errors = ended(process)
            hurt.append(errors or bench.lost(out, before))
        else:
            end = ended(process)[1] or bench.lost(out)
            yield from (problem or end for problem in hurt)
            out, hurt = bench.new_folder(), []
    end = bench.resumed(out)
    yield from (problem or end for problem in hurt)
    for group in orphans:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def full_disks(bench: Bench, count: int) -> Tries:
    """Limit the size of files, which fails in the same calls as a full disk, lift it, resume."""
    largest = max(file.stat().st_size for file in bench.whole.rglob("*"))
    for _ in range(count):
        out = bench.new_folder()
        # At least what the error message takes.
        limit = int(bench.rng.integers(512, largest)), resource.RLIM_INFINITY

        def set_limit(limit: tuple[int, int] = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)

        status, errors = ended(bench.start(out, "--jobs", 1, preexec_fn=set_limit))
        problem = not_one_line(status, errors, os.strerror(errno.EFBIG)) if status else ""
        yield problem or bench.resumed(out)


def signals(bench: Bench, count: int) -> Tries:
    """Send SIGTERM to a run at work, or SIGHUP or SIGINT to its whole group, and resume."""
    for number in range(count):
        sent = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)[number % 3]
        send = os.kill if sent == signal.SIGTERM else os.killpg
        out = bench.new_folder()
        process = bench.start(out)
        wait_for(lambda out=out: (out / "run.json").exists(), process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(bench.moment() / 2)
        running = process.poll() is None
        if running:
            send(process.pid, sent)
        status, errors = ended(process, 60)
        # Once all is written and the interpreter ends, a signal has its usual effect.
        known = [(128 + sent, 2), (-sent, 0), (0, 0)] if running else [(0, 0)]
        good = (status, len(errors.splitlines())) in known
        problem = "" if good else f"{sent.name}: status {status}: {errors}"
        problem = problem or (bench.lost(out) if status == -sent else "")
        with contextlib.suppress(ProcessLookupError):  # raised when nobody is left
            for _ in range(100):
                os.killpg(process.pid, 0)
                time.sleep(0.1)
            problem = problem or "a worker is left"
        if list(out.rglob("*.tmp")):
            problem = problem or "a temporary file is left"
        yield problem or bench.lost(out, finished(out)) or bench.resumed(out)


def dask_workers(bench: Bench, count: int) -> Tries:
    """Kill one of two Dask workers at a random moment; the run must not notice."""
    folder = bench.folder / "workers"
    folder.mkdir()
    with Cluster(folder, workers=2) as cluster:
        for _ in range(count):
            out = bench.new_folder()
            process = bench.start(out, "--cluster", cluster.address)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(bench.moment())
            cluster.workers.pop(0).kill()
            cluster.add_worker()
            status, errors = ended(process)
            yield errors or (f"status {status}" if status else "") or bench.lost(out)


def dask_schedulers(bench: Bench, count: int) -> Tries:
    """Kill the Dask scheduler at a random moment; the run ends and goes on with another."""
    for number in range(count):
        out = bench.new_folder()
        folder = bench.folder / f"scheduler{number}"
        folder.mkdir()
        with Cluster(folder, workers=1) as cluster:
            process = bench.start(out, "--cluster", cluster.address)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(bench.moment())
            cluster.scheduler.kill()
            status, errors = ended(process)
        problem = not_one_line(status, errors, "") if status else errors
        yield problem or bench.lost(out, finished(out)) or bench.resumed(out)


# Title, how often at most, how often in the short form.
KINDS = {
    kills: ("kill -9 at a random moment, resume", 50, 1),
    signals: ("SIGTERM, SIGHUP, SIGINT, resume", 12, 1),
    full_disks: ("writes that fail, resume with room", 10, 1),
    dask_workers: ("Dask worker killed", 5, 1),
    dask_schedulers: ("Dask scheduler killed, resume", 3, 1),
}


def main(argv: list[str] | None = None) -> int:
    """Run the campaign and print the tally."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of moments and places (default: 0)")
    parser.add_argument("--short", action="store_true", help="a few tries of each kind")
    names = [kind.__name__ for kind in KINDS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these kinds")
    options = parser.parse_args(argv)
    total = [0, 0, 0]
    print(f"{'fault':40}{'tried':>7}{'survived':>10}{'lost':>6}", flush=True)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        bench = Bench(Path(folder), options.seed, options.short)
        for kind, (title, count, few) in KINDS.items():
            if kind.__name__ not in options.only:
                continue
            outcomes = list(kind(bench, few if options.short else count))
            lost = [outcome for outcome in outcomes if outcome]
            for problem in lost:
                print(f"lost: {title}: {problem}", file=sys.stderr)
            counts = len(outcomes), len(outcomes) - len(lost), len(lost)
            total = [sum(pair) for pair in zip(total, counts)]
            _print_line(title, *counts)
    _print_line("all", *total)
    return 1 if total[2] else 0


def _print_line(title: str, tried: int, survived: int, lost: int) -> None:
    print(f"{title:40}{tried:7}{survived:10}{lost:6}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
