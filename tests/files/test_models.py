import json
import pickle
import re
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from pu_shift import MLP, DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift._chainer import chainer
from pu_shift.files import models
from pu_shift.files.models import ModelFileError, load_model, save_model
from pu_shift.files.preparation import TablePreparation
from tests.mixtures import pu_samples
from tests.networks import made

X_P, X_U = pu_samples(60, 120, 0.4, d=3)
X, Y = np.concatenate([X_P, X_U]), np.repeat([1, 0], [60, 120])
RATIO = {"widths": np.array([1.0]), "lams": [0.1]}
MODELS = {
    "ratio": DensityRatioClassifier(0.4, 0.6, 0.3, **RATIO),
    "u/p linear": DensityRatioClassifier(0.4, direction="u/p", basis="linear", lams=0.1),
    "estimated prior": DensityRatioClassifier(**RATIO),
    "estimated test prior": DensityRatioClassifier(0.4, "estimate", **RATIO),
    "linear": RiskMinimizationClassifier(0.4, 0.6, n_steps=20, safe=False),
    "gaussian": RiskMinimizationClassifier(
        0.4, basis="gaussian", loss="double_hinge", n_steps=20, n_centers=np.int64(9), safe=False
    ),
    "network": RiskMinimizationClassifier(
        0.4, correction="ascent", loss="logistic", model=made(MLP, 3, 5, 2), n_steps=20, safe=False
    ),
}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.npz"
    save_model(path, DensityRatioClassifier(0.4, **RATIO).fit(X, Y))
    return path


def rewrite(path, change_header=None, seal=True, **arrays):
    """Change a model file; sealed, its digest fits again, as a forger would see to."""
    with np.load(path) as archive:
        content = {**archive, **arrays}
    header = json.loads(content.pop("header").tobytes())
    if change_header:
        change_header(header)
    content = {name: array for name, array in content.items() if array is not None}
    if seal and "digest" in header:
        header["digest"] = models._digest(header, content)
    content["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **content)


def refused(path):
    """Return the one line that refuses a file."""
    with pytest.raises(ModelFileError) as error:
        load_model(path)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.filterwarnings("ignore::pu_shift.estimators.LabelWarning")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_loaded_model_is_the_saved_one(tmp_path, name, scale, dtype):
    classifier = MODELS[name]
    estimator = make_pipeline(StandardScaler(), classifier) if scale else classifier
    frame = pd.DataFrame(X.astype(dtype), columns=["a", "b", "c"])
    estimator.fit(frame, np.where(Y == 1, "sick", "not known"))
    save_model(tmp_path / "model.npz", estimator)
    loaded = load_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict(frame), estimator.predict(frame))
    np.testing.assert_array_equal(loaded.predict_proba(frame), estimator.predict_proba(frame))
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    last = loaded[-1] if scale else loaded
    assert last.condition == classifier.condition
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"a": "z"}))


def test_a_loaded_ratio_still_changes_its_condition(saved):
    loaded = load_model(saved)
    low, high = (loaded.set_params(test_prior=p).predict(X).sum() for p in (0.1, 0.9))
    assert low < high


def test_a_model_of_a_gpu_is_loaded_on_the_cpu(saved):
    rewrite(saved, lambda header: header["params"].update(gpu=0))
    assert load_model(saved).predict(X).shape == Y.shape


def test_a_save_replaces_the_file_whole(saved):
    save_model(saved, MODELS["linear"].fit(X, Y))
    assert isinstance(load_model(saved), RiskMinimizationClassifier)
    assert [path.name for path in saved.parent.iterdir()] == ["model.npz"]


