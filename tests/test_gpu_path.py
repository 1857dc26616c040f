"""The GPU path without a GPU: CuPy's strict stand-in takes the place of CuPy.

See :mod:`tests.doubles.cupy` for what it refuses. Chainer looks for CuPy once,
while it is being imported, so each test runs in a process of its own.
"""

import json

import pytest

from tests import children
from tests.children import ROOT

DOUBLES = ROOT / "tests" / "doubles"


def python(*arguments, **environment):
    environment = {"OMP_NUM_THREADS": "1", **environment}
    return children.python(*arguments, path=[DOUBLES], cwd=ROOT, env=environment)


REFUSED = """
import cupy
import numpy as np

with cupy.cuda.Device(1):
    far = cupy.zeros(3)
near, host = cupy.zeros(3), np.zeros(3)
attempts = {
    "operator": lambda: near + host,
    "operator, host first": lambda: host * near,
    "in place": lambda: near.__iadd__(host),
    "function": lambda: cupy.maximum(near, host),
    "function of the host": lambda: np.exp(near),
    "host arrays alone": lambda: cupy.exp(host),
    "out": lambda: cupy.exp(near, out=host),
    "index": lambda: near[np.array([0])],
    "list as index": lambda: near[[0]],
    "assignment": lambda: near.__setitem__(slice(None), host),
    "conversion": lambda: np.asarray(near),
    "copy there": lambda: cupy.asarray(host),
    "copy of a list": lambda: cupy.asarray([1.0]),
    "copy back": lambda: near.get(),
    "another device": lambda: near + far,
    "unknown function": lambda: cupy.hypot(near, near),
    "concatenate": lambda: cupy.concatenate([near, host]),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except TypeError:
        continue
    print(name)
"""


def test_the_stand_in_refuses_what_it_should():
    result = python("-c", REFUSED)
    assert (result.returncode, result.stdout) == (0, ""), result


def gpu_suite(**environment):
    options = ("-q", "-n", "0", "-p", "no:cacheprovider", "-m", "gpu")
    return python("-m", "pytest", *options, "tests/gpu", **environment)


def test_the_gpu_suite_passes_on_the_stand_in():
    result = gpu_suite()
    assert result.returncode == 0, result.stdout
    assert "passed" in result.stdout
    assert "deselected" not in result.stdout


@pytest.mark.parametrize("missing", ["absent", "no-driver"])
def test_the_gpu_suite_says_that_there_is_no_gpu(missing):
    result = gpu_suite(FAKE_CUDA=missing)
    assert result.returncode == 2
    assert "these tests need a CUDA device: gpu 0 needs" in result.stdout
    assert "no tests ran" in result.stdout


@pytest.fixture(scope="module")
def transfers():
    result = python("tests/doubles/transfers.py", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    names = ("to", "shape", "dtype", "digest", "source", "caller")
    report["crossings"] = [dict(zip(names, crossing)) for crossing in report["crossings"]]
    return report


def test_the_gpu_computes_what_the_cpu_does(transfers):
    assert transfers["gpu"] == transfers["cpu"]
    assert len(transfers["cpu"]) == 18


def test_training_does_not_move_rows_at_every_step(transfers):
    """What grows with the steps is row numbers; data and weights cross once per fit."""
    there = [crossing for crossing in transfers["crossings"] if crossing["to"] == "device"]
    data = [tuple(crossing["shape"]) for crossing in there if len(crossing["shape"]) == 2]
    n_methods, n_tests = 6, 18
    assert data.count((2000, 2)) == n_methods
    assert data.count((500, 2)) == n_methods + n_tests
    steps = [crossing for crossing in there if crossing["caller"].endswith(" train")]
    assert {len(crossing["shape"]) for crossing in steps} == {1}


ENTRY_POINTS = """
import contextlib, io, json, runpy, sys
from pathlib import Path

gpu, folder = sys.argv[1:]
data = Path(folder, "data.csv")
data.write_text("a,s\\n1,1\\n2,1\\n3,1\\n4,0\\n5,0\\n6,0\\n")
scripts = sorted(Path("experiments").glob("*.py"))
run = {f"{path}": [] for path in scripts if "__main__" in path.read_text()}
# Read results and compute next to nothing: no --gpu.
del run["experiments/claims.py"], run["experiments/report.py"]
run["experiments/custom.py"] = ["--prior", "0.3", "--dataset", "banana"]
calls = [(path, [*arguments, "--gpu", gpu]) for path, arguments in run.items()]
calls.append(("pu_shift/__main__.py", ["reproduce", "1", "--gpu", gpu]))
# Where there is no GPU these run on the CPU.
calls = calls if gpu == "1" else []
fit = ["fit", str(data), "--label", "s", "--prior", "0.5", "--out", str(data) + ".npz"]
calls.append(("pu_shift/__main__.py", [*fit, "--gpu", gpu]))
calls.append(("pu_shift/__main__.py", [*fit, "--method", "risk", "--gpu", gpu]))
report = []
sys.path.insert(0, "experiments")  # as for a script that is started there
for path, arguments in calls:
    sys.argv = [path, *arguments]
    errors, code = io.StringIO(), None
    with contextlib.redirect_stderr(errors):
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as stop:
            code = stop.code
    report.append((path, code, errors.getvalue()))
print(json.dumps(report))
"""


@pytest.mark.parametrize(
    ("environment", "gpu", "line"),
    [
        ({"FAKE_CUDA": "absent"}, "0", "error: gpu 0 needs CuPy, which cannot be imported"),
        ({"FAKE_CUDA": "no-driver"}, "0", "error: gpu 0 needs a CUDA driver, and none answers"),
        ({"FAKE_CUDA_DEVICES": "1"}, "1", "error: gpu 1 does not exist, this machine has 1:"),
    ],
    ids=["no CuPy", "no driver", "wrong id"],
)
def test_every_entry_point_says_how_to_go_on(environment, gpu, line, tmp_path):
    result = python("-c", ENTRY_POINTS, gpu, str(tmp_path), **environment)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    scripts = (path.read_text() for path in (ROOT / "experiments").glob("*.py"))
    n_scripts = sum("__main__" in script for script in scripts) - 2 + 1
    assert len(report) == 2 + (n_scripts if gpu == "1" else 0)
    for path, code, errors in report:
        assert code == 2, (path, errors)
        # The command names its option as it is typed.
        assert errors.replace("--gpu", "gpu", 1).startswith(line), (path, errors)
        assert errors.endswith("run with --gpu -1 to use the CPU\n"), (path, errors)
        assert errors.count("\n") == 1, (path, errors)
