import ast
import contextlib
import json
import os
import re
import runpy
import signal
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from custom import main as custom_main

from pu_shift import bigdata, device
from pu_shift.paper import runner, scripts
from pu_shift.paper.compare import load_paper_table
from pu_shift.paper.scripts import all_tables_main, table_main
from pu_shift.paper.settings import DATASETS, METHODS, TABLES, TRIALS
from tests import stand_ins
from tests.children import python
from tests.paper.engine import (
    FAST,
    ROOT,
    SLOW,
    Cluster,
    assert_same_rows,
    count_sets,
    rows,
    start,
    wait_for,
    write_table,
)

OPTIONS = ["--gpu", "--trials", "--methods", "--seed", "--jobs", "--out", "--fresh", "--check"]
OPTIONS += ["--cluster", "--protocol", "--quiet"]


@pytest.fixture
def fast(tmp_path):
    """Arguments of a run of a second: one dataset, one method, a small protocol."""
    path = tmp_path / "fast.json"
    path.write_text(json.dumps(FAST), encoding="utf-8")
    return ["--protocol", str(path), "--methods", "p/u uLSIF", "--trials", "2", "--jobs", "1"]


@pytest.fixture(autouse=True)
def _rows_are_open():
    """Open the data first: made-up rows are reported when they are, see conftest.py."""
    runner.open_dataset("banana", None)


@pytest.fixture
def one_table(fast, tmp_path):
    """Arguments of a small run of a table, into ``out``."""
    return [*fast, "--datasets", "banana", "--out", str(tmp_path / "out")]


def assert_one_line(capsys, message):
    """Check that standard error holds one line that matches, and standard output nothing."""
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.fullmatch(f"error: .*{message}.*\n", captured.err), captured.err


def run_to_exit(main, arguments):
    """Return the status of a command, whether it returns it or exits with it."""
    try:
        return main(arguments)
    except SystemExit as exit_:
        return exit_.code


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--datasets", "iris"], "dataset must be a file or one of banana, .*, got 'iris'"),
        (["--methods", "SVM"], "method must be one of 'u/p uLSIF', .*, got 'SVM'"),
        (["--methods", "DH-Lin", "DH-Lin"], "methods must be distinct, got 'DH-Lin' twice"),
        (["--trials", "0"], "trials must be an integer >= 1, got 0"),
        (["--jobs", "0"], "jobs must be an integer >= 1, got 0"),
        (["--seed", "-1"], "seed must be an integer >= 0, got -1"),
        (["--gpu", "-2"], "gpu must be a device id >= 0"),
        (["--protocol", "no/such.json"], "protocol no/such.json: No such file or directory"),
        (["--cluster", "nonsense"], "cluster nonsense cannot be reached: "),
        (["--trials", "many"], "argument --trials: invalid int value: 'many'"),
        (["--datasets"], "argument --datasets: expected at least one argument"),
        (["--no-such-option"], "unrecognized arguments: --no-such-option"),
    ],
)
def test_bad_options_are_one_line_errors(one_table, tmp_path, capsys, changes, message):
    # Of an option that is given twice the last counts.
    assert run_to_exit(lambda argv: table_main(1, argv), [*one_table, *changes]) == 2
    assert_one_line(capsys, message)
    assert not (tmp_path / "out").exists()


def test_without_a_gpu_the_cpu_is_used_and_the_run_says_so(
    one_table, tmp_path, capsys, monkeypatch
):
    def no_cupy():
        raise ModuleNotFoundError("No module named 'cupy'")

    monkeypatch.setattr(device, "_cupy", no_cupy)
    assert table_main(1, [*one_table, "--gpu", "0"]) == 0
    captured = capsys.readouterr()
    line = captured.err.splitlines()[0]
    assert re.fullmatch(r"gpu 0 needs CuPy, which cannot be .*: the CPU is used", line)
    table, _, after = captured.out.partition(line)
    assert "Table 1" in table
    assert "results in" in after
    run = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert run["device"] == {"asked": "@cupy:0", "used": "@numpy"}
    # The trials are those of a run on the CPU, which goes on from them.
    assert table_main(1, one_table) == 0
    run = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert run["device"] == {"asked": "@numpy", "used": "@numpy"}
    assert run["earlier_sessions"][0]["device"]["asked"] == "@cupy:0"


