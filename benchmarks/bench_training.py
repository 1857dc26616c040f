"""Risk minimisation of a whole cross-validation: stacked, one by one, and in PyTorch; fit_many."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from measure import interleaved
from peers_training import one_by_one_chainer, stacked_torch

from pu_shift._grids import assign_folds, training_weights
from pu_shift._seeds import child
from pu_shift.models import LinearModel
from pu_shift.paper.protocol import Protocol
from pu_shift.priors import Condition
from pu_shift.risks import Risk
from pu_shift.training import train

N_P, N_U, N_FOLDS, N_BATCHES, SEED = 500, 2000, 5, 5, 0
CHAINER_TARGET, TORCH_TARGET, MANY_TARGET = 15.0, 1.2, 3.0
N_CONDITIONS = 9


class Stack(NamedTuple):
    """Given priors × λ × (folds + the final model) on random rows of a dataset's shape."""

    name: str
    n_features: int
    n_given: int
    n_lams: int
    loss: str


STACKS = (
    Stack("MNIST, DH-Lin", 784, 3, 12, "double_hinge"),
    Stack("MNIST, Sq-Lin", 784, 3, 12, "squared"),
    Stack("ijcnn1, DH-Lin", 22, 3, 12, "double_hinge"),
    Stack("ijcnn1, Sq-Lin", 22, 3, 12, "squared"),
    Stack("banana, DH-Lin", 2, 3, 12, "double_hinge"),
    Stack("banana, Sq-Lin", 2, 3, 12, "squared"),
    Stack("any, DH-Ker", 125, 3, 6, "double_hinge"),
    Stack("any, Sq-Ker", 125, 3, 6, "squared"),
)
COMPARED = STACKS[0], STACKS[3], STACKS[4], STACKS[7]


class Problem:
    """The data and candidates of a stack."""

    def __init__(self, stack: Stack, n_u: int = N_U) -> None:
        rng = np.random.default_rng(SEED)
        n = int(0.3 * n_u)
        self.loss = stack.loss
        self.rows = tuple(
            np.concatenate([
                rng.normal(mean, 1.0, (m, stack.n_features)) for mean, m in parts
            ]).astype(np.float32)
            for parts in ([(0.2, N_P)], [(0.2, n), (-0.2, n_u - n)])
        )  # fmt: skip
        self.folds = tuple(
            assign_folds("rows", len(part), N_FOLDS, child(SEED, 2, i))
            for i, part in enumerate(self.rows)
        )
        self.candidates = [
            (Condition(0.3, given), lam, fold)
            # Not ½, where the bias's first gradient is rounding, and its step is not.
            for given in np.linspace(0.3, 0.8, stack.n_given)
            for lam in (0.0, *np.logspace(-5, -1, stack.n_lams - 1))
            # The last of each, −1, leaves no row out.
            for fold in (*range(N_FOLDS), -1)
        ]
        self.conditions = [condition for condition, _, _ in self.candidates]
        self.lams = np.array([lam for _, lam, _ in self.candidates])
        repeats = (1, stack.n_given * stack.n_lams)
        self.fold_weights = tuple(
            np.tile(training_weights(folds, N_FOLDS), repeats) for folds in self.folds
        )

    def train(self, n_steps: int) -> np.ndarray:
        """Train all candidates with this package."""
        model = LinearModel(self.rows[0].shape[1], len(self.candidates))
        train(
            model,
            *self.rows,
            Risk(self.conditions, self.loss, "pu-shift"),
            lam=self.lams,
            n_steps=n_steps,
            n_batches=N_BATCHES,
            weights_p=self.fold_weights[0],
            weights_u=self.fold_weights[1],
            record=(),
            random_state=SEED,
        )
        return np.concatenate([model.W.array, model.b.array[None]])

    def peers(self, n_steps: int) -> dict[str, Any]:
        """Return the same training by the peers, as functions."""
        batches = (self.loss, n_steps, N_BATCHES, child(SEED, 0))
        return {
            "Chainer, one by one": lambda: one_by_one_chainer(
                self.rows, self.folds, self.candidates, *batches
            ),
            "PyTorch, stacked": lambda: stacked_torch(
                self.rows, self.fold_weights, self.conditions, self.lams, *batches
            ),
        }


def run(repeats: int) -> list[dict[str, Any]]:
    """Measure whole cross-validations, of few steps where each takes Chainer long."""
    import torch

    torch.set_num_threads(1)
    rows = []
    for stack in COMPARED:
        problem = Problem(stack)
        for peer, n_steps, target in (
            ("Chainer, one by one", 10, CHAINER_TARGET),
            ("PyTorch, stacked", 100, TORCH_TARGET),
        ):
            cases = {
                "ours": lambda n=n_steps, problem=problem: problem.train(n),
                peer: problem.peers(n_steps)[peer],
            }
            seconds, parameters = interleaved(cases, repeats)
            check(problem, peer, parameters)
            rows.append(
                {
                    "case": f"{stack.name}, {len(problem.candidates)} candidates, {n_steps} steps",
                    "peer": peer,
                    "ours_seconds": seconds["ours"],
                    "peer_seconds": seconds[peer],
                    "at_least": target,
                    "repeats": repeats,
                }
            )
    return [*rows, _many(repeats)]


def _many(repeats: int) -> dict[str, Any]:
    """Measure ``fit_many`` of nine conditions against the fit of one, on ijcnn1's shape."""
    rows = Problem(COMPARED[1]).rows
    conditions = [{"test_prior": round(0.1 * k, 1)} for k in range(1, N_CONDITIONS + 1)]
    classifier = Protocol().estimator("Sq-Lin", prior=0.3)
    classifier.set_params(n_steps=100)
    cases = {
        "one": lambda: classifier.fit_many(*rows, conditions[:1]),
        "many": lambda: classifier.fit_many(*rows, conditions),
        "each": lambda: [classifier.fit_many(*rows, [one]) for one in conditions],
    }
    seconds, _ = interleaved(cases, repeats)
    return {
        "case": f"fit_many of {N_CONDITIONS} conditions, ijcnn1, Sq-Lin, 100 steps",
        "peer": f"{N_CONDITIONS} fits",
        "ours_seconds": seconds["many"],
        "peer_seconds": seconds["each"],
        "at_least": N_CONDITIONS / MANY_TARGET,
        "repeats": repeats,
        "of_one": seconds["many"] / seconds["one"],
    }


def check(problem: Problem, peer: str, parameters: dict[str, np.ndarray]) -> None:
    """Fail unless the trained models agree.

    PyTorch trains the same models on the same mini-batches, Chainer those
    without a fold. A score that rounding moves over a kink changes a gradient,
    so the models of the double hinge agree to a percent only.
    """
    ours, theirs = parameters["ours"], parameters[peer]
    if peer.startswith("Chainer"):
        final = np.array([fold == -1 for _, _, fold in problem.candidates])
        ours, theirs = ours[:, final], theirs[:, final]
    worst = (np.linalg.norm(ours - theirs, axis=0) / np.linalg.norm(ours, axis=0)).max()
    if worst > (0.01 if problem.loss == "double_hinge" else 1e-4):
        raise AssertionError(f"{peer} differs from ours by {worst:.1%}")
