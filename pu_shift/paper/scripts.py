"""The command line of the experiment scripts."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
from tqdm import tqdm

from pu_shift._chainer import ChainerMissingError, require_chainer
from pu_shift._checks import one_line
from pu_shift._signals import exit_status
from pu_shift.data import DataError
from pu_shift.device import DeviceError, usable_gpu
from pu_shift.paper.compare import Headline, headline
from pu_shift.paper.protocol import load_protocol
from pu_shift.paper.reference import Check, near_paper, other_run, same_trials
from pu_shift.paper.runner import RunOptions, Task, WorkerError, gather, run_all
from pu_shift.paper.settings import DATASETS, METHODS, TABLES, TRIALS, TableSetting
from pu_shift.paper.tables import Comparison, covered_cells, text_headline


def table_main(number: int, argv: Sequence[str] | None = None) -> int:
    """Run one of the paper's tables from the command line; return the exit status."""
    return setting_main(TABLES[number], argv=argv)


def setting_main(
    setting: TableSetting,
    datasets: Sequence[str] = DATASETS,
    methods: Sequence[str] = METHODS,
    trials: int = TRIALS,
    argv: Sequence[str] | None = None,
) -> int:
    """Run a table whose script says what it shows; return the exit status."""

    def run() -> int:
        title, out = f"{setting.title}. Resumes what --out holds.", f"results/table{setting.number}"
        options = table_parser(title, out, datasets, methods, trials).parse_args(argv)
        return run_settings({Path(options.out): setting}, options)

    return ending(run)


def all_tables_main(argv: Sequence[str] | None = None) -> int:
    """Run all seven tables, sharing every training set between them; return the exit status."""
    parser = table_parser(
        "All seven tables. Training sets are shared between tables; each table has its own "
        "folder in --out.",
        "results/all",
    )
    parser.add_argument(
        "--tables", nargs="+", type=int, choices=TABLES, default=list(TABLES), help="which tables"
    )

    def run() -> int:
        options = parser.parse_args(argv)
        folders = {Path(options.out) / f"table{number}": number for number in options.tables}
        return run_settings({path: TABLES[i] for path, i in folders.items()}, options)

    return ending(run)