def test_another_run_in_the_folder_is_refused_until_it_may_be_deleted(one_table, tmp_path, capsys):
    assert table_main(1, [*one_table, "--quiet"]) == 0
    before = rows(tmp_path / "out")
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**FAST, "n_folds": 4}), encoding="utf-8")
    for changes, message in (
        (["--seed", "5"], "holds another run: the seed of .* is 0, not 5; .*--fresh"),
        (["--protocol", str(other)], "holds another run: the protocol.n_folds of .* is 3, not 4"),
    ):
        assert table_main(1, [*one_table, *changes]) == 2
        assert_one_line(capsys, message)
    assert table_main(2, one_table) == 2
    assert_one_line(capsys, "holds another run: the table of .* is 1, not 2")
    assert_same_rows(rows(tmp_path / "out"), before)
    assert table_main(1, [*one_table, "--seed", "5", "--fresh", "--quiet"]) == 0
    assert len(rows(tmp_path / "out")) == len(before)
    assert not rows(tmp_path / "out").equals(before)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The only place where data are looked for, empty."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name, value in {"DATA": "", "CACHE": str(folder), "FETCH": "off"}.items():
        monkeypatch.setenv(f"PU_SHIFT_{name}", value)
    runner.open_dataset.cache_clear()
    yield folder
    runner.open_dataset.cache_clear()


def test_a_table_runs_on_what_can_be_had_and_grows(fast, folder, tmp_path, capsys, monkeypatch):
    out, tasks, run_task = tmp_path / "out", [], runner.run_task
    monkeypatch.setattr(
        runner, "run_task", lambda *arguments: tasks.append(arguments[0]) or run_task(*arguments)
    )
    stand_ins.write_banana(folder)
    arguments = [*fast, "--out", str(out)]
    assert table_main(1, arguments) == 0
    assert {task.dataset for task in tasks} == {"banana"}
    printed = capsys.readouterr()
    for name in ("ijcnn1", "MNIST", "susy", "cod-rna", "magic"):
        for text in (printed.out, printed.err):  # after the table and before the run
            (line,) = [line for line in text.splitlines() if line.startswith(f"{name} is not here")]
            assert "download https://" in line
            assert f"into {folder}" in line
    covered = "3 of 108 cells; ijcnn1, MNIST, susy, cod-rna, magic were not available"
    assert printed.out.count(covered) == 2  # of the table, and of the headline
    assert covered in (out / "table.md").read_text(encoding="utf-8")
    assert covered in (out / "table.tex").read_text(encoding="utf-8")
    summary = pd.read_csv(out / "summary.csv")
    assert (len(summary), (summary["n"] == 0).sum()) == (18, 15)
    assert summary["dataset"].tolist() == [*DATASETS] * 3
    assert summary.loc[summary["n"] == 0, "mean"].isna().all()
    assert table_main(1, [*arguments, "--check", "--quiet"]) == 1
    assert f"check: failed, {covered}" in capsys.readouterr().err

    stand_ins.write_cod_rna(folder)
    runner.open_dataset.cache_clear()
    tasks.clear()
    before = rows(out)
    assert table_main(1, [*arguments, "--quiet"]) == 0
    assert {task.dataset for task in tasks} == {"cod-rna"}
    assert len(before.merge(rows(out))) == len(before)
    covered = "6 of 108 cells; ijcnn1, MNIST, susy, magic were not available"
    assert covered in (out / "table.md").read_text(encoding="utf-8")


def test_without_any_dataset_there_is_no_table(fast, folder, tmp_path, capsys):
    assert all_tables_main([*fast, "--out", str(tmp_path / "out")]) == 2
    *missing, last = capsys.readouterr().err.splitlines()
    assert [line.split(" is not here")[0] for line in missing] == list(DATASETS)
    assert last == "error: no dataset is available"
    assert not (tmp_path / "out").exists()


def test_a_dataset_that_was_named_must_be_there(fast, folder, tmp_path, capsys):
    stand_ins.write_banana(folder)
    named = ["--datasets", "banana", "susy", "--quiet", "--out", str(tmp_path / "out")]
    assert table_main(1, [*fast, *named]) == 2
    assert_one_line(capsys, "susy is not here; download .*susy.zip.*PU_SHIFT_DATA")
    assert not (tmp_path / "out").exists()


