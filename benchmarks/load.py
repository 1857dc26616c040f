"""Time and peak memory of `pu-shift predict` on files of 10⁵, 10⁶ and 10⁷ rows.

Usage: python benchmarks/load.py        (--help lists the options)

Each file is made, classified by a process of its own and deleted. Peak memory
is the process's largest resident set, as Linux accounts it. Figures go to load.json.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from pu_shift import DensityRatioClassifier
from pu_shift.files.models import save_model

RESULTS = Path(__file__).with_name("load.json")
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
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--features", type=int, default=10, help="columns (default: 10)")
    parser.add_argument("--kinds", nargs="+", choices=("csv", "npy"), default=["csv", "npy"])
    parser.add_argument("--folder", help="where the files go (default: a temporary folder)")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    figures = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        model = Path(folder, "model.npz")
        fit(model, options.features)
        for kind in options.kinds:
            for n in options.rows:
                figures.append(measure(Path(folder), model, kind, n, options.features))
                print(figures[-1], flush=True)
    options.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(render(figures))


def render(figures):
    """Return the figures as Markdown: a row per file, and how they grow."""
    lines = ["| file | rows | MB in | MB out | seconds | CPU s | rows per CPU s | peak MB |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for kind in dict.fromkeys(row["kind"] for row in figures):
        rows = [row for row in figures if row["kind"] == kind]
        lines += [
            f"| {kind} | {row['rows']:,} | {row['mb_in']:,.0f} | {row['mb_out']:,.0f} "
            f"| {row['seconds']:.1f} | {row['cpu']:.1f} | {row['rows'] / row['cpu']:,.0f} "
            f"| {row['peak_mb']:.0f} |"
            for row in rows
        ]
        times = {name: rows[-1][name] / rows[0][name] for name in rows[0] if name != "kind"}
        lines.append(
            f"| {kind}, last/first | ×{times['rows']:g} | | | ×{times['seconds']:.1f} "
            f"| ×{times['cpu']:.1f} | | ×{times['peak_mb']:.2f} |"
        )
    return "\n".join(lines)


def fit(path, n_features):
    """Save uLSIF with 100 centres, of rows with columns x0, x1, and so on."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(n_features)]
    X = np.concatenate([rng.normal(m, 1.0, (n, n_features)) for m, n in ((0.5, 800), (-0.5, 700))])
    y = np.repeat([1, 0], [500, 1000])
    classifier = DensityRatioClassifier(0.3, n_centers=100)
    save_model(path, classifier.fit(pd.DataFrame(X, columns=names), y))


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


def measure(folder, model, kind, n, n_features):
    """Make a file, classify it, and return what that took."""
    data, out = folder / f"rows.{kind}", folder / "out.csv"
    write_rows(data, n, n_features)
    start = time.monotonic()
    command = [sys.executable, "-c", CHILD, "predict", str(model), str(data), "--out", str(out)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds = time.monotonic() - start
    cpu, peak = map(float, child.stdout.split()[-2:])
    with open(out, "rb") as file:
        lines = sum(1 for _ in file)
    if lines != n + 1:
        raise SystemExit(f"predict failed: {lines} lines for {n} rows")
    mb_in, mb_out = (round(path.stat().st_size / 1e6, 1) for path in (data, out))
    data.unlink()
    out.unlink()
    took = {"seconds": round(seconds, 2), "cpu": round(cpu, 2), "peak_mb": round(peak, 1)}
    return {"kind": kind, "rows": n, "mb_in": mb_in, "mb_out": mb_out, **took}


if __name__ == "__main__":
    main()
