"""Your own files: CSV, KEEL or ARFF tables and LIBSVM text."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union

import numpy as np

from pu_shift.data.dataset import DataError, Dataset, show
from pu_shift.data.parsers import (
    members,
    one_line,
    parse_libsvm,
    parse_table,
    read_content,
    reading,
    to_signs,
)

PathLike = Union[str, "os.PathLike[str]"]


def load_csv(path: PathLike, label: int | str = -1, positive: Any = None) -> Dataset:
    r"""Load a table of numeric features and one column of labels.

    Commas, semicolons or tabs, with or without a header line; KEEL and ARFF
    files; plain or compressed.

    Parameters
    ----------
    path : path-like
        The file.
    label : int or str
        Column of the label: its position (from 0; negative from the end) or,
        where there is a header, its name.
    positive : label or list of labels, optional
        What becomes +1; everything else becomes −1. Not needed when the labels
        are ±1 or 0/1.

    Returns
    -------
    Dataset
        Named after the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "cells.csv")
    ...     _ = file.write_text("area,perimeter,kind\n1.5,4,sick\n2.5,6,well\n")
    ...     load_csv(file, label="kind", positive="sick").y
    array([ 1, -1], dtype=int8)
    """
    path = Path(path)
    return _dataset(path, positive, parse_table, _content(path), label)


def load_libsvm(path: PathLike, positive: Any = None) -> Dataset:
    r"""Load LIBSVM text, plain or compressed.

    Parameters
    ----------
    path : path-like
        The file.
    positive : label or list of labels, optional
        As for `load_csv`.

    Returns
    -------
    Dataset
        Named after the file, with dense features.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.txt")
    ...     _ = file.write_text("+1 1:0.5 2:2\n-1 2:1\n")
    ...     load_libsvm(file).X
    array([[0.5, 2. ], [0. , 1. ]], dtype=float32)
    """
    path = Path(path)
    return _dataset(path, positive, parse_libsvm, _content(path))


def load_file(path: PathLike, label: int | str | None = None, positive: Any = None) -> Dataset:
    r"""Load a file of any of the formats above; its first line tells which.

    Parameters
    ----------
    path : path-like
        The file.
    label : int or str, optional
        Column of the label in a table; by default the last.
    positive : label or list of labels, optional
        As for `load_csv`.

    Returns
    -------
    Dataset
        Named after the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.csv")
    ...     _ = file.write_text("0.5,1\n2.0,0\n")
    ...     load_file(file).facts.positives
    1
    """
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
