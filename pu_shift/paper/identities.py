"""What the theory says must hold for any numbers, tried on random ones.

The registry at the end says what each function measures: the largest error, or how many are wrong.
The expected values are written out anew from the paper, unless two functions are to agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pu_shift._grids import assign_folds
from pu_shift._seeds import child
from pu_shift.data.dataset import Dataset
from pu_shift.data.sampling import draw
from pu_shift.losses import LOSSES, get_loss, surrogates
from pu_shift.models import LinearModel
from pu_shift.priors import (
    Condition,
    alpha_from_test_prior,
    prior_unif,
    ratio_bounds,
    shift_posterior,
    test_prior_from_alpha,
    test_ratio,
)
from pu_shift.ratios.ulsif import ULSIF
from pu_shift.risks import KINDS, Risk, evaluate_risk
from pu_shift.training import AMSGrad

_ROUNDING = 1e-9
_KINKS = (-1.0, 0.0, 1.0)


@dataclass(frozen=True)
class Identity:
    """A claim, a function of a random generator that measures its error, and what is allowed."""

    claim: str
    error: Callable[[np.random.Generator], float]
    allowed: float = _ROUNDING
    needs_chainer: bool = False


def _conditions(rng: np.random.Generator, n: int = 200) -> list[Condition]:
    return [Condition(*row) for row in rng.uniform(0.02, 0.98, (n, 3))]


def _costs_and_priors(rng: np.random.Generator) -> float:
    error = 0.0
    for c in _conditions(rng):
        back = test_prior_from_alpha(c.prior, alpha_from_test_prior(c.prior, c.test_prior))
        one = alpha_from_test_prior(c.prior, prior_unif(c.test_prior, c.alpha))
        error = max(error, abs(back - c.test_prior), abs(c.alpha_unif - one))
    return error


def _posterior_at_the_cost(rng: np.random.Generator) -> float:
    error = 0.0
    for c in _conditions(rng):
        # p(+1|x) under π′ is proportional to q π′/π, and p(−1|x) to (1 − q)(1 − π′)/(1 − π).
        q = c.alpha_unif
        odds = q / (1 - q) * c.test_prior / c.prior * (1 - c.prior) / (1 - c.test_prior)
        shifted = shift_posterior(q, c.prior, c.test_prior)
        error = max(error, abs(odds / (1 + odds) - c.alpha), abs(shifted - c.alpha))
    return error


def _densities(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two normal densities, p_p and p_n, at random points."""
    x = rng.uniform(-4.0, 4.0, 500)
    return np.exp(-((x - 1.0) ** 2) / 2.0), np.exp(-((x + 1.0) ** 2) / 2.0)


def _thresholds(rng: np.random.Generator) -> float:
    wrong = 0
    for c in _conditions(rng, 50):
        p, n = _densities(rng)
        u = c.prior * p + (1 - c.prior) * n
        cost = (1 - c.alpha) * c.test_prior * p - c.alpha * (1 - c.test_prior) * n
        clear = np.abs(cost) > 1e-9
        for direction, ratio in (("p/u", p / u), ("u/p", u / p)):
            by_score = c.classify_ratio(ratio, direction) > 0
            above = ratio > c.ratio_threshold(direction)
            by_threshold = above if direction == "p/u" else ~above
            for decided in (by_score, by_threshold):
                wrong += int(((decided != (cost > 0)) & clear).sum())
    return float(wrong)


def _bounds_of_ratios(rng: np.random.Generator) -> float:
    error = 0.0
    for c in _conditions(rng, 50):
        p, n = _densities(rng)
        u, t = (share * p + (1 - share) * n for share in (c.prior, c.test_prior))
        for direction, ratio in (("p/u", p / u), ("u/p", u / p)):
            low, high = ratio_bounds(c.prior, direction)
            error = max(error, low - ratio.min(), ratio.max() - high)
        shifted = test_ratio(u / p, c.prior, c.test_prior)
        error = max(error, float(np.abs(shifted * p / t - 1.0).max()))
    return error


def _printed_losses(rng: np.random.Generator) -> float:
    z = np.concatenate([rng.normal(0.0, 2.0, 500), _KINKS])
    error = np.abs(
        get_loss("double_hinge").value(z) - np.maximum(-z, np.maximum(0.0, 0.5 - 0.5 * z))
    ).max()
    error = max(error, np.abs(get_loss("squared").value(z) - 0.25 * (1.0 - z) ** 2).max())
    for loss in LOSSES.values():
        if loss.linear_odd:
            error = max(error, np.abs(loss.value(z) - loss.value(-z) + z).max())
    return float(error)


