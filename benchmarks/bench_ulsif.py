"""uLSIF with selection of width and λ: ours, densratio, adapt, and plain NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from measure import interleaved
from peers_ulsif import (
    Fit,
    adapt_fit,
    densratio_centers,
    densratio_fit,
    numpy_kfold,
    numpy_loo,
)

from pu_shift import ULSIF
from pu_shift._grids import assign_folds
from pu_shift._seeds import child
from pu_shift.ratios.base import GridEdgeWarning
from pu_shift.ratios.kernels import gaussian_kernel, median_distance

N_P, N_U, N_CENTERS, SEED = 500, 2000, 100, 0
LAMS = np.logspace(-3, 1, 9)
WIDTH_FACTORS = np.geomspace(1 / 4, 4, 9)
DENSRATIO_TARGET = {10: 10.0, 784: 40.0}
NUMPY_TARGET = 3.0
PLAIN = ("leave-one-out", "5-fold")


def sample(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw P and U (π = 0.3) around a ten-dimensional subspace of d dimensions."""
    rng = np.random.default_rng(SEED)
    directions = rng.normal(0, 1, (10, d)) / np.sqrt(10)

    def rows(center: float, n: int) -> np.ndarray:
        return rng.normal(center, 1, (n, 10)) @ directions + rng.normal(0, 0.1, (n, d))

    n = int(0.3 * N_U)
    return rows(0.5, N_P), np.concatenate([rows(0.5, n), rows(-0.5, N_U - n)])


def run(repeats: int) -> list[dict[str, Any]]:
    """Measure at d = 10 and d = 784, and check that the results agree."""
    warnings.simplefilter("ignore", GridEdgeWarning)
    # Turns at d 10 are short, and short times vary more.
    return _compare(10, 5 * repeats) + _compare(784, repeats)


def _compare(d: int, repeats: int) -> list[dict[str, Any]]:
    nu, de = sample(d)
    widths = WIDTH_FACTORS * median_distance(np.concatenate([nu, de]))
    centers = densratio_centers(nu, N_CENTERS, SEED)
    grid = {"centers": centers, "widths": widths, "lams": LAMS, "random_state": SEED}
    # The rows in the order in which ours pairs and deals them.
    pairs = [
        X[np.random.default_rng(child(SEED, 3, part)).permutation(len(X))]
        for part, X in enumerate((nu, de))
    ]
    folds = [
        assign_folds("rows", len(X), 5, child(SEED, 2, part)) for part, X in enumerate((nu, de))
    ]
    peer_grid = (widths, LAMS, N_CENTERS, SEED)
    cases = {
        "ours, leave-one-out": lambda: ULSIF(
            nu, de, selection="loo", clip_coefficients=True, **grid
        ),
        "densratio": lambda: densratio_fit(nu, de, *peer_grid),
        "adapt": lambda: adapt_fit(nu, de, *peer_grid),
        "NumPy, leave-one-out": lambda: numpy_loo(*pairs, centers, widths, LAMS),
        "ours, 5-fold": lambda: ULSIF(nu, de, **grid),
        "NumPy, 5-fold": lambda: numpy_kfold(nu, de, centers, widths, LAMS, *folds),
    }
    seconds, fits = interleaved(cases, repeats)
    check(fits, nu, de)
    rows = []
    plain = [f"NumPy, {selection}" for selection in PLAIN]
    targets = {"densratio": DENSRATIO_TARGET[d], **dict.fromkeys(plain, NUMPY_TARGET)}
    for peer in ("densratio", "adapt", *plain):
        ours = peer.replace("NumPy", "ours") if peer in plain else "ours, leave-one-out"
        rows.append(
            {
                "case": f"uLSIF, 9 × 9 candidates, d {d}",
                "peer": peer,
                "ours_seconds": seconds[ours],
                "peer_seconds": seconds[peer],
                "at_least": targets.get(peer),
                "repeats": repeats,
                "same_choice": _choice(fits[ours]) == _choice(fits[peer]),
            }
        )
    return rows


def _choice(fit: Any) -> tuple[float, float]:
    width, lam = (fit.width, fit.lam) if isinstance(fit, Fit) else (fit.width_, fit.lam_)
    return round(float(width), 6), round(float(lam), 9)


def check(fits: dict[str, Any], nu: np.ndarray, de: np.ndarray) -> None:
    """Fail unless the results agree where the peer is right.

    Plain NumPy must give our scores and our choice. The peers' formulas of
    leave-one-out are not the closed form, so they may choose otherwise; at
    their choice and their centres, the ratio must be ours.
    """
    for selection in PLAIN:
        ours, plain = fits[f"ours, {selection}"], fits[f"NumPy, {selection}"]
        np.testing.assert_allclose(ours.scores_, plain.scores, rtol=1e-6, atol=1e-9)
        if _choice(ours) != _choice(plain):
            raise AssertionError(f"{selection}: {_choice(ours)} and {_choice(plain)}")
    for name in ("densratio", "adapt", "NumPy, leave-one-out", "NumPy, 5-fold"):
        peer: Fit = fits[name]
        ours = ULSIF(
            nu,
            de,
            centers=peer.centers,
            widths=peer.width,
            lams=peer.lam,
            clip_coefficients=name != "NumPy, 5-fold",
        )
        theirs = gaussian_kernel(de, peer.centers, peer.width) @ peer.coefficients
        np.testing.assert_allclose(ours(de), theirs, rtol=1e-5, atol=1e-8, err_msg=name)
