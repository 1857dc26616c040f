"""What one would run without this package: uLSIF in NumPy and by peers, training by PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from pu_shift.risks import risk_weights
from pu_shift.training import pooled_batches


class Fit(NamedTuple):
    """The chosen candidate, the model Σ_l θ_l exp(−‖x − c_l‖²/2σ²), and (widths, λ) scores."""

    width: float
    lam: float
    centers: np.ndarray
    coefficients: np.ndarray
    scores: np.ndarray | None = None


def densratio_centers(nu: np.ndarray, n_centers: int, seed: int) -> np.ndarray:
    """Return the centres that densratio draws with this seed, some of them twice."""
    return nu[np.random.RandomState(seed).randint(len(nu), size=n_centers)]


def densratio_fit(nu: Any, de: Any, widths: Any, lams: Any, n_centers: int, seed: int) -> Fit:
    """PyPI's densratio: leave-one-out, coefficients clipped at 0."""
    from densratio import densratio

    np.random.seed(seed)  # noqa: NPY002 - it draws from the global generator
    result = densratio(
        nu, de, sigma_range=widths, lambda_range=lams, kernel_num=n_centers, verbose=False
    )
    kernel = result.kernel_info
    return Fit(kernel.sigma, result.lambda_, np.asarray(kernel.centers), np.asarray(result.theta))


def adapt_fit(nu: Any, de: Any, widths: Any, lams: Any, n_centers: int, seed: int) -> Fit:
    """Adapt's ULSIF: leave-one-out, clipped; it draws new centres for the final fit."""
    from adapt.instance_based import ULSIF

    model = ULSIF(
        kernel="rbf",
        gamma=list(0.5 / np.square(widths)),
        lambdas=list(lams),
        max_centers=n_centers,
        verbose=0,
        random_state=seed,
    )
    np.random.seed(seed)  # noqa: NPY002 - as above
    model.fit_weights(de, nu)
    width = float(np.sqrt(0.5 / model.best_params_["k"]["gamma"]))
    return Fit(width, model.best_params_["lamb"], model.centers_, model.thetas_.ravel())


def _kernel(X: np.ndarray, centers: np.ndarray, width: float) -> np.ndarray:
    return np.exp(-cdist(X, centers, "sqeuclidean") / (2 * width**2))


def _solve(phi_nu: np.ndarray, phi_de: np.ndarray, lam: float) -> np.ndarray:
    H = phi_de.T @ phi_de / len(phi_de)
    return np.linalg.solve(H + lam * np.eye(len(H)), phi_nu.mean(axis=0))


def _best(nu: Any, de: Any, centers: Any, widths: Any, lams: Any, scores: Any) -> Fit:
    w, j = np.unravel_index(scores.argmin(), scores.shape)
    theta = _solve(_kernel(nu, centers, widths[w]), _kernel(de, centers, widths[w]), lams[j])
    return Fit(widths[w], lams[j], centers, theta, scores)


def textbook(
    nu: Any, de: Any, centers: Any, widths: Any, lams: Any, folds_nu: Any, folds_de: Any
) -> Fit:
    """uLSIF in NumPy, candidate by candidate and fold by fold."""  # noqa: D403
    scores = np.zeros((len(widths), len(lams)))
    n_folds = folds_nu.max() + 1
    for w, width in enumerate(widths):
        phi_nu, phi_de = _kernel(nu, centers, width), _kernel(de, centers, width)
        for j, lam in enumerate(lams):
            for fold in range(n_folds):
                out_nu, out_de = folds_nu == fold, folds_de == fold
                theta = _solve(phi_nu[~out_nu], phi_de[~out_de], lam)
                loss = 0.5 * np.mean((phi_de[out_de] @ theta) ** 2)
                scores[w, j] += (loss - np.mean(phi_nu[out_nu] @ theta)) / n_folds
    return _best(nu, de, centers, widths, lams, scores)


def _squared_distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    squares = (X**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1)
    return np.maximum(squares - 2 * X @ centers.T, 0)