def ending(run: Callable[[], int]) -> int:
    """Run a command to its exit status, with one line about what went wrong."""

    def one_line_errors() -> int:
        try:
            return run()
        except (ValueError, OSError, DeviceError, ChainerMissingError, WorkerError) as error:
            return fail(error)
        except KeyboardInterrupt:
            print("finished trials are kept, run again to resume", file=sys.stderr)
            raise

    return exit_status(one_line_errors)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with one line, like every other error."""
        self.exit(fail(ValueError(message)))


def script_parser(
    description: str,
    out: str,
    datasets: Sequence[str] = DATASETS,
    methods: Sequence[str] = METHODS,
    trials: int = TRIALS,
) -> argparse.ArgumentParser:
    """Return a parser of the options that all scripts share.

    Without ``datasets`` or ``methods`` there is no such option.
    """
    parser = _Parser(description=description)
    parser.set_defaults(datasets=None, default_datasets=list(datasets))
    add = parser.add_argument
    add(
        "--gpu",
        type=int,
        default=-1,
        metavar="ID",
        help="CUDA device; where there is none, and by default (-1), the CPU",
    )
    add("--trials", type=int, default=trials, help="number of trials (default: %(default)s)")
    if datasets:
        add("--datasets", nargs="+", help=f"which datasets (default: {', '.join(datasets)})")
    if methods:
        names = f"which methods (default: {', '.join(methods)})"
        add("--methods", nargs="+", default=list(methods), help=names)
    add("--seed", type=int, default=0, help="seed of everything random (default: %(default)s)")
    add("--jobs", type=int, help="worker processes (default: one per core, or one with a GPU)")
    add("--out", default=out, metavar="DIR", help="results folder (default: %(default)s)")
    add("--fresh", action="store_true", help="delete the folder's results instead of resuming")
    add("--protocol", metavar="FILE", help="JSON file with fields of the protocol to change")
    add("--quiet", action="store_true", help="no progress and no tables")
    return parser


def table_parser(*arguments: Any) -> argparse.ArgumentParser:
    """Return a parser of the options of all tables; the arguments are of `script_parser`."""
    parser = script_parser(*arguments)
    check = (
        "exit 1 unless the folder's cells are as near to the paper as those of the reference run, "
        "chance allowed for, and its trials those of the reference run, if they should be"
    )
    parser.add_argument("--check", action="store_true", help=check)
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="Dask scheduler that runs the trials, tcp://…"
    )
    return parser


def find_data(
    parsed: argparse.Namespace, kind: type[RunOptions] = RunOptions, **more: Any
) -> tuple[Any, dict[str, str]]:
    """Check the options of a script and fetch its data.

    Returns options, of class ``kind``, for the datasets that are available, and for each other
    one a line, already printed, about what was tried and what to do. ``DataError`` when a dataset
    that was asked for by name, or every one, is not available. Where no GPU can be used, the run
    is on the CPU, and a line says why.
    """
    require_chainer("this script")
    names = ("methods", "trials", "seed", "jobs", "cluster", "fresh", "label")
    given = {name: getattr(parsed, name) for name in names if hasattr(parsed, name)}
    asked = parsed.datasets or parsed.default_datasets
    gpu, gpu_problem = usable_gpu(parsed.gpu)
    given.update(gpu=gpu, gpu_asked=parsed.gpu, gpu_problem=gpu_problem)
    # What is wrong without the data is said before they are fetched.
    protocol = load_protocol(parsed.protocol)
    sizes = getattr(parsed, "sizes", None)
    if sizes is not None:
        protocol = replace(protocol, **dict(zip(("n_p", "n_u", "n_test"), sizes)))
    options = kind(datasets=asked, protocol=protocol, **given, **more)
    not_had = gather(asked, options.label)
    if not_had and parsed.datasets:
        raise next(iter(not_had.values()))
    missing = {name: _one_line(error) for name, error in not_had.items()}
    for line in problems(options, missing):
        print(line, file=sys.stderr, flush=True)
    if len(missing) == len(asked):
        raise DataError("no dataset is available")
    return replace(options, datasets=[name for name in asked if name not in missing]), missing


def problems(options: RunOptions, missing: dict[str, str]) -> list[str]:
    """Return a line for the GPU and each dataset that is missing, printed before and after."""
    return [*filter(None, [options.gpu_problem]), *missing.values()]


def run_settings(settings: dict[Path, TableSetting], parsed: argparse.Namespace) -> int:
    """Run tables into their folders, print them, and return the exit status."""
    start = time.monotonic()
    with messages(parsed.quiet):
        options, missing = find_data(parsed)
        show = None if parsed.quiet else progress
        results = run_all(settings, options, show, list(missing), sys.stdout.isatty())
    frames = [result.frame for result in results.values()]
    covered = covered_cells(frames, list(settings.values()), list(missing))
    total = _together(results.values())
    if not parsed.quiet:
        print("\n\n".join(result.text for result in results.values()))
        if len(results) > 1 and total is not None:
            print(f"\nAll tables together\n{text_headline(total, covered)}")
        for line in problems(options, missing):
            print(f"\n{line}")
        folders = ", ".join(str(folder) for folder in results)
        print(f"\n{time.monotonic() - start:.0f} s; results in {folders}")
    if not parsed.check:
        return 0
    if covered and missing:
        print(f"check: failed, {covered}", file=sys.stderr)
        return 1
    return _check(list(results.values()), options, parsed.quiet)


@contextmanager
def messages(quiet: bool) -> Iterator[None]:
    """Show what the package says of its work, a line per step."""
    logger, handler = logging.getLogger("pu_shift"), logging.StreamHandler()
    level = logger.level
    if not quiet:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _together(results: Iterable[Comparison]) -> Headline | None:
    """Return the headline of all compared cells, or None if there is none."""
    printed = [result.frame for result in results if result.headline is not None]
    return headline(pd.concat(printed)) if printed else None


def _check(results: Sequence[Comparison], options: RunOptions, quiet: bool) -> int:
    """Return 0 if all cells and trials together pass the comparison with the reference run."""
    cells = pd.concat([result.frame for result in results])
    if cells["paper_mean"].isna().all():
        print("check: no cell could be compared with the paper", file=sys.stderr)
        return 1
    checks = [near_paper(cells, "cells")]
    trials = pd.concat([result.trials for result in results])
    apart = other_run(options.identity) + [options.device["used"]] * (options.gpu >= 0)
    if apart:
        checks.append(Check("trials as in the reference run", f"not to be expected, {apart[0]}"))
    else:
        checks += same_trials(trials)
    if not quiet:
        for check in checks:
            print(f"check: {check}")
    return int(any(check.passed is False for check in checks))


def fail(error: BaseException) -> int:
    """Print an error in one line and return the exit status for it."""
    print(f"error: {_one_line(error)}", file=sys.stderr)
    return 2


def _one_line(error: BaseException) -> str:
    """Return a message in one line; some list what was tried, a line each."""
    return one_line(error, between="; ", most=4000)


def progress(tasks: list[Task], finished: Iterator[Any]) -> Iterator[Any]:
    """Show progress: a live line on a terminal, a few plain lines elsewhere."""
    if sys.stderr.isatty():
        yield from tqdm(finished, total=len(tasks), unit="set", desc="training sets")
        return
    start, shown = time.monotonic(), 0
    for count, rows in enumerate(finished, start=1):
        yield rows
        if count * 20 // len(tasks) > shown or count == len(tasks):
            shown = count * 20 // len(tasks)
            elapsed = time.monotonic() - start
            left = elapsed / count * (len(tasks) - count)
            print(
                f"{count} of {len(tasks)} training sets, {elapsed:.0f} s, about {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )
