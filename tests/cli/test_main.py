import io
import os
import runpy
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from pu_shift.cli import main
from pu_shift.cli.commands import COMMANDS
from pu_shift.estimation.class_prior import PriorEstimate
from tests import children
from tests.children import python
from tests.mixtures import mixture, pu_samples
from tests.networks import needs_chainer


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("csv")
    X_p, X_u = pu_samples(150, 450, 0.3, gap=4.0, d=2)
    # Scales that differ a lot, as real tables have them.
    rows = np.concatenate([X_p, X_u]) * [1.0, 1000.0]
    data = pd.DataFrame(rows, columns=["size", "weight, g"])
    data["labelled"] = np.repeat([1, 0], [150, 450])
    data.to_csv(folder / "data.csv", index=False)
    features = data.drop(columns="labelled")
    features[:150].to_csv(folder / "p.csv", index=False, sep=";")
    features[150:].iloc[:, ::-1].to_csv(folder / "u.csv", index=False, sep="\t")
    X, y = mixture(400, 0.7, np.random.default_rng(1), gap=4.0, d=2)
    new = pd.DataFrame(X * [1.0, 1000.0], columns=["size", "weight, g"])
    new.insert(0, "id", [f"row {i}" for i in range(len(new))])
    new.to_csv(folder / "new.csv", index=False)
    np.savetxt(folder / "truth.txt", y)
    return folder


@pytest.fixture(scope="module")
def model(files):
    path = files / "model.npz"
    arguments = ["fit", str(files / "data.csv"), "--label", "labelled", "--prior", "0.3"]
    assert main([*arguments, "--out", str(path)]) == 0
    return path


def test_a_first_session(files, model, tmp_path, capsys):
    truth = np.loadtxt(files / "truth.txt")
    shares = []
    for prior in ("0.05", "0.7"):
        out = tmp_path / "out.csv"
        arguments = ["predict", str(model), str(files / "new.csv"), "--test-prior", prior]
        assert main([*arguments, "--out", str(out)]) == 0
        table = pd.read_csv(out)
        assert list(table.columns) == ["label", "probability"]
        assert table["probability"].between(0, 1).all()
        np.testing.assert_array_equal(table["label"] == 1, table["probability"] > 0.5)
        shares.append((table["label"] == 1).mean())
    assert shares[0] < shares[1]
    assert (table["label"] == truth).mean() > 0.9
    assert "400 rows, " in capsys.readouterr().out
    assert main(["predict", str(model), str(files / "new.csv"), "--alpha", "0.05"]) == 0
    careful = pd.read_csv(io.StringIO(capsys.readouterr().out))
    np.testing.assert_array_equal(careful["label"] == 1, careful["probability"] > 0.05)


