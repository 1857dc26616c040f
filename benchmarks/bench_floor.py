"""How far one AMSGrad step is above its two GEMMs alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bench_training import N_BATCHES, N_P, N_U, STACKS, Problem, Stack
from measure import interleaved

# Of the small stacks Chainer's graph takes most of the time, not the arithmetic.
TARGETS = {"MNIST": 2.0}
N_STEPS = 500


def run(repeats: int) -> list[dict[str, Any]]:
    """Measure whole trainings, all their costs included, against as many pairs of GEMMs.

    Turns of the small ones are short, and short times vary more: they get more of them,
    all in one go, so that a slow spell of the machine meets all alike.
    """
    large = [stack for stack in STACKS if stack.name.startswith("MNIST")]
    small = [stack for stack in STACKS if stack not in large]
    return _measure(large, repeats) + _measure(small, 5 * repeats)


def _measure(stacks: list[Stack], repeats: int) -> list[dict[str, Any]]:
    problems = {stack.name: Problem(stack) for stack in stacks}
    cases: dict[str, Callable[[], Any]] = {}
    for stack in stacks:
        problem = problems[stack.name]
        cases[stack.name] = lambda problem=problem: problem.train(N_STEPS)
        cases[f"GEMMs of {stack.name}"] = _gemms(stack.n_features + 1, len(problem.candidates))
    seconds, _ = interleaved(cases, repeats)
    return [
        {
            "case": f"{stack.name}, {len(problems[stack.name].candidates)} candidates",
            "ours_seconds": seconds[stack.name] / N_STEPS,
            "peer_seconds": seconds[f"GEMMs of {stack.name}"] / N_STEPS,
            "at_most": TARGETS.get(stack.name.split(",")[0]),
            "repeats": repeats,
        }
        for stack in stacks
    ]


def _gemms(n_columns: int, n_candidates: int) -> Callable[[], None]:
    """Return what does the GEMMs of a training, on arrays of its shapes."""
    n, rng = (N_P + N_U) // N_BATCHES, np.random.default_rng(0)
    X, W, slopes = (
        rng.normal(0, 1, shape).astype(np.float32)
        for shape in ((n, n_columns), (n_columns, n_candidates), (n, n_candidates))
    )
    scores, gradient = np.empty_like(slopes), np.empty_like(W)

    def gemms() -> None:
        for _ in range(N_STEPS):
            np.matmul(X, W, out=scores)
            np.matmul(X.T, slopes, out=gradient)

    return gemms
