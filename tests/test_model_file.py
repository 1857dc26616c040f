import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from pu_shift import MLP, DensityRatioClassifier, RiskMinimizationClassifier, model_file
from pu_shift._chainer import chainer
from pu_shift.model_file import ModelFileError, load_model, save_model
from tests.mixtures import pu_samples

X_P, X_U = pu_samples(60, 120, 0.4, d=3)
X, Y = np.concatenate([X_P, X_U]), np.repeat([1, 0], [60, 120])
RATIO = {"widths": np.array([1.0]), "lams": [0.1]}
MODELS = {
    "ratio": DensityRatioClassifier(0.4, 0.6, 0.3, **RATIO),
    "u/p linear": DensityRatioClassifier(0.4, direction="u/p", basis="linear", lams=0.1),
    "estimated prior": DensityRatioClassifier(**RATIO),
    "linear": RiskMinimizationClassifier(0.4, 0.6, n_steps=20),
    "gaussian": RiskMinimizationClassifier(
        0.4, basis="gaussian", loss="double_hinge", n_steps=20, n_centers=np.int64(9)
    ),
    "network": RiskMinimizationClassifier(
        0.4, correction="ascent", loss="logistic", model=MLP(3, 5, 2), n_steps=20
    ),
}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.npz"
    save_model(path, DensityRatioClassifier(0.4, **RATIO).fit(X, Y))
    return path


def rewrite(path, change_header=None, **arrays):
    with np.load(path) as archive:
        content = {**archive, **arrays}
    header = json.loads(content["header"].tobytes())
    if change_header:
        change_header(header)
    content["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **{name: array for name, array in content.items() if array is not None})


@pytest.mark.filterwarnings("ignore::pu_shift.classifiers.LabelWarning")
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
    with pytest.raises(ModelFileError, match="its header cannot be read$"):
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
    with pytest.raises(ModelFileError, match="^path must be a model file, got"):
        load_model(tmp_path / "absent.npz")


def test_a_file_that_unpacks_to_too_much_is_not_unpacked(saved, monkeypatch):
    monkeypatch.setattr(model_file, "MAX_BYTES", 1000)
    with pytest.raises(ModelFileError, match="it unpacks to more than 1,000 bytes$"):
        load_model(saved)


@pytest.mark.parametrize("sizes", [{"n_units": 10**6}, {"n_hidden": 10**6}, {"n_features": 10**9}])
@pytest.mark.parametrize("place", [("params", "model"), ("fitted", "network")])
def test_a_network_beyond_its_weights_is_not_built(tmp_path, sizes, place):
    path = tmp_path / "model.npz"
    save_model(path, MODELS["network"].fit(X, Y))
    rewrite(path, lambda header: header[place[0]][place[1]].update(sizes))
    with pytest.raises(ModelFileError, match="its network is larger than its arrays$"):
        load_model(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "names another format"),
        ({"version": 2}, "it has version 2, this release knows 1"),
        ({"classifier": "os.system"}, "it holds an unknown 'os.system'"),
        ({"n_features": 2}, "shape \\(60, 3\\)|shape .* in place of"),
        ({"feature_names": ["a"]}, "1 names for 3 features"),
        ({"params": {"evil": 1}}, "damaged pu-shift model: TypeError"),
        ({"prior": 2.0}, "damaged pu-shift model: ValueError prior must lie"),
    ],
)
def test_a_forged_header_is_refused(saved, change, message):
    rewrite(saved, lambda header: header.update(change))
    with pytest.raises(ModelFileError, match=message) as error:
        load_model(saved)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"extra": np.ones(1)}, "unknown array 'extra'"),
        ({"coefficients": None}, "damaged pu-shift model: KeyError"),
        ({"coefficients": np.ones(2)}, "an array of shape \\(2,\\) in place of"),
        ({"coefficients": np.array(["x"])}, "'coefficients' is not made of finite numbers"),
        ({"centers": np.full((100, 3), np.nan)}, "'centers' is not made of finite numbers"),
    ],
)
def test_forged_arrays_are_refused(saved, arrays, message):
    rewrite(saved, **arrays)
    with pytest.raises(ModelFileError, match=message):
        load_model(saved)


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
    network = RiskMinimizationClassifier(0.4, model=chain, n_steps=2).fit(X, Y)
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
