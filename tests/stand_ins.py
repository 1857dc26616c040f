"""Made-up rows in the shape of a dataset, for tests that do not care which rows they get."""

import os

import numpy as np

FOLDER = "made-up-rows"


def write_banana(folder):
    """Write two crescents, in KEEL's format, which may hold rows other than the known ones."""
    rng = np.random.default_rng(1460)
    y = rng.permutation(np.repeat([1, -1], [2_376, 2_924]))
    angle = rng.uniform(0.0, np.pi, len(y))
    centre = np.where(y[:, None] == 1, [-0.5, -0.3], [0.5, 0.3])
    X = centre + 1.2 * np.stack([np.cos(angle), y * np.sin(angle)], axis=1)
    X = np.clip(X + rng.normal(0.0, 0.35, X.shape), -3.0, 3.0)
    lines = (f"{first:.3f},{second:.3f},{label}\n" for (first, second), label in zip(X, y))
    _write(folder, "banana.dat", lines)


def write_cod_rna(folder):
    """Write two clouds that overlap, as LIBSVM text."""
    rng = np.random.default_rng(59_535)
    y = rng.permutation(np.repeat([1, -1], [19_845, 39_690]))
    X = rng.normal(np.where(y[:, None] == 1, 0.4, -0.4), 1.0, (len(y), 8)).clip(-9.0, 9.0)
    form = "%d " + " ".join(f"{j}:%.2f" for j in range(1, 9)) + "\n"
    _write(folder, "cod-rna", (form % (label, *row) for label, row in zip(y, X)))


def _write(folder, name, lines):
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.writelines(lines)


WRITERS = {"banana": write_banana, "cod-rna": write_cod_rna}
