"""``pu-shift reproduce``."""

from __future__ import annotations

import argparse

TEXTS = {
    "help": "run a table of the paper",
    "description": "Run one of the paper's tables, or all. Further options are those of "
    "experiments/table1.py:\n--trials, --datasets, --methods, --gpu, --jobs, --out, …",
    "epilog": "example:\n  pu-shift reproduce table1 --trials 10 --datasets banana magic\n"
    "  pu-shift reproduce table1 --help",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    tables = [*map(str, range(1, 8)), "all"]
    parser.add_argument(
        "table",
        type=lambda text: text.removeprefix("table"),
        choices=tables,
        metavar="TABLE",
        help=f"which table: {', '.join(tables)}; table1 is the same as 1",
    )
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of the table's script")


def run(options: argparse.Namespace) -> int:
    """Run a table of the paper."""
    from pu_shift.paper.scripts import all_tables_main, table_main

    if options.table == "all":
        return all_tables_main(options.options)
    return table_main(int(options.table), options.options)
