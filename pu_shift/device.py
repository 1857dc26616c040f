"""Which device computes, and which array module an array belongs to."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np

from pu_shift._chainer import chainer
from pu_shift._checks import as_index, shown


class DeviceError(RuntimeError):
    """The device that was asked for cannot be used; the message says how to go on."""


def array_namespace(*arrays: Any) -> Any:
    """Return the array-API namespace that the arrays share.

    Parameters
    ----------
    *arrays
        NumPy, CuPy or any other array-API arrays.

    Returns
    -------
    namespace
        A module with the functions of the array API standard.

    Raises
    ------
    ValueError
        When the arrays come from different array modules.

    Examples
    --------
    >>> float(array_namespace(np.ones(3)).sum(np.ones(3)))
    3.0
    """
    try:
        return array_api_compat.array_namespace(*arrays)
    except TypeError as error:
        raise ValueError(f"arrays must come from one array module: {error}") from None


def get_device(gpu: int = -1) -> Any:
    """Return the Chainer device for ``--gpu``.

    A real allocation is tried, because with CuPy installed but no driver
    Chainer believes that CUDA is available and fails only later.

    Parameters
    ----------
    gpu
        The id of the CUDA device, or −1 for the CPU.

    Returns
    -------
    chainer.backend.Device
        ``@numpy`` or ``@cupy:gpu``; ``device.xp`` is its array module.

    Raises
    ------
    DeviceError
        When the device cannot be used, in one line that says why.

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
            f"gpu {gpu} needs CuPy, which cannot be imported ({_first_line(error)}): "
            f"pip install 'pu-shift[gpu]', or {advice}"
        ) from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise DeviceError(
            f"gpu {gpu} needs a CUDA driver, and none answers ({_first_line(error)}): {advice}"
        ) from None
    if gpu >= count:
        raise DeviceError(f"gpu {gpu} does not exist, this machine has {count}: {advice}")
    try:
        with cupy.cuda.Device(gpu):
            cupy.zeros(1)
        return chainer.get_device(f"@cupy:{gpu}")
    except Exception as error:
        raise DeviceError(f"gpu {gpu} cannot be used ({_first_line(error)}): {advice}") from None


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


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
