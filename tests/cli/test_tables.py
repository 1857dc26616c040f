"""Tables as people have them: what a command makes of each, and what it says."""

import errno
import os
import re

import numpy as np
import pandas as pd
import pytest

from pu_shift.cli import main
from tests.mixtures import mixture, pu_samples

FIT = "fit data.csv --label y --prior 0.3 --basis gaussian --out model.npz"


def frame(**columns):
    """Return a table of 60 positives and 140 unlabelled rows, with more columns."""
    X_p, X_u = pu_samples(60, 140, 0.3, gap=3.0, d=2)
    table = pd.DataFrame(np.concatenate([X_p, X_u]), columns=["a", "b"])
    return table.assign(**columns, y=np.repeat([1, 0], [60, 140]))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder; return its status, output and messages."""
    monkeypatch.chdir(tmp_path)

    def command(text, **environment):
        capsys.readouterr()
        status = main(text.split(" ") if text else [])
        return status, *capsys.readouterr()

    return command


@pytest.mark.parametrize("drop", ["--drop id,date", "--drop id --drop date", "--drop id,date,a"])
def test_columns_are_dropped_by_a_list(run, drop):
    frame(id=range(200), date="2024-05-01").to_csv("data.csv", index=False)
    status, output, _ = run(f"{FIT} {drop}")
    assert status == 0
    assert f"of {1 if drop.endswith('a') else 2} features" in output


def test_a_name_with_a_comma_is_one_column(run):
    frame(**{"id,date": "x"}).to_csv("data.csv", index=False)
    assert run(f"{FIT} --drop id,date")[0] == 0
    status, _, error = run(f"{FIT} --drop id,data")
    assert status == 2
    assert error == (
        "error: --drop: data.csv has no column 'id', its columns are ['a', 'b', 'id,date', 'y']\n"
    )


@pytest.mark.parametrize("share", ["30%", "0.3"])
def test_a_share_may_be_in_percent(run, share):
    frame().to_csv("data.csv", index=False)
    command = FIT.replace("0.3", share)
    assert (
        "prior 0.300 (given), test prior 0.600, alpha 0.2"
        in (run(f"{command} --test-prior 60% --alpha 20%")[1])
    )
    frame().to_csv("new.csv", index=False)
    assert run("predict model.npz new.csv --test-prior 70% --alpha 20%") == (
        run("predict model.npz new.csv --test-prior 0.7 --alpha 0.2")
    )


@pytest.mark.parametrize("option", ["--prior", "--test-prior", "--alpha"])
def test_a_share_that_is_no_number_is_said_in_plain_words(run, option):
    message = f"argument {option}: must be a number such as 0.3 or 30%, got '0,3'"
    assert message in run(f"fit data.csv --label y --out model.npz {option} 0,3")[2]
    if option != "--prior":
        assert message in run(f"predict model.npz new.csv {option} 0,3")[2]


def test_the_bare_command_shows_its_help(run):
    status, output, error = run("")
    assert (status, error) == (2, "")
    assert output == run("--help")[1]


def test_all_columns_that_are_there_twice_are_named(run):
    with open("data.csv", "w", encoding="utf-8") as file:
        file.write("a,b,a,long name,b,long name,y\n1,2,3,4,5,6,0\n")
    assert run(FIT)[2] == (
        "error: data: data.csv has more than one column named 'a', 'b', 'long name'\n"
    )


def test_a_full_disk_names_the_file(run, monkeypatch):
    frame().to_csv("data.csv", index=False)

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert run(FIT)[0] == 0
    monkeypatch.setattr(os, "fsync", full)
    for command in (FIT, "predict model.npz data.csv --out model.csv"):
        status, _, error = run(command)
        assert status == 2
        assert re.fullmatch(r"error: .*No space left on device: 'model\.(npz|csv)'\n", error)


@pytest.mark.parametrize("packed", ["data.csv.zst", "data.csv"])
def test_a_file_may_be_packed_by_zstandard(run, tmp_path, packed):
    arrow = pytest.importorskip("pyarrow")
    content = frame().to_csv(index=False).encode()
    with arrow.CompressedOutputStream(str(tmp_path / packed), "zstd") as file:
        file.write(content)
    status, output, _ = run(FIT.replace("data.csv", packed))
    assert status == 0
    assert "60 positive and 140 unlabelled rows of 2 features" in output


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (1e307, r"data.csv has \S+e\+306 in row 1 of column 'b', whose square leaves the range"),
        (1e200, r"data.csv has \S+e\+\d+ in row 1 of column 'b', whose square leaves the range"),
        (1e-200, r"column 'b' has values up to \S+e-200, whose squares .*: multiply it by a power"),
        (1e-300, r"column 'b' has values up to \S+e-300, whose squares .*: multiply it by a power"),
    ],
)
@pytest.mark.parametrize("command", [FIT, "estimate-prior data.csv --label y"])
def test_a_scale_that_no_number_has_is_told_of_its_column(run, command, size, message):
    table = frame()
    table["b"] *= size / table["b"].abs().max()
    table.to_csv("data.csv", index=False)
    status, output, error = run(command)
    assert (status, output) == (2, "")
    assert re.fullmatch(rf"error: data: {message}.*\n", error)
    assert "--" not in error


def test_new_rows_are_those_of_the_mixture(run):
    """Predictions of a file that was read from other columns, in another order."""
    frame().to_csv("data.csv", index=False)
    X, y = mixture(300, 0.3, np.random.default_rng(1), gap=3.0, d=2)
    pd.DataFrame({"b": X[:, 1], "id": range(300), "a": X[:, 0]}).to_csv("new.csv", index=False)
    assert run(FIT)[0] == 0
    assert run("predict model.npz new.csv --out out.csv")[0] == 0
    assert (pd.read_csv("out.csv")["label"] == y).mean() > 0.85
