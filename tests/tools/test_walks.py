"""How many modules one number leads through."""

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "tools" / "walks.py"
spec = importlib.util.spec_from_file_location("walks", SCRIPT)
walks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(walks)


def test_modules_are_counted_when_a_function_of_theirs_is_called():
    from pu_shift import priors

    assert walks.modules_called(lambda: None) == []
    assert "priors" in walks.modules_called(lambda: priors.alpha_from_test_prior(0.3, 0.5))
