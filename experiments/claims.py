"""Judge the claims of the paper's discussion from results folders.

Usage: python experiments/claims.py results/DIR [results/DIR ...]
"""

from __future__ import annotations

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import argparse
import sys
from collections.abc import Iterable, Sequence

import pandas as pd

from pu_shift.paper.claims import Verdict, judge, printed_cells
from pu_shift.paper.settings import TRIAL
from pu_shift.paper.store import read_trials


def verdicts_text(ours: Iterable[Verdict], paper: Iterable[Verdict]) -> str:
    """Render our verdicts, each beside what the printed numbers say."""
    lines = []
    for our, printed in zip(ours, paper):
        lines.append(f"Claim {our.number}: {our.claim}")
        for name, verdict in (("ours", our), ("printed tables", printed)):
            lines.append(f"  {name}: {verdict.verdict}")
            lines += [f"    {line}" for line in verdict.evidence]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Print each claim as our trials and the printed tables have it; 2 on a bad folder."""
    parser = argparse.ArgumentParser(description="Judge the paper's claims from results folders.")
    parser.add_argument("folders", nargs="+", metavar="DIR", help="a folder with a trials.csv")
    folders = parser.parse_args(argv).folders
    try:
        trials = pd.concat([read_trials(folder) for folder in folders], ignore_index=True)
        twice = trials[trials.duplicated(TRIAL)]
        if len(twice):
            same = ", ".join(map(str, twice.iloc[0][TRIAL]))
            raise ValueError(f"two folders hold the same trial: {same}")
        printed = printed_cells()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(verdicts_text(judge(trials), judge(printed)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
