import json
import pickle
import re
import tracemalloc
import zipfile
from pathlib import Path

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


def state(header):
    """Return the classifier's state in a header."""
    return header["state"]["steps"][-1]


def refused(path):
    """Return the one line that refuses a file."""
    with pytest.raises(ModelFileError) as error:
        load_model(path)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.filterwarnings("ignore::pu_shift.estimators.LabelWarning")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("scale", "dtype"), [(False, np.float32), (True, np.float64)])
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


def test_a_model_of_a_gpu_is_loaded_on_the_cpu(saved):
    classifier = load_model(saved).set_params(gpu=0)
    save_model(saved, classifier)
    assert load_model(saved).gpu == -1


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


@pytest.mark.parametrize("sizes", [{"n_units": 10**6}, {"n_hidden": 10**6}])
def test_a_network_beyond_its_weights_is_not_built(tmp_path, sizes):
    path = tmp_path / "model.npz"
    save_model(path, MODELS["network"].fit(X, Y))
    rewrite(path, lambda header: state(header)["model"]["sizes"].update(sizes))
    assert "the network is larger than its arrays" in refused(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "os.system"}, "it holds 'os.system', which is no classifier of pu_shift"),
        ({"n_features": 3.0}, "n_features must be an integer >= 1, got 3.0"),
        ({"classes": [1, 1]}, r"classes must be two labels, got \[1, 1\]"),
        ({"params": {"alpha": "0.5x"}}, "alpha must be a number"),
        ({"prior": 2.0}, "prior must lie strictly between 0 and 1, got 2.0"),
        ({"prior": np.nan}, "its header has the number nan"),
        ({"ratio": {"kind": "dict"}}, "kind must be that of a ratio, got 'dict'"),
    ],
)
def test_a_forged_state_is_refused(saved, change, message):
    rewrite(saved, lambda header: state(header).update(change))
    assert re.search(message, refused(saved))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slope": -1.0}, "slope must be a finite number > 0, got -1.0"),
        ({"loss": "squared"}, "slope does not belong to the loss squared"),
        ({"model": {"kind": "GaussianKernelModel", "sizes": None, "values": {}}}, "KeyError"),
    ],
)
def test_a_forged_risk_model_is_refused(tmp_path, change, message):
    path = tmp_path / "model.npz"
    save_model(path, MODELS["gaussian"].fit(X, Y))
    rewrite(path, lambda header: state(header).update(change))
    assert message in refused(path)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("coefficients", None, "damaged pu-shift model: KeyError"),
        ("coefficients", np.ones(2), "coefficients must be finite numbers of shape"),
        ("centers", np.full((100, 3), np.nan), "is not made of finite numbers"),
    ],
)
def test_forged_arrays_are_refused(saved, name, array, message):
    with np.load(saved) as archive:
        header = json.loads(archive["header"].tobytes())
    rewrite(saved, **{state(header)["ratio"][name]["@"]: array})
    assert message in refused(saved)


def test_a_changed_file_is_told_from_a_made_one(saved):
    with np.load(saved) as archive:
        array = archive["array0"]
    rewrite(saved, seal=False, array0=array + 1e-12)
    assert "its content was changed after it was saved" in refused(saved)
    rewrite(saved, array0=array)
    load_model(saved)
    rewrite(saved, lambda header: state(header).update(prior=0.41), seal=False)
    assert "its content was changed after it was saved" in refused(saved)
    rewrite(saved, lambda header: header.update(digest=1), seal=False)
    assert "its content was changed after it was saved" in refused(saved)


class Later(DensityRatioClassifier):
    """The classifier of a release that has a parameter more."""

    def __init__(
        self, prior=None, test_prior=None, alpha=0.5, direction="p/u", *, estimator="auto",
        basis="gaussian", n_centers=None, widths=None, width_factors=None, lams=None,
        selection="kfold", n_folds=5, clip_coefficients=False, pos_label=None, n_jobs=None,
        gpu=-1, random_state=0, colour="red",
    ):  # fmt: skip
        super().__init__(
            prior, test_prior, alpha, direction, estimator=estimator, basis=basis,
            n_centers=n_centers, widths=widths, width_factors=width_factors, lams=lams,
            selection=selection, n_folds=n_folds, clip_coefficients=clip_coefficients,
            pos_label=pos_label, n_jobs=n_jobs, gpu=gpu, random_state=random_state,
        )  # fmt: skip
        self.colour = colour


