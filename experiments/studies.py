"""What the studies beyond the paper share; each script shows its own experiment.

A study is a list of independent tasks, one per dataset and trial, each of which
gives a few rows of numbers. Its folder holds ``trials.csv`` (every row),
``summary.csv``, ``table.md``, ``figure.png`` and ``run.json``, and resumes like a table's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from pu_shift._checks import finite, open_unit
from pu_shift.data.sampling import Draw
from pu_shift.device import get_device
from pu_shift.paper.figures import method_colour, method_dash, png
from pu_shift.paper.protocol import fit_method
from pu_shift.paper.runner import RunOptions, draw_set, in_parallel, open_dataset
from pu_shift.paper.scripts import ending, find_data, messages, problems, progress, script_parser
from pu_shift.paper.settings import DATASETS, METHODS
from pu_shift.paper.store import Columns, TrialStore, count, text, write_atomic
from pu_shift.paper.tables import coverage, markdown

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class StudyOptions(RunOptions):
    """The options of a run, and the priors of a study."""

    prior: float = 0.3
    test_prior: float = 0.3

    def __post_init__(self) -> None:
        open_unit("prior", self.prior)
        open_unit("test_prior", self.test_prior)
        super().__post_init__()

    def draw(self, dataset: str, trial: int, prior: float, *test_priors: float) -> Draw:
        """Draw one training set, and a test set of each prior."""
        rows = open_dataset(dataset, self.label)
        return draw_set(rows, prior, test_priors, trial, self.protocol, self.seed)

    def fit(
        self, method: str, sample: Draw, prior: float, given_priors: Sequence[float]
    ) -> dict[float, Any]:
        """Fit a method of the paper, told π, for every given test prior."""
        return fit_method(self.protocol, method, sample, prior, given_priors, self.gpu)


def _six_digits(name: str, value: Any) -> float:
    # What is kept is what is summarised, so that a resumed run prints the same.
    return float(f"{finite(name, value):.6g}")


@dataclass(frozen=True)
class Study:
    """What distinguishes one study from another.

    ``run`` returns rows of the ``axis``, ``method`` and ``value`` for a dataset and trial,
    ``points`` the (axis, method) of every such row. ``defaults`` are of the priors that are
    options. Curves are held against a ``reference``: a height, or ``'diagonal'``.
    """

    name: str
    title: str
    run: Callable[[str, int, StudyOptions], Rows]
    points: Callable[[StudyOptions], Iterable[tuple[Any, str]]]
    axis: str
    axis_label: str
    value_label: str
    axis_check: Callable[[str, Any], Any] = _six_digits
    defaults: Mapping[str, float] = field(default_factory=dict)
    trials: int = 10
    methods: tuple[str, ...] = METHODS
    reference: float | str | None = None
    highest: float | None = None
    one_scale: bool = False

    @property
    def columns(self) -> Columns:
        """The columns of ``trials.csv``."""
        numbers = {self.axis: self.axis_check, "method": text, "value": _six_digits}
        key = ("dataset", "trial", self.axis, "method")
        return Columns({"dataset": text, "trial": count, **numbers}, key, ("dataset", "trial"))


def study_main(study: Study, argv: Sequence[str] | None = None) -> int:
    """Run a study from the command line; return the exit status."""

    def run() -> int:
        start = time.monotonic()
        parsed = _parser(study).parse_args(argv)
        with messages(parsed.quiet):
            priors = {name: getattr(parsed, name) for name in study.defaults}
            options, missing = find_data(parsed, StudyOptions, **priors)
            trials = run_study(study, options, Path(parsed.out), list(missing), parsed.quiet)
        table = write_study(study, trials, options, Path(parsed.out), list(missing))
        if not parsed.quiet:
            print(table)
            for line in problems(options, missing):
                print(f"{line}\n")
            print(f"{time.monotonic() - start:.0f} s; results in {parsed.out}")
        return 0

    return ending(run)


def _parser(study: Study) -> argparse.ArgumentParser:
    parser = script_parser(
        f"{study.title}. Resumes what --out holds.",
        f"results/{study.name}",
        methods=study.methods,
        trials=study.trials,
    )
    for name, default in study.defaults.items():
        whose = "π of the unlabelled data" if name == "prior" else "π′ of the test data"
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(
            option, type=float, default=default, help=f"{whose} (default: {default})"
        )
    return parser


def run_study(
    study: Study,
    options: StudyOptions,
    folder: Path,
    missing: Sequence[str] = (),
    quiet: bool = True,
) -> pd.DataFrame:
    """Run what the folder does not hold yet; return the rows that were asked for, in order."""
    points = [(study.axis_check(study.axis, point), name) for point, name in study.points(options)]
    identity = {
        "study": study.name,
        "prior": options.prior,
        "test_prior": options.test_prior,
        "seed": options.seed,
        "protocol": options.protocol.as_dict(),
        "files": options.fingerprints(),
        "device": options.device,
    }
    with TrialStore(folder, identity, options.fresh, study.columns) as store:
        done = store.done()
        calls = [
            joblib.delayed(_run_task)(study, dataset, trial, options)
            for trial in range(options.trials)
            for name, dataset in zip(options.names, options.datasets)
            if any((name, trial, *point) not in done for point in points)
        ]
        with closing(in_parallel(calls, options.n_workers)) as finished:
            for rows in finished if quiet else progress(calls, finished):
                store.append(rows)
        trials = store.frame()
    # What is not available may be in the folder, from an earlier run.
    shown = options.names
    if missing:
        shown = [name for name in DATASETS if name in missing or name in shown]
    order = {
        (name, trial, *point): None
        for trial in range(options.trials)
        for name in shown
        for point in points
    }
    found = trials.set_index(list(study.columns.key))
    return found.loc[[key for key in order if key in found.index]].reset_index()


def _run_task(study: Study, dataset: str, trial: int, options: StudyOptions) -> Rows:
    # As in the tables: more threads would change the rounding.
    with threadpool_limits(1), get_device(options.gpu).use():
        rows = study.run(dataset, trial, options)
    name = open_dataset(dataset, options.label).name
    return [{"dataset": name, "trial": trial, **row} for row in rows]


def write_study(
    study: Study,
    trials: pd.DataFrame,
    options: StudyOptions,
    folder: Path,
    missing: Sequence[str] = (),
) -> str:
    """Write the study's table and figure and return the table."""
    groups = trials.groupby(["dataset", study.axis, "method"], sort=False)["value"]
    summary = groups.agg(n="count", mean="mean", se="sem").reset_index()
    total = len({*options.names, *missing}) * len(set(study.points(options)))
    absent = [name for name in missing if name not in set(summary["dataset"])]
    covered = coverage(len(summary), total, absent, "points")
    table = study_table(study, summary, covered)
    write_atomic(folder / "summary.csv", summary.to_csv(index=False, float_format="%.6g"))
    write_atomic(folder / "table.md", table)
    write_atomic(folder / "figure.png", png(study_figure(study, summary, covered)))
    return table


