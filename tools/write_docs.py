"""Write what the documents say about the results: `make docs`.

A document holds blocks between `<!-- NAME -->` and `<!-- /NAME -->`; each is
made anew from the committed results. `--check` only says which files differ.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "experiments"), str(ROOT)]

from robustness import TEST_PRIOR

from pu_shift import __version__
from pu_shift.paper.compare import headline, load_paper_table
from pu_shift.paper.protocol import Protocol
from pu_shift.paper.reference import chance_bounds
from pu_shift.paper.settings import DATASETS, METHODS, TABLES
from pu_shift.paper.tables import text_diff, text_table
from pu_shift.report.results import Results, headlines, read_results

REFERENCE = ROOT / "results" / "reference"
FILLED = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/REPRODUCTION.md",
    "docs/SPEED.md",
    "docs/which_method.md",
    "docs/class_prior.md",
    "docs/install.md",
    "results/protocol_search/README.md",
    "docs/big_data.md",
    "docs/evaluation.md",
    "docs/verify.md",
)
# Our models count as better than the printed ones from this mean difference on.
BETTER = 2.0
# Packages that are compared by what they can do.
PEERS = ("pulearn", "pu-toolbox")
# Wrong test priors that the guide shows.
WRONG = (0.3, 0.4, 0.6, 0.7)


@cache
def reference(run: str = ".") -> Results:
    """Return the results of a run."""
    return read_results(REFERENCE / run)


def printed(run: str = ".") -> pd.DataFrame:
    """Return the cells of all tables of a run, with those that the paper prints."""
    return reference(run).comparison


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def seen_block() -> str:
    """Return the first lines of what Table 1 prints."""
    cells = printed()
    cells = cells[cells["table"] == 1]
    lines = []
    for text in (text_table(cells, TABLES[1]), text_diff(cells, TABLES[1])):
        shown = text.strip().splitlines()
        first = next(i for i, line in enumerate(shown) if line.startswith("dataset"))
        lines += [*shown[: first + 3], "..."]
    return "```text\n" + "\n".join(lines) + "\n```"


def headline_block(run: str = ".") -> str:
    """Return share of consistent cells, its ceiling and mean difference, in and out of sample."""
    figures = headlines(printed(run))
    columns = list(figures.values())

    def row(name: str, parts: list[Any]) -> list[str]:
        return [name, *(f"{p.consistent:.1%} · {p.mean_abs_delta:.2f}" for p in parts)]

    rows = [row(name, [part.by_method.loc[name] for part in columns]) for name in METHODS]
    rows += [
        row("**all**", columns),
        ["cells", *(str(part.cells) for part in columns)],
        ["noise ceiling", *(f"{part.ceiling:.1%}" for part in columns)],
        ["boldface agrees", *(f"{part.bold_agreement:.1%}" for part in columns)],
    ]
    return markdown(["consistent · mean abs. Δ", *figures], rows)


def short_headline_block() -> str:
    """Return the headline in one row for each set of tables."""
    rows = [
        [
            name,
            str(part.cells),
            f"{part.consistent:.1%}",
            f"{part.ceiling:.1%}",
            f"{part.mean_abs_delta:.2f} points",
        ]
        for name, part in headlines(printed()).items()
    ]
    head = ["tables", "cells", "consistent", "noise ceiling", "mean absolute difference"]
    return markdown(head, rows)


def agreement_block() -> str:
    """Return mean difference and consistent cells per method and dataset."""
    cells = printed()

    def entry(part: pd.DataFrame, figure: str) -> str:
        return f"{figure} · {int(part['consistent'].sum())}/{len(part)}"

    def row(name: str, part: pd.DataFrame) -> list[str]:
        groups = [part[part["dataset"] == dataset] for dataset in DATASETS]
        entries = [entry(group, f"{group['delta'].mean():+.1f}") for group in groups]
        return [name, *entries, entry(part, f"{part['delta'].abs().mean():.2f}")]

    rows = [row(method, cells[cells["method"] == method]) for method in METHODS]
    return markdown(["method", *DATASETS, "all"], [*rows, row("**all**", cells)])


def better_block() -> str:
    """Return where ours are better than printed."""
    cells = printed()
    means = cells.groupby(["method", "dataset"])["delta"].mean()
    rows = [
        [method, dataset, f"{means[method, dataset]:+.1f}"]
        for method in METHODS
        for dataset in DATASETS
        if means[method, dataset] >= BETTER
    ]
    return markdown(["method", "dataset", "mean difference"], rows)


def claims_block() -> str:
    """Return the verdicts on the paper's claims."""
    rows = [
        [str(ours.number), ours.claim, ours.verdict, theirs.verdict]
        for ours, theirs in reference().claims
    ]
    return markdown(["", "claim", "our trials, Tables 1–7", "printed Tables 1–7"], rows)


