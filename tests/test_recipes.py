"""The recipes of CONTRIBUTING.md, each carried out."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from pu_shift import (
    DensityRatioClassifier,
    RiskMinimizationClassifier,
    data,
    estimate_prior,
    evaluate,
    load_model,
    pu_scorer,
    save_model,
)
from pu_shift.cli import commands, main
from pu_shift.data import loading, parsers, registry
from pu_shift.estimation import class_prior
from pu_shift.estimators.state import RatioState
from pu_shift.evaluation.metrics import METRICS, Metric
from pu_shift.losses import LOSSES, Loss
from pu_shift.plots import Display
from pu_shift.ratios.registry import RATIOS
from tests.data import tiny
from tests.mixtures import posterior, pu_samples
from tests.paper.engine import PROTOCOL
from tests.ratios.test_base import FirstFeature

ROOT = Path(__file__).resolve().parents[1]
P, U = pu_samples(150, 400, 0.4, gap=3.0, d=2)


def test_every_recipe_is_carried_out_here():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.split("## Where something new goes")[1].split("\n## ")[0]
    kinds = re.findall(r"^\| (\w[\w -]*?) \|", section, flags=re.M)[1:]
    done = {name for name in globals() if name.startswith("test_new_")}
    assert done == {f"test_new_{kind.replace(' ', '_').replace('-', '_')}" for kind in kinds}


class Steep(Loss):
    """ℓ(z) = ½ log(1 + exp(−2z)), a loss that the package does not have."""

    name, linear_odd = "steep", True

    def _value(self, xp, z):
        return 0.5 * xp.logaddexp(xp.zeros_like(z), -2.0 * z)

    def _derivative(self, xp, z):
        return -1.0 / (1.0 + xp.exp(2.0 * z))


def test_new_loss(monkeypatch):
    monkeypatch.setitem(LOSSES, "steep", Steep())
    classifier = RiskMinimizationClassifier(0.4, loss="steep", lams=[0.001], n_steps=1000)
    X_p, X_u = pu_samples(1000, 3000, 0.4, gap=3.0)
    scores = classifier.fit_pu(X_p, X_u).decision_function(X_u)
    shown = classifier.predict_proba(X_u)[:, 1]
    # The minimiser of the conditional risk is half the log-odds.
    np.testing.assert_allclose(shown, 1.0 / (1.0 + np.exp(-2.0 * scores)), atol=1e-5)
    assert np.abs(shown - posterior(X_u, 0.4, gap=3.0)).mean() < 0.03


def test_new_dataset(tmp_path, monkeypatch):
    monkeypatch.setenv("PU_SHIFT_DATA", str(tmp_path))
    monkeypatch.setattr(loading, "CHECKOUT", tmp_path / "none")
    monkeypatch.setattr(registry, "_SPECS", (*registry._SPECS, tiny.spec()))
    (tmp_path / "tiny.txt").write_bytes(tiny.libsvm())
    found = data.load("tiny", offline=True)
    np.testing.assert_array_equal(found.X, tiny.X)
    np.testing.assert_array_equal(found.y, tiny.Y)


def test_new_file_format(tmp_path, monkeypatch):
    def turned(contents, features, label):
        return [parsers.parse_table(b"\n".join(c.split()[::-1]), label) for c in contents]

    monkeypatch.setitem(parsers.FORMATS, "turned", turned)
    layouts = (registry.Layout(("tiny.turned",), "turned", exact=True),)
    monkeypatch.setenv("PU_SHIFT_DATA", str(tmp_path))
    monkeypatch.setattr(loading, "CHECKOUT", tmp_path / "none")
    monkeypatch.setattr(registry, "_SPECS", (tiny.spec(layouts=layouts),))
    (tmp_path / "tiny.turned").write_bytes(b"\n".join(tiny.table().split()[::-1]) + b"\n")
    np.testing.assert_array_equal(data.load("tiny", offline=True).X, tiny.X)


def test_new_ratio_estimator(monkeypatch):
    monkeypatch.setitem(RATIOS, "first", lambda n_folds, seed, device: FirstFeature())
    classifier = DensityRatioClassifier(0.4, estimator=["first", "linear"]).fit_pu(P, U)
    assert set(classifier.candidates_) == {"first", "linear"}
    # Rows with a greater first feature are more likely positive, as the new estimator says.
    assert classifier.predict_proba([[3.0, 0.0], [-3.0, 0.0]])[:, 1].argmax() == 0


def test_new_prior_estimator(monkeypatch):
    def cautious(scores_p, scores_u, posterior):
        return 0.5 * class_prior.best_bin_prior(scores_p, scores_u)

    plain = estimate_prior(P, U, method="bbe")
    monkeypatch.setitem(class_prior.PRIOR_ESTIMATORS, "cautious", cautious)
    found = estimate_prior(P, U, method="cautious")
    assert (found.method, found.prior) == ("cautious", 0.5 * plain.prior)
    assert set(found.parts) == {*plain.parts, "cautious"}


def test_new_metric(monkeypatch, capsys, tmp_path):
    balanced = Metric(
        lambda rates: 0.5 * (rates.recall + 1.0 - rates.false_positive_rate),
        "balanced accuracy is {}",
    )
    monkeypatch.setitem(METRICS, "balanced_accuracy", balanced)
    X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
    classifier = DensityRatioClassifier(0.4, widths=1.0, lams=0.1)
    scorer = pu_scorer("balanced_accuracy", prior=0.4)
    assert (cross_val_score(classifier, X, y, scoring=scorer, cv=3) > 0.7).all()
    save_model(tmp_path / "model.npz", classifier.fit_pu(P, U))
    assert main(["evaluate", str(tmp_path / "model.npz")]) == 0
    assert evaluate(classifier).in_words("balanced_accuracy") in capsys.readouterr().out


COLUMN = """
from pu_shift.paper import runner, store
from tests.paper.engine import PROTOCOL
from tests.ratios.test_base import FirstFeature
task = runner.Task("banana", None, 0.3, 0, (runner.Block(0.3, 0.5, 0.5),), ("p/u uLSIF",))
(row,) = runner.run_task(task, PROTOCOL, 0)
with store.TrialStore({out!r}, {{"seed": 0}}) as folder:
    folder.append([{{"table": 1, **row}}])
