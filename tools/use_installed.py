"""Use the pu-shift that is installed: import it all, fit and predict by the command and in Python.

`make wheel` runs it with the interpreter of an environment that has nothing but the wheel.
"""

from __future__ import annotations

import csv
import importlib
import pkgutil
import platform
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pu_shift

HERE = Path(sys.executable).parent
# The share of new rows that the classifier must get right: the classes are far apart.
ENOUGH = 0.95


def import_everything() -> int:
    """Import every module and read every public name; return how many modules there are."""
    names = [found.name for found in pkgutil.walk_packages(pu_shift.__path__, "pu_shift.")]
    for name in names:
        # It is a program: to import it is to run it.
        if not name.endswith(".__main__"):
            importlib.import_module(name)
    for name in pu_shift.__all__:
        getattr(pu_shift, name)
    return len(names)


def write_rows(path: Path, classes: list[int], labels: list[int]) -> None:
    """Write made-up rows, two features each."""
    draw = random.Random(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["length", "weight", "labelled"])
        for y, label in zip(classes, labels):
            table.writerow([draw.gauss(2.0 * y, 1.0), draw.gauss(-2.0 * y, 1.0), label])


def read(path: Path) -> list[list[float]]:
    """Return the numbers of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]


def command(*words: str | Path) -> str:
    """Run the installed command and return what it says."""
    run = subprocess.run(
        [HERE / "pu-shift", *words], check=True, stdout=subprocess.PIPE, encoding="utf-8"
    )
    return run.stdout.strip()


def right(predicted: list[float], classes: list[int]) -> None:
    """Refuse predictions that are no better than luck."""
    share = sum(a == b for a, b in zip(predicted, classes)) / len(classes)
    if len(predicted) != len(classes) or share < ENOUGH:
        raise SystemExit(f"only {share:.1%} of {len(predicted)} rows are predicted rightly")


def main() -> None:
    """Use everything once, or end with the reason."""
    if HERE.parent not in Path(pu_shift.__file__).parents:
        raise SystemExit(f"{pu_shift.__file__} is not what was installed beside {sys.executable}")
    n_modules = import_everything()
    version = command("--version")
    if pu_shift.__version__ not in version:
        raise SystemExit(f"pu-shift --version says {version!r}, not {pu_shift.__version__}")
    # 100 labelled positives; 120 of the 300 unlabelled rows are positive.
    classes, labels = [1] * 220 + [-1] * 180, [1] * 100 + [0] * 300
    new = [1] * 90 + [-1] * 60
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train, test = folder / "train.csv", folder / "new.csv"
        model, out = folder / "model.npz", folder / "out.csv"
        write_rows(train, classes, labels)
        write_rows(test, new, [0] * len(new))
        command("fit", train, "--label", "labelled", "--prior", "0.4", "--out", model)
        command("predict", model, test, "--test-prior", "0.6", "--out", out)
        right([row[0] for row in read(out)], new)
        X, X_new = ([row[:2] for row in read(path)] for path in (train, test))
        classifier = pu_shift.DensityRatioClassifier(prior=0.4)
        classifier.fit_pu(X[:100], X[100:])
        right(classifier.predict(X_new, test_prior=0.6).tolist(), new)
    print(f"{version}, Python {platform.python_version()}: {n_modules} modules, fit and predict")


if __name__ == "__main__":
    main()