def _slopes_of_losses(rng: np.random.Generator) -> float:
    z = rng.uniform(-3.0, 3.0, 500)
    z = z[np.abs(z[:, None] - np.array(_KINKS)).min(axis=1) > 1e-3]
    step, error = 1e-5, 0.0
    for loss in (LOSSES[name] for name in surrogates()):
        quotient = (loss.value(z + step) - loss.value(z - step)) / (2.0 * step)
        error = max(error, float(np.abs(loss.derivative(z) - quotient).max()))
    return error


def _samples(rng: np.random.Generator) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """π, scores of P and N, and scores of a U that holds P itself in the share π, and N."""
    g_p, g_n = rng.normal(0.5, 1.5, 12), rng.normal(-0.5, 1.5, 28)
    return 0.3, g_p, g_n, np.concatenate([g_p, g_n])


def _unbiased_risks(rng: np.random.Generator) -> float:
    error = 0.0
    for _ in range(20):
        prior, g_p, g_n, g_u = _samples(rng)
        test_prior, alpha = rng.uniform(0.05, 0.95, 2)
        condition = Condition(prior, test_prior, alpha)
        for name in surrogates():
            loss = get_loss(name)
            on_p, on_n = loss.value(g_p).mean(), loss.value(-g_n).mean()
            expected = {
                "pu": prior * on_p + (1 - prior) * on_n,
                "pu-shift": test_prior * on_p + (1 - test_prior) * on_n,
                "pu-asym": (1 - alpha) * prior * on_p + alpha * (1 - prior) * on_n,
                "pu-shift-asym": (1 - alpha) * test_prior * on_p + alpha * (1 - test_prior) * on_n,
            }
            for kind in KINDS:
                risk = float(evaluate_risk(g_p, g_u, condition, name, kind))
                error = max(error, abs(risk - expected[kind]))
    return error


def _convex_risks(rng: np.random.Generator) -> float:
    error = 0.0
    for c in _conditions(rng, 60):
        if c.alpha * c.prior * (1 - c.test_prior) > (1 - c.alpha) * c.test_prior * (1 - c.prior):
            continue
        if not c.is_convex:
            return np.inf
        X_p, X_u = rng.normal(size=(20, 2)), rng.normal(size=(50, 2))
        here, there = rng.normal(size=(2, 2))
        for name in surrogates():
            start, middle, end = (
                float(evaluate_risk(X_p @ w, X_u @ w, c, name))
                for w in (here, 0.5 * (here + there), there)
            )
            error = max(error, middle - 0.5 * (start + end))
    return error


def _ratio_by_brute_force(rng: np.random.Generator) -> float:
    X_nu, X_de = rng.normal(0.5, 1.0, (40, 2)), rng.normal(0.0, 1.3, (60, 2))
    centers, widths, lams, n_folds, seed = X_nu[:8], [0.7, 1.5], [1e-2, 1e-1], 4, 3
    fitted = ULSIF(
        *(X_nu, X_de),
        centers=centers,
        widths=widths,
        lams=lams,
        n_folds=n_folds,
        random_state=seed,
    )

    def solved(width: float, lam: float, nu: np.ndarray, de: np.ndarray) -> tuple:
        """Return θ of some rows, and φ of all rows of each sample."""
        phi_nu, phi_de = (
            np.exp(-((X[:, None] - centers) ** 2).sum(axis=2) / (2.0 * width**2))
            for X in (X_nu, X_de)
        )
        H, h = phi_de[de].T @ phi_de[de] / de.sum(), phi_nu[nu].mean(axis=0)
        return np.linalg.solve(H + lam * np.eye(len(h)), h), phi_nu, phi_de

    folds_nu, folds_de = (
        assign_folds("rows", len(X), n_folds, child(seed, 2, k)) for k, X in enumerate((X_nu, X_de))
    )
    scores = np.zeros((len(widths), len(lams)))
    for i, width in enumerate(widths):
        for j, lam in enumerate(lams):
            for fold in range(n_folds):
                nu, de = folds_nu != fold, folds_de != fold
                theta, phi_nu, phi_de = solved(width, lam, nu, de)
                on_nu, on_de = phi_nu[~nu] @ theta, phi_de[~de] @ theta
                scores[i, j] += (0.5 * (on_de**2).mean() - on_nu.mean()) / n_folds
    best = np.unravel_index(scores.argmin(), scores.shape)
    whole = (np.ones(len(X), dtype=bool) for X in (X_nu, X_de))
    theta, _, _ = solved(widths[int(best[0])], lams[int(best[1])], *whole)
    errors = (fitted.scores_ - scores, fitted.coefficients_ - theta)
    return float(max(np.abs(error).max() for error in errors))