def test_a_worker_of_another_version_makes_no_table(one_table, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bigdata, "__version__", "99")
    with Cluster(tmp_path, workers=1) as cluster:
        assert table_main(1, [*one_table, "--cluster", cluster.address]) == 2
    assert_one_line(capsys, "cluster: the worker tcp://.* has pu-shift .*, it needs 99")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prior", "1.2"], "prior must lie strictly between 0 and 1, got 1.2"),
        (["--prior", "nan"], "prior must be a number"),
        (["--prior", "0.3", "--test-prior", "0"], "test_prior must lie strictly between 0 and 1"),
        (["--prior", "0.3", "--given-prior", "2"], "given_prior must lie strictly between"),
        (["--prior", "0.3", "--given-prior", "0.4", "0.4"], "blocks must be distinct"),
        (["--prior", "half"], "argument --prior: invalid float value: 'half'"),
        ([], "the following arguments are required: --prior"),
        (["--prior", "0.3", "--dataset", "no/such.csv"], "dataset must be a file or one of"),
        (["--prior", "0.3", "--dataset", "."], "path must be a file, got '.'"),
        (["--prior", "0.3", "--label", "kind"], "mine.csv.* label must name a column, got 'kind'"),
        (["--prior", "0.3", "--label", "7"], "mine.csv.* has 3 column.*label 7"),
        (["--prior", "0.3", "--label", "0"], "mine.csv.* positive must say which label is"),
    ],
)
def test_a_bad_setting_of_ones_own_is_a_one_line_error(fast, tmp_path, capsys, arguments, message):
    path = write_table(tmp_path / "mine.csv", header="", label=2)
    out = ["--out", str(tmp_path / "out"), "--dataset", str(path)]
    assert run_to_exit(custom_main, [*fast, *out, *arguments]) == 2
    assert_one_line(capsys, message)


def test_a_file_of_ones_own_by_the_name_or_the_number_of_its_label(fast, tmp_path, capsys):
    path = write_table(tmp_path / "mine.csv")
    setting = ["--prior", "0.2", "--test-prior", "0.6", "--given-prior", "0.6", "0.3"]
    for out, label in (("a", "kind"), ("b", "0")):
        arguments = [*fast, *setting, "--dataset", str(path), "--label", label]
        assert custom_main([*arguments, "--out", str(tmp_path / out)]) == 0
    assert_same_rows(tmp_path / "a", tmp_path / "b")
    trials = rows(tmp_path / "a")
    assert set(trials["dataset"]) == {"mine"}
    assert set(trials["given_prior"]) == {0.6, 0.3}
    assert (trials["table"] == 0).all()
    assert len(trials) == 4
    assert trials.groupby("given_prior")["accuracy"].mean()[0.6] > 70
    text = capsys.readouterr().out
    assert "Setting: π = 0.2, π′ = 0.6" in text
    assert "No cell has a printed number to compare with." in text
    run = json.loads((tmp_path / "a" / "run.json").read_text(encoding="utf-8"))
    assert list(run["files"]) == ["mine"]


def test_sizes_of_a_small_file_are_options(fast, tmp_path, capsys):
    lines = write_table(tmp_path / "mine.csv").read_text(encoding="utf-8").splitlines(True)
    few = tmp_path / "few.csv"
    few.write_text("".join(lines[:301]), encoding="utf-8")
    arguments = ["--prior", "0.4", "--dataset", str(few), "--label", "kind", "--quiet"]
    arguments += ["--methods", "p/u uLSIF", "--trials", "1", "--jobs", "1"]
    assert custom_main([*arguments, "--out", str(tmp_path / "a")]) == 2
    assert_one_line(capsys, "--sizes of experiments/custom.py, are the sizes")
    sizes = ["--sizes", "30", "90", "40", "--out", str(tmp_path / "b")]
    assert custom_main([*arguments, *sizes]) == 0


