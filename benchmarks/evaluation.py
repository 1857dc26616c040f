"""How right are figures that were made without negatives: error, bias and coverage of each metric.

Usage: python benchmarks/evaluation.py [--seeds N] [--datasets NAME ...] [--draws N] [--out FILE]

The datasets of practice.py. Half of the rows of each class are to fit on, the others are a
population of known truth: what `evaluate` says of samples that are drawn from it, with
replacement, is held against what the whole of it says. Of made-up data, where the population has
thousands of rows, the cross-fitted figures of the fit itself are held against it, too. Beside them
stand the corrected metrics of pulearn (requirements/bench.txt), where it is installed, and the
naive ones, which take unlabelled rows for negatives. Writes evaluation.json beside this file, or
FILE, and prints the tables of docs/evaluation.md; a run that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import practice

from pu_shift import Condition, DensityRatioClassifier, estimate_prior
from pu_shift.evaluation.evaluator import cross_fitted, evaluation_of, scored_ratio
from pu_shift.evaluation.metrics import METRICS, ScoredRows

HERE = Path(__file__).resolve().parent
REAL = ("breast cancer", "digits", "wine", "diabetes")
PRIORS = (0.05, 0.3, 0.7)
SHIFTED = (0.1, 0.5, 0.9)
# Rows of P and U of a sample that is judged.
SAMPLES = {"held-out": (200, 800), "few rows": (40, 160)}
MOST = 300
N_MADE_UP = 24_000
N_RESAMPLES = 500
OURS = (*SAMPLES, "cross-fitted", "π estimated")
OTHERS = ("naive", "pulearn")
# One line of sums for each of these, added up over datasets, seeds and draws.
KEY = ("prior", "test_prior", "mode", "metric")
SUMS = ("n", "held", "error", "size", "width")


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of practice.py, of made-up data more of them."""
    practice.N_GENERATED = N_MADE_UP
    return practice.load(name)


def split(positive: np.ndarray, prior: float, seed: int) -> dict[str, np.ndarray]:
    """Return the places of P and U for the fit, and of the population's positives and negatives."""
    rng = np.random.default_rng([seed, round(100 * prior), len(positive)])
    parts = [rng.permutation(np.flatnonzero(positive == value)) for value in (True, False)]
    (fit_p, all_p), (fit_n, all_n) = (np.array_split(part, 2) for part in parts)
    most_p, most_n = len(fit_p) / (1 + 4 * prior), len(fit_n) / (4 * (1 - prior))
    n_p = int(min(MOST, most_p, most_n))
    hidden = round(4 * n_p * prior)
    U = np.concatenate([fit_p[n_p : n_p + hidden], fit_n[: 4 * n_p - hidden]])
    return {"P": fit_p[:n_p], "U": U, "positives": all_p, "negatives": all_n}


def judge(prior: float, test_prior: float, interval: Any = None) -> Any:
    """Return what stands for a classifier that is told π, or has estimated it."""
    condition = Condition(prior, test_prior)
    known = {"prior_": prior, "prior_interval_": interval, "_stated_test_prior": test_prior}
    return SimpleNamespace(condition=condition, **known)


def judged(stand_in: Any, rows: ScoredRows) -> dict[str, tuple[float, float, float]]:
    """Return of each metric the estimate and its interval."""
    found = evaluation_of(stand_in, rows, "", n_resamples=N_RESAMPLES)
    return {name: (one.value, one.low, one.high) for name, one in found.metrics.items()}


def exactly(rows: ScoredRows, prior: float, test_prior: float) -> dict[str, float]:
    """Return the metrics without intervals."""
    rates = rows.rates(prior, test_prior, 0.5)
    return {name: float(metric.formula(rates)[0]) for name, metric in METRICS.items()}


def naive(rows: ScoredRows, *_: Any) -> dict[str, float]:
    """Take unlabelled rows for negatives, as the metrics of scikit-learn do of PU labels."""
    n_p, n_u = rows.counts_p.sum(), rows.counts_u.sum()
    return exactly(rows, 0.0, n_p / (n_p + n_u))


