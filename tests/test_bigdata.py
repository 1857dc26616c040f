import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift import (
    DensityRatioClassifier,
    RiskMinimizationClassifier,
    RowBlocks,
    _cluster,
    _grids,
    estimate_prior,
    estimate_test_prior,
)
from pu_shift._grids import Folds, assign_folds
from pu_shift.bigdata import Survey
from tests.mixtures import pu_samples
from tests.paper.engine import Cluster, wait_for

da = pytest.importorskip("dask.array")
NAMES = ["a", "b", "c"]
SCALES = [100.0, 10.0, 1.0]
OPTIONS = {"estimator": "ulsif", "n_centers": 30}
LINEAR = make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0))


@pytest.fixture(scope="module")
def samples():
    X_p, X_u = pu_samples(150, 700, 0.3, d=3)
    return X_p * SCALES, X_u * SCALES


def frame(X, npartitions):
    try:
        import dask.dataframe as dd
    except (ImportError, AttributeError):  # of a pandas that is older than this Dask knows
        pytest.skip("no data frames of Dask with this pandas")
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=npartitions)


def test_folds_of_a_part_are_those_of_the_whole(monkeypatch):
    monkeypatch.setattr(_grids, "DEALT_AT_ONCE", 64)
    folds = Folds(500, 3, 7)
    whole = folds.of_rows(0, 500)
    assert np.bincount(whole).tolist() == folds.counts.tolist() == [167, 167, 166]
    for start, stop in ((0, 1), (63, 65), (100, 400), (499, 500), (200, 200)):
        assert folds.of_rows(start, stop).tolist() == whole[start:stop].tolist()
    # Few rows are dealt as one permutation.
    few = np.random.default_rng(7).permutation(np.arange(60) % 3)
    assert assign_folds("P", 60, 3, 7).tolist() == few.tolist()


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(0, 10**6))
def test_a_survey_of_any_blocks_is_that_of_all_rows(sizes, seed):
    X = np.random.default_rng(seed).normal(5.0, 3.0, (1 + sum(sizes), 2))
    blocks = np.split(X, np.cumsum(sizes))
    found = RowBlocks(blocks).survey
    assert sum(found.counts) == len(X)
    np.testing.assert_array_equal(found.low, X.min(axis=0))
    np.testing.assert_array_equal(found.high, X.max(axis=0))
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-12)
    if len(X) > 1:
        np.testing.assert_allclose(found.scale, X.std(axis=0), rtol=1e-9)
    scaled = RowBlocks(blocks).scaled(3.0, 2.0)
    scaled = scaled.scaled((found.mean - 3.0) / 2.0, found.scale / 2.0)
    rows = scaled.take(np.arange(len(X)))
    np.testing.assert_allclose(rows, (X - found.mean) / found.scale)
    np.testing.assert_allclose(scaled.survey.high, rows.max(axis=0), atol=1e-12)


def test_rows_are_taken_by_their_numbers_in_any_order():
    X = np.arange(30.0).reshape(10, 3)
    places = np.array([9, 0, 4, 3])
    for blocks in (RowBlocks([X[:4], X[4:4], X[4:]]), RowBlocks.of_dask(da.from_array(X, (3, 2)))):
        assert blocks.shape == X.shape
        assert blocks.take(places).tolist() == X[places].tolist()
        assert np.concatenate(list(blocks)).tolist() == X.tolist()


@pytest.mark.parametrize("options", [OPTIONS, {}, {**OPTIONS, "direction": "u/p"}])
def test_a_fit_in_blocks_is_the_fit_in_memory(samples, options):
    X_p, X_u = samples
    expected = DensityRatioClassifier(0.3, 0.5, **options).fit_pu(X_p, X_u)
    blocks = [
        (da.from_array(X_p, (40, 2)), da.from_array(X_u, (111, 3))),
        (X_p, RowBlocks(lambda: iter(np.split(X_u, [1, 300])))),
    ]
    for P, U in blocks:
        found = DensityRatioClassifier(0.3, 0.5, **options).fit_pu(P, U)
        np.testing.assert_allclose(
            found.predict_ratio(X_u), expected.predict_ratio(X_u), rtol=1e-6, atol=1e-8
        )
        np.testing.assert_allclose(found.ratio_sums_, expected.ratio_sums_, rtol=1e-6)
        assert found.candidates_.keys() == expected.candidates_.keys()


