import shutil
from dataclasses import replace

import asymmetric
import class_prior
import estimated_prior
import networks
import pandas as pd
import pytest
import robustness
from asymmetric import ALPHAS
from robustness import GIVEN_PRIORS
from studies import study_figure, study_main, study_table

from pu_shift.paper import runner
from pu_shift.paper.figures import png
from tests import stand_ins

STUDIES = {
    module.STUDY.name: module.STUDY
    for module in (asymmetric, robustness, estimated_prior, class_prior, networks)
}
# So few rows may not tell the classes apart.
FEW = pytest.mark.filterwarnings("ignore::pu_shift.estimation.class_prior.PriorWarning")
SMALL = {"n_p": 60, "n_u": 200, "n_steps": 60, "n_centers": 20, "ker_centers": 20}


@pytest.fixture
def run(tmp_path, monkeypatch):
    protocol = tmp_path / "protocol.json"
    protocol.write_text(pd.Series(SMALL).to_json())

    def run_one(name, *arguments, folder=None):
        out = tmp_path / (folder or name)
        common = ["--datasets", "banana", "--trials", "2", "--jobs", "1", "--out", str(out)]
        assert study_main(STUDIES[name], [*common, "--protocol", str(protocol), *arguments]) == 0
        names = sorted(path.name for path in out.iterdir())
        outputs = ["figure.png", "run.json", "sets", "summary.csv", "table.md", "trials.csv"]
        assert names == outputs
        return pd.read_csv(out / "trials.csv")

    return run_one


def test_asymmetric_covers_every_alpha_and_finds_the_equivalence(run):
    trials = run("asymmetric", "--methods", "p/u uLSIF", "Sq-Lin", "--quiet")
    agreement = trials["method"].str.startswith("agreement")
    # A cost and the equivalent shift are proportional risks, which AMSGrad
    # follows alike but for rounding.
    assert trials[agreement]["value"].mean() > 99.0
    costs = trials[~agreement]
    assert len(costs) == 2 * 2 * len(ALPHAS)
    assert (costs["value"] >= 0).all()
    middle = costs[(costs["method"] == "p/u uLSIF") & (costs["alpha"] == 0.5)]
    assert middle["value"].mean() < 100.0


def test_robustness_moves_only_the_threshold_of_a_ratio(run, capsys):
    trials = run("robustness", "--methods", "p/u uLSIF")
    assert len(trials) == 2 * len(GIVEN_PRIORS)
    by_given = trials.groupby("given_prior")["value"].mean()
    # Told that nearly all is positive or negative, accuracy falls to the share.
    assert by_given[0.5] > by_given[0.95]
    assert by_given[0.5] > by_given[0.05]
    assert "| banana | 0.05 |" in capsys.readouterr().out


@FEW
def test_estimated_prior_reports_the_estimate_and_what_it_costs(run):
    trials = run("estimated_prior", "--methods", "p/u uLSIF", "--quiet", "--trials", "1")
    assert set(trials["prior"]) == {0.3, 0.5, 0.7}
    told = trials["method"].isin(estimated_prior.ESTIMATES)
    assert told.sum() == 6
    assert trials[told]["value"].between(0, 100).all()
    assert (trials[~told]["value"].abs() < 50).all()


@FEW
def test_class_prior_runs_every_estimator(run):
    trials = run("class_prior", "--quiet", "--trials", "1")
    assert set(trials["method"]) == set(class_prior.PRIOR_METHODS)
    assert trials["value"].between(0, 1).all()


@FEW
def test_networks_are_told_the_priors_rightly_wrongly_or_estimated(run, monkeypatch):
    monkeypatch.setattr(networks, "PAIRS", {0.7: [0.7, 0.3]})
    monkeypatch.setattr(networks, "STEPS", (60, 60))
    trials = run("networks", "--quiet", "--trials", "1").set_index(["shift", "method"])["value"]
    assert len(trials) == 2 * (3 * 4 + 2)
    no_shift, shift = trials["0.7 → 0.7"], trials["0.7 → 0.3"]
    # Without a shift nnPU-shift is nnPU, which is the same network at each test prior.
    assert no_shift["nnPU-shift"] == no_shift["nnPU"]
    assert shift["nnPU-shift"] != shift["nnPU"]
    assert shift["deep ratio"] > 50.0
    assert (trials.filter(like="seconds") > 0.0).all()


