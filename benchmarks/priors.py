"""Measure the estimates of π and π′: error, coverage of the intervals, seconds.

Usage: python benchmarks/priors.py [--only prior|test_prior|calibration] [--trials N] [--out DIR]

Writes priors.json and priors.md beside this file, or into DIR. The first benchmark needs the
pulearn of requirements/bench.txt (``make bench``) and all need the six datasets. Trials begin at
0; whatever was chosen by looking at estimates was chosen at trials from 100 on, and at the
made-up samples of the calibration.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measure import machine
from peers_priors import elkan_noto, km2, pulearn_share
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_moons
from threadpoolctl import threadpool_limits

from pu_shift.data import load
from pu_shift.data.dataset import Dataset
from pu_shift.data.sampling import draw
from pu_shift.estimation import class_prior
from pu_shift.estimation.class_prior import PRIORS, PriorWarning, estimate_prior
from pu_shift.estimation.test_prior import SHIFT_METHODS, estimate_test_prior
from pu_shift.estimators import DensityRatioClassifier
from pu_shift.paper.settings import DATASETS, TABLES

HERE = Path(__file__).resolve().parent
TRUE_PRIORS = (0.1, 0.3, 0.5, 0.7, 0.9)
# Rows of P and U where a dataset has fewer than 500 and 2,000 to give, and of a test set.
SMALL = {"digits": (200, 700), "breast cancer": (100, 200)}
N_TEST = {"digits": 200, "breast cancer": 100}
# Methods of estimate_test_prior that start from π.
WITH_PRIOR = [method for method in SHIFT_METHODS if method != "drpu"]
ESTIMATORS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "KM2": km2,
    "Elkan–Noto": elkan_noto,
    "pulearn, histogram": partial(pulearn_share, "HistogramMatchPriorEstimator"),
    "pulearn, EM": partial(pulearn_share, "ScarEMPriorEstimator"),
}
EVIDENCES = (1.0, 1.5, 2.0, 3.0)
N_MADE_UP = 300


def open_dataset(name: str) -> Dataset:
    """Return one of the six datasets, or one of scikit-learn's."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return Dataset.of(name, X, np.where(y % 2 == 0, 1, -1))
    if name == "breast cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return Dataset.of(name, X, np.where(y == 1, 1, -1))
    return load(name)


def run_prior(trials: int) -> Iterator[dict[str, Any]]:
    """Estimate π on eight datasets at five priors, by ours and by the peers."""
    for name in (*DATASETS, *SMALL):
        dataset, sizes = open_dataset(name), SMALL.get(name, (500, 2000))
        for prior in TRUE_PRIORS:
            for trial in range(trials):
                sample = draw(dataset, prior, prior, *sizes, n_test=2, trial=trial)
                rows = [X.astype(np.float64) for X in (sample.positives, sample.unlabeled)]
                X_p, X_u = class_prior._scaled(*rows)
                case = {"dataset": name, "prior": prior, "trial": trial}
                start = time.process_time()
                found = estimate_prior(X_p, X_u, random_state=sample.seed)
                seconds = time.process_time() - start
                for method, estimate in found.parts.items():
                    row = {**case, "method": method, "estimate": estimate}
                    if method == "auto":
                        row |= {"low": found.low, "high": found.high, "bound": found.bound}
                        row["seconds"] = seconds
                    yield row
                for method, estimator in ESTIMATORS.items():
                    start = time.process_time()
                    estimate = estimator(X_p, X_u)
                    seconds = time.process_time() - start
                    yield {**case, "method": method, "estimate": estimate, "seconds": seconds}


