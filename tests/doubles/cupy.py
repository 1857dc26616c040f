"""A strict stand-in for CuPy: device arrays that live in host memory but refuse to be mixed.

Put this folder on ``PYTHONPATH`` and ``import cupy`` finds it, for Chainer as
for pu_shift. It is stricter than CuPy:

* an operation takes device arrays and numbers only, and only arrays of the
  current device: a host array in an operator, a function, an index or an
  assignment is a :class:`MixError`;
* a copy between host and device is allowed from Chainer's device object and
  from ``pu_shift/device.py`` only;
* calling a function that is not in :data:`FUNCTIONS`, the ones that CuPy 12.3
  to 14 are known to have, is an error.

``FAKE_CUDA_DEVICES`` is the number of devices (2). With ``FAKE_CUDA=no-driver``
asking for it fails as it does without a driver, and with ``FAKE_CUDA=absent``
there is no CuPy.
"""

from __future__ import annotations

import functools
import operator
import os
import sys
import types
from pathlib import Path

import numpy as _np

if os.environ.get("FAKE_CUDA") == "absent":
    raise ModuleNotFoundError("No module named 'cupy'", name="cupy")

__version__ = "13.6.0"

_HERE = Path(__file__).resolve().parent
FUNCTIONS = frozenset((_HERE / "cupy_functions.txt").read_text(encoding="utf-8").split())
NEED_NO_ARRAY = (
    "arange",
    "broadcast_shapes",
    "empty",
    "finfo",
    "full",
    "issubdtype",
    "ones",
    "zeros",
)
_ABSENT = ("isdtype", "vecdot", "vector_norm", "unstack")  # not before CuPy 14
_CROSSERS = ("chainer/backends/cuda.py", "chainer/backends/_cpu.py", "pu_shift/device.py")


class MixError(TypeError):
    """A host array where a device array must be, or a copy that nobody asked for."""


def _caller():
    """Return the file and line outside this double and the thin wrapper of the array API."""
    frame = sys._getframe(1)
    while Path(frame.f_code.co_filename).parent == _HERE or (
        "array_api_compat" in frame.f_code.co_filename
    ):
        frame = frame.f_back
    return Path(frame.f_code.co_filename).as_posix(), frame.f_lineno


def _cross(to, values):
    name, line = _caller()
    if not name.endswith(_CROSSERS):
        raise MixError(f"an array of shape {values.shape} crossed to the {to} in {name}:{line}")


# Devices ------------------------------------------------------------------------------------


class CUDARuntimeError(RuntimeError):
    """What a missing driver and a wrong device raise."""


def _count():
    if os.environ.get("FAKE_CUDA") == "no-driver":
        raise CUDARuntimeError(
            "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime "
            "version"
        )
    return int(os.environ.get("FAKE_CUDA_DEVICES", "2"))


class Device:
    """A device; as a context it is the current one."""

    stack = [0]  # noqa: RUF012  (the current device is global, as in CUDA)

    def __init__(self, device=None):
        self.id = self.stack[-1] if device is None else int(device)
        if self.id >= _count():
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def __enter__(self):
        self.stack.append(self.id)
        return self

    def __exit__(self, *error):
        self.stack.pop()

    def use(self):
        self.stack[-1] = self.id

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self):
        return hash(self.id)

    def synchronize(self):
        pass


# Arrays -------------------------------------------------------------------------------------


def _unwrap(value):
    """Return what NumPy needs in place of an argument, or refuse it."""
    if isinstance(value, ndarray):
        if value.device.id != Device.stack[-1]:
            raise MixError(
                f"an array of device {value.device.id} was used on device {Device.stack[-1]}"
            )
        return value._host
    if isinstance(value, _np.ndarray):
        raise MixError(f"a host array of shape {value.shape} met the device")
    if type(value) in (list, tuple):
        return type(value)(_unwrap(item) for item in value)
    return value


def _wrap(value):
    if isinstance(value, (_np.ndarray, _np.generic)):
        return ndarray(_np.asarray(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_wrap, value))
    if isinstance(value, (tuple, list)):
        return type(value)(map(_wrap, value))
    return value


def _index(item):
    for part in item if isinstance(item, tuple) else (item,):
        if isinstance(part, list):
            raise MixError("a list was used as an index of a device array")
    return _unwrap(item)


