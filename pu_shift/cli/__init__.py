"""The ``pu-shift`` command."""

from __future__ import annotations

from collections.abc import Sequence

from pu_shift._signals import exit_status


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ``pu-shift`` command.

    Parameters
    ----------
    argv
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit status: 0; 1 when ``verify`` or ``reproduce --check``
        fails; 2 when the command cannot
        be done, also for want of memory; 74 when its output cannot be written, 141 when
        whoever reads it has gone; 129, 130 and 143 after SIGHUP, Ctrl-C and SIGTERM.

    Examples
    --------
    >>> main(["predict", "no-such-model.npz", "rows.csv"])
    2
    """

    def run() -> int:
        # Late: Ctrl-C while it is imported is told like any other.
        from pu_shift.cli.commands import run_command

        return run_command(argv)

    return exit_status(run)