def study(name: str) -> tuple[pd.DataFrame, int]:
    """Return the summary of a study and its number of trials."""
    cells = pd.read_csv(REFERENCE / name / "summary.csv")
    return cells, int(cells["n"].min())


def per_method(cells: pd.DataFrame, spec: str) -> list[str]:
    """Return the mean over the datasets of every method."""
    means = cells.groupby("method")["mean"].mean()
    return [format(means[method], spec) for method in METHODS]


def told_block() -> str:
    """Return the accuracy at the right test prior, and its mean at wrong ones."""
    cells, trials = study("robustness")
    right = cells[cells["given_prior"] == TEST_PRIOR]
    cell = right.set_index(["dataset", "method"])
    rows = [
        [dataset]
        + [
            f"{cell.loc[(dataset, m), 'mean']:.1f} ({cell.loc[(dataset, m), 'se']:.1f})"
            for m in METHODS
        ]
        for dataset in DATASETS
    ]
    rows.append(["**mean**", *(f"**{mean}**" for mean in per_method(right, ".1f"))])
    for prior in WRONG:
        told = cells[cells["given_prior"] == prior]
        rows.append([f"mean, told {prior}", *per_method(told, ".1f")])
    best = right.groupby("dataset")["mean"].max()
    behind = right.assign(mean=right["dataset"].map(best) - right["mean"])
    most = behind.groupby("method")["mean"].max()
    rows.append(["most behind the best", *(f"{most[method]:.1f}" for method in METHODS)])
    table = markdown(["dataset", *METHODS], rows)
    return f"Accuracy in percent, mean (standard error) of {trials} trials.\n\n{table}"


def asymmetric_block() -> str:
    """Return the relative cost of every α, and how often it exceeds a constant's."""
    cells, trials = study("asymmetric")
    rows = []
    for alpha, part in cells[cells["method"].isin(METHODS)].groupby("alpha"):
        worse = part[part["mean"] > 100.0].groupby("method").size()
        counts = [f" ({worse[method]})" if method in worse else "" for method in METHODS]
        means = per_method(part, ".0f")
        rows.append([f"{alpha:g}", *(mean + count for mean, count in zip(means, counts))])
    table = markdown(["α", *METHODS], rows)
    pairs = cells[cells["method"].isin(METHODS)].set_index(["dataset", "alpha", "method"])["mean"]
    pairs = pairs.unstack()
    cheapest = int((pairs["p/u uLSIF"] == pairs.min(axis=1)).sum())
    highest = ", ".join(f"{method} {pairs[method].max():.1f}" for method in METHODS)
    return (
        f"Mean over the six datasets and {trials} trials; in brackets, on how many datasets the "
        f"mean is worse than a constant.\n\n{table}\n\n"
        f"p/u uLSIF is the cheapest of the six in {cheapest} of {len(pairs)} pairs of dataset and "
        f"α. The highest cost of any pair: {highest}."
    )