print(store.read_trials({out!r})["n_test"].item())
print(store.read_trials({reference!r})["n_test"].isna().all())
"""


def test_new_table_column(tmp_path):
    """In a copy of the package: the column is in new results, and empty in the committed ones."""
    shutil.copytree(ROOT / "pu_shift", tmp_path / "pu_shift")
    for name, old, new in (
        (
            "store",
            '        "seconds": _checks',
            '        "n_test": count,\n        "seconds": _checks',
        ),
        ("store", 'optional=(*HYPER, "seconds")', 'optional=(*HYPER, "seconds", "n_test")'),
        ("runner", '"seconds": round', '"n_test": protocol.n_test,\n"seconds": round'),
    ):
        path = tmp_path / "pu_shift" / "paper" / f"{name}.py"
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
    code = COLUMN.format(
        out=str(tmp_path / "out"), reference=str(ROOT / "results" / "reference" / "table1")
    )
    path = [str(tmp_path), str(ROOT)]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(PROTOCOL.n_test), "True"]


@pytest.mark.filterwarnings("ignore")
def test_new_optimiser(monkeypatch):
    chainer = pytest.importorskip("chainer")
    from pu_shift import training

    made = []

    class Plain(chainer.optimizers.SGD):
        def __init__(self, alpha):
            made.append(alpha)
            super().__init__(lr=alpha)

    monkeypatch.setattr(training, "AMSGrad", Plain)
    RiskMinimizationClassifier(0.4, loss="double_hinge", lams=[0.1], n_steps=5).fit_pu(P, U)
    assert made


def test_new_command(monkeypatch, capsys):
    def add_options(parser):
        parser.add_argument("--name", default="you")

    def run(options):
        print(f"hello {options.name}")
        return 0

    texts = {"help": "say hello", "description": "Say hello.", "epilog": ""}
    command = SimpleNamespace(TEXTS=texts, add_options=add_options, run=run)
    monkeypatch.setitem(commands.COMMANDS, "hello", command)
    assert main(["hello", "--name", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"


def test_new_plot():
    @dataclass(eq=False, repr=False)
    class ShareDisplay(Display):
        """Share of rows that are flagged, by threshold."""

        shares: np.ndarray

        @classmethod
        def from_estimator(cls, estimator, X, ax=None):
            probability = estimator.predict_proba(X)[:, 1]
            return cls((probability[:, None] > np.linspace(0, 1, 5)).mean(axis=0)).plot(ax)

        def _draw(self):
            self.ax_.plot(np.linspace(0, 1, 5), self.shares, label="share")

    classifier = DensityRatioClassifier(0.4, widths=1.0, lams=0.1).fit_pu(P, U)
    display = ShareDisplay.from_estimator(classifier, U)
    assert (np.diff(display.ax_.lines[0].get_ydata()) <= 0).all()


def test_new_model_file_field(tmp_path, monkeypatch):
    keep, restore = RatioState._fitted_state, RatioState._restore_fit
    classifier = DensityRatioClassifier(0.4, widths=1.0, lams=0.1).fit_pu(P, U)
    classifier.rows_ = len(P)
    save_model(tmp_path / "old.npz", classifier)

    def restored(self, state):
        restore(self, state)
        self.rows_ = state.get("rows")

    monkeypatch.setattr(RatioState, "_fitted_state", lambda c: {**keep(c), "rows": c.rows_})
    monkeypatch.setattr(RatioState, "_restore_fit", restored)
    save_model(tmp_path / "new.npz", classifier)
    assert load_model(tmp_path / "new.npz").rows_ == len(P)
    assert load_model(tmp_path / "old.npz").rows_ is None
