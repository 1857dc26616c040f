import numpy as np
import pandas as pd
import pytest

from pu_shift.experiment import studies
from pu_shift.experiment.studies import ALPHAS, GIVEN_PRIORS, STUDIES, study_figure, study_main

SMALL = {"n_p": 60, "n_u": 200, "n_steps": 60, "n_centers": 20, "ker_centers": 20}


@pytest.fixture
def run(tmp_path, monkeypatch):
    protocol = tmp_path / "protocol.json"
    protocol.write_text(pd.Series(SMALL).to_json())

    def run_one(name, *arguments):
        out = tmp_path / name
        common = ["--datasets", "banana", "--trials", "2", "--jobs", "1", "--out", str(out)]
        assert study_main(name, [*common, "--protocol", str(protocol), *arguments]) == 0
        names = sorted(path.name for path in out.iterdir())
        assert names == ["figure.png", "run.json", "summary.csv", "table.md", "trials.csv"]
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


def test_estimated_prior_reports_the_estimate_and_what_it_costs(run):
    trials = run("estimated_prior", "--methods", "p/u uLSIF", "--quiet", "--trials", "1")
    assert set(trials["prior"]) == {0.3, 0.5, 0.7}
    estimates = trials[trials["method"] == "estimate"]["value"]
    assert estimates.between(0, 100).all()
    assert (trials[trials["method"] != "estimate"]["value"].abs() < 50).all()


def test_class_prior_runs_every_estimator(run):
    trials = run("class_prior", "--quiet", "--trials", "1")
    assert set(trials["method"]) == set(studies.PRIOR_ESTIMATORS)
    assert trials["value"].between(0, 1).all()


def test_trials_do_not_depend_on_the_number_of_workers(run):
    one = run("robustness", "--methods", "u/p uLSIF", "--quiet")
    two = run("robustness", "--methods", "u/p uLSIF", "--quiet", "--jobs", "2")
    pd.testing.assert_frame_equal(one, two)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--datasets", "iris"], "dataset must be a file or one of"),
        (["--methods", "SVM"], "method must be one of"),
        (["--trials", "0"], "trials must be an integer >= 1"),
        (["--prior", "1.5"], "prior must lie strictly between 0 and 1"),
        (["--test-prior", "0"], "test_prior must lie strictly between 0 and 1"),
        (["--jobs", "0"], "jobs must be an integer >= 1"),
        (["--protocol", "absent.json"], "protocol absent.json"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments, message, tmp_path, capsys):
    out = ["--out", str(tmp_path / "never")]
    assert study_main("robustness", [*out, "--datasets", "banana", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not (tmp_path / "never").exists()


def test_every_dataset_has_a_panel_and_every_method_a_curve():
    points = [
        {"dataset": d, "alpha": a, "method": m, "n": 1, "mean": 50.0, "se": np.nan}
        for d in ("banana", "magic", "susy", "mine")
        for a in (0.1, 0.9)
        for m in ("Sq-Lin", "DH-Lin")
    ]
    figure = study_figure(STUDIES["asymmetric"], pd.DataFrame(points))
    assert [axes.get_title() for axes in figure.axes] == ["banana", "magic", "susy", "mine"]
    # Two curves and the line of the constant classifier.
    assert all(len(axes.lines) == 3 for axes in figure.axes)
