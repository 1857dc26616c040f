from itertools import combinations

import pytest
from matplotlib.colors import to_rgb

from pu_shift.experiment.settings import DATASETS, EXTRA_METHODS, METHODS
from pu_shift.experiment.style import dataset_marker, method_colour

# Linear RGB as seen without the red or the green cones (Viénot, Brettel and Mollon, 1999).
VISION = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
    "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
}


@pytest.mark.parametrize("matrix", VISION.values(), ids=VISION)
def test_methods_can_be_told_apart_by_the_colour_blind(matrix):
    seen = []
    for method in (*METHODS, *EXTRA_METHODS):
        linear = [channel**2.2 for channel in to_rgb(method_colour(method))]
        mixed = [sum(weight * c for weight, c in zip(row, linear)) for row in matrix]
        seen.append([max(value, 0) ** (1 / 2.2) for value in mixed])
    for one, other in combinations(seen, 2):
        assert sum((a - b) ** 2 for a, b in zip(one, other)) ** 0.5 > 0.1


def test_every_dataset_has_its_own_marker():
    assert len({dataset_marker(name) for name in (*DATASETS, "mine")}) == len(DATASETS) + 1
    assert method_colour("mine") not in {method_colour(name) for name in METHODS}
