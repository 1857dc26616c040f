"""Parquet in and out: the commands do what they do with CSV, and say what is wrong."""

import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from pu_shift import DensityRatioClassifier, bigdata
from pu_shift.cli import main
from pu_shift.files import parquet
from pu_shift.files.models import load_model
from tests import children
from tests.mixtures import mixture, pu_samples
from tests.networks import needs_chainer
from tests.paper.engine import Cluster

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
FIT = "--label labelled --drop id --prior 0.3"
# Of Dask's own calls of a recent pandas.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables as CSV, as Parquet of several row groups, and partitioned; a model of them."""
    folder = tmp_path_factory.mktemp("parquet")
    X = np.concatenate(pu_samples(200, 800, 0.3, gap=3.0, d=3)).round(6)
    data = pd.DataFrame(X, columns=["a", "b", "c"])
    data["labelled"] = np.repeat([1, 0], [200, 800])
    data["id"] = np.arange(1000)
    # P and U lie in every row group.
    data = data.sample(frac=1.0, random_state=0, ignore_index=True)
    data.to_csv(folder / "data.csv", index=False)
    pq.write_table(pa.table(dict(data.items())), folder / "data.parquet", row_group_size=300)
    data["month"] = np.arange(1000) // 250
    pq.write_to_dataset(pa.table(dict(data.items())), folder / "months", partition_cols=["month"])
    words = data.drop(columns="month").astype({"b": object})
    words["b"] = np.where(data["b"] > 0, "Kyoto", "Nara")
    words.loc[::7, "b"] = None
    words.loc[::5, "c"] = np.nan
    words.to_csv(folder / "words.csv", index=False)
    pq.write_table(pa.table(dict(words.items())), folder / "words.parquet", row_group_size=300)
    positive = data.pop("labelled") == 1
    for name, rows in (("p", data[positive]), ("u", data[~positive])):
        table = rows[["a", "b", "c"]].reset_index(drop=True)
        pq.write_table(pa.table(dict(table.items())), folder / f"{name}.parquet")
        table.to_csv(folder / f"{name}.csv", index=False)
    new = pd.DataFrame(
        mixture(400, 0.6, np.random.default_rng(1), gap=3.0, d=3)[0], columns=["a", "b", "c"]
    )
    new["id"] = pd.date_range("2026-01-01", periods=400)
    new["who"] = [None if k % 9 == 0 else f"case {k}" for k in range(400)]
    pq.write_table(pa.table(dict(new.items())), folder / "new.parquet", row_group_size=150)
    new.to_csv(folder / "new.csv", index=False)
    assert (
        main(["fit", str(folder / "data.parquet"), *FIT.split(), "--out", str(folder / "m.npz")])
        == 0
    )
    fit = ["fit", str(folder / "data.parquet"), *FIT.split(), "--no-prepare", "--basis", "gaussian"]
    assert main([*fit, "--out", str(folder / "strict.npz")]) == 0
    return folder


@pytest.fixture
def run(folder, capsys, monkeypatch):
    """Run a command in the folder; return status, what it printed, and its errors."""
    # Several partitions, as large files have.
    monkeypatch.setattr(parquet, "PARTITION_SIZE", 5000)

    def run(command):
        monkeypatch.chdir(folder)
        status = main(shlex.split(command))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.mark.parametrize(
    ("csv", "parquet", "options"),
    [
        ("data.csv", "data.parquet", FIT),
        ("data.csv", "months", f"{FIT} --drop month --basis gaussian"),
        pytest.param("data.csv", "data.parquet", f"{FIT} --method risk", marks=needs_chainer),
        ("data.csv", "data.parquet", "--label labelled --drop id"),
        ("p.csv u.csv", "p.parquet u.parquet", "--prior 0.3 --no-scale"),
        ("words.csv", "words.parquet", FIT),
    ],
)
def test_a_fit_to_parquet_is_that_to_csv(run, tmp_path, csv, parquet, options):
    options = options if "months" in parquet else options.replace("--drop month", "")
    said = []
    for name, data in (("csv", csv), ("parquet", parquet)):
        wanted = options if name == "parquet" else options.replace("--drop month ", "")
        status, output, errors = run(f"fit {data} {wanted} --out {tmp_path}/{name}.npz")
        assert status == 0
        said.append((output.split(":")[1], errors))
    assert said[0] == said[1]
    rows = np.random.default_rng(2).normal(size=(50, 3))
    if "words" in csv:
        rows = rows.astype(object)
        rows[:, 1] = ["Nara", "Kyoto"] * 25
    models = [load_model(tmp_path / f"{name}.npz") for name in ("csv", "parquet")]
    for model in models:
        vars(getattr(model, "steps", [(0, model)])[0][1]).pop("feature_names_in_")
    found = [model.predict_proba(rows) for model in models]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-8)