def of_pulearn(rows: ScoredRows, prior: float, samples: Any) -> dict[str, float]:
    """Return pulearn's corrected metrics, told π; none of them takes π′."""
    from pulearn import metrics

    score, flagged, probability = (np.concatenate(own) for own in zip(*samples))
    y = np.repeat([1, 0], [len(part[0]) for part in samples])
    labels = flagged.astype(int)
    return {
        "recall": metrics.pu_recall_score(y, labels),
        "false_positive_rate": 1.0 - metrics.pu_specificity_score(y, probability),
        "precision": metrics.pu_precision_score(y, labels, prior),
        "f1": metrics.pu_f1_score(y, labels, prior),
        "auc": metrics.pu_roc_auc_score(y, score, prior),
        "average_precision": metrics.pu_average_precision_score(y, score, prior),
    }


def peers() -> dict[str, Callable[..., dict[str, float]]]:
    """Return the other ways to judge that are at hand."""
    found: dict[str, Callable[..., dict[str, float]]] = {"naive": naive}
    if importlib.util.find_spec("pulearn"):
        found["pulearn"] = of_pulearn
    return found


def measure(name: str, seed: int, prior: float, draws: int) -> Iterator[dict[str, Any]]:
    """Fit once, and yield how far each estimate is from the truth at every π′."""
    X, positive = load(name)
    places = split(positive, prior, seed)
    P, U = X[places["P"]], X[places["U"]]
    classifier = DensityRatioClassifier(prior, n_jobs=1).fit_pu(P, U)
    estimate = estimate_prior(P, U)
    interval = estimate.low, estimate.high
    ratios = {
        part: classifier.predict_ratio(X[places[part]]) for part in ("positives", "negatives")
    }
    rng = np.random.default_rng([seed, round(100 * prior), 1])
    chosen = {
        mode: [sample(ratios, prior, *sizes, rng) for _ in range(draws)]
        for mode, sizes in SAMPLES.items()
    }

    for test_prior in (*SHIFTED, prior):
        told, guessed = judge(prior, test_prior), judge(estimate.prior, test_prior, interval)
        truth, of_guess = (
            exactly(
                ScoredRows.of(*(scored_ratio(part, one.condition) for part in ratios.values())),
                0.0,
                test_prior,
            )
            for one in (told, guessed)
        )
        row = {"dataset": name, "prior": prior, "test_prior": test_prior}
        for mode, drawn in chosen.items():
            for ratio in drawn:
                samples = [scored_ratio(part, told.condition) for part in ratio]
                rows = ScoredRows.of(*samples)
                yield from compared({**row, "mode": mode}, judged(told, rows), truth)
                if mode != "held-out":
                    continue
                rows_guessed = ScoredRows.of(
                    *(scored_ratio(part, guessed.condition) for part in ratio)
                )
                yield from compared(
                    {**row, "mode": "π estimated"}, judged(guessed, rows_guessed), of_guess
                )
                for other, metrics in peers().items():
                    values = {k: (v, v, v) for k, v in metrics(rows, prior, samples).items()}
                    yield from compared({**row, "mode": other}, values, truth)
        if name not in REAL:
            rows, _ = cross_fitted(classifier, told.condition)
            yield from compared({**row, "mode": "cross-fitted"}, judged(told, rows), truth)