def study_table(study: Study, summary: pd.DataFrame, covered: str = "") -> str:
    """Lay out means and standard errors in Markdown, a row per dataset and point."""
    digits = 3 if summary["mean"].abs().max() <= 1.0 else 1
    methods = list(dict.fromkeys(summary["method"]))
    lines = [
        f"{study.title}. {study.value_label}, mean (standard error) over {summary['n'].max()} "
        "trials." + (f" {covered}." if covered else ""),
        "",
        f"| dataset | {study.axis_label} | {' | '.join(methods)} |",
        f"|---|---|{'---|' * len(methods)}",
    ]
    for (dataset, point), cells in summary.groupby(["dataset", study.axis], sort=False):
        shown = {
            cell.method: f"{cell.mean:.{digits}f} ({cell.se:.{digits}f})"
            for cell in cells.itertuples()
        }
        row = " | ".join(shown[method] for method in methods)
        lines.append(f"| {markdown(dataset)} | {_shown(point)} | {row} |")
    return "\n".join(lines) + "\n"


def _shown(point: Any) -> str:
    return point if isinstance(point, str) else f"{point:g}"


def study_figure(study: Study, summary: pd.DataFrame, covered: str = "") -> Figure:
    """Draw a panel per dataset and a curve with a band of one standard error per method."""
    hidden = ("agreement", "estimate", "wrong", "seconds")
    shown = summary[~summary["method"].str.startswith(hidden)]
    datasets, methods = (list(dict.fromkeys(shown[name])) for name in ("dataset", "method"))
    columns = min(3, len(datasets))
    rows = -(-len(datasets) // columns)
    width, height = max(3.4 * columns + 0.7, 7.2), 2.7 * rows + 1.4
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=study.one_scale)
    others = iter(("#0072B2", "#E69F00", "#009E73", "#CC79A7"))
    known = {method: method_colour(method) for method in methods if method in METHODS}
    free = (colour for colour in others if colour not in known.values())
    colours = {m: known[m] if m in known else next(free, "#777777") for m in methods}
    for axes, dataset in zip(grid.flat, datasets):
        part = shown[shown["dataset"] == dataset]
        for method in methods:
            points = part[part["method"] == method]
            x, mean = points[study.axis].to_numpy(), points["mean"].to_numpy()
            se = points["se"].fillna(0.0).to_numpy()
            line = (0, method_dash(method)) if method_dash(method) else "-"
            if isinstance(x[0], str):  # nothing lies between two names
                axes.errorbar(x, mean, se, fmt="o", color=colours[method], label=method)
                axes.tick_params(axis="x", labelsize=7.5)
                continue
            axes.plot(x, mean, color=colours[method], linestyle=line, label=method, marker=".")
            axes.fill_between(x, mean - se, mean + se, color=colours[method], alpha=0.2, lw=0)
        axes.set_title(dataset.replace("$", r"\$"))  # a dollar sign would begin a formula
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
        _draw_reference(study, axes, part)
    for axes in list(grid.flat)[len(datasets) :]:
        axes.remove()
    for axes in grid[:, 0]:
        axes.set_ylabel(study.value_label)
    for axes in list(grid.flat)[max(0, len(datasets) - columns) : len(datasets)]:
        axes.set_xlabel(study.axis_label)
        axes.tick_params(labelbottom=True)
    # Margins in inches: the title above, the axes' label and the legend below.
    sides = {"left": 0.7 / width, "right": 1 - 0.15 / width}
    ends = {"bottom": 0.85 / height, "top": 1 - 0.7 / height}
    figure.subplots_adjust(**sides, **ends, hspace=0.25, wspace=0.22)
    figure.suptitle("\n".join(filter(None, [study.title, covered])))
    figure.legend(
        *grid[0, 0].get_legend_handles_labels(),
        loc="lower center",
        ncol=len(methods),
        frameon=False,
        handlelength=3.2,
        columnspacing=1.2,
        handletextpad=0.5,
    )
    return figure


def _draw_reference(study: Study, axes: Any, part: pd.DataFrame) -> None:
    """Draw what a curve is to be held against, and cut off what is far above."""
    # Above the grid, which would hide it, and below the curves.
    style = {"color": "0.4", "linewidth": 0.8, "linestyle": "--", "zorder": 1}
    if study.reference == "diagonal":
        ends = [part[study.axis].min(), part[study.axis].max()]
        axes.plot(ends, ends, **style)
    elif study.reference is not None:
        axes.axhline(study.reference, **style)
    if study.highest is not None:
        axes.set_ylim(0.0, min(study.highest, axes.get_ylim()[1]))
