"""Made-up trials for the tests of what is done with them."""

import numpy as np
import pandas as pd

from pu_shift.experiment.settings import DATASETS, METHODS, TABLES


def trial(**changes):
    """Return one row of trials.csv."""
    row = {
        "table": 1,
        "prior": 0.3,
        "test_prior": 0.5,
        "given_prior": 0.5,
        "dataset": "banana",
        "method": "DH-Lin",
        "trial": 0,
        "accuracy": 52.5,
        "width": None,
        "lam": 0.01,
        "step": 500,
        "seconds": 1.25,
    }
    row.update(changes)
    return row


def trials(accuracy, number=1, count=4, datasets=DATASETS, methods=METHODS, seed=0):
    """Return trials of a table whose expected accuracy is a function of the cell."""
    noise = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            trial(table=number, **cell._asdict(), trial=index, accuracy=accuracy(cell) + error)
            for cell in TABLES[number].cells(datasets, methods)
            for index, error in enumerate(noise.normal(size=count))
        ]
    )
