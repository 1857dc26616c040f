"""--gpu gives a device or one clear line."""

import sys
import types

import array_api_strict
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from pu_shift import device
from pu_shift.device import one_thread


def test_cpu():
    assert device.get_device().xp is np


@pytest.mark.parametrize("gpu", [-2, 1.5, "0", True, None])
def test_bad_id(gpu):
    with pytest.raises(ValueError, match="gpu must be a device id >= 0, or -1 for the CPU"):
        device.get_device(gpu)


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(device.DeviceError, match=r"\Agpu 0 needs CuPy[^\n]*--gpu -1[^\n]*\Z"):
        device.get_device(0)


def fake_cupy(count, allocate=lambda n: None):
    """Only as much of CuPy as choosing a device touches."""

    class Context:
        def __init__(self, gpu):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return False

    cupy = types.ModuleType("cupy")
    runtime = types.SimpleNamespace(getDeviceCount=count)
    cupy.cuda = types.SimpleNamespace(runtime=runtime, Device=Context)
    cupy.zeros = allocate
    return cupy


def fail(message):
    def raiser(*args):
        raise RuntimeError(message)

    return raiser


@pytest.mark.parametrize(
    ("cupy", "message"),
    [
        (
            fake_cupy(fail("no driver\nsecond line")),
            "gpu 2 needs a CUDA driver.*no driver second",
        ),
        (fake_cupy(lambda: 0), "gpu 2 does not exist, this machine has no GPU"),
        (fake_cupy(lambda: 3, fail("out of memory")), "gpu 2 cannot be used .out of memory"),
        (fake_cupy(lambda: 3, fail("")), "gpu 2 cannot be used .RuntimeError"),
    ],
)
def test_with_cupy_but_no_usable_device(monkeypatch, cupy, message):
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(device.NoGPUError, match=rf"\A{message}[^\n]*--gpu -1[^\n]*\Z") as raised:
        device.get_device(2)
    assert "--gpu" not in raised.value.problem


def test_with_a_usable_device(monkeypatch):
    cupy = fake_cupy(lambda: 2)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    found = device.get_device(1)
    assert (found, found.name, found.xp) == (device.Device(1), "@cupy:1", cupy)
    assert found != device.Device() == device.get_device(-1)


def test_array_namespace():
    strict = array_api_strict.asarray([1.0])
    assert device.array_namespace(strict) is array_api_strict
    with pytest.raises(ValueError, match="one array module"):
        device.array_namespace(np.zeros(1), strict)


def test_on_device():
    rows = np.zeros((2, 1))
    assert device.on_device("x", rows, device.get_device()) is rows
    elsewhere = types.SimpleNamespace(xp=np, name="@cupy:0")
    with pytest.raises(ValueError, match="x must be on the model's device @cupy:0, not @numpy"):
        device.on_device("x", rows, elsewhere)
    with pytest.raises(ValueError, match="x must be on the model's device @numpy"):
        device.on_device("x", [[1.0]], device.get_device())


def blas_threads():
    return {part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas"}


def test_blas_runs_on_one_thread_and_then_as_before():
    np.linalg.eigh(np.eye(3))
    before = blas_threads()
    with one_thread():
        assert blas_threads() == {1}
        with one_thread(None):
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before