def test_the_positive_labels_of_a_file_of_ones_own(fast, tmp_path, capsys):
    path = write_table(tmp_path / "mine.csv")
    text = path.read_text(encoding="utf-8").splitlines(keepends=True)
    words = {"0": "well", "1": "sick"}
    lines = [text[0], *(f"{words[line[0]]}{line[1:]}" for line in text[1:])]
    (tmp_path / "words").mkdir()
    named = tmp_path / "words" / "mine.csv"
    named.write_text("".join(lines), encoding="utf-8")
    libsvm = tmp_path / "words" / "mine.txt"
    cells = [line.strip().split(",") for line in text[1:]]
    libsvm.write_text("".join(f"{3 + int(y)} 1:{a} 2:{b}\n" for y, a, b in cells), encoding="utf-8")
    label = ["--label", "kind"]
    runs = {
        "numbers": (path, label),
        "named": (named, [*label, "--positive", "sick"]),
        "several": (named, [*label, "--positive", "sick", "ill"]),
        "libsvm": (libsvm, ["--positive", "4"]),
    }
    setting = [*fast, "--prior", "0.4", "--quiet"]
    for out, (file, options) in runs.items():
        arguments = [*setting, "--dataset", str(file), "--out", str(tmp_path / out), *options]
        assert custom_main(arguments) == 0
        assert_same_rows(tmp_path / out, tmp_path / "numbers")
    out = ["--dataset", str(named), "--out", str(tmp_path / "named"), "--label", "kind"]
    assert custom_main([*setting, *out]) == 2
    assert_one_line(capsys, "positive must say which label is")
    # The other label makes other data: they must not pass for a resumed run.
    assert custom_main([*setting, *out, "--positive", "well"]) == 2
    assert_one_line(capsys, "holds another run")
    assert custom_main([*setting, *out, "--positive", "absent"]) == 2
    assert_one_line(capsys, "mine has 0 positive and 800 negative rows")


def test_table_and_difference_are_printed_and_progress_goes_to_standard_error(
    one_table, tmp_path, capsys
):
    assert table_main(1, one_table) == 0
    shown = capsys.readouterr()
    assert "Table 1: π = 0.3, π′ = 0.5" in shown.out
    assert "Difference from the paper" in shown.out
    assert "Consistent with the paper" in shown.out
    assert shown.out.rstrip().endswith(f"s; results in {tmp_path / 'out'}")
    assert "\x1b" not in shown.out
    assert re.fullmatch(r"(\d of 2 training sets, \d+ s, about \d+ s left\n){2}", shown.err), (
        shown.err
    )
    assert table_main(1, one_table) == 0
    assert capsys.readouterr().err == "", "nothing was left to do"


def test_quiet_prints_nothing(one_table, capsys):
    assert table_main(1, [*one_table, "--quiet"]) == 0
    assert table_main(1, [*one_table, "--quiet", "--check"]) in (0, 1)
    assert capsys.readouterr() == ("", "")


def trials_near_the_paper(number, offset):
    """Return rows of a task that lie at a distance from the printed means."""
    paper = load_paper_table(number)

    def run_task(task, *_):
        cells = paper[(paper["dataset"] == task.dataset) & (paper["prior"] == task.prior)]
        return [
            {
                **{name: getattr(cell, name) for name in ("prior", "test_prior", "given_prior")},
                "dataset": cell.dataset,
                "method": cell.method,
                "trial": task.trial,
                "accuracy": min(100.0, cell.mean + offset + (task.trial - 0.5) * cell.se),
                "seconds": 0.0,
            }
            for cell in cells.itertuples()
            if cell.method in task.methods
        ]

    return run_task


@pytest.mark.parametrize(("offset", "status", "verdict"), [(0.1, 0, "passed"), (9.0, 1, "FAILED")])
def test_check_compares_with_the_reference_run(
    one_table, capsys, monkeypatch, offset, status, verdict
):
    monkeypatch.setattr(runner, "run_task", trials_near_the_paper(1, offset))
    assert table_main(1, [*one_table, "--check"]) == status
    cells, trials = capsys.readouterr().out.splitlines()[-2:]
    assert cells.startswith(f"check: {verdict}: cells: as near to the paper as the reference run")
    assert f"mean |Δ| {offset:.2f} on" in cells
    assert trials.startswith(
        "check: not checked: trials as in the reference run: not to be expected"
    )
    assert table_main(1, [*one_table, "--check", "--quiet"]) == status
    assert capsys.readouterr() == ("", "")


def test_check_fails_when_there_is_nothing_to_compare(one_table, capsys):
    methods = ["--methods", "p/u uLSIF-Lin"]
    assert table_main(1, [*one_table, *methods, "--check", "--quiet"]) == 1
    assert capsys.readouterr().err == "check: no cell could be compared with the paper\n"


def test_check_of_one_trial_judges_the_mean_difference_alone(one_table, capsys, monkeypatch):
    monkeypatch.setattr(runner, "run_task", trials_near_the_paper(1, 0.1))
    assert table_main(1, [*one_table, "--trials", "1", "--check"]) == 0
    cells = capsys.readouterr().out.splitlines()[-2]
    assert "mean |Δ| " in cells
    assert "consistent" not in cells