def test_float32_stays_float32(samples):
    X_p, X_u = (X.astype(np.float32) for X in samples)
    found = DensityRatioClassifier(0.3, widths=100.0, lams=0.1).fit_pu(
        X_p, da.from_array(X_u, (200, 3))
    )
    expected = DensityRatioClassifier(0.3, widths=100.0, lams=0.1).fit_pu(X_p, X_u)
    assert found.ratio_.centers.dtype == np.float32
    np.testing.assert_allclose(
        found.predict_ratio(X_u), expected.predict_ratio(X_u), rtol=1e-3, atol=1e-4
    )


def test_both_priors_are_estimated_as_in_memory(samples):
    X_p, X_u = samples
    lazy = da.from_array(X_u, (200, 3))
    assert estimate_prior(X_p, lazy) == estimate_prior(X_p, X_u)
    classifier = DensityRatioClassifier(0.3, "estimate", **OPTIONS).fit_pu(X_p, X_u)
    found, expected = (estimate_test_prior(classifier, X) for X in (lazy, X_u))
    assert found.test_prior == pytest.approx(expected.test_prior, rel=1e-9)
    labels = classifier.predict(lazy)
    assert classifier.test_prior_.n_rows == len(X_u)
    assert labels.compute().tolist() == classifier.predict(X_u).tolist()


def test_predictions_of_dask_arrays_are_lazy_and_those_in_memory(samples):
    X_p, X_u = samples
    lazy = da.from_array(X_u, (90, 2))
    conditions = [{"test_prior": 0.1}, {"test_prior": 0.9}]
    ratio = DensityRatioClassifier(0.3, 0.5, **OPTIONS).fit_pu(X_p, X_u)
    risk = RiskMinimizationClassifier(0.3, 0.5, n_steps=50, safe=False).fit_pu(X_p, X_u)
    for classifier in (ratio, risk):
        for method in ("predict", "predict_proba", "decision_function"):
            found = getattr(classifier, method)(lazy)
            expected = getattr(classifier, method)(X_u)
            assert found.dtype == expected.dtype
            assert found.shape == expected.shape
            np.testing.assert_allclose(found.compute(), expected, rtol=1e-6, atol=1e-9)
    many = ratio.predict_many(lazy, conditions)
    assert many.shape == (2, len(X_u))
    assert (many.compute() == ratio.predict_many(X_u, conditions)).all()
    later = ratio.predict(lazy)
    expected = ratio.predict(X_u)
    ratio.set_params(test_prior=0.01)
    assert (later.compute() == expected).all(), "the parameters are those of the call"


def test_predictions_of_dask_data_frames_keep_the_index(samples):
    X_p, X_u = samples
    lazy = frame(X_u, 4)
    lazy = lazy[lazy["a"] < 1e6]  # of unknown length
    classifier = DensityRatioClassifier(0.3, 0.5, **OPTIONS)
    classifier.fit_pu(pd.DataFrame(X_p, columns=NAMES), lazy)
    assert classifier.feature_names_in_.tolist() == NAMES
    table = pd.DataFrame(X_u, columns=NAMES)
    labels = classifier.predict(lazy)
    assert (labels.name, labels.dtype) == ("label", classifier.classes_.dtype)
    assert labels.compute().tolist() == classifier.predict(table).tolist()
    assert labels.compute().index.tolist() == list(range(len(X_u)))
    probabilities = classifier.predict_proba(lazy)
    assert list(probabilities.columns) == [-1, 1]
    np.testing.assert_allclose(probabilities.compute(), classifier.predict_proba(table))
    many = classifier.predict_many(lazy, [{"alpha": 0.2}, {"alpha": 0.8}])
    assert (
        classifier.predict_many(table, [{"alpha": 0.2}, {"alpha": 0.8}])
        == many.compute().to_numpy().T
    ).all()
    nothing = lazy[lazy["a"] > 1e9]
    assert len(classifier.predict(nothing).compute()) == 0
    with pytest.raises(ValueError, match="feature names should match"):
        classifier.predict(lazy[["a", "c"]])


def bad_frame(X):
    """A data frame whose second partition does not have the columns that it promises."""
    good = frame(X, 2)

    def rename(part):
        return part.rename(columns={"b": "z"}) if part.index[0] else part

    return good.map_partitions(rename, meta=good._meta, enforce_metadata=False)


