"""PU classification under class prior shift and asymmetric error.

The reference implementation of Charoenphakdee & Sugiyama (2019). The theory lives in
:mod:`pu_shift.priors` and :mod:`pu_shift.losses`, the two frameworks in :mod:`pu_shift.ulsif`
(density ratios) and :mod:`pu_shift.risks`, :mod:`pu_shift.links`, :mod:`pu_shift.training` (risk
minimisation). The scikit-learn estimators over both are in :mod:`pu_shift.classifiers`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pu_shift._api import *  # noqa: F403
    from pu_shift._api import __version__  # noqa: F401


def __getattr__(name: str) -> Any:
    """Import the library when the first of its names is asked for.

    Chainer and scikit-learn take a second, in which the command line has to answer signals.
    """
    if name not in ("__all__", "__version__") and name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    api = importlib.import_module("pu_shift._api")
    # Its import has made the modules attributes of the package.
    return globals()[name] if name in globals() else getattr(api, name)
