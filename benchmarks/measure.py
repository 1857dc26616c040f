"""How everything here is timed: side by side, in turn, with one thread each."""

from __future__ import annotations

import os
import platform
import time
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits


class Measured(NamedTuple):
    """What a case took, and what it returned the first time."""

    seconds: float
    peak_mb: float
    result: Any


def interleaved(cases: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, Measured]:
    """Return the median CPU seconds of each case, the cases taken in turn.

    Before, every case runs once, which shows the memory that it takes beside what is there. Turns
    start with another case each time, so that a slow spell of the machine meets all alike. With
    one thread, CPU time is what the clock shows on an idle machine.

    Examples
    --------
    >>> interleaved({"a": int, "b": str}, 3)["a"].result
    0
    """
    names = list(cases)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    peaks, results = {}, {}
    with threadpool_limits(1):
        for name, case in cases.items():
            tracemalloc.start()
            results[name] = case()
            peaks[name] = tracemalloc.get_traced_memory()[1] / 2**20
            tracemalloc.stop()
        for turn in range(repeats):
            for place in range(len(names)):
                name = names[(turn + place) % len(names)]
                start = time.process_time()
                cases[name]()
                seconds[name].append(time.process_time() - start)
    return {
        name: Measured(float(np.median(seconds[name])), peaks[name], results[name])
        for name in names
    }


def machine() -> dict[str, Any]:
    """Describe the machine and its load, for the record.

    Examples
    --------
    >>> machine()["cores"] >= 1
    True
    """
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    blas = sorted(
        {
            f"{pool['internal_api']} {pool['version']} ({pool.get('architecture', 'unknown')})"
            for pool in threadpool_info()
            if pool["user_api"] == "blas"
        }
    )
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": ", ".join(blas),
    }
