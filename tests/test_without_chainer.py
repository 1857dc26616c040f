"""Without Chainer: all but risk minimisation works, and the rest says in one line what to do.

Each test is a process that cannot import Chainer; `make test-ratio` runs them, and the tests of
the ratio half, where it is not installed.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pu_shift._chainer import INSTALL

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = """
import sys
sys.modules["chainer"] = None  # as if it were not installed
import numpy as np
import pu_shift
rng = np.random.default_rng(0)
X_p, X_u = rng.normal(2.0, 1.0, (60, 2)), rng.normal(0.0, 2.0, (150, 2))
X, y = np.concatenate([X_p, X_u]), np.repeat([1, 0], [60, 150])
"""


def run(code, *arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-c", SAMPLES + code, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "code",
    [
        "from pu_shift import *; RiskMinimizationClassifier(prior=0.4).get_params()",
        "import pu_shift.plots, pu_shift.explorer, pu_shift.report.page, pu_shift.paper.scripts",
        "pu_shift.DensityRatioClassifier(prior=0.4).fit(X, y).predict(X, test_prior=0.7)",
        "pu_shift.DensityRatioClassifier(0.4, estimator='kliep').fit_pu(X_p, X_u).predict_proba(X)",
        "pu_shift.ULSIF(X_p, X_u)(X)",
        "pu_shift.estimate_prior(X_p, X_u)",
        "c = pu_shift.DensityRatioClassifier(0.4).fit(X, y); pu_shift.estimate_test_prior(c, X_u)",
        "c = pu_shift.DensityRatioClassifier(0.4).fit(X, y); pu_shift.zero_one_scorer(c, X, y)",
        "c = pu_shift.DensityRatioClassifier(0.4).fit(X, y); pu_shift.surrogate_scorer(c, X, y)",
        "from pu_shift.device import get_device; get_device(-1).send(X)",
    ],
)
def test_what_trains_no_risk_minimiser_works(code):
    done = run(code + "\nassert not any(name.startswith('chainer.') for name in sys.modules)")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_fits_predicts_explores_and_estimates(tmp_path):
    code = """
from pu_shift.cli import main
np.savetxt("data.csv", np.column_stack([X, y]), delimiter=",", header="a,b,s", comments="")
assert main(["estimate-prior", "data.csv", "--label", "s"]) == 0
assert main(["fit", "data.csv", "--label", "s", "--prior", "0.4", "--out", "m.npz"]) == 0
assert main(["predict", "m.npz", "data.csv", "--out", "out.csv"]) == 0
assert main(["explore", "m.npz", "data.csv", "--out", "page.html"]) == 0
"""
    done = run(code, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 211


@pytest.mark.parametrize(
    ("code", "what"),
    [
        (
            "pu_shift.RiskMinimizationClassifier(prior=0.4).fit(X, y)",
            "RiskMinimizationClassifier",
        ),
        (
            "pu_shift.RiskMinimizationClassifier(prior=0.4).fit_many(X_p, X_u, [{}])",
            "RiskMinimizationClassifier",
        ),
        ("pu_shift.LinearModel(2)", "LinearModel"),
        ("pu_shift.MLP(2)", "MLP"),
        (
            "pu_shift.Risk(pu_shift.Condition(0.4))(X_p[:, 0], X_u[:, 0])",
            "risk minimisation",
        ),
    ],
)
def test_what_needs_chainer_says_so_in_one_line(code, what):
    done = run(f"try:\n    {code}\nexcept ImportError as error:\n    print(error)")
    assert done.stdout == f"{what} needs Chainer, which is not installed: {INSTALL}\n"


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("main(['reproduce', '1'])", "this script"),
        (
            "main(['fit', 'no.csv', '--label', 's', '--method', 'risk', '--out', 'm.npz'])",
            "--method risk",
        ),
    ],
)
def test_commands_that_need_chainer_say_so_in_one_line(code, what, tmp_path):
    done = run(f"from pu_shift.cli import main\nsys.exit({code})", cwd=tmp_path)
    line = f"error: {what} needs Chainer, which is not installed: {INSTALL}\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("script", ["table1", "all_tables", "robustness", "class_prior"])
def test_scripts_say_so_in_one_line(script, tmp_path):
    path = ROOT / "experiments" / f"{script}.py"
    code = f"""
import runpy
sys.path.insert(0, {str(path.parent)!r})
sys.argv = [{str(path)!r}]
runpy.run_path({str(path)!r}, run_name="__main__")
"""
    done = run(code, cwd=tmp_path)
    line = f"error: this script needs Chainer, which is not installed: {INSTALL}\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


def test_chainermn_is_never_imported():
    """Its hole, CVE-2024-48206, cannot be reached."""
    code = """
import sys, pkgutil, importlib, pu_shift
for found in pkgutil.walk_packages(pu_shift.__path__, "pu_shift."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
print(any(name.split(".")[0] == "chainermn" for name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
