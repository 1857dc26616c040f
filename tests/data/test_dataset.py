import dataclasses

import numpy as np
import pytest

from pu_shift.data import DataError, Dataset


def test_positives_are_counted_and_arrays_cannot_be_changed():
    data = Dataset.of("own", [[1, 2], [3, 4], [5, 6]], [1, -1, 1], source="mine")
    assert (data.name, data.positives, data.source) == ("own", 2, "mine")
    assert (data.X.dtype, data.y.dtype) == (np.float32, np.int8)
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.y = data.X


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([1.0, 2.0], [1, -1], r"needs X \(n, d\) and y \(n,\), got \(2,\) and \(2,\)"),
        ([[1.0], [2.0]], [1, -1, 1], r"got \(2, 1\) and \(3,\)"),
        ([[1.0], [2.0]], [1, 2], "needs labels"),
        ([[1.0], [2.0]], [-1, -1], "0 positive and 2 negative rows"),
        ([[1.0], [np.nan]], [-1, 1], "not finite: row 2, feature 1"),
        ([[1.0], [1e300]], [-1, 1], "not finite: row 2, feature 1"),
    ],
)
def test_bad_arrays_are_rejected(X, y, message):
    with pytest.raises(DataError, match=message):
        Dataset.of("own", X, y)