def sample(
    ratios: dict[str, np.ndarray], prior: float, n_p: int, n_u: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Draw ratios of P and of U with replacement from those of the population."""
    hidden = rng.binomial(n_u, prior)
    P, of_u = (rng.choice(ratios["positives"], n) for n in (n_p, hidden))
    return [P, np.concatenate([of_u, rng.choice(ratios["negatives"], n_u - hidden)])]


def compared(
    row: dict[str, Any], found: dict[str, tuple[float, float, float]], truth: dict[str, float]
) -> Iterator[dict[str, Any]]:
    """Yield whether each interval holds the truth, and the error; without a precision nothing."""
    for metric, (value, low, high) in found.items():
        right = truth[metric]
        if not np.isnan(value + right):
            sums = (1, low <= right <= high, value - right, abs(value - right), high - low)
            yield {**row, "metric": metric, **dict(zip(SUMS, map(float, sums)))}


def added(
    rows: list[dict[str, Any]], key: tuple[str, ...]
) -> dict[tuple[Any, ...], dict[str, float]]:
    """Add up the sums of the rows that have a key in common."""
    found: dict[tuple[Any, ...], dict[str, float]] = defaultdict(lambda: dict.fromkeys(SUMS, 0.0))
    for row in rows:
        sums = found[tuple(row[name] for name in key)]
        for name in SUMS:
            sums[name] += row[name]
    return found


def render(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return the tables of docs/evaluation.md."""
    return {"error": _errors(rows), "coverage": _coverage(rows), "bias": _bias(rows)}


def _table(head: list[str], lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


def _errors(rows: list[dict[str, Any]]) -> str:
    """Mean absolute error of each metric, ours beside the others, without and with a shift."""
    lines = []
    parts = [[r for r in rows if (r["prior"] == r["test_prior"]) == same] for same in (True, False)]
    sums = [added(part, ("mode", "metric")) for part in parts]
    modes = ("held-out", *OTHERS)
    for metric in METRICS:
        cells = [one.get((mode, metric)) for one in sums for mode in modes]
        lines.append([f"`{metric}`", *(f"{c['size'] / c['n']:.3f}" if c else "" for c in cells)])
    names = ("`evaluate`", *OTHERS)
    head = ["", *(f"{name}, {what}" for what in ("π′ = π", "π′ ≠ π") for name in names)]
    return _table(head, lines)


def _coverage(rows: list[dict[str, Any]]) -> str:
    """Share of intervals that hold the truth: over everything, and where it is least."""
    whole, by_place = added(rows, ("mode", "metric")), added(rows, ("mode", "metric", "prior"))
    lines = []
    for metric in METRICS:
        cells = []
        for mode in OURS:
            sums = whole[mode, metric]
            least = min(
                (s["held"] / s["n"], k[2]) for k, s in by_place.items() if k[:2] == (mode, metric)
            )
            cells.append(f"{sums['held'] / sums['n']:.0%} ({least[0]:.0%}, π {least[1]})")
        lines.append([f"`{metric}`", *cells])
    counts = [max(s["n"] for k, s in whole.items() if k[0] == mode) for mode in OURS]
    lines.append(["intervals", *(f"{n:,.0f}" for n in counts)])
    return _table(["", *OURS], lines)


def _bias(rows: list[dict[str, Any]]) -> str:
    """Mean error, with its sign, of many and of few rows, and of cross-fitting."""
    modes = ("held-out", "few rows", "cross-fitted")
    sums = added(rows, ("mode", "metric", "prior"))
    lines = []
    for metric in METRICS:
        cells = [sums[mode, metric, prior] for mode in modes for prior in PRIORS]
        lines.append([f"`{metric}`", *(f"{c['error'] / c['n']:+.3f}" for c in cells)])
    return _table(["", *(f"{mode}, π {prior}" for mode in modes for prior in PRIORS)], lines)


def main(argv: list[str] | None = None) -> int:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="fits of each dataset and π")
    parser.add_argument("--draws", type=int, default=5, help="samples that each fit is judged by")
    parser.add_argument(
        "--datasets", nargs="+", choices=practice.DATASETS, default=practice.DATASETS
    )
    parser.add_argument("--out", type=Path, default=HERE / "evaluation.json")
    options = parser.parse_args(argv)
    log = options.out.with_suffix(".part")
    done = {}
    if log.exists():
        for line in log.read_text(encoding="utf-8").splitlines():
            task, rows = json.loads(line)
            done[tuple(task)] = rows
    for seed in range(options.seeds):
        for name in options.datasets:
            for prior in PRIORS:
                task = (name, seed, prior, options.draws)
                if task in done:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rows = list(measure(*task))
                sums = added(rows, KEY).items()
                done[task] = [{**dict(zip(KEY, key)), **values} for key, values in sums]
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([task, done[task]], ensure_ascii=False) + "\n")
                print(f"{name}, seed {seed}, π {prior}", file=sys.stderr, flush=True)
    every = added([row for rows in done.values() for row in rows], KEY).items()
    total = [
        {**dict(zip(KEY, key)), **{name: round(value, 4) for name, value in values.items()}}
        for key, values in every
    ]
    practice.write(options.out, total)
    log.unlink(missing_ok=True)
    for table in render(total).values():
        print(f"{table}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
