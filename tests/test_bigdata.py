"""Rows that do not fit into memory: samples for fits, lazy predictions, checks of workers."""

import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError

import pu_shift
from pu_shift import (
    DensityRatioClassifier,
    RiskMinimizationClassifier,
    bigdata,
    estimate_prior,
    estimate_test_prior,
)
from pu_shift.bigdata import connected, in_memory, map_rows, on_worker, results
from tests.mixtures import pu_samples
from tests.paper.engine import Cluster, wait_for

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
NAMES = ["a", "b", "c"]
SCALES = [100.0, 10.0, 1.0]
OPTIONS = {"estimator": "ulsif", "n_centers": 30}


@pytest.fixture(scope="module")
def samples():
    X_p, X_u = pu_samples(150, 700, 0.3, d=3)
    return X_p * SCALES, X_u * SCALES


def frame(X, npartitions):
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=npartitions)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(1, 20), st.integers(0, 99))
def test_the_sample_is_the_same_for_any_partitions(sizes, most, seed):
    X = np.arange(2.0 * (1 + sum(sizes))).reshape(-1, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bigdata, "MAX_SAMPLE_ROWS", most)
        whole, parts = (
            in_memory({"X": da.from_array(X, chunks=(chunks, 2))}, seed)[0]
            for chunks in (len(X), (*sizes, 1))
        )
    assert whole.tolist() == parts.tolist()
    assert len(whole) == min(most, len(X))
    assert len(np.unique(whole[:, 0])) == len(whole)
    assert set(whole[:, 0]) <= set(X[:, 0])


@pytest.mark.parametrize("options", [OPTIONS, {"estimator": "linear"}, {"estimator": "kliep"}])
def test_a_fit_to_few_rows_is_the_fit_in_memory(samples, options):
    X_p, X_u = samples
    expected = DensityRatioClassifier(0.3, 0.5, **options).fit_pu(X_p, X_u)
    found = DensityRatioClassifier(0.3, 0.5, **options).fit_pu(
        da.from_array(X_p, (40, 2)), da.from_array(X_u, (111, 3))
    )
    np.testing.assert_array_equal(found.predict_ratio(X_u), expected.predict_ratio(X_u))
    np.testing.assert_array_equal(found.ratio_sums_, expected.ratio_sums_)


def test_any_estimator_takes_the_sample(samples, monkeypatch):
    monkeypatch.setattr(bigdata, "MAX_SAMPLE_ROWS", 300)
    X_p, X_u = samples
    trees = RandomForestClassifier(10, random_state=0)
    lazy = da.from_array(X_u, (90, 3))
    for classifier in (
        DensityRatioClassifier(0.3, estimator=trees),
        RiskMinimizationClassifier(0.3, n_steps=20, safe=False),
    ):
        assert classifier.fit_pu(X_p, lazy).predict(X_u).shape == (len(X_u),)


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
    ("change", "message"),
    [
        (
            lambda X: da.from_array(with_nan(X), (400, 3)),
            "^X_u must not contain NaN or infinity, found nan in row 101 of partition 1, column 2$",
        ),
        (lambda X: frame(X, 2).astype({"b": str}).assign(b="x"), "^X_u must hold numbers, part"),
        (lambda X: da.from_array(X[:, :2], (90, 2)), "^X_u has 2 features, but Dens"),
        (lambda X: da.from_array(X[:, 0], 90), "^X_u must be a matrix of rows, got "),
        (lambda X: da.from_array(X[:0], (1, 3)), "^X_u must have at least one row$"),
    ],
)
def test_what_is_wrong_with_rows_is_said_in_one_line(samples, change, message):
    X_p, X_u = samples
    with pytest.raises(ValueError, match=message) as error:
        DensityRatioClassifier(0.3).fit_pu(X_p, change(X_u))
    assert "\n" not in str(error.value)


def test_a_partition_with_other_columns_is_named(samples):
    X_p, X_u = samples
    with pytest.raises(ValueError, match=r"^X_u must have the columns \['a', 'b', 'c'\] in every "):
        DensityRatioClassifier(0.3).fit_pu(pd.DataFrame(X_p, columns=NAMES), bad_frame(X_u))


def test_what_cannot_be_done_is_refused(samples):
    X_u = samples[1]
    lazy = da.from_array(X_u, (90, 3))
    with pytest.raises(ValueError, match=r"^X is a Dask collection: use fit_pu\(X\[y == 1\]"):
        DensityRatioClassifier(0.3).fit(lazy, np.zeros(len(X_u)))
    with pytest.raises(NotFittedError):
        DensityRatioClassifier(0.3).predict(lazy)
    with pytest.raises(AttributeError, match=r"^pu_shift.RowBlocks is gone: make a Dask collect"):
        _ = pu_shift.RowBlocks


def slowly(rows):
    time.sleep(0.3)
    return rows.sum(axis=1)


def test_a_cluster_that_loses_a_worker_gives_the_same(samples, tmp_path, monkeypatch):
    X_p, X_u = samples
    expected = DensityRatioClassifier(0.3, **OPTIONS).fit_pu(X_p, X_u)
    with Cluster(tmp_path, workers=2) as cluster, connected(cluster.address) as client:
        wait_for(lambda: len(client.nthreads()) == 2)
        lazy = da.from_array(X_u, (70, 3))
        found = DensityRatioClassifier(0.3, **OPTIONS).fit_pu(X_p, lazy)
        np.testing.assert_array_equal(found.predict_ratio(X_u), expected.predict_ratio(X_u))
        sums = map_rows(slowly, lazy, np.zeros(0), "sum")
        threading.Timer(0.5, cluster.workers[0].kill).start()
        np.testing.assert_allclose(sums.compute(), X_u.sum(axis=1))
        assert cluster.workers[0].wait() == -signal.SIGKILL
        monkeypatch.setattr(bigdata, "__version__", "99")
        with pytest.raises(
            ValueError, match=r"^cluster: the worker tcp://.* has pu-shift .*, it needs 99$"
        ):
            DensityRatioClassifier(0.3, **OPTIONS).fit_pu(X_p, lazy)


def test_a_worker_of_another_version_that_joins_later_is_refused(tmp_path):
    package = tmp_path / "other" / "pu_shift"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "_version.py").write_text('__version__ = "0.1"')
    task = on_worker(len)
    with Cluster(tmp_path, workers=1) as cluster, connected(cluster.address) as client:
        assert client.submit(task, "abc").result() == 3
        cluster.workers[0].kill()
        cluster.add_worker(path=[package.parent])
        with pytest.raises(ValueError, match=r"^cluster: the worker tcp://\S* has pu-shift 0.1"):
            client.submit(task, "abcd").result()
        with pytest.raises(ValueError, match=r"^cluster: the worker tcp://\S* has pu-shift 0.1"):
            list(results(client, len, [("abcd",)]))  # as the tables are run
