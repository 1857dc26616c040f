"""Fitted classifiers in files that cannot run code: arrays and a JSON header.

The file is a NumPy archive (``.npz``) of plain numbers; objects are not unpickled. What is saved
knows its own state (``to_state``, ``from_state``): this module writes and reads any state, and a
digest tells a file that was changed. Parameters at their defaults are not kept, so that a file
outlives changes of the parameters.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift._chainer import ChainerMissingError
from pu_shift._checks import LARGEST, distinct, one_line, shown
from pu_shift._files import replacing
from pu_shift._sklearn import restore_scaler
from pu_shift._version import __version__
from pu_shift.estimators import DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.files.preparation import TablePreparation
from pu_shift.files.unpacking import ZIP_METHODS, may_unpack
from pu_shift.files.version_2 import upgraded

PathLike = Union[str, "os.PathLike[str]"]

FORMAT, VERSION = "pu-shift model", 3
CLASSIFIERS = {kind.__name__: kind for kind in (DensityRatioClassifier, RiskMinimizationClassifier)}
_HEADER = "header"
_STEP_NAMES = {"TablePreparation": "prepare", "StandardScaler": "scale"}


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
        :class:`pu_shift.MLP` can be saved, and of the ratios those of the library, boosted
        trees included: classifiers of yours are code.

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
    steps = _steps(estimator)
    names = getattr(steps[0], "feature_names_in_", np.array([])).tolist()
    try:
        states = [{"kind": type(step).__name__, **_state_of(step)} for step in steps]
    except ValueError as error:
        raise ModelFileError(str(error)) from None
    arrays: dict[str, np.ndarray] = {}
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "writer": __version__,
        "state": _packed("estimator", {"steps": states, "feature_names": names}, arrays),
    }
    header["digest"] = _digest(header, arrays)
    content = io.BytesIO()
    text = json.dumps(header, sort_keys=True, allow_nan=False).encode("utf-8")
    np.savez(content, **{_HEADER: np.frombuffer(text, dtype=np.uint8)}, **arrays)  # type: ignore[arg-type]
    with replacing(path, binary=True) as file:
        file.write(content.getvalue())


def load_model(path: PathLike) -> Any:
    """Load a classifier that :func:`save_model` saved, in this release or a former one.

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
        header, arrays = _read(path)
        if header["version"] > VERSION:
            raise _UnreadableError(_later(header))
        if header["version"] < VERSION:
            return _restored(header, upgraded(header, arrays))
        return _restored(header, _unpacked(header["state"], arrays))
    except _UnreadableError as error:
        raise ModelFileError(f"{path.name} {one_line(error)}") from None
    except ModelFileError as error:
        raise ModelFileError(f"{path.name} is not a pu-shift model: {one_line(error)}") from None
    except (MemoryError, ChainerMissingError):
        raise
    except Exception as error:  # whatever a damaged or forged file leads to
        reason = f"{type(error).__name__} {one_line(error)}"
        raise ModelFileError(f"{path.name} is a damaged pu-shift model: {reason}") from None


class _UnreadableError(ModelFileError):
    """A model that this release cannot use."""


def _later(header: Mapping[str, Any]) -> str:
    writer = shown(header.get("writer")).strip("'")
    return f"was written by a later version ({writer}): update pu-shift"


def _steps(estimator: Any) -> list[Any]:
    steps = [step for _, step in getattr(estimator, "steps", [(None, estimator)])]
    kinds = [type(step) for step in steps]
    before = [kind for kind in (TablePreparation, StandardScaler) if kind in kinds]
    if kinds[:-1] != before or kinds[-1] not in CLASSIFIERS.values():
        raise ModelFileError(
            "estimator must be a classifier of pu_shift or a pipeline of StandardScaler and one, "
            f"got {' + '.join(kind.__name__ for kind in kinds)}"
        )
    return steps


def _state_of(step: Any) -> dict[str, Any]:
    if not isinstance(step, StandardScaler):
        return step.to_state()
    if not (step.with_mean and step.with_std):
        raise ModelFileError("estimator must have a StandardScaler with mean and scale")
    return {"mean": step.mean_, "scale": step.scale_}


