"""Draws of P, U and test sets with given class priors."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pu_shift import _checks
from pu_shift.data.dataset import DataError, Dataset

COUNTS = ("exact", "binomial")
_UNIT = 10**9  # priors are taken to nine decimals, so that 0.3 and 0.1 + 0.2 are one


@dataclass(frozen=True, eq=False)
class Draw:
    """One training set and the test sets that go with it, rows in random order."""

    positives: np.ndarray  # P, (n_p, d)
    unlabeled: np.ndarray  # U, (n_u, d)
    unlabeled_labels: np.ndarray  # for diagnosis only: no method may see them
    tests: dict[float, tuple[np.ndarray, np.ndarray]]  # features and labels, by test prior
    seed: np.random.SeedSequence  # drew P and U; its children seed what is random in fitting


def draw(
    dataset: Dataset,
    prior: float,
    test_prior: float | Sequence[float],
    n_p: int = 500,
    n_u: int = 2000,
    n_test: int = 500,
    seed: int = 0,
    trial: int = 0,
    counts: str = "exact",
) -> Draw:
    """Draw P from the positives, U with prior π, and test sets with priors π′.

    Rows are drawn without replacement: no row is in two of P, U and a test set (but cod-rna
    and magic have rows that equal others). Several test sets may share rows, being used one
    at a time. P and U depend on the dataset's name, `prior`, `n_p`, `n_u`, `seed`, `trial` and
    `counts` alone, and a test set on these, `n_test` and its own prior: asking for other trials
    or test priors changes nothing. With `counts` "exact", ``prior * n`` rows of U and of each
    test set are positive (halves rounded up), with "binomial" a binomial number of them.
    """
    if not isinstance(dataset, Dataset):
        raise ValueError(f"dataset must be a Dataset, got {_checks.shown(dataset)}")
    prior = _checks.open_unit("prior", prior)
    n_p, n_u, n_test = (
        _checks.positive_int(name, value)
        for name, value in (("n_p", n_p), ("n_u", n_u), ("n_test", n_test))
    )
    _checks.one_of("counts", counts, COUNTS)
    test_priors = [
        _checks.open_unit("test_prior", value)
        for value in np.atleast_1d(np.asarray(test_prior, dtype=object))
    ]
    entropy = [
        _checks.positive_int("seed", seed, least=0),
        # Python's own hash of a string differs from run to run.
        int.from_bytes(hashlib.sha256(dataset.name.lower().encode()).digest()[:8], "big"),
        _fixed(prior),
        _checks.positive_int("trial", trial, least=0),
    ]

    training_seed = np.random.SeedSequence(entropy)
    generator = np.random.default_rng(training_seed)
    u_positives = _count(n_u, prior, counts, generator)
    positive_rows = generator.permutation(np.flatnonzero(dataset.y == 1))
    negative_rows = generator.permutation(np.flatnonzero(dataset.y == -1))
    _require(dataset, +1, {"P": n_p, "U": u_positives})
    _require(dataset, -1, {"U": n_u - u_positives})
    p_rows, u_rows, positive_rest = np.split(positive_rows, [n_p, n_p + u_positives])
    u_negatives, negative_rest = np.split(negative_rows, [n_u - u_positives])
    u_rows = generator.permutation(np.concatenate([u_rows, u_negatives]))

    tests = {}
    for value in test_priors:
        # A stream of its own for each test set; the length tells it from the first.
        generator = np.random.default_rng(np.random.SeedSequence([*entropy, _fixed(value)]))
        test_positives = _count(n_test, value, counts, generator)
        _require(dataset, +1, {"P": n_p, "U": u_positives, "a test set": test_positives})
        _require(dataset, -1, {"U": len(u_negatives), "a test set": n_test - test_positives})
        rows = np.concatenate(
            [
                generator.choice(positive_rest, test_positives, replace=False),
                generator.choice(negative_rest, n_test - test_positives, replace=False),
            ]
        )
        tests[value] = _take(dataset, generator.permutation(rows))

    unlabeled, unlabeled_labels = _take(dataset, u_rows)
    return Draw(_take(dataset, p_rows)[0], unlabeled, unlabeled_labels, tests, training_seed)


def _fixed(prior: float) -> int:
    return round(prior * _UNIT)


def _count(n: int, prior: float, counts: str, generator: np.random.Generator) -> int:
    if counts == "binomial":
        return int(generator.binomial(n, prior))
    return (2 * n * _fixed(prior) + _UNIT) // (2 * _UNIT)


def _require(dataset: Dataset, sign: int, needed: dict[str, int]) -> None:
    available, total = int((dataset.y == sign).sum()), sum(needed.values())
    if total > available:
        kind = "positive" if sign > 0 else "negative"
        parts = " + ".join(f"{count} for {what}" for what, count in needed.items())
        raise DataError(
            f"{dataset.name} has {available} {kind} rows, the draw needs {total}: {parts}; "
            "n_p, n_u and n_test, --sizes of experiments/custom.py, are the sizes"
        )


def _take(dataset: Dataset, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    X = np.ascontiguousarray(dataset.X[rows], dtype=np.float32)
    return X, np.ascontiguousarray(dataset.y[rows], dtype=np.int8)
