"""The measurements as a Markdown text and as a figure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any


def render(results: dict[str, Any], only: Iterable[str] | None = None) -> str:
    """Return the tables of the benchmarks in Markdown.

    Parameters
    ----------
    results
        What ``results.json`` holds: benchmark to its machine and rows.
    only
        Which benchmarks, by default all that were run.

    Returns
    -------
    str
        The text, which README.md and docs/SPEED.md show as it is.
    """
    tables = {
        "ulsif": ("uLSIF with selection of width and λ, against peers", _ratios),
        "training": ("Training a cross-validation, against peers", _ratios),
        "floor": ("One AMSGrad step, against its two GEMMs alone", _floor),
        "growth": ("Growth", _growth),
        "tables": ("Whole tables", _tables),
    }
    parts = []
    for name, (title, table) in tables.items():
        if name in results and name in (only or tables):
            machine, rows = results[name]["machine"], results[name]["rows"]
            parts.append(f"**{title}** ({_machine(machine)})\n\n{table(rows)}")
    return "\n".join(parts)


def _machine(machine: dict[str, Any]) -> str:
    return (
        f"{machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f} before; "
        f"Python {machine['python']}, NumPy {machine['numpy']}, {machine['blas']}"
    )


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _time(seconds: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-6:.0f} µs"


def _verdict(value: float, sign: str, target: float | None) -> str:
    if target is None:
        return ""
    met = value >= target if sign == "≥" else value <= target
    return f"{sign} {target:g}, {'met' if met else '**missed**'}"


def _ratios(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        ratio = row["peer_seconds"] / row["ours_seconds"]
        times = _time(row["ours_seconds"]), _time(row["peer_seconds"])
        target = _verdict(ratio, "≥", row["at_least"])
        lines.append([row["case"], row["peer"], *times, f"{ratio:.3g}×", target])
    return _markdown(["case", "peer", "ours", "peer's", "faster by", "target"], lines)


def _floor(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        ratio = row["ours_seconds"] / row["peer_seconds"]
        times = _time(row["ours_seconds"]), _time(row["peer_seconds"])
        target = _verdict(ratio, "≤", row["at_most"])
        lines.append([row["case"], *times, f"{ratio:.3g}×", target])
    return _markdown(["case", "step", "GEMMs", "step/GEMMs", "target"], lines)


def _growth(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        count = "candidates" if row["kind"] == "candidates" else "n_u"
        name = "training" if row["kind"] == "candidates" else row["kind"]
        target = _verdict(row["peak_mib"], "≤", row["at_most_mib"])
        lines.append(
            [
                f"{name}: {row['what']}",
                f"{count} {row['n']:,}",
                _time(row["seconds"]),
                f"{row['peak_mib']:.0f} MiB",
                target.replace(",", " MiB,"),
            ]
        )
    return _markdown(["what", "size", "time", "peak memory of the process", "target"], lines)


def _tables(rows: list[dict[str, Any]]) -> str:
    lines = [
        [
            row["case"],
            f"{row['minutes']:.1f} min",
            f"{row['cpu_minutes']:.1f} min",
            _verdict(row["minutes"], "≤", row["at_most"]),
        ]
        for row in rows
    ]
    breakdown = rows[-1]["breakdown"]
    methods = list(next(iter(breakdown.values())))
    seconds = [
        [dataset, *(f"{part[method]:.0f}" for method in methods)]
        for dataset, part in breakdown.items()
    ]
    return (
        _markdown(["what", "by the clock", "CPU time", "target"], lines)
        + "\nSeconds of fitting in all seven, summed over trials, priors and workers:\n\n"
        + _markdown(["dataset", *methods], seconds)
    )


def plot(results: dict[str, Any], path: Path) -> None:
    """Draw the ratios and the growth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = [row for name in ("ulsif", "training") for row in results.get(name, {}).get("rows", [])]
    labels = [f"{row['case']}\n{row['peer']}" for row in rows]
    ratios = [row["peer_seconds"] / row["ours_seconds"] for row in rows]
    left.barh(range(len(rows)), ratios)
    for place, row in enumerate(rows):
        if row["at_least"] is not None:
            left.plot([row["at_least"]] * 2, [place - 0.4, place + 0.4], color="black")
    left.set_yticks(range(len(rows)), labels, fontsize=6)
    left.set_xlabel("times faster than the peer (line: target)")
    if rows:
        left.invert_yaxis()
        left.set_xscale("log")
        left.set_xlim(left=min(0.9, *ratios))
    growth = results.get("growth", {}).get("rows", [])
    for key in dict.fromkeys((row["kind"], row["what"]) for row in growth):
        points = [row for row in growth if (row["kind"], row["what"]) == key]
        x = [row["n"] for row in points]
        right.plot(x, [row["seconds"] for row in points], marker="o", label=": ".join(key))
    if growth:
        right.set_xscale("log")
        right.set_yscale("log")
        right.set_xlabel("unlabelled rows, or candidates")
        right.set_ylabel("seconds")
        right.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.savefig(path, dpi=120)