def test_check_of_all_tables_pools_their_cells(fast, tmp_path, capsys):
    out = tmp_path / "all"
    arguments = [*fast, "--datasets", "banana", "--tables", "1", "3", "6", "--out", str(out)]
    status = all_tables_main([*arguments, "--check"])
    text = capsys.readouterr().out
    frames = [pd.read_csv(out / f"table{number}" / "summary.csv") for number in (1, 3, 6)]
    cells = pd.concat(frames)
    share, delta = cells["consistent"].mean(), cells["delta"].abs().mean()
    together = text.split("All tables together\n")[1]
    assert f"Consistent with the paper: {100 * share:.1f} % of {len(cells)} cells" in together
    assert f"{share:.1%} consistent, mean |Δ| {delta:.2f} on {len(cells)} cells" in text
    assert status == int("check: FAILED" in text)
    assert [f"Table {number}:" in text for number in (1, 3, 6)] == [True] * 3
    assert sorted(path.name for path in out.iterdir()) == ["table1", "table3", "table6"]


def test_every_option_is_explained(capsys):
    for main in (lambda argv: table_main(1, argv), all_tables_main, custom_main):
        assert run_to_exit(main, ["--help"]) == 0
        text = capsys.readouterr().out
        for option in OPTIONS:
            assert re.search(rf"^  {option}\b", text, re.MULTILINE), option
        assert "None" not in text
        assert all(name in " ".join(text.split()) for name in METHODS)


@pytest.fixture
def slow(tmp_path):
    """Arguments of a run that lasts long enough to be interrupted."""
    path = tmp_path / "slow.json"
    path.write_text(json.dumps(SLOW), encoding="utf-8")
    mine = write_table(tmp_path / "mine.csv", header="", label=-1)
    return ["--protocol", path, "--datasets", mine, "--trials", 40, "--methods", "Sq-Ker"]


def group_members(group):
    """Return the processes of a group that are still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = path.read_text().rpartition(")")[2].split()[:3]
            found += [path.parent.name] * (its_group == str(group) and state != "Z")
    return found


def test_ctrl_c_keeps_the_finished_trials_and_ends_the_workers(slow, tmp_path):
    out = tmp_path / "out"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = start("table1.py", *slow, "--jobs", 2, "--out", out, **pipes)
    wait_for(lambda: count_sets(out) > 1, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert printed == ""
    *progress, kept, last = errors.splitlines()
    assert kept == "finished trials are kept, run again to resume"
    assert last == "interrupted"
    assert all("training sets" in line for line in progress), errors
    assert 0 < len(rows(out)) < 120
    assert len(pd.read_csv(out / "trials.csv")) == len(rows(out))
    assert not list(out.rglob("*.tmp"))
    wait_for(lambda: not group_members(process.pid), seconds=10)


@pytest.mark.parametrize("number", list(TABLES))
def test_the_script_of_a_table_shows_that_table(number, monkeypatch):
    monkeypatch.setattr(scripts, "setting_main", lambda *shown: (*shown, "exit"))
    script = ROOT / "experiments" / f"table{number}.py"
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(script), run_name="__main__")
    setting = TABLES[number]
    assert caught.value.code == (setting, DATASETS, METHODS, TRIALS, "exit")
    caption = runpy.run_path(str(script))["__doc__"].splitlines()[0]
    assert caption.startswith(f"Table {number} of the paper")
    if number == 3:
        priors = ", ".join(f"{block.prior:g}" for block in setting.blocks)
        assert caption.endswith(f": no shift, π = {priors}.")
    else:
        given = ", ".join(f"{block.given_prior:g}" for block in setting.blocks)
        first = setting.blocks[0]
        assert f": π = {first.prior:g} → π′ = {first.test_prior:g}, given {given}" in caption
        assert caption.endswith(" (appendix).") == (number > 3)


SCRIPTS = sorted(
    path
    for path in (ROOT / "experiments").rglob("*.py")
    if "__main__" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_answers_ctrl_c_before_it_imports_anything_else(script):
    body = ast.parse(script.read_text(encoding="utf-8")).body
    named = [
        node
        for node in body
        if not (
            isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "__future__"
        )
    ]
    first = [ast.unparse(node) for node in named[1:3]]
    assert first == [
        "from pu_shift_start import answer_interrupts",
        "answer_interrupts(__name__)",
    ]


def test_ctrl_c_during_the_imports_of_a_script_prints_no_traceback():
    code = f"""
import runpy, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["table1.py", "--help"]
runpy.run_path({str(ROOT / "experiments" / "table1.py")!r}, run_name="__main__")
"""
    done = python("-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
