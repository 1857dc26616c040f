"""The GPU path without a GPU: CuPy's strict stand-in takes the place of CuPy.

See :mod:`tests.doubles.cupy` for what it refuses. Chainer looks for CuPy once,
while it is being imported, so each test runs in a process of its own.
"""

from tests import children
from tests.children import ROOT

DOUBLES = ROOT / "tests" / "doubles"


def python(*arguments, **environment):
    environment = {"OMP_NUM_THREADS": "1", **environment}
    return children.python(*arguments, path=[DOUBLES], cwd=ROOT, env=environment)


REFUSED = """
import cupy
import numpy as np

with cupy.cuda.Device(1):
    far = cupy.zeros(3)
near, host = cupy.zeros(3), np.zeros(3)
attempts = {
    "operator": lambda: near + host,
    "operator, host first": lambda: host * near,
    "in place": lambda: near.__iadd__(host),
    "function": lambda: cupy.maximum(near, host),
    "function of the host": lambda: np.exp(near),
    "host arrays alone": lambda: cupy.exp(host),
    "out": lambda: cupy.exp(near, out=host),
    "index": lambda: near[np.array([0])],
    "list as index": lambda: near[[0]],
    "assignment": lambda: near.__setitem__(slice(None), host),
    "conversion": lambda: np.asarray(near),
    "copy there": lambda: cupy.asarray(host),
    "copy of a list": lambda: cupy.asarray([1.0]),
    "copy back": lambda: near.get(),
    "another device": lambda: near + far,
    "unknown function": lambda: cupy.hypot(near, near),
    "concatenate": lambda: cupy.concatenate([near, host]),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except TypeError:
        continue
    print(name)
"""


def test_the_stand_in_refuses_what_it_should():
    result = python("-c", REFUSED)
    assert (result.returncode, result.stdout) == (0, ""), result


def gpu_suite(**environment):
    options = ("-q", "-n", "0", "-p", "no:cacheprovider", "-m", "gpu")
    return python("-m", "pytest", *options, "tests/gpu", **environment)


def test_the_gpu_suite_passes_on_the_stand_in():
    result = gpu_suite()
    assert result.returncode == 0, result.stdout
    assert "passed" in result.stdout
    assert "deselected" not in result.stdout