def _method(name):
    def method(self, *args, **kwargs):
        arguments = map(_unwrap, args)
        options = {key: _unwrap(value) for key, value in kwargs.items()}
        out = kwargs.get("out")
        value = getattr(_unwrap(self), name)(*arguments, **options)
        return _wrap(value) if out is None else out

    return method


def _operator(function, reflected=False):
    def method(self, other):
        if isinstance(other, (_np.ndarray, list)):
            raise MixError(f"a host array met a device array in {function.__name__}")
        pair = (_unwrap(self), _unwrap(other))
        return _wrap(function(*(pair[::-1] if reflected else pair)))

    return method


def _inplace(function):
    def method(self, other):
        function(_unwrap(self), _unwrap(other))
        return self

    return method


def _number(kind):
    def method(self):
        if self.size != 1:
            raise TypeError("only an array of one element can be read as a number")
        return kind(self._host.reshape(()))

    return method


class ndarray:  # noqa: N801
    """An array on a device."""

    __array_ufunc__ = None  # so that a host array on the left is refused too

    def __init__(self, host):
        self._host = host
        self.device = Device()

    def __array__(self, *args, **kwargs):
        raise MixError("implicit conversion of a device array to a host array")

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __len__(self):
        return len(self._host)

    def __getitem__(self, item):
        return _wrap(_unwrap(self)[_index(item)])

    def __setitem__(self, item, value):
        _unwrap(self)[_index(item)] = _unwrap(value)

    def get(self, stream=None):
        _cross("host", self._host)
        return self._host.copy()

    def scatter_add(self, slices, value):
        _np.add.at(_unwrap(self), _index(slices), _unwrap(value))

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    flags = property(lambda self: self._host.flags)
    strides = property(lambda self: self._host.strides)
    T = property(lambda self: _wrap(_unwrap(self).T))

    __float__, __int__, __bool__ = _number(float), _number(int), _number(bool)
    __neg__, __invert__ = _method("__neg__"), _method("__invert__")
    __hash__ = None


_METHODS = (
    *("all", "any", "argmin", "astype", "copy", "dot", "fill", "max", "mean", "min"),
    *("ravel", "reshape", "squeeze", "sum", "swapaxes", "take", "transpose", "var"),
)
for _name in _METHODS:
    setattr(ndarray, _name, _method(_name))
for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
):
    _function = getattr(operator, _name + "_" * (_name in ("and", "or")))
    setattr(ndarray, f"__{_name}__", _operator(_function))
    setattr(ndarray, f"__r{_name}__", _operator(_function, reflected=True))
    setattr(ndarray, f"__i{_name}__", _inplace(getattr(operator, f"i{_name}")))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(ndarray, f"__{_name}__", _operator(getattr(operator, _name)))


# Functions ----------------------------------------------------------------------------------


def _checked(name, function):
    @functools.wraps(function)
    def on_device(*args, **kwargs):
        if name not in FUNCTIONS:
            raise MixError(f"{name} is not known to be in CuPy 12.3 to 14")
        arguments = [_unwrap(value) for value in args]
        options = {key: _unwrap(value) for key, value in kwargs.items()}
        if name not in NEED_NO_ARRAY and not any(
            isinstance(value, _np.ndarray) for value in _flat(arguments)
        ):
            raise MixError(f"{name} was called without a device array")
        value = function(*arguments, **options)
        return _wrap(value) if kwargs.get("out") is None else kwargs["out"]

    return on_device


