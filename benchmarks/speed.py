"""How long fits and predictions take, side by side with what one would run instead.

Usage: python benchmarks/speed.py        (--help lists the options; ``make bench``)

Prints the tables of docs/SPEED.md and keeps the figures in results.json. Peers are those of
requirements/bench.txt.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import peers
import practice
import scale
from measure import interleaved, machine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift import ULSIF, Condition, DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift._grids import ULSIF_LAMS, assign_folds, training_weights
from pu_shift._seeds import child
from pu_shift.models import LinearModel
from pu_shift.ratios.kernels import gaussian_kernel
from pu_shift.risks import Risk
from pu_shift.training import train

RESULTS = Path(__file__).with_name("results.json")
SEED, PRIOR, N_FOLDS = 0, 0.3, 5
SIZES, N_COLUMNS = (10**3, 10**4, 10**5, 10**6), 20
# CPU seconds that a fit may take: what would take longer is left out.
LONGEST = 60.0
Rows = list[dict[str, Any]]


def rows_of(shares: Mapping[float, int], d: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows around ten directions: so many of each mean."""
    directions = np.random.default_rng(SEED).normal(0, 1, (10, d)) / np.sqrt(10)
    latent = np.concatenate([rng.normal(mean, 1, (n, 10)) for mean, n in shares.items()])
    return latent @ directions + rng.normal(0, 0.1, (len(latent), d))


