"""The paper's six datasets, your own files, and draws of P, U and test from them."""

from pu_shift.data.dataset import DataError, Dataset
from pu_shift.data.files import load_csv, load_file, load_libsvm
from pu_shift.data.loading import copies, load, search_path
from pu_shift.data.registry import NAMES

__all__ = [
    "NAMES",
    "DataError",
    "Dataset",
    "copies",
    "load",
    "load_csv",
    "load_file",
    "load_libsvm",
    "search_path",
]
