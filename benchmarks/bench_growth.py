"""How time and memory grow with the unlabelled rows and with the candidates.

Each size runs in a process of its own, whose peak memory counts everything:
interpreter, libraries, data and work.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from bench_training import N_P, Problem, Stack
from measure import interleaved

from pu_shift import ULSIF
from pu_shift.ratios.base import GridEdgeWarning
from pu_shift.ratios.kernels import choose_centers, gaussian_kernel

JOBS = (
    *(("uLSIF", n) for n in (2_000, 20_000, 200_000, 2_000_000)),
    *(("Lin", n) for n in (2_000, 20_000, 200_000)),
    *(("Ker", n) for n in (2_000, 20_000, 200_000)),
    *(("candidates", n) for n in (1, 10, 100, 1_000)),
)
N_STEPS, MEMORY_TARGET = 10, 1024.0
WHAT = {
    "uLSIF": ("fit", "predict"),
    "Lin": (f"{N_STEPS} steps of 216 candidates, d 22",),
    "Ker": (f"kernel and {N_STEPS} steps of 54 candidates, 100 centres",),
    "candidates": (f"{N_STEPS} steps, n_u 2,000, d 784",),
}


def run(repeats: int) -> list[dict[str, Any]]:
    """Measure each size in a fresh process."""
    rows = []
    for kind, n in JOBS:
        # Long runs need no repeats.
        times = repeats if n <= 20_000 else 1
        command = [sys.executable, __file__, kind, str(n), str(times)]
        rows += json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return rows


def job(kind: str, n: int, repeats: int) -> list[dict[str, Any]]:
    """Measure one size in this process."""
    cases = {"uLSIF": _ulsif, "Lin": _lin, "Ker": _ker, "candidates": _candidates}[kind](n)
    seconds, _ = interleaved(dict(zip(WHAT[kind], cases)), repeats)
    # Linux keeps the peak of a process in VmHWM; ru_maxrss would count the parent's too.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 1024.0
    return [
        {
            "kind": kind,
            "what": what,
            "n": n,
            "seconds": seconds[what],
            "peak_mib": peak,
            "repeats": repeats,
            "at_most_mib": MEMORY_TARGET if kind == "uLSIF" else None,
        }
        for what in WHAT[kind]
    ]


def _ulsif(n: int) -> tuple[Any, Any]:
    warnings.simplefilter("ignore", GridEdgeWarning)
    rng = np.random.default_rng(0)
    X_p = rng.standard_normal((N_P, 10), dtype=np.float32) + np.float32(0.5)
    X_u = rng.standard_normal((n, 10), dtype=np.float32)
    widths = np.array([1.0, 2.0, 4.0, 8.0])
    ratio = ULSIF(X_p, X_u[:2000], widths=widths)
    return lambda: ULSIF(X_p, X_u, widths=widths).width_, lambda: ratio(X_u).shape


def _lin(n: int) -> tuple[Any]:
    problem = Problem(Stack("", 22, 3, 12, "squared"), n)
    return (lambda: problem.train(N_STEPS).shape,)


def _ker(n: int) -> tuple[Any]:
    problem = Problem(Stack("", 10, 3, 3, "squared"), n)
    rows = problem.rows
    centers = choose_centers(*rows)

    def train() -> None:
        problem.rows = tuple(gaussian_kernel(part, centers, 4.0) for part in rows)
        problem.train(N_STEPS)

    return (train,)


def _candidates(n: int) -> tuple[Any]:
    problem = Problem(Stack("", 784, 1, n, "squared"))
    # One model for each λ, without folds.
    problem.candidates = [item for item in problem.candidates if item[2] == -1]
    problem.conditions = problem.conditions[:n]
    problem.lams = np.array([lam for _, lam, _ in problem.candidates])
    problem.fold_weights = (None, None)
    return (lambda: problem.train(N_STEPS).shape,)


if __name__ == "__main__":
    print(json.dumps(job(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
