#!/usr/bin/env python3
"""Feed the file parsers made-up bytes, guided by coverage (atheris), a fixed number of times.

Each parser runs in a process of its own that fails when anything but the
promised error comes out, when one input takes longer than 10 seconds, or when
the memory grows beyond 2 GB. Exit status 1 if any parser failed.

Usage: python tools/fuzz.py [RUNS]        (default: 20000 per parser)
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["pu_shift.data", "pu_shift.files.models", "pu_shift.files.tables"]
):
    import numpy as np

    from pu_shift import DensityRatioClassifier
    from pu_shift.data import load_file, parsers
    from pu_shift.files.models import load_model, save_model
    from pu_shift.files.tables import read_blocks
    from pu_shift.paper.protocol import load_protocol
    from pu_shift.paper.store import TrialStore, read_trials

TABLE = b"a,b,kind\n1.5,2,1\n2.5,3,0\n-1e3,0.25,1\n"
KEEL = b"@relation x\n@attribute a real\n@data\n1.0, 2.0, 1\n3.0, 4.0, 0\n"
LIBSVM = b"+1 1:2 3:4.5\n-1 2:1e-3\n"


def model_seed(folder: Path) -> bytes:
    """Return the content of a model file."""
    rng = np.random.default_rng(0)
    classifier = DensityRatioClassifier(0.4, widths=1.0, lams=0.1, n_centers=3)
    save_model(folder / "seed", classifier.fit_pu(rng.normal(size=(9, 1)), rng.normal(size=(9, 1))))
    return (folder / "seed").read_bytes()


def trials_seed(folder: Path) -> bytes:
    """Return the content of a ``trials.csv``."""
    row = {"table": 1, "prior": 0.3, "test_prior": 0.5, "given_prior": 0.5, "dataset": "banana"}
    row.update(method="DH-Lin", trial=0, accuracy=52.2, lam=0.01, seconds=1.5)
    with TrialStore(folder / "run", {"protocol": {}, "seed": 0}) as store:
        store.append([row, {**row, "trial": 1}])
    return (folder / "run" / "trials.csv").read_bytes()


def from_file(read: Callable[[Path], object], name: str) -> Callable[[Path], Callable]:
    """Return a maker of a function of bytes that reads them from a file."""

    def make(folder: Path) -> Callable[[bytes], object]:
        def parse(content: bytes) -> object:
            (folder / name).write_bytes(content)
            return read(folder / name)

        return parse

    return make


# Parser of bytes (made for a scratch folder), and sound inputs to start from.
TARGETS = {
    "parse_table": (lambda _: parsers.parse_table, [TABLE, TABLE.replace(b",", b"\t"), KEEL]),
    "parse_libsvm": (lambda _: parsers.parse_libsvm, [LIBSVM]),
    "parse_idx": (lambda _: parsers.parse_idx, [b"\0\0\x08\x02\0\0\0\x02\0\0\0\x01ab"]),
    "load_file": (from_file(load_file, "data"), [TABLE, KEEL, LIBSVM]),
    "read_blocks": (
        from_file(lambda path: list(read_blocks(str(path), ["a", "b"], 2)), "rows.csv"),
        [TABLE, TABLE.replace(b",", b";"), b'a,b\n"1","2"\n,x\n'],
    ),
    "load_protocol": (from_file(load_protocol, "protocol.json"), [b'{"risk_lams": [0.0, 1]}']),
    "load_model": (from_file(load_model, "model.npz"), [model_seed]),
    "read_trials": (
        from_file(lambda path: read_trials(path.parent), "trials.csv"),
        [trials_seed],
    ),
}


def fuzz(name: str, runs: int) -> None:
    """Fuzz one parser in this process; it ends the process."""
    make, seeds = TARGETS[name]
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds):
        (corpus / str(number)).write_bytes(seed(folder) if callable(seed) else seed)
    scratch = folder / "scratch"
    scratch.mkdir()
    parse = make(scratch)

    def one_input(content: bytes) -> None:
        try:
            parse(content)
        except ValueError as error:
            if "\n" in str(error):
                raise RuntimeError(f"more than one line: {error}") from error

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    limits = ["-max_len=4096", "-timeout=10", "-rss_limit_mb=2048", "-verbosity=0", "-seed=1"]
    artifacts = f"-artifact_prefix={folder}{os.sep}"
    atheris.Setup([name, f"-runs={runs}", *limits, artifacts, str(corpus)], one_input)
    atheris.Fuzz()


def main(argv: list[str]) -> int:
    """Fuzz every parser, each in a process of its own, and print what came of it."""
    if len(argv) == 3:
        fuzz(argv[1], int(argv[2]))
    runs = int(argv[1]) if len(argv) > 1 else 20000
    failed = 0
    print(f"{'parser':16}{'runs':>8}  outcome", flush=True)
    for name in TARGETS:
        done = subprocess.run(
            [sys.executable, __file__, name, str(runs)], capture_output=True, text=True, check=False
        )
        failed += done.returncode != 0
        print(f"{name:16}{runs:8}  {'failed' if done.returncode else 'nothing found'}", flush=True)
        if done.returncode:
            print(done.stdout + done.stderr, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
