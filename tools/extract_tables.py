r"""Write the printed tables of the paper as CSV files, from its LaTeX source.

Usage: python tools/extract_tables.py PAPER.tex [APPENDIX.tex ...] [--out FOLDER]

Writes table1.csv, table2.csv, ... to paper_tables, or into FOLDER: the tables
of accuracies of all sources, numbered in their order as LaTeX numbers them.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "paper_tables"
COLUMNS = ["prior", "test_prior", "given_prior", "dataset", "method", "mean", "se", "bold"]

_TABLE = re.compile(
    r"\\caption\{(?P<caption>.*?)\}\s*\\scalebox.*?\\begin\{tabular\}\s*\{[^}]*\}"
    r"(?P<body>.*?)\\end\{tabular\}\}",
    re.DOTALL,
)
_CELL = re.compile(r"(?P<bold>\\textbf\{)?(?P<mean>\d+\.\d) \((?P<se>\d+\.\d)\)(?(bold)\})")
_NUMBER = re.compile(r"0\.\d+")
_SHIFT = re.compile(r"\\pi = (0\.\d).*?\\pi(?:\^\*|test)=(0\.\d)")


def method_name(header: str) -> str:
    r"""Return the plain name of a column header.

    >>> method_name(r"\frac{u}{p}\text{uLSIF}"), method_name(r"\text{DH-Lin}")
    ('u/p uLSIF', 'DH-Lin')
    """
    header = re.sub(r"\\frac\{(\w)\}\{(\w)\}", r"\1/\2 ", header)
    return re.sub(r"\\text\{(.*?)\}", r"\1", header).strip()


def rows_of(body: str) -> list[list[str]]:
    """Return the cells of each row of one part of a tabular."""
    return [[cell.strip() for cell in row.split("&")] for row in body.split(r"\\") if "&" in row]


def extract(latex: str) -> dict[int, list[dict[str, str]]]:
    """Return the rows of every table of accuracies, by table number, as printed."""
    tables = {}
    for number, found in enumerate(_TABLE.finditer(latex), start=1):
        header, *blocks = [part for part in found["body"].split(r"\hline") if "&" in part]
        methods = [method_name(cell) for cell in rows_of(header)[0][2:]]
        # Only the tables with a class prior shift name their priors in the caption.
        shift = _SHIFT.search(found["caption"])
        tables[number] = [
            record
            for block in blocks
            for record in block_records(rows_of(block), methods, shift and shift.groups())
        ]
    return tables


def block_records(rows, methods, shift):
    """Yield the records of one block: the rows between two horizontal lines."""
    # The prior of a block is printed once, beside one of its middle rows.
    labels = [label.group() for row in rows if (label := _NUMBER.search(row[1]))]
    if len(labels) != 1:
        raise ValueError(f"a block of rows must name one prior, found {labels}")
    prior, test_prior = shift or labels * 2
    for name, _, *cells in rows:
        if len(cells) != len(methods):
            raise ValueError(f"{name}: {len(cells)} cells for {len(methods)} methods")
        for method, cell in zip(methods, cells):
            printed = _CELL.fullmatch(cell)
            if printed is None:
                raise ValueError(f"{name}, {method}: cannot read {cell!r}")
            values = [prior, test_prior, labels[0], method_name(name), method]
            values += [printed["mean"], printed["se"], str(int(printed["bold"] is not None))]
            yield dict(zip(COLUMNS, values))


def main(arguments: list[str]) -> int:
    """Extract the tables of the files named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="+", type=Path, metavar="SOURCE.tex")
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        latex = "\n".join(path.read_text(encoding="utf-8") for path in options.sources)
    except OSError as error:
        parser.error(f"cannot read {error.filename}: {error.strerror}")
    tables = extract(latex)
    for number, records in tables.items():
        with open(options.out / f"table{number}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(records)
        print(f"table{number}.csv: {len(records)} cells")
    return 0 if tables else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
