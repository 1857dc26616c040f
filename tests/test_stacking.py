import numpy as np
import pytest

from pu_shift.device import get_device
from pu_shift.links import LinearModel
from pu_shift.priors import Condition
from pu_shift.risks import evaluate_risk
from pu_shift.selection import assign_folds, training_weights
from pu_shift.stacking import cross_validate
from pu_shift.training import train
from tests.mixtures import pu_samples


@pytest.mark.parametrize("criterion", [None, "zero_one"])
@pytest.mark.parametrize("initial_w", [0.0, np.array([[0.3], [-0.2]])])
def test_the_stack_equals_a_loop_over_conditions_lams_and_folds(criterion, initial_w):
    X_p, X_u = pu_samples(60, 120, 0.4, d=2)
    conditions, lams, k = [Condition(0.4, 0.4), Condition(0.4, 0.7)], [0.0, 0.1], 3
    folds = [assign_folds("X", len(X), k, 0) for X in (X_p, X_u)]
    result = cross_validate(
        (X_p, X_u),
        conditions,
        lams,
        [training_weights(fold, k, np.float64) for fold in folds],
        get_device(),
        loss="double_hinge",
        criterion=criterion,
        initial_w=initial_w,
        n_steps=40,
    )
    assert result.biases.shape == (2, 2, k + 1)
    for c, condition in enumerate(conditions):
        for j, lam in enumerate(lams):
            risks = []
            for fold in range(k + 1):
                kept = [X[f != fold] for X, f in zip((X_p, X_u), folds)]
                model = LinearModel(2, initial_w=initial_w, dtype=np.float64)
                options = {"loss": "double_hinge", "kind": "pu-shift", "lam": lam, "n_steps": 40}
                train(model, *kept, condition, **options)
                np.testing.assert_allclose(result.weights[:, c, j, fold], model.W.array[:, 0])
                if fold < k:
                    scores = [model(X[f == fold]).array for X, f in zip((X_p, X_u), folds)]
                    loss = criterion or "double_hinge"
                    risks.append(float(evaluate_risk(*scores, condition, loss, "pu-shift")))
            assert result.risks[c, j] == pytest.approx(np.mean(risks))
