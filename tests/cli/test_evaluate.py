import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from pu_shift import evaluate, load_model
from pu_shift.cli import main
from tests.mixtures import mixture, pu_samples
from tests.networks import needs_chainer


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    for name, seed in (("data", 0), ("new", 1)):
        X_p, X_u = pu_samples(150, 450, 0.3, seed=seed, d=2)
        data = pd.DataFrame(np.concatenate([X_p, X_u]) * [1.0, 1000.0], columns=["a", "b"])
        data["labelled"] = np.repeat([1, 0], [150, 450])
        data.to_csv(folder / f"{name}.csv", index=False)
        data[:150].to_csv(folder / f"{name}_p.csv", index=False)
        data[150:].to_csv(folder / f"{name}_u.csv", index=False)
        data.to_parquet(folder / f"{name}.parquet", index=False)
    X, y = mixture(300, 0.5, np.random.default_rng(2), d=2)
    checked = pd.DataFrame(X * [1.0, 1000.0], columns=["a", "b"]).assign(true=y)
    checked.to_csv(folder / "checked.csv", index=False)
    fit = ["fit", str(folder / "data.csv"), "--label", "labelled", "--prior", "0.3", "--out"]
    assert main([*fit, str(folder / "model.npz")]) == 0
    return folder


@pytest.fixture
def run(files, capsys, monkeypatch):
    monkeypatch.chdir(files)

    def call(text, status=0):
        assert main(["evaluate", *text.split()]) == status
        done = capsys.readouterr()
        return done.err if status else done.out

    return call


def test_without_data_it_is_what_evaluate_says(run):
    assert (
        run("model.npz --test-prior 70%")
        == f"{evaluate(load_model('model.npz'), test_prior=0.7)}\n"
    )


def test_rows_of_the_fit_are_recognised_however_they_come(run):
    own = run("model.npz --alpha 0.3")
    for data in (
        "data.csv --label labelled",
        "data_p.csv data_u.csv",
        "data.parquet --label labelled",
    ):
        assert run(f"model.npz {data} --alpha 0.3") == own
    assert run("model.npz new.csv --label labelled --alpha 0.3") != own


def test_new_rows_are_judged_as_in_python(run, files):
    text = run("model.npz new.csv --label labelled --test-prior 0.6 --prior 0.2,0.4 --seed 3")
    data = pd.read_csv(files / "new.csv").to_numpy()
    pipeline = load_model(files / "model.npz")
    P, U = (pd.DataFrame(data[data[:, 2] == k, :2], columns=["a", "b"]) for k in (1, 0))
    expected = evaluate(pipeline, P, U, test_prior=0.6, prior=(0.2, 0.4), random_state=3)
    head, *table = str(expected).splitlines()
    assert text.splitlines()[0] == head
    assert text.splitlines()[1].startswith("new.csv: 150 positive and 450 unlabelled rows")
    assert text.splitlines()[2:] == table[1:]


def test_true_classes_a_csv_and_a_picture(run, files):
    text = run("model.npz checked.csv --truth true --out metrics.csv --plot curves.png")
    assert "150 positive and 150 negative rows" in text
    table = pd.read_csv(files / "metrics.csv", index_col="metric")
    assert table.loc["error_rate", "value"] < 0.3
    assert imread(files / "curves.png").std() > 0.05
    with io.StringIO(text) as lines:
        assert all(name in lines.getvalue() for name in table.index)


def test_fit_ends_with_what_to_expect(files, capsys):
    arguments = ["fit", str(files / "data.csv"), "--label", "labelled", "--basis", "linear"]
    assert main([*arguments, "--prior", "0.3", "--out", str(files / "linear.npz")]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    found = evaluate(load_model(files / "linear.npz"))
    assert len(lines) == 4
    assert lines[1].strip() == found.in_words("recall")
    assert lines[3].strip() == found.in_words("precision")


@needs_chainer
@pytest.mark.filterwarnings("default")
def test_a_risk_minimiser_needs_rows_that_it_has_not_seen(run, files, capsys):
    fit = f"fit {files}/data.csv --label labelled --prior 0.3 --method risk --basis linear --out "
    assert main([*fit.split(), str(files / "risk.npz")]) == 0
    assert "evaluate" in capsys.readouterr().out
    assert "X_p and X_u must be given" in run("risk.npz", 2)
    assert (
        main(["evaluate", str(files / "risk.npz"), str(files / "data.csv"), "--label", "labelled"])
        == 0
    )
    assert "the figures are too good" in capsys.readouterr().err
    assert "new.csv: 150 positive" in run("risk.npz new.csv --label labelled")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model.npz new.csv", "data must be one file with --label or --truth, two files"),
        ("model.npz --label labelled", "data must be one file with --label or --truth, two"),
        ("model.npz new.csv --label b", "--label: column 'b' must be 1"),
        ("model.npz new.csv --label label", "column 'label'"),
        (
            "model.npz data_p.csv --label labelled",
            "column 'labelled' must be 1",
        ),
        ("model.npz new.csv --label labelled --positive yes", "none is 'yes'"),
        ("model.npz checked.csv --truth a", "--truth: column 'a' must be 1"),
        ("model.npz --test-prior 1.5", "--test-prior must lie strictly between 0 and 1"),
        ("model.npz --prior 0.4,0.2", "--prior must"),
        ("model.npz new.csv --label labelled --out new.csv", "--out must be another file"),
    ],
)
def test_bad_input_is_told_in_one_line(run, text, message):
    error = run(text, 2)
    assert message in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
