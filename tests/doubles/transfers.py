"""Count what crosses between host and device when one training set is run with --gpu 0.

Usage: python tests/doubles/transfers.py        (--json prints every crossing)

Six methods, three given priors and two test sets, on the stand-in for CuPy
that lies beside this file.
"""

import json
import sys

import cupy
import numpy as np

from pu_shift.paper.protocol import Protocol
from pu_shift.paper.runner import Task, run_task
from pu_shift.paper.settings import METHODS, Block

BLOCKS = (Block(0.3, 0.5, 0.5), Block(0.3, 0.5, 0.4), Block(0.3, 0.7, 0.7))


def main():
    """Run the task on both devices and report."""
    task = Task("banana", None, 0.3, 0, BLOCKS, METHODS)
    # λ far apart, so that rounding cannot decide between two of them.
    lams = (0.0, 10.0)
    protocol = Protocol(n_steps=10, n_batches=2, risk_lams=lams)
    results = [run_task(task, protocol, 0, gpu) for gpu in (-1, 0)]
    for row in (row for rows in results for row in rows):
        del row["seconds"]
        row.update((key, str(value)) for key, value in row.items())
    cpu, gpu = results
    if "--json" in sys.argv:
        print(json.dumps({"cpu": cpu, "gpu": gpu, "crossings": cupy.crossings}))
        return
    print(f"results equal to the CPU's: {sum(map(dict.__eq__, cpu, gpu))} of {len(cpu)}")
    for place in ("device", "host"):
        crossings = [crossing for crossing in cupy.crossings if crossing.to == place]
        size = sum(np.prod(item.shape) * np.dtype(item.dtype).itemsize for item in crossings)
        repeated = len(crossings) - len({crossing.source for crossing in crossings})
        print(
            f"to the {place}: {len(crossings)} arrays, {size / 1e3:.0f} kB, "
            f"{repeated} of them moved before"
        )
    print(f"single numbers read by the host: {len(cupy.scalar_reads)}")


if __name__ == "__main__":
    main()
