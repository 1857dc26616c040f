"""Your own files: CSV, KEEL or ARFF tables and LIBSVM text."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union

import numpy as np

from pu_shift._checks import one_line
from pu_shift.data.dataset import DataError, Dataset, show
from pu_shift.data.parsers import (
    members,
    parse_libsvm,
    parse_table,
    read_content,
    reading,
    to_signs,
)

PathLike = Union[str, "os.PathLike[str]"]


def load_csv(path: PathLike, label: int | str = -1, positive: Any = None) -> Dataset:
    """Load a table of numeric features, plain or compressed: CSV, KEEL or ARFF.

    `label` is the column of the labels: its position (from 0; negative from the end) or,
    where there is a header, its name. `positive` is the label, or the labels, that become
    +1, all others becoming −1; it is not needed when they are ±1 or 0/1.
    """
    path = Path(path)
    return _dataset(path, positive, parse_table, _content(path), label)


def load_libsvm(path: PathLike, positive: Any = None) -> Dataset:
    """Load LIBSVM text, plain or compressed; `positive` as for `load_csv`."""
    path = Path(path)
    return _dataset(path, positive, parse_libsvm, _content(path))


def load_file(path: PathLike, label: int | str | None = None, positive: Any = None) -> Dataset:
    """Load a file of any of the formats above; its first line tells which."""
    path = Path(path)
    content = _content(path)
    if not re.match(rb"\s*[-+.\w]+[ \t]+\d+:", content):
        return _dataset(path, positive, parse_table, content, -1 if label is None else label)
    if label is not None:
        raise DataError(f"{path.name} is LIBSVM text: label must not be given, got {label!r}")
    return _dataset(path, positive, parse_libsvm, content)


def _content(path: Path) -> bytes:
    if not os.path.isfile(path):
        raise DataError(f"path must be a file, got {one_line(repr(str(path)))}")
    with reading(path.name):
        inside = members(path)
        if len(inside) > 1:
            raise DataError(f"expected a zip archive of one file, found {show(inside)}")
    return read_content(path, inside[0] if inside else None)


def _dataset(path: Path, positive: Any, parse: Callable, *arguments: Any) -> Dataset:
    with reading(path.name):
        X, labels = parse(*arguments)
        found = np.unique(labels).tolist()
        if positive is None and found not in ([-1, 1], [0, 1]):
            raise DataError(f"positive must say which label is +1; there are {show(found)}")
        values = positive if isinstance(positive, (list, tuple, set, range)) else [positive]
        values = [1] if positive is None else list(values)
        name = path.name.split(".")[0]
        facts = {"positive_class": show(values), "source": str(path)}
        return Dataset.of(name, X, to_signs(labels, values), **facts)
