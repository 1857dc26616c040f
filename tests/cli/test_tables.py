"""Tables as people have them: what a command makes of each, and what it says."""

import errno
import io
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


def read(path):
    return pd.read_csv(path)


@pytest.mark.parametrize(
    ("separator", "options", "line"),
    [
        (";", "", "b: number, decimal commas\n"),
        ("\t", "", "b: number, decimal commas\n"),
        (",", "--decimal ,", "a: number, decimal commas\nb: number, decimal commas\n"),
    ],
)
def test_decimal_commas_are_read_as_numbers(run, separator, options, line):
    table = frame().round(2)
    table.to_csv("data.csv", index=False)
    expected = run(FIT)[1]
    assert run("predict model.npz data.csv --out points.csv")[0] == 0
    table["b"] = table["b"].astype(str).str.replace(".", ",")
    if options:
        table["a"] = table["a"].astype(str).str.replace(".", ",")
    table.to_csv("data.csv", index=False, sep=separator)
    assert run(f"{FIT} {options}".strip()) == (0, expected, line)
    assert run("predict model.npz data.csv --out commas.csv")[0] == 0
    pd.testing.assert_frame_equal(read("commas.csv"), read("points.csv"))


def test_decimal_commas_between_commas_ask_for_the_option(run):
    frame(price="1,234").to_csv("data.csv", index=False)
    status, _, error = run(FIT)
    assert (status, error) == (
        2,
        "error: data: column 'price' has numbers such as '1,234': --decimal , reads them, or "
        "--drop it\n",
    )


def test_what_the_fit_has_not_seen_is_told(run):
    table = frame(month=["May", "June"] * 100, age=40.0, day="2024-05-01")
    table.to_csv("data.csv", index=False)
    assert run(FIT)[2] == (
        "month: category, 2 values\nday: date, days since 1970-01-01, 2024-05-01 to 2024-05-01\n"
    )
    assert run("predict model.npz data.csv --out out.csv")[2] == ""
    new = table.assign(month="July", day="2024-06-01")
    new.loc[:3, "age"] = np.nan
    new.to_csv("new.csv", index=False)
    told = (
        "warning: column 'month': 200 of 200 values unseen in the fit\n"
        "column 'age': 4 of 200 values missing, none in the fit\n"
        "warning: column 'day': 200 of 200 values outside the dates of the fit\n"
    )
    for command in ("predict model.npz new.csv --out out.csv", "explore model.npz new.csv"):
        assert run(command)[2] == told


# Here the day alone tells P from U.
@pytest.mark.filterwarnings("ignore::pu_shift.estimation.class_prior.PriorWarning")
@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d %H:%M"])
def test_dates_become_days(run, form):
    days = pd.date_range("2024-01-20", periods=200)
    frame(day=days.strftime(form)).to_csv("data.csv", index=False)
    status, output, told = run(FIT)
    assert (status, "of 3 features" in output) == (0, True)
    assert told.startswith("day: date, days since 1970-01-01, 2024-01-20 to 2024-08-06")
    assert run("predict model.npz data.csv --out dates.csv")[0] == 0
    numbers = (days - pd.Timestamp("1970-01-01")).days
    frame(day=numbers).to_csv("data.csv", index=False)
    assert run(FIT)[0] == 0
    assert run("predict model.npz data.csv --out days.csv")[0] == 0
    pd.testing.assert_frame_equal(read("dates.csv"), read("days.csv"))


def test_all_bad_columns_are_told_at_once_each_with_its_cure(run):
    table = frame(id=[f"case {k}" for k in range(200)], day="03/04/2024", empty=np.nan)
    table["n"] = ["?", *map(str, range(199))]
    table.to_csv("data.csv", index=False)
    status, _, error = run(FIT)
    assert status == 2
    lines = error.splitlines()
    assert [re.match(r"error: data: column '(\w+)' ", line)[1] for line in lines] == (
        ["id", "day", "empty", "n"]
    )
    assert all("--drop it" in line for line in lines)
    assert run(f"{FIT} --drop id,day,empty,n")[0] == 0