def equivalence_block() -> str:
    """Return how alike training at α and at the equivalent π′ decide."""
    cells, trials = study("asymmetric")
    rows = []
    for name in ("DH-Lin", "Sq-Lin"):
        part = cells[cells["method"] == f"agreement {name}"]
        least = part.loc[part["mean"].idxmin()]
        whole = int((part["mean"] == 100.0).sum())
        place = f" ({least['dataset']}, α = {least['alpha']:g})" if whole < len(part) else ""
        rows.append(
            [
                name,
                f"{part['mean'].mean():.2f}",
                f"{least['mean']:.2f}{place}",
                f"{whole} of {len(part)}",
            ]
        )
    table = markdown(["method", "mean", "least", "datasets and α with all rows alike"], rows)
    return f"Test rows decided alike in percent, {trials} trials.\n\n{table}"


def estimated_block() -> str:
    """Return what estimated priors change."""
    cells, trials = study("estimated_prior")
    rows = []
    for prior, part in cells.groupby("prior"):
        spans = []
        for name in ("estimate of 100 π", "estimate of 100 π′"):
            estimates = part.loc[part["method"] == name, "mean"] / 100.0
            spans.append(f"{estimates.min():.2f} … {estimates.max():.2f}")
        rows.append([f"{prior:g}", *spans, *per_method(part, "+.1f")])
    methods = cells[cells["method"].isin(METHODS)]
    worst = methods.loc[methods["mean"].idxmin()]
    table = markdown(["π", "estimates of π", "estimates of π′", *METHODS], rows)
    return (
        f"Mean over the six datasets and {trials} trials; the estimates are the least and the "
        f"greatest mean of a dataset.\n\n{table}\n\n"
        f"The worst single mean is {worst['mean']:+.1f} ({worst['se']:.1f}): {worst['method']} on "
        f"{worst['dataset']} at π = {worst['prior']:g}."
    )


NETWORK_RUNS = {"networks": "500 P, 2,000 U", "networks_large": "2,500 P, 10,000 U"}
NETWORKS = ("nnPU", "nnPU-shift", "deep ratio", "p/u uLSIF")


def networks_block() -> str:
    """Return the accuracy of networks by pair of priors, beside what the paper prints."""
    cells, trials = study("networks")
    cells = cells.set_index(["shift", "method"])
    rows = []
    for shift in dict.fromkeys(cells.index.get_level_values("shift")):
        printed_cell = printed_mnist(*map(float, shift.split(" → "))).set_index("method")["mean"]
        best = printed_cell.idxmax()
        shown = [cells.loc[(shift, name)] for name in NETWORKS]
        rows.append(
            [
                *shift.split(" → "),
                *(f"{cell['mean']:.1f} ({cell['se']:.1f})" for cell in shown),
                f"{printed_cell['p/u uLSIF']:.1f}",
                f"{printed_cell[best]:.1f} ({best})",
            ]
        )
    head = ["π", "π′", *NETWORKS, "printed: p/u uLSIF", "printed: best"]
    return (
        f"Accuracy in percent with the priors given, mean (standard error) of {trials} draws.\n\n"
        + markdown(head, rows)
    )


def printed_mnist(prior: float, test_prior: float) -> pd.DataFrame:
    """Return the printed cells of MNIST at two priors that are told rightly."""
    cells = pd.concat([load_paper_table(number) for number in TABLES])
    cells = cells[(cells["dataset"] == "MNIST") & (cells["prior"] == prior)]
    return cells[(cells["test_prior"] == test_prior) & (cells["given_prior"] == test_prior)]


