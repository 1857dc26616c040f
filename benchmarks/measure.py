"""How everything here is timed: side by side, in turn, with one thread each."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits


def interleaved(cases: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each case, the cases taken in turn.

    Every case is run once before, unmeasured. Turns start with another case
    each time, so that a slow spell of the machine meets all alike.

    Parameters
    ----------
    cases
        Name to what is timed.
    repeats
        Number of turns.

    Returns
    -------
    dict
        Name to median seconds.

    Examples
    --------
    >>> sorted(interleaved({"a": int, "b": str}, 3))
    ['a', 'b']
    """
    names = list(cases)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    with threadpool_limits(1):
        for case in cases.values():
            case()
        for turn in range(repeats):
            for place in range(len(names)):
                name = names[(turn + place) % len(names)]
                start = time.perf_counter()
                cases[name]()
                seconds[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in seconds.items()}


def machine() -> dict[str, Any]:
    """Describe the machine and its load, for the record.

    Returns
    -------
    dict
        Processor, cores, versions, and the load average before measuring.

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
            f"{pool['internal_api']} {pool['version']}"
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