def test_nothing_is_prepared_if_it_must_not_be(run):
    table = frame(town=["Kyoto", "Nara"] * 100, age=[np.nan, 3.0] * 100)
    table.to_csv("data.csv", index=False)
    status, _, error = run(f"{FIT} --no-prepare")
    assert status == 2
    assert error == (
        "error: data: column town: category, 2 values, which --no-prepare does not allow\n"
        "error: data: column age: number, 50 % missing, filled with 3, which --no-prepare does "
        "not allow\n"
    )
    table[["a", "b", "y"]].to_csv("data.csv", index=False)
    assert run(f"{FIT} --no-prepare")[0] == 0
    table.drop(columns="b").assign(b=np.nan).to_csv("new.csv", index=False)
    assert (
        "needs a finite number in row 1 of column 'b', found nan"
        in (run("predict model.npz new.csv")[2])
    )


LABELS = [
    (["1", "0"], ""),
    (["1", "-1"], ""),
    (["1", ""], ""),
    (["positive", ""], ""),
    (["positive", "unlabelled"], ""),
    (["positive", "unlabeled"], ""),
    (["True", "False"], ""),
    (["P", "U"], ""),
    (["sick", "unknown?"], "--positive sick"),
    (["7", "3"], "--positive 7"),
]


@pytest.mark.parametrize(("labels", "options"), LABELS)
def test_labels_are_recognised(run, labels, options):
    frame().assign(y=np.repeat(labels, [60, 140])).to_csv("data.csv", index=False)
    status, output, _ = run(f"{FIT} {options}".strip())
    assert status == 0
    assert "60 positive and 140 unlabelled rows of 2 features" in output


@pytest.mark.parametrize("labels", [["sick", "well"], ["2", "1"], ["0", ""], ["1", "x"]])
def test_labels_that_say_nothing_ask_for_the_option(run, labels):
    frame().assign(y=np.repeat(labels, [60, 140])).to_csv("data.csv", index=False)
    status, _, error = run(FIT)
    assert (status, error.count("\n")) == (2, 1)
    assert "--positive names that of the positives" in error
    assert "none is 'w', which --positive names" in run(f"{FIT} --positive w")[2]


@pytest.mark.parametrize(
    "command", [FIT, "predict model.npz new.csv", "estimate-prior data.csv --label y"]
)
def test_a_file_that_is_not_there_is_told_so(run, command):
    missing = "new.csv" if "predict" in command else "data.csv"
    if missing == "new.csv":
        frame().to_csv("data.csv", index=False)
        run(FIT)
    status, _, error = run(command)
    assert status == 2
    assert re.fullmatch(rf"error: (data: )?no such file: '{missing}'\n", error)


def test_a_file_in_latin_1(run):
    frame(**{"größe": 1.0, "ort": ["Köln", "Bonn"] * 100}).to_csv(
        "data.csv", index=False, encoding="latin-1"
    )
    status, _, error = run(FIT)
    assert (status, error.count("\n")) == (2, 1)
    assert "--encoding tells another, say latin-1" in error
    status, _, told = run(f"{FIT} --encoding latin-1")
    assert (status, told) == (0, "ort: category, 2 values\n")
    assert run("predict model.npz data.csv --encoding latin-1 --keep ort --out out.csv")[0] == 0
    assert read("out.csv")["ort"].tolist() == ["Köln", "Bonn"] * 100
    assert "must be one that Python knows, got 'klingon'" in run(f"{FIT} --encoding klingon")[2]


@pytest.mark.parametrize("rest", ["", "--test-prior estimate"])
def test_the_standard_input_is_a_file(run, monkeypatch, rest):
    content = frame().to_csv(index=False).encode()
    frame().to_csv("data.csv", index=False)

    def piped(command):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        return run(command)

    assert piped(FIT.replace("data.csv", "-"))[:2] == run(FIT)[:2]
    expected = run(f"predict model.npz data.csv {rest}".strip())
    assert piped(f"predict model.npz - {rest}".strip()) == expected
    assert expected[0] == 0


def test_a_feature_that_is_kept_stands_as_in_the_file(run):
    table = frame(c=["4,30", "007"] * 100)
    table.to_csv("data.csv", index=False, sep=";")
    assert run(FIT)[0] == 0
    assert run("predict model.npz data.csv --keep c,a --out out.csv")[0] == 0
    kept = pd.read_csv("out.csv", dtype=str)
    assert kept["c"].tolist() == table["c"].tolist()
    assert kept["a"].tolist() == pd.read_csv("data.csv", dtype=str, sep=";")["a"].tolist()