def network_means_block() -> str:
    """Return means over the pairs of priors, by size and by what is told, and what fits cost."""
    rows, notes = [], []
    for run, size in NETWORK_RUNS.items():
        if not (REFERENCE / run).exists():
            continue
        cells, trials = study(run)
        means = cells.groupby("method")["mean"].mean()
        for told in ("", "wrong: ", "estimated: "):
            shown = [f"{means[told + name]:.1f}" for name in NETWORKS]
            rows.append([f"{size}; draws: {trials}", told.strip(": ") or "given", *shown])
        fits = means["seconds: deep ratio"] / means["seconds: nnPU-shift"]
        cell = cells.set_index(["method", "shift"])["mean"]
        ahead = int((cell["deep ratio"] > cell["nnPU-shift"]).sum())
        notes.append(
            f"With {size}, a deep ratio takes {fits:.1f} times as long as one fit of nnPU-shift, "
            f"and is ahead of it at {ahead} of {len(cell['deep ratio'])} pairs of priors."
        )
    head = ["rows", "priors", *NETWORKS]
    return "Mean over the pairs of priors.\n\n" + "\n\n".join([markdown(head, rows), *notes])


def short_list_block() -> str:
    """Return the short list of protocols for the Ker models, each a mean over its seeds."""
    table = pd.read_csv(ROOT / "results" / "protocol_search" / "short_list.csv")
    means = table.drop(columns="seed").groupby(["entry", "width"], sort=False).mean()
    rows = []
    for (entry, width), part in means[means["trials"] > 1].iterrows():
        shares = [
            f"{part[f'{name}consistent']:.1%} · {part[f'{name}mean_abs_delta']:.2f}"
            for name in ("", "DH-Ker ", "Sq-Ker ", "MNIST ")
        ]
        errors = f"{part['mean_se']:.2f} · {part['paper_mean_se']:.2f}"
        rows.append([entry, width, *shares, errors])
    head = ["entry", "width by", "both", "DH-Ker", "Sq-Ker", "MNIST", "standard error · printed"]
    return markdown(head, rows)


def map_block() -> str:
    """Return the modules by layer, with what each says of itself."""
    from tests.test_layers import LAYERS, MODULES, room, summary  # needs what the tests need

    rows = []
    for layer, rooms in LAYERS.items():
        inside = [module for name in rooms for module in MODULES if room(module) == name]
        for number, module in enumerate(inside):
            path = module.replace("/__init__", "/")
            says = summary(module).replace("``", "`")
            rows.append(["" if number else f"**{layer}**", f"`{path}`", says])
    return markdown(["layer", "module", "what it is for"], rows)


