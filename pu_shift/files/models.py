"""Fitted classifiers in files that cannot run code: arrays and a JSON header.

The file is a NumPy archive (``.npz``) of plain numbers; objects are not unpickled.
Whatever in it is not exactly as expected is refused, and a digest tells a file that
was changed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from pu_shift._checks import distinct, one_line, shown
from pu_shift._files import replacing
from pu_shift.estimators import DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.files.preparation import TablePreparation
from pu_shift.files.tables import LARGEST
from pu_shift.files.unpacking import ZIP_METHODS, may_unpack
from pu_shift.losses import get_loss, surrogates
from pu_shift.models import MLP, GaussianKernelModel, LinearModel, load_state, state_of
from pu_shift.priors import DIRECTIONS, Condition
from pu_shift.ratios.average import RatioAverage
from pu_shift.ratios.base import Ratio
from pu_shift.ratios.registry import RATIOS

PathLike = Union[str, "os.PathLike[str]"]
# What a field must be, in words and as a test.
Rule = tuple[str, Callable[[Any], bool]]

FORMAT, VERSION = "pu-shift model", 2
CLASSIFIERS = {kind.__name__: kind for kind in (DensityRatioClassifier, RiskMinimizationClassifier)}
_HEADER = "header"


class ModelFileError(ValueError):
    """A file that is not a model of this package, or a model that no file can hold."""


def save_model(path: PathLike, estimator: Any) -> None:
    """Save a fitted classifier, or a pipeline that ends with one.

    Before it there may be a :class:`pu_shift.files.preparation.TablePreparation`, a
    ``StandardScaler``, or both in this order.

    Parameters
    ----------
    path
        The file; replaced when it exists.
    estimator
        A :class:`pu_shift.DensityRatioClassifier` or
        :class:`pu_shift.RiskMinimizationClassifier`. Of the networks only
        :class:`pu_shift.MLP` can be saved, and of the ratios those without trees and
        classifiers of yours (:data:`pu_shift.ratios.registry.PLAIN`): others are code.

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
    preparation, scaler, classifier = _steps(estimator)
    check_is_fitted(classifier, "classes_")
    arrays: dict[str, np.ndarray] = {}
    first = next(step for step in (preparation, scaler, classifier) if step is not None)
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "classifier": type(classifier).__name__,
        "scaler": scaler is not None,
        "preparation": preparation
        and {"medians": preparation.medians_, "categories": preparation.categories_},
        "params": {name: _plain(name, value) for name, value in _params(classifier).items()},
        "n_features": int(classifier.n_features_in_),
        "feature_names": getattr(first, "feature_names_in_", np.array([])).tolist(),
        "classes": classifier.classes_.tolist(),
        "prior": classifier.prior_,
    }
    if scaler is not None:
        arrays["scaler/mean"], arrays["scaler/scale"] = scaler.mean_, scaler.scale_
    if isinstance(classifier, DensityRatioClassifier):
        header["fitted"] = {"direction": classifier.direction_, **_ratio(classifier, arrays)}
        if hasattr(classifier, "ratio_sums_"):
            arrays["ratio_sums"] = classifier.ratio_sums_
    else:
        condition = classifier.condition_
        header["fitted"] = {
            "condition": [condition.prior, condition.test_prior, condition.alpha],
            "width": _or_none(classifier.width_),
            "lam": _or_none(classifier.lam_),
            "slope": _or_none(classifier.slope_),
            "loss": classifier.loss_,
            "network": _sizes(classifier.model),
            "fallback": classifier.fallback_,
        }
        if classifier.mean_ is not None:
            arrays["features/mean"] = np.asarray(classifier.mean_)
            arrays["features/scale"] = np.asarray(classifier.scale_)
        state = state_of(classifier.model_)
        arrays.update((f"model/{name}", value) for name, value in state.items())
    header["digest"] = _digest(header, arrays)
    _check_header(header)
    content = io.BytesIO()
    text = json.dumps(header, sort_keys=True).encode("utf-8")
    np.savez(content, **{_HEADER: np.frombuffer(text, dtype=np.uint8)}, **arrays)  # type: ignore[arg-type]
    with replacing(path, binary=True) as file:
        file.write(content.getvalue())


