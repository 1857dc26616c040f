"""Model files that release 0.2.0 wrote (version 2 of the format): they stay readable."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pu_shift.files.models import load_model

STORED = Path(__file__).with_name("stored")
EXPECTED = json.loads((STORED / "expected.json").read_text(encoding="utf-8"))


def test_every_file_has_its_predictions():
    assert {path.stem for path in STORED.glob("*.npz")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_stored_model_predicts_what_it_did(name):
    expected = EXPECTED[name]
    rows = expected["rows"]
    table = pd.DataFrame(rows) if isinstance(rows, dict) else np.array(rows)
    model = load_model(STORED / f"{name}.npz")
    assert model.predict(table).tolist() == expected["labels"]
    # Another BLAS may sum in another order.
    np.testing.assert_allclose(
        model.predict_proba(table)[:, 1], expected["probability"], rtol=1e-6, atol=1e-12
    )