def from_benchmarks(module: str) -> Any:
    """Import a module of benchmarks/."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    return importlib.import_module(module)


def speed_block() -> str:
    """Return the tables of the benchmarks of speed."""
    results = (ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8")
    return from_benchmarks("speed").render(json.loads(results)).strip()


def practice_block(name: str = "practice") -> str:
    """Return the tables of the benchmark of practice."""
    practice = from_benchmarks("practice")
    return practice.render(practice.read(ROOT / "benchmarks" / f"{name}.json")).strip()


def compared_block() -> str:
    """Return the versions of the packages that are compared."""
    pins = (ROOT / "requirements" / "bench.txt").read_text(encoding="utf-8")
    peers = [f"{name} {re.search(f'^{name}==(.+)$', pins, re.M)[1]}" for name in PEERS]
    return f"The versions are pu-shift {__version__}, {' and '.join(peers)}."


def priors_block(name: str) -> str:
    """Return one of the tables of how well priors are estimated."""
    results = json.loads((ROOT / "benchmarks" / "priors.json").read_text(encoding="utf-8"))
    return from_benchmarks("priors").render({name: results[name]}).strip()


def evaluation_block(name: str) -> str:
    """Return one of the tables of how right figures without negatives are."""
    evaluation = from_benchmarks("evaluation")
    rows = from_benchmarks("practice").read(ROOT / "benchmarks" / "evaluation.json")
    return evaluation.render(rows)[name]


def rendered(name: str) -> str:
    """Return the tables of a benchmark: `scale`, `load` or `installing`."""
    results = (ROOT / "benchmarks" / f"{name}.json").read_text(encoding="utf-8")
    return from_benchmarks(name).render(json.loads(results)).strip()


def verify_report() -> dict[str, Any]:
    """Return the committed report of `make verify`."""
    text = (ROOT / "benchmarks" / "verify.json").read_text(encoding="utf-8")
    return json.loads(text)


def verified_block() -> str:
    """Return the claims of `make verify`, with what was measured and what is allowed."""
    verdicts = {True: "passed", False: "failed", None: "not checked"}
    rows = [
        [claim["claim"], claim["measured"], claim["allowed"], verdicts[claim["passed"]]]
        for claim in verify_report()["claims"]
    ]
    rows = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return markdown(["claim", "measured", "allowed", ""], rows)


def bounds_block() -> str:
    """Return how near the reference run is to the paper, and what chance allows another run."""
    rows = []
    for number, cells in [*reference().tables.items(), (0, printed())]:
        found, bounds = headline(cells), chance_bounds(cells)
        rows.append(
            [
                f"Table {number}" if number else "all",
                f"{found.consistent:.1%}",
                f"{bounds.consistent:.1%}",
                f"{found.mean_abs_delta:.2f}",
                f"{bounds.mean_abs_delta:.2f}",
            ]
        )
    return markdown(["", "consistent", "at least", "mean abs. Δ", "at most"], rows)


def mutants_block() -> str:
    """Return the mistakes that were made on purpose, and what saw them."""
    text = (ROOT / "benchmarks" / "mutants.json").read_text(encoding="utf-8")
    rows = []
    for name, lines in json.loads(text).items():
        more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
        rows.append([name, lines[0] + more if lines else "**not seen**"])
    return markdown(["mistake", "seen by"], rows)


def artefact_block() -> str:
    """Return a line for each claim of the documents, in the form of an artefact appendix."""
    report = verify_report()
    folders = [REFERENCE / f"table{number}" for number in TABLES]
    trials = pd.concat([pd.read_csv(folder / "trials.csv") for folder in folders])
    fits = trials.drop_duplicates(["dataset", "prior", "method", "trial"])
    hours = fits["seconds"].sum() / 3600
    quick = f"{report['seconds']:.0f} s"
    rows = [
        ["README, REPRODUCTION: every table of numbers", "`make verify`", quick, "no difference"],
        ["trials 0 and 1 of Tables 1–3", "`make verify`", quick, "as above, under Trials"],
        ["theorems, losses, risks, draws", "`make verify`", quick, "as above, by identity"],
        [
            "all accuracies of Tables 1–7",
            "`make verify-full`",
            f"{hours:.1f} h of one core, or less",
            "as above, under Trials",
        ],
        [
            "how near Tables 1–7 are to the paper",
            "`make verify-full`",
            "the same run",
            "1 %, as above",
        ],
        ["the verdicts on the paper's discussion", "`make verify`", quick, "no difference"],
        [
            "the robustness, cost and prior studies",
            "`make robustness asymmetric estimated_prior class_prior networks`",
            "see their `run.json`",
            "not judged by a command: compare `summary.csv`",
        ],
        ["the tests", "`make test`", "some minutes", "none fails"],
        ["mistakes are seen", "`make verify-mutants`", "about 10 minutes", "all of them"],
        ["kernels for GPUs", "`make test-gpu-compile`", "about 5 minutes", "all compile"],
    ]
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    kernels = sorted({str(part.get("architecture")) for part in report["blas"]} - {"None"})
    machine = (
        f"{report['platform']['cores']} cores, {report['platform']['system']}, BLAS kernels "
        f"{', '.join(kernels)}; {versions}. Other programs ran beside, so that the times are high."
    )
    disk = (
        "Disk: the clone and its environment about 1 GB, datasets 0.5 GB with the kept arrays, "
        "results 20 MB. Memory: 1 GB for each worker. No GPU. The network is needed for packages "
        "and datasets only."
    )
    table = markdown(["claim", "command", "time", "tolerance"], rows)
    return f"{table}\n\n{disk}\n\nMachine: {machine}"


BLOCKS: dict[str, Callable[[], str]] = {
    "map": map_block,
    "seen": seen_block,
    "headline": headline_block,
    "short_headline": short_headline_block,
    "seed1": lambda: headline_block("seed1"),
    "agreement": agreement_block,
    "better": better_block,
    "claims": claims_block,
    "told": told_block,
    "asymmetric": asymmetric_block,
    "equivalence": equivalence_block,
    "estimated": estimated_block,
    "networks": networks_block,
    "network_means": network_means_block,
    "short_list": short_list_block,
    "compared": compared_block,
    "priors": lambda: priors_block("prior"),
    "test_priors": lambda: priors_block("test_prior"),
    "calibration": lambda: priors_block("calibration"),
    "evaluation_error": lambda: evaluation_block("error"),
    "evaluation_coverage": lambda: evaluation_block("coverage"),
    "evaluation_bias": lambda: evaluation_block("bias"),
    "speed": speed_block,
    "practice": practice_block,
    "practice_paper": lambda: practice_block("practice_paper").partition("\n\nBy dataset")[0],
    "installing": lambda: rendered("installing"),
    "scale": lambda: rendered("scale"),
    "load": lambda: rendered("load"),
    "verified": verified_block,
    "bounds": bounds_block,
    "mutants": mutants_block,
    "artefact": artefact_block,
}


BLOCK = re.compile(r"<!-- (\w+) -->\n(.*?)<!-- /\1 -->", flags=re.DOTALL)


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each block of a document, what it says, and what it should say."""
    for match in BLOCK.finditer(text):
        yield match[1], match[2].strip("\n"), BLOCKS[match[1]]()


