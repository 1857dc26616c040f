"""How the code is laid out: a module imports only from its own layer or from those above it."""

import ast
from pathlib import Path

import pytest

from tests.children import python

PACKAGE = Path(__file__).resolve().parents[1] / "pu_shift"
# From the top; the map in CONTRIBUTING.md is made from it.
LAYERS = {
    "helpers": (
        "_version",
        "_chainer",
        "_checks",
        "_files",
        "_grids",
        "_labels",
        "_moved",
        "_pages",
        "_scores",
        "_seeds",
        "_signals",
        "_sklearn",
        "device",
    ),
    "theory": ("priors", "losses", "risks"),
    "numerics": ("bigdata", "ratios", "models", "training"),
    "learning": ("estimation", "estimators", "evaluation"),
    "use": ("files", "explorer", "plots", "cli", "__main__"),
    "data": ("data",),
    "paper": ("paper",),
    "pictures": ("report",),
}
RANK = {name: rank for rank, names in enumerate(LAYERS.values()) for name in names}
MODULES = sorted(
    path.relative_to(PACKAGE).with_suffix("").as_posix()
    for path in PACKAGE.rglob("*.py")
    if path.parent != PACKAGE or path.name != "__init__.py"
)


def room(module: str) -> str:
    """The module or subpackage of pu_shift that a path or a dotted name belongs to."""
    return module.replace("/", ".").split(".")[0]


def summary(module: str) -> str:
    """The first line of a module's docstring."""
    text = ast.get_docstring(ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8")))
    return (text or "").partition("\n")[0]


def imports(module: str) -> set[str]:
    """Names below pu_shift that a module imports as it is loaded."""
    found = set()
    for node in ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "pu_shift":
            found |= {f"pu_shift.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
    prefix = "pu_shift."
    return {name.removeprefix(prefix) for name in found if name.startswith(prefix)}


# The rules of the house; what is listed as an exception is to become shorter.
MOST_AT_THE_TOP, MOST_LINES, MOST_IMPORTS = 18, 480, 12
LONGER: set[str] = set()
MORE_IMPORTS = {"estimators/risk_minimization"}


def test_few_modules_and_packages_stand_at_the_top():
    assert len({name for module in MODULES if (name := room(module))[0] != "_"}) <= MOST_AT_THE_TOP


def test_no_module_is_too_long():
    lengths = {m: len((PACKAGE / f"{m}.py").read_text("utf-8").splitlines()) for m in MODULES}
    assert {module for module, lines in lengths.items() if lines > MOST_LINES} <= LONGER


def test_no_module_imports_too_many_others():
    many = {module for module in MODULES if len(imports(module)) > MOST_IMPORTS}
    assert many <= MORE_IMPORTS


def test_every_module_says_in_one_line_what_it_is_for():
    for module in MODULES:
        assert summary(module).endswith(".")


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_upwards(module):
    below = {name for name in imports(module) if RANK[room(name)] > RANK[room(module)]}
    assert not below, f"{module} imports from a lower layer"


def test_within_a_layer_nothing_goes_round_in_circles():
    graph = {module: {name.replace(".", "/") for name in imports(module)} for module in MODULES}
    while leaves := [name for name, needs in graph.items() if not needs & set(graph)]:
        for name in leaves:
            del graph[name]
    assert not graph


def test_chainer_stands_behind_risk_minimisation_alone():
    """The others may ask whether it is there, and say that it is not."""
    using = set()
    for module in MODULES:
        source = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module == "pu_shift._chainer":
                names = {alias.name for alias in node.names}
                using |= {module} if names - {"ChainerMissingError", "require_chainer"} else set()
            elif isinstance(node, ast.Import) and module != "_chainer":
                assert not any(alias.name.startswith("chainer") for alias in node.names), module
    assert using == {"risks", "models", "training"}


def test_a_user_does_not_load_what_only_the_paper_needs():
    run = "from pu_shift.cli import main; main(['predict', 'no-such-model.npz', 'rows.csv'])"
    heavy = {"pandas", "matplotlib", "pu_shift.paper", "pu_shift.report", "pu_shift.data"}
    # Recent releases of scikit-learn load pandas themselves, where it is installed.
    code = "import sys, sklearn.base; before = set(sys.modules)\n"
    code += f"{run}\nprint(sorted({heavy} & (set(sys.modules) - before)))"
    done = python("-c", code)
    assert done.stdout.splitlines()[-1] == "[]"


def test_importing_the_package_takes_no_time_and_gives_every_public_name():
    code = """
import sys, pu_shift
assert not {"sklearn", "scipy", "pandas", "chainer"} & set(sys.modules)
assert set(pu_shift.__all__) == {*pu_shift._MODULES, "__version__"} <= set(dir(pu_shift))
print(all(callable(getattr(pu_shift, name)) for name in pu_shift._MODULES))
assert pu_shift.losses.__name__ == "pu_shift.losses" and not hasattr(pu_shift, "nothing")
"""
    done = python("-c", code)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
