"""Draw the figures of the documents that are figures of the examples: `make figures`."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
# The example, and which of its figures.
FIGURES = {
    "one_fit.png": ("one_fit", 0),
    "months.png": ("months", 0),
    "shift.png": ("shift_is_cost", 0),
    "sensitivity.png": ("unknown_priors", 0),
}


def main() -> None:
    """Run each example and keep the figure."""
    plt.switch_backend("agg")
    plt.show = lambda: None
    for name, (example, number) in FIGURES.items():
        runpy.run_path(str(ROOT / "examples" / f"{example}.py"))
        figure = plt.figure(plt.get_fignums()[number])
        figure.savefig(ROOT / "docs" / "figures" / name, dpi=110)
        plt.close("all")


if __name__ == "__main__":
    main()
