"""What a user can expect in practice: open data, simple baselines, and peers.

Usage: python benchmarks/practice.py [--seeds N] [--datasets NAME ...] [--rows N] [--out FILE]
                                     [--methods NAME ...]

Data that scikit-learn ships or generates; 500 positive and 2,000 unlabelled rows, or a fifth
and four fifths of what the data allow. Every method is told π and π′. Accuracy is that of
the test prior, from the true and false positive rates of at most 1,500 test rows of each class.
Writes practice.json beside this file, or FILE, and prints the tables of docs/which_method.md.
The peers pulearn and pu-toolbox (requirements/bench.txt) are measured when they are installed.
`--methods` measures these anew and keeps the rows that FILE has of the others.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift import Condition, DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.data import NAMES
from pu_shift.data import load as load_dataset
from pu_shift.priors import shift_posterior
from pu_shift.ratios.odds import odds_ratio

HERE = Path(__file__).resolve().parent
SHIFTS = ((0.3, 0.3), (0.3, 0.7), (0.5, 0.2), (0.5, 0.8), (0.7, 0.3))
OURS = ("DensityRatioClassifier()", "RiskMinimizationClassifier()")
SIMPLE = ("logistic regression", "logistic on 100 Nyström features", "boosted trees")
CONSTANT = "always the likelier class"
N_GENERATED = 9000
Predict = Callable[[np.ndarray], np.ndarray]


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features, and which rows are positive."""
    if name in NAMES:
        dataset = load_dataset(name)
        return np.asarray(dataset.X, dtype=np.float64), np.asarray(dataset.y) > 0
    n = {"n_samples": N_GENERATED, "random_state": 0}
    clusters = {"n_informative": 8, "n_redundant": 0, "n_clusters_per_class": 8}
    makers: dict[str, Callable[[], Any]] = {
        "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
        "digits": lambda: datasets.load_digits(return_X_y=True),
        "wine": lambda: datasets.load_wine(return_X_y=True),
        "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
        "classification": lambda: datasets.make_classification(
            n_features=20, n_informative=5, n_redundant=5, flip_y=0.05, **n
        ),
        "clusters": lambda: datasets.make_classification(n_features=10, **clusters, **n),
        "moons": lambda: datasets.make_moons(noise=0.3, **n),
        "circles": lambda: datasets.make_circles(noise=0.2, factor=0.4, **n),
        "quantiles": lambda: datasets.make_gaussian_quantiles(n_features=10, n_classes=2, **n),
        "hastie": lambda: datasets.make_hastie_10_2(**n),
        "friedman": lambda: datasets.make_friedman1(n_features=10, noise=2.0, **n),
    }
    X, y = makers[name]()
    positive = {
        "breast cancer": lambda: y == 0,
        "digits": lambda: y % 2 == 0,
        "diabetes": lambda: y > np.median(y),
        "friedman": lambda: y > np.median(y),
    }.get(name, lambda: y == 1)
    return X.astype(np.float64), positive()


DATASETS = (
    "breast cancer",
    "digits",
    "wine",
    "diabetes",
    "classification",
    "clusters",
    "moons",
    "circles",
    "quantiles",
    "hastie",
    "friedman",
)


