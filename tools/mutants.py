"""Make mistakes on purpose, one at a time, and tell which lines of `pu-shift verify` see each.

Usage: python tools/mutants.py [--only TEXT] [--json FILE]

Each mistake is made in a copy of the tree, which is verified on two datasets and one trial. The
exit status is 1 if a mistake is not seen, or if the tree as it is does not pass.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pu_shift.data.loading import raw_folder

NEEDED = ("pu_shift", "tools", "experiments", "docs", "results", "paper_tables", "benchmarks")
FILES = ("README.md", "datasets/fetch.py")
OPTIONS = ("--datasets", "banana", "cod-rna", "--trials", "1")


class Mutant(NamedTuple):
    """A mistake: what it is, the file, and texts that occur there once, with what replaces them."""

    name: str
    file: str
    edits: tuple[tuple[str, str], ...]


MUTANTS = (
    Mutant(
        "π and π′ are swapped in the threshold",
        "pu_shift/priors.py",
        (
            (
                "return alpha_unif(self.prior, self.test_prior, self.alpha)",
                "return alpha_unif(self.test_prior, self.prior, self.alpha)",
            ),
        ),
    ),
    Mutant(
        "α_unif is computed without π",
        "pu_shift/priors.py",
        (
            ("alpha * prior * (1.0 - test_prior)", "alpha * (1.0 - test_prior)"),
            ("(1.0 - alpha) * test_prior * (1.0 - prior)", "(1.0 - alpha) * test_prior"),
        ),
    ),
    Mutant(
        "u/p is thresholded as p/u",
        "pu_shift/priors.py",
        (
            (
                "return self.prior / self.alpha_unif - ratio",
                "return self.prior * ratio - self.alpha_unif",
            ),
        ),
    ),
    Mutant(
        "uLSIF's coefficients are clipped",
        "pu_shift/ratios/ulsif.py",
        (
            (
                "return positive_part(theta) if self.clip_coefficients else theta",
                "return positive_part(theta)",
            ),
        ),
    ),
    Mutant(
        "λ of uLSIF may be 10⁻³",
        "pu_shift/paper/protocol.py",
        (("(1e-2, 1e-1)", "(1e-3, 1e-2, 1e-1)"),),
    ),
    Mutant(
        "features are standardised",
        "pu_shift/paper/runner.py",
        (
            (
                "scale_features(sample, protocol.feature_scaling)",
                'scale_features(sample, "standard")',
            ),
        ),
    ),
    Mutant(
        "folds leak: held-out rows are fitted too",
        "pu_shift/ratios/ulsif.py",
        (
            ("rest = xp.sum(sums, axis=1, keepdims=True) - sums", "rest = 0.0 * sums"),
            (
                "return rest / (len(folds.of_rows) - inside)",
                "return rest + xp.sum(sums, axis=1, keepdims=True) / len(folds.of_rows)",
            ),
        ),
    ),
    Mutant(
        "the kinks of the double hinge are moved by 0.2",
        "pu_shift/losses.py",
        (
            ("right = left + 0.5", "right = left + 0.4"),
            ("left -= 0.5", "left -= 0.6"),
            ("kinks_below += 1.5", "kinks_below += 1.6"),
        ),
    ),
    Mutant(
        "AMSGrad has no maximum",
        "pu_shift/training.py",
        (("np.maximum(vhat, v, out=vhat)", "np.copyto(vhat, v)"),),
    ),
    Mutant(
        "the bias is never trained",
        "pu_shift/models.py",
        (("self.W) + self.b\n", "self.W) + self.b.array\n"),),
    ),
    Mutant(
        "class counts of the test sets are binomial",
        "pu_shift/data/sampling.py",
        (
            (
                "_count(n_test, value, counts, generator)",
                '_count(n_test, value, "binomial", generator)',
            ),
        ),
    ),
    Mutant(
        "P is part of U",
        "pu_shift/data/sampling.py",
        (
            (
                "    u_negatives, negative_rest =",
                "    u_rows = np.concatenate([p_rows, u_rows])[:u_positives]\n"
                "    u_negatives, negative_rest =",
            ),
        ),
    ),
    Mutant(
        "the shift risk weighs U by (1 − π)/(1 − π′)",
        "pu_shift/risks.py",
        (
            (
                "test_prior, (1.0 - test_prior) / (1.0 - prior)",
                "test_prior, (1.0 - prior) / (1.0 - test_prior)",
            ),
        ),
    ),
    Mutant(
        "trials are counted from 1",
        "pu_shift/data/sampling.py",
        (
            (
                '_checks.positive_int("trial", trial, least=0)',
                '_checks.positive_int("trial", trial, least=0) + 1',
            ),
        ),
    ),
    Mutant(
        "uLSIF's centres are of the numerator alone",
        "pu_shift/ratios/ulsif.py",
        (
            (
                "                self.centers,\n                self.n_centers",
                '                "numerator",\n                self.n_centers',
            ),
        ),
    ),
    Mutant(
        "a number in a page is wrong",
        "docs/REPRODUCTION.md",
        (("| cells | 432 |", "| cells | 433 |"),),
    ),
)


def copied(folder: Path) -> None:
    """Copy what is verified; links would let a mistake out."""
    unwanted = shutil.ignore_patterns("__pycache__", "_build", "verify", "*.png", "*.html")
    for name in NEEDED:
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def mutate(folder: Path, mutant: Mutant) -> None:
    """Make a mistake in a copy of the tree; `ValueError` if its place is not found there."""
    path = folder / mutant.file
    text = path.read_text(encoding="utf-8")
    for old, new in mutant.edits:
        if text.count(old) != 1:
            raise ValueError(
                f"{mutant.file} must hold {old!r} once, it does {text.count(old)} times"
            )
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def failed_lines(folder: Path) -> list[str]:
    """Verify a copy of the tree; return the claims that failed, or how it ended."""
    report = folder / "report.json"
    environment = {**os.environ, "PYTHONPATH": str(folder), "PU_SHIFT_CACHE": str(raw_folder())}
    done = subprocess.run(
        [sys.executable, "-m", "pu_shift", "verify", *OPTIONS, "--report", str(report)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if not report.exists():
        return [f"ended with status {done.returncode}: {done.stderr.strip().splitlines()[-1]}"]
    claims = json.loads(report.read_text(encoding="utf-8"))["claims"]
    return [claim["claim"] for claim in claims if claim["passed"] is False]


def main() -> int:
    """Make every mistake in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="mistakes that hold this text")
    parser.add_argument("--json", metavar="FILE", help="write what saw each mistake")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    unseen = 0
    with tempfile.TemporaryDirectory() as name:
        plain = Path(name) / "plain"
        copied(plain)
        if before := failed_lines(plain):
            print(f"the tree as it is does not pass: {before[0]}", file=sys.stderr)
            return 1
        print("the tree as it is passes")
        for number, mutant in enumerate(m for m in MUTANTS if options.only in m.name):
            folder = Path(name) / str(number)
            shutil.copytree(plain, folder, ignore=shutil.ignore_patterns("__pycache__"))
            (folder / "report.json").unlink()
            mutate(folder, mutant)
            found[mutant.name] = lines = failed_lines(folder)
            shutil.rmtree(folder)
            unseen += not lines
            more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
            print(f"{mutant.name}: {lines[0] + more if lines else 'NOT SEEN'}", flush=True)
    if options.json:
        text = json.dumps(found, indent=1, ensure_ascii=False)
        Path(options.json).write_text(text + "\n", encoding="utf-8")
    print(f"{len(found) - unseen} of {len(found)} mistakes are seen")
    return int(unseen > 0)


if __name__ == "__main__":
    sys.exit(main())