def run_test_prior(trials: int) -> Iterator[dict[str, Any]]:
    """Estimate π′ on eight datasets, shifted as in the paper's tables, π given and estimated."""
    shifts: dict[float, set[float]] = {}
    for block in (block for table in TABLES.values() for block in table.blocks):
        shifts.setdefault(block.prior, set()).add(block.test_prior)
    for name in (*DATASETS, *SMALL):
        dataset, sizes = open_dataset(name), (*SMALL.get(name, (500, 2000)), N_TEST.get(name, 500))
        for (prior, test_priors), trial in product(sorted(shifts.items()), range(trials)):
            sample = draw(dataset, prior, sorted(test_priors), *sizes, trial=trial)
            tests = [X for X, _ in sample.tests.values()]
            X_p, X_u, *tests = scale(sample.positives, sample.unlabeled, *tests)
            found = estimate_prior(X_p, X_u, random_state=sample.seed)
            classifier = DensityRatioClassifier(prior).fit_pu(X_p, X_u)
            case = {"dataset": name, "prior": prior, "trial": trial}
            for known in (True, False):
                classifier.set_params(prior=prior if known else found.prior)
                interval = None if known else (found.low, found.high)
                for test_prior, X in zip(sample.tests, tests):
                    for method in SHIFT_METHODS if known else WITH_PRIOR:
                        samples = (X_p, X_u) if method == "kernel" else None
                        row = {"known": known, "test_prior": test_prior, "method": method}
                        task = partial(estimate_test_prior, prior=interval, samples=samples)
                        yield {**case, **row, **timed(partial(task, classifier, X, method))}


def timed(estimate: Callable[[], Any]) -> dict[str, Any]:
    """Return an estimate of π′, its interval and its seconds; none where it is refused."""
    start = time.process_time()
    try:
        shift = estimate()
    except ValueError:
        # It is refused where P and U cannot be told apart.
        return {"estimate": None}
    seconds = time.process_time() - start
    return {
        "estimate": shift.test_prior,
        "low": shift.low,
        "high": shift.high,
        "seconds": seconds,
    }


def scale(X_p: np.ndarray, X_u: np.ndarray, *tests: np.ndarray) -> list[np.ndarray]:
    """Scale features to unit variance in P and U."""
    rows = np.concatenate([X_p, X_u]).astype(np.float64)
    centre, spread = rows.mean(axis=0), rows.std(axis=0)
    spread[spread == 0.0] = 1.0
    return [((part - centre) / spread).astype(np.float32) for part in (X_p, X_u, *tests)]


def run_calibration(trials: int) -> Iterator[dict[str, Any]]:
    """Hold intervals of several weights of the likelihood against made-up truths."""
    for seed in range(N_MADE_UP):
        X_p, X_u, prior = made_up(seed)
        rows = class_prior._scaled(X_p, X_u)
        scores = class_prior.cross_fitted_scores(*rows, np.random.SeedSequence(seed))
        best_bin = class_prior.best_bin_prior(*scores)
        for evidence in EVIDENCES:
            posterior = class_prior.roc_posterior(*scores, evidence)
            estimate = 0.5 * (best_bin + float(posterior @ PRIORS))
            low, high = class_prior._quantiles(posterior, [0.025, 0.975])
            yield {
                "family": seed % 4,
                "prior": prior,
                "evidence": evidence,
                "estimate": estimate,
                "low": min(low, estimate),
                "high": max(high, estimate),
            }