def test_of_many_rows_a_sample_is_fitted(run, tmp_path, monkeypatch):
    monkeypatch.setattr(bigdata, "MAX_SAMPLE_ROWS", 150)
    said = run(f"fit data.parquet {FIT} --out {tmp_path}/model.npz")[1]
    assert "fitted to 150 positive and 150 unlabelled rows" in said


def test_estimates_are_those_of_csv(run):
    options = "--label labelled --drop id"
    expected = run(f"estimate-prior data.csv {options}")
    assert run(f"estimate-prior data.parquet {options}") == expected
    expected = run("predict m.npz new.csv --test-prior estimate")
    assert run("predict m.npz new.parquet --test-prior estimate") == expected
    assert "test prior 0.6" in expected[2]


def test_predictions_carry_columns_in_their_types(run, tmp_path):
    keep = "--keep id --keep who --keep a"
    assert run(f"predict m.npz new.parquet {keep} --out {tmp_path}/out.parquet")[0] == 0
    assert run(f"predict m.npz new.parquet {keep} --out {tmp_path}/out.csv")[0] == 0
    assert run(f"predict m.npz new.csv --keep id --out {tmp_path}/text.parquet")[0] == 0
    found, new = pq.read_table(tmp_path / "out.parquet"), pq.read_table("new.parquet")
    for name in ("id", "who", "a"):
        assert found.column(name).to_pylist() == new.column(name).to_pylist()
    assert found.schema.field("id").type == new.schema.field("id").type
    assert [str(field.type) for field in found.schema][-2:] == ["int8", "double"]
    text = pd.read_csv(tmp_path / "out.csv")
    assert text["label"].tolist() == found["label"].to_pylist()
    assert text["who"].isna().sum() == 45
    assert pq.read_table(tmp_path / "text.parquet")["label"].equals(found["label"])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_ids_stay_as_they_are(run, folder, tmp_path):
    """Long numbers with a missing one, and texts that look like numbers, also as features."""
    long = [4000123412340000001, None, 4000123412340000003]
    write(folder / "ids.parquet", a=[1.0, 2.0, 3.0], b=[1, 2, 3], c=[0.0] * 3,
          id=pa.array(long, pa.int64()), code=["007", "08", None])  # fmt: skip
    keep = "--keep id --keep code --keep b"
    assert run(f"predict m.npz ids.parquet {keep} --out {tmp_path}/o.parquet")[0] == 0
    found = pq.read_table(tmp_path / "o.parquet")
    assert found["id"].to_pylist() == long
    assert found["code"].to_pylist() == ["007", "08", None]
    assert run(f"predict m.npz ids.parquet {keep} --out {tmp_path}/o.csv")[0] == 0
    lines = (tmp_path / "o.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[:3] for line in lines[1:]] == [
        ["4000123412340000001", "007", "1"],
        ["", "08", "2"],
        ["4000123412340000003", "", "3"],
    ]


def test_only_the_columns_of_the_model_are_read(run, tmp_path, monkeypatch):
    asked, read = [], parquet.prepared

    def record(preparation, names, frame, first=0):
        asked.append(list(frame.columns))
        return read(preparation, names, frame, first)

    monkeypatch.setattr(parquet, "prepared", record)
    assert run(f"predict m.npz new.parquet --keep id --out {tmp_path}/o.csv")[0] == 0
    assert asked
    assert all(columns == ["a", "b", "c", "id"] for columns in asked)


def test_a_prediction_evaluates_each_row_once(run, tmp_path, monkeypatch):
    rows, predict = [], DensityRatioClassifier.predict_ratio

    def count(self, X):
        rows.append(len(X))
        return predict(self, X)

    monkeypatch.setattr(DensityRatioClassifier, "predict_ratio", count)
    assert run(f"predict m.npz new.parquet --out {tmp_path}/o.csv")[0] == 0
    assert sum(rows) == 400


def test_an_explorer_page_of_parquet(run, tmp_path):
    status, output, _ = run(f"explore m.npz new.parquet --keep who --out {tmp_path}/page.html")
    assert (status, "400 cases" in output) == (0, True)
    assert "case 1" in (tmp_path / "page.html").read_text(encoding="utf-8")