def test_pickles_and_other_files_are_refused(tmp_path):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("code of the file was run",)

    path = tmp_path / "model.npz"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError, match="^model.npz is not .*: it is no NumPy archive$"):
        load_model(path)
    np.savez(path, header=np.array([Bomb()], dtype=object))
    with pytest.raises(ModelFileError, match="its array 'header.npy' holds Python objects$"):
        load_model(path)
    save_model(path, MODELS["linear"].fit(X, Y))
    rewrite(path, bomb=np.array([Bomb()], dtype=object))
    with pytest.raises(ModelFileError, match="its array 'bomb.npy' holds Python objects$"):
        load_model(path)
    np.savez(path, weights=np.ones(3))
    with pytest.raises(ModelFileError, match="it has no header$"):
        load_model(path)
    np.savez(path, header=np.frombuffer(b"{", dtype=np.uint8))
    with pytest.raises(ModelFileError, match="its header cannot be read$"):
        load_model(path)
    with pytest.raises(ModelFileError, match="^no such file: "):
        load_model(tmp_path / "absent.npz")


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (zipfile.ZIP_BZIP2, "compressed by another method than deflate"),
        (zipfile.ZIP_LZMA, "compressed by another method than deflate"),
        (zipfile.ZIP_DEFLATED, "it unpacks to far more than its size"),
    ],
)
def test_a_file_that_unpacks_to_too_much_is_not_unpacked(saved, method, message):
    with (
        zipfile.ZipFile(saved, "a", method) as archive,
        archive.open("bomb.npy", "w", force_zip64=True) as member,
    ):
        shape = {"descr": "<f8", "fortran_order": False, "shape": (100 << 17,)}
        np.lib.format.write_array_header_1_0(member, shape)
        for _ in range(100):
            member.write(bytes(1 << 20))
    tracemalloc.start()
    assert message in refused(saved)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_a_member_that_comes_twice_is_refused(saved):
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("header.npy", b"")
    assert "its members must be distinct, got 'header.npy' twice" in refused(saved)


@pytest.mark.parametrize("sizes", [{"n_units": 10**6}, {"n_hidden": 10**6}, {"n_features": 10**9}])
@pytest.mark.parametrize("place", [("params", "model"), ("fitted", "network")])
def test_a_network_beyond_its_weights_is_not_built(tmp_path, sizes, place):
    path = tmp_path / "model.npz"
    save_model(path, MODELS["network"].fit(X, Y))
    rewrite(path, lambda header: header[place[0]][place[1]].update(sizes))
    with pytest.raises(ModelFileError, match="its network is larger than its arrays$"):
        load_model(path)


