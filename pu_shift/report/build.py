"""From a folder of results to a page and figures that show them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

from matplotlib.figure import Figure
from robustness import STUDY
from studies import study_figure
from threadpoolctl import threadpool_limits

from pu_shift.paper import figures
from pu_shift.paper.protocol import Protocol, load_protocol
from pu_shift.paper.settings import TABLES
from pu_shift.paper.store import PathLike, write_atomic
from pu_shift.priors import Condition
from pu_shift.report import idea_figures
from pu_shift.report.ideas import Surfaces, banana_surfaces
from pu_shift.report.page import render
from pu_shift.report.results import Results, read_results


def report_figures(
    results: Results, condition: Condition, surfaces: Surfaces | None = None
) -> Iterator[tuple[str, Figure]]:
    """Draw every figure of a report.

    Parameters
    ----------
    results : Results
        From :func:`pu_shift.report.results.read_results`.
    condition : Condition
        π, π′ and α of the figures of ideas.
    surfaces : Surfaces, optional
        The banana data's surfaces; without them their figures are left out.

    Returns
    -------
    iterator of (str, Figure)
        Names, which serve as names of files, and figures.

    Examples
    --------
    >>> figures = report_figures(Results({}, {}, [], [], []), Condition(0.3, 0.5))
    >>> next(figures)[0]
    'relations'
    """
    yield "relations", idea_figures.relations_figure(condition)
    yield "ratios", idea_figures.ratios_figure(condition, surfaces)
    if surfaces is not None:
        yield "regions", idea_figures.regions_figure(surfaces)
    for number, frame in results.tables.items():
        if frame["paper_mean"].notna().any():
            title = TABLES[number].title
            yield f"comparison_table{number}", figures.comparison_figure(frame, title)
    if results.headline is not None:
        yield "scatter", figures.comparison_figure(results.comparison, "Ours against the paper")
        yield "heat_map", figures.heat_map_figure(results.comparison)
    for curves in results.curves:
        name, _, priors = curves.title.partition(": ")
        study = replace(STUDY, title=f"{STUDY.title}, {priors}")
        figure = study_figure(study, curves.summary)
        yield f"given_prior_{name.lower().replace(' ', '')}", figure


def write_report(
    results: Results,
    out: PathLike,
    condition: Condition,
    surfaces: Surfaces | None = None,
) -> list[Path]:
    """Write ``report.html``, and each figure as PNG and PDF into ``figures``.

    Parameters
    ----------
    results, condition, surfaces
        As for :func:`report_figures`.
    out : path-like
        The folder; it is created if need be.

    Returns
    -------
    list of Path
        The files, the page first.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from pu_shift.paper.compare import compare, summarize
    >>> cell = dict(prior=0.3, test_prior=0.5, given_prior=0.5, dataset="susy", method="DH-Lin")
    >>> trials = pd.DataFrame([{**cell, "trial": i, "accuracy": 70.0 + i} for i in range(3)])
    >>> results = Results({1: compare(summarize(trials))}, {1: trials}, [], [], [])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_report(results, folder, Condition(0.3, 0.5))][:2]
    ['report.html', 'relations.png']
    """
    out = Path(out)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    files = [out / "report.html"]
    write_atomic(files[0], render(results, condition, surfaces))
    for name, figure in report_figures(results, condition, surfaces):
        for kind, content in (("png", figures.png(figure)), ("pdf", figures.pdf(figure))):
            files.append(out / "figures" / f"{name}.{kind}")
            write_atomic(files[-1], content)
    return files


def main(argv: Sequence[str] | None = None) -> int:
    """Make the report of a results folder from the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The command line; that of the process by default.

    Returns
    -------
    int
        The exit status: 0, or 2 if the folder cannot be used.

    Examples
    --------
    >>> main(["no/such/folder"])
    2
    """
    parser = argparse.ArgumentParser(description="Results beside the paper: a page and figures.")
    add = parser.add_argument
    add("folder", metavar="RESULTS", help="folder with table1 … table7, or some of them")
    add("--out", default="results/report", metavar="DIR", help="where to (default: %(default)s)")
    add("--prior", type=float, default=0.3, help="π of the figures of ideas")
    add("--test-prior", type=float, default=0.5, help="their π′")
    add("--alpha", type=float, default=0.5, help="their α")
    options = parser.parse_args(argv)
    try:
        condition = Condition(options.prior, options.test_prior, options.alpha)
        results = read_results(options.folder)
        surfaces = _surfaces(results, condition)
        files = write_report(results, options.out, condition, surfaces)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: cannot write to {options.out}: {error.strerror}", file=sys.stderr)
        return 2
    print(f"{files[0]}, and {len(files) - 1} files in {files[0].parent / 'figures'}")
    return 0


def _surfaces(results: Results, condition: Condition) -> Surfaces | None:
    """Return the banana data's surfaces, or None, saying why, if they cannot be had."""
    run = results.runs[0]
    known = {item.name for item in fields(Protocol)}
    protocol = load_protocol({k: v for k, v in run["protocol"].items() if k in known})
    try:
        # One thread, as in the tables: more would change the rounding.
        with threadpool_limits(1):
            return banana_surfaces(protocol, condition.prior, run["seed"] or 0)
    except ValueError as error:
        reason = " ".join(str(error).split())
        print(f"without pictures of the banana data: {reason}", file=sys.stderr)
        return None


if __name__ == "__main__":
    sys.exit(main())