def made_up(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw P, U and the share of positives in U from one of four families."""
    rng = np.random.default_rng(seed)
    n_p, d = int(rng.choice([100, 200, 500, 1000])), int(rng.choice([1, 2, 5, 10, 20, 50]))
    n_u = int(n_p * rng.choice([2, 4]))
    n_hidden = rng.binomial(n_u, rng.uniform(0.05, 0.95))
    sizes = (n_p + n_hidden, n_u - n_hidden)
    if seed % 4 == 0:
        classes = [
            rng.normal(
                rng.normal(0.0, 1.0, d) * rng.uniform(0.5, 2.0), rng.uniform(0.7, 1.4), (n, d)
            )
            for n in sizes
        ]
    elif seed % 4 == 1:
        X, y = make_moons(sizes, noise=rng.uniform(0.1, 0.5), random_state=seed)
        classes = [
            np.column_stack([X[y == k], rng.normal(size=(n, d))]) for k, n in enumerate(sizes)
        ]
    elif seed % 4 == 2:
        X, y = make_classification(
            4 * max(sizes) + 100,
            max(d, 5),
            n_informative=int(rng.integers(2, 6)),
            n_redundant=0,
            class_sep=rng.uniform(0.5, 2.0),
            flip_y=float(rng.choice([0.0, 0.02, 0.05])),
            random_state=seed,
        )
        classes = [X[y == k][:n] for k, n in enumerate(sizes)]
    else:
        # Skewed, and every other time with few values.
        classes = [rng.gamma(a, 1.0, (n, d)) for a, n in zip((rng.uniform(1.2, 4.0), 1.0), sizes)]
        if rng.random() < 0.5:
            classes = [np.floor(2.0 * X) for X in classes]
    positive, negative = (rng.permutation(X) for X in classes)
    X_u = np.concatenate([positive[n_p:], negative])
    return positive[:n_p], rng.permutation(X_u), n_hidden / n_u


RUNS = {"prior": run_prior, "test_prior": run_test_prior, "calibration": run_calibration}


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks that are asked for; the others keep their results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=RUNS, default=list(RUNS))
    parser.add_argument("--trials", type=int, default=5, help="draws of each case (default: 5)")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    options = parser.parse_args(argv)
    path = options.out / "priors.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in options.only:
        print(f"measuring {name} ...", file=sys.stderr)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", PriorWarning)
            rows = [
                {k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()}
                for row in RUNS[name](options.trials)
            ]
        # At once: the later ones take long. A line per row keeps differences readable.
        results[name] = {"machine": machine(), "rows": rows}
        path.write_text(encode(results), encoding="utf-8")
    text = render(results)
    (options.out / "priors.md").write_text(text, encoding="utf-8")
    print(text, end="")
    return 0


def encode(results: dict[str, Any]) -> str:
    """Return JSON with a line per measured row."""
    blocks = []
    for name, result in results.items():
        rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in result["rows"])
        about = json.dumps(result["machine"], ensure_ascii=False)
        blocks.append(f'"{name}": {{"machine": {about},\n"rows": [\n{rows}\n]}}')
    return "{" + ",\n".join(blocks) + "}\n"


def render(results: dict[str, Any]) -> str:
    """Lay out what was measured in Markdown."""
    tables = {
        "prior": prior_table,
        "test_prior": test_prior_table,
        "calibration": calibration_table,
    }
    return "\n".join(tables[name](pd.DataFrame(result["rows"])) for name, result in results.items())


def prior_table(rows: pd.DataFrame) -> str:
    """Return the mean absolute error of every estimator on every dataset, coverage and seconds."""
    rows["error"] = (rows["estimate"] - rows["prior"]).abs()
    rows["held"] = rows["prior"].between(rows["low"] - 1e-9, rows["high"] + 1e-9)
    rows["bounded"] = rows["prior"] <= rows["bound"] + 1e-9
    auto = rows[rows["method"] == "auto"]
    methods = list(dict.fromkeys(rows["method"]))
    n = auto["trial"].nunique()
    lines = [
        f"Mean absolute error of π over π = 0.1, 0.3, 0.5, 0.7, 0.9, {n} draws each; share of the "
        "95 % intervals and of the 95 % upper bounds of `auto` that hold.",
        "",
        f"| dataset | {' | '.join(methods)} | interval | bound |",
        f"|---|{'---|' * (len(methods) + 2)}",
    ]
    for name, part in [*rows.groupby("dataset", sort=False), ("**all**", rows)]:
        errors = part.groupby("method")["error"].mean()
        ours = part[part["method"] == "auto"]
        cells = [f"{errors[method]:.3f}" for method in methods]
        cells += [f"{100 * ours[column].mean():.0f} %" for column in ("held", "bounded")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    seconds = rows.groupby("method")["seconds"].mean()
    shown = [f"{seconds[method]:.2f} s" if seconds[method] > 0 else "" for method in methods]
    lines += [f"| seconds | {' | '.join(shown)} | | |", ""]
    lines += ["| π | bias of auto | error of auto | mean width | interval | bound |"]
    lines += ["|---|---|---|---|---|---|"]
    for prior, part in auto.groupby("prior"):
        bias = (part["estimate"] - part["prior"]).mean()
        width = (part["high"] - part["low"]).mean()
        lines.append(
            f"| {prior} | {bias:+.3f} | {part['error'].mean():.3f} | {width:.2f} | "
            f"{100 * part['held'].mean():.0f} % | {100 * part['bounded'].mean():.0f} % |"
        )
    return "\n".join(lines) + "\n"


def test_prior_table(rows: pd.DataFrame) -> str:
    """Return the mean absolute error of π′, the coverage and the time of every method."""
    rows["error"] = (rows["estimate"] - rows["test_prior"]).abs()
    rows["held"] = rows["test_prior"].between(rows["low"] - 1e-9, rows["high"] + 1e-9)
    pairs = len(rows[["prior", "test_prior"]].drop_duplicates())
    columns = list(dict.fromkeys(zip(rows["known"], rows["method"])))
    told = {True: "π known", False: "π estimated"}
    names = [f"{m}, {told[known] if m in WITH_PRIOR else 'no π'}" for known, m in columns]
    lines = [
        f"Mean absolute error of π′ over the {pairs} pairs of π and π′ of Tables 1–7 (draws of "
        f"each: {rows['trial'].nunique()}), from 500 test rows (digits 200, breast cancer 100); in "
        "parentheses the share of 95 % intervals that hold.",
        "",
        f"| dataset | {' | '.join(names)} | refused |",
        f"|---|{'---|' * (len(names) + 1)}",
    ]
    for name, part in [*rows.groupby("dataset", sort=False), ("**all**", rows)]:
        means = part[part["estimate"].notna()].groupby(["known", "method"])
        error, held = means["error"].mean(), means["held"].mean()
        cells = [f"{error[key]:.3f} ({100 * held[key]:.0f} %)" for key in columns]
        refused = f"{100 * part['estimate'].isna().mean():.0f} %"
        lines.append(f"| {name} | {' | '.join(cells)} | {refused} |")
    # `drpu` is the same for any π.
    given = rows[rows["estimate"].notna()]
    free = ~given["method"].isin(WITH_PRIOR)
    for known in (True, False):
        lines += ["", f"Over all datasets, {told[known]}:", ""]
        lines += by_method(given[(given["known"] == known) | free])
    return "\n".join(lines) + "\n"


def by_method(given: pd.DataFrame) -> list[str]:
    """Return a line for each method, and whether one errs less than the default."""
    default = SHIFT_METHODS[0]
    seconds = given.groupby("method")["seconds"].median()
    errors = given.groupby(["dataset", "method"])["error"].mean().unstack()
    lines = [
        "| method | error | minus the default's | bias | largest error | intervals that hold | "
        f"their width | time, of `{default}` |",
        f"|{'---|' * 8}",
    ]
    better = []
    for method in SHIFT_METHODS:
        part = given[given["method"] == method]
        apart = errors[method] - errors[default]
        gap, noise = apart.mean(), apart.std() / len(apart) ** 0.5
        better += [f"`{method}`"] if gap < -2.0 * noise else []
        bias = (part["estimate"] - part["test_prior"]).mean()
        width = (part["high"] - part["low"]).mean()
        lines.append(
            f"| {method} | {part['error'].mean():.3f} | {gap:+.3f} ± {noise:.3f} | {bias:+.3f} | "
            f"{part['error'].max():.2f} | {100 * part['held'].mean():.0f} % | "
            f"{width:.2f} | {seconds[method] / seconds[default]:.1f} |"
        )
    return [
        *lines,
        "",
        f"{' and '.join(better) or 'No method'} errs less than the default `{default}` by more "
        "than two standard errors over the datasets.",
    ]


vars(test_prior_table)["__test__"] = False


def calibration_table(rows: pd.DataFrame) -> str:
    """Return error and coverage on made-up samples for each weight of the likelihood."""
    rows["error"] = (rows["estimate"] - rows["prior"]).abs()
    rows["held"] = rows["prior"].between(rows["low"] - 1e-9, rows["high"] + 1e-9)
    rows["width"] = rows["high"] - rows["low"]
    lines = [
        f"{N_MADE_UP} made-up samples, by the weight of the likelihood.",
        "",
        "| weight | error of auto | mean width | 95 % interval holds |",
        "|---|---|---|---|",
    ]
    for evidence, part in rows.groupby("evidence"):
        lines.append(
            f"| {evidence:g} | {part['error'].mean():.3f} | {part['width'].mean():.2f} | "
            f"{100 * part['held'].mean():.1f} % |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
