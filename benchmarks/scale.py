"""Time and memory of fits and predictions on a Dask cluster of this machine, as rows grow.

Usage: python benchmarks/scale.py        (--help lists the options)

Rows are made up where they are needed, so that nothing but the cluster is measured: two Gaussian
classes in ten features, 500 positives in memory and n unlabelled rows in partitions of 100,000.
uLSIF has 100 centres and one width. Workers have one thread each. First, rows are written as
Parquet, fitted by two workers with uLSIF's own defaults, and compared with the fit in memory.
Figures go to scale.json.
"""

import argparse
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from pu_shift import DensityRatioClassifier

RESULTS = Path(__file__).with_name("scale.json")
FEATURES, CENTRES, PARTITION, PRIOR = 10, 100, 100_000, 0.3
# What a cluster of many workers is reckoned for.
WORKERS, BILLIONS = (10, 100), (10**9, 10**10)


def rows(n, prior, seed):
    """Make rows of which a share is positive."""
    rng = np.random.default_rng(seed)
    means = np.where(rng.random((n, 1)) < prior, 0.5, -0.5)
    return means + rng.standard_normal((n, FEATURES))


def partition(first, n):
    """Make the unlabelled rows of one partition."""
    return rows(min(PARTITION, n - first), PRIOR, [1, first])


def dask_rows(n):
    """Return n unlabelled rows as a Dask array, whose partitions are made by the workers."""
    import dask.array as da
    from dask import delayed

    parts = [
        da.from_delayed(
            delayed(partition)(first, n), (min(PARTITION, n - first), FEATURES), np.float64
        )
        for first in range(0, n, PARTITION)
    ]
    return da.concatenate(parts)


def classifier():
    """Return uLSIF with one width, which is near what the median gives."""
    return DensityRatioClassifier(PRIOR, 0.5, n_centers=CENTRES, widths=4.0, lams=0.1)


class Cluster:
    """A scheduler and workers of one thread on the loopback address."""

    def __init__(self, n_workers):
        self.folder, self.processes = tempfile.mkdtemp(), []
        file = Path(self.folder, "scheduler.json")
        self.start("dask_scheduler", "--port", "0", "--scheduler-file", str(file))
        while not (file.exists() and file.read_text(encoding="utf-8")):
            time.sleep(0.05)
        self.address = json.loads(file.read_text(encoding="utf-8"))["address"]
        for _ in range(n_workers):
            options = ("--nthreads", "1", "--no-nanny", "--memory-limit", "0")
            self.start("dask_worker", self.address, *options)

    def start(self, module, *arguments):
        """Start a process of the cluster."""
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
        command += ["--host", "127.0.0.1", "--no-dashboard"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # As Dask's nannies set it.
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(command, cwd=self.folder, env=environment, **quiet)
        self.processes.append(process)

    def __enter__(self):
        from distributed import Client

        self.client = Client(self.address)
        self.client.wait_for_workers(len(self.processes) - 1)
        self.client.upload_file(__file__)
        return self.client

    def __exit__(self, *_):
        self.client.close()
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder)


def usage():
    """Return CPU seconds and peak megabytes of this process so far."""
    spent = time.process_time()
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return spent, int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 1024


def measured(n_workers, action):
    """Do something on a new cluster; return the result, and what it took all workers."""
    with Cluster(n_workers) as client:
        client.run(rows, 10, 0.5, 0)  # imports what is needed
        before = client.run(usage)
        start = time.monotonic()
        result = action(client)
        seconds = time.monotonic() - start
        after = client.run(usage)
        cpu = sum(after[name][0] - before[name][0] for name in after)
        return result, {
            "workers": n_workers,
            "seconds": round(seconds, 2),
            "cpu": round(cpu, 2),
            "start_mb": round(max(peak for _, peak in before.values())),
            "peak_mb": round(max(peak for _, peak in after.values())),
        }


def growth(counts, n_workers):
    """Yield figures of fits and predictions of so many rows."""
    positives = rows(500, 1.0, 0)
    for n in counts:
        fitted, figures = measured(
            n_workers, lambda _, n=n: classifier().fit_pu(positives, dask_rows(n))
        )
        yield {"what": "fit", "rows": n, **figures}
        share, figures = measured(
            n_workers,
            lambda _, n=n, fitted=fitted: float(
                (fitted.predict(dask_rows(n)) == 1).mean().compute()
            ),
        )
        yield {"what": "predict", "rows": n, **figures, "positive": round(share, 4)}


