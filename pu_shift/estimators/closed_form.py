r"""A quadratic risk in closed form: one linear system per fold, one eigendecomposition for all λ.

With g(x) = wᵀφ(x) + β and ℓ(z) = ½κz² − ½z + const, which is the squared loss for κ = ½, the
unbiased risk a Ê_p[ℓ(g)] + b R_neg(g) of :mod:`pu_shift.risks` is a quadratic function of (w, β),

.. math:: \tfrac12\theta^\top A\theta - c^\top\theta + \text{const},\qquad
    A = \kappa\left[(a - b\pi)\,\widehat{\mathbb E}_\mathrm{p}[\psi\psi^\top]
        + b\,\widehat{\mathbb E}_\mathrm{u}[\psi\psi^\top]\right],\quad
    c = \tfrac12\left[(a + b\pi)\,\widehat{\mathbb E}_\mathrm{p}[\psi]
        - b\,\widehat{\mathbb E}_\mathrm{u}[\psi]\right],

with ψ = (φ, 1) and θ = (w, β). It is convex whenever a ≥ bπ, which is π ≤ π_unif (Theorems 6
and 8), and otherwise if A has no negative eigenvalue. The data enter through sums over rows, which
are streamed in chunks: memory does not grow with the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pu_shift.device import array_namespace, beside, one_thread
from pu_shift.priors import Condition
from pu_shift.ratios.kernels import feature_chunks, take_rows
from pu_shift.risks import Risk, risk_weights


def fold_means(features: Any, folds: np.ndarray) -> Any:
    """Return the means of ψψᵀ without each fold, and over all rows: (F + 1, b + 1, b + 1)."""
    xp, n_folds = array_namespace(features), int(folds.max()) + 1
    size, start = features.shape[1] + 1, 0
    sums = beside(np.zeros((n_folds, size, size)), features)
    for chunk in feature_chunks(features, size):
        here = folds[start : start + chunk.shape[0]]
        start += chunk.shape[0]
        psi = xp.astype(xp.concat([chunk, xp.ones_like(chunk[:, :1])], axis=1), xp.float64)
        for fold in range(n_folds):
            part = take_rows(psi, np.flatnonzero(here == fold))
            sums[fold, :, :] += xp.matmul(xp.matrix_transpose(part), part)
    total = xp.sum(sums, axis=0, keepdims=True)
    sums = xp.concat([total - sums, total])
    return sums / sums[:, -1:, -1:]


@dataclass(frozen=True)
class QuadraticRisk:
    """A quadratic risk without its constant: ½θᵀAθ − cᵀθ, one or a stack of them."""

    A: Any
    c: Any

    @classmethod
    def of_means(
        cls, condition: Condition, curvature: float, means_p: Any, means_u: Any
    ) -> QuadraticRisk:
        """Return the PU-shift risk of a condition from means of ψψᵀ over P and over U."""
        prior, a, b = (float(part[0]) for part in risk_weights(condition, "pu-shift"))
        A = curvature * ((a - b * prior) * means_p + b * means_u)
        c = 0.5 * ((a + b * prior) * means_p[..., -1] - b * means_u[..., -1])
        return cls(A, c)

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
        with one_thread():
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


def solve_stack(
    features: Sequence[Any],
    folds: Sequence[np.ndarray],
    risk: Risk,
    lams: np.ndarray,
) -> tuple[Any, Any] | None:
    """Solve a quadratic risk's conditions × λ × (folds + all rows); ``None`` if one is not convex.

    ``features`` and ``folds`` are those of P and of U. Returned are weights, of shape (b,
    conditions, λ, F + 1), and biases, without the first axis, in the dtype of the features.
    """
    means = [fold_means(rows, fold) for rows, fold in zip(features, folds)]
    xp, solutions = array_namespace(means[0]), []
    for condition in risk.conditions:
        quadratic = QuadraticRisk.of_means(condition, risk.loss.curvature, *means)
        theta, is_convex = quadratic.minimise(lams)
        if not is_convex:
            return None
        solutions.append(theta)
    stack = xp.permute_dims(xp.stack(solutions), (2, 0, 3, 1))
    stack = xp.astype(stack, features[0].dtype, copy=False)
    return stack[:-1, ...], stack[-1, ...]
