"""Model files of versions 1 and 2: their fields, as the states that later versions keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
# What the parameters were before version 2 knew them.
_FIRST = {"estimator": "ulsif", "scaling": None, "safe": False}


def upgraded(header: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Return the state of a model from what an old file holds."""
    kind, fitted, d = header["classifier"], header["fitted"], header["n_features"]
    params = dict(header["params"])
    params.pop("gpu", None)
    state = {
        "kind": kind,
        "params": params,
        "n_features": d,
        "classes": header["classes"],
        "prior": header["prior"],
    }
    if kind == "DensityRatioClassifier":
        state.update(_ratio(fitted, arrays, d))
        first = {"estimator": _FIRST["estimator"]}
    else:
        state.update(_risk(fitted, arrays))
        first = {name: _FIRST[name] for name in ("scaling", "safe")}
    if header["version"] == 1:
        state["params"] = {**first, **params}
    steps = [state]
    if header["scaler"]:
        scaler = {"mean": arrays["scaler/mean"], "scale": arrays["scaler/scale"]}
        steps.insert(0, {"kind": "StandardScaler", **scaler})
    if header.get("preparation") is not None:
        steps.insert(0, {"kind": "TablePreparation", **header["preparation"]})
    return {"steps": steps, "feature_names": header["feature_names"]}


def _ratio(fitted: Mapping[str, Any], arrays: Arrays, d: int) -> dict[str, Any]:
    parts = fitted.get("average")
    if parts is None:
        ratio = {"kind": "ULSIF", **_expansion("", fitted, arrays, d)}
        candidates = {"ulsif": {"score": None, "weight": 1.0}}
    else:
        ratio = {
            "kind": "RatioAverage",
            "names": [part["name"] for part in parts],
            "ratios": [_part(f"part{place}/", part, arrays, d) for place, part in enumerate(parts)],
            "calibrations": [
                {name: arrays[f"part{place}/{name}"] for name in ("knots", "values")}
                for place in range(len(parts))
            ],
            "weights": np.array([float(part["weight"]) for part in parts]),
        }
        candidates = {
            part["name"]: {name: part[name] for name in ("score", "weight")} for part in parts
        }
    return {
        "direction": fitted["direction"],
        "ratio": ratio,
        "ratio_sums": arrays.get("ratio_sums"),
        "candidates": candidates,
    }


def _part(prefix: str, part: Mapping[str, Any], arrays: Arrays, d: int) -> dict[str, Any]:
    ratio = {"kind": "ULSIF", **_expansion(prefix, part, arrays, d)}
    if part["exponential"]:
        ratio.update(kind="LogisticRatio", offset=part["offset"])
    scales = {name: arrays[f"{prefix}{name}"] for name in ("mean", "scale")}
    return {"kind": "StandardizedRatio", "ratio": ratio, **scales}


def _expansion(prefix: str, part: Mapping[str, Any], arrays: Arrays, d: int) -> dict[str, Any]:
    return {
        "coefficients": arrays[f"{prefix}coefficients"],
        "centers": arrays.get(f"{prefix}centers"),
        "n_columns": d,
        "width": part["width"],
        "lam": part["lam"],
    }


def _risk(fitted: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
    values = {
        name.removeprefix("model/"): array
        for name, array in arrays.items()
        if name.startswith("model/")
    }
    kind = "LinearModel" if "centers" not in values else "GaussianKernelModel"
    kind = kind if fitted["network"] is None else "MLP"
    same = {name: fitted[name] for name in ("condition", "width", "lam", "slope", "loss")}
    return {
        **same,
        "fallback": fitted.get("fallback", False),
        "mean": arrays.get("features/mean"),
        "scale": arrays.get("features/scale"),
        "model": {"kind": kind, "sizes": fitted["network"], "values": values},
    }
