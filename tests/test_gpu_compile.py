"""The kernels of training without a card: NVRTC compiles them, their bodies do what NumPy does.

Chainer's kernels are recorded while the stand-in for CuPy trains models. With CuPy's headers and
NVIDIA's compiler, which `make test-gpu-compile` installs, they are compiled for four generations
of cards; neither needs a driver. The host's compiler makes functions of the same bodies.
"""

import ctypes
import json
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests import children
from tests.children import ROOT

CARDS = ("sm_70", "sm_80", "sm_90", "sm_120")
TYPES = {"float": np.float32, "double": np.float64}
# What operators of arrays call.
ARITHMETIC = {"add", "subtract", "multiply", "true_divide", "negative", "greater", "less"}

RECORD = """
import json
import cupy
import numpy as np

kernels, functions, computed = {}, set(), True


class Recorded(cupy.ElementwiseKernel):
    def __init__(self, ins, outs, operation, name="kernel", **options):
        super().__init__(ins, outs, operation, name, **options)
        self.text = {"ins": ins, "outs": outs, "operation": operation, "name": name, **options}

    def __call__(self, *arguments):
        arrays = [isinstance(argument, cupy.ndarray) for argument in arguments]
        kernels[self.text["name"] + self.text["operation"]] = {**self.text, "arrays": arrays}
        return super().__call__(*arguments) if computed else None


def recorded(name, function, checked=cupy._checked):
    def call(*arguments, **options):
        functions.add(name)
        return checked(name, function)(*arguments, **options)

    return call


cupy.ElementwiseKernel, cupy._checked = Recorded, recorded

from pu_shift import RiskMinimizationClassifier
from pu_shift._chainer import chainer
from pu_shift.models import MLP, LinearModel

rng = np.random.default_rng(0)
X_p, X_u = rng.normal(1.0, 1.0, (30, 2)), rng.normal(0.0, 1.0, (60, 2))
for loss in ("double_hinge", "squared", "logistic"):
    for changes in ({"basis": "linear"}, {"basis": "gaussian"}, {"model": MLP(2)}):
        few = {"n_steps": 2, "n_batches": 2, "n_folds": 2, "lams": [0.01, 0.1], "gpu": 0}
        if "model" in changes:  # with every kernel that a network may use
            few = {"n_steps": 2, "gpu": 0, "lams": 0.01}
        RiskMinimizationClassifier(0.4, loss=loss, **few, **changes).fit_pu(X_p, X_u)
computed = False
for name in ("Adam", "AMSGrad", "AdaBound", "AMSBound"):
    model = LinearModel(3)
    model.to_device("@cupy:0")
    optimizer = getattr(chainer.optimizers, name)()
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(0.1))
    for param in model.params():
        param.grad = cupy.zeros_like(param.array)
    optimizer.update()
print(json.dumps({"kernels": list(kernels.values()), "functions": sorted(functions)}))
"""


