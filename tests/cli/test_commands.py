"""Options of the commands beyond a first session, and the words they speak in."""

import gzip
import io
import json
import re
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift import DensityRatioClassifier, explorer
from pu_shift.cli import common, main
from pu_shift.files import models
from pu_shift.files.models import load_model
from pu_shift.files.preparation import TablePreparation
from pu_shift.priors import Condition
from tests.mixtures import mixture, pu_samples
from tests.networks import HAS_CHAINER, needs_chainer

IDS = ["007", 'O"Neil, Bob', "Zoë <b>"]


def table(X, rng):
    """Make a table as people have it: names of cases, a word, a gap here and there."""
    frame = pd.DataFrame(X, columns=["size", "weight"])
    frame.insert(0, "id", [IDS[i] if i < 3 else f"case {i}" for i in range(len(X))])
    # It tells something about the class, which lies along the first axis.
    frame["town"] = np.where(X[:, 0] + rng.normal(size=len(X)) > 0, "Kyoto", "Nara")
    frame.loc[rng.random(len(X)) < 0.1, "weight"] = np.nan
    return frame


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    rng = np.random.default_rng(3)
    X_p, X_u = pu_samples(120, 360, 0.3, gap=3.0, d=2)
    data = table(np.concatenate([X_p, X_u]), rng)
    data["labelled"] = np.repeat([1, 0], [120, 360])
    data.to_csv(folder / "data.csv", index=False)
    numbers = data.drop(columns=["id", "town"]).fillna(0.0)
    numbers.to_csv(folder / "numbers.csv", index=False)
    data[:120].drop(columns="labelled").to_csv(folder / "p.csv", index=False, sep=";")
    data[120:].drop(columns=["labelled", "id"]).to_csv(folder / "u.csv", index=False)
    new = table(mixture(200, 0.5, rng, gap=3.0, d=2)[0], rng)
    new.loc[5, "town"] = "Osaka"
    new.to_csv(folder / "new.csv", index=False)
    new.fillna(0.0).to_csv(folder / "filled.csv", index=False)
    np.save(folder / "new.npy", new[["size", "weight"]].fillna(0.0).to_numpy())
    for name in ("data.csv", "new.csv"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    arguments = ["--label", "labelled", "--prior", "0.3", "--test-prior", "0.4"]
    fit = ["fit", str(folder / "data.csv"), *arguments, "--drop", "id"]
    assert main([*fit, "--out", str(folder / "model.npz")]) == 0
    fit = ["fit", str(folder / "numbers.csv"), *arguments, "--no-prepare"]
    assert main([*fit, "--out", str(folder / "strict.npz")]) == 0
    for method in ("ratio", "risk") if HAS_CHAINER else ("ratio",):
        fit = ["fit", str(folder / "numbers.csv"), *arguments, "--method", method]
        assert main([*fit, "--out", str(folder / f"{method}.npz")]) == 0
    return folder


@pytest.fixture
def run(files, monkeypatch, capsys):
    """Run a command in the folder of the files; return its status, output and messages."""
    monkeypatch.chdir(files)

    def command(text):
        capsys.readouterr()
        status = main(text.split())
        return status, *capsys.readouterr()

    return command


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("options", ["--label labelled --drop id", "--label labelled"])
def test_fit_and_estimate_prior_agree(run, tmp_path, seed, options):
    name = "data.csv" if "drop" in options else "numbers.csv"
    _, estimate, _ = run(f"estimate-prior {name} {options} --seed {seed}")
    _, fitted, _ = run(f"fit {name} {options} --seed {seed} --out {tmp_path}/m.npz")
    prior, method = re.match(r"prior (0\.\d{3}), .* \((.*)\); ", estimate).groups()
    assert f"prior {prior} (estimated by {method})" in fitted
    classifier = load_model(tmp_path / "m.npz")[-1]
    assert f"{classifier.condition.prior:.3f}" == prior


def test_a_prepared_model_is_what_python_makes_of_the_table(files, run):
    data = pd.read_csv(files / "data.csv").drop(columns="id")
    labels = data.pop("labelled")
    estimator = make_pipeline(
        TablePreparation(),
        StandardScaler(),
        DensityRatioClassifier(prior=0.3, test_prior=0.4),
    ).fit(data, labels)
    new = pd.read_csv(files / "new.csv")
    status, output, _ = run("predict model.npz new.csv")
    assert status == 0
    found = pd.read_csv(io.StringIO(output))
    expected = estimator.predict_proba(new[data.columns])[:, 1]
    np.testing.assert_allclose(found["probability"], expected, rtol=1e-5, atol=1e-9)
    loaded = load_model(files / "model.npz")
    np.testing.assert_array_equal(
        loaded.predict(new[data.columns]) == 1, found["label"].to_numpy() == 1
    )


def test_packed_files_are_the_same_data(files, run, tmp_path):
    options = "--label labelled --prior 0.3 --test-prior 0.4 --drop id"
    assert run(f"fit data.csv.gz {options} --out {tmp_path}/m.npz")[0] == 0
    expected = run("predict model.npz new.csv")
    assert run(f"predict {tmp_path}/m.npz new.csv.gz") == expected
    assert expected[0] == 0


def test_two_files_are_prepared_together(files, run, tmp_path):
    options = "--prior 0.3 --test-prior 0.4 --drop id"
    status, output, _ = run(f"fit p.csv u.csv {options} --out {tmp_path}/m.npz")
    assert status == 0
    assert "120 positive and 360 unlabelled rows of 3 features" in output
    assert run(f"predict {tmp_path}/m.npz new.csv") == run("predict model.npz new.csv")


@pytest.mark.parametrize("model", ["model", "ratio"])
def test_kept_columns_join_the_rows(files, run, model):
    name = "new.csv" if model == "model" else "filled.csv"
    _, plain, _ = run(f"predict {model}.npz {name}")
    status, output, _ = run(f"predict {model}.npz {name} --keep id --keep town")
    assert status == 0
    found = pd.read_csv(io.StringIO(output), dtype={"id": str})
    new = pd.read_csv(files / name, dtype={"id": str})
    assert list(found) == ["id", "town", "label", "probability"]
    assert found["id"].tolist() == new["id"].tolist()
    assert found["town"].tolist() == new["town"].tolist()
    pd.testing.assert_frame_equal(
        found[["label", "probability"]], pd.read_csv(io.StringIO(plain)), check_like=False
    )


def test_a_feature_that_is_kept_stands_as_in_the_file(files, run, tmp_path):
    ids = ["4000123412340000001", "007", "1e3", " 5.50 "]
    rows = "".join(f"{name},{name},2\n" for name in ids)
    (tmp_path / "ids.csv").write_text(f"name,size,weight\n{rows}")
    status, output, _ = run(f"predict ratio.npz {tmp_path}/ids.csv --keep size --keep name")
    assert status == 0
    kept = [line.split(",")[:2] for line in output.splitlines()[1:]]
    assert kept == [[name.strip(), name.strip()] for name in ids]


def test_a_prediction_loads_the_model_once_and_evaluates_the_ratio_once(run, monkeypatch):
    calls = []

    def counted(owner, name):
        function = getattr(owner, name)

        def call(*arguments, **options):
            calls.append(name)
            return function(*arguments, **options)

        monkeypatch.setattr(owner, name, call)

    counted(models, "load_model")
    counted(DensityRatioClassifier, "predict_ratio")
    assert run("predict ratio.npz filled.csv")[0] == 0
    assert calls == ["load_model", "predict_ratio"]
    calls.clear()
    # The rows are read twice: their prior is known only after the last of them.
    assert run("predict ratio.npz filled.csv --test-prior estimate")[0] == 0
    assert calls == ["load_model", "predict_ratio", "predict_ratio"]


def content(path):
    page = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', page)[1])


def test_the_page_has_what_predict_decides_by(files, run, tmp_path):
    out = tmp_path / "page.html"
    costs = "--false-alarm 20 --miss 500 --unit EUR"
    status, output, _ = run(
        f"explore model.npz new.csv --keep id --test-prior 0.2 {costs} --out {out}"
    )
    assert status == 0
    assert output == f"{out}: 200 cases; open it in a browser\n"
    data = content(out)
    assert (data["prior"], data["testPrior"]) == (0.3, 0.2)
    assert (data["falseAlarm"], data["miss"], data["unit"]) == (20.0, 500.0, "EUR")
    ids = pd.read_csv(files / "new.csv", dtype=str)["id"].tolist()
    assert data["keep"] == [{"name": "id", "values": ids}]
    for test_prior, alpha in ((0.4, 0.5), (0.2, 20 / 520), (0.9, 0.7)):
        _, output, _ = run(f"predict model.npz new.csv --test-prior {test_prior} --alpha {alpha}")
        labels = pd.read_csv(io.StringIO(output))["label"]
        threshold = Condition(0.3, test_prior, alpha).alpha_unif
        np.testing.assert_array_equal(np.array(data["posteriors"]) > threshold, labels == 1)


def test_the_page_begins_with_the_model_s_condition(files, run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    model, data = files / "ratio.npz", files / "new.npy"
    assert main(["explore", str(model), str(data)]) == 0
    found = content(tmp_path / "explorer.html")
    assert (found["testPrior"], found["falseAlarm"], found["miss"]) == (0.4, 1.0, 1.0)
    assert len(found["posteriors"]) == 200
    assert found["keep"] == []


def test_too_many_cases_for_a_page_are_refused(files, run, monkeypatch, tmp_path):
    monkeypatch.setattr(explorer, "MAX_CASES", 199)
    status, _, message = run(f"explore model.npz new.csv --out {tmp_path}/page.html")
    assert status == 2
    assert "error: data: new.csv has more than 199 cases, too many for a page" in message
    assert list(tmp_path.iterdir()) == []


FIT = "fit data.csv --label labelled --out never.npz"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (FIT, "data: column 'id' has 480 different categories, more than 50: a name or number of"),
        (f"{FIT} --drop id,weight --no-prepare", "column town: category, 2 values, which --no-pre"),
        (f"{FIT} --drop ID", "drop: data.csv has no column 'ID', its columns are ['id', 'size', "),
        (f"{FIT} --drop labelled", "error: --drop: data.csv needs its label"),
        ("fit bars.csv --label y --out never.npz", "must be separated by commas, semicolons or"),
        (
            "fit yes.csv --label y --out never.npz",
            "unlabelled rows, found 'yes', 1; --positive names t",
        ),
        (
            "fit gap.csv --label y --out never.npz",
            "unlabelled rows, found 0, missing ones; --posit",
        ),
        ("fit void.csv --label y --out never.npz", "data: column 'a' has no values"),
        ("fit few.csv --label y --out never.npz", "data: the positive rows must"),
        ("fit few.csv --label y --prior 0.3 --out never.npz", "data must have at least 3 positive"),
        (f"{FIT} --drop id --prior 2", "error: --prior must lie strictly between 0 and"),
        (
            f"{FIT} --drop id --prior 0.3 --seed -1",
            "error: argument --seed: must be an integer >= 0, got",
        ),
        (
            "predict strict.npz new.csv",
            "of column 'weight', found nan",
        ),
        ("predict model.npz words.csv", "in row 2 of column 'size', found 'large'"),
        ("predict model.npz new.csv --keep name", "has no column 'name', its columns are ['id'"),
        (
            "fit data.csv --label labeled --out never.npz",
            "--label: data.csv has no column 'labeled', did",
        ),
        (
            "fit comma.csv --label y --out never.npz",
            "such as '2,5': --decimal , reads them",
        ),
        (
            "fit words.csv --label town --prior x --out never.npz",
            "error: argument --prior: must be a number such as 0.3 or 30%, got 'x'",
        ),
        (
            "fit data.csv --label labelled --drop id --seed -1 --out never.npz",
            "--seed: must be an integer >= 0, got '-1'",
        ),
        (
            "fit names.csv --label y --out never.npz",
            "is no feature, --drop it",
        ),
        ("predict gone.npz new.csv", "error: no such file: 'gone.npz'"),
        ("predict model.npz new.csv --keep id --keep id", "--keep must be distinct, got 'id' twi"),
        ("predict ratio.npz new.npy --keep id", "data: new.npy has no column 'id', it is a matr"),
        ("predict model.npz new.csv --keep label", "keep: the output has a column 'label' of its"),
        pytest.param(
            "predict risk.npz new.csv --alpha 0.2",
            "risk.npz is of --method risk and holds for te",
            marks=needs_chainer,
        ),
        ("predict model.npz short.csv --test-prior estimate", "error: data must have at least 30"),
        pytest.param(
            "predict risk.npz filled.csv --test-prior estimate",
            "is of --method risk and holds for",
            marks=needs_chainer,
        ),
        pytest.param(
            "explore risk.npz filled.csv",
            "risk.npz is of --method risk and holds for one prior",
            marks=needs_chainer,
        ),
        ("explore model.npz new.csv --keep row", "keep: the list has columns row, probability"),
        ("explore model.npz new.csv --miss 3", "--false-alarm and --miss must be given together"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_command_line(files, run, command, message):
    (files / "bars.csv").write_text("a|y\n1|0\n2|1\n")
    (files / "comma.csv").write_text('a,y\n"1,5",0\n"2,5",1\n')
    (files / "names.csv").write_text("a,y\n" + "".join(f"name {i},{i % 2}\n" for i in range(60)))
    (files / "yes.csv").write_text("a,y\n1,yes\n2,1\n")
    (files / "gap.csv").write_text("a,y\n1,\n2,0\n")
    (files / "void.csv").write_text("a,y\n,0\n,1\n")
    (files / "few.csv").write_text("a,y\n1,0\n2,0\n3,0\n4,1\n")
    (files / "short.csv").write_text("size,weight,town\n1,2,Nara\n")
    (files / "words.csv").write_text("size,weight,town\n1,2,Nara\nlarge,3,Nara\n")
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    status, output, error = run(command)
    assert (status, output) == (2, "")
    (error,) = (line for line in error.splitlines() if not line.startswith("column "))
    assert error.startswith("error: ")
    assert message in error
    assert not re.search(r"Classifier|Condition|X_|test_prior|random_state", error)
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


@needs_chainer
@pytest.mark.filterwarnings(
    "default::pu_shift.ratios.kernels.ScaleWarning",
    "default::pu_shift.estimators.FallbackWarning",
)
def test_a_warning_is_one_line(files, run, tmp_path):
    data = pd.read_csv(files / "numbers.csv")
    (data * [0.001, 0.001, 1]).to_csv(tmp_path / "scales.csv", index=False)
    options = "--label labelled --prior 0.3 --no-scale --method risk --basis linear"
    status, _, messages = run(f"fit {tmp_path}/scales.csv {options} --out {tmp_path}/m.npz")
    assert status == 0
    lines = messages.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("warning: no feature of X has a range of more than 0.0")
    assert lines[0].endswith("on the command line no --no-scale")


def test_what_takes_long_is_said_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        terminal = True

        def isatty(self):
            return self.terminal

    monkeypatch.setattr(common, "PATIENCE", 0.01)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with common.stage("fitting"):
        time.sleep(0.3)
    shown = sys.stderr.getvalue()
    assert shown.startswith("\rfitting … 0 s")
    assert shown.endswith("\r")
    assert not shown.split("\r")[-2].strip()
    Terminal.terminal = False
    monkeypatch.setattr(sys, "stderr", Terminal())
    with common.stage("fitting"):
        time.sleep(0.1)
    assert sys.stderr.getvalue() == ""
    Terminal.terminal = True
    monkeypatch.setattr(common, "PATIENCE", 60.0)
    with common.stage("fitting"):
        pass
    assert sys.stderr.getvalue() == ""


def test_help_of_explore_has_an_example(capsys):
    assert main(["explore", "--help"]) == 0
    text = capsys.readouterr().out
    assert "pu-shift explore model.npz cases.csv --keep id" in text
