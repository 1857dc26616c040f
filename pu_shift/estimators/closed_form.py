r"""The squared loss in closed form: one linear system per fold, one eigendecomposition for all λ.

With g(x) = wᵀφ(x) + β and ℓ(z) = ¼(1 − z)² the unbiased risk a Ê_p[ℓ(g)] + b R_neg(g) of
:mod:`pu_shift.risks` is a quadratic function of (w, β),

.. math:: \tfrac12\theta^\top A\theta - c^\top\theta + \text{const},\qquad
    A = \tfrac12\left[(a - b\pi)\,\widehat{\mathbb E}_\mathrm{p}[\psi\psi^\top]
        + b\,\widehat{\mathbb E}_\mathrm{u}[\psi\psi^\top]\right],\quad
    c = \tfrac12\left[(a + b\pi)\,\widehat{\mathbb E}_\mathrm{p}[\psi]
        - b\,\widehat{\mathbb E}_\mathrm{u}[\psi]\right],

with ψ = (φ, 1) and θ = (w, β). It is convex whenever a ≥ bπ, which is π ≤ π_unif (Theorems 6
and 8), and otherwise if A has no negative eigenvalue. The data enter through sums over rows, which
are streamed in chunks: memory does not grow with the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from pu_shift.device import array_namespace, beside
from pu_shift.priors import Condition
from pu_shift.risks import risk_weights


@dataclass(frozen=True)
class Moments:
    """Sums of ψψᵀ over the rows of each fold, (F, b + 1, b + 1); the last column sums ψ."""

    sums: Any

    @classmethod
    def of_chunks(cls, chunks: Iterable[tuple[Any, np.ndarray]], n_folds: int) -> Moments:
        """Sum over chunks of rows, each given by its features φ and the folds of its rows."""
        sums = None
        for features, folds in chunks:
            xp = array_namespace(features)
            ones = xp.ones_like(features[:, :1])
            psi = xp.astype(xp.concat([features, ones], axis=1), xp.float64, copy=False)
            if sums is None:
                sums = beside(np.zeros((n_folds, psi.shape[1], psi.shape[1])), features)
            for fold in range(n_folds):
                part = psi[beside(np.flatnonzero(folds == fold), features), :]
                sums[fold, :, :] += xp.matmul(xp.matrix_transpose(part), part)
        return cls(sums)

    def held_out(self) -> Any:
        """Return the means of ψψᵀ over each fold."""
        return self.sums / self.sums[:, -1:, -1:]

    def training(self) -> Any:
        """Return the means of ψψᵀ without each fold, and over all rows: (F + 1, b + 1, b + 1)."""
        xp = array_namespace(self.sums)
        total = xp.sum(self.sums, axis=0, keepdims=True)
        rest = xp.concat([total - self.sums, total])
        return rest / rest[:, -1:, -1:]


@dataclass(frozen=True)
class QuadraticRisk:
    """The risk of the squared loss: ½θᵀAθ − cᵀθ + constant, one or a stack of them."""

    A: Any
    c: Any
    constant: float

    @classmethod
    def of_means(cls, condition: Condition, means_p: Any, means_u: Any) -> QuadraticRisk:
        """Return the PU-shift risk of a condition from means of ψψᵀ over P and over U."""
        prior, a, b = (float(part[0]) for part in risk_weights(condition, "pu-shift"))
        A = 0.5 * ((a - b * prior) * means_p + b * means_u)
        c = 0.5 * ((a + b * prior) * means_p[..., -1] - b * means_u[..., -1])
        return cls(A, c, 0.25 * (a + b * (1.0 - prior)))

    def value(self, theta: Any) -> Any:
        """Return the risk of θ, (..., b + 1, L): (..., L)."""
        xp = array_namespace(theta)
        quadratic = 0.5 * xp.sum(theta * xp.matmul(self.A, theta), axis=-2)
        return quadratic - xp.sum(self.c[..., None] * theta, axis=-2) + self.constant

    def minimise(self, lams: np.ndarray) -> tuple[Any, bool]:
        """Return the θ of least risk + ½λ‖w‖² for every λ, and whether the risk is convex.

        The bias β is not penalised. It is eliminated first, which leaves a symmetric system in w.
        θ has the shape (..., b + 1, L).
        """
        xp = array_namespace(self.A)
        bias = self.A[..., -1:, -1:]
        across = self.A[..., :-1, -1:]
        schur = self.A[..., :-1, :-1] - xp.matmul(across, xp.matrix_transpose(across)) / bias
        c_w, c_b = self.c[..., :-1, None], self.c[..., -1:, None]
        right = c_w - across * (c_b / bias)
        # On a busy machine threads that wait for each other cost more than they gain.
        with threadpool_limits(1, "blas"):
            values, vectors = xp.linalg.eigh(schur)
        floor = xp.max(xp.abs(values), axis=-1, keepdims=True) * (
            schur.shape[-1] * float(xp.finfo(schur.dtype).eps)
        )
        is_convex = bool(xp.all(values > -floor))
        divisors = values[..., None] + beside(lams, values)
        projected = xp.matmul(xp.matrix_transpose(vectors), right)
        # Directions without data keep the weight 0, as gradient descent from 0 leaves them.
        reached = divisors > floor[..., None]
        solution = xp.where(reached, projected / xp.where(reached, divisors, 1.0), 0.0)
        w = xp.matmul(vectors, solution)
        beta = (c_b - xp.matmul(xp.matrix_transpose(across), w)) / bias
        return xp.concat([w, beta], axis=-2), is_convex


def solve_folds(
    moments: Sequence[Moments], condition: Condition, lams: np.ndarray
) -> tuple[Any, Any, bool]:
    """Return θ without each fold and of all rows, the held-out risks, and whether it is convex.

    ``moments`` are those of P and of U. θ has the shape (F + 1, b + 1, L), the risks (F, L).
    """
    training = QuadraticRisk.of_means(condition, *(part.training() for part in moments))
    theta, is_convex = training.minimise(lams)
    held_out = QuadraticRisk.of_means(condition, *(part.held_out() for part in moments))
    return theta, held_out.value(theta[:-1, ...]), is_convex
