"""Risk minimisation of a whole cross-validation: stacked, one by one, and in PyTorch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from measure import interleaved
from peers_training import one_by_one_chainer, stacked_torch

from pu_shift._seeds import child
from pu_shift.links import LinearModel
from pu_shift.priors import Condition
from pu_shift.candidates import assign_folds, training_weights
from pu_shift.training import train

N_P, N_U, N_FOLDS, N_BATCHES, SEED = 500, 2000, 5, 5, 0
CHAINER_TARGET, TORCH_TARGET = 15.0, 1.0


class Stack(NamedTuple):
    """Given priors × λ × (folds + the final model) on random rows of a dataset's shape.

    ``scale`` is the standard deviation of the features.
    """

    name: str
    n_features: int
    n_given: int
    n_lams: int
    loss: str
    scale: float = 1.0


STACKS = (
    Stack("MNIST, DH-Lin", 784, 3, 12, "double_hinge"),
    Stack("MNIST, Sq-Lin", 784, 3, 12, "squared"),
    Stack("ijcnn1, DH-Lin", 22, 3, 12, "double_hinge"),
    Stack("ijcnn1, Sq-Lin", 22, 3, 12, "squared"),
    Stack("banana, DH-Lin", 2, 3, 12, "double_hinge"),
    Stack("banana, Sq-Lin", 2, 3, 12, "squared"),
    Stack("any, DH-Ker", 125, 3, 6, "double_hinge"),
    Stack("any, Sq-Ker", 125, 3, 6, "squared"),
    # Scores far beyond the kinks from the first steps on.
    Stack("cod-rna, DH-Lin", 8, 3, 12, "double_hinge", scale=100.0),
    Stack("banana × 100, DH-Lin", 2, 3, 12, "double_hinge", scale=100.0),
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
                rng.normal(stack.scale * mean, stack.scale, (m, stack.n_features))
                for mean, m in parts
            ]).astype(np.float32)
            for parts in ([(0.2, N_P)], [(0.2, n), (-0.2, n_u - n)])
        )  # fmt: skip
        self.folds = tuple(
            assign_folds("rows", len(part), N_FOLDS, child(SEED, 2, i))
            for i, part in enumerate(self.rows)
        )
        self.fold_weights = tuple(training_weights(folds, N_FOLDS) for folds in self.folds)
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

    def train(self, n_steps: int) -> np.ndarray:
        """Train all candidates with this package."""
        model = LinearModel(self.rows[0].shape[1], len(self.candidates))
        train(
            model,
            *self.rows,
            self.conditions,
            loss=self.loss,
            kind="pu-shift",
            lam=self.lams,
            n_steps=n_steps,
            n_batches=N_BATCHES,
            weights_p=self.fold_weights[0],
            weights_u=self.fold_weights[1],
            record=(),
            seed=SEED,
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
    return rows


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
