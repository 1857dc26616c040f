"""Install the wheel, and then Chainer in several ways, by several versions of pip.

Usage: python benchmarks/installing.py [--pythons 3.11 3.13] [--pips 24.3.1 25.3]

Needs the wheel in dist/ and tools/find-python; `make install-table` calls it. Writes
installing.json beside this file, from which `make docs` writes the table of docs/install.md;
versions that are not asked for keep their results. Each version of pip has an environment of its
own, and Chainer is built anew in every way.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "installing.json"
CONSTRAINT = str(ROOT / "requirements" / "build-constraints.txt")
# One that brings setuptools into a new environment, and one that does not.
PYTHONS = ("3.11", "3.13")
# An interpreter that is not served, and the pip to try it with.
TOO_OLD = ("3.9", "25.3")
# Those that come with Python 3.11 to 3.14, about, and the newest.
PIPS = ("23.2.1", "24.3.1", "25.3", "26.3")
CHAINER = "chainer==7.8.1"
WHEEL = "pu-shift, nothing set"
# What is set, what is installed before, and the options of `pip install`.
WAYS: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "Chainer, nothing set": ({}, [], []),
    "`PIP_CONSTRAINT`": ({"PIP_CONSTRAINT": CONSTRAINT}, [], []),
    "`PIP_CONSTRAINT` and `PIP_BUILD_CONSTRAINT`": (
        {"PIP_CONSTRAINT": CONSTRAINT, "PIP_BUILD_CONSTRAINT": CONSTRAINT},
        [],
        [],
    ),
    "`--no-build-isolation`": ({}, ["setuptools<82", "wheel"], ["--no-build-isolation"]),
}
COLUMNS = (WHEEL, *WAYS)
INSTALLS = "installs"


class Environment:
    """A new virtual environment with one version of pip."""

    def __init__(self, folder: Path, python: str, pip: str) -> None:
        found = subprocess.run(
            [ROOT / "tools" / "find-python", python], check=True, stdout=subprocess.PIPE, text=True
        )
        self.built = folder / "cache" / "wheels"
        place = folder / "environment"
        subprocess.run([found.stdout.strip(), "-m", "venv", "--clear", place], check=True)
        self.python = place / "bin" / "python"
        self.variables = {
            **{key: value for key, value in os.environ.items() if "CONSTRAINT" not in key},
            "PIP_CACHE_DIR": str(folder / "cache"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_COMPILE": "1",
        }
        brought = self.run("-m", "pip", "install", "--quiet", f"pip=={pip}")
        if brought.returncode:
            raise SystemExit(f"pip {pip} cannot be had: {reason(brought.stdout)}")

    def run(self, *words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the interpreter away from the tree; both streams are kept as one."""
        return subprocess.run(
            [self.python, *words],
            cwd=self.python.parent,
            env={**self.variables, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def measure(folder: Path, python: str, pip: str, wheel: Path) -> Iterator[tuple[str, str]]:
    """Install the wheel, then Chainer in each way, use them, and say what came of it."""
    environment = Environment(folder, python, pip)
    if environment.run("-m", "pip", "--version").returncode:
        yield from ((column, "this pip does not run here") for column in COLUMNS)
        return
    yield WHEEL, outcome(environment, [wheel], "import pu_shift")
    for way, (variables, before, options) in WAYS.items():
        # What pip downloaded may be kept, what it built may not.
        shutil.rmtree(environment.built, ignore_errors=True)
        if before:
            environment.run("-m", "pip", "install", "--quiet", *before)
        use = "import pu_shift; pu_shift.LinearModel(2)"
        yield way, outcome(environment, [*options, CHAINER], use, **variables)
        environment.run("-m", "pip", "uninstall", "--yes", "chainer")


def outcome(environment: Environment, words: list[Any], use: str, **variables: str) -> str:
    """Install something and use it; return what came of it."""
    install = environment.run("-m", "pip", "install", *words, **variables)
    if install.returncode:
        return reason(install.stdout)
    used = environment.run("-c", use)
    return reason(used.stdout) if used.returncode else INSTALLS


def reason(output: str) -> str:
    """Return the line of an output that says why something failed."""
    # pip puts "ERROR: Exception:" before a traceback, which ends with the reason.
    lines = re.findall(r"^\s*(\w*Error: .+|ERROR: (?!Exception:).+)$", output, re.MULTILINE)
    return lines[0].strip() if lines else output.strip().splitlines()[-1]


def all_rows(options: argparse.Namespace, folder: Path, wheel: Path) -> Iterator[dict[str, Any]]:
    """Measure every version of Python and of pip in every way, and a Python that is too old."""
    for python in options.pythons:
        for pip in options.pips:
            for way, found in measure(folder, python, pip, wheel):
                yield {"python": python, "pip": pip, "way": way, "outcome": found}
    refused = outcome(Environment(folder, *TOO_OLD), [wheel], "import pu_shift")
    yield {"python": TOO_OLD[0], "pip": TOO_OLD[1], "way": WHEEL, "outcome": refused}


def newest_setuptools(folder: Path) -> str:
    """Return the release that an isolated build gets where nothing holds it back."""
    environment = Environment(folder, PYTHONS[-1], PIPS[-1])
    environment.run("-m", "pip", "install", "--quiet", "--upgrade", "setuptools")
    code = "from importlib.metadata import version; print(version('setuptools'))"
    found = environment.run("-c", code)
    if found.returncode:
        raise SystemExit(f"setuptools cannot be had: {reason(found.stdout)}")
    return found.stdout.strip()


def render(results: dict[str, Any]) -> str:
    """Lay out what was measured in Markdown."""
    rows = results["rows"]
    cells = {(row["python"], row["pip"], row["way"]): row["outcome"] for row in rows}
    failures = sorted({row["outcome"] for row in rows if row["python"] != TOO_OLD[0]} - {INSTALLS})
    marks = {INSTALLS: "✓", **{text: f"✗ {i}" for i, text in enumerate(failures, 1)}}
    lines = [["Python", "pip", *COLUMNS], ["---"] * (2 + len(COLUMNS))]
    for python, pip in dict.fromkeys((row["python"], row["pip"]) for row in rows):
        if python != TOO_OLD[0]:
            found = [cells[python, pip, column] for column in COLUMNS]
            lines.append([python, pip, *(marks[text] for text in found)])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "\n".join(f"{i}. `{text}`" for i, text in enumerate(failures, 1))
    refused = next(row["outcome"] for row in rows if row["python"] == TOO_OLD[0])
    return (
        f"The newest setuptools was {results['setuptools']}.\n\n{table}\n\n{notes}\n\n"
        f"Python {TOO_OLD[0]} is refused by pip itself:\n\n```text\n{refused}\n```\n"
    )


def main() -> int:
    """Measure, keep the results and show them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pythons", nargs="+", default=PYTHONS)
    parser.add_argument("--pips", nargs="+", default=PIPS)
    options = parser.parse_args()
    (built,) = (ROOT / "dist").glob("*.whl")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # A later build in dist/ does not matter to a run of half an hour.
        wheel = Path(shutil.copy(built, folder))
        newest = newest_setuptools(folder)
        kept = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if RESULTS.exists() else []
        entries = {(row["python"], row["pip"], row["way"]): row for row in kept}
        for row in all_rows(options, folder, wheel):
            print(*row.values(), sep=" · ", file=sys.stderr, flush=True)
            entries[row["python"], row["pip"], row["way"]] = row
            # At once: the next may take minutes.
            lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in entries.values())
            text = f'{{"setuptools": "{newest}", "rows": [\n{lines}\n]}}\n'
            RESULTS.write_text(text, encoding="utf-8")
    print(render({"setuptools": newest, "rows": list(entries.values())}), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
