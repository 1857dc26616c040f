"""The benchmarks: what they compare agrees, and the documentation shows what they measured."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from pu_shift import ULSIF, DensityRatioClassifier
from pu_shift._grids import assign_folds
from pu_shift._seeds import child
from tests.mixtures import pu_samples

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def test_other_results_are_kept(load, monkeypatch, tmp_path, capsys):
    speed, out = load("speed"), tmp_path / "results.json"
    kept = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))
    out.write_text(json.dumps(kept), encoding="utf-8")
    rows = [{"case": "c", "ours": 0.1, "PyTorch": 0.25, "products": 0.05}]
    monkeypatch.setitem(speed.BENCHMARKS, "training", lambda repeats: rows)
    assert speed.main(["--only", "training", "--out", str(out)]) == 0
    assert "| c | 100 | 2.50 | 0.50 |" in capsys.readouterr().out
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["training"]["rows"] == rows
    assert {**found, "training": None} == {**kept, "training": None}


def test_growth_is_the_exponent_of_a_power(load):
    speed = load("speed")
    assert speed.growth({10**k: 3e-6 * 10 ** (1.5 * k) for k in (3, 4, 5)}) == pytest.approx(1.5)
    rows = [{"method": "m", "n": n, "fit": n / 10**4} for n in (10**3, 10**4)]
    assert "| m | 0.1 | 1 | – | – | 1.00 |" in speed.users_table(rows, "fit")


def test_methods_are_fitted_and_predict_until_they_take_too_long(load, monkeypatch):
    speed = load("speed")
    makers = {
        "ours": lambda: DensityRatioClassifier(0.3, widths=1.0, lams=0.1),
        "peer": lambda: speed.OfMatrix(GaussianNB()),
    }
    monkeypatch.setattr(speed, "methods", lambda: makers)
    monkeypatch.setattr(speed, "SIZES", (200, 2000))
    monkeypatch.setattr(speed, "LONGEST", np.inf)
    rows = speed.users(repeats=1)
    assert [(row["method"], row["n"]) for row in rows] == [
        (name, n) for n in (200, 2000) for name in makers
    ]
    assert all(row["fit"] > 0.0 and row["peak_mb"] > 0.0 for row in rows)
    monkeypatch.setattr(speed, "LONGEST", 0.0)
    monkeypatch.setattr(speed, "SIZES", (200,))
    assert len(speed.users(repeats=1)) == 2


@pytest.mark.filterwarnings("ignore::pu_shift.ratios.base.GridEdgeWarning")
@pytest.mark.parametrize("way", ["careful", "textbook"])
def test_numpy_gives_the_scores_of_ours(load, way):
    fit = getattr(load("peers"), way)
    rng = np.random.default_rng(0)
    nu, de = rng.normal(0.5, 1, (32, 2)), rng.normal(0, 1, (61, 2))
    grid = {"centers": nu[:8], "widths": np.array([0.5, 1.0]), "lams": np.array([0.01, 0.1, 1.0])}
    folds = [assign_folds("rows", n, 5, child(0, 2, part)) for part, n in enumerate((32, 61))]
    ours, plain = ULSIF(nu, de, **grid), fit(nu, de, *grid.values(), *folds)
    np.testing.assert_allclose(ours.scores_, plain.scores, rtol=1e-8)
    assert (ours.width_, ours.lam_) == (plain.width, plain.lam)
    np.testing.assert_allclose(ours.coefficients_, plain.coefficients, rtol=1e-6)


def test_models_that_differ_are_found(load):
    speed = load("speed")
    cases, n_models = speed.training_cases(3, 2, "squared", n_steps=6)
    ours = cases["ours"]()
    assert ours.shape == (4, n_models)
    speed.check_training(ours, ours, "squared")
    changed = ours.copy()
    changed[:, -1] *= 1.1
    with pytest.raises(AssertionError, match="differs from ours by"):
        speed.check_training(ours, changed, "squared")


def test_practice_keeps_rows_apart_and_the_prior(load):
    practice = load("practice")
    X = np.arange(1000.0)[:, None]
    positive = np.arange(1000) < 400
    for prior in (0.3, 0.7):
        P, U, test_p, test_n = practice.draw(X, positive, prior, seed=0)
        used = np.concatenate([P, U, test_p, test_n])[:, 0]
        assert len(set(used)) == len(used)
        assert (P < 400).all()
        assert (test_p < 400).all()
        assert (test_n >= 400).all()
        assert (U < 400).mean() == pytest.approx(prior, abs=0.01)
        assert len(U) == 4 * len(P)


def test_practice_runs_on_a_small_dataset(load, tmp_path, capsys):
    practice = load("practice")
    out = tmp_path / "practice.json"
    assert practice.main(["--seeds", "1", "--datasets", "wine", "--out", str(out)]) == 0
    rows = practice.read(out)
    assert {row["method"] for row in rows} >= {*practice.OURS, *practice.SIMPLE, practice.CONSTANT}
    assert len(rows) == 5 * len({row["method"] for row in rows})
    for row in rows:
        if row["method"] == practice.CONSTANT:
            likelier = max(row["test_prior"], 1 - row["test_prior"])
            assert row["accuracy"] == pytest.approx(100 * likelier)
    assert practice.render(rows) == capsys.readouterr().out
    again = [dict(row, accuracy=0.0) for row in rows]
    practice.write(out, again)
    options = ["--seeds", "1", "--datasets", "wine", "--methods", practice.CONSTANT]
    assert practice.main([*options, "--out", str(out)]) == 0
    for before, old, new in zip(rows, again, practice.read(out)):
        kept = old if old["method"] != practice.CONSTANT else dict(before, seconds=new["seconds"])
        assert new == kept


def test_tables_of_priors_are_what_their_rows_say(load):
    priors = load("priors")
    case = {"dataset": "d", "prior": 0.3, "trial": 0}
    ours = {"low": 0.2, "high": 0.35, "bound": 0.25, "seconds": 1.0}
    rows = [
        {**case, "method": "auto", "estimate": 0.34, **ours},
        {**case, "method": "KM2", "estimate": 0.1, "seconds": 2.0},
    ]
    machine = load("measure").machine()
    text = priors.render({"prior": {"machine": machine, "rows": rows}})
    assert "| d | 0.040 | 0.200 | 100 % | 0 % |" in text
    assert "| seconds | 1.00 s | 2.00 s | | |" in text
    assert "| 0.3 | +0.040 | 0.040 | 0.15 | 100 % | 0 % |" in text
    results = {"prior": {"machine": machine, "rows": rows}}
    assert json.loads(priors.encode(results)) == results


def test_peers_find_the_prior_of_separate_classes(load):
    peers = load("peers_priors")
    X_p, X_u = pu_samples(200, 500, 0.4, gap=6.0)
    assert peers.km2(X_p, X_u) == pytest.approx(0.4, abs=0.1)
    # Elkan and Noto's mean score needs classes that do not overlap at all.
    assert peers.elkan_noto(X_p, X_u) == pytest.approx(0.4, abs=0.1)


def test_growth_is_told_as_it_was_measured(load):
    scale = load("scale")
    figures = json.loads(scale.RESULTS.read_text(encoding="utf-8"))
    text = scale.render(figures)
    assert text.count("| fit |") == sum(row["what"] == "fit" for row in figures)
    largest = max((row for row in figures if row["what"] == "fit"), key=lambda row: row["rows"])
    first = scale.reckoned(figures)[0]
    work = first["seconds"] * first["workers"]
    assert work == pytest.approx(largest["cpu"] * first["rows"] / largest["rows"])
    assert scale.dask_rows(250_000).shape == (250_000, scale.FEATURES)
    assert scale.partition(200_000, 250_000).shape == (50_000, scale.FEATURES)
