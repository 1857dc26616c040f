"""Old import paths work for one release, with a warning."""

import importlib
import sys

import pytest

from pu_shift._moved import MOVED


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_path_is_the_new_module_and_warns(old, new):
    sys.modules.pop(f"pu_shift.{old}", None)
    with pytest.warns(DeprecationWarning, match=f"pu_shift.{new}: import from there"):
        module = importlib.import_module(f"pu_shift.{old}")
    assert module is importlib.import_module(f"pu_shift.{new}")


def test_a_name_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("pu_shift.no_such_module")
