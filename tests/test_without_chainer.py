"""Without Chainer: all but risk minimisation works, and the rest says in one line what to do.

The code runs in a process that cannot import Chainer; `make test-ratio` runs it, and the tests of
the ratio half, where it is not installed.
"""

import importlib
import json
import pkgutil
import sys

import pytest

import pu_shift
from pu_shift._chainer import INSTALL
from tests.children import ROOT, python

OUTCOMES = """
import contextlib, io, json, sys, traceback
sys.modules["chainer"] = None  # as if it were not installed
import numpy as np
import pu_shift
rng = np.random.default_rng(0)
X_p, X_u = rng.normal(2.0, 1.0, (60, 2)), rng.normal(0.0, 2.0, (150, 2))
X, y = np.concatenate([X_p, X_u]), np.repeat([1, 0], [60, 150])

def outcome(code):
    out, errors, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            exec(code, dict(globals()))
        except SystemExit as stop:
            status = stop.code
        except Exception:
            status = traceback.format_exc()
    return status, out.getvalue(), errors.getvalue()

found = {code: outcome(code) for code in json.loads(sys.argv[1])}
found["loaded"] = [name for name in sys.modules if name.startswith("chainer.")]
print(json.dumps(found))
"""
WORKS = [
    "from pu_shift import *; RiskMinimizationClassifier(prior=0.4).get_params()",
    "import pu_shift.plots, pu_shift.explorer, pu_shift.report.page, pu_shift.paper.scripts",
    "pu_shift.DensityRatioClassifier(prior=0.2).fit(X, y).predict(X, test_prior=0.7)",
    "pu_shift.DensityRatioClassifier(0.2, estimator='kliep').fit_pu(X_p, X_u).predict_proba(X)",
    "pu_shift.ULSIF(X_p, X_u)(X)",
    "pu_shift.estimate_prior(X_p, X_u)",
    "c = pu_shift.DensityRatioClassifier(0.2).fit(X, y); pu_shift.estimate_test_prior(c, X_u)",
    "c = pu_shift.DensityRatioClassifier(0.2).fit(X, y); pu_shift.zero_one_scorer(c, X, y)",
    "c = pu_shift.DensityRatioClassifier(0.2).fit(X, y); pu_shift.surrogate_scorer(c, X, y)",
    "from pu_shift.device import get_device; get_device(-1).send(X)",
]
COMMANDS = """
from pu_shift.cli import main
np.savetxt("data.csv", np.column_stack([X, y]), delimiter=",", header="a,b,s", comments="")
assert main(["estimate-prior", "data.csv", "--label", "s"]) == 0
assert main(["fit", "data.csv", "--label", "s", "--prior", "0.2", "--out", "m.npz"]) == 0
assert main(["predict", "m.npz", "data.csv", "--out", "out.csv"]) == 0
assert main(["explore", "m.npz", "data.csv", "--out", "page.html"]) == 0
assert len(open("out.csv").read().splitlines()) == 211
"""
STORED = ROOT / "tests" / "files" / "stored" / "risk-linear.npz"
NEED_IT = {
    "pu_shift.RiskMinimizationClassifier(prior=0.4).fit(X, y)": "RiskMinimizationClassifier",
    "pu_shift.RiskMinimizationClassifier(0.4).fit_many(X_p, X_u, [{}])": (
        "RiskMinimizationClassifier"
    ),
    "pu_shift.LinearModel(2)": "LinearModel",
    "pu_shift.MLP(2)": "MLP",
    f"pu_shift.load_model({str(STORED)!r})": "LinearModel",
    "from pu_shift.ratios.deep import DeepRatio; DeepRatio().fit(X_p, X_u)": "DeepRatio",
    "pu_shift.Risk(pu_shift.Condition(0.4))(X_p[:, 0], X_u[:, 0])": "risk minimisation",
}
REFUSED = {
    "from pu_shift.cli import main; sys.exit(main(['reproduce', '1']))": "this script",
    "from pu_shift.cli import main; sys.exit(main(['fit', 'data.csv', '--label', 's', "
    "'--method', 'risk', '--out', 'never.npz']))": "--method risk",
    **{
        f"""
import runpy
sys.path.insert(0, {str(ROOT / "experiments")!r})
sys.argv = ["{script}.py"]
runpy.run_path({str(ROOT / "experiments" / script)!r} + ".py", run_name="__main__")
""": "this script"
        for script in ("table1", "all_tables", "robustness", "class_prior")
    },
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Status, output and messages of each piece of code, in one process without Chainer."""
    codes = json.dumps([*WORKS, COMMANDS, *NEED_IT, *REFUSED])
    done = python("-c", OUTCOMES, codes, cwd=tmp_path_factory.mktemp("without"))
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("code", [*WORKS, COMMANDS])
def test_what_trains_no_risk_minimiser_works(code, outcomes):
    status, _, messages = outcomes[code]
    assert (status, messages) == (0, "")
    assert outcomes["loaded"] == []


@pytest.mark.parametrize("code", NEED_IT)
def test_what_needs_chainer_says_so_in_one_line(code, outcomes):
    line = f"{NEED_IT[code]} needs Chainer, which is not installed: {INSTALL}\n"
    assert outcomes[code][0].endswith(f"Error: {line}")


@pytest.mark.parametrize("code", REFUSED)
def test_commands_that_need_chainer_say_so_in_one_line(code, outcomes):
    line = f"error: {REFUSED[code]} needs Chainer, which is not installed: {INSTALL}\n"
    assert outcomes[code] == [2, "", line]


def test_chainermn_is_never_imported():
    """Its hole, CVE-2024-48206, cannot be reached."""
    for found in pkgutil.walk_packages(pu_shift.__path__, "pu_shift."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    assert not any(name.split(".")[0] == "chainermn" for name in sys.modules)