def with_nan(X):
    X = X.copy()
    X[500, 1] = np.nan
    return X


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            lambda X: RowBlocks([X[:400], with_nan(X)[400:]]),
            {},
            "^X_u must not contain NaN or infinity, found nan in row 101 of block 1, column 2$",
        ),
        (lambda X: RowBlocks([X, X[:, :2]]), {}, "^X_u must have 3 columns in every block, bl"),
        (lambda X: RowBlocks([X, [["a", 1, 2]]]), {}, "^X_u must hold numbers, block 1 does not$"),
        (lambda X: da.from_array(X[:, :2], (90, 2)), {}, "^X_u has 2 features, but Dens"),
        (lambda X: da.from_array(X[:, 0], 90), {}, "^X_u must be a matrix of rows, got "),
        (lambda X: RowBlocks([X[:0]]), {}, "^X_u must have at least one row$"),
        (RowBlocks, {"selection": "loo"}, "^selection must be 'kfold' for rows that come in bl"),
        (
            lambda X: RowBlocks([X]),
            {"estimator": RandomForestClassifier()},
            "^estimator 'RandomForestClassifier' has no partial_fit and so needs all rows in ",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_blocks_is_said_in_one_line(samples, change, options, message):
    X_p, X_u = samples
    if options.get("selection"):
        options, X_u = {**OPTIONS, **options}, [X_u]
    with pytest.raises(ValueError, match=message) as error:
        DensityRatioClassifier(0.3, **options).fit_pu(X_p, change(X_u))
    assert "\n" not in str(error.value)


def test_a_partition_with_other_columns_is_named(samples):
    X_p, X_u = samples
    with pytest.raises(ValueError, match=r"^X_u must have the columns \['a', 'b', 'c'\] in every "):
        DensityRatioClassifier(0.3).fit_pu(pd.DataFrame(X_p, columns=NAMES), bad_frame(X_u))


def test_what_cannot_be_done_in_blocks_is_refused(samples):
    X_p, X_u = samples
    lazy = da.from_array(X_u, (90, 3))
    with pytest.raises(ValueError, match="^X_u comes in blocks, but RiskMinimizationClassifier "):
        RiskMinimizationClassifier(0.3).fit_pu(X_p, lazy)
    with pytest.raises(ValueError, match=r"^X comes in blocks: use fit_pu\(X\[y == 1\]"):
        DensityRatioClassifier(0.3).fit(lazy, np.zeros(len(X_u)))
    with pytest.raises(NotFittedError):
        DensityRatioClassifier(0.3).predict(lazy)
    with pytest.raises(ValueError, match="^numerator must be in memory for KLIEP"):
        DensityRatioClassifier(0.3, estimator="kliep").fit_pu(lazy, lazy)
    classifier = DensityRatioClassifier(0.3, **OPTIONS).fit_pu(X_p, X_u)
    with pytest.raises(ValueError, match="^X comes in blocks: call the method for each"):
        classifier.predict(RowBlocks([X_u]))
    for nothing in ([], [1.0, 2.0]):
        with pytest.raises(ValueError, match="^X must have (at least one block|blocks that are)"):
            RowBlocks(nothing)


def slowly(rows, start):
    time.sleep(0.3)
    return Survey.of(rows).mean * len(rows)


def test_a_cluster_that_loses_a_worker_gives_the_same_fit(samples, tmp_path, monkeypatch):
    X_p, X_u = samples
    expected = DensityRatioClassifier(0.3, **OPTIONS).fit_pu(X_p, X_u)
    with Cluster(tmp_path, workers=2) as cluster, _cluster.connected(cluster.address) as client:
        wait_for(lambda: len(client.nthreads()) == 2)
        lazy = da.from_array(X_u, (70, 3))
        found = DensityRatioClassifier(0.3, **OPTIONS).fit_pu(X_p, lazy)
        np.testing.assert_allclose(found.predict_ratio(X_u), expected.predict_ratio(X_u), rtol=1e-6)
        blocks = RowBlocks.of_dask(lazy)
        threading.Timer(0.5, cluster.workers[0].kill).start()
        np.testing.assert_allclose(blocks.reduce(slowly), X_u.sum(axis=0))
        assert cluster.workers[0].wait() == -signal.SIGKILL
        # A worker with another release of the package, or without it.
        monkeypatch.setattr(_cluster, "__version__", "99")
        with pytest.raises(
            ValueError, match="^cluster: the worker tcp://.* has pu-shift .*needs 99"
        ):
            DensityRatioClassifier(0.3, **OPTIONS).fit_pu(X_p, lazy)
