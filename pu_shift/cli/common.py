"""What the commands share: errors, progress, output files, the cluster."""

from __future__ import annotations

import argparse
import codecs
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from pu_shift.bigdata import connected
from pu_shift.files.parquet import is_parquet

PATIENCE = 2.0
"""Seconds after which a command says what it is doing."""


class CommandError(ValueError):
    """Something that the user of the command line has to put right."""


def add_data(parser: argparse.ArgumentParser, **options: Any) -> None:
    """Add the argument that names the data, and what the library calls them."""
    action: Any = parser.add_argument("data", **options)
    action.library_names = {
        "X": "data",
        "X_test": "data",
        "X_p": "data: the positive rows",
        "X_u": "data: the unlabelled rows",
    }


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a CSV file is written."""
    parser.add_argument(
        "--encoding", type=_encoding, default="utf-8", help="of CSV files (default: utf-8)"
    )
    parser.add_argument(
        "--decimal",
        choices=(",", "."),
        help="the decimal mark of CSV files (default: a comma where all cells of a column have "
        "one and the columns are not separated by commas)",
    )


def _encoding(text: str) -> str:
    try:
        return codecs.lookup(text).name
    except LookupError:
        raise argparse.ArgumentTypeError(f"must be one that Python knows, got {text!r}") from None


def share(text: str) -> float:
    """Return a share that is written as 0.3 or as 30%."""
    number = text.strip().removesuffix("%")
    try:
        return float(number) / (100.0 if text.strip().endswith("%") else 1.0)
    except ValueError:
        message = f"must be a number such as 0.3 or 30%, got {text!r}"
        raise argparse.ArgumentTypeError(message) from None


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add the option for the seed."""
    parser.add_argument(
        "--seed", type=_seed, default=0, help="seed of everything random (default: 0)"
    )


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer >= 0, got {text!r}")
    return int(text)


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Say on a terminal what takes longer than two seconds, and for how long it has."""
    if not sys.stderr.isatty():
        yield
        return
    done, start = threading.Event(), time.monotonic()

    def tell() -> None:
        told = ""
        while not done.wait(1.0 if told else PATIENCE):
            told = f"\r{what} … {time.monotonic() - start:.0f} s"
            print(told, end="", file=sys.stderr, flush=True)
        print(f"\r{' ' * len(told)}\r" if told else "", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def progress_bar(what: str, options: argparse.Namespace) -> tqdm:
    """Return a bar of the bytes that were read, of Parquet of the rows."""
    unit = "rows" if is_parquet(options.data) else "B"
    return tqdm(unit=unit, unit_scale=True, disable=None, desc=what)


def check_inputs(paths: Sequence[str]) -> None:
    """Refuse files that do not exist, before the work."""
    for path in paths:
        if path != "-" and not os.path.exists(path):
            raise CommandError(f"no such file: {path!r}")


def check_out(out: str, inputs: Sequence[str], folder: bool = False) -> None:
    """Refuse an output that cannot be written, before the work, or that is an input."""
    if folder and os.path.lexists(out):
        raise CommandError(f"--out: with --cluster it must be a new folder, {out} exists")
    parent = os.path.dirname(os.path.realpath(out))
    if not os.path.isdir(parent):
        raise CommandError(f"--out: {out} needs a folder that exists, {parent} does not")
    if os.path.isdir(out):
        raise CommandError(f"--out must be a file, {out} is a folder")
    if not os.access(out if os.path.exists(out) else parent, os.W_OK):
        raise CommandError(f"--out: {out} cannot be written")
    check_inputs(inputs)
    for path in inputs:
        if os.path.exists(out) and os.path.exists(path) and os.path.samefile(out, path):
            raise CommandError(f"--out must be another file than {path}, which is read")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the option for a Dask cluster."""
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="of a Dask scheduler, whose workers read the Parquet data by the same path",
    )


@contextmanager
def cluster_of(options: argparse.Namespace) -> Iterator[Any]:
    """Connect to the cluster, if there is to be one."""
    if options.cluster is None:
        yield None
        return
    data = options.data if isinstance(options.data, list) else [options.data]
    if not all(map(is_parquet, data)):
        raise CommandError(f"--cluster needs data in Parquet, {data[0]} is not")
    with connected(options.cluster) as client:
        yield client