def _gradients(rng: np.random.Generator) -> float:
    X_p, X_u, c = rng.normal(0.4, 1.0, (9, 3)), rng.normal(size=(20, 3)), Condition(0.3, 0.6, 0.4)
    w, step, error = rng.normal(size=4), 1e-6, 0.0

    def risk(w: np.ndarray, name: str) -> float:
        return float(evaluate_risk(X_p @ w[:3] + w[3], X_u @ w[:3] + w[3], c, name))

    for name in surrogates():
        model = LinearModel(3, dtype=np.float64)
        model.W.array[:, 0], model.b.array[:] = w[:3], w[3]
        model.cleargrads()
        Risk(c, name)(model(X_p), model(X_u)).backward()
        found = np.append(model.W.grad[:, 0], model.b.grad)
        quotient = [
            (risk(w + step * e, name) - risk(w - step * e, name)) / (2.0 * step) for e in np.eye(4)
        ]
        error = max(error, float(np.abs(found - quotient).max()))
    return error


def _amsgrad_steps(rng: np.random.Generator) -> float:
    model = LinearModel(4, dtype=np.float64)
    optimizer = AMSGrad(alpha=0.01)
    optimizer.setup(model)
    w, m, v, v_max = np.zeros((4, 5))
    for t in range(1, 31):
        g = rng.normal(size=5) * (10.0 if t < 4 else 0.1)
        model.W.grad, model.b.grad = g[:4, None].copy(), g[4:].copy()
        optimizer.update()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        v_max = np.maximum(v_max, v)
        rate = 0.01 * np.sqrt(1.0 - 0.999**t) / (1.0 - 0.9**t)
        w = w - rate * m / (np.sqrt(v_max) + 1e-8)
    return float(np.abs(np.append(model.W.array[:, 0], model.b.array) - w).max())


def _draws(rng: np.random.Generator) -> float:
    n, wrong = 2000, 0
    y = np.where(rng.permutation(n) < n // 2, 1, -1)
    made_up = Dataset.of("made up", np.arange(n)[:, None], y)
    for trial in range(10):
        prior, test_prior = rng.integers(2, 9, 2) / 10.0
        sample = draw(made_up, prior, test_prior, 100, 400, 150, trial=trial)
        X_test, y_test = sample.tests[test_prior]
        parts = [X[:, 0].astype(int) for X in (sample.positives, sample.unlabeled, X_test)]
        rows = np.concatenate(parts)
        wrong += len(rows) - len(np.unique(rows))
        wrong += int((y[parts[0]] != 1).sum() + (y[parts[2]] != y_test).sum())
        for part, share in zip(parts[1:], (prior, test_prior)):
            wrong += abs(int((y[part] == 1).sum()) - round(share * len(part)))
    return float(wrong)


IDENTITIES = (
    Identity(
        "Theorem 1 and Corollary 2 undo each other, Corollary 4 is Theorem 1 after 3",
        _costs_and_priors,
    ),
    Identity("Corollary 4: the posterior α_unif is α after the shift", _posterior_at_the_cost),
    Identity("Equations 12–13: both ratios decide as the posterior does", _thresholds, 0.0),
    Identity("Proposition 9 and Theorem 10: true ratios keep them", _bounds_of_ratios),
    Identity("the losses are the printed ones, and linear-odd", _printed_losses),
    Identity("derivatives of the losses are difference quotients", _slopes_of_losses, 1e-4),
    Identity(
        "Equation 2, Theorems 5 and 7: the risk of P and U is that of P and N", _unbiased_risks
    ),
    Identity("Theorems 6 and 8: risks are convex where α_unif ≤ ½", _convex_risks),
    Identity(
        "uLSIF and its cross-validation are those of a direct computation",
        _ratio_by_brute_force,
        1e-6,
    ),
    Identity("P, U and test sets have exact class counts and share no row", _draws, 0.0),
    Identity("gradients of the risks are difference quotients", _gradients, 1e-4, True),
    Identity(
        "steps of training are those of AMSGrad, its v̂ a running maximum",
        _amsgrad_steps,
        needs_chainer=True,
    ),
)