def fields(**changes):
    """Return a change of the header's fields; a dictionary goes into the field's own."""

    def change(header):
        for name, value in changes.items():
            header[name] = {**header[name], **value} if type(value) is dict else value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "names another format"),
        ({"version": 3}, "version must be one of 1, 2, got 3"),
        ({"version": True}, "version must be one of 1, 2, got True"),
        ({"version": "1"}, "version must be one of 1, 2, got '1'"),
        ({"classifier": "os.system"}, "classifier must be one of 'Dens.*got 'os.system'"),
        ({"classifier": ["a"]}, "classifier must be one of"),
        ({"scaler": 0}, "scaler must be true or false, got 0"),
        ({"scaler": True}, "damaged pu-shift model: KeyError 'scaler/mean'"),
        ({"n_features": 2}, r"must be finite numbers of shape \(.*, got shape "),
        ({"n_features": 3.0}, "n_features must be a positive integer, got 3.0"),
        ({"feature_names": ["a"]}, "1 names for 3 features"),
        ({"feature_names": ["a", "b", "a"]}, "feature_names must be a list of distinct texts"),
        ({"feature_names": ["a", 1, "b"]}, "feature_names must be a list of distinct texts"),
        ({"classes": [1, 1]}, r"classes must be two labels in order, got \[1, 1\]"),
        ({"classes": [1, 0]}, "classes must be two labels in order"),
        ({"classes": [0.0, np.nan]}, "classes must be two labels in order"),
        ({"classes": [0, "1"]}, "classes must be two labels in order"),
        ({"classes": [[0], [1]]}, "classes must be two labels in order"),
        ({"classes": [0]}, "classes must be two labels in order"),
        ({"params": {"evil": 1}}, "params has an unknown 'evil'"),
        ({"params": []}, "params must be a mapping"),
        ({"params": {"alpha": "0.5"}}, "alpha must be strictly between 0 and 1, got '0.5'"),
        ({"params": {"test_prior": 1}}, "test_prior must be 'estimate', null or strictly between"),
        ({"params": {"lams": [[1.0]]}}, "lams must be a number, text or a list of them"),
        ({"params": {"lams": [1e308]}}, "lams must be a number, text or a list of them"),
        ({"prior": 2.0}, "prior must be strictly between 0 and 1, got 2.0"),
        ({"prior": np.nan}, "prior must be strictly between 0 and 1, got nan"),
        ({"fitted": {"width": 0}}, "width must be null or positive, got 0"),
        ({"fitted": {"width": -1.0}}, "width must be null or positive, got -1.0"),
        ({"fitted": {"width": None}}, "width must be a number, got None"),
        ({"fitted": {"lam": -1}}, "lam must be null or not negative, got -1"),
        ({"fitted": {"direction": "p"}}, "direction must be one of 'p/u', 'u/p', got 'p'"),
        ({"fitted": {"more": 1}}, "fitted has an unknown 'more'"),
        ({"more": 1}, "its header has an unknown 'more'"),
    ],
)
def test_a_forged_header_is_refused(saved, change, message):
    rewrite(saved, fields(**change))
    assert re.search(message, refused(saved))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slope": -1.0}, "slope must be null or positive, got -1.0"),
        ({"slope": "1"}, "slope must be null or positive, got '1'"),
        ({"slope": None}, "slope does not belong to the loss double_hinge"),
        ({"loss": "squared"}, "slope does not belong to the loss squared"),
        ({"loss": "zero_one"}, "loss must be one of"),
        ({"condition": [0.4, 0.4]}, "condition must be three numbers between 0 and 1"),
        ({"condition": [0.4, 0.4, 2]}, "condition must be three numbers between 0 and 1"),
        ({"network": {"n_units": 1}}, "network must be null or the sizes of a network"),
        ({"width": None}, "its Gaussian basis needs centres and a width"),
    ],
)
def test_a_forged_risk_model_is_refused(tmp_path, change, message):
    path = tmp_path / "model.npz"
    save_model(path, MODELS["gaussian"].fit(X, Y))
    rewrite(path, fields(fitted=change))
    assert message in refused(path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"extra": np.ones(1)}, "unknown array 'extra'"),
        ({"coefficients": None}, "damaged pu-shift model: KeyError"),
        ({"coefficients": np.ones(2)}, "coefficients must be finite numbers of shape "),
        ({"coefficients": np.array(["x"])}, "'coefficients' is not made of finite numbers"),
        ({"coefficients": np.full(100, 1e308)}, "'coefficients' is not made of finite numbers"),
        ({"coefficients": np.full(100, np.float32("inf"))}, "'coefficients' is not made of finite"),
        ({"centers": np.full((100, 3), np.nan)}, "'centers' is not made of finite numbers"),
        (
            {"centers": np.zeros((0, 3)), "coefficients": np.zeros(0)},
            "centers must be finite numbers of shape (1, 3), got shape (0, 3)",
        ),
    ],
)
def test_forged_arrays_are_refused(saved, arrays, message):
    rewrite(saved, **arrays)
    assert message in refused(saved)


@pytest.mark.parametrize("scale", [-1.0, 0.0])
def test_a_scale_that_is_not_positive_is_refused(tmp_path, scale):
    path = tmp_path / "model.npz"
    save_model(path, make_pipeline(StandardScaler(), MODELS["linear"]).fit(X, Y))
    rewrite(path, **{"scaler/scale": np.array([1.0, scale, 1.0])})
    assert "its scale must be positive" in refused(path)


def test_keys_that_come_twice_are_refused(saved):
    with np.load(saved) as archive:
        content = dict(archive)
    text = content["header"].tobytes().replace(b'{"classes"', b'{"prior": 0.9, "classes"', 1)
    np.savez(saved, **{**content, "header": np.frombuffer(text, dtype=np.uint8)})
    assert "its header's keys must be distinct, got 'prior' twice" in refused(saved)


def test_a_changed_file_is_told_from_a_made_one(saved):
    with np.load(saved) as archive:
        coefficients = archive["coefficients"]
    rewrite(saved, seal=False, coefficients=coefficients + 1e-12)
    assert "its content was changed after it was saved" in refused(saved)
    rewrite(saved, coefficients=coefficients)
    load_model(saved)
    rewrite(saved, lambda header: header.update(prior=0.41), seal=False)
    assert "its content was changed after it was saved" in refused(saved)
    rewrite(saved, lambda header: header.update(digest=1), seal=False)
    assert "digest must be text, got 1" in refused(saved)


