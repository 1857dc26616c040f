"""The benchmarks: what they compare agrees, and the documentation shows what they measured."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from pu_shift import ULSIF
from pu_shift._grids import assign_folds
from pu_shift._seeds import child
from tests.mixtures import pu_samples

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def test_a_missed_target_is_called_so(load):
    row = {"case": "c", "peer": "p", "ours_seconds": 0.5, "peer_seconds": 0.575, "at_least": 1.2}
    machine = load("measure").machine()
    text = load("report").render({"ulsif": {"machine": machine, "rows": [row]}})
    assert "| c | p | 500 ms | 575 ms | 1.15× | ≥ 1.2, **missed** |" in text
    text = load("report").render({"ulsif": {"machine": machine, "rows": [{**row, "at_least": 1}]}})
    assert "≥ 1, met" in text


@pytest.mark.filterwarnings("ignore::pu_shift.ratios.base.GridEdgeWarning")
def test_plain_numpy_gives_the_scores_of_ours(load):
    peers = load("peers_ulsif")
    rng = np.random.default_rng(0)
    nu, de = rng.normal(0.5, 1, (30, 2)), rng.normal(0, 1, (60, 2))
    grid = {"centers": nu[:8], "widths": np.array([0.5, 1.0]), "lams": np.array([0.01, 0.1, 1.0])}
    folds = [assign_folds("rows", n, 5, child(0, 2, part)) for part, n in enumerate((30, 60))]
    pairs = [
        X[np.random.default_rng(child(0, 3, part)).permutation(len(X))]
        for part, X in enumerate((nu, de))
    ]
    for ours, plain in (
        (ULSIF(nu, de, **grid), peers.numpy_kfold(nu, de, *grid.values(), *folds)),
        (
            ULSIF(nu, de, selection="loo", clip_coefficients=True, **grid),
            peers.numpy_loo(*pairs, *grid.values()),
        ),
    ):
        np.testing.assert_allclose(ours.scores_, plain.scores, rtol=1e-8)
        assert (ours.width_, ours.lam_) == (plain.width, plain.lam)
        np.testing.assert_allclose(ours.coefficients_, plain.coefficients, rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "double_hinge"])
def test_ordinary_chainer_code_trains_the_same_models(load, loss):
    training = load("bench_training")
    problem = training.Problem(training.Stack("tiny", 3, 2, 2, loss), n_u=200)
    peer = "Chainer, one by one"
    parameters = {"ours": problem.train(6), peer: problem.peers(6)[peer]()}
    training.check(problem, peer, parameters)
    parameters[peer][:, -1] *= 1.1
    with pytest.raises(AssertionError, match="differs from ours by"):
        training.check(problem, peer, parameters)


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