def draw(
    X: np.ndarray, positive: np.ndarray, prior: float, seed: int, most: int = 500
) -> tuple[np.ndarray, ...]:
    """Return P, U, and test rows of the positive and of the negative class."""
    rng = np.random.default_rng([seed, round(100 * prior)])
    parts = [rng.permutation(np.flatnonzero(positive == value)) for value in (True, False)]
    (test_p, rows_p), (test_n, rows_n) = (np.split(part, [3 * len(part) // 10]) for part in parts)
    n_p = int(min(most, len(rows_p) / (1 + 4 * prior), len(rows_n) / (4 * (1 - prior))))
    n_u, hidden = 4 * n_p, round(4 * n_p * prior)
    U = np.concatenate([rows_p[n_p : n_p + hidden], rows_n[: n_u - hidden]])
    return X[rows_p[:n_p]], X[U], X[test_p[:1500]], X[test_n[:1500]]


def baseline(name: str, d: int) -> Any:
    """Return a simple classifier of P against U."""
    if name == SIMPLE[0]:
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    if name == SIMPLE[1]:
        kernels = Nystroem(gamma=1 / d, n_components=100, random_state=0)
        return make_pipeline(StandardScaler(), kernels, LogisticRegression(max_iter=1000))
    return HistGradientBoostingClassifier(
        learning_rate=0.05,
        max_iter=150,
        max_leaf_nodes=8,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
    )


def fit_simple(name: str, X_p: Any, X_u: Any) -> Callable[[Condition], Predict]:
    """Train P against U; any condition is then a threshold on the odds."""
    X, y = np.concatenate([X_p, X_u]), np.repeat([1, 0], [len(X_p), len(X_u)])
    classifier = baseline(name, X.shape[1]).fit(X, y)

    def under(condition: Condition) -> Predict:
        def predict(rows: np.ndarray) -> np.ndarray:
            ratio = odds_ratio(classifier.predict_proba(rows)[:, 1], len(X_p), len(X_u))
            return condition.classify_ratio(ratio) > 0

        return predict

    return under


def fit_ours(name: str, X_p: Any, X_u: Any, prior: float) -> Callable[[Condition], Predict]:
    """Fit one of the package's classifiers as it comes."""
    ratio = DensityRatioClassifier(prior).fit_pu(X_p, X_u) if name == OURS[0] else None

    def under(condition: Condition) -> Predict:
        classifier: Any = ratio
        if ratio is None:
            classifier = RiskMinimizationClassifier(condition.prior, condition.test_prior)
            classifier.fit_pu(X_p, X_u)
        else:
            classifier.set_params(test_prior=condition.test_prior)
        return lambda rows: classifier.predict(rows) == 1

    return under


def peers() -> dict[str, tuple[Callable[[float, int], Any], bool | None]]:
    """Return makers of the peers that are installed, and whether P belongs to their population.

    ``None`` marks one that has scores in place of posteriors. None of them takes π′: their
    posteriors are moved to it by Bayes' rule, like everyone's.
    """
    found: dict[str, tuple[Callable[[float, int], Any], bool | None]] = {}
    if importlib.util.find_spec("pulearn"):
        from pulearn import BaggingPuClassifier, ElkanotoPuClassifier, NNPUClassifier

        logistic = LogisticRegression(max_iter=1000)
        found["pulearn Elkan–Noto"] = (
            # A tenth, its default, may hold no positive of the smallest dataset.
            lambda prior, d: ElkanotoPuClassifier(logistic, hold_out_ratio=0.3, random_state=0),
            True,
        )
        found["pulearn bagging"] = (
            lambda prior, d: BaggingPuClassifier(n_estimators=50, random_state=0),
            False,
        )
        found["pulearn nnPU"] = (lambda prior, d: NNPUClassifier(prior, random_state=0), False)
    if importlib.util.find_spec("pu_toolbox"):
        from pu_toolbox import ElkanNotoClassifier, UPUClassifier

        found["pu-toolbox Elkan–Noto"] = (
            lambda prior, d: ElkanNotoClassifier(random_state=0),
            True,
        )
        found["pu-toolbox uPU"] = (
            lambda prior, d: UPUClassifier(
                prior, basis="rbf", kernel_width=d**0.5, n_centers=100, random_state=0
            ),
            None,
        )
    return found


def fit_peer(
    make: Callable[[float, int], Any], joint: bool | None, X_p: Any, X_u: Any, prior: float
) -> Callable[[Condition], Predict]:
    """Fit a peer to scaled features."""
    X, y = np.concatenate([X_p, X_u]), np.repeat([1, 0], [len(X_p), len(X_u)])
    scaler = StandardScaler().fit(X)
    np.random.seed(0)  # noqa: NPY002  (not all of them take a seed)
    classifier = make(prior, X.shape[1])
    classifier.fit(scaler.transform(X), y)
    own = (len(X_p) + prior * len(X_u)) / len(X) if joint else prior

    def under(condition: Condition) -> Predict:
        def predict(rows: np.ndarray) -> np.ndarray:
            rows = scaler.transform(rows)
            if joint is None:  # the minimiser of the squared loss
                posterior = 0.5 * (1.0 + classifier.decision_function(rows))
            else:
                posterior = np.asarray(classifier.predict_proba(rows))
                posterior = posterior[:, 1] if posterior.ndim == 2 else posterior
            posterior = np.clip(posterior, 1e-9, 1.0 - 1e-9)
            return shift_posterior(posterior, own, condition.test_prior) > condition.alpha

        return predict

    return under


def fit(
    method: str, X_p: Any, X_u: Any, prior: float, others: dict[str, Any]
) -> Callable[[Condition], Predict]:
    """Fit a method, and return what makes predictions of it under any condition."""
    if method in OURS:
        return fit_ours(method, X_p, X_u, prior)
    if method in SIMPLE:
        return fit_simple(method, X_p, X_u)
    if method in others:
        return fit_peer(*others[method], X_p, X_u, prior)
    return lambda condition: lambda rows: np.full(len(rows), condition.test_prior > 0.5)


def measure(
    name: str, seed: int, most: int, methods: list[str], others: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the methods' accuracies on one dataset, each fitted once for each π if it can."""
    X, positive = load(name)
    for prior in sorted({prior for prior, _ in SHIFTS}):
        X_p, X_u, test_p, test_n = draw(X, positive, prior, seed, most)
        for method in methods:
            start = time.perf_counter()
            under = fit(method, X_p, X_u, prior, others)
            for test_prior in (after for before, after in SHIFTS if before == prior):
                predict = under(Condition(prior, test_prior))
                right = test_prior * predict(test_p).mean()
                right += (1 - test_prior) * (1 - predict(test_n).mean())
                row = {"dataset": name, "prior": prior, "test_prior": test_prior, "seed": seed}
                seconds = round(time.perf_counter() - start, 2)
                yield {
                    **row,
                    "method": method,
                    "accuracy": round(100 * float(right), 3),
                    "n_p": len(X_p),
                    "seconds": seconds,
                }


def _mean(rows: list[dict[str, Any]]) -> str:
    """Mean over all rows, and the standard error of it over the seeds."""
    seeds = sorted({row["seed"] for row in rows})
    means = [np.mean([row["accuracy"] for row in rows if row["seed"] == seed]) for seed in seeds]
    error = np.std(means, ddof=1) / len(means) ** 0.5 if len(means) > 1 else float("nan")
    return f"{np.mean(means):.1f} ± {error:.1f}"


def _cells(rows: list[dict[str, Any]], method: str) -> dict[tuple[Any, ...], float]:
    """Mean over the seeds, for each dataset and shift."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        if row["method"] == method:
            cell = row["dataset"], row["prior"], row["test_prior"]
            found.setdefault(cell, []).append(row["accuracy"])
    return {cell: float(np.mean(values)) for cell, values in found.items()}


def render(rows: list[dict[str, Any]]) -> str:
    """Return the tables of docs/which_method.md."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    n_seeds = len({row["seed"] for row in rows})
    lines = [
        f"Accuracy in percent, mean of {len(names)} datasets and {n_seeds} seeds ± standard error "
        "over the seeds.",
        "",
        "| method | all | " + " | ".join(f"π {a} → π′ {b}" for a, b in SHIFTS) + " |",
        "| --- " * (len(SHIFTS) + 2) + "|",
    ]
    for method in methods:
        own = [row for row in rows if row["method"] == method]
        of_shift = [
            [row for row in own if (row["prior"], row["test_prior"]) == shift] for shift in SHIFTS
        ]
        cells = [_mean(own), *map(_mean, of_shift)]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    lines += ["", "By dataset, mean of the five shifts.", ""]
    lines += ["| dataset | " + " | ".join(methods) + " |", "| --- " * (len(methods) + 1) + "|"]
    for name in names:
        cells = [
            _mean([r for r in rows if (r["dataset"], r["method"]) == (name, method)])
            for method in methods
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    ours, risk = (_cells(rows, method) for method in OURS)
    lines += ["", f"`{OURS[0]}` against each, of {len(ours)} pairs of dataset and shift:", ""]
    lines += [
        "| method | better by over 0.5 | worse by over 0.5 | most behind |",
        "| --- " * 4 + "|",
    ]
    for method in methods[2:]:
        gains = {cell: ours[cell] - value for cell, value in _cells(rows, method).items()}
        worst = min(gains, key=gains.__getitem__)
        better, worse = (sum(sign * gain > 0.5 for gain in gains.values()) for sign in (1, -1))
        where = f"{gains[worst]:+.1f} ({worst[0]}, π {worst[1]} → π′ {worst[2]})"
        lines.append(f"| {method} | {better} | {worse} | {where} |")
    constant = _cells(rows, CONSTANT)
    behind = {cell: value - constant[cell] for cell, value in risk.items()}
    worst = min(behind, key=behind.__getitem__)
    below = sum(gain < -0.05 for gain in behind.values())
    lines += [
        "",
        f"`{OURS[1]}` is below the constant in {below} of {len(risk)} pairs; the worst is "
        f"{behind[worst]:+.1f} ({worst[0]}, π {worst[1]} → π′ {worst[2]}).",
    ]
    return "\n".join(lines) + "\n"


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the columns' names, and a line of JSON for each row."""
    lines = [json.dumps(list(row.values()), ensure_ascii=False) for row in rows]
    columns = json.dumps(list(rows[0]))
    text = f'{{"columns": {columns}, "rows": [\n' + ",\n".join(lines) + "\n]}\n"
    path.write_text(text, encoding="utf-8")


def read(path: Path) -> list[dict[str, Any]]:
    """Return what :func:`write` wrote."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return [dict(zip(content["columns"], row)) for row in content["rows"]]


def main(argv: list[str] | None = None) -> int:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="draws of each dataset (default: 3)")
    parser.add_argument("--datasets", nargs="+", choices=(*DATASETS, *NAMES), default=DATASETS)
    parser.add_argument("--rows", type=int, default=500, help="positives at most (default: 500)")
    parser.add_argument("--out", type=Path, default=HERE / "practice.json")
    others = peers()
    methods = [*OURS, *SIMPLE, CONSTANT, *others]
    parser.add_argument("--methods", nargs="+", choices=methods, help="(default: all)")
    options = parser.parse_args(argv)
    kept = read(options.out) if options.methods and options.out.exists() else []
    rows = {tuple(row.values())[:5]: row for row in kept}  # by dataset, π, π′, seed and method
    for seed in range(options.seeds):
        for name in options.datasets:
            with warnings.catch_warnings():
                # Of constants that took a model's place, and of peers about their solvers.
                warnings.simplefilter("ignore")
                chosen = options.methods or methods
                for row in measure(name, seed, options.rows, chosen, others):
                    rows[tuple(row.values())[:5]] = row
            print(f"{name}, seed {seed}", file=sys.stderr)
            # At once: a later one may be interrupted.
            write(options.out, list(rows.values()))
    print(render(list(rows.values())), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
