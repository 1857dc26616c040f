"""The commands of ``pu-shift``, and how they are run.

The help and a line about wrong arguments come at once: what takes long to import is imported by
the functions that use it.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from pu_shift._chainer import ChainerMissingError
from pu_shift._checks import ArgumentError, one_line
from pu_shift._grids import GridEdgeWarning
from pu_shift._version import __version__
from pu_shift.bigdata import ClusterError
from pu_shift.cli import (
    estimate_prior,
    evaluate,
    explore,
    fit,
    monitor,
    predict,
    reproduce,
    verify,
)
from pu_shift.device import DeviceError
from pu_shift.files.pipes import forget_pipes

DESCRIPTION = """\
Learn a classifier from positive and unlabelled rows, and use it where the share
of positives (the class prior) or the cost of errors differs from training.

three numbers describe a task:
  --prior       share of positives among your unlabelled rows (estimated if you
                do not know it)
  --test-prior  share of positives where the classifier will be used; the same
                as --prior if you do not give it
  --alpha       cost of a false alarm; 1 - alpha is the cost of a miss. 0.5 is
                the usual error, 0.1 means that a miss costs nine times as much
"""


EXAMPLES = """\
a first session:
  pu-shift estimate-prior data.csv --label labelled
  pu-shift fit data.csv --label labelled --prior 0.3 --out model.npz
  pu-shift evaluate model.npz --test-prior 0.7
  pu-shift predict model.npz new.csv --out predictions.csv
  pu-shift predict model.npz new.csv --test-prior 0.7 --out july.csv
  pu-shift predict model.npz new.csv --alpha 0.1 --out careful.csv
  pu-shift explore model.npz new.csv --out explorer.html

The last three need no new fit. 'pu-shift COMMAND --help' tells more.
"""


# A new command is a module with TEXTS, add_options and run, and a line here.
COMMANDS: dict[str, Any] = {
    "fit": fit,
    "evaluate": evaluate,
    "predict": predict,
    "explore": explore,
    "monitor": monitor,
    "estimate-prior": estimate_prior,
    "reproduce": reproduce,
    "verify": verify,
}


def run_command(argv: Sequence[str] | None) -> int:
    """Do what the arguments ask for and return the exit status, or exit with its own."""
    arguments = sys.argv[1:] if argv is None else argv
    parser = _parser(arguments)
    if not arguments:
        parser.print_help()
        return 2
    options = parser.parse_args(arguments)

    def show_warning(message: Any, *_: Any) -> None:
        print(f"warning: {_in_own_words(message, options.parser)}", file=sys.stderr)

    try:
        with warnings.catch_warnings():
            # The grids are the command's own.
            warnings.simplefilter("ignore", GridEdgeWarning)
            warnings.showwarning = show_warning  # type: ignore[assignment]
            return options.run(options)
    except (ValueError, DeviceError, ClusterError, ChainerMissingError, OSError) as error:
        for problem in getattr(error, "problems", [error]):
            print(f"error: {_in_own_words(problem, options.parser)}", file=sys.stderr)
        return 2
    finally:
        forget_pipes()


def _in_own_words(message: object, parser: argparse.ArgumentParser) -> str:
    """Return a message in one line; arguments of the library by the names of the options."""
    if isinstance(message, ArgumentError):
        message = ArgumentError(_own_name(message.name, parser), message.rule)
    text = one_line(message)
    for words, option in (("leave it out", "--drop it"), ("decimal=','", "--decimal ,")):
        text = text.replace(words, option)
    return text


def _own_name(name: str, parser: argparse.ArgumentParser) -> str:
    for action in parser._actions:
        if action.dest == name and action.option_strings:
            return action.option_strings[-1]
        names = getattr(action, "library_names", {})
        if name in names:
            return names[name]
    return name


class _Parser(argparse.ArgumentParser):
    """A parser that complains in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {one_line(message)}; see '{self.prog} --help'\n")


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog="pu-shift", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"pu-shift {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        added = commands.add_parser(name, formatter_class=raw, **command.TEXTS)
        if name in arguments:  # the options of the others are not looked at
            command.add_options(added)
        added.set_defaults(run=command.run, parser=added)
    return parser
