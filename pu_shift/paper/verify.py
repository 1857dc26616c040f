"""Check that this machine, or a change, still gives the published results.

`checks` yields one `Check` for each claim: identities of the theory, the numbers that the pages
state, and trials that are run again and compared with the committed ones.
"""

from __future__ import annotations

import importlib.util
import json
import re
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from pu_shift._chainer import ChainerMissingError, require_chainer
from pu_shift._checks import one_line
from pu_shift.data.loading import CHECKOUT
from pu_shift.paper.compare import compare, load_paper_table, summarize
from pu_shift.paper.identities import IDENTITIES
from pu_shift.paper.reference import Check, near_paper, other_run, reference_run, same_trials
from pu_shift.paper.runner import RunOptions, Task, gather, in_parallel, plan, run_all, run_task
from pu_shift.paper.scripts import progress
from pu_shift.paper.settings import DATASETS, GUIDES, METHODS, TABLES, TRIAL, TRIALS
from pu_shift.paper.store import StoreError, environment, read_run, read_trials, write_atomic

# Random inputs on which each identity is tried.
SEEDS = range(3)
PAGES = ("README.md", "docs/REPRODUCTION.md")
QUICK_TRIALS = 2


@dataclass(frozen=True)
class VerifyOptions:
    """What to verify: by default trials 0 and 1 of Tables 1–3, with ``full`` all seven tables.

    ``out`` is where a full run keeps its trials, and ``results`` a folder whose trials are judged
    instead of running any.
    """

    datasets: Sequence[str] = ()
    trials: int | None = None
    jobs: int | None = None
    full: bool = False
    out: Path = Path("results/verify")
    results: Path | None = None
    show: Callable[[list[Task], Iterator[Any]], Iterator[Any]] = progress

    def run_options(self, datasets: Sequence[str]) -> RunOptions:
        """Return the options of a run of the reference protocol."""
        methods = METHODS if _has_chainer() else [name for name in METHODS if "uLSIF" in name]
        trials = self.trials or (TRIALS if self.full else QUICK_TRIALS)
        return RunOptions(datasets=datasets, methods=methods, trials=trials, jobs=self.jobs)


@dataclass
class Report:
    """What came of the checks; ``checks`` grows as they are made."""

    checks: list[Check] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    @property
    def passed(self) -> bool:
        """Whether no claim failed."""
        return all(check.passed is not False for check in self.checks)

    def __str__(self) -> str:
        verdicts = [check.passed for check in self.checks]
        failed, left = verdicts.count(False), verdicts.count(None)
        parts = [f"{verdicts.count(True)} of {len(verdicts)} claims passed"]
        parts += [f"{failed} failed"] * bool(failed) + [f"{left} not checked"] * bool(left)
        return f"{', '.join(parts)}; {time.monotonic() - self.started:.0f} s"

    def write(self, path: str | Path) -> None:
        """Write the report as JSON."""
        content = {
            "passed": self.passed,
            "seconds": round(time.monotonic() - self.started, 1),
            "claims": [asdict(check) for check in self.checks],
            "reference": {name: reference_run()[name] for name in ("seed", "protocol", "files")},
            **environment(),
        }
        text = json.dumps(content, indent=1, ensure_ascii=False)
        write_atomic(path, text + "\n")


def checks(options: VerifyOptions) -> Iterator[Check]:
    """Yield every check as it is made: the quick ones first, results of another run at once."""
    if options.results is not None:
        yield from results_checks(options.results)
    yield from identity_checks()
    yield from page_checks()
    if options.results is None:
        yield from _full_checks(options) if options.full else trial_checks(options)


def identity_checks() -> Iterator[Check]:
    """Try the identities of the theory on random inputs."""
    for identity in IDENTITIES:
        if identity.needs_chainer and not _has_chainer():
            yield Check(identity.claim, "Chainer is not installed")
            continue
        allowed = f"{identity.allowed:.0e}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of grids of two candidates
                error = max(identity.error(np.random.default_rng(seed)) for seed in SEEDS)
        except Exception as problem:  # what cannot be computed does not hold
            measured = f"{type(problem).__name__}: {one_line(problem)}"
            yield Check(identity.claim, measured, allowed, False)
        else:
            holds = bool(error <= identity.allowed)
            yield Check(identity.claim, f"largest error {error:.0e}", allowed, holds)


def page_checks() -> Iterator[Check]:
    """Compute the numbers of the pages again from the committed trials."""
    if CHECKOUT is None:
        yield Check(f"numbers of {' and '.join(PAGES)}", "the pages are in a clone only")
        return
    path = CHECKOUT / "tools" / "write_docs.py"
    spec = importlib.util.spec_from_file_location("write_docs", path)
    assert spec is not None
    assert spec.loader is not None
    write_docs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(write_docs)
    for page in PAGES:
        text = (CHECKOUT / page).read_text(encoding="utf-8")
        for name, written, made in write_docs.blocks(text):
            claim = f"{page}, {name}: what the committed trials give"
            pairs = zip(written.splitlines(), made.splitlines())
            apart = [pair for pair in pairs if pair[0] != pair[1]]
            measured = f"{len(re.findall(r'[0-9.]*[0-9]', made))} numbers"
            if written != made:
                apart = apart or [("another length", "")]
                measured = f"the page says {apart[0][0]!r}, the trials give {apart[0][1]!r}"
            yield Check(claim, measured, "no difference", written == made)


