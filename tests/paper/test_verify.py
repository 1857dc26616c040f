"""`pu-shift verify`: each line can fail, and says what it covered."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pu_shift import priors, training
from pu_shift.cli import main
from pu_shift.data import sampling
from pu_shift.losses import DoubleHinge
from pu_shift.paper import verify
from pu_shift.paper.identities import IDENTITIES
from pu_shift.paper.reference import reference_folder, reference_run, reference_trials
from pu_shift.paper.settings import GUIDES, TABLES
from pu_shift.ratios import ulsif

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
MUTANTS = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MUTANTS)


@pytest.fixture
def _trials_alone(monkeypatch):
    """Leave out the checks that need no trials."""
    monkeypatch.setattr(verify, "page_checks", lambda: iter(()))
    monkeypatch.setattr(verify, "identity_checks", lambda: iter(()))


def failed(checks):
    return [check.claim for check in checks if check.passed is False]


def test_the_identities_hold():
    assert failed(verify.identity_checks()) == []


def swapped(self):
    return priors.alpha_unif(self.test_prior, self.prior, self.alpha)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("owner", "name", "wrong", "claim"),
    [
        (priors.Condition, "alpha_unif", property(swapped), "Theorem 1 and Corollary 2"),
        (
            priors.Condition,
            "classify_ratio",
            lambda self, ratio, direction: self.prior * ratio - self.alpha_unif,
            "Equations 12–13",
        ),
        (DoubleHinge, "_value", lambda self, xp, z: xp.clip(0.4 - 0.5 * z, 0, None), "the losses"),
        (
            ulsif,
            "_fold_means",
            lambda sums, folds: (sums / folds.n_folds, sums / folds.n_folds),
            "uLSIF",
        ),
        (sampling, "_count", lambda n, prior, *_: round(n * prior) + 1, "P, U and test sets"),
    ],
)
def test_an_identity_sees_a_mistake(monkeypatch, owner, name, wrong, claim):
    monkeypatch.setattr(owner, name, wrong)
    seen = [
        identity.claim
        for identity in IDENTITIES
        if not identity.error(np.random.default_rng(0)) <= identity.allowed
    ]
    assert any(line.startswith(claim) for line in seen), seen


def test_the_steps_see_a_missing_maximum(monkeypatch):
    pytest.importorskip("chainer")
    update = training._InPlaceRule.update_core_cpu

    def forgetful(rule, param):
        rule.state["vhat"][...] = 0.0  # of which the maximum is v itself
        update(rule, param)

    monkeypatch.setattr(training._InPlaceRule, "update_core_cpu", forgetful)
    (steps,) = [identity for identity in IDENTITIES if "AMSGrad" in identity.claim]
    assert steps.error(np.random.default_rng(0)) > steps.allowed


def test_every_mutant_has_its_place(tmp_path):
    """`make verify-mutants` makes each mistake in a copy of the tree."""
    for mutant in MUTANTS.MUTANTS:
        path = tmp_path / mutant.file
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / mutant.file, path)
        MUTANTS.mutate(tmp_path, mutant)
        assert path.read_text(encoding="utf-8") != (ROOT / mutant.file).read_text(encoding="utf-8")
        if path.suffix == ".py":
            compile(path.read_text(encoding="utf-8"), str(path), "exec")


def test_a_wrong_number_in_a_page_is_seen(monkeypatch, tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("| Tables 1–7 |"))
    page = tmp_path / "page.md"
    page.write_text(text.replace(line, line.replace("792", "793")), encoding="utf-8")
    monkeypatch.setattr(verify, "PAGES", (str(page),))
    wrong = [check for check in verify.page_checks() if check.passed is False]
    assert [check.claim for check in wrong] == [
        f"{page}, short_headline: what the committed trials give"
    ]
    assert "793" in wrong[0].measured.split("the trials give")[0]


def test_without_a_clone_the_pages_are_not_checked(monkeypatch):
    monkeypatch.setattr(verify, "CHECKOUT", None)
    (check,) = verify.page_checks()
    assert check.passed is None


@pytest.fixture
def results(tmp_path):
    """Return a copy of the reference results of two tables."""
    for number in (1, 3):
        folder = tmp_path / f"table{number}"
        folder.mkdir()
        for name in ("run.json", "trials.csv"):
            shutil.copy(reference_folder() / f"table{number}" / name, folder)
    return tmp_path


def edit(folder, **fields):
    path = folder / "run.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**run, **fields}), encoding="utf-8")


def test_results_are_judged_by_trial_and_by_table(results):
    checks = list(verify.results_checks(results))
    assert failed(checks) == []
    assert [check.claim.split(",")[0] for check in checks[-3:]] == [
        "Tables 1",
        "Table 1",
        "Table 3",
    ]
    assert "108 of 108 cells, 10 trials" in checks[-2].claim
    assert failed(verify.results_checks(results / "table3")) == []


def test_partial_results_say_what_they_cover(results):
    path = results / "table1" / "trials.csv"
    trials = pd.read_csv(path)
    keep = (trials["dataset"] == "banana") & (trials["trial"] < 3)
    trials[keep & ~((trials["method"] == "DH-Lin") & (trials["trial"] == 2))].to_csv(
        path, index=False
    )
    (check,) = [c for c in verify.results_checks(results / "table1") if "Table" in c.claim]
    assert "18 of 108 cells, 2 to 3 trials" in check.claim
    assert check.passed


def test_another_seed_is_compared_with_the_paper_alone(results):
    edit(results / "table1", seed=4)
    first = next(verify.results_checks(results))
    assert first.passed is None
    assert first.measured.startswith("seed is 4, the reference has 0")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"protocol": {**reference_run()["protocol"], "n_steps": 20}},
            "protocol.n_steps is 20, the reference has 500",
        ),
        ({"files": {"banana": "0123"}}, 'files.banana is "0123", the reference has'),
    ],
)
def test_results_of_another_run_are_refused_in_one_line(results, capsys, fields, message):
    edit(results / "table3", **fields)
    assert main(["verify", "--results", str(results)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {results / 'table3'} holds another run: {message}")
    assert error.count("\n") == 1


def test_a_folder_without_results_is_refused(tmp_path, capsys):
    assert main(["verify", "--results", str(tmp_path)]) == 2
    assert "is not a folder of results" in capsys.readouterr().err


def from_reference(task, *_):
    """Stand in for a training set: its rows of the reference run."""
    trials = reference_trials()
    mine = (trials["dataset"] == task.dataset) & (trials["trial"] == task.trial)
    return trials[mine & (trials["prior"] == task.prior)].to_dict("records")


@pytest.mark.usefixtures("_trials_alone")
@pytest.mark.needs_data("banana")
def test_the_command_runs_the_training_sets_of_tables_1_to_3(monkeypatch, tmp_path, capsys):
    pytest.importorskip("chainer")
    asked = []
    monkeypatch.setattr(
        verify, "run_task", lambda task, *_: asked.append(task) or from_reference(task)
    )
    report = tmp_path / "report.json"
    assert main(["verify", "--datasets", "banana", "--jobs", "1", "--report", str(report)]) == 0
    text = capsys.readouterr().out
    content = json.loads(report.read_text(encoding="utf-8"))
    assert content["passed"]
    assert len(content["claims"]) == text.count("passed: ")
    priors_asked = {block.prior for number in GUIDES for block in TABLES[number].blocks}
    assert {task.prior for task in asked} == priors_asked
    assert {task.trial for task in asked} == {0, 1}
    # With all that the reference run asked of them.
    assert {len(task.blocks) for task in asked if task.prior == 0.3} == {7}


@pytest.mark.usefixtures("_trials_alone")
@pytest.mark.needs_data("banana")
def test_a_wrong_trial_makes_the_command_fail(monkeypatch, capsys):
    pytest.importorskip("chainer")

    def worse(task, *_):
        return [{**row, "accuracy": row["accuracy"] - 2.0} for row in from_reference(task)]

    monkeypatch.setattr(verify, "run_task", worse)
    assert main(["verify", "--datasets", "banana", "--jobs", "1"]) == 1
    assert "FAILED: accuracies of DH-Lin: 38 of 38 differ" in capsys.readouterr().out


def test_another_edition_of_the_data_is_seen(monkeypatch):
    monkeypatch.setattr(verify.RunOptions, "fingerprints", lambda self: {"banana": "0123"})
    checks = list(verify.trial_checks(verify.VerifyOptions(datasets=["banana"])))
    assert failed(checks) == ["values of banana", "trials as in the reference run"]


def test_without_any_data_nothing_is_proven(monkeypatch):
    error = verify.gather.__globals__["data"].DataError("not here")
    monkeypatch.setattr(verify, "gather", lambda asked: dict.fromkeys(asked, error))
    checks = list(verify.trial_checks(verify.VerifyOptions()))
    assert failed(checks) == ["trials as in the reference run"]
    assert sum(check.passed is None for check in checks) == 6


def test_without_chainer_the_ratios_are_verified(monkeypatch):
    monkeypatch.setattr(verify, "_has_chainer", lambda: False)
    assert len(verify.VerifyOptions().run_options(["banana"]).methods) == 2
    left = [check.claim for check in verify.identity_checks() if check.passed is None]
    assert len(left) == sum(identity.needs_chainer for identity in IDENTITIES)
