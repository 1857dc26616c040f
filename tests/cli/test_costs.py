"""Costs of each case, and another prior, from the command line."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from pu_shift import DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.cli import main
from pu_shift.files.models import save_model
from tests.mixtures import pu_samples
from tests.networks import needs_chainer

X_P, X_U = pu_samples(60, 200, 0.3, d=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("costs")
    classifier = DensityRatioClassifier(0.3, estimator="linear").fit_pu(X_P, X_U)
    classifier.feature_names_in_ = np.array(["a", "b"], dtype=object)
    save_model(folder / "model.npz", classifier)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(X_U, columns=["a", "b"])
    table["amount"], table["fee"] = rng.gamma(1.0, 50.0, 200).round(2), 3.0
    table["who"] = "x"
    table.to_csv(folder / "cases.csv", index=False)
    table.to_parquet(folder / "cases.parquet")
    return folder


def predicted(folder, *options, data="cases.csv"):
    out = folder / "out.csv"
    arguments = [str(folder / "model.npz"), str(folder / data), *options, "--out", str(out)]
    assert main(["predict", *arguments]) == 0
    return pd.read_csv(out)


@pytest.mark.parametrize("data", ["cases.csv", "cases.parquet"])
def test_costs_in_columns_decide_each_case(folder, data):
    cases = pd.read_csv(folder / "cases.csv")
    options = ["--false-alarm", "25", "--miss", "amount", "--keep", "who", "--test-prior", "0.5"]
    found = predicted(folder, *options, data=data)
    assert found.columns.tolist() == ["who", "label", "probability"]
    expected = found.probability * cases.amount > (1.0 - found.probability) * 25.0
    np.testing.assert_array_equal(found.label == 1, expected)
    both = predicted(folder, "--false-alarm", "fee", "--miss", "amount", data=data)
    expected = both.probability * cases.amount > (1.0 - both.probability) * 3.0
    np.testing.assert_array_equal(both.label == 1, expected)


@pytest.mark.parametrize("data", ["cases.csv", "cases.parquet"])
def test_the_page_has_the_costs_of_each_case(folder, data):
    cases, out = pd.read_csv(folder / "cases.csv"), folder / "page.html"
    options = ["--false-alarm", "25", "--miss", "amount", "--keep", "amount", "--out", str(out)]
    assert main(["explore", str(folder / "model.npz"), str(folder / data), *options]) == 0
    page = json.loads(re.search(r'id="data">(.*?)</script>', out.read_text("utf-8"))[1])
    assert (page["falseAlarm"], page["miss"], page["costs"]["falseAlarm"]) == (25.0, None, None)
    assert page["costs"]["miss"] == {"name": "amount", "values": cases.amount.tolist()}
    assert page["heldOut"] is None
    assert [column["name"] for column in page["keep"]] == ["amount"]


def test_costs_that_are_alike_are_alpha_and_the_prior_can_be_changed(folder):
    costs = predicted(folder, "--false-alarm", "1", "--miss", "4")
    pd.testing.assert_frame_equal(costs, predicted(folder, "--alpha", "0.2"))
    other = predicted(folder, "--prior", "0.2")
    assert other.probability.mean() < costs.probability.mean()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--miss", "amount"], "--false-alarm and --miss must be given together"),
        (["--miss", "1", "--false-alarm", "0"], "--false-alarm must be a number > 0 or a column"),
        (["--miss", "1", "--false-alarm", "1", "--alpha", "0.1"], "--alpha must not be given"),
        (["--miss", "who", "--false-alarm", "1"], "must hold numbers >= 0, found 'x' in row 1"),
        (["--miss", "amont", "--false-alarm", "1"], "amont"),
    ],
)
def test_bad_costs_are_named_in_one_line(folder, options, message, capsys):
    assert main(["predict", str(folder / "model.npz"), str(folder / "cases.csv"), *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@needs_chainer
def test_a_risk_minimiser_says_why_it_cannot(folder, capsys):
    classifier = RiskMinimizationClassifier(0.3, basis="linear", safe=False).fit_pu(X_P, X_U)
    classifier.feature_names_in_ = np.array(["a", "b"], dtype=object)
    save_model(folder / "risk.npz", classifier)
    options = ["--miss", "amount", "--false-alarm", "1"]
    assert main(["predict", str(folder / "risk.npz"), str(folder / "cases.csv"), *options]) == 2
    assert "was trained for one cost" in capsys.readouterr().err
