import importlib.util
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load_example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_quickstart(tmp_path, capsys):
    before, after = load_example("quickstart").main(["--figure", str(tmp_path / "q.png")])
    assert after > before
    assert f"{after:.1%}" in capsys.readouterr().out
    assert (tmp_path / "q.png").read_bytes()[1:4] == b"PNG"


@pytest.mark.needs_data("magic")
def test_screening_by_month(tmp_path, capsys):
    arguments = ["--trials", "2", "--figure", str(tmp_path / "m.png")]
    ignored, prior_told, all_told = load_example("screening_by_month").main(arguments)
    # January is the training condition: there is nothing to tell.
    assert ignored[0] == prior_told[0] == all_told[0]
    assert all_told.mean() < prior_told.mean() < ignored.mean()
    assert "Jun" in capsys.readouterr().out
    assert (tmp_path / "m.png").read_bytes()[1:4] == b"PNG"


@pytest.mark.needs_data("MNIST")
def test_mnist_nnpu(capsys):
    example = load_example("mnist_nnpu")
    results = example.main(["--trials", "1", "--steps", "100", "--units", "50", "--hidden", "1"])
    assert set(results) == {(*s, name) for s in example.SHIFTS for name in example.METHODS}
    assert all(np.isfinite(value).all() for value in results.values())
    falling = {name: results[0.7, 0.3, name][0] for name in example.METHODS}
    assert falling["nnPU-shift"] > falling["nnPU"]
    assert "nnPU-shift" in capsys.readouterr().out


def test_unknown_priors(tmp_path, capsys):
    example = load_example("unknown_priors")
    result = example.main(["--figure", str(tmp_path / "s.png")])
    assert result.prior[0] < example.PRIOR < result.prior[1]
    assert result.test_prior[0] < example.TEST_PRIOR < result.test_prior[1]
    assert f"{result.n_changed} of 1000 decisions" in capsys.readouterr().out
    assert (tmp_path / "s.png").read_bytes()[1:4] == b"PNG"
