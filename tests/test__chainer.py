"""Chainer imports cleanly and leaves NumPy as it was."""

import numpy as np

from tests.children import python


def run(code):
    return python("-W", "error", "-c", code)


def test_import_is_silent_even_with_warnings_as_errors():
    done = run("import pu_shift, chainer; print(chainer.__version__)")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "7.8.1"


def test_no_stand_in_stays_and_numpys_names_are_unchanged():
    done = run(
        "import sys, numpy; before = set(vars(numpy)); import tests.gradients as g;"
        "g.import_gradient_check(); print(sorted(set(vars(numpy)) - before));"
        "[print(getattr(sys.modules.get(name), '__file__', name))"
        " for name in ('pkg_resources', 'numpy.distutils')]"
    )
    assert done.returncode == 0, done.stderr
    added, *stand_ins = done.stdout.splitlines()
    # Submodules may load (numpy.testing, ...); removed aliases may not come back.
    for alias in ("'sctypes'", "'bool8'", "'float_'", "'product'", "'int'"):
        assert alias not in added or alias.strip("'") in dir(np)
    # Either nobody imported it, or it is the real one with a file of its own.
    for name, found in zip(("pkg_resources", "numpy"), stand_ins):
        assert name in found


def test_chainer_imported_before_us_is_taken_as_it_is():
    done = run(
        "import sys, types; fake = types.ModuleType('chainer'); sys.modules['chainer'] = fake;"
        "import importlib.util as u;"
        "spec = u.find_spec('pu_shift'); sys.modules['pu_shift'] = types.ModuleType('pu_shift');"
        "sys.modules['pu_shift'].__path__ = list(spec.submodule_search_locations);"
        "import pu_shift._chainer as c; assert c.chainer is fake"
    )
    assert done.returncode == 0, done.stderr
