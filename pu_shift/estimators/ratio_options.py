"""How the options of a density-ratio classifier reach the estimator of the ratio."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import has_fit_parameter

from pu_shift._grids import RATIO_LAMS
from pu_shift._seeds import Seed
from pu_shift.ratios.base import GridEdgeWarning
from pu_shift.ratios.registry import BASIS_RATIOS


def check_fit_params(candidates: Mapping[str, Any], fit_params: Mapping[str, Any]) -> None:
    """Refuse parameters that a candidate's fit does not take, before the work."""
    routed = get_config().get("enable_metadata_routing", False)
    for name in fit_params:
        for candidate, item in candidates.items():
            nested = hasattr(item, "steps") and ("__" in name or routed)
            if isinstance(item, str) or not (nested or has_fit_parameter(item, name)):
                hint = f": name the step, as in step__{name}" if hasattr(item, "steps") else ""
                raise ValueError(f"{name} is no parameter of fit of estimator={candidate!r}{hint}")
        if name.endswith("sample_weight"):
            for part in fit_params[name]:
                if not (np.isfinite(part).all() and part.min() >= 0.0 and part.max() > 0.0):
                    raise ValueError(
                        f"{name} must be finite and not negative, and leave rows of both classes, "
                        "P and U, some weight"
                    )


def kernel_ratio(classifier: Any, name: str, X_p: Any, X_u: Any, n_folds: int, seed: Seed) -> Any:
    """Fit uLSIF or KLIEP as published, with a classifier's options, where the samples are."""
    numerator, denominator = (X_p, X_u) if classifier.direction == "p/u" else (X_u, X_p)
    options: dict[str, Any] = {
        "n_centers": classifier.n_centers,
        "widths": classifier.widths,
        "n_folds": n_folds,
        "random_state": seed,
    }
    if classifier.width_factors is not None:
        options["width_factors"] = classifier.width_factors
    if name == "ulsif":
        options["lams"] = RATIO_LAMS if classifier.lams is None else classifier.lams
        for option in ("basis", "selection", "clip_coefficients"):
            options[option] = getattr(classifier, option)
    given = classifier.width_factors is not None or classifier.lams is not None
    with warnings.catch_warnings():
        if classifier.widths is None and not given:
            warnings.simplefilter("ignore", GridEdgeWarning)
        return BASIS_RATIOS[name](**options).fit(numerator, denominator)
