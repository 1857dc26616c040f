"""Which device computes, and the only ways that arrays cross between it and the host.

Samples go there by ``get_device(gpu).send``, small vectors (row numbers, candidates) by
:func:`beside`, and results come back by :func:`to_numpy`.
"""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np

from pu_shift._chainer import chainer
from pu_shift._checks import as_index, shown


class DeviceError(RuntimeError):
    """The device that was asked for cannot be used; the message says how to go on."""


def array_namespace(*arrays: Any) -> Any:
    """Return the array-API namespace that the arrays share, or raise a ValueError."""
    try:
        return array_api_compat.array_namespace(*arrays)
    except TypeError as error:
        raise ValueError(f"arrays must come from one array module: {error}") from None


def get_device(gpu: int = -1) -> Any:
    """Return the Chainer device for ``--gpu``.

    A real allocation is tried, because with CuPy installed but no driver Chainer believes that
    CUDA is available and fails only later.

    Parameters
    ----------
    gpu
        The id of the CUDA device, or −1 for the CPU.

    Returns
    -------
    chainer.backend.Device
        ``@numpy`` or ``@cupy:gpu``; ``device.xp`` is its array module. When it cannot be used a
        :class:`DeviceError` says why in one line.

    Examples
    --------
    >>> get_device(-1).name
    '@numpy'
    """
    number = as_index(gpu)
    if number is None or number < -1:
        raise ValueError(f"gpu must be a device id >= 0, or -1 for the CPU, got {shown(gpu)}")
    if gpu == -1:
        return chainer.get_device("@numpy")
    advice = "run with --gpu -1 to use the CPU"
    try:
        import cupy
    except Exception as error:  # a broken CUDA installation raises more than ImportError
        raise DeviceError(
            f"gpu {gpu} needs CuPy, which cannot be imported ({_reason(error)}): "
            f"pip install 'pu-shift[gpu]', or {advice}"
        ) from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise DeviceError(
            f"gpu {gpu} needs a CUDA driver, and none answers ({_reason(error)}): {advice}"
        ) from None
    if gpu >= count:
        raise DeviceError(f"gpu {gpu} does not exist, this machine has {count}: {advice}")
    try:
        with cupy.cuda.Device(gpu):
            cupy.zeros(1)
        return chainer.get_device(f"@cupy:{gpu}")
    except Exception as error:
        raise DeviceError(f"gpu {gpu} cannot be used ({_reason(error)}): {advice}") from None


def on_device(name: str, array: Any, device: Any) -> Any:
    """Return an array if it is on the device; nothing is moved."""
    if not device.is_array_supported(array):
        where = chainer.backend.get_device_from_array(array).name
        raise ValueError(
            f"{name} must be on the model's device {device.name}, not {where}: "
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


def _reason(error: BaseException) -> str:
    """Return the first cause in one line: CuPy wraps it into a page of advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__
