#!/usr/bin/env python
"""Get the paper's datasets, list them, check them.

    python datasets/fetch.py --all            # whatever is missing
    python datasets/fetch.py banana magic
    python datasets/fetch.py --list           # what is here, from where, how big
    python datasets/fetch.py --verify         # hash and parse every file again

The exit status is 1 when a dataset that was asked for is not available or a file
is bad, and 2 when the command line is wrong.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works without installation

from pu_shift.data import NAMES, DataError, Dataset, copies, load, search_path
from pu_shift.data.loading import Copy, by_hand
from pu_shift.data.registry import lookup


def _line(dataset: Dataset) -> str:
    rows, features = dataset.X.shape
    return (
        f"{dataset.name:8} {rows:>7,} × {features:<3} "
        f"{dataset.positives:>6,} positive  {dataset.source}"
    )


def _loads(name: str, offline: bool) -> bool:
    try:
        print(_line(load(name, offline=offline)), flush=True)
    except DataError:  # what was tried has been logged line by line
        return False
    return True


def get(names: Sequence[str], offline: bool) -> int:
    """Load each dataset, fetching it if need be; return the exit status."""
    missing = [name for name in names if not _loads(name, offline)]
    for name in missing:
        print("\n  ".join([f"{name}: is not available", *by_hand(name)]))
    if missing:
        print(f"{len(names) - len(missing)} of {len(names)} here; missing: {', '.join(missing)}")
    return int(bool(missing))


def show(names: Sequence[str]) -> int:
    """List the copies on the search path without reading them."""
    print("looked in:", *search_path(), sep="\n  ")
    for name in names:
        for copy in copies(name):
            size = sum(path.stat().st_size for path in copy.paths)
            print(f"{name:8} {size / 1e6:>8.2f} MB  {copy.title}")
        if not copies(name):
            print(f"{name:8} not here; home: {lookup(name).home}")
    return 0


def verify(names: Sequence[str], asked: bool) -> int:
    """Hash, parse and check every copy again; absent ones matter if asked for."""
    good = True
    for name in names:
        found = copies(name)
        verdicts = [_verifies(copy) for copy in found]
        good &= all(verdicts)
        if not found:
            print(f"     {name:8} not here")
            good &= not asked
    return int(not good)


def _verifies(copy: Copy) -> bool:
    try:
        dataset = copy.read(fresh=True)
    except DataError as error:
        print(f"BAD  {copy.spec.name:8} {error}", flush=True)
        return False
    print(f"good {_line(dataset)}  SHA-256 {dataset.sha256}", flush=True)
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(NAMES)}")
    parser.add_argument("--all", action="store_true", help="all six datasets")
    parser.add_argument("--list", action="store_true", help="list what is here")
    parser.add_argument("--verify", action="store_true", help="check every file again")
    parser.add_argument("--offline", action="store_true", help="use what is here, fetch nothing")
    options = parser.parse_args(argv)
    try:
        named = [lookup(name).name for name in options.names]
    except ValueError as error:
        parser.error(str(error))
    asked = bool(named or options.all)
    if not (asked or options.list or options.verify):
        parser.error("name a dataset, or give --all, --list or --verify")
    names = NAMES if options.all or not named else named

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    if options.list:
        return show(names)
    if options.verify:
        return verify(names, asked)
    return get(names, options.offline)


if __name__ == "__main__":
    sys.exit(main())
