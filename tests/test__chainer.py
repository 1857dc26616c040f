"""Chainer imports cleanly and leaves NumPy as it was."""

import numpy as np
import pytest

from tests.children import python


def run(code):
    return python("-W", "error", "-c", code)


def test_import_is_silent_even_with_warnings_as_errors():
    done = run("import pu_shift, chainer; print(chainer.__version__)")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "7.8.1"


@pytest.mark.parametrize("name", ["pkg_resources", "numpy.distutils"])
def test_no_stand_in_stays_in_sys_modules(name):
    done = run(
        "import sys; from tests.gradients import import_gradient_check; import_gradient_check();"
        f"module = sys.modules.get({name!r}); print(getattr(module, '__file__', None))"
    )
    assert done.returncode == 0, done.stderr
    # Either nobody imported it, or it is the real one with a file of its own.
    assert done.stdout.strip() == "None" or name.split(".")[0] in done.stdout


def test_numpy_namespace_is_unchanged():
    done = run(
        "import numpy; before = set(vars(numpy)); import tests.gradients as g;"
        "g.import_gradient_check(); print(sorted(set(vars(numpy)) - before))"
    )
    assert done.returncode == 0, done.stderr
    added = done.stdout.strip()
    # Submodules may load (numpy.testing, ...); removed aliases may not come back.
    for alias in ("'sctypes'", "'bool8'", "'float_'", "'product'", "'int'"):
        assert alias not in added or alias.strip("'") in dir(np)


def test_as_strided_backward_still_finds_sctypes():
    from pu_shift._chainer import chainer

    x = chainer.Variable(np.arange(6, dtype=np.float32))
    y = chainer.functions.as_strided(x, (2, 2), (3, 1), 0)
    chainer.functions.sum(y).backward()
    np.testing.assert_array_equal(x.grad, [1, 1, 0, 1, 1, 0])


def test_chainer_imported_before_us_is_taken_as_it_is():
    done = run(
        "import sys, types; fake = types.ModuleType('chainer'); sys.modules['chainer'] = fake;"
        "import importlib.util as u;"
        "spec = u.find_spec('pu_shift'); sys.modules['pu_shift'] = types.ModuleType('pu_shift');"
        "sys.modules['pu_shift'].__path__ = list(spec.submodule_search_locations);"
        "import pu_shift._chainer as c; assert c.chainer is fake"
    )
    assert done.returncode == 0, done.stderr


def test_optional_packages_are_reported_missing_not_broken():
    from tests.gradients import import_gradient_check

    import_gradient_check()
    from chainer.testing import helper

    with pytest.raises(LookupError, match="theano"):
        helper.pkg_resources.WorkingSet().require("theano")
