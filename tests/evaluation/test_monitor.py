import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift import DensityRatioClassifier, RiskMinimizationClassifier, check_shift
from pu_shift._seeds import child
from pu_shift.cli import main
from pu_shift.estimation.test_prior import estimate_test_prior
from pu_shift.evaluation.monitor import SHIFT_LEVEL, monitor
from pu_shift.files.models import load_model, save_model
from tests.mixtures import mixture, pu_samples

SHARES = {"2024-01": 0.2, "2024-02": 0.5, "2024-03": 0.8}
BY = np.repeat([*SHARES, "2024-04"], [300, 300, 300, 10])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    parts = [mixture(300, share, rng, d=2)[0] for share in SHARES.values()]
    return np.concatenate([*parts, mixture(10, 0.5, rng, d=2)[0]])


@pytest.fixture(scope="module")
def classifier():
    return DensityRatioClassifier(0.3, estimator="linear").fit_pu(*pu_samples(300, 900, 0.3, d=2))


def test_each_group_is_what_its_rows_alone_say(classifier, rows):
    found = monitor(classifier, rows, BY)
    assert [one.group for one in found.groups] == [*SHARES, "2024-04"]
    for place, (one, share) in enumerate(zip(found.groups, SHARES.values())):
        part = rows[one.group == BY]
        alone = estimate_test_prior(classifier, part)
        assert (one.test_prior, one.low, one.high) == (alone.test_prior, alone.low, alone.high)
        assert one.low < share < one.high
        assert one.share_flagged == np.mean(classifier.predict(part) == 1)
        ends = [classifier.predict(part, test_prior=end) for end in (one.low, one.high)]
        assert one.n_flips == np.sum(ends[0] != ends[1])
        assert one.p_value == check_shift(classifier, part, random_state=child(0, place)).p_value
        assert one.p_value >= SHIFT_LEVEL
    few = found.groups[-1]
    assert few.n_rows == few.n_flips == 10
    assert np.isnan([few.test_prior, few.low, few.high, few.p_value]).all()
    assert few.note == "fewer than 30 rows: no estimate"
    assert "2024-04" in str(found)


def test_decisions_may_be_at_the_prior_of_each_group(classifier, rows):
    own = DensityRatioClassifier(**classifier.get_params())
    vars(own).update({k: v for k, v in vars(classifier).items() if k.endswith("_")})
    own.set_params(test_prior="estimate")
    found = monitor(own, rows, BY)
    assert found.stated is None
    for one in found.groups[:-1]:
        flagged = classifier.predict(rows[one.group == BY], test_prior=one.test_prior) == 1
        assert one.share_flagged == flagged.mean()


def test_another_shift_is_noted(classifier, rows):
    moved = rows[:300] + np.array([3.0, 0.0])
    (one,) = monitor(classifier, moved, np.repeat(1, 300)).groups
    assert one.p_value < SHIFT_LEVEL
    assert "not a shift of priors alone" in one.note


def test_a_frame_in_a_pipeline_names_its_groups(rows):
    X_p, X_u = (pd.DataFrame(X, columns=["a", "b"]) for X in pu_samples(300, 900, 0.3, d=2))
    pipeline = make_pipeline(StandardScaler(), DensityRatioClassifier(0.3, estimator="linear"))
    pipeline.fit(pd.concat([X_p, X_u]), np.repeat([1, 0], [300, 900]))
    table = pd.DataFrame(rows, columns=["a", "b"]).assign(month=BY)
    frame = monitor(pipeline, table, "month").to_frame()
    pd.testing.assert_frame_equal(
        frame, monitor(pipeline, table.drop(columns="month"), BY).to_frame()
    )


def test_bad_arguments_are_named(classifier, rows):
    with pytest.raises(ValueError, match="^by must have a group for each of 910 rows"):
        monitor(classifier, rows, BY[:5])
    with pytest.raises(ValueError, match="^classifier must be a density ratio"):
        monitor(RiskMinimizationClassifier(0.3), rows, BY)


def test_the_plot_marks_small_groups(classifier, rows):
    axes = monitor(classifier, rows, BY).plot()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "fewer than 30 rows" in labels
    np.testing.assert_array_equal([t.get_text() for t in axes.get_xticklabels()], np.unique(BY))


@pytest.mark.parametrize("data", ["rows.csv", "rows.parquet"])
def test_the_command_says_the_same(classifier, rows, tmp_path, capsys, data):
    classifier.feature_names_in_ = np.array(["a", "b"], dtype=object)
    save_model(tmp_path / "model.npz", classifier)
    del classifier.feature_names_in_
    table = pd.DataFrame(rows, columns=["a", "b"]).assign(month=BY)
    table.to_csv(tmp_path / "rows.csv", index=False)
    table.to_parquet(tmp_path / "rows.parquet")
    names = [str(tmp_path / name) for name in ("model.npz", data, "out.csv", "out.png")]
    options = ["--by", "month", "--out", names[2], "--plot", names[3]]
    assert main(["monitor", *names[:2], *options]) == 0
    assert "4 groups" in capsys.readouterr().out
    found = pd.read_csv(names[2], dtype={"month": str})
    loaded = load_model(names[0])
    expected = monitor(loaded, table[["a", "b"]], BY).to_frame().rename(columns={"group": "month"})
    columns = ["month", "n_rows", "test_prior", "low", "high", "share_flagged", "n_flips"]
    pd.testing.assert_frame_equal(found[columns], expected[columns], rtol=1e-3)
    assert found.columns.tolist() == [*columns, "note"]
    assert (tmp_path / "out.png").stat().st_size > 10_000
