"""The command line of the experiment scripts."""

from __future__ import annotations

import argparse
import logging
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
from tqdm import tqdm

from pu_shift._checks import positive_int
from pu_shift.data import DataError
from pu_shift.device import DeviceError, get_device
from pu_shift.paper.compare import Headline, headline
from pu_shift.paper.outputs import Comparison, covered_cells
from pu_shift.paper.protocol import load_protocol
from pu_shift.paper.rendering import text_headline
from pu_shift.paper.runner import Label, Task, WorkerError, gather, plan, run_all
from pu_shift.paper.settings import DATASETS, METHODS, TABLES, TableSetting

# What --check asks for: the targets of the reproduction.
LEAST_CONSISTENT, LARGEST_DELTA = 0.75, 1.8


def table_main(number: int, argv: Sequence[str] | None = None) -> int:
    """Run one of the paper's tables from the command line.

    Parameters
    ----------
    number
        Which table.
    argv
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit status: 0, 1 when ``--check`` fails, 2 when the run cannot be
        done, 130 when it was interrupted.

    Examples
    --------
    >>> table_main(1, ["--datasets", "iris"])
    2
    """
    setting = TABLES[number]
    parser = _parser(f"{setting.title}. Resumes what --out holds.", f"results/table{number}")
    options = parser.parse_args(argv)
    return _run({Path(options.out): setting}, options)


def all_tables_main(argv: Sequence[str] | None = None) -> int:
    """Run all seven tables, sharing every training set between them.

    Parameters
    ----------
    argv
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit status, as for :func:`table_main`.

    Examples
    --------
    >>> all_tables_main(["--trials", "0"])
    2
    """
    parser = _parser(
        "All seven tables. Training sets are shared between tables; each table has its own "
        "folder in --out.",
        "results/all",
    )
    parser.add_argument(
        "--tables", nargs="+", type=int, choices=TABLES, default=list(TABLES), help="which tables"
    )
    options = parser.parse_args(argv)
    out = Path(options.out)
    return _run({out / f"table{number}": TABLES[number] for number in options.tables}, options)


