"""Measure pu-shift side by side with what one would run instead.

Usage: python benchmarks/run.py [--only ulsif|training|floor|growth|tables]
       [--repeats N] [--out DIR]

Prints the tables and writes results.json and results.png beside this file, or into DIR.
ulsif and training need the peers of requirements/bench.txt (``make bench``).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
from pathlib import Path

from measure import machine
from report import plot, render

HERE = Path(__file__).resolve().parent
PEERS = {
    "ulsif": ("densratio", "adapt"),
    "training": ("torch",),
    "floor": (),
    "growth": (),
    "tables": (),
}


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks that are asked for; the others keep their results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PEERS, default=PEERS, help="which benchmarks")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each (median is taken)")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "results.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    status = 0
    for name in options.only:
        missing = [peer for peer in PEERS[name] if importlib.util.find_spec(peer) is None]
        if missing:
            print(f"{name} needs {', '.join(missing)}: see make bench", file=sys.stderr)
            status = 1
            continue
        print(f"measuring {name} ...", file=sys.stderr)
        before = machine()
        rows = importlib.import_module(f"bench_{name}").run(options.repeats)
        results[name] = {"machine": before, "rows": rows}
        # At once: the later ones take long.
        text = json.dumps(results, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
    plot(results, options.out / "results.png")
    print(render(results), end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