def test_files_of_version_1_had_neither_digest_nor_preparation(saved):
    expected = load_model(saved).predict(X)

    def as_it_was(header):
        header["version"] = 1
        del header["digest"], header["preparation"]
        for name in ("estimator", "pos_label", "n_jobs"):
            del header["params"][name]
        del header["fitted"]["average"]

    rewrite(saved, as_it_was)
    np.testing.assert_array_equal(load_model(saved).predict(X), expected)


def test_a_truncated_file_is_refused(saved):
    content = saved.read_bytes()
    for length in (10, len(content) // 2, len(content) - 10):
        saved.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match="^model.npz is"):
            load_model(saved)


def test_a_forged_network_is_refused(tmp_path):
    path = tmp_path / "model.npz"
    save_model(path, MODELS["network"].fit(X, Y))
    rewrite(path, lambda header: header["fitted"]["network"].update(n_hidden=1))
    with pytest.raises(ModelFileError, match="its model has other parameters than it should"):
        load_model(path)


def test_what_no_file_can_hold_is_refused(tmp_path):
    path = tmp_path / "model.npz"
    chain = chainer.Sequential(chainer.links.Linear(3, 1))
    network = RiskMinimizationClassifier(0.4, model=chain, n_steps=2, safe=False).fit(X, Y)
    with pytest.raises(ModelFileError, match="^model must be a pu_shift.MLP .*got Sequential"):
        save_model(path, network)
    with pytest.raises(ModelFileError, match="^estimator must be a .*got StandardScaler"):
        save_model(path, StandardScaler().fit(X))
    other = make_pipeline(MinMaxScaler(), DensityRatioClassifier(0.4, **RATIO)).fit(X, Y)
    with pytest.raises(ModelFileError, match="^estimator must be"):
        save_model(path, other)
    half = make_pipeline(StandardScaler(with_std=False), MODELS["ratio"]).fit(X, Y)
    with pytest.raises(ModelFileError, match="^estimator must have a StandardScaler with mean"):
        save_model(path, half)
    odd = DensityRatioClassifier(0.4, widths=range(1, 2), lams=0.1).fit(X, Y)
    with pytest.raises(ModelFileError, match="^widths must be a number, text or a list"):
        save_model(path, odd)
    with pytest.raises(ValueError, match="not fitted"):
        save_model(path, DensityRatioClassifier(0.4))
    assert not path.exists()


@pytest.mark.parametrize("scale", [False, True])
def test_a_preparation_is_saved_without_pickle(tmp_path, scale):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).astype({"c": object})
    frame.loc[::7, "a"] = np.nan
    frame["c"] = np.where(X[:, 2] > 0, "high", "low")
    steps = [TablePreparation(), StandardScaler(), MODELS["linear"]]
    estimator = make_pipeline(*(steps if scale else [steps[0], steps[2]])).fit(frame, Y)
    save_model(tmp_path / "model.npz", estimator)
    loaded = load_model(tmp_path / "model.npz")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    frame.loc[0, "c"] = "unseen"
    np.testing.assert_array_equal(loaded.predict_proba(frame), estimator.predict_proba(frame))


@pytest.mark.parametrize(
    ("preparation", "message"),
    [
        ({"medians": [0.0, 0.0, 0.0]}, "preparation must be null, or a median or categories"),
        ({"medians": [0.0], "categories": 3}, "preparation must be null, or a median or categ"),
        ({"medians": [0.0], "categories": []}, "preparation must be null, or a median or categ"),
        ({"medians": [0.0, None], "categories": [["a"], ["b"]]}, "preparation must be null"),
        ({"medians": [0.0, None], "categories": [None, []]}, "preparation must be null"),
        ({"medians": ["0", 1], "categories": [None, None]}, "preparation must be null"),
        ({"medians": [1, 2], "categories": [None, None]}, "it prepares 2 of 3 features"),
        ({"medians": [1, None], "categories": [None, ["a", "b"]]}, "it has 3 names for 2 feat"),
    ],
)
def test_a_forged_preparation_is_refused(tmp_path, preparation, message):
    path = tmp_path / "model.npz"
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    save_model(path, MODELS["linear"].fit(frame, Y))
    rewrite(path, lambda header: header.update(preparation=preparation))
    assert message in refused(path)