def samples(n_p: int, n_u: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw P, and U of which PRIOR are positive."""
    rng, n = np.random.default_rng([SEED, n_p]), int(PRIOR * n_u)
    return rows_of({0.5: n_p}, d, rng), rows_of({0.5: n, -0.5: n_u - n}, d, rng)


class OfMatrix:
    """A classifier of P against U by ``fit(X, y)``, fitted as ours are."""

    def __init__(self, classifier: Any) -> None:
        self.pipeline = make_pipeline(StandardScaler(), classifier)

    def fit_pu(self, X_p: np.ndarray, X_u: np.ndarray) -> Any:
        """Fit, and return what predicts."""
        X, y = np.concatenate([X_p, X_u]), np.repeat([1, 0], [len(X_p), len(X_u)])
        np.random.seed(SEED)  # noqa: NPY002  (not all of them take a seed)
        return self.pipeline.fit(X, y)


def methods() -> dict[str, Callable[[], Any]]:
    """Return what makes a new classifier, by name."""
    ours = {
        "DensityRatioClassifier()": partial(DensityRatioClassifier, PRIOR),
        "DensityRatioClassifier(estimator='ulsif')": partial(
            DensityRatioClassifier, PRIOR, estimator="ulsif"
        ),
        "RiskMinimizationClassifier()": partial(RiskMinimizationClassifier, PRIOR),
        "RiskMinimizationClassifier(solver='amsgrad')": partial(
            RiskMinimizationClassifier, PRIOR, solver="amsgrad"
        ),
    }
    simple = {
        "logistic regression": LogisticRegression,
        "boosted trees": HistGradientBoostingClassifier,
    }
    others = {name: partial(make, PRIOR, N_COLUMNS) for name, (make, _) in practice.peers().items()}
    return ours | {
        name: lambda make=make: OfMatrix(make()) for name, make in (simple | others).items()
    }


def users(repeats: int) -> Rows:
    """Fits of n rows, a fifth of them positive, and predictions of as many."""
    rows: Rows = []
    for n in SIZES:
        before = {row["method"]: row["fit"] for row in rows if 10 * row["n"] == n}
        quick = [name for name, seconds in before.items() if 10 * seconds < LONGEST]
        cases = users_cases(n, quick if n > SIZES[0] else methods())
        found = interleaved(cases, repeats if n <= 10**4 else 1)
        for name in dict.fromkeys(name for name, _ in cases):
            fit, predict = found[name, "fit"], found[name, "predict"]
            own = {"fit": fit.seconds, "peak_mb": fit.peak_mb, "predict": predict.seconds}
            rows.append({"method": name, "n": n, **own})
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def users_cases(n: int, names: Iterable[str]) -> dict[tuple[str, str], Callable[[], Any]]:
    """Return fit and prediction of some methods."""
    X_p, X_u = samples(n // 5, n - n // 5, N_COLUMNS)
    X, makers, fitted = np.concatenate([X_p, X_u]), methods(), {}

    def fit(name: str) -> None:
        fitted[name] = makers[name]().fit_pu(X_p, X_u)

    cases: dict[tuple[str, str], Callable[[], Any]] = {}
    for name in names:
        cases[name, "fit"] = partial(fit, name)
        cases[name, "predict"] = lambda name=name: fitted[name].predict(X)
    return cases


def ulsif(repeats: int) -> Rows:
    """UlSIF with 100 centres on 500 rows of P and 2,000 of U, which choose width and λ."""
    rows = []
    for d, turns in ((10, 3 * repeats), (784, repeats)):
        nu, de = samples(500, 2000, d)
        found = interleaved(ulsif_cases(nu, de), turns)
        check_ulsif({name: measured.result for name, measured in found.items()}, nu, de)
        rows += [
            {"method": name, "d": d, "seconds": measured.seconds}
            for name, measured in found.items()
        ]
    return rows


def ulsif_cases(nu: np.ndarray, de: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return fits by us, with default and with given widths, by NumPy and by peers."""
    default = ULSIF(nu, de, random_state=SEED)
    centers, widths = default.centers_, default.widths_
    grid = {"widths": widths, "lams": ULSIF_LAMS, "random_state": SEED}
    loo = {"selection": "loo", "clip_coefficients": True, **grid}
    loo["centers"] = peers.densratio_centers(nu, len(centers), SEED)
    folds = [
        assign_folds("rows", len(X), N_FOLDS, child(SEED, 2, part))
        for part, X in enumerate((nu, de))
    ]
    plain = (nu, de, centers, widths, np.array(ULSIF_LAMS), *folds)
    of_peers = (nu, de, widths, np.array(ULSIF_LAMS), len(centers), SEED)
    return {
        "default": lambda: ULSIF(nu, de, random_state=SEED),
        "given widths": lambda: ULSIF(nu, de, **grid),
        "careful NumPy": lambda: peers.careful(*plain),
        "matrix products and eigh alone": peers.ulsif_floor(nu, de, centers, len(widths), N_FOLDS),
        "textbook NumPy": lambda: peers.textbook(*plain),
        "leave-one-out": lambda: ULSIF(nu, de, **loo),
        "densratio": lambda: peers.densratio_fit(*of_peers),
        "adapt": lambda: peers.adapt_fit(*of_peers),
    }


def check_ulsif(fits: Mapping[str, Any], nu: np.ndarray, de: np.ndarray) -> None:
    """Fail unless the results agree where the peer is right.

    NumPy must give our scores and our choice. The peers' formulas of leave-one-out are not the
    closed form, so they may choose otherwise: at their choice and centres the ratio must be ours.
    """
    ours = fits["given widths"]
    for name in ("careful NumPy", "textbook NumPy"):
        np.testing.assert_allclose(fits[name].scores, ours.scores_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(fits[name][:2], (ours.width_, ours.lam_), err_msg=name)
    for name in ("densratio", "adapt"):
        peer = fits[name]
        options = {"centers": peer.centers, "widths": peer.width, "lams": peer.lam}
        own = ULSIF(nu, de, clip_coefficients=True, **options)
        theirs = gaussian_kernel(de, peer.centers, peer.width) @ peer.coefficients
        np.testing.assert_allclose(own(de), theirs, rtol=1e-5, atol=1e-8, err_msg=name)


def training(repeats: int) -> Rows:
    """100 steps of a cross-validation: three given priors × λ × (5 folds + the final model)."""
    rows = []
    for name, d, n_lams, loss in (
        ("MNIST, DH-Lin", 784, 12, "double_hinge"),
        ("ijcnn1, Sq-Lin", 22, 12, "squared"),
        ("banana, DH-Lin", 2, 12, "double_hinge"),
        ("any, Sq-Ker", 125, 6, "squared"),
    ):
        cases, n_models = training_cases(d, n_lams, loss, n_steps=100)
        found = interleaved(cases, repeats)
        check_training(found["ours"].result, found["PyTorch"].result, loss)
        seconds = {method: measured.seconds for method, measured in found.items()}
        rows.append({"case": f"{name}, {n_models} models", **seconds})
    return rows


def training_cases(
    d: int, n_lams: int, loss: str, n_steps: int
) -> tuple[dict[str, Callable[[], Any]], int]:
    """Return one training by us, by PyTorch, and its matrix products; and the number of models."""
    rng = np.random.default_rng(SEED)
    means = ([(0.2, 500)], [(0.2, 600), (-0.2, 1400)])
    parts = tuple(
        np.concatenate([rng.normal(mean, 1.0, (n, d)) for mean, n in part]).astype(np.float32)
        for part in means
    )
    folds = [
        assign_folds("rows", len(part), N_FOLDS, child(SEED, 2, i)) for i, part in enumerate(parts)
    ]
    # Not ½, where the bias's first gradient is rounding, and its step is not.
    given = [Condition(PRIOR, prior) for prior in np.linspace(0.3, 0.8, 3)]
    conditions = [one for one in given for _ in range(n_lams * (N_FOLDS + 1))]
    grid = np.append(0.0, np.logspace(-5, -1, n_lams - 1))
    lams = np.tile(np.repeat(grid, N_FOLDS + 1), 3)
    weights = tuple(np.tile(training_weights(fold, N_FOLDS), (1, 3 * n_lams)) for fold in folds)

    def ours() -> np.ndarray:
        model = LinearModel(d, len(lams))
        options = {"weights_p": weights[0], "weights_u": weights[1], "record": ()}
        risk = Risk(conditions, loss, "pu-shift")
        options |= {"n_batches": 5, "n_steps": n_steps, "random_state": SEED}
        train(model, *parts, risk, lam=lams, **options)
        return np.concatenate([model.W.array, model.b.array[None]])

    batches = (loss, n_steps, 5, child(SEED, 0))
    return {
        "ours": ours,
        "PyTorch": lambda: peers.stacked_torch(parts, weights, conditions, lams, *batches),
        "products": peers.training_floor(500, (d + 1, len(lams)), n_steps),
    }, len(lams)


def check_training(ours: np.ndarray, theirs: np.ndarray, loss: str) -> None:
    """Fail unless the models agree; rounding can move a score over a kink of the double hinge."""
    worst = (np.linalg.norm(ours - theirs, axis=0) / np.linalg.norm(ours, axis=0)).max()
    if worst > (0.01 if loss == "double_hinge" else 1e-4):
        raise AssertionError(f"PyTorch differs from ours by {worst:.1%}")


BENCHMARKS: dict[str, Callable[[int], Rows]] = {
    "users": users,
    "ulsif": ulsif,
    "training": training,
}


def shown(value: float | None) -> str:
    """Return a time in seconds with two digits, or a dash for what was not measured."""
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 9.95 else f"{value:.2g}" if value >= 1e-3 else f"{value:.1g}"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def growth(seconds: Mapping[int, float]) -> float:
    """Return the exponent between the two largest sizes, if they are ten times apart."""
    largest = max(seconds)
    if largest // 10 not in seconds:
        return float("nan")
    return float(np.log10(seconds[largest] / seconds[largest // 10]))


def users_table(rows: Rows, what: str) -> str:
    """Seconds of each method by the number of rows, and their growth."""
    lines = []
    for name in dict.fromkeys(row["method"] for row in rows):
        seconds = {row["n"]: row[what] for row in rows if row["method"] == name}
        label = f"`{name}`" if "(" in name else name
        times = [shown(seconds.get(n)) for n in SIZES]
        lines.append([label, *times, f"{growth(seconds):.2f}"])
    return markdown([what, *(f"10^{len(str(n)) - 1}" for n in SIZES), "growth"], lines)


def memory_line(rows: Rows) -> str:
    """Tell the memory of our own defaults at the largest size."""
    n = max(SIZES)
    peaks = [
        f"`{row['method']}` {row['peak_mb']:.0f} MB"
        for row in rows
        if row["n"] == n and row["method"].endswith("r()")
    ]
    data = n * N_COLUMNS * 8 / 2**20
    return f"Memory of fits to {n:,} rows, beside their {data:.0f} MB: {', '.join(peaks)}.\n"


def ulsif_table(rows: Rows) -> str:
    """Milliseconds, and the ratio to our fit of the same selection and widths."""
    seconds = {(row["method"], row["d"]): row["seconds"] for row in rows}
    names = list(dict.fromkeys(row["method"] for row in rows))
    loo = names.index("leave-one-out")
    lines = []
    for place, name in enumerate(names):
        base = "leave-one-out" if place >= loo else "given widths"
        cells = []
        for d in (10, 784):
            own = seconds[name, d]
            cells += [f"{1e3 * own:.0f}", f"{own / seconds[base, d]:.2f}"]
        label = f"pu-shift, {name}" if name in ("default", "given widths", base) else name
        lines.append([label, *cells])
    return markdown(["uLSIF", "d = 10, ms", "ratio", "d = 784, ms", "ratio"], lines)


def training_table(rows: Rows) -> str:
    """Ratios of the peer and of the matrix products to ours."""
    lines = [
        [
            row["case"],
            f"{1e3 * row['ours']:.0f}",
            f"{row['PyTorch'] / row['ours']:.2f}",
            f"{row['products'] / row['ours']:.2f}",
        ]
        for row in rows
    ]
    return markdown(["100 steps", "ours, ms", "PyTorch", "matrix products"], lines)


def cluster_line() -> str:
    """Tell what benchmarks/scale.json holds."""
    figures = json.loads(scale.RESULTS.read_text(encoding="utf-8"))
    fits = [row for row in figures if row["what"] == "fit" and row["workers"] == 2]
    told = [
        f"{row['rows']:,} rows {row['cpu']:.0f} s, {row['peak_mb']} MB"
        for row in fits
        if row["rows"] >= 10**6
    ]
    return f"CPU time of all workers, and the largest memory of one: {'; '.join(told)}.\n"


def render(results: Mapping[str, Any]) -> str:
    """Return the tables of docs/SPEED.md."""
    rows = {name: part["rows"] for name, part in results.items()}
    where = next(iter(results.values()))["machine"]
    parts = [
        f"Measured on {where['processor']}, one thread; Python {where['python']}, "
        f"NumPy {where['numpy']}, {where['blas']}.\n"
    ]
    if "users" in rows:
        parts += [users_table(rows["users"], what) for what in ("fit", "predict")]
        parts.append(memory_line(rows["users"]))
    parts += [ulsif_table(rows["ulsif"])] if "ulsif" in rows else []
    parts += [training_table(rows["training"])] if "training" in rows else []
    return "\n".join([*parts, cluster_line()])


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks that are asked for; the others keep their results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS)
    parser.add_argument("--repeats", type=int, default=5, help="turns (the median is taken)")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    path = options.out
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    # Of edges of grids, of constants that took a model's place, and of the peers' solvers.
    warnings.simplefilter("ignore")
    for name in options.only:
        before = machine()
        results[name] = {"machine": before, "rows": BENCHMARKS[name](options.repeats)}
        text = json.dumps(results, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
    print(render(results), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