def _ratio(classifier: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Put the arrays of a fitted ratio with the others; return what else there is of it."""
    ratio = classifier.ratio_
    if not isinstance(ratio, RatioAverage):
        state = ratio.to_state()
        _put_basis("", state, arrays)
        return {"width": state["width"], "lam": state["lam"], "average": None}
    parts = []
    try:
        whole = ratio.to_state()
    except ValueError as error:
        raise ModelFileError(str(error)) from None
    for place, name in enumerate(ratio.names):
        prefix, part = f"part{place}/", whole["ratios"][place]
        inner = part["ratio"]
        _put_basis(prefix, inner, arrays)
        arrays[f"{prefix}mean"], arrays[f"{prefix}scale"] = part["mean"], part["scale"]
        for key, array in whole["calibrations"][place].items():
            arrays[f"{prefix}{key}"] = array
        part_header = {
            "name": name,
            "weight": float(ratio.weights[place]),
            "score": classifier.candidates_[name]["score"],
            "width": inner["width"],
            "lam": inner.get("lam"),
            "offset": inner.get("offset", 0.0),
            "exponential": "offset" in inner,
        }
        parts.append(part_header)
    return {"width": None, "lam": None, "average": parts}


def _put_basis(prefix: str, state: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays[f"{prefix}coefficients"] = state["coefficients"]
    if state["centers"] is not None:
        arrays[f"{prefix}centers"] = state["centers"]


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
    pu_shift.files.models.ModelFileError: notes.txt is not a pu-shift model: it is no NumPy archive
    """
    path = Path(path)
    if not os.path.isfile(path):
        raise ModelFileError(f"no such file: {one_line(repr(str(path)))}")
    try:
        return _restore(*_read(path))
    except ValueError as error:
        raise ModelFileError(f"{path.name} is not a pu-shift model: {one_line(error)}") from None
    except Exception as error:  # whatever a damaged or forged file leads to
        reason = f"{type(error).__name__} {one_line(error)}"
        raise ModelFileError(f"{path.name} is a damaged pu-shift model: {reason}") from None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if not zipfile.is_zipfile(path):
        raise ModelFileError("it is no NumPy archive")
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        distinct("its members", [info.filename for info in infos])
        if any(info.compress_type not in ZIP_METHODS for info in infos):
            raise ModelFileError("it is compressed by another method than deflate")
        if not may_unpack(sum(info.file_size for info in infos), path.stat().st_size):
            raise ModelFileError("it unpacks to far more than its size")
        members = {info.filename.removesuffix(".npy"): info for info in infos}
        if _HEADER not in members:
            raise ModelFileError("it has no header")
        header = _parsed(_array(archive, members.pop(_HEADER)).tobytes())
        arrays = {name: _array(archive, info) for name, info in members.items()}
    _check_header(header)
    if header["version"] > 1 and header["digest"] != _digest(header, arrays):
        raise ModelFileError("its content was changed after it was saved")
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or not np.all(np.abs(array, dtype=np.float64) <= LARGEST):
            raise ModelFileError(
                f"its array {name!r} is not made of finite numbers up to {LARGEST:g}"
            )
    return header, arrays


def _parsed(text: bytes) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        distinct("its header's keys", [name for name, _ in pairs])
        return dict(pairs)

    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=once)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise ModelFileError("its header cannot be read") from None


