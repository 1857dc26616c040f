"""PU classification under class prior shift and asymmetric error.

The reference implementation of Charoenphakdee & Sugiyama (2019). The theory lives in
:mod:`pu_shift.priors` and :mod:`pu_shift.losses`, density ratios in :mod:`pu_shift.ratios`, risk
minimisation in :mod:`pu_shift.risks`, :mod:`pu_shift.models` and :mod:`pu_shift.training`. The
scikit-learn estimators over both are in :mod:`pu_shift.estimators`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pu_shift._moved import find_moved_modules

find_moved_modules()

# Chainer and scikit-learn take a second to import. The command `pu-shift`, also as
# `python -m pu_shift`, imports them later: once it answers signals in its own way.
if TYPE_CHECKING or Path(sys.argv[0]).name not in ("pu-shift", "-m"):
    from pu_shift._api import *  # noqa: F403
    from pu_shift._api import __all__, __version__  # noqa: F401
else:

    def __getattr__(name: str) -> Any:
        if name not in ("__all__", "__version__") and name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        api = importlib.import_module("pu_shift._api")
        # Its import has made the modules attributes of the package.
        return globals()[name] if name in globals() else getattr(api, name)