@cache
def recorded():
    """Return the kernels of Chainer and the functions of CuPy that training calls."""
    pytest.importorskip("chainer")
    done = children.python("-c", RECORD, path=[ROOT / "tests" / "doubles", ROOT], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def parameters(kernel):
    """Yield type, name, whether it is raw, and whether an array, of each parameter."""
    texts = [*kernel["ins"].split(","), *kernel["outs"].split(",")]
    arrays = [*kernel["arrays"], *[True] * len(texts)]
    for text, array in zip(texts, arrays):
        *raw, kind, name = text.split()
        yield kind, name, bool(raw), array


def aliases(kernel, kind):
    """Write what the one-letter types of a kernel stand for."""
    letters = sorted({type_ for type_, *_ in parameters(kernel) if len(type_) == 1})
    return "".join(f"typedef {kind} {letter};\n" for letter in letters)


def test_the_kernels_of_training_are_recorded():
    names = {kernel["name"] for kernel in recorded()["kernels"]}
    assert {"adam", "adabound", "amsbound", "weight_decay", "relu_bwd"} <= names
    assert {"maximum", "take", "sum"} & set(recorded()["functions"])


# With NVIDIA's compiler ------------------------------------------------------------------------

HEAD = "#include <cupy/complex.cuh>\n#include <cupy/carray.cuh>\n#include <cupy/math_constants.h>\n"


def device_source(kernel, kind):
    """Write a kernel as CuPy does: arrays as CArray, numbers by value, one element at a time."""
    passed, bound = [], []
    for type_, name, raw, array in parameters(kernel):
        if raw:
            passed.append(f"CArray<{type_}, 1, true, true> {name}")
        elif array:
            passed.append(f"CArray<{type_}, 1, true, true> _raw_{name}")
            bound.append(f"{type_} &{name} = _raw_{name}[_ind.get()];")
        else:
            passed.append(f"const {type_} {name}")
    types = aliases(kernel, kind)
    return (
        f"{HEAD}{kernel.get('preamble', '')}\n{types}"
        f'extern "C" __global__ void kernel({", ".join(passed)}, CIndexer<1, true> _ind) {{\n'
        f"CUPY_FOR(i, _ind.size()) {{ _ind.set(i); {' '.join(bound)} {kernel['operation']}; }} }}\n"
    )


def function_source(function, kind):
    """Write a function of CuPy for a type, or return None if it is no kernel of that type."""
    operations = getattr(getattr(function, "_ops", None), "ops", ())
    wanted = np.dtype(TYPES[kind])
    found = [
        op for op in operations if set(op.in_types) == {wanted} and isinstance(op.routine, str)
    ]
    if not found:
        return None
    kinds = {"?": "bool", "f": "float", "d": "double"}
    places = [(f"in{i}", kind) for i in range(len(found[0].in_types))]
    places += [(f"out{i}", kinds[np.dtype(t).char]) for i, t in enumerate(found[0].out_types)]
    types = "".join(f"typedef {type_} {name}_type;\n" for name, type_ in places)
    passed = ", ".join(f"CArray<{type_}, 1, true, true> _raw_{name}" for name, type_ in places)
    bound = " ".join(f"{type_} &{name} = _raw_{name}[_ind.get()];" for name, type_ in places)
    return (
        f"{HEAD}{getattr(function, '_preamble', '')}\n{types}"
        f'extern "C" __global__ void kernel({passed}, CIndexer<1, true> _ind) {{\n'
        f"CUPY_FOR(i, _ind.size()) {{ _ind.set(i); {bound} {found[0].routine}; }} }}\n"
    )


def folder_of(package):
    spec = find_spec(package) if find_spec(package.partition(".")[0]) else None
    return Path(next(iter(spec.submodule_search_locations))) if spec else None


@cache
def nvrtc():
    """Return NVIDIA's compiler and the options that CuPy gives it; skip where there is none."""
    places = [folder_of(name) for name in ("cupy", "nvidia.cuda_nvrtc", "nvidia.cuda_runtime")]
    if None in places:
        pytest.skip("needs cupy-cuda12x and nvidia-cuda-nvrtc-cu12: make test-gpu-compile")
    cupy, compiler, runtime = places
    (library,) = (compiler / "lib").glob("libnvrtc.so.*")
    include = cupy / "_core" / "include"
    parts = [include / "cupy" / "_cccl" / name for name in ("libcudacxx", "thrust", "cub")]
    folders = [include, *parts, runtime / "include"]
    return ctypes.CDLL(str(library)), [f"-I{folder}" for folder in folders]


def compiled(source, card):
    """Compile a kernel for a card; return the size of the binary, or fail with the log."""
    library, includes = nvrtc()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    options = [f"--gpu-architecture={card}", "-std=c++17", *includes]
    texts = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    status = library.nvrtcCompileProgram(program, len(options), texts)
    if status:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        pytest.fail(f"{card}: {log.value.decode()[:2000]}\n{source}")
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return size.value


@pytest.mark.parametrize("card", CARDS)
def test_nvrtc_compiles_chainers_kernels(card, record_property):
    nvrtc()
    sources = [device_source(one, kind) for one in recorded()["kernels"] for kind in TYPES]
    sizes = [compiled(source, card) for source in sources]
    assert all(sizes)
    record_property("kernels", len(sizes))
    print(f"{card}: {len(sizes)} of {len(sizes)} of Chainer's kernels")


@pytest.mark.parametrize("card", CARDS)
def test_nvrtc_compiles_cupys_functions(card):
    nvrtc()
    # The real CuPy: its functions are the text of kernels, until they are called.
    code = (
        "import sys, json, cupy; from tests.test_gpu_compile import *\n"
        "pairs = [(name, kind) for name in sys.argv[1].split() for kind in TYPES]\n"
        "made = {f'{n} {k}': function_source(getattr(cupy, n, None), k) for n, k in pairs}\n"
        "print(json.dumps({name: source for name, source in made.items() if source}))"
    )
    names = " ".join(ARITHMETIC | set(recorded()["functions"]))
    done = children.python("-c", code, names, path=[ROOT], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    sources = json.loads(done.stdout.splitlines()[-1])
    assert {f"{name} float" for name in ("add", "multiply", "maximum", "sqrt")} & set(sources)
    assert all(compiled(source, card) for source in sources.values())
    print(f"{card}: {len(sources)} of {len(sources)} of CuPy's functions")


def test_nvrtc_refuses_a_kernel_that_is_wrong():
    kernel = {"ins": "T x", "outs": "T y", "operation": "y = no_such(x)", "arrays": [True]}
    nvrtc()
    with pytest.raises(pytest.fail.Exception, match="no_such"):
        compiled(device_source(kernel, "float"), CARDS[0])


# With the host's compiler ----------------------------------------------------------------------


def on_host(kernel, kind, folder):
    """Compile the body of a kernel for the host; return a function of arrays and numbers."""
    gxx = shutil.which("g++")
    if gxx is None:
        pytest.skip("needs g++")
    passed, bound = [], []
    for type_, name, raw, array in parameters(kernel):
        passed.append(f"{type_} *_{name}" if array or raw else f"{type_} {name}")
        if array and not raw:
            bound.append(f"{type_} &{name} = _{name}[i];")
    source = folder / "kernel.cpp"
    types = aliases(kernel, kind)
    source.write_text(
        f"#include <algorithm>\n#include <cmath>\nusing namespace std;\n{types}"
        f'extern "C" void kernel(long n, {", ".join(passed)}) {{\n'
        f"for (long i = 0; i < n; ++i) {{ {' '.join(bound)} {kernel['operation']}; }} }}\n",
        encoding="utf-8",
    )
    library = folder / "kernel.so"
    subprocess.run([gxx, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    kernel_function = ctypes.CDLL(str(library)).kernel
    number = ctypes.c_float if kind == "float" else ctypes.c_double

    def call(n, *arguments):
        passed = [
            argument.ctypes.data_as(ctypes.c_void_p)
            if isinstance(argument, np.ndarray)
            else number(argument)
            for argument in arguments
        ]
        kernel_function(ctypes.c_long(n), *passed)

    return call


def named(name, wanted=lambda kernel: True):
    return next(k for k in recorded()["kernels"] if k["name"] == name and wanted(k))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ["Adam", "AMSGrad", "AdaBound", "AMSBound"])
def test_the_body_of_an_update_is_chainers_update_on_the_cpu(name, kind, tmp_path):
    chainer = pytest.importorskip("chainer")
    ams, bound = name.startswith("AMS"), name.endswith("Bound")
    label = ("ams" if ams else "ada") + "bound" if bound else "adam"
    kernel = named(label, lambda kernel: ("vhat" in kernel["outs"]) == ams)
    rng, dtype, n = np.random.default_rng(0), TYPES[kind], 500
    param = chainer.Parameter(rng.normal(size=n).astype(dtype))
    param.grad = rng.normal(size=n).astype(dtype)
    rule = getattr(chainer.optimizers, name)(alpha=0.01).create_update_rule()
    rule._init_states(param)
    rule.t = 3
    for state in rule.state.values():
        state[...] = rng.uniform(0.0, 1.0, n)
    states = [rule.state[key] for key in ("m", "v", "vhat") if key in rule.state]
    arrays = [array.copy() for array in (param.array, *states)]
    hp = rule.hyperparam
    numbers = [rule.alpha_t, 1 - hp.beta1, 1 - hp.beta2]
    numbers += list(rule.bounds) if bound else []
    numbers += [hp.eps, hp.eta, hp.weight_decay_rate]
    on_host(kernel, kind, tmp_path)(n, param.grad, *numbers, np.empty(0, dtype), *arrays)
    rule.update_core_cpu(param)
    digits = 1e-5 if kind == "float" else 1e-12
    for found, expected in zip(arrays, (param.array, *states)):
        np.testing.assert_allclose(found, expected, rtol=digits, atol=digits)


@pytest.mark.parametrize("kind", TYPES)
def test_the_body_of_weight_decay_adds_the_weights_to_the_gradient(kind, tmp_path):
    rng = np.random.default_rng(1)
    p, g = rng.normal(size=(2, 300)).astype(TYPES[kind])
    expected = g + TYPES[kind](0.1) * p
    on_host(named("weight_decay"), kind, tmp_path)(300, p, 0.1, g)
    np.testing.assert_allclose(g, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", TYPES)
def test_the_body_of_relus_gradient_is_zero_where_relu_is(kind, tmp_path):
    rng = np.random.default_rng(2)
    y, gy = rng.normal(size=(2, 300)).astype(TYPES[kind])
    gx = np.empty_like(y)
    on_host(named("relu_bwd"), kind, tmp_path)(300, y, gy, gx)
    np.testing.assert_array_equal(gx, np.where(y > 0, gy, 0))
