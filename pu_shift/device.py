"""Which device computes, and the only ways that arrays cross between it and the host.

Samples go there by ``get_device(gpu).send``, small vectors (row numbers, candidates) by
:func:`beside`, and results come back by :func:`to_numpy`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import array_api_compat
import numpy as np
from threadpoolctl import ThreadpoolController

from pu_shift._checks import ArgumentError, as_index, shown


class DeviceError(RuntimeError):
    """The device that was asked for cannot be used; the message says how to go on."""


class NoGPUError(DeviceError):
    """No GPU can be used here; ``problem`` says why, without advice."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem}: {advice}")
        self.problem = problem


@dataclass(frozen=True)
class Device:
    """The CPU, or a CUDA device by its id."""

    gpu: int = -1

    @property
    def name(self) -> str:
        """``@numpy`` or ``@cupy:id``, the names that Chainer's ``to_device`` takes."""
        return "@numpy" if self.gpu < 0 else f"@cupy:{self.gpu}"

    @property
    def xp(self) -> Any:
        """The array module: NumPy or CuPy."""
        return np if self.gpu < 0 else _cupy()

    def use(self) -> AbstractContextManager[Any]:
        """Return a context in which the device is the current one."""
        return nullcontext() if self.gpu < 0 else _cupy().cuda.Device(self.gpu)

    def send(self, array: Any) -> Any:
        """Return an array, or each of a tuple or list of arrays, on the device."""
        if isinstance(array, (tuple, list)):
            return type(array)(map(self.send, array))
        if device_of(array) == self:
            return array
        if self.gpu < 0:
            return to_numpy(array)
        with self.use():
            # Copied to the current device, wherever it is.
            return array.copy() if array_api_compat.is_cupy_array(array) else self.xp.asarray(array)


def _cupy() -> Any:
    import cupy

    return cupy


def device_of(array: Any) -> Device:
    """Return the device that an array is on."""
    if array_api_compat.is_cupy_array(array):
        return Device(int(array.device.id))
    return Device()


def array_module(array: Any) -> Any:
    """Return the module of an array: CuPy, or else NumPy."""
    return device_of(array).xp


def array_namespace(*arrays: Any) -> Any:
    """Return the array-API namespace that the arrays share, or raise a ValueError."""
    try:
        return array_api_compat.array_namespace(*arrays)
    except TypeError as error:
        raise ValueError(f"arrays must come from one array module: {error}") from None


def get_device(gpu: int = -1) -> Device:
    """Return the device for ``--gpu``.

    A real allocation is tried, because without a driver CuPy can be imported and fails only
    later.

    Parameters
    ----------
    gpu
        The id of the CUDA device, or −1 for the CPU.

    Returns
    -------
    Device
        The device: ``device.xp`` is its array module, ``device.send`` copies arrays to it, and
        ``model.to_device(device.name)`` moves a model of Chainer. When it cannot be used a
        :class:`DeviceError` says why in one line.

    Examples
    --------
    >>> get_device(-1).name
    '@numpy'
    """
    number = as_index(gpu)
    if number is None or number < -1:
        raise ArgumentError("gpu", f"must be a device id >= 0, or -1 for the CPU, got {shown(gpu)}")
    if gpu == -1:
        return Device()
    advice = "run with --gpu -1 to use the CPU"
    try:
        cupy = _cupy()
    except Exception as error:  # a broken CUDA installation raises more than ImportError
        raise NoGPUError(
            f"gpu {gpu} needs CuPy, which cannot be imported ({_reason(error)})",
            f"pip install '.[gpu]' in a clone, or {advice}",
        ) from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise NoGPUError(
            f"gpu {gpu} needs a CUDA driver, and none answers ({_reason(error)})", advice
        ) from None
    if count == 0:
        raise NoGPUError(f"gpu {gpu} does not exist, this machine has no GPU", advice)
    if gpu >= count:
        raise DeviceError(f"gpu {gpu} does not exist, this machine has {count}: {advice}")
    try:
        with cupy.cuda.Device(gpu):
            cupy.zeros(1)
    except Exception as error:
        raise NoGPUError(f"gpu {gpu} cannot be used ({_reason(error)})", advice) from None
    return Device(number)


def usable_gpu(gpu: int) -> tuple[int, str]:
    """Return the id, or −1 and one line that says why where no GPU can be used."""
    try:
        get_device(gpu)
    except NoGPUError as error:
        return -1, f"{error.problem}: the CPU is used"
    return gpu, ""


def on_device(name: str, array: Any, device: Any) -> Any:
    """Return an array if it is on the device, ours or Chainer's; nothing is moved."""
    if not isinstance(array, device.xp.ndarray) or device_of(array).name != device.name:
        raise ValueError(
            f"{name} must be on the model's device {device.name}, not {device_of(array).name}: "
            "move it by get_device(gpu).send"
        )
    return array


def beside(values: Any, array: Any, dtype: Any = None) -> Any:
    """Copy host values to where an array is; what is on a device already is not moved.

    Parameters
    ----------
    values
        A host array or a list, or an array of the array's module.
    array
        An array of any module, on any device.
    dtype
        The NumPy dtype to have.

    Returns
    -------
    array
        The values, of the array's module and on its device.

    Examples
    --------
    >>> beside([0.5, 1.0], np.zeros(3)).tolist()
    [0.5, 1.0]
    """
    if hasattr(values, "dtype") and not isinstance(values, (np.ndarray, np.generic)):
        xp = array_namespace(values, array)
        return values if dtype is None else xp.astype(values, dtype, copy=False)
    values = np.asarray(values, dtype=dtype)
    if isinstance(array, np.ndarray):
        return values
    xp, place = array_namespace(array), array_api_compat.device(array)
    if values.size == 1:  # written by the device itself: nothing to copy
        kind = getattr(xp, values.dtype.name)
        return xp.full(values.shape, values.item(), dtype=kind, device=place)
    return xp.asarray(values, device=place)


def to_numpy(array: Any) -> np.ndarray:
    """Copy an array of any module to the host.

    Parameters
    ----------
    array
        An array of any module.

    Returns
    -------
    numpy.ndarray
        The same values.

    Examples
    --------
    >>> to_numpy(np.arange(3)).tolist()
    [0, 1, 2]
    """
    if array_api_compat.is_cupy_array(array):
        return array.get()
    return np.asarray(array)


@cache
def _libraries() -> ThreadpoolController:
    # To look for the libraries of the process takes milliseconds, as long as a small fit.
    return ThreadpoolController()


def one_thread(library: str | None = "blas") -> Any:
    """Return a context in which BLAS, or ``None``: every library, runs on one thread.

    More threads change the rounding, and wait for each other.
    """
    return _libraries().limit(limits=1, user_api=library)


def _reason(error: BaseException) -> str:
    """Return the first cause in one line: CuPy wraps it into a page of advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__