Later.__name__ = "DensityRatioClassifier"


def test_a_new_parameter_leaves_old_files_readable(saved, monkeypatch):
    expected = load_model(saved).predict_proba(X)
    monkeypatch.setitem(models.CLASSIFIERS, "DensityRatioClassifier", Later)
    loaded = load_model(saved)
    assert loaded.colour == "red"
    np.testing.assert_array_equal(loaded.predict_proba(X), expected)
    old = Path(__file__).with_name("stored") / "ulsif.npz"
    assert load_model(old).colour == "red"


@pytest.mark.parametrize(
    ("writer", "message"),
    [
        ("99.0.1", "model.npz was written by a later version (99.0.1): update pu-shift"),
        ("0.0.1", "model.npz has a parameter 'colour', which there is no more: fit again"),
    ],
)
def test_a_file_with_a_parameter_that_is_not_known(tmp_path, monkeypatch, writer, message):
    path = tmp_path / "model.npz"
    with monkeypatch.context() as patch:
        patch.setitem(models.CLASSIFIERS, "DensityRatioClassifier", Later)
        patch.setattr(models, "__version__", writer)
        classifier = Later(0.4, **RATIO).fit(X, Y)
        save_model(path, classifier)
        expected = classifier.predict_proba(X)
    # At its default it means nothing, and is not in the file.
    np.testing.assert_array_equal(load_model(path).predict_proba(X), expected)
    with monkeypatch.context() as patch:
        patch.setitem(models.CLASSIFIERS, "DensityRatioClassifier", Later)
        patch.setattr(models, "__version__", writer)
        save_model(path, classifier.set_params(colour="blue"))
    assert refused(path) == message


def test_a_parameter_that_went_is_ignored_in_files_that_keep_defaults(tmp_path):
    path = tmp_path / "model.npz"
    path.write_bytes((Path(__file__).with_name("stored") / "ulsif.npz").read_bytes())
    expected = load_model(path).predict_proba(X[:, :2])
    rewrite(path, lambda header: header["params"].update(colour="red"))
    with pytest.warns(UserWarning, match="parameter 'colour', which there is no more: ignored"):
        loaded = load_model(path)
    np.testing.assert_array_equal(loaded.predict_proba(X[:, :2]), expected)


def test_a_later_format_is_said_to_be(saved):
    rewrite(saved, lambda header: header.update(version=4, writer="9.1"))
    assert refused(saved) == "model.npz was written by a later version (9.1): update pu-shift"


def test_files_of_version_1_had_neither_digest_nor_preparation(tmp_path):
    path = tmp_path / "model.npz"
    path.write_bytes((Path(__file__).with_name("stored") / "ulsif.npz").read_bytes())
    expected = load_model(path).predict(X[:, :2])

    def as_it_was(header):
        header["version"] = 1
        del header["digest"], header["preparation"]
        for name in ("estimator", "pos_label", "n_jobs"):
            del header["params"][name]
        del header["fitted"]["average"]

    rewrite(path, as_it_was)
    loaded = load_model(path)
    assert loaded.estimator == "ulsif"
    np.testing.assert_array_equal(loaded.predict(X[:, :2]), expected)


def test_a_truncated_file_is_refused(saved):
    content = saved.read_bytes()
    for length in (10, len(content) // 2, len(content) - 10):
        saved.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match="^model.npz is"):
            load_model(saved)


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
        ({"medians": [0.0, 0.0, 0.0]}, "KeyError 'categories'"),
        ({"medians": [0.0, None], "categories": [None, []]}, "categories must be texts, got []"),
        ({"medians": [1], "categories": [None]}, "it has 3 names for other features"),
    ],
)
def test_a_forged_preparation_is_refused(tmp_path, preparation, message):
    path = tmp_path / "model.npz"
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    save_model(path, MODELS["linear"].fit(frame, Y))
    forged = {"kind": "TablePreparation", **preparation}
    rewrite(path, lambda header: header["state"]["steps"].insert(0, forged))
    assert message in refused(path)
