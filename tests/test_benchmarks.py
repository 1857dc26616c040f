"""The benchmarks: what they compare agrees, and the documentation shows what they measured."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import nnls

from pu_shift import ULSIF
from pu_shift._grids import assign_folds
from pu_shift._seeds import child
from pu_shift.ratios.kernels import gaussian_kernel
from tests.mixtures import pu_samples

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def test_the_documentation_shows_the_measurements(load):
    render = load("report").render
    page = (ROOT / "docs" / "SPEED.md").read_text(encoding="utf-8")
    results = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))
    assert render(results) in page


def test_a_missed_target_is_called_so(load):
    row = {"case": "c", "peer": "p", "ours_seconds": 0.5, "peer_seconds": 0.575, "at_least": 1.2}
    machine = load("measure").machine()
    text = load("report").render({"ulsif": {"machine": machine, "rows": [row]}})
    assert "| c | p | 500 ms | 575 ms | 1.15× | ≥ 1.2, **missed** |" in text
    text = load("report").render({"ulsif": {"machine": machine, "rows": [{**row, "at_least": 1}]}})
    assert "≥ 1, met" in text


def test_results_are_merged_and_missing_peers_named(load, monkeypatch, tmp_path, capsys):
    run, floor = load("run"), load("bench_floor")
    monkeypatch.setitem(run.PEERS, "ulsif", ("a_peer_that_is_not_there",))
    row = {"case": "c", "ours_seconds": 2e-6, "peer_seconds": 1e-6, "at_most": 4.0}
    monkeypatch.setattr(floor, "run", lambda repeats: [row])
    (tmp_path / "results.json").write_text(json.dumps({"training": {"rows": [], "machine": {}}}))
    monkeypatch.setattr(run, "render", lambda results: " ".join(results))
    assert run.main(["--only", "ulsif", "floor", "--out", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "ulsif needs a_peer_that_is_not_there" in printed.err
    assert printed.out == "training floor"
    assert json.loads((tmp_path / "results.json").read_text())["floor"]["rows"] == [row]
    assert (tmp_path / "results.png").read_bytes()[1:4] == b"PNG"


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


def test_practice_was_measured_widely(load):
    rows = load("practice").read(FOLDER / "practice.json")
    assert len({row["dataset"] for row in rows}) >= 8
    assert len({row["seed"] for row in rows}) >= 3


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


def test_the_nearest_distribution_agrees_with_a_quadratic_program(load):
    peers = load("peers_priors")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(25, 2))
    kernel = gaussian_kernel(rows, rows, 1.0)
    target = rng.normal(size=25)
    target /= target.sum()
    step = 1.0 / np.linalg.norm(kernel, 2)
    found = peers.nearest_distribution(kernel, target, np.full(25, 0.04), step, n_steps=5000)
    # Σw = 1 as a row of large weight makes it a non-negative least-squares problem.
    root = np.linalg.cholesky(kernel + 1e-9 * np.eye(25)).T
    A, b = np.vstack([root, np.full(25, 1e3)]), np.append(root @ target, 1e3)
    best, _ = nnls(A, b)
    ours, least = (np.linalg.norm(root @ (w - target)) for w in (found, best))
    assert ours == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_made_up_samples_hold_the_share_that_they_say(load, seed):
    X_p, X_u, prior = load("priors").made_up(seed)
    assert X_p.shape[1] == X_u.shape[1]
    assert 0.0 <= prior <= 1.0
    assert np.isfinite(X_p).all()
    assert np.isfinite(X_u).all()


def test_the_table_of_installations_numbers_what_went_wrong(load):
    installing = load("installing")
    output = "  x = 1\n  ModuleNotFoundError: No module named 'a'\n\nERROR: Failed to build 'b'\n"
    why = installing.reason(output)
    assert why == "ModuleNotFoundError: No module named 'a'"
    outcomes = [installing.INSTALLS, why, "it broke", why, installing.INSTALLS]
    rows = [
        {"python": "3.11", "pip": "9.9", "way": way, "outcome": outcome}
        for way, outcome in zip(installing.COLUMNS, outcomes)
    ]
    old = {
        "python": installing.TOO_OLD[0],
        "pip": "9.9",
        "way": installing.WHEEL,
        "outcome": "ERROR: too old",
    }
    text = installing.render({"setuptools": "84.0", "rows": [*rows, old]})
    assert "| 3.11 | 9.9 | ✓ | ✗ 1 | ✗ 2 | ✗ 1 | ✓ |" in text
    assert "1. `ModuleNotFoundError: No module named 'a'`\n2. `it broke`" in text
    assert "ERROR: too old" in text
    assert f"| {installing.TOO_OLD[0]} |" not in text


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


def test_growth_of_files_is_told_as_it_was_measured(load):
    small = {"kind": "csv", "rows": 1000, "mb_in": 1.0, "mb_out": 0.2, "seconds": 2.0, "cpu": 1.0}
    large = {**small, "rows": 4000, "seconds": 5.0, "cpu": 3.0, "peak_mb": 330.0}
    text = load("load").render([{**small, "peak_mb": 300.0}, large])
    assert "| csv | 4,000 | 1 | 0 | 5.0 | 3.0 | 1,333 | 330 |" in text
    assert "| csv, last/first | ×4 | | | ×2.5 | ×3.0 | | ×1.10 |" in text
