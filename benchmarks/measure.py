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


def interleaved(
    cases: Mapping[str, Callable[[], Any]], repeats: int
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the median CPU seconds of each case, the cases taken in turn.

    Every case is run once before, unmeasured. Turns start with another case
    each time, so that a slow spell of the machine meets all alike. With one
    thread, CPU time is what the clock shows on an idle machine.

    Parameters
    ----------
    cases
        Name to what is timed.
    repeats
        Number of turns.

    Returns
    -------
    seconds, results : dict
        Name to median seconds, and to what the case returned the first time.

    Examples
    --------
    >>> interleaved({"a": int, "b": str}, 3)[1]
    {'a': 0, 'b': ''}
    """
    names = list(cases)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    with threadpool_limits(1):
        results = {name: case() for name, case in cases.items()}
        for turn in range(repeats):
            for place in range(len(names)):
                name = names[(turn + place) % len(names)]
                start = time.process_time()
                cases[name]()
                seconds[name].append(time.process_time() - start)
    return {name: float(np.median(values)) for name, values in seconds.items()}, results


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
