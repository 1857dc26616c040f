"""UlSIF as one would run it without this package: two peers and plain NumPy.

The peers draw their centres from NumPy's global generator; seeding it gives
all the same ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist


class Fit(NamedTuple):
    """What a fit came to.

    Attributes
    ----------
    width, lam
        The chosen candidate.
    centers, coefficients
        The model, Σ_l θ_l exp(−‖x − c_l‖²/2σ²).
    scores
        (widths, λ), where the peer shows them.
    """

    width: float
    lam: float
    centers: np.ndarray
    coefficients: np.ndarray
    scores: np.ndarray | None = None


def densratio_fit(nu: Any, de: Any, widths: Any, lams: Any, n_centers: int, seed: int) -> Fit:
    """PyPI's densratio: leave-one-out, coefficients clipped at 0."""
    from densratio import densratio

    np.random.seed(seed)  # noqa: NPY002 - it draws from the global generator
    result = densratio(
        nu, de, sigma_range=widths, lambda_range=lams, kernel_num=n_centers, verbose=False
    )
    kernel = result.kernel_info
    return Fit(kernel.sigma, result.lambda_, np.asarray(kernel.centers), np.asarray(result.theta))


def densratio_centers(nu: np.ndarray, n_centers: int, seed: int) -> np.ndarray:
    """Return the centres that densratio draws with this seed, some of them twice."""
    return nu[np.random.RandomState(seed).randint(len(nu), size=n_centers)]


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


def _best(nu: Any, de: Any, centers: Any, widths: Any, lams: Any, scores: Any, clip: bool) -> Fit:
    w, j = np.unravel_index(scores.argmin(), scores.shape)
    phi_nu, phi_de = _kernel(nu, centers, widths[w]), _kernel(de, centers, widths[w])
    theta = _solve(phi_nu, phi_de, lams[j])
    theta = np.maximum(theta, 0) if clip else theta
    return Fit(widths[w], lams[j], centers, theta, scores)


def numpy_loo(nu: Any, de: Any, centers: Any, widths: Any, lams: Any) -> Fit:
    """Leave-one-out by the closed form of Kanamori et al. (2009), candidate by candidate."""
    n_nu, n_de = len(nu), len(de)
    m = min(n_nu, n_de)
    scores = np.empty((len(widths), len(lams)))
    for w, width in enumerate(widths):
        phi_nu, phi_de = _kernel(nu, centers, width), _kernel(de, centers, width)
        H, h = phi_de.T @ phi_de / n_de, phi_nu.mean(axis=0)[:, None]
        k_nu, k_de = phi_nu[:m].T, phi_de[:m].T
        for j, lam in enumerate(lams):
            B = H + lam * (n_de - 1) / n_de * np.eye(len(H))
            B_de = np.linalg.solve(B, k_de)
            remainder = n_de - (k_de * B_de).sum(axis=0)
            B0 = np.linalg.solve(B, h) + B_de * ((h.T @ B_de) / remainder)
            B1 = np.linalg.solve(B, k_nu) + B_de * ((k_nu * B_de).sum(axis=0) / remainder)
            theta = np.maximum(0, (n_de - 1) / (n_de * (n_nu - 1)) * (n_nu * B0 - B1))
            r_de, r_nu = (k_de * theta).sum(axis=0), (k_nu * theta).sum(axis=0)
            scores[w, j] = r_de @ r_de / (2 * m) - r_nu.mean()
    return _best(nu, de, centers, widths, lams, scores, clip=True)


def numpy_kfold(
    nu: Any, de: Any, centers: Any, widths: Any, lams: Any, folds_nu: Any, folds_de: Any
) -> Fit:
    """k-fold cross-validation, candidate by candidate and fold by fold."""
    scores = np.zeros((len(widths), len(lams)))
    n_folds = folds_nu.max() + 1
    for w, width in enumerate(widths):
        phi_nu, phi_de = _kernel(nu, centers, width), _kernel(de, centers, width)
        for j, lam in enumerate(lams):
            for fold in range(n_folds):
                out_nu, out_de = folds_nu == fold, folds_de == fold
                theta = _solve(phi_nu[~out_nu], phi_de[~out_de], lam)
                loss = 0.5 * np.mean((phi_de[out_de] @ theta) ** 2) - np.mean(
                    phi_nu[out_nu] @ theta
                )
                scores[w, j] += loss / n_folds
    return _best(nu, de, centers, widths, lams, scores, clip=False)
