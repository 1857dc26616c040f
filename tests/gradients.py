"""``chainer.gradient_check``, whose ``chainer.testing`` asks for pkg_resources when imported."""

import importlib
import types

from pu_shift._chainer import old_sources, stand_in


class _EmptyWorkingSet:
    """What ``chainer.testing`` asks for optional packages: none is installed."""

    def require(self, *requirements):
        raise LookupError(f"{', '.join(requirements)} not looked up")


def import_gradient_check():
    """Import ``chainer.gradient_check`` without ``pkg_resources``."""
    resources = types.ModuleType("pkg_resources")
    vars(resources).update(ResolutionError=LookupError, WorkingSet=_EmptyWorkingSet)
    with old_sources(), stand_in("pkg_resources", resources):
        return importlib.import_module("chainer.gradient_check")