def write(path, **columns):
    pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("predict m.npz other.parquet", "data: other.parquet has no column 'c', its columns are"),
        ("predict strict.npz gap.parquet", "finite number in row 2 of column 'b', found nan"),
        ("predict m.npz words.parquet", "needs a finite number in row 2 of column 'b', found"),
        ("predict m.npz mixed", "mixed/2.parquet has no column 'c', its columns are"),
        ("predict m.npz kinds", "kinds/2.parquet has string in column 'c', other files have "),
        ("predict m.npz torn.parquet", "data: torn.parquet cannot be read: "),
        ("predict m.npz none.parquet", "no such file: 'none.parquet'"),
        ("predict m.npz new.csv --cluster tcp://x:1 --out o", "cluster needs data in Parquet"),
        ("predict m.npz new.parquet --cluster tcp://x:1", "cluster needs --out, a folder to write"),
        (
            "predict m.npz new.parquet --cluster tcp://x:1 --out months",
            "out: with --cluster it must be a new folder, months exists",
        ),
        ("fit data.parquet --label x --out o.npz", "label: data.parquet has no column 'x'"),
        ("fit data.parquet --label labelled --drop x --out o.npz", "drop: data.parquet has no col"),
        ("fit words.parquet --label labelled --no-prepare --out o.npz", "column b: category, 3 "),
        ("fit new.parquet --label a --drop id --drop who --out o.npz", "label: column 'a' must be"),
        ("fit marks --label m --out o.npz", "unlabelled rows, found 1, 0, 7; --posit"),
        ("fit p.parquet u.csv --out o.npz", "data must be two files of one kind, CSV or Parquet"),
        ("fit p.parquet new.parquet --out o.npz", "data: p.parquet has no column 'id'"),
        ("fit gap.parquet --label a --no-prepare --out o.npz", "column b: number, 50 % missing"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(folder, run, command, message):
    write(folder / "other.parquet", a=[1.0], b=[2.0])
    (folder / "marks").mkdir(exist_ok=True)
    write(folder / "marks" / "1.parquet", a=[1.0, 2.0], m=[1, 0])
    write(folder / "marks" / "2.parquet", a=[1.0, 2.0, 3.0], m=[0, 0, 7])
    write(folder / "gap.parquet", a=[1.0, 0.0], b=[2.0, None], c=[1.0, 2.0])
    for name, last in (("mixed", {}), ("kinds", {"c": ["x"]})):
        (folder / name).mkdir(exist_ok=True)
        write(folder / name / "1.parquet", a=[1.0], b=[2.0], c=[3.0])
        write(folder / name / "2.parquet", a=[1.0], b=[2.0], **last)
    (folder / "torn.parquet").write_bytes((folder / "new.parquet").read_bytes()[:-100])
    status, output, errors = run(command)
    assert (status, output) == (2, "")
    assert errors.startswith("error: ")
    assert message in errors


def test_without_pyarrow_parquet_is_refused(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    status, _, errors = run("predict m.npz new.parquet")
    assert (status, errors) == (
        2,
        "error: data: Parquet needs dask and pyarrow: pip install '.[parquet]' in a clone\n",
    )


def test_a_cluster_fits_and_predicts_the_same(folder, run, tmp_path):
    options = f"{FIT} --basis gaussian"
    assert run(f"fit data.parquet {options} --out {tmp_path}/here.npz")[0] == 0
    rest = f"new.parquet --test-prior estimate --keep id --out {tmp_path}/here.parquet"
    here = run(f"predict {tmp_path}/here.npz {rest}")
    with Cluster(tmp_path, workers=2) as cluster:
        there = f"--cluster {cluster.address}"
        status, _, errors = run(f"fit data.parquet {options} {there} --out {tmp_path}/there.npz")
        assert (status, errors) == (0, "")
        predict = f"predict {tmp_path}/there.npz new.parquet --keep id {there}"
        found = run(f"{predict} --test-prior estimate --out {tmp_path}/there.parquet")
        assert [found[0], found[2]] == [here[0], here[2]]
        status, output, _ = run(f"estimate-prior data.parquet --label labelled --drop id {there}")
        assert (status, output) == run("estimate-prior data.parquet --label labelled --drop id")[:2]
        # A row that is wrong: one line, and nothing half-written.
        (folder / "late").mkdir(exist_ok=True)
        for number, last in enumerate((1.0, 2.0, np.nan)):
            write(folder / "late" / f"{number}.parquet", a=[1.0], b=[2.0], c=[last], id=[1])
        status, _, errors = run(f"predict strict.npz late {there} --out {tmp_path}/late")
        assert (status, "2.parquet needs a finite number in row 1 of column 'c'" in errors) == (
            2,
            True,
        )
    files = sorted(path.name for path in (tmp_path / "there.parquet").iterdir())
    assert files == [f"part-0000{k}.parquet" for k in range(3)]
    expected, result = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("here", "there"))
    assert (result[["id", "label"]] == expected[["id", "label"]]).all(axis=None)
    np.testing.assert_allclose(result["probability"], expected["probability"], rtol=1e-6)
    assert not (tmp_path / "late").exists()
    assert list(tmp_path.glob(".*.tmp")) == []


def test_an_interrupt_leaves_nothing_half_written(folder, tmp_path):
    table = pa.concat_tables([pq.read_table(folder / "new.parquet")] * 2000)
    pq.write_table(table, tmp_path / "long.parquet", row_group_size=20_000)
    out = tmp_path / "out.parquet"
    process = children.start(
        *("-m", "pu_shift", "predict", folder / "m.npz", tmp_path / "long.parquet", "--out", out),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".*.tmp")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.communicate()[1] == "interrupted\n"
    # Python ends by the signal itself if it came within `exec`; shells call both 130.
    assert process.returncode in (130, -signal.SIGINT)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.parquet"]
