"""Fitted classifiers in files that cannot run code: arrays and a JSON header.

The file is a NumPy archive (``.npz``) of plain numbers; objects are not unpickled.
Its header names the format, its version and the classifier; whatever is not
exactly as expected is refused.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any, Union

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from pu_shift._chainer import chainer
from pu_shift._checks import shown
from pu_shift._files import replacing
from pu_shift.classifiers import DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.device import to_numpy
from pu_shift.links import MLP, GaussianKernelModel, LinearModel
from pu_shift.priors import Condition
from pu_shift.ulsif import ULSIF

PathLike = Union[str, "os.PathLike[str]"]

FORMAT, VERSION = "pu-shift model", 1
CLASSIFIERS = {kind.__name__: kind for kind in (DensityRatioClassifier, RiskMinimizationClassifier)}
_HEADER = "header"
MAX_BYTES = 1 << 30
"""No model unpacks to more; a bomb would."""


class ModelFileError(ValueError):
    """A file that is not a model of this package, or a model that no file can hold."""


def save_model(path: PathLike, estimator: Any) -> None:
    """Save a fitted classifier, or a pipeline of a ``StandardScaler`` and one.

    Parameters
    ----------
    path
        The file; replaced when it exists.
    estimator
        A :class:`pu_shift.DensityRatioClassifier` or
        :class:`pu_shift.RiskMinimizationClassifier`. Of the networks only
        :class:`pu_shift.MLP` can be saved: others are code of yours.

    Examples
    --------
    >>> import tempfile
    >>> rng = np.random.default_rng(0)
    >>> X_p, X_u = rng.normal(1.0, 1.0, (50, 1)), rng.normal(0.0, 1.0, (50, 1))
    >>> classifier = DensityRatioClassifier(0.4, widths=1.0, lams=0.1).fit_pu(X_p, X_u)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(Path(folder, "model.npz"), classifier)
    ...     loaded = load_model(Path(folder, "model.npz"))
    >>> bool((loaded.predict(X_u) == classifier.predict(X_u)).all())
    True
    """
    scaler, classifier = _steps(estimator)
    check_is_fitted(classifier, "classes_")
    arrays: dict[str, np.ndarray] = {}
    first = classifier if scaler is None else scaler
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "classifier": type(classifier).__name__,
        "scaler": scaler is not None,
        "params": {name: _plain(name, value) for name, value in _params(classifier).items()},
        "n_features": int(classifier.n_features_in_),
        "feature_names": getattr(first, "feature_names_in_", np.array([])).tolist(),
        "classes": classifier.classes_.tolist(),
        "prior": classifier.prior_,
    }
    if scaler is not None:
        arrays["scaler/mean"], arrays["scaler/scale"] = scaler.mean_, scaler.scale_
    if isinstance(classifier, DensityRatioClassifier):
        ratio = classifier.ratio_
        header["fitted"] = {
            "direction": classifier.direction_,
            "width": _number(ratio.width),
            "lam": _number(ratio.lam),
        }
        arrays["coefficients"] = to_numpy(ratio.coefficients)
        if ratio.centers is not None:
            arrays["centers"] = to_numpy(ratio.centers)
    else:
        condition = classifier.condition_
        header["fitted"] = {
            "condition": [condition.prior, condition.test_prior, condition.alpha],
            "width": _number(classifier.width_),
            "lam": _number(classifier.lam_),
            "slope": _number(classifier.slope_),
            "loss": classifier.loss_,
            "network": _network(classifier.model),
        }
        serializer = chainer.serializers.DictionarySerializer()
        serializer.save(classifier.model_)
        arrays.update(
            (f"model/{name}", to_numpy(value)) for name, value in serializer.target.items()
        )
    content = io.BytesIO()
    text = json.dumps(header, sort_keys=True).encode("utf-8")
    arrays[_HEADER] = np.frombuffer(text, dtype=np.uint8)
    np.savez(content, **arrays)  # type: ignore[arg-type]  # its options have other names
    with replacing(path, binary=True) as file:
        file.write(content.getvalue())


def load_model(path: PathLike) -> Any:
    """Load a classifier that :func:`save_model` saved.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    estimator
        The fitted classifier or pipeline, on the CPU.

    Raises
    ------
    ModelFileError
        When the file is no such model, in one line that says why.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "notes.txt").write_text("no model")
    ...     load_model(Path(folder, "notes.txt"))
    Traceback (most recent call last):
    ...
    pu_shift.model_file.ModelFileError: notes.txt is not a pu-shift model: it is no NumPy archive
    """
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"path must be a model file, got {str(path)!r}")
    try:
        return _restore(*_read(path))
    except ModelFileError as error:
        raise ModelFileError(f"{path.name} is not a pu-shift model: {error}") from None
    except Exception as error:  # whatever a damaged or forged file leads to
        reason = (str(error).splitlines() or [""])[0]
        raise ModelFileError(
            f"{path.name} is a damaged pu-shift model: {type(error).__name__} {reason}"
        ) from None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if not zipfile.is_zipfile(path):
        raise ModelFileError("it is no NumPy archive")
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: info for info in archive.infolist()}
        if sum(info.file_size for info in members.values()) > MAX_BYTES:
            raise ModelFileError(f"it unpacks to more than {MAX_BYTES:,} bytes")
        if f"{_HEADER}.npy" not in members:
            raise ModelFileError("it has no header")
        try:
            content = _array(archive, members.pop(f"{_HEADER}.npy")).tobytes()
            header = json.loads(content.decode("utf-8"))
        except ValueError:
            raise ModelFileError("its header cannot be read") from None
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise ModelFileError("its header names another format")
        if header.get("version") != VERSION:
            raise ModelFileError(
                f"it has version {shown(header.get('version'))}, this release knows {VERSION}"
            )
        if header.get("classifier") not in CLASSIFIERS:
            raise ModelFileError(f"it holds an unknown {shown(header.get('classifier'))}")
        arrays = {name[: -len(".npy")]: _array(archive, members[name]) for name in members}
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise ModelFileError(f"its array {name!r} is not made of finite numbers")
    return header, arrays


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Read an array, of no more bytes than the archive says that there are."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = read_header(stream)
        if dtype.hasobject:
            raise ModelFileError(f"its array {member.filename!r} holds Python objects")
        array = np.frombuffer(stream.read(), dtype=dtype)
    return array.reshape(shape, order="F" if fortran else "C")


def _restore(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    params, fitted, d = {**header["params"], "gpu": -1}, header["fitted"], header["n_features"]
    if params.get("model") is not None:
        params["model"] = _new_network(params["model"], arrays)
    classifier = CLASSIFIERS[header["classifier"]](**params)
    classifier.classes_ = np.array(header["classes"])
    classifier.prior_ = Condition(header["prior"]).prior
    classifier.n_features_in_ = d
    # Under a scaler the classifier sees its arrays, which have no names.
    names = np.array(header["feature_names"], dtype=object)
    if len(names) not in (0, d) or classifier.classes_.shape != (2,):
        raise ModelFileError(f"it has {len(names)} names for {d} features")
    scaler = None
    if header["scaler"]:
        scaler = StandardScaler()
        scaler.mean_ = _shaped(arrays.pop("scaler/mean"), (d,))
        scaler.scale_ = _shaped(arrays.pop("scaler/scale"), (d,))
        scaler.var_, scaler.n_features_in_ = scaler.scale_**2, d
    if len(names):
        (classifier if scaler is None else scaler).feature_names_in_ = names
    width, lam = (np.nan if fitted[name] is None else fitted[name] for name in ("width", "lam"))
    if isinstance(classifier, DensityRatioClassifier):
        coefficients = arrays.pop("coefficients")
        centers = arrays.pop("centers", None)
        b = d + 1 if centers is None else len(_shaped(centers, (len(centers), d)))
        _shaped(coefficients, (b,))
        classifier.ratio_ = ULSIF.restore(coefficients, d, centers, width, lam)
        classifier.direction_ = fitted["direction"]
    else:
        classifier.condition_ = Condition(*fitted["condition"])
        classifier.width_, classifier.lam_ = width, lam
        classifier.loss_ = fitted["loss"]
        classifier.slope_ = np.nan if fitted["slope"] is None else fitted["slope"]
        network = fitted["network"] and _new_network(fitted["network"], arrays)
        state = {name[len("model/") :]: arrays.pop(name) for name in list(arrays)}
        classifier.model_ = _model(network, state, d, width)
    if arrays:
        raise ModelFileError(f"it has an unknown array {sorted(arrays)[0]!r}")
    return classifier if scaler is None else Pipeline([("scale", scaler), ("classify", classifier)])


def _new_network(sizes: dict[str, int], arrays: dict[str, np.ndarray]) -> MLP:
    """Make a network, if its weights are in the file: any size can be asked for."""
    n_units, n_hidden = sizes["n_units"], sizes["n_hidden"]
    needed = n_units * (sizes["n_features"] + n_units * (n_hidden - 1))
    if needed > sum(array.size for array in arrays.values()) or n_hidden > len(arrays):
        raise ModelFileError("its network is larger than its arrays")
    return MLP(**sizes)


def _model(network: MLP | None, state: dict[str, np.ndarray], d: int, width: float) -> Any:
    if network is not None:
        model = network
    elif "centers" in state:
        centers = _shaped(state["centers"], (len(state["centers"]), d))
        model = GaussianKernelModel(centers, width, dtype=state["W"].dtype)
    else:
        model = LinearModel(d, dtype=state["W"].dtype)
    shapes = chainer.serializers.DictionarySerializer()
    shapes.save(model)
    if set(shapes.target) != set(state):
        raise ModelFileError("its model has other parameters than it should")
    for name, value in shapes.target.items():
        _shaped(state[name], np.shape(value))
    chainer.serializers.NpzDeserializer(state).load(model)
    return model


def _steps(estimator: Any) -> tuple[StandardScaler | None, Any]:
    steps = [step for _, step in getattr(estimator, "steps", [(None, estimator)])]
    scaler = steps.pop(0) if len(steps) == 2 and type(steps[0]) is StandardScaler else None
    if len(steps) != 1 or type(steps[0]) not in CLASSIFIERS.values():
        raise ModelFileError(
            "estimator must be a classifier of pu_shift or a pipeline of StandardScaler and one, "
            f"got {' + '.join(type(step).__name__ for step in steps)}"
        )
    if scaler is not None and not (scaler.with_mean and scaler.with_std):
        raise ModelFileError("estimator must have a StandardScaler with mean and scale")
    return scaler, steps[0]


def _params(classifier: Any) -> dict[str, Any]:
    params = classifier.get_params(deep=False)
    if "model" in params:
        params["model"] = _network(params["model"])
    return params


def _network(model: Any) -> dict[str, int] | None:
    if model is None:
        return None
    if type(model) is not MLP:
        raise ModelFileError(
            f"model must be a pu_shift.MLP to be saved without code, got {type(model).__name__}"
        )
    return {name: getattr(model, name) for name in ("n_features", "n_units", "n_hidden")}


def _plain(name: str, value: Any) -> Any:
    """Return a parameter as JSON knows it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (np.ndarray, tuple, list)):
        return np.asarray(value).tolist()
    if value is None or isinstance(value, (bool, int, float, str, dict)):
        return value
    raise ModelFileError(f"{name} must be a number, text or a list to be saved, got {value!r}")


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _shaped(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if array.shape != shape:
        raise ModelFileError(f"it has an array of shape {array.shape} in place of {shape}")
    return array