def custom_main(argv: Sequence[str] | None = None) -> int:
    """Run the methods in a setting of one's own, on a known dataset or a file.

    Parameters
    ----------
    argv
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit status, as for :func:`table_main`.

    Examples
    --------
    >>> custom_main(["--prior", "1.2", "--dataset", "banana"])
    2
    """
    parser = _parser("Any setting: your priors, your data.", "results/custom", datasets=False)
    parser.add_argument("--prior", type=float, required=True, help="π of the unlabelled data")
    parser.add_argument("--test-prior", type=float, help="π′ of the test data (default: π)")
    parser.add_argument(
        "--given-prior", type=float, nargs="+", help="the π′ given to the methods (default: π′)"
    )
    parser.add_argument(
        "--dataset", nargs="+", required=True, dest="datasets", help="names, or CSV/LIBSVM files"
    )
    parser.add_argument(
        "--label", type=_column, help="the label column of a CSV file: name, or number from 0"
    )
    parser.add_argument(
        "--positive",
        nargs="+",
        metavar="LABEL",
        help="the labels of a file that are positive, all others being negative "
        "(default: 1, of the labels 1 and -1 or 1 and 0)",
    )
    options = parser.parse_args(argv)
    options.label = Label(options.label, options.positive and tuple(options.positive))
    test_prior = options.prior if options.test_prior is None else options.test_prior
    try:
        setting = TableSetting.shift(
            0, options.prior, test_prior, options.given_prior or [test_prior]
        )
    except ValueError as error:
        return fail(error)
    return _run({Path(options.out): setting}, options)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with one line, like every other error."""
        self.exit(fail(ValueError(message)))


def _column(text: str) -> str | int:
    try:
        return int(text)
    except ValueError:
        return text


def _parser(description: str, out: str, datasets: bool = True) -> argparse.ArgumentParser:
    parser = _Parser(description=description)
    add = parser.add_argument
    add("--gpu", type=int, default=-1, metavar="ID", help="CUDA device (default: -1, the CPU)")
    add("--trials", type=int, default=10, help="number of trials (default: %(default)s)")
    if datasets:
        add("--datasets", nargs="+", help=_names("datasets", DATASETS))
    add("--methods", nargs="+", default=list(METHODS), help=_names("methods", METHODS))
    add("--seed", type=int, default=0, help="seed of everything random (default: %(default)s)")
    add("--jobs", type=int, help="worker processes (default: one per core, or one with a GPU)")
    add("--out", default=out, metavar="DIR", help="results folder (default: %(default)s)")
    add("--fresh", action="store_true", help="delete the folder's results instead of resuming")
    add(
        "--check",
        action="store_true",
        help=f"exit 1 unless {LEAST_CONSISTENT:.0%} of the folder's cells are consistent with the "
        f"paper and their mean |Δ| is at most {LARGEST_DELTA} points".replace("%", "%%"),
    )
    add("--cluster", metavar="ADDRESS", help="Dask scheduler that runs the trials, tcp://…")
    add("--protocol", metavar="FILE", help="JSON file with fields of the protocol to change")
    add("--quiet", action="store_true", help="no progress and no tables")
    return parser


def _names(kind: str, names: Sequence[str]) -> str:
    return f"which {kind} (default: {', '.join(names)})"


def _run(settings: dict[Path, TableSetting], options: argparse.Namespace) -> int:
    start = time.monotonic()
    colour = sys.stdout.isatty()
    try:
        protocol = load_protocol(options.protocol)
        # What can fail without the data fails before it is fetched.
        get_device(options.gpu)
        positive_int("seed", options.seed, least=0)
        if options.jobs is not None:
            positive_int("jobs", options.jobs)
        asked = options.datasets or DATASETS
        label = getattr(options, "label", None)
        plan(settings.values(), asked, options.methods, options.trials, label=label)
        datasets, missing = available(options)
        results = run_all(
            settings,
            datasets,
            options.methods,
            options.trials,
            protocol,
            options.seed,
            options.gpu,
            options.jobs,
            options.cluster,
            options.fresh,
            label,
            colour,
            None if options.quiet else _progress,
            list(missing),
        )
    except (ValueError, OSError, DeviceError, WorkerError) as error:
        return fail(error)
    except KeyboardInterrupt:
        return interrupted()
    frames = [result.frame for result in results.values()]
    covered = covered_cells(frames, list(settings.values()), list(missing))
    if not options.quiet:
        print("\n\n".join(result.text for result in results.values()))
        total = _together(results.values())
        if len(results) > 1 and total is not None:
            print(f"\nAll tables together\n{text_headline(total, covered)}")
        for line in missing.values():
            print(f"\n{line}")
        folders = ", ".join(str(folder) for folder in results)
        print(f"\n{time.monotonic() - start:.0f} s; results in {folders}")
    if not options.check:
        return 0
    if covered and missing:
        print(f"check: failed, {covered}", file=sys.stderr)
        return 1
    return _check(_together(results.values()), options.quiet)


def available(options: argparse.Namespace) -> tuple[list[str], dict[str, str]]:
    """Look up and fetch the datasets of a run, before it starts.

    Parameters
    ----------
    options
        Those of the command line: ``datasets``, which must all be had, or None for
        the paper's; ``quiet``; and ``label``, if the command has it.

    Returns
    -------
    datasets : list of str
        What can be had.
    missing : dict
        Name to a line about what was tried and what to do, which has been printed.

    Raises
    ------
    DataError
        When a dataset that was asked for, or every one, cannot be had.

    Examples
    --------
    >>> available(argparse.Namespace(datasets=["banana"], quiet=True))
    (['banana'], {})
    """
    asked = list(options.datasets or DATASETS)
    with _data_log(options.quiet):
        problems = gather(asked, getattr(options, "label", None))
    if problems and options.datasets:
        raise next(iter(problems.values()))
    missing = {name: one_line(error) for name, error in problems.items()}
    for line in missing.values():
        print(line, file=sys.stderr, flush=True)
    if len(missing) == len(asked):
        raise DataError("no dataset can be had")
    return [name for name in asked if name not in missing], missing


@contextmanager
def _data_log(quiet: bool) -> Iterator[None]:
    """Show what is being fetched, a line per step."""
    logger, handler = logging.getLogger("pu_shift.data"), logging.StreamHandler()
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


def _check(total: Headline | None, quiet: bool) -> int:
    """Return 0 when all compared cells together meet the targets, else 1."""
    if total is None or math.isnan(total.consistent):
        print("check: no cell could be compared with the paper", file=sys.stderr)
        return 1
    good = total.consistent >= LEAST_CONSISTENT and total.mean_abs_delta <= LARGEST_DELTA
    if not quiet:
        print(
            f"check: {total.consistent:.1%} consistent (at least {LEAST_CONSISTENT:.0%}; "
            f"ceiling {total.ceiling:.1%}), "
            f"mean |Δ| {total.mean_abs_delta:.2f} (at most {LARGEST_DELTA}): "
            f"{'passed' if good else 'failed'}"
        )
    return 0 if good else 1


def fail(error: BaseException) -> int:
    r"""Print an error in one line and return the exit status for it.

    Parameters
    ----------
    error
        What happened.

    Returns
    -------
    int
        2.

    Examples
    --------
    >>> fail(ValueError("prior must be a number, got nan"))
    2
    """
    print(f"error: {one_line(error)}", file=sys.stderr)
    return 2


def one_line(error: BaseException) -> str:
    r"""Return a message in one line; some list what was tried, a line each.

    Parameters
    ----------
    error
        What happened.

    Returns
    -------
    str
        The line.

    Examples
    --------
    >>> one_line(ValueError("susy is not here\n  download it"))
    'susy is not here; download it'
    """
    lines = (line.strip() for line in str(error).splitlines())
    return "; ".join(line for line in lines if line)


def interrupted() -> int:
    """Say that Ctrl-C ended the run and return the exit status for it.

    Returns
    -------
    int
        130.

    Examples
    --------
    >>> interrupted()
    130
    """
    print("interrupted: finished trials are kept, run again to resume", file=sys.stderr)
    return 130


def _progress(tasks: list[Task], finished: Iterator[Any]) -> Iterator[Any]:
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