def trial_checks(options: VerifyOptions) -> Iterator[Check]:
    """Run the training sets of Tables 1–3 again and compare them with the reference run."""
    usable = yield from _usable(options)
    if not usable:
        yield from same_trials(pd.DataFrame(columns=[*TRIAL, "accuracy", "width", "lam"]))
        return
    run = options.run_options(usable)
    # With all that the reference run asked of a training set: a stack of other candidates
    # could differ in the last bit.
    priors = {block.prior for number in GUIDES for block in TABLES[number].blocks}
    tasks = [task for task in plan(TABLES.values(), run) if task.prior in priors]
    calls = [joblib.delayed(run_task)(task, run.protocol, run.seed) for task in tasks]
    with closing(in_parallel(calls, run.n_workers)) as results:
        rows = [row for found in options.show(tasks, results) for row in found]
    yield from same_trials(pd.DataFrame(rows))


def _full_checks(options: VerifyOptions) -> Iterator[Check]:
    require_chainer("a run of all tables")
    usable = yield from _usable(options)
    if usable:
        settings = {options.out / f"table{number}": TABLES[number] for number in TABLES}
        missing = [name for name in DATASETS if name not in usable]
        run_all(settings, options.run_options(usable), options.show, missing)
        yield from results_checks(options.out)


def results_checks(folder: Path) -> Iterator[Check]:
    """Judge the trials of a folder: against the reference run, and against the paper.

    ``StoreError`` if they were made with another protocol or other data.
    """
    paths = {number: folder / f"table{number}" for number in TABLES}
    paths = {number: path for number, path in paths.items() if path.is_dir()}
    if not paths:
        number = read_run(folder).get("table")
        if number not in TABLES:
            raise StoreError(f"{folder} is not a folder of results: it holds no table1 … table7")
        paths = {number: folder}
    frames, seeds = {}, []
    for number, path in paths.items():
        found = other_run(read_run(path))
        seeds += [line for line in found if line.startswith("seed ")]
        others = [line for line in found if not line.startswith("seed ")]
        if others:
            raise StoreError(f"{path} holds another run: {others[0]}")
        trials = read_trials(path)
        if len(trials):
            frames[number] = trials
    if not frames:
        raise StoreError(f"{folder} holds no trials")
    if seeds:
        yield Check("trials as in the reference run", f"{seeds[0]}: compared with the paper alone")
    else:
        yield from same_trials(pd.concat(frames.values(), ignore_index=True))
    compared = {
        number: compare(summarize(trials), load_paper_table(number))
        for number, trials in frames.items()
    }
    if len(compared) > 1:
        yield near_paper(pd.concat(compared.values()), f"Tables {', '.join(map(str, compared))}")
    for number, cells in compared.items():
        yield near_paper(cells, f"Table {number}, {covered(cells, number)}")


def covered(cells: pd.DataFrame, number: int) -> str:
    """Say how many of a table's cells and trials there are."""
    least, most = int(cells["n"].min()), int(cells["n"].max())
    trials = f"{most}" if least == most else f"{least} to {most}"
    return f"{len(cells)} of {len(list(TABLES[number].cells()))} cells, {trials} trials"


def _usable(options: VerifyOptions) -> Generator[Check, None, list[str]]:
    """Yield a check for each dataset that cannot serve; return the others."""
    asked = list(options.datasets) or list(DATASETS)
    not_had = gather(asked)
    for name, error in not_had.items():
        if options.datasets:
            raise error
        yield Check(f"trials on {name}", one_line(str(error).splitlines()[0]))
    names = [name for name in asked if name not in not_had]
    if not names:
        return []
    run = options.run_options(names)
    if not _has_chainer():
        yield Check("trials of DH and Sq", "Chainer is not installed")
    digests, usable = run.fingerprints(), []
    apart = other_run({**run.identity, "files": None})
    same = "; ".join(apart) or "no field differs"
    yield Check("the protocol is that of the reference run", same, passed=not apart)
    for name, dataset in zip(run.names, names):
        expected = reference_run()["files"].get(name)
        if digests[name] == expected:
            usable.append(dataset)
        else:
            measured = f"SHA-256 {digests[name]}…, another edition of the data"
            yield Check(f"values of {name}", measured, f"{expected}…", False)
    return usable


def _has_chainer() -> bool:
    try:
        require_chainer("verify")
    except ChainerMissingError:
        return False
    return True