def parquet(n, folder):
    """Write rows as Parquet, fit them by two workers and in memory, and compare."""
    import dask.dataframe as dd
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{i}" for i in range(FEATURES)]
    path = Path(folder, "rows")
    path.mkdir()
    for first in range(0, n, 10 * PARTITION):
        starts = range(first, min(first + 10 * PARTITION, n), PARTITION)
        block = np.concatenate([partition(start, n) for start in starts])
        table = pa.table(dict(zip(names, block.T)))
        pq.write_table(table, path / f"{first:012}.parquet", row_group_size=PARTITION)
    import pandas as pd

    positives = pd.DataFrame(rows(500, 1.0, 0), columns=names)
    new = DensityRatioClassifier(PRIOR, 0.5, estimator="ulsif")
    on_cluster, figures = measured(
        2,
        lambda _: copy.copy(new).fit_pu(positives, dd.read_parquet(path, split_row_groups=True)),
    )
    alone = new.fit_pu(positives, pd.read_parquet(path))
    probe = pd.DataFrame(rows(10_000, 0.5, 7), columns=names)
    ratios = [fitted.predict_ratio(probe) for fitted in (on_cluster, alone)]
    data_mb = n * FEATURES * 8 / 2**20
    return {
        "what": "parquet",
        "rows": n,
        **figures,
        "data_mb": round(data_mb),
        "centers": len(alone.ratio_.centers_),
        "difference": float(np.abs(ratios[0] - ratios[1]).max()),
        "largest": float(np.abs(ratios[1]).max()),
    }


def reckoned(figures):
    """Return seconds for billions of rows on many workers, from CPU seconds per row measured."""
    fits = [row for row in figures if row["what"] == "fit"]
    (disk,) = (row for row in figures if row["what"] == "parquet")
    measured_fits = {
        f"{CENTRES} centres": max(fits, key=lambda row: row["rows"]),
        f"Parquet, {disk['centers']} centres": disk,
    }
    return [
        {
            "fit": name,
            "rows": n,
            "workers": workers,
            "seconds": row["cpu"] / row["rows"] * n / workers,
        }
        for n in BILLIONS
        for name, row in measured_fits.items()
        for workers in WORKERS
    ]


def render(figures):
    """Return the figures as Markdown: growth, one worker against two, Parquet, reckoning."""
    lines = ["| | rows | workers | seconds | CPU µs per row | peak MB of a worker |"]
    lines.append("|---|---|---|---|---|---|")
    for row in figures:
        if row["what"] != "parquet":
            each = 1e6 * row["cpu"] / row["rows"]
            lines.append(
                f"| {row['what']} | {row['rows']:,} | {row['workers']} | {row['seconds']:.1f} "
                f"| {each:.1f} | {row['peak_mb']} |"
            )
    fits = {(row["rows"], row["workers"]): row for row in figures if row["what"] == "fit"}
    (n, alone), *_ = [(n, row) for (n, workers), row in fits.items() if workers == 1]
    gain = alone["seconds"] / fits[n, 2]["seconds"]
    most = max(rows for rows, _ in fits)
    reckoned_seconds = alone["cpu"] / n * most / 2
    (disk,) = (row for row in figures if row["what"] == "parquet")
    lines += [
        "",
        f"Two workers fit {n:,} rows {gain:.2f} times as fast as one. From the CPU time of one "
        f"worker for {n:,} rows, two should take {reckoned_seconds:.0f} s for {most:,}; they took "
        f"{fits[most, 2]['seconds']:.0f} s. A worker needs {disk['start_mb']} MB before it begins.",
        "",
        f"{disk['rows']:,} rows of Parquet, {disk['data_mb']} MB as numbers, were fitted by two "
        f"workers, with uLSIF's own {disk['centers']} centres and grids, in {disk['peak_mb']} MB "
        "each. The ratio differs from that of the fit in memory "
        f"by at most {disk['difference']:.0e}, where it is up to {disk['largest']:.1f}.",
        "",
    ]
    times = reckoned(figures)
    heads = [
        f"{row['fit']}: {row['workers']} workers" for row in times if row["rows"] == BILLIONS[0]
    ]
    lines += ["| rows | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for n in BILLIONS:
        cells = [f"{row['seconds'] / 60:.1f} min" for row in times if row["rows"] == n]
        lines.append(f"| 10^{len(str(n)) - 1} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(argv=None):
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7, 10**8])
    parser.add_argument("--parquet", type=int, default=10**7, help="rows of the Parquet fit")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    figures = []

    def keep(row):
        figures.append(row)
        print(row, flush=True)
        options.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")

    with tempfile.TemporaryDirectory() as folder:
        keep(parquet(options.parquet, folder))
    for row in growth(options.rows[-2:-1], 1):
        keep(row)
    for row in growth(options.rows, 2):
        keep(row)


if __name__ == "__main__":
    main()