def test_a_study_that_was_stopped_goes_on_to_the_same_numbers(run, tmp_path, monkeypatch):
    arguments = ("--methods", "p/u uLSIF", "--datasets", "cod-rna", "banana", "--quiet")
    run("robustness", *arguments, folder="whole")
    out = shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    for path in (out / "sets").glob("banana-*"):
        path.unlink()
    seen = []
    study = replace(
        robustness.STUDY,
        run=lambda dataset, trial, options: (
            seen.append((trial, dataset)) or robustness.run(dataset, trial, options)
        ),
    )
    monkeypatch.setitem(STUDIES, "robustness", study)
    run("robustness", *arguments, folder="stopped")
    assert seen == [(0, "banana"), (1, "banana")]
    for name in ("trials.csv", "summary.csv", "table.md"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@FEW
def test_a_folder_of_another_study_or_prior_is_refused(run, tmp_path, capsys):
    run("class_prior", "--quiet", "--trials", "1", folder="out")
    out = ["--out", str(tmp_path / "out"), "--datasets", "banana"]
    protocol = ["--protocol", str(tmp_path / "protocol.json")]
    for name, options, message in (
        ("robustness", ["--test-prior", "0.3"], 'is "class_prior", not "robustness"'),
        ("class_prior", ["--seed", "1"], "is 0, not 1"),
        ("class_prior", ["--fresh", "--seed", "-1"], "seed must be an integer >= 0"),
    ):
        assert study_main(STUDIES[name], [*out, *protocol, *options]) == 2
        assert message in capsys.readouterr().err
    assert (tmp_path / "out" / "summary.csv").exists()


@pytest.mark.parametrize(
    ("name", "option"),
    [("asymmetric", "--test-prior"), ("class_prior", "--prior"), ("class_prior", "--methods")],
)
def test_a_study_has_no_option_that_it_would_ignore(name, option, capsys):
    assert study_main(STUDIES[name], [option, "0.4"]) == 2
    assert f"unrecognized arguments: {option}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--datasets", "iris"], "dataset must be a file or one of"),
        (["--prior", "1.5"], "prior must lie strictly between 0 and 1"),
        (["--protocol", "absent.json"], "protocol absent.json"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments, message, tmp_path, capsys):
    out = ["--out", str(tmp_path / "never")]
    assert study_main(robustness.STUDY, [*out, "--datasets", "banana", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not (tmp_path / "never").exists()


def test_names_are_neither_markup_nor_formulas_in_a_study():
    point = {"prior": 0.3, "method": "KM2", "n": 2, "mean": 0.3, "se": 0.1}
    summary = pd.DataFrame([{"dataset": "$\\no|<b>$", **point}])
    png(study_figure(STUDIES["class_prior"], summary))  # a wrong formula would be an error
    row = study_table(STUDIES["class_prior"], summary).splitlines()[-1]
    assert row.count("|") == 4
    assert not set("$<>") & set(row)


def test_a_study_runs_on_what_can_be_had(tmp_path, capsys, monkeypatch):
    folder, out = tmp_path / "data", tmp_path / "out"
    folder.mkdir()
    stand_ins.write_banana(folder)
    for name, value in {"DATA": "", "CACHE": str(folder), "FETCH": "off"}.items():
        monkeypatch.setenv(f"PU_SHIFT_{name}", value)
    runner.open_dataset.cache_clear()
    arguments = ["--methods", "p/u uLSIF", "--trials", "1", "--jobs", "1", "--out", str(out)]
    assert study_main(robustness.STUDY, arguments) == 0
    printed = capsys.readouterr()
    assert printed.out.count("susy is not here; download ") == 1
    assert printed.err.count("susy is not here; download ") == 1
    covered = "19 of 114 points; ijcnn1, MNIST, susy, cod-rna, magic were not available"
    assert covered in (out / "table.md").read_text(encoding="utf-8")
    assert study_main(robustness.STUDY, [*arguments, "--datasets", "susy", "--quiet"]) == 2
    assert "error: susy is not here" in capsys.readouterr().err
    runner.open_dataset.cache_clear()