def _flat(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


def split(ary, indices_or_sections, axis=0):
    """Cut an array into views; CuPy takes the places from the host."""
    return [_wrap(part) for part in _np.split(_unwrap(ary), indices_or_sections, axis)]


def asarray(a, dtype=None, order=None, **options):
    """Copy to the device what is not there; the only function that takes host arrays."""
    return array(a, dtype=dtype, copy=None)


def array(obj, dtype=None, copy=True, order=None, **options):
    if isinstance(obj, ndarray):
        same = dtype is None or obj.dtype == dtype
        values = obj._host if obj.device.id != Device.stack[-1] else _unwrap(obj)
        return obj if same and not copy and values is obj._host else _wrap(values.astype(dtype))
    values = _np.array(obj, dtype=dtype)
    if values.ndim:  # a number travels with the launch of a kernel
        _cross("device", values)
    return _wrap(values)


def _namespace(module, prefix=""):
    """Wrap the functions of NumPy; types and constants are NumPy's own, as in CuPy."""

    def getattr_(name):
        if name.startswith("__") or name in _ABSENT or not hasattr(module, name):
            raise AttributeError(name)
        value = getattr(module, name)
        if isinstance(value, (type, types.ModuleType)) or not callable(value):
            return value
        return _checked(prefix + name, value)

    return getattr_


_from_numpy = _namespace(_np)


def __getattr__(name):
    return _from_numpy(name)


__all__ = [
    *(
        name
        for name in _np.__all__
        if not name.startswith("__")
        and name not in (*_ABSENT, "array", "asarray", "ndarray", "linalg", "fft")
    ),
    "array",
    "asarray",
    "ndarray",
]


# What Chainer imports -----------------------------------------------------------------------

KERNELS = {
    "relu_bwd": lambda y, gy: _np.where(y > 0, gy, _np.zeros_like(gy)),
    "softplus_fwd": lambda x, beta, beta_inv: _np.logaddexp(_np.zeros_like(x), beta * x) * beta_inv,
    "softplus_bwd": lambda x, gy, beta: (1 - 1 / (1 + _np.exp(beta * x))) * gy,
    "bn_fwd": lambda x, mean, inv_std, gamma, beta: gamma * (x - mean) * inv_std + beta,
    "bn_bwd": lambda gy, x_hat, gamma, inv_std, ggamma, gbeta, inv_m: (
        (gamma * inv_std) * (gy - (x_hat * ggamma + gbeta) * inv_m)
    ),
}


def _amsgrad(grad, alpha_t, rate1, rate2, eps, eta, decay, dummy, param, m, v, v_max):
    m += rate1 * (grad - m)
    v += rate2 * (grad * grad - v)
    _np.maximum(v_max, v, out=v_max)
    param -= eta * (alpha_t * m / (_np.sqrt(v_max) + eps) + decay * param)


def _weight_decay(p, decay, g):
    g += decay * p


def _update_mean_var(mean, var, decay, adjust, running_mean, running_var):
    running_mean[...] = running_mean * decay + mean * (1 - decay)
    running_var[...] = running_var * decay + var * (1 - decay) * adjust


KERNELS.update(adam=_amsgrad, weight_decay=_weight_decay, update_mean_var=_update_mean_var)


class ElementwiseKernel:
    """One of Chainer's kernels, by its name, computed by NumPy."""

    def __init__(self, in_params, out_params, operation, name="kernel", **options):
        self.name = name

    def __call__(self, *args):
        value = KERNELS[self.name](*map(_unwrap, args))
        return None if value is None else _wrap(value)


def memoize(*args, **kwargs):
    """Remember nothing, and fuse nothing."""
    return lambda function: function


fuse = memoize


def get_array_module(*args):
    """Tell whether the arguments live on the device."""
    return sys.modules[__name__ if any(isinstance(arg, ndarray) for arg in args) else "numpy"]


def clear_memo():
    pass


def get_default_memory_pool():
    return None


get_default_pinned_memory_pool = get_default_memory_pool


def _module(name, **contents):
    module = types.ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module
    return module


class _Unused:
    """Chainer names it, nothing here calls it."""


linalg = _module("cupy.linalg", __getattr__=_namespace(_np.linalg, "linalg."), lstsq=_Unused)
linalg.__all__ = [name for name in _np.linalg.__all__ if name not in _ABSENT]
fft = _module("cupy.fft", __getattr__=_namespace(_np.fft, "fft."))
fft.__all__ = list(_np.fft.__all__)
_runtime = types.SimpleNamespace(getDeviceCount=_count, CUDARuntimeError=CUDARuntimeError)
cuda = _module(
    "cupy.cuda",
    Device=Device,
    Event=_Unused,
    Stream=_Unused,
    cublas=_Unused,
    runtime=_runtime,
    device=_module("cupy.cuda.device", Device=Device),
)
_module("cupy._util", PerformanceWarning=type("PerformanceWarning", (Warning,), {}))


def _rsqrt(x, dtype=None):
    return _wrap(_np.reciprocal(_np.sqrt(_unwrap(x), dtype=dtype)))


for _name in ("cupyx.scipy", "cupyx.scipy.linalg", "cupyx.scipy.special"):
    _module(_name)
_module("cupyx", rsqrt=_rsqrt, scipy=sys.modules["cupyx.scipy"])