def _digest(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Return a SHA-256 of all that a model consists of."""
    kept = {name: value for name, value in header.items() if name != "digest"}
    digest = hashlib.sha256(json.dumps(kept, sort_keys=True).encode("utf-8"))
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _number(value: Any, low: float = -LARGEST, high: float = LARGEST) -> bool:
    return type(value) in (int, float) and low <= value <= high


def _network(value: Any) -> bool:
    keys = {"n_features", "n_units", "n_hidden"}
    return value is None or (
        type(value) is dict and value.keys() == keys and all(map(_COUNT[1], value.values()))
    )


def _parameter(value: Any) -> bool:
    items = value if type(value) is list else [value]
    return all(item is None or type(item) in (bool, str) or _number(item) for item in items)


def _prepared(value: Any) -> bool:
    """Tell whether a value is nothing, or what a preparation has learnt of each column."""
    if value is None:
        return True
    if type(value) is not dict or value.keys() != {"medians", "categories"}:
        return False
    medians, categories = value["medians"], value["categories"]
    if type(medians) is not list or type(categories) is not list:
        return False
    return 0 < len(medians) == len(categories) and all(
        (words is None and _number(median)) or (median is None and _TEXTS[1](words) and words)
        for median, words in zip(medians, categories)
    )


def _labels(value: Any) -> bool:
    if type(value) is not list or len(value) != 2 or type(value[0]) is not type(value[1]):
        return False
    known = all(type(label) in (bool, str) or _number(label) for label in value)
    return known and value[0] != value[1]


def _one_of(*allowed: Any) -> Rule:
    def holds(value: Any) -> bool:  # by type too: JSON's true equals 1
        return any(type(value) is type(item) and value == item for item in allowed)

    return f"one of {', '.join(map(repr, allowed))}", holds


def _of_type(what: str, kind: type) -> Rule:
    return what, lambda value: type(value) is kind


_UNIT: Rule = ("strictly between 0 and 1", lambda value: _number(value) and 0 < value < 1)
_MAYBE_UNIT: Rule = (f"null or {_UNIT[0]}", lambda value: value is None or _UNIT[1](value))
_POSITIVE: Rule = ("null or positive", lambda v: v is None or (_number(v, 0.0) and v > 0))
_COUNT: Rule = ("a positive integer", lambda value: type(value) is int and 0 < value < 2**31)
_NETWORK: Rule = ("null or the sizes of a network", _network)
_PARAMETER: Rule = ("a number, text or a list of them", _parameter)
_TEXTS: Rule = (
    "a list of distinct texts",
    lambda value: (
        type(value) is list
        and all(type(item) is str for item in value)
        and len(set(value)) == len(value)
    ),
)
_HEADER_RULES: dict[str, Rule] = {
    "format": _one_of(FORMAT),
    "version": _one_of(1, VERSION),
    "classifier": _one_of(*CLASSIFIERS),
    "scaler": _of_type("true or false", bool),
    "preparation": ("null, or a median or categories for each column", _prepared),
    "params": _of_type("a mapping", dict),
    "n_features": _COUNT,
    "feature_names": _TEXTS,
    "classes": ("two labels in order", _labels),
    "prior": _UNIT,
    "fitted": _of_type("a mapping", dict),
}
# The fit checks its other parameters; a model only keeps them.
_TEST_PRIOR: Rule = (
    f"'estimate', {_MAYBE_UNIT[0]}",
    lambda value: value == "estimate" or _MAYBE_UNIT[1](value),
)
_PARAMETER_RULES = {"prior": _MAYBE_UNIT, "test_prior": _TEST_PRIOR, "alpha": _UNIT}
_PARAMETER_RULES["model"] = _NETWORK
_BASIS_RULES: dict[str, Rule] = {
    "width": _POSITIVE,
    "lam": ("null or not negative", lambda value: value is None or _number(value, 0.0)),
}
_PART_RULES: dict[str, Rule] = {
    **_BASIS_RULES,
    "name": _one_of(*RATIOS),
    "weight": ("between 0 and 1", lambda value: _number(value, 0.0, 1.0)),
    "score": ("a number", _number),
    "offset": ("a number", _number),
    "exponential": _of_type("true or false", bool),
}


def _average(value: Any) -> bool:
    return value is None or (
        type(value) is list
        and 0 < len(value) <= len(RATIOS)
        and all(
            type(part) is dict
            and part.keys() == _PART_RULES.keys()
            and all(holds(part[name]) for name, (_, holds) in _PART_RULES.items())
            for part in value
        )
    )


_FITTED_RULES: dict[str, dict[str, Rule]] = {
    "DensityRatioClassifier": {
        **_BASIS_RULES,
        "direction": _one_of(*DIRECTIONS),
        "average": ("null or the parts of an average", _average),
    },
    "RiskMinimizationClassifier": {
        **_BASIS_RULES,
        "condition": (
            "three numbers between 0 and 1",
            lambda v: type(v) is list and len(v) == 3 and all(map(_UNIT[1], v)),
        ),
        "slope": _POSITIVE,
        "loss": _one_of(*surrogates()),
        "network": _NETWORK,
        "fallback": _of_type("true or false", bool),
    },
}


_FIRST = {"estimator": "ulsif", "pos_label": None, "n_jobs": None, "scaling": None, "safe": False}


def _conform(where: str, values: dict[str, Any], rules: Mapping[str, Rule]) -> None:
    """Refuse fields that are missing, unknown or not as their rule says."""
    for name in sorted(rules.keys() ^ values.keys()):
        raise ModelFileError(f"{where} has {'an unknown' if name in values else 'no'} {name!r}")
    for name, (what, holds) in rules.items():
        if not holds(values[name]):
            raise ModelFileError(f"{name} must be {what}, got {shown(values[name])}")


def _without(rules: Mapping[str, Rule], names: Sequence[str]) -> dict[str, Rule]:
    return {name: rule for name, rule in rules.items() if name not in names}


def _in_order(header: Mapping[str, Any]) -> bool:
    """Whether the positive class is the greater label, or the one that ``pos_label`` names."""
    low, high = header["classes"]
    own = header["params"].get("pos_label")
    return low < high or (type(own) is type(high) and own == high)


def _check_header(header: Any) -> None:
    """Refuse a header of which any field is not of its type, in its range and in its place."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("its header names another format")
    rules = {**_HEADER_RULES, "digest": _of_type("text", str)}
    # They came with the second version.
    new = (*_FIRST, "digest", "preparation", "average", "fallback")
    new = new if _one_of(1)[1](header.get("version")) else ()
    _conform("its header", header, _without(rules, new))
    kind, fitted = header["classifier"], header["fitted"]
    parameters = CLASSIFIERS[kind]().get_params(deep=False)
    rules = {name: _PARAMETER_RULES.get(name, _PARAMETER) for name in parameters}
    _conform("params", header["params"], _without(rules, new))
    _conform("fitted", fitted, _without(_FITTED_RULES[kind], new))
    if not _in_order(header):
        raise ModelFileError(f"classes must be two labels in order, got {header['classes']}")
    n_names, n_features = len(header["feature_names"]), header["n_features"]
    preparation = header.get("preparation")
    if preparation is not None:
        made = sum(1 if words is None else len(words) for words in preparation["categories"])
        if made != n_features:
            raise ModelFileError(f"it prepares {made} of {n_features} features")
        n_features = len(preparation["categories"])
    if n_names not in (0, n_features):
        raise ModelFileError(f"it has {n_names} names for {n_features} features")
    if "loss" in fitted and (fitted["slope"] is None) != get_loss(fitted["loss"]).is_proper:
        raise ModelFileError(f"slope does not belong to the loss {fitted['loss']}")


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
    # What the first version did not have is as it was then.
    params = {**(_FIRST if header["version"] == 1 else {}), **header["params"], "gpu": -1}
    fitted, d = header["fitted"], header["n_features"]
    known = CLASSIFIERS[header["classifier"]]().get_params(deep=False)
    params = {name: value for name, value in params.items() if name in known}
    if params.get("model") is not None:
        params["model"] = _new_network(params["model"], arrays)
    classifier = CLASSIFIERS[header["classifier"]](**params)
    classifier.classes_ = np.array(header["classes"])
    classifier.prior_, classifier.n_features_in_ = float(header["prior"]), d
    scaler = _scaler(arrays, d) if header["scaler"] else None
    preparation = None
    if header.get("preparation") is not None:
        preparation = TablePreparation()
        preparation.medians_ = header["preparation"]["medians"]
        preparation.categories_ = header["preparation"]["categories"]
        preparation.n_features_in_ = len(preparation.medians_)
    steps = {"prepare": preparation, "scale": scaler, "classify": classifier}
    used = [(name, step) for name, step in steps.items() if step is not None]
    if header["feature_names"]:
        # Only the first step sees the table: what it makes of it are arrays without names.
        used[0][1].feature_names_in_ = np.array(header["feature_names"], dtype=object)
    width, lam = (np.nan if fitted[name] is None else fitted[name] for name in ("width", "lam"))
    if isinstance(classifier, RiskMinimizationClassifier):
        _restore_risk(classifier, fitted, arrays, width, lam)
    else:
        classifier.direction_ = fitted["direction"]
        if fitted.get("average") is None:
            kind = {"kind": "ULSIF", "lam": fitted["lam"]}
            classifier.ratio_ = Ratio.from_state(kind | _basis("", arrays, d, fitted["width"]))
        else:
            _restore_average(classifier, fitted["average"], arrays, d)
        # A model that was saved before there were any has none.
        if "ratio_sums" in arrays:
            classifier.ratio_sums_ = _sums(arrays.pop("ratio_sums"))
    if arrays:
        raise ModelFileError(f"it has an unknown array {sorted(arrays)[0]!r}")
    return classifier if len(used) == 1 else Pipeline(used)


def _restore_risk(
    classifier: Any,
    fitted: dict[str, Any],
    arrays: dict[str, np.ndarray],
    width: float,
    lam: float,
) -> None:
    d = classifier.n_features_in_
    classifier.condition_ = Condition(*fitted["condition"])
    classifier.width_, classifier.lam_, classifier.loss_ = width, lam, fitted["loss"]
    classifier.slope_ = np.nan if fitted["slope"] is None else fitted["slope"]
    classifier.fallback_ = fitted.get("fallback", False)
    classifier.mean_ = classifier.scale_ = None
    if "features/mean" in arrays:
        inner = _scaler(arrays, d, "features")
        classifier.mean_, classifier.scale_ = inner.mean_, inner.scale_
    network = fitted["network"] and _new_network(fitted["network"], arrays)
    names = [name for name in arrays if name.startswith("model/")]
    state = {name.removeprefix("model/"): arrays.pop(name) for name in names}
    classifier.model_ = _model(network, state, d, width)


def _basis(
    prefix: str, arrays: dict[str, np.ndarray], d: int, width: float | None
) -> dict[str, Any]:
    return {
        "coefficients": arrays.pop(f"{prefix}coefficients"),
        "centers": arrays.pop(f"{prefix}centers", None),
        "width": width,
        "n_columns": d,
    }


def _restore_average(
    classifier: Any, parts: list[dict[str, Any]], arrays: dict[str, np.ndarray], d: int
) -> None:
    ratios, calibrations = [], []
    for place, part in enumerate(parts):
        prefix = f"part{place}/"
        basis = _basis(prefix, arrays, d, part["width"])
        if part["exponential"]:
            inner = {"kind": "LogisticRatio", "offset": part["offset"], **basis}
        else:
            inner = {"kind": "ULSIF", "lam": part["lam"], **basis}
        mean, scale = (_shaped(arrays.pop(f"{prefix}{n}"), (d,)) for n in ("mean", "scale"))
        ratios.append({"kind": "StandardizedRatio", "mean": mean, "scale": scale, "ratio": inner})
        calibrations.append({name: arrays.pop(f"{prefix}{name}") for name in ("knots", "values")})
    state = {
        "kind": "RatioAverage",
        "names": [part["name"] for part in parts],
        "ratios": ratios,
        "calibrations": calibrations,
        "weights": np.array([float(part["weight"]) for part in parts]),
    }
    classifier.ratio_ = Ratio.from_state(state)
    classifier.candidates_ = {
        part["name"]: {"score": float(part["score"]), "weight": float(part["weight"])}
        for part in parts
    }


def _scaler(arrays: dict[str, np.ndarray], d: int, name: str = "scaler") -> StandardScaler:
    scaler = StandardScaler()
    scaler.mean_ = _shaped(arrays.pop(f"{name}/mean"), (d,))
    scaler.scale_ = _shaped(arrays.pop(f"{name}/scale"), (d,))
    if not (scaler.scale_ > 0).all():
        raise ModelFileError("its scale must be positive")
    scaler.var_, scaler.n_features_in_ = scaler.scale_**2, d
    return scaler


def _centers(centers: np.ndarray, d: int, width: float) -> np.ndarray:
    if len(centers) == 0 or np.isnan(width):
        raise ModelFileError("its Gaussian basis needs centres and a width")
    return _shaped(centers, (len(centers), d))


def _sums(sums: np.ndarray) -> np.ndarray:
    if not (_shaped(sums, (2, 3))[:, 0] >= 2).all():
        raise ModelFileError("its sums must be of two rows at least")
    return sums


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
        centers = _centers(state["centers"], d, width)
        model = GaussianKernelModel(centers, width, dtype=state["W"].dtype)
    else:
        model = LinearModel(d, dtype=state["W"].dtype)
    fresh = state_of(model)
    if set(fresh) != set(state):
        raise ModelFileError("its model has other parameters than it should")
    for name, value in fresh.items():
        _shaped(state[name], value.shape)
    load_state(model, state)
    return model


def _steps(estimator: Any) -> tuple[TablePreparation | None, StandardScaler | None, Any]:
    steps = [step for _, step in getattr(estimator, "steps", [(None, estimator)])]
    kinds = [type(step).__name__ for step in steps]
    preparation, scaler = (
        steps.pop(0) if len(steps) > 1 and type(steps[0]) is kind else None
        for kind in (TablePreparation, StandardScaler)
    )
    if len(steps) != 1 or type(steps[0]) not in CLASSIFIERS.values():
        raise ModelFileError(
            "estimator must be a classifier of pu_shift or a pipeline of StandardScaler and one, "
            f"got {' + '.join(kinds)}"
        )
    if scaler is not None and not (scaler.with_mean and scaler.with_std):
        raise ModelFileError("estimator must have a StandardScaler with mean and scale")
    return preparation, scaler, steps[0]


def _params(classifier: Any) -> dict[str, Any]:
    params = classifier.get_params(deep=False)
    if "model" in params:
        params["model"] = _sizes(params["model"])
    return params


def _sizes(model: Any) -> dict[str, int] | None:
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


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _shaped(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if array.shape != shape:
        raise ModelFileError(f"it has an array of shape {array.shape} in place of {shape}")
    return array
