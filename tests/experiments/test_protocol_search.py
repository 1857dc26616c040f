"""The ablation: sound variants, effects as computed by hand, resumable files."""

import re

import numpy as np
import pandas as pd
from protocol_search import ablation as search
from protocol_search import short_list

from pu_shift.paper.protocol import Protocol, load_protocol
from pu_shift.paper.settings import BLOCK, METHODS

CHOSEN = "max(50, d) centres, 500 steps"


def frame(deltas, consistent, method="DH-Lin"):
    """As much of a comparison as the effects need."""
    return pd.DataFrame(
        {
            **dict.fromkeys(BLOCK, 0.3),
            "dataset": "magic",
            "method": method,
            "n": 10,
            "bold": 1,
            "paper_mean": 70.0,
            "paper_se": 0.5,
            "paper_bold": 1,
            "delta": deltas,
            "p_value": 0.5,
            "consistent": consistent,
        }
    )


def test_every_variant_but_the_first_changes_the_protocol():
    names = [variant.name for variant in search.VARIANTS]
    assert len(set(names)) == len(names)
    first, *others = search.VARIANTS
    assert load_protocol(first.overrides) == Protocol()
    for variant in others:
        assert load_protocol(variant.overrides) != Protocol(), variant.name
        assert set(variant.methods) <= set(METHODS)


def test_effects_by_hand():
    table = search.effects(
        {
            "chosen": pd.concat([frame([1.0, -3.0], [1, 0]), frame([2.0], [1], "Sq-Lin")]),
            "other": frame([0.5, 0.5], [1, 1]),
        }
    )
    assert table["variant"].tolist() == ["chosen", "chosen", "other"]
    assert table["mean_abs_delta"].tolist() == [2.0, 2.0, 0.5]
    assert table["consistent"].tolist() == [0.5, 1.0, 1.0]
    assert table["mean_abs_delta_chosen"].tolist() == [2.0, 2.0, 2.0]
    assert table["cells"].tolist() == [2, 1, 2]
    lines = search.markdown(table).splitlines()
    assert lines[0] == "| variant | DH-Lin | Sq-Lin |"
    assert lines[3] == "| other | 100 % · 0.5 |  |"


def test_main_writes_after_each_variant(monkeypatch, tmp_path, capsys):
    def run(variant, folder, trials, gpu):
        assert (trials, gpu) == (3, -1)
        if variant.name == "twice the steps":
            raise ValueError("no luck")
        return frame([1.0, -2.0], [1, 0])

    monkeypatch.setattr(search, "run_variant", run)
    arguments = ["--trials", "3", "--out", str(tmp_path), "--only"]
    assert search.main([*arguments, "chosen protocol", "half the steps"]) == 0
    assert re.search(
        r"chosen protocol: 50.0% of 2 cells consistent \(ceiling 9\d\.\d%\), mean \|Δ\| 1.50",
        capsys.readouterr().out,
    )
    table = pd.read_csv(tmp_path / "ablation.csv")
    assert table["variant"].tolist() == ["chosen protocol", "half the steps"]
    assert search.main([*arguments, "chosen protocol", "twice the steps"]) == 2
    assert capsys.readouterr().err == "error: no luck\n"
    assert pd.read_csv(tmp_path / "ablation.csv")["variant"].tolist() == ["chosen protocol"]
    assert pd.read_csv(tmp_path / "ablation_datasets.csv")["dataset"].tolist() == ["magic"]
    assert "half the steps" not in (tmp_path / "ablation.md").read_text(encoding="utf-8")


def test_the_protocol_is_an_entry_of_the_short_list():
    (chosen,) = (
        entry
        for entry in short_list.ENTRIES
        if (entry.name, entry.width, entry.glance) == (CHOSEN, "uLSIF", False)
    )
    estimator = Protocol().estimator("DH-Ker", prior=0.3)
    assert (estimator.n_steps, estimator.lams) == (chosen.n_steps, chosen.lams)
    assert (estimator.width_rule, estimator.width_factors) == ("ulsif", tuple(short_list.WIDTHS))
    for d in (2, 784):
        X = np.random.default_rng(0).normal(size=(900, d))
        fitted = estimator.set_params(n_steps=1).fit_pu(X[:450], X[450:])
        assert len(fitted.model_.centers) == chosen.n_centers(d)
