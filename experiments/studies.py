"""Studies beyond the paper: asymmetric error, robustness, and an estimated prior.

A study is a list of independent tasks, one per dataset and trial, each of which
gives a few rows of numbers. Its folder holds ``trials.csv`` (every row, written
as its task finishes), ``summary.csv``, ``table.md``, ``figure.png`` and ``run.json``.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from pu_shift._chainer import chainer
from pu_shift._checks import distinct, finite, one_of, open_unit, positive_int
from pu_shift.class_prior import estimate_prior
from pu_shift.data.sampling import Draw, draw
from pu_shift.device import DeviceError, get_device, to_numpy
from pu_shift.links import LinearModel, score_rows
from pu_shift.paper.figures import png
from pu_shift.paper.methods import fit_method
from pu_shift.paper.outputs import coverage
from pu_shift.paper.protocol import Protocol, load_protocol
from pu_shift.paper.rendering import csv_table, markdown
from pu_shift.paper.runner import (
    WorkerError,
    fingerprints,
    in_parallel,
    name_of,
    open_dataset,
)
from pu_shift.paper.scripts import available, fail, interrupted
from pu_shift.paper.settings import DATASETS, EXTRA_METHODS, METHODS
from pu_shift.paper.store import Columns, TrialStore, count, text, write_atomic
from pu_shift.paper.style import literal, method_colour, method_dash
from pu_shift.priors import Condition, test_prior_from_alpha
from pu_shift.risks import Risk
from pu_shift.training import train

Rows = list[dict[str, Any]]
ALPHAS = tuple(round(0.1 * i, 1) for i in range(1, 10))
GIVEN_PRIORS = tuple(round(0.05 * i, 2) for i in range(1, 20))
PRIOR_ESTIMATORS = {
    "auto": ("auto", None),
    "KM2": ("km2", "raw"),
    "penL1, score": ("pen-l1", "score"),
    "penL1": ("pen-l1", "raw"),
}
PRIORS = (0.3, 0.5, 0.7)


@dataclass(frozen=True)
class Study:
    """What distinguishes one study from another.

    Attributes
    ----------
    name, title : str
        The name of its folder and the title of its figure.
    run : callable
        (dataset, trial, options) to rows; options are those of the command
        line, with ``methods`` and ``protocol``.
    points : callable
        Options to the (axis, curve) of every row of such a task, in any order.
    axis, value : str
        The columns on the figure's axes.
    axis_label, value_label : str
        What they are called there.
    by : str
        The column that names a curve.
    priors : tuple of float
        Default π and π′.
    trials : int
        Default number of trials.
    takes : tuple of str
        Which of the options ``prior``, ``test_prior`` and ``methods`` it has.
    """

    name: str
    title: str
    run: Callable[[str, int, argparse.Namespace], Rows]
    points: Callable[[argparse.Namespace], Iterable[tuple[float, str]]]
    axis: str
    value: str
    axis_label: str
    value_label: str
    by: str = "method"
    priors: tuple[float, float] = (0.3, 0.3)
    trials: int = 10
    takes: tuple[str, ...] = ("prior", "test_prior", "methods")


def run_asymmetric(dataset: str, trial: int, options: argparse.Namespace) -> Rows:
    """Cost-weighted error of every method and α, in percent, on one training set.

    A penalty α is given to the methods as the equivalent test prior
    (Corollary 2). The cost-weighted error is α·FP + (1 − α)·FN per test row,
    divided by the cost of the better constant classifier.

    Parameters
    ----------
    dataset
        Its name, or a file.
    trial
        The trial's number.
    options
        ``prior``, ``seed``, ``gpu``, ``methods`` and ``protocol``.

    Returns
    -------
    list of dict
        Rows of ``alpha``, ``method`` and ``value``; the methods ``agreement
        DH-Lin`` and ``agreement Sq-Lin`` hold the share of test rows on which
        training at α and at the equivalent π′ decide alike, in percent.
    """
    sample = _draw(dataset, trial, options, options.prior)
    X, y = sample.tests[options.prior]
    given = {alpha: test_prior_from_alpha(options.prior, alpha) for alpha in ALPHAS}
    rows = []
    for method in options.methods:
        fitted = _fit(method, sample, options.prior, list(given.values()), options)
        for alpha, prior in given.items():
            wrong = fitted[prior].predict(X) != y
            cost = np.where(y > 0, 1.0 - alpha, alpha)
            constant = min(np.mean(cost * (y > 0)), np.mean(cost * (y < 0)))
            value = 100.0 * float(np.mean(cost * wrong) / constant)
            rows.append({"alpha": alpha, "method": method, "value": value})
    for name, loss in (("DH-Lin", "double_hinge"), ("Sq-Lin", "squared")):
        for alpha in ALPHAS:
            share = _agreement(sample, X, options, alpha, loss)
            rows.append({"alpha": alpha, "method": f"agreement {name}", "value": share})
    return rows


def _agreement(
    sample: Draw, X: np.ndarray, options: argparse.Namespace, alpha: float, loss: str
) -> float:
    """Share of rows that the PU-asym and the equivalent PU-shift risk decide alike."""
    prior, protocol, device = options.prior, options.protocol, get_device(options.gpu)
    P, U, X = device.send((sample.positives, sample.unlabeled, X))
    scores = []
    for kind, condition in (
        ("pu-asym", Condition(prior, alpha=alpha)),
        ("pu-shift", Condition(prior, test_prior_from_alpha(prior, alpha))),
    ):
        model = LinearModel(X.shape[1])
        model.to_device(device)
        train(
            model,
            P,
            U,
            Risk(condition, loss, kind),
            n_steps=protocol.n_steps,
            n_batches=protocol.n_batches,
            learning_rate=protocol.learning_rate,
            seed=sample.seed,
        )
        scores.append(to_numpy(score_rows(model, X)))
    return 100.0 * float(np.mean((scores[0] > 0) == (scores[1] > 0)))


def run_robustness(dataset: str, trial: int, options: argparse.Namespace) -> Rows:
    """Accuracy of every method and given prior, in percent, on one training set.

    Parameters
    ----------
    dataset, trial, options
        As for :func:`run_asymmetric`, and ``test_prior``.

    Returns
    -------
    list of dict
        Rows of ``given_prior``, ``method`` and ``value``.
    """
    sample = _draw(dataset, trial, options, options.test_prior)
    test = sample.tests[options.test_prior]
    rows = []
    for method in options.methods:
        fitted = _fit(method, sample, options.prior, GIVEN_PRIORS, options)
        for given, classifier in fitted.items():
            value = 100.0 * classifier.score(*test)
            rows.append({"given_prior": given, "method": method, "value": value})
    return rows


def run_estimated_prior(dataset: str, trial: int, options: argparse.Namespace) -> Rows:
    """Accuracy lost by estimating π, in points, for several π on one draw each.

    Parameters
    ----------
    dataset, trial, options
        As for :func:`run_robustness`; ``prior`` is one of the priors, and
        ``test_prior`` is given to the methods.

    Returns
    -------
    list of dict
        Rows of ``prior``, ``method`` and ``value``, the accuracy with the
        estimate less that with the true prior; the method ``estimate`` holds
        100·π̂ itself.
    """
    rows = []
    for prior in _priors_and(options.prior):
        sample = _draw(dataset, trial, options, options.test_prior, prior)
        estimate = estimate_prior(sample.positives, sample.unlabeled, seed=sample.seed).prior
        test = sample.tests[options.test_prior]
        rows.append({"prior": prior, "method": "estimate", "value": 100.0 * estimate})
        for method in options.methods:
            ours, true = (
                _fit(method, sample, value, [options.test_prior], options)[
                    options.test_prior
                ].score(*test)
                for value in (estimate, prior)
            )
            value = 100.0 * (ours - true)
            rows.append({"prior": prior, "method": method, "value": value})
    return rows


def run_class_prior(dataset: str, trial: int, options: argparse.Namespace) -> Rows:
    """Estimates of π by every estimator, at π = 0.3, 0.5 and 0.7.

    Parameters
    ----------
    dataset, trial, options
        As for :func:`run_asymmetric`.

    Returns
    -------
    list of dict
        Rows of ``prior``, ``method`` and ``value``, the estimate.
    """
    rows = []
    for prior in PRIORS:
        sample = _draw(dataset, trial, options, prior, prior)
        for name, (method, transform) in PRIOR_ESTIMATORS.items():
            estimate = estimate_prior(
                sample.positives, sample.unlabeled, method, transform, seed=sample.seed
            )
            rows.append({"prior": prior, "method": name, "value": estimate.prior})
    return rows


def _priors_and(prior: float) -> list[float]:
    return sorted({*PRIORS, prior})


def _draw(
    dataset: str,
    trial: int,
    options: argparse.Namespace,
    test_prior: float,
    prior: float | None = None,
) -> Draw:
    protocol: Protocol = options.protocol
    return draw(
        open_dataset(dataset),
        options.prior if prior is None else prior,
        test_prior,
        protocol.n_p,
        protocol.n_u,
        protocol.n_test,
        options.seed,
        trial,
        protocol.counts,
    )


def _fit(
    method: str,
    sample: Draw,
    prior: float,
    given_priors: Sequence[float],
    options: argparse.Namespace,
) -> dict[float, Any]:
    return fit_method(options.protocol, method, sample, prior, given_priors, options.gpu)


STUDIES = {
    study.name: study
    for study in (
        Study(
            "asymmetric",
            "Asymmetric error: cost of a method in percent of the better constant classifier",
            run_asymmetric,
            lambda options: product(
                ALPHAS, (*options.methods, "agreement DH-Lin", "agreement Sq-Lin")
            ),
            "alpha",
            "value",
            "α, the penalty of a false positive",
            "relative cost (%)",
            takes=("prior", "methods"),
        ),
        Study(
            "robustness",
            "Accuracy against the given test prior",
            run_robustness,
            lambda options: product(GIVEN_PRIORS, options.methods),
            "given_prior",
            "value",
            "given prior",
            "accuracy (%)",
            priors=(0.3, 0.5),
        ),
        Study(
            "estimated_prior",
            "Accuracy with an estimated class prior, less that with the true one",
            run_estimated_prior,
            lambda options: product(_priors_and(options.prior), ("estimate", *options.methods)),
            "prior",
            "value",
            "π, estimated by 'auto'",
            "difference (points)",
            # Not ½: there the ratio's threshold is 1 whatever π is taken to be.
            priors=(0.3, 0.7),
        ),
        Study(
            "class_prior",
            "Estimates of the class prior",
            run_class_prior,
            lambda options: product(PRIORS, PRIOR_ESTIMATORS),
            "prior",
            "value",
            "π",
            "estimate",
            trials=5,
            takes=(),
        ),
    )
}


def study_main(name: str, argv: Sequence[str] | None = None) -> int:
    """Run a study from the command line.

    Parameters
    ----------
    name
        Which one.
    argv
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit status: 0, 2 when it cannot be run, 130 when it was interrupted.

    Examples
    --------
    >>> study_main("robustness", ["--datasets", "iris"])
    2
    """
    study = STUDIES[name]
    options = _parser(study).parse_args(argv)
    start = time.monotonic()
    try:
        options.protocol = load_protocol(options.protocol)
        get_device(options.gpu)  # fail before anything is fetched
        options.datasets, options.missing = available(options)
        trials = run_study(study, options)
        table = write_study(study, trials, options)
    except (ValueError, OSError, DeviceError, WorkerError) as error:
        return fail(error)
    except KeyboardInterrupt:
        return interrupted()
    if not options.quiet:
        print(table)
        for line in options.missing.values():
            print(f"{line}\n")
        print(f"{time.monotonic() - start:.0f} s; results in {options.out}")
    return 0


def _parser(study: Study) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=f"{study.title}. Resumes what --out holds.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    prior, test_prior = study.priors
    parser.set_defaults(prior=prior, test_prior=test_prior, methods=list(METHODS), missing={})
    if "prior" in study.takes:
        add("--prior", type=float, default=prior, help="π of the unlabelled data")
    if "test_prior" in study.takes:
        add("--test-prior", type=float, default=test_prior, help="π′ of the test data")
    if "methods" in study.takes:
        add("--methods", nargs="+", default=list(METHODS), help="which methods")
    add("--gpu", type=int, default=-1, metavar="ID", help="CUDA device; -1 is the CPU")
    add("--trials", type=int, default=study.trials, help="number of trials")
    add("--datasets", nargs="+", help=f"which datasets (default: {', '.join(DATASETS)})")
    add("--seed", type=int, default=0, help="seed of everything random")
    add("--jobs", type=int, default=None, help="worker processes (default: one per core)")
    add("--out", default=f"results/{study.name}", metavar="DIR", help="results folder")
    add("--fresh", action="store_true", help="delete the folder's results instead of resuming")
    add("--protocol", metavar="FILE", help="JSON file with fields of the protocol to change")
    add("--quiet", action="store_true", help="print nothing")
    return parser


def run_study(study: Study, options: argparse.Namespace) -> pd.DataFrame:
    """Run the tasks of a study in parallel, but for those that its folder holds.

    Parameters
    ----------
    study
        The study.
    options
        Its options.

    Returns
    -------
    DataFrame
        ``dataset``, ``trial`` and the columns of the study's rows, in order.

    Examples
    --------
    >>> import tempfile
    >>> options = _parser(STUDIES["robustness"]).parse_args(
    ...     ["--datasets", "banana", "--methods", "p/u uLSIF", "--trials", "1", "--jobs", "1"])
    >>> options.protocol = Protocol()
    >>> with tempfile.TemporaryDirectory() as options.out:
    ...     len(run_study(STUDIES["robustness"], options)) == len(GIVEN_PRIORS)
    True
    """
    positive_int("trials", options.trials)
    positive_int("seed", options.seed, least=0)
    open_unit("prior", options.prior)
    open_unit("test_prior", options.test_prior)
    for method in options.methods:
        one_of("method", method, (*METHODS, *EXTRA_METHODS))
    get_device(options.gpu)  # fail before the work
    names = [name_of(dataset) for dataset in options.datasets]
    # Results are kept by name: two files of one name would pass for each other.
    distinct("datasets", names)
    # What is not available may be in the folder, from an earlier run.
    shown = [name for name in DATASETS if name in options.missing or name in names]
    shown = shown if options.missing else names
    jobs = options.jobs
    if jobs is None:
        jobs = 1 if options.gpu >= 0 else len(os.sched_getaffinity(0))
    positive_int("jobs", jobs)
    points = {(_six_digits(study.axis, point), curve) for point, curve in study.points(options)}
    run = {
        "study": study.name,
        "prior": options.prior,
        "test_prior": options.test_prior,
        "seed": options.seed,
        "protocol": options.protocol.as_dict(),
        "files": fingerprints(options.datasets),
    }
    with TrialStore(options.out, run, options.fresh, study_columns(study)) as store:
        done = store.done()
        calls = [
            joblib.delayed(_run_task)(study.name, dataset, trial, options)
            for trial in range(options.trials)
            for name, dataset in zip(names, options.datasets)
            if any((name, trial, *point) not in done for point in points)
        ]
        with closing(in_parallel(calls, jobs)) as finished:
            for rows in finished:
                store.append(rows)
        trials = store.frame()
    asked = [
        row.dataset in shown
        and row.trial < options.trials
        and (getattr(row, study.axis), getattr(row, study.by)) in points
        for row in trials.itertuples()
    ]
    # By task, whatever the order in which they finished.
    order = trials[asked].sort_values(
        ["trial", "dataset"],
        kind="stable",
        key=lambda column: column.map(shown.index) if column.name == "dataset" else column,
    )
    return order.reset_index(drop=True)


def study_columns(study: Study) -> Columns:
    """Return the columns of a study's trials.

    Parameters
    ----------
    study
        The study.

    Returns
    -------
    Columns
        Of ``trials.csv``.

    Examples
    --------
    >>> list(study_columns(STUDIES["robustness"]).checks)
    ['dataset', 'trial', 'given_prior', 'method', 'value']
    """
    checks = {
        "dataset": text,
        "trial": count,
        study.axis: _six_digits,
        study.by: text,
        study.value: _six_digits,
    }
    return Columns(checks, ("dataset", "trial", study.axis, study.by))


def _six_digits(name: str, value: Any) -> float:
    # What is kept is what is summarised, so that a resumed run prints the same.
    return float(f"{finite(name, value):.6g}")


def _run_task(name: str, dataset: str, trial: int, options: argparse.Namespace) -> Rows:
    # As in the tables: more threads would change the rounding.
    with threadpool_limits(1), chainer.using_device(get_device(options.gpu)):
        rows = STUDIES[name].run(dataset, trial, options)
    return [{"dataset": open_dataset(dataset).name, "trial": trial, **row} for row in rows]


def write_study(study: Study, trials: pd.DataFrame, options: argparse.Namespace) -> str:
    """Write the study's folder and return its table.

    Parameters
    ----------
    study
        The study.
    trials
        From :func:`run_study`.
    options
        Its options.

    Returns
    -------
    str
        The table in Markdown.
    """
    folder = Path(options.out)
    keys = ["dataset", study.axis, study.by]
    groups = trials.groupby(keys, sort=False)[study.value]
    summary = groups.agg(n="count", mean="mean", se="sem").reset_index()
    asked = len({*map(name_of, options.datasets), *options.missing})
    total = asked * len(set(study.points(options)))
    absent = [name for name in options.missing if name not in set(summary["dataset"])]
    covered = coverage(len(summary), total, absent, "points")
    table = study_table(study, summary, covered)
    write_atomic(folder / "summary.csv", csv_table(summary, float_format="%.6g"))
    write_atomic(folder / "table.md", table)
    write_atomic(folder / "figure.png", png(study_figure(study, summary, covered)))
    return table


def study_table(study: Study, summary: pd.DataFrame, covered: str = "") -> str:
    """Lay out a study's means and standard errors in Markdown, a row per dataset and point.

    Parameters
    ----------
    study
        The study.
    summary
        ``dataset``, the axis, the curve, ``n``, ``mean`` and ``se``.
    covered
        How many points are there, if not all.

    Returns
    -------
    str
        The table.

    Examples
    --------
    >>> row = {"dataset": "susy", "prior": 0.3, "method": "KM2", "n": 2, "mean": 0.31, "se": 0.02}
    >>> print(study_table(STUDIES["class_prior"], pd.DataFrame([row])).splitlines()[-1])
    | susy | 0.3 | 0.310 (0.020) |
    """
    digits = 3 if summary["mean"].abs().max() <= 1.0 else 1
    curves = list(dict.fromkeys(summary[study.by]))
    lines = [
        f"{study.title}. {study.value_label}, mean (standard error) over {summary['n'].max()} "
        "trials." + (f" {covered}." if covered else ""),
        "",
        f"| dataset | {study.axis_label} | {' | '.join(curves)} |",
        f"|---|---|{'---|' * len(curves)}",
    ]
    for (dataset, point), cells in summary.groupby(["dataset", study.axis], sort=False):
        shown = {
            getattr(cell, study.by): f"{cell.mean:.{digits}f} ({cell.se:.{digits}f})"
            for cell in cells.itertuples()
        }
        lines.append(
            f"| {markdown(dataset)} | {point:g} | {' | '.join(shown[c] for c in curves)} |"
        )
    return "\n".join(lines) + "\n"


def study_figure(study: Study, summary: pd.DataFrame, covered: str = "") -> Figure:
    """Draw a panel per dataset and a curve with a band of one standard error per method.

    Parameters
    ----------
    study
        The study.
    summary, covered
        As for :func:`study_table`.

    Returns
    -------
    Figure
        A figure on an Agg canvas.

    Examples
    --------
    >>> row = {"dataset": "susy", "prior": 0.3, "method": "KM2", "n": 2, "mean": 0.31, "se": 0.02}
    >>> len(study_figure(STUDIES["class_prior"], pd.DataFrame([row])).axes)
    1
    """
    shown = summary[~summary[study.by].str.startswith(("agreement", "estimate"))]
    datasets, curves = (list(dict.fromkeys(shown[name])) for name in ("dataset", study.by))
    columns = min(3, len(datasets))
    rows = -(-len(datasets) // columns)
    width, height = max(3.4 * columns + 0.7, 7.2), 2.7 * rows + 1.4
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    # Differences are to be compared: a scale of its own would magnify a panel's noise.
    sharey = study.name == "estimated_prior"
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=sharey)
    others = iter(("#0072B2", "#E69F00", "#009E73", "#CC79A7"))
    colours = {c: method_colour(c) if c in METHODS else next(others, "#777777") for c in curves}
    for axes, dataset in zip(grid.flat, datasets):
        part = shown[shown["dataset"] == dataset]
        for curve in curves:
            points = part[part[study.by] == curve]
            x, mean = points[study.axis].to_numpy(), points["mean"].to_numpy()
            se = points["se"].fillna(0.0).to_numpy()
            line = (0, method_dash(curve)) if method_dash(curve) else "-"
            axes.plot(x, mean, color=colours[curve], linestyle=line, label=curve, marker=".")
            axes.fill_between(x, mean - se, mean + se, color=colours[curve], alpha=0.2, lw=0)
        axes.set_title(literal(dataset))
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
        _reference(study, axes, part)
    for axes in list(grid.flat)[len(datasets) :]:
        axes.remove()
    for axes in grid[:, 0]:
        axes.set_ylabel(study.value_label)
    for axes in list(grid.flat)[max(0, len(datasets) - columns) : len(datasets)]:
        axes.set_xlabel(study.axis_label)
        axes.tick_params(labelbottom=True)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    # Margins in inches: the title above, the axes' label and the legend below.
    figure.subplots_adjust(
        left=0.7 / width,
        right=1 - 0.15 / width,
        bottom=0.85 / height,
        top=1 - 0.7 / height,
        hspace=0.25,
        wspace=0.22,
    )
    figure.suptitle("\n".join(filter(None, [study.title, covered])))
    figure.legend(
        handles,
        labels,
        loc="lower center",
        ncol=len(labels),
        frameon=False,
        handlelength=3.2,
        columnspacing=1.2,
        handletextpad=0.5,
    )
    return figure


def _reference(study: Study, axes: Any, part: pd.DataFrame) -> None:
    """Draw what a curve is to be held against."""
    # Above the grid, which would hide it, and below the curves.
    style = {"color": "0.4", "linewidth": 0.8, "linestyle": "--", "zorder": 1}
    if study.name == "class_prior":
        ends = [part[study.axis].min(), part[study.axis].max()]
        axes.plot(ends, ends, **style)
    elif study.name == "asymmetric":
        axes.axhline(100.0, **style)
        # The constant classifier is the scale; far worse would hide the rest.
        axes.set_ylim(0.0, min(250.0, axes.get_ylim()[1]))
    elif study.name == "estimated_prior":
        axes.axhline(0.0, **style)
