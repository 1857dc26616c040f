"""A page and figures that set a folder of results beside the paper.

Usage: python experiments/report.py results/reference        (--help lists the options)
"""

from __future__ import annotations

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure
from robustness import STUDY
from studies import study_figure
from threadpoolctl import threadpool_limits

from pu_shift.paper.figures import comparison_figure, heat_map_figure, pdf, png
from pu_shift.paper.settings import TABLES
from pu_shift.paper.store import write_atomic
from pu_shift.priors import Condition
from pu_shift.report.idea_figures import ratios_figure, regions_figure, relations_figure
from pu_shift.report.ideas import Surfaces, banana_surfaces
from pu_shift.report.page import render
from pu_shift.report.results import Results, read_results, run_protocol


def report_figures(
    results: Results, condition: Condition, surfaces: Surfaces | None = None
) -> Iterator[tuple[str, Figure]]:
    """Draw every figure, with the name of its files."""
    yield "relations", relations_figure(condition)
    yield "ratios", ratios_figure(condition, surfaces)
    if surfaces is not None:
        yield "regions", regions_figure(surfaces)
    comparison = results.comparison
    printed = comparison[comparison["paper_mean"].notna()]
    for number, cells in printed.groupby("table"):
        yield f"comparison_table{number}", comparison_figure(cells, TABLES[number].title)
    if len(printed):
        yield "scatter", comparison_figure(printed, "Ours against the paper")
        yield "heat_map", heat_map_figure(printed)
    for curves in results.curves:
        name, _, priors = curves.title.partition(": ")
        study = replace(STUDY, title=f"{STUDY.title}, {priors}")
        figure = study_figure(study, curves.summary)
        yield f"given_prior_{name.lower().replace(' ', '')}", figure


def write_report(
    results: Results, out: Path, condition: Condition, surfaces: Surfaces | None = None
) -> list[Path]:
    """Write ``report.html``, and each figure as PNG and PDF into ``figures``."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    files = [out / "report.html"]
    write_atomic(files[0], render(results, condition, surfaces))
    for name, figure in report_figures(results, condition, surfaces):
        for kind, content in (("png", png(figure)), ("pdf", pdf(figure))):
            files.append(out / "figures" / f"{name}.{kind}")
            write_atomic(files[-1], content)
    return files


def surfaces_of(results: Results, condition: Condition) -> Surfaces | None:
    """Return the banana data's surfaces, or None, saying why, if the data are not available."""
    run = results.runs[0]
    try:
        # One thread, as in the tables: more would change the rounding.
        with threadpool_limits(1):
            return banana_surfaces(run_protocol(run), condition.prior, run["seed"] or 0)
    except (ArithmeticError, MemoryError, ValueError) as error:
        reason = " ".join(str(error).split())
        print(f"without pictures of the banana data: {reason}", file=sys.stderr)
        return None


def main(argv: Sequence[str] | None = None) -> int:
    """Make the report of a results folder; 2 if the folder cannot be used."""
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
        surfaces = surfaces_of(results, condition)
        files = write_report(results, Path(options.out), condition, surfaces)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: cannot write to {options.out}: {error.strerror}", file=sys.stderr)
        return 2
    print(f"{files[0]}, and {len(files) - 1} files in {files[0].parent / 'figures'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