def test_large_files_are_streamed(files, model, tmp_path, capsys):
    new = pd.read_csv(files / "new.csv").drop(columns="id")
    large = pd.concat([new] * 180, ignore_index=True)  # more than one block
    large.to_csv(tmp_path / "large.csv", index=False)
    np.save(tmp_path / "large.npy", large.to_numpy())
    assert main(["predict", str(model), str(files / "new.csv")]) == 0
    once = capsys.readouterr().out
    expected = once + once.split("\n", 1)[1] * 179
    for name in ("large.csv", "large.npy"):
        out = tmp_path / "out.csv"
        assert main(["predict", str(model), str(tmp_path / name), "--out", str(out)]) == 0
        assert "72000 rows, " in capsys.readouterr().out
        assert out.read_text(encoding="utf-8") == expected
    with open(tmp_path / "large.csv", "a", encoding="utf-8") as file:
        file.write("1,heavy\n")
    assert main(["predict", str(model), str(tmp_path / "large.csv"), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert "a finite number in row 72001 of column 'weight, g', found 'heavy'" in error
    assert error.count("\n") == 1
    assert out.read_text(encoding="utf-8") == expected
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


def test_a_bar_shows_the_progress_on_a_terminal(files, model, tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    out = ["--out", str(tmp_path / "out.csv")]
    assert main(["predict", str(model), str(files / "new.csv"), *out]) == 0
    assert "predict: 100%" in sys.stderr.getvalue()


def test_two_files_are_the_same_data(files, model, tmp_path, capsys):
    other = tmp_path / "other.npz"
    arguments = ["fit", str(files / "p.csv"), str(files / "u.csv"), "--prior", "0.3"]
    assert main([*arguments, "--out", str(other)]) == 0
    assert "150 positive and 450 unlabelled rows of 2 features" in capsys.readouterr().out
    outputs = []
    for path in (model, other):
        assert main(["predict", str(path), str(files / "new.csv")]) == 0
        outputs.append(pd.read_csv(io.StringIO(capsys.readouterr().out)))
    # Arrays in another memory order are summed in another order.
    pd.testing.assert_frame_equal(*outputs, rtol=1e-4)


@needs_chainer
def test_risk_minimisation_says_that_it_must_be_fitted_again(files, tmp_path, capsys):
    path = tmp_path / "risk.npz"
    arguments = ["fit", str(files / "data.csv"), "--label", "labelled", "--out", str(path)]
    options = ["--method", "risk", "--basis", "linear", "--non-negative", "--no-scale"]
    assert main([*arguments, *options, "--prior", "0.3", "--test-prior", "0.6"]) == 0
    assert main(["predict", str(path), str(files / "new.csv")]) == 0
    capsys.readouterr()
    assert main(["predict", str(path), str(files / "new.csv"), "--test-prior", "0.7"]) == 2
    error = capsys.readouterr().err
    assert "risk.npz is of --method risk and holds for test prior 0.6 and alpha 0.5 alone" in error
    assert "or fit with --method ratio" in error
    assert error.count("\n") == 1


def test_a_prior_is_estimated_when_it_is_not_given(files, tmp_path, capsys):
    data = [str(files / "data.csv"), "--label", "labelled"]
    assert main(["estimate-prior", *data]) == 0
    words = capsys.readouterr().out.split()
    assert float(words[1].rstrip(",")) == pytest.approx(0.3, abs=0.1)
    assert words[2:4] == ["95%", "interval"]
    assert main(["estimate-prior", *data, "--level", "0.8", "--method", "bbe"]) == 0
    assert "(bbe); 80% upper bound under no assumption" in capsys.readouterr().out
    assert main(["fit", *data, "--out", str(tmp_path / "m.npz")]) == 0
    assert "(estimated by auto)" in capsys.readouterr().out


@pytest.mark.parametrize(("high", "told"), [(0.32, 0), (0.9, 1)])
def test_fit_tells_of_a_wide_interval(files, tmp_path, capsys, monkeypatch, high, told):
    found = PriorEstimate(0.3, 0.28, high, 0.9, 0.95, "auto", {})
    monkeypatch.setattr("pu_shift.cli.fit.estimated_prior", lambda *rest: found)
    fit = ["fit", str(files / "data.csv"), "--label", "labelled", "--basis", "linear"]
    assert main([*fit, "--out", str(tmp_path / "m.npz")]) == 0
    output = capsys.readouterr().out
    assert output.count("note: the interval is wide compared with the estimate") == told


def test_predict_estimates_the_test_prior_from_its_file(files, model, tmp_path, capsys):
    out = tmp_path / "out.csv"
    predict = ["predict", str(model), str(files / "new.csv"), "--out", str(out)]
    assert main([*predict, "--test-prior", "estimate"]) == 0
    words = capsys.readouterr().err.split()
    estimate = float(words[2].rstrip(","))
    assert estimate == pytest.approx(0.7, abs=0.06)
    assert float(words[5]) < 0.7 < float(words[7].rstrip(","))
    estimated = pd.read_csv(out)
    assert main([*predict, "--test-prior", str(estimate)]) == 0
    told = pd.read_csv(out)
    assert (estimated["label"] == told["label"]).mean() > 0.99
    np.testing.assert_allclose(estimated["probability"], told["probability"], atol=0.01)
    few = pd.read_csv(files / "new.csv")[:9]
    few.to_csv(tmp_path / "few.csv", index=False)
    predict[2] = str(tmp_path / "few.csv")
    assert main([*predict, "--test-prior", "estimate"]) == 2
    assert "data must have at least 30 rows" in capsys.readouterr().err
    assert main(["predict", str(model), os.devnull, "--test-prior", "estimate"]) == 2
    assert "error: data: /dev/null is empty" in capsys.readouterr().err


@needs_chainer
def test_reproduce_runs_a_table(tmp_path, capsys):
    options = ["--datasets", "banana", "--methods", "p/u uLSIF", "--trials", "2", "--jobs", "1"]
    assert main(["reproduce", "1", *options, "--out", str(tmp_path / "t1")]) == 0
    assert "Table 1" in capsys.readouterr().out
    assert main(["reproduce", "table1", *options, "--out", str(tmp_path / "t1")]) == 0
    assert "Difference from the paper" in capsys.readouterr().out
    assert main(["reproduce", "all", "--trials", "0"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "absent.csv", "--label", "y"], "error: no such file: 'absent.csv'"),
        (["fit", "data.csv"], "data must be one file with --label, or two files"),
        (["fit", "data.csv", "--label", "size"], "label: column 'size' must be 1 for labelled"),
        (
            ["fit", "zeros.csv", "--label", "y"],
            "0, -1 or missing for unlabelled rows, found 0; --positive names",
        ),
        (["fit", "p.csv", "zeros.csv"], "data: zeros.csv has no column 'size'"),
        (
            ["fit", "words.csv", "--label", "y"],
            "holds numbers, and 1 texts such as 'many': correct",
        ),
        (["fit", "empty.csv", "--label", "y"], "data: empty.csv has no rows"),
        (["fit", "numbers.csv", "--label", "y"], "must begin with a line of column names"),
        (["predict", "data.csv", "new.csv"], "data.csv is not a pu-shift model"),
        (
            ["predict", "model.npz", "new.csv", "--out", "no/where.csv"],
            "needs a folder that",
        ),
        (["predict", "model.npz", "new.csv", "--out", "."], "out must be a file, . is a folder"),
        (["predict", "model.npz", "new.csv", "--out", "new.csv"], "another file than new.csv"),
        (["fit", "data.csv", "--label", "labelled", "--loss", "squared"], "loss needs --method ri"),
        (
            ["fit", "data.csv", "--label", "labelled", "--non-negative"],
            "negative needs --method",
        ),
        (
            ["fit", "twos.csv", "--label", "y"],
            "missing for unlabelled rows, found 2, 1; --positive names",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(files, model, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(files)
    (files / "zeros.csv").write_text("a,y\n1,0\n2,0\n")
    (files / "words.csv").write_text("a,y\n" + "".join(f"{i},0\n" for i in range(60)) + "many,1\n")
    (files / "empty.csv").write_text("a,y\n")
    (files / "twos.csv").write_text("a,y\n1,2\n2,1\n")
    (files / "numbers.csv").write_text("1,0\n2,1\n")
    if arguments[0] == "fit":
        arguments = [*arguments, "--out", "never.npz"]
    capsys.readouterr()
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert message in error
    assert not (files / "never.npz").exists()


@pytest.mark.parametrize("command", [[], ["fit"], ["predict"], ["estimate-prior"], ["reproduce"]])
def test_help_teaches_with_an_example(command, capsys):
    assert main([*command, "--help"]) == 0
    text = capsys.readouterr().out
    assert "pu-shift" in text
    assert (
        command == ["estimate-prior"] or "pu-shift predict model.npz" in text or "example" in text
    )


def test_the_module_can_be_run(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pu_shift", "--version"])
    with pytest.raises(SystemExit) as exit_info:
        runpy.run_module("pu_shift", run_name="__main__")
    assert exit_info.value.code == 0
    assert capsys.readouterr().out.startswith("pu-shift ")


def test_the_input_is_never_the_output(files, tmp_path, capsys):
    path = tmp_path / "data.csv"
    path.write_bytes((files / "data.csv").read_bytes())
    (tmp_path / "link.npz").symlink_to(path)
    arguments = ["fit", str(path), "--label", "labelled", "--prior", "0.3", "--out"]
    assert main([*arguments, str(tmp_path / "link.npz")]) == 2
    assert f"out must be another file than {path}" in capsys.readouterr().err
    assert path.read_bytes() == (files / "data.csv").read_bytes()


@pytest.fixture(scope="module")
def many(files):
    rows = pd.read_csv(files / "new.csv")
    pd.concat([rows] * 1_000).to_csv(files / "many.csv", index=False)
    return files / "many.csv"


def started(*arguments, **options):
    """Start the command in a process of its own."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return children.start("-m", "pu_shift", *arguments, **streams)


def test_a_signal_ends_a_prediction_and_its_temporary_file(model, many, tmp_path):
    with started("predict", model, many, "--out", tmp_path / "out.csv") as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        output, error = process.communicate()
    assert (process.returncode, output, error) == (129, b"", b"hung up\n")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_is_never_told_as_a_bad_file(files, model, monkeypatch, capsys):
    """Wherever it comes, also where foreign code makes another error of it."""

    def parse(*arguments, **options):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ValueError("not a CSV file") from None

    monkeypatch.setattr(pd, "read_csv", parse)
    assert main(["predict", str(model), str(files / "new.csv")]) == 130
    assert capsys.readouterr().err.endswith("interrupted\n")


@pytest.mark.parametrize(
    ("imported", "arguments"),
    [("numpy", ["--version"]), ("sklearn", ["estimate-prior", "--help"])],
)
def test_an_interrupt_during_imports_prints_no_traceback(tmp_path, imported, arguments):
    script = tmp_path / "pu-shift"  # as the one that pip installs
    script.write_text(f"""
import signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "{imported}":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from pu_shift_start import main
sys.exit(main())
""")
    done = python(script, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


QUICK = [
    "--help",
    *(f"{name} --help" for name in COMMANDS if name != "estimate-prior"),
    "fit absent.csv --label y --out model.npz",
    "fit --no-such-option",
    "predict absent.npz absent.csv",
    "evaluate absent.npz",
    "explore absent.npz absent.csv",
    "monitor absent.npz absent.csv --by month",
]


def test_help_and_wrong_arguments_are_answered_before_the_long_imports(tmp_path):
    code = """
import sys
from pu_shift.cli import main
for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit:
        pass
    heavy = {"sklearn", "pandas", "scipy", "matplotlib", "chainer", "dask", "pyarrow"}
    assert not heavy & set(sys.modules), (line, heavy & set(sys.modules))
"""
    done = python("-c", code, *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("error: no such file: 'absent.") == 5


def test_prediction_of_a_matrix_needs_neither_pandas_nor_the_paper(files, model, tmp_path):
    np.save(tmp_path / "new.npy", pd.read_csv(files / "new.csv").drop(columns="id").to_numpy())
    # scikit-learn imports pandas where it finds it: here nobody does.
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "matplotlib"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import pu_shift
pu_shift.ULSIF
from pu_shift.cli import main
status = main(sys.argv[1:])
heavy = [name for name in sys.modules if name.startswith(("pu_shift.paper", "pu_shift.report"))]
sys.exit(heavy or status)
"""
    done = python("-c", code, "predict", model, tmp_path / "new.npy")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 401


@pytest.mark.parametrize(
    ("redirection", "status", "message"),
    [
        (">/dev/full", 74, "error: the output cannot be written: No space left on device\n"),
        (">&- 2>&-", 0, ""),
    ],
)
def test_output_that_cannot_be_written(files, model, redirection, status, message):
    command = f"{sys.executable} -m pu_shift predict {model} {files / 'new.csv'} {redirection}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, message)


def test_a_reader_that_has_seen_enough_is_no_error(model, many):
    with started("predict", model, many) as process:
        assert process.stdout.readline() == b"label,probability\n"
        process.stdout.close()
        error = process.stderr.read()
    assert process.returncode == 141
    assert error == b""