def protocol_markdown() -> str:
    """Return the text of ``docs/PROTOCOL.md``."""
    lines = [
        "# The protocol",
        "",
        "The choices that a number in a table depends on. One protocol serves all datasets,",
        "methods and tables. A value is stated in the paper, is a convention of the field, or was",
        "fitted to Tables 1–3. What the alternatives of a fitted value give stands beside it or",
        "in [the log of the search](../results/protocol_search/README.md). This page is made from",
        "`pu_shift/paper/protocol.py` by `make docs`, and a test keeps the two equal.",
        "",
        "Besides: ten trials, and the standard error over them (stated in the paper); rows are",
        "drawn without replacement, and no row is in two of P, U and a test set (a convention).",
        "[datasets/README.md](../datasets/README.md) says which part and which class of each",
        "dataset is used, [REPRODUCTION.md](REPRODUCTION.md) how means are compared with the",
        "printed ones and set in boldface.",
        "",
        "| field | value | origin | reason |",
        "|---|---|---|---|",
    ]
    for item in fields(Protocol):
        value = getattr(Protocol(), item.name)
        if isinstance(value, tuple):  # the last digit is the processor's
            value = [float(f"{number:.6g}") for number in value]
        value = json.dumps(value)
        lines.append(
            f"| `{item.name}` | `{value}` | {item.metadata['origin']} | {item.metadata['why']} |"
        )
    return "\n".join(lines) + "\n"


def filled(text: str) -> str:
    """Return a document with its blocks made anew."""

    def block(match: re.Match[str]) -> str:
        name = match[1]
        return f"<!-- {name} -->\n\n{BLOCKS[name]()}\n\n<!-- /{name} -->"

    return BLOCK.sub(block, text)


def main() -> int:
    """Write the documents, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    check = parser.parse_args().check
    pages = {name: filled((ROOT / name).read_text(encoding="utf-8")) for name in FILLED}
    pages["docs/PROTOCOL.md"] = protocol_markdown()
    stale = [
        name for name, page in pages.items() if page != (ROOT / name).read_text(encoding="utf-8")
    ]
    if check:
        for name in stale:
            print(f"{name} is not what `make docs` writes", file=sys.stderr)
        return int(bool(stale))
    for name in stale:
        (ROOT / name).write_text(pages[name], encoding="utf-8")
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
