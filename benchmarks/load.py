"""Time and peak memory of `pu-shift predict` on files of 10⁵, 10⁶ and 10⁷ rows.

Usage: python benchmarks/load.py        (--help lists the options)

Each file is made, classified by a process of its own and deleted. Peak memory
is the process's largest resident set, as Linux accounts it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from pu_shift import DensityRatioClassifier
from pu_shift.model_file import save_model

BLOCK = 100_000
# The command, and then what it took: Linux keeps the peak of a process in VmHWM. (That of
# getrusage would begin with the memory of the process that started it.)
CHILD = """
import re, resource, sys
from pu_shift.cli import main
code = main(sys.argv[1:])
usage = resource.getrusage(resource.RUSAGE_SELF)
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read()).group(1)) / 1024
print(usage.ru_utime + usage.ru_stime, peak)
sys.exit(code)
"""


def main(argv=None):
    """Print a row of figures per file, and how they grow."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--features", type=int, default=10, help="columns (default: 10)")
    parser.add_argument("--kinds", nargs="+", choices=("csv", "npy"), default=["csv", "npy"])
    parser.add_argument("--folder", help="where the files go (default: a temporary folder)")
    options = parser.parse_args(argv)
    print(f"{options.features} features, uLSIF with 100 centres; {os.cpu_count()} cores\n")
    print("| file | rows | MB in | MB out | seconds | CPU s | rows per CPU s | peak MB |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        model = Path(folder, "model.npz")
        fit(model, options.features)
        for kind in options.kinds:
            figures = [measure(Path(folder), model, kind, n, options) for n in options.rows]
            if len(figures) > 1:
                seconds, cpu, peak = (last / first for first, last in zip(figures[0], figures[-1]))
                print(
                    f"| {kind}, last/first | ×{options.rows[-1] / options.rows[0]:g} | | "
                    f"| ×{seconds:.1f} | ×{cpu:.1f} | | ×{peak:.2f} |",
                    flush=True,
                )


def fit(path, n_features):
    """Save a classifier of rows with columns x0, x1, and so on."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(n_features)]
    X = np.concatenate([rng.normal(m, 1.0, (n, n_features)) for m, n in ((0.5, 800), (-0.5, 700))])
    y = np.repeat([1, 0], [500, 1000])
    save_model(path, DensityRatioClassifier(0.3).fit(pd.DataFrame(X, columns=names), y))


def write_rows(path, n, n_features):
    """Write n random rows, as CSV or .npy, block by block."""
    rng = np.random.default_rng(1)
    blocks = (
        rng.normal(0.0, 1.0, (min(BLOCK, n - start), n_features)) for start in range(0, n, BLOCK)
    )
    if path.suffix == ".npy":
        header = {"descr": "<f8", "fortran_order": False, "shape": (n, n_features)}
        with open(path, "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks:
                file.write(block.tobytes())
        return
    line = ",".join(["%.5f"] * n_features) + "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(f"x{i}" for i in range(n_features)) + "\n")
        for block in blocks:
            file.writelines(map(line.__mod__, map(tuple, block.tolist())))


def measure(folder, model, kind, n, options):
    """Make a file, classify it, print a row, and return seconds, CPU seconds and peak MB."""
    data, out = folder / f"rows.{kind}", folder / "out.csv"
    write_rows(data, n, options.features)
    start = time.monotonic()
    command = [sys.executable, "-c", CHILD, "predict", str(model), str(data), "--out", str(out)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds = time.monotonic() - start
    cpu, peak = map(float, child.stdout.split()[-2:])
    with open(out, "rb") as file:
        lines = sum(1 for _ in file)
    if lines != n + 1:
        raise SystemExit(f"predict failed: {lines} lines for {n} rows")
    sizes = (path.stat().st_size / 1e6 for path in (data, out))
    print(
        f"| {kind} | {n:,} | {' | '.join(f'{size:,.0f}' for size in sizes)} "
        f"| {seconds:.1f} | {cpu:.1f} | {n / cpu:,.0f} | {peak:.0f} |",
        flush=True,
    )
    data.unlink()
    out.unlink()
    return seconds, cpu, peak


if __name__ == "__main__":
    main()
