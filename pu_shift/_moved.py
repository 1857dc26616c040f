"""Modules that moved in version 0.3: their old names work until 0.4, with a warning."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "blocks": "bigdata",
    "class_prior": "estimation.class_prior",
    "classifiers": "estimators",
    "kernels": "ratios.kernels",
    "links": "models",
    "model_file": "files.models",
    "model_selection": "evaluation.scorers",
    "preparation": "files.preparation",
    "ratio_models": "ratios.average",
    "shift_check": "estimation.shift_check",
    "shift_estimation": "estimation.test_prior",
    "ulsif": "ratios.ulsif",
}


class _MovedModules(MetaPathFinder, Loader):
    """Imports a module by its old name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != "pu_shift" or name not in MOVED:
            return None
        return ModuleSpec(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        new = f"pu_shift.{MOVED[module.__name__.rpartition('.')[2]]}"
        message = f"{module.__name__} has moved to {new}: import from there"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = importlib.import_module(new)


def find_moved_modules() -> None:
    """Let old names be imported."""
    if not any(isinstance(finder, _MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(_MovedModules())