def _restored(header: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
    steps = [_restored_step(header, step) for step in state["steps"]]
    _steps(Pipeline([(str(place), step) for place, step in enumerate(steps)]))
    names = state["feature_names"]
    if names:
        if len(names) != steps[0].n_features_in_ or any(type(name) is not str for name in names):
            raise ModelFileError(f"it has {len(names)} names for other features")
        # Only the first step sees the table: what it makes of it are arrays without names.
        steps[0].feature_names_in_ = np.array(names, dtype=object)
    if len(steps) == 1:
        return steps[0]
    named = [(_STEP_NAMES.get(type(step).__name__, "classify"), step) for step in steps]
    return Pipeline(named)


def _restored_step(header: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
    kind = state["kind"]
    if kind == "StandardScaler":
        mean, scale = state["mean"], state["scale"]
        if mean.ndim != 1 or mean.shape != scale.shape or not (scale > 0.0).all():
            raise ModelFileError("its scale must be positive, with a number for each feature")
        return restore_scaler(mean, scale)
    if kind == "TablePreparation":
        return TablePreparation.from_state(state)
    if kind not in CLASSIFIERS:
        raise ModelFileError(f"it holds {shown(kind)}, which is no classifier of pu_shift")
    known = CLASSIFIERS[kind]._get_param_names()
    params = {name: value for name, value in state["params"].items() if name in known}
    for name in sorted(state["params"].keys() - params.keys()):
        if header["version"] < VERSION:
            # These files keep defaults too, so that it may mean nothing.
            message = f"the model has a parameter {shown(name)}, which there is no more: ignored"
            warnings.warn(message, UserWarning, stacklevel=4)
        elif _release(header["writer"]) > _release(__version__):
            raise _UnreadableError(_later(header))
        else:
            raise _UnreadableError(
                f"has a parameter {shown(name)}, which there is no more: fit again"
            )
    return CLASSIFIERS[kind].from_state({**state, "params": params})


def _release(version: Any) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", str(version))[:3]]


def _packed(where: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return a state as JSON knows it; arrays are numbered and kept apart."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and np.isnan(value):
        return None  # JSON has no NaN
    if isinstance(value, Mapping):
        return {str(name): _packed(str(name), item, arrays) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_packed(where, item, arrays) for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"@": name}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ModelFileError(
        f"{where} must be a number, text or a list to be saved, got {shown(value)}"
    )


def _unpacked(tree: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(tree, list):
        return [_unpacked(item, arrays) for item in tree]
    if isinstance(tree, dict):
        if tree.keys() == {"@"}:
            return arrays[tree["@"]]
        return {name: _unpacked(item, arrays) for name, item in tree.items()}
    return tree


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if not zipfile.is_zipfile(path):
        raise ModelFileError("it is no NumPy archive")
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        _check_distinct("its members", [info.filename for info in infos])
        if any(info.compress_type not in ZIP_METHODS for info in infos):
            raise ModelFileError("it is compressed by another method than deflate")
        if not may_unpack(sum(info.file_size for info in infos), path.stat().st_size):
            raise ModelFileError("it unpacks to far more than its size")
        members = {info.filename.removesuffix(".npy"): info for info in infos}
        if _HEADER not in members:
            raise ModelFileError("it has no header")
        header = _parsed(_array(archive, members.pop(_HEADER)).tobytes())
        arrays = {name: _array(archive, info) for name, info in members.items()}
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("its header names another format")
    if type(header.get("version")) is not int:
        raise ModelFileError("its header has no version")
    if header["version"] > 1 and header.get("digest") != _digest(header, arrays):
        raise ModelFileError("its content was changed after it was saved")
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf" or not np.all(np.abs(array, dtype=np.float64) <= LARGEST):
            raise ModelFileError(
                f"its array {name!r} is not made of finite numbers up to {LARGEST:g}"
            )
    return header, arrays


def _check_distinct(what: str, names: list[str]) -> None:
    try:
        distinct(what, names)
    except ValueError as error:
        raise ModelFileError(str(error)) from None


def _parsed(text: bytes) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _check_distinct("its header's keys", [name for name, _ in pairs])
        return dict(pairs)

    def number(digits: str) -> float:
        value = float(digits)
        if not abs(value) <= LARGEST:
            raise ModelFileError(f"its header has the number {shown(value)}")
        return value

    try:
        return json.loads(
            text.decode("utf-8"), object_pairs_hook=once, parse_float=number, parse_constant=number
        )
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