def careful(
    nu: Any, de: Any, centers: Any, widths: Any, lams: Any, folds_nu: Any, folds_de: Any
) -> Fit:
    """uLSIF in NumPy: distances once, folds by subtraction, one eigh for every λ."""  # noqa: D403
    n_folds, scores = folds_nu.max() + 1, np.empty((len(widths), len(lams)))
    places_nu, places_de = (
        [np.flatnonzero(of == fold) for fold in range(n_folds)] for of in (folds_nu, folds_de)
    )
    n_nu, n_de = (np.array(list(map(len, places)))[:, None] for places in (places_nu, places_de))
    distances = _squared_distances(nu, centers), _squared_distances(de, centers)
    for w, width in enumerate(widths):
        phi_nu, phi_de = (np.exp(part * (-0.5 / width**2)) for part in distances)
        h = np.array([phi_nu[rows].sum(axis=0) for rows in places_nu])
        H = np.array([phi_de[rows].T @ phi_de[rows] for rows in places_de])
        h_in = (h.sum(axis=0) - h) / (len(nu) - n_nu)
        values, vectors = np.linalg.eigh((H.sum(axis=0) - H) / (len(de) - n_de)[:, None])
        turned = vectors.transpose(0, 2, 1) @ h_in[:, :, None]
        theta = vectors @ (turned / (values[:, :, None] + lams))
        loss = 0.5 * (theta * (H @ theta)).sum(axis=1) / n_de
        scores[w] = (loss - (h[:, :, None] * theta).sum(axis=1) / n_nu).mean(axis=0)
    return _best(nu, de, centers, widths, lams, scores)


def ulsif_floor(
    nu: Any, de: Any, centers: np.ndarray, n_widths: int, n_folds: int
) -> Callable[[], None]:
    """Return what does the matrix products and eigendecompositions of a fit, and nothing else."""
    rows = np.concatenate([nu, de])
    phi = _kernel(de, centers, 1.0)
    H = np.array([phi.T @ phi] * n_folds)

    def run() -> None:
        rows @ centers.T
        for _ in range(n_widths):
            phi.T @ phi
            np.linalg.eigh(H)

    return run


def training_floor(n: int, shape: tuple[int, int], n_steps: int) -> Callable[[], None]:
    """Return what does the two matrix products of training steps, and nothing else."""
    rng = np.random.default_rng(0)
    X, W, slopes = (
        rng.normal(0, 1, size).astype(np.float32) for size in ((n, shape[0]), shape, (n, shape[1]))
    )
    scores, gradient = np.empty_like(slopes), np.empty_like(W)

    def run() -> None:
        for _ in range(n_steps):
            np.matmul(X, W, out=scores)
            np.matmul(X.T, slopes, out=gradient)

    return run


def stacked_torch(
    rows: tuple[np.ndarray, np.ndarray],
    fold_weights: tuple[np.ndarray, np.ndarray],
    conditions: Sequence[Any],
    lams: np.ndarray,
    loss: str,
    n_steps: int,
    n_batches: int,
    seed: Any,
) -> np.ndarray:
    """Train all candidates as the columns of one matrix, with autograd and fused Adam.

    It minimises a·mean ℓ(g) on P + b·(mean ℓ(−g) on U − π·mean ℓ(−g) on P) + λ/2‖w‖².
    """
    import torch

    torch.set_num_threads(1)
    losses = {
        "squared": lambda z: 0.25 * (1.0 - z) ** 2,
        # Twice as fast as torch.maximum, whose gradient shares ties.
        "double_hinge": lambda z: torch.relu(0.5 - 0.5 * z) + torch.relu(-0.5 - 0.5 * z),
    }
    value = losses[loss]
    n_p, n_u = (len(part) for part in rows)
    x = torch.from_numpy(np.concatenate(rows))
    w = torch.from_numpy(np.concatenate(fold_weights))
    prior, a, b = (
        torch.from_numpy(value.astype(np.float32)) for value in risk_weights(conditions, "pu-shift")
    )
    decay = torch.from_numpy(lams.astype(np.float32))
    W = torch.zeros(x.shape[1], len(conditions), requires_grad=True)
    bias = torch.zeros(len(conditions), requires_grad=True)
    optimizer = torch.optim.Adam([W, bias], lr=1e-3, amsgrad=True, fused=True)
    batches = pooled_batches(n_p, n_u, n_batches, np.random.default_rng(seed))
    for order, m in islice(batches, n_steps):
        x_batch, weights = (array[torch.from_numpy(order)] for array in (x, w))
        scores = torch.addmm(bias, x_batch, W)
        w_p = weights[:m] / weights[:m].sum(0)
        w_u = weights[m:] / weights[m:].sum(0)
        negative = (w_u * value(-scores[m:])).sum(0) - prior * (w_p * value(-scores[:m])).sum(0)
        risk = a * (w_p * value(scores[:m])).sum(0) + b * negative
        objective = (risk + 0.5 * decay * (W**2).sum(0)).sum()
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
    return torch.cat([W.detach(), bias.detach()[None]]).numpy()
