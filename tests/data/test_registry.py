"""The six datasets as published, against the files where they are at hand."""

import numpy as np
import pytest

from pu_shift.data import NAMES, load, registry
from pu_shift.data.sampling import draw

# rows, features, positives, first row's label, first row's leading features
PUBLISHED = {
    "banana": (5300, 2, 2376, -1, [1.617466, -0.919233]),
    "ijcnn1": (49990, 22, 4853, -1, [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, -0.731854]),
    "MNIST": (70000, 784, 34418, -1, [0] * 152 + [3, 18, 18, 18, 126, 136]),
    "susy": (30000, 18, 13815, 1, [2.2039258, -1.067561, -0.85900724]),
    "cod-rna": (59535, 8, 19845, -1, [-766, 128, 0.140625, 0.304688]),
    "magic": (19020, 10, 12332, 1, [28.7967, 16.0021, 2.6449]),
}
EACH = [pytest.param(name, marks=pytest.mark.needs_data(name)) for name in NAMES]


@pytest.mark.parametrize("name", EACH)
def test_the_files_hold_what_was_published(name):
    rows, features, positives, label, start = PUBLISHED[name]
    data = load(name, offline=True)
    spec = registry.lookup(name)
    assert data.name == spec.name == name
    assert data.X.shape == spec.shape == (rows, features)
    assert (data.X.dtype, data.y.dtype) == (np.float32, np.int8)
    assert data.y.shape == (rows,)
    assert set(np.unique(data.y)) == {-1, 1}
    # Other copies of SUSY and banana hold other rows, or the rows in another order.
    if data.content == spec.content:
        assert data.positives == positives
        assert data.y[0] == label
        np.testing.assert_array_equal(data.X[0, : len(start)], np.float32(start))
    assert len(data.sha256) == 64
    assert spec.citation
    assert spec.licence
    assert spec.home.startswith("http")


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("prior", [0.3, 0.8])
def test_every_setting_of_the_paper_can_be_drawn(name, prior):
    one = draw(load(name, offline=True), prior, [0.3, 0.4, 0.5, 0.7] if prior < 0.5 else [0.4])
    assert one.positives.shape[0] == 500
    assert (one.unlabeled_labels == 1).mean() == prior
    for test_prior, (X, y) in one.tests.items():
        assert len(X) == 500
        assert (y == 1).mean() == test_prior
