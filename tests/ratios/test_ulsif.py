"""uLSIF and KLIEP: brute force, closed forms, streaming, device purity."""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from pu_shift._grids import WIDTH_FACTORS, assign_folds
from pu_shift._seeds import child
from pu_shift.priors import ratio_bounds
from pu_shift.ratios import kernels, ulsif
from pu_shift.ratios.base import GridEdgeWarning
from pu_shift.ratios.kernels import gaussian_kernel, median_distance
from pu_shift.ratios.kliep import KLIEP
from pu_shift.ratios.ulsif import ULSIF, loo_losses
from tests.strict import back, there

rng = np.random.default_rng(0)
NU, DE = rng.normal(0.5, 1.0, (30, 2)), rng.normal(0.0, 1.3, (40, 2))
CENTERS = rng.normal(0.0, 1.0, (8, 2))
WIDTHS, LAMS = [0.5, 1.0, 2.0], [0.01, 0.1, 1.0, 10.0]

# The best candidate is often on the edge of a grid this small.
pytestmark = pytest.mark.filterwarnings("ignore::pu_shift.ratios.base.GridEdgeWarning")


def solve(phi_nu, phi_de, lam, clip=False):
    H = phi_de.T @ phi_de / len(phi_de)
    theta = np.linalg.solve(H + lam * np.eye(len(H)), phi_nu.mean(axis=0))
    return np.maximum(theta, 0) if clip else theta


def held_out(phi_nu, phi_de, theta):
    return 0.5 * np.mean((phi_de @ theta) ** 2) - np.mean(phi_nu @ theta)


def features(width, nu=NU, de=DE, centers=CENTERS):
    return gaussian_kernel(nu, centers, width), gaussian_kernel(de, centers, width)


# Centres drawn with replacement, or from data in which rows repeat.
REPEATED = CENTERS[[3, 0, 1, 0, 2, 0, 1]]
with_and_without_repetition = pytest.mark.parametrize(
    "centers", [CENTERS, REPEATED], ids=["distinct", "repeated"]
)


@with_and_without_repetition
@pytest.mark.parametrize("clip", [False, True])
def test_coefficients_solve_the_regularised_problem(clip, centers):
    ratio = ULSIF(NU, DE, centers=centers, widths=0.8, lams=0.05, clip_coefficients=clip)
    expected = solve(*features(0.8, centers=centers), 0.05, clip)
    np.testing.assert_allclose(ratio.coefficients_, expected, rtol=1e-9)
    np.testing.assert_array_equal(ratio.centers_, centers)
    X = rng.normal(size=(5, 2))
    expected = gaussian_kernel(X, centers, 0.8) @ ratio.coefficients_
    np.testing.assert_allclose(ratio.predict(X), expected, rtol=1e-12)
    np.testing.assert_array_equal(ratio(X), ratio.predict(X))
    assert np.isnan(ratio.scores_).all()


@with_and_without_repetition
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize(("n_nu", "n_de"), [(30, 40), (40, 30), (30, 30)])
def test_leave_one_out_is_brute_force(clip, n_nu, n_de, centers):
    data = np.random.default_rng(1)
    nu, de = data.normal(0.5, 1, (n_nu, 2)), data.normal(0, 1.3, (n_de, 2))
    ratio = ULSIF(
        nu, de, centers=centers, widths=WIDTHS, lams=LAMS, selection="loo", clip_coefficients=clip
    )
    m = min(n_nu, n_de)
    order_nu, order_de = (
        np.random.default_rng(child(0, 3, part)).permutation(n)[:m]
        for part, n in enumerate((n_nu, n_de))
    )
    for w, width in enumerate(WIDTHS):
        phi_nu, phi_de = features(width, nu, de, centers)
        for j, lam in enumerate(LAMS):
            total = 0.0
            for i, k in zip(order_nu, order_de):
                theta = solve(np.delete(phi_nu, i, 0), np.delete(phi_de, k, 0), lam, clip)
                total += held_out(phi_nu[[i]], phi_de[[k]], theta)
            assert ratio.scores_[w, j] == pytest.approx(total / m, rel=1e-8, abs=1e-8)
    place = np.unravel_index(ratio.scores_.argmin(), ratio.scores_.shape)
    assert (ratio.width_, ratio.lam_) == (WIDTHS[place[0]], LAMS[place[1]])


@with_and_without_repetition
@pytest.mark.parametrize("clip", [False, True])
def test_k_fold_is_refitting(clip, centers):
    ratio = ULSIF(
        NU,
        DE,
        centers=centers,
        widths=WIDTHS,
        lams=LAMS,
        n_folds=4,
        clip_coefficients=clip,
        random_state=7,
    )
    folds_nu = assign_folds("numerator", 30, 4, child(7, 2, 0))
    folds_de = assign_folds("denominator", 40, 4, child(7, 2, 1))
    for w, width in enumerate(WIDTHS):
        phi_nu, phi_de = features(width, centers=centers)
        for j, lam in enumerate(LAMS):
            losses = []
            for fold in range(4):
                out_nu, out_de = folds_nu == fold, folds_de == fold
                theta = solve(phi_nu[~out_nu], phi_de[~out_de], lam, clip)
                losses.append(held_out(phi_nu[out_nu], phi_de[out_de], theta))
            assert ratio.scores_[w, j] == pytest.approx(np.mean(losses), rel=1e-8, abs=1e-10)
    # The final coefficients are fitted on all rows.
    final = solve(*features(ratio.width_, centers=centers), ratio.lam_, clip)
    np.testing.assert_allclose(ratio.coefficients_, final, rtol=1e-8, atol=1e-12)


def reference_loo(phi_nu, phi_de, lam):
    """The leave-one-out score of the public R and MATLAB uLSIF code, clipped at 0.

    Written from Kanamori et al. (2009), Figure 2.
    """
    n_nu, n_de = len(phi_nu), len(phi_de)
    m = min(n_nu, n_de)
    H, h = phi_de.T @ phi_de / n_de, phi_nu.mean(axis=0)[:, None]
    k_nu, k_de = phi_nu[:m].T, phi_de[:m].T
    B = H + lam * (n_de - 1) / n_de * np.eye(len(H))
    B_de = np.linalg.solve(B, k_de)
    denominator = n_de - (k_de * B_de).sum(axis=0)
    B0 = np.linalg.solve(B, h) + B_de * ((h.T @ B_de) / denominator)
    B1 = np.linalg.solve(B, k_nu) + B_de * ((k_nu * B_de).sum(axis=0) / denominator)
    B2 = np.maximum(0, (n_de - 1) / (n_de * (n_nu - 1)) * (n_nu * B0 - B1))
    r_de, r_nu = (k_de * B2).sum(axis=0), (k_nu * B2).sum(axis=0)
    return (r_de @ r_de) / (2 * m) - r_nu.mean()


def our_loo(phi_nu, phi_de, lams):
    m = min(len(phi_nu), len(phi_de))
    eigen = np.linalg.eigh(phi_de.T @ phi_de / len(phi_de))
    sums = loo_losses(
        np.concatenate([phi_nu[:m], phi_de[:m]]), phi_nu.mean(axis=0), eigen, np.array(lams),
        len(phi_nu), len(phi_de), clip=True,
    )  # fmt: skip
    return sums / m


def test_leave_one_out_equals_the_public_reference_formula():
    for width in WIDTHS:
        phi_nu, phi_de = features(width)
        expected = [reference_loo(phi_nu, phi_de, lam) for lam in LAMS]
        np.testing.assert_allclose(our_loo(phi_nu, phi_de, LAMS), expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_clipped_leave_one_out_whatever_the_signs(seed):
    """Coefficients that are surely positive, surely negative and in doubt, in all mixtures."""
    data = np.random.default_rng(seed)
    phi_de = data.normal(0, 1, (50, 12)) * np.logspace(0, -2, 12)
    phi_nu = data.normal(0, 0.3, (40, 12)) + data.normal(0, 1, 12) * (1, -1)[seed % 2]
    if seed == 3:
        phi_nu = np.abs(phi_nu)
    lams = np.logspace(-4, 3, 8)
    expected = [reference_loo(phi_nu, phi_de, lam) for lam in lams]
    np.testing.assert_allclose(our_loo(phi_nu, phi_de, lams), expected, rtol=1e-9)


def test_p_over_u_approaches_the_true_ratio():
    """Error against N(1,1) / (0.4 N(1,1) + 0.6 N(-1,1)) falls as n grows."""
    prior, x = 0.4, np.linspace(-3, 3, 61)[:, None]
    p_p, p_n = norm.pdf(x, 1), norm.pdf(x, -1)
    p_u = prior * p_p + (1 - prior) * p_n
    truth = (p_p / p_u)[:, 0]
    errors = []
    for n in (100, 1000, 10000):
        by_trial = []
        for trial in range(4):
            data = np.random.default_rng((n, trial))
            nu = data.normal(1, 1, (n, 1))
            de = np.where(data.random((4 * n, 1)) < prior, 1, -1) + data.normal(size=(4 * n, 1))
            estimate = ULSIF(
                nu, de, widths=[0.5, 1.0, 2.0], lams=[1e-4, 1e-3, 1e-2, 1e-1], random_state=trial
            )
            by_trial.append(np.average((estimate(x) - truth) ** 2, weights=p_u[:, 0]))
        errors.append(np.mean(by_trial))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.005
    assert 0 < truth.min() <= truth.max() < ratio_bounds(prior)[1]


def test_linear_basis():
    ratio = ULSIF(NU, DE, basis="linear", lams=[0.1])
    phi_nu, phi_de = (np.column_stack([X, np.ones(len(X))]) for X in (NU, DE))
    np.testing.assert_allclose(ratio.coefficients_, solve(phi_nu, phi_de, 0.1), rtol=1e-9)
    np.testing.assert_allclose(ratio(NU), phi_nu @ ratio.coefficients_)
    chosen = ULSIF(NU, DE, basis="linear", lams=LAMS)
    assert chosen.scores_.shape == (1, 4)
    assert chosen.lam_ in LAMS


def test_default_widths_are_near_those_of_given_factors():
    data = np.random.default_rng(0)
    nu, de = data.normal(size=(1000, 2)), data.normal(size=(1500, 2))
    near, exact = (
        ULSIF(nu, de, lams=[0.1], n_centers=10, width_factors=factors).widths_
        for factors in (None, WIDTH_FACTORS)
    )
    median = median_distance(np.concatenate([nu, de]))
    np.testing.assert_allclose(exact, np.array(WIDTH_FACTORS) * median)
    np.testing.assert_allclose(near, exact, rtol=0.05)
    assert not np.array_equal(near, exact)


@pytest.mark.parametrize(("limit", "most"), [("MAX_WIDTH_ROWS", 500), ("MAX_WIDTH_CENTERS", 15)])
def test_a_sample_chooses_the_width_and_all_choose_the_rest(limit, most, monkeypatch):
    data = np.random.default_rng(0)
    # Fine structure, which a few hundred rows show as well as thousands do.
    nu, de = data.normal(0.0, 0.3, (900, 1)), data.normal(0.0, 3.0, (4000, 1))
    options = {"n_centers": 30, "lams": LAMS}
    whole = ULSIF(nu, de, widths=[0.3, 3.0, 30.0], **options)
    monkeypatch.setattr(ulsif, limit, most)
    narrowed = ULSIF(nu, de, widths=[0.3, 3.0, 30.0], **options)
    alone = ULSIF(nu, de, widths=whole.width_, **options)
    assert narrowed.widths_.tolist() == [whole.width_]
    np.testing.assert_array_equal(narrowed.scores_, alone.scores_)
    np.testing.assert_array_equal(narrowed.coefficients_, alone.coefficients_)
    # The edge of the widths is told all the same.
    with pytest.warns(GridEdgeWarning, match="the best of widths is 3,"):
        ULSIF(nu, de, widths=[3.0, 30.0], **options)


def test_edge_of_the_grid_is_warned_about():
    with pytest.warns(GridEdgeWarning, match="the best of widths is .* on the edge"):
        ULSIF(NU, DE, centers=CENTERS, widths=[50.0, 100.0], lams=[0.1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # One candidate has no edge; neither has a λ of 0, below which is nothing.
        ULSIF(NU, DE, centers=CENTERS, widths=1.0, lams=0.1)
        inside = ULSIF(NU, DE, centers=CENTERS, widths=[1.0], lams=[1e-6, 0.1, 1e6])
    assert inside.lam_ == 0.1


@settings(max_examples=20)
@given(st.integers(1, 80), st.sampled_from(["kfold", "loo"]))
def test_chunk_size_changes_nothing(chunk_rows, selection):
    arguments = {"centers": CENTERS, "widths": WIDTHS, "lams": LAMS, "selection": selection}
    whole = ULSIF(NU, DE, **arguments)
    ratio = whole(DE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "CHUNK_ROWS", chunk_rows)
        chunked = ULSIF(NU, DE, **arguments)
        np.testing.assert_allclose(chunked.scores_, whole.scores_, rtol=1e-9)
        np.testing.assert_allclose(chunked(DE), ratio, rtol=1e-7)


@pytest.mark.parametrize("estimator", ["kfold", "loo", "linear", "kliep"])
def test_device_purity(estimator, monkeypatch):
    """array-api-strict refuses what is not in the standard, and to mix its devices.

    On its second device no array reaches NumPy unless it is sent there: only
    the scores of the selection are.
    """
    sent = []

    def send(array):
        sent.append(array.shape)
        return back(array)

    monkeypatch.setattr(ulsif, "to_numpy", send)
    monkeypatch.setattr(kernels, "CHUNK_ROWS", 16)
    options = {"widths": WIDTHS, "n_centers": 12}
    if estimator == "kliep":
        make = KLIEP
    elif estimator == "linear":
        make, options = ULSIF, {"basis": "linear", "lams": LAMS}
    else:
        make, options = ULSIF, {**options, "lams": LAMS, "selection": estimator}
    device = make(there(NU), there(DE), **options)
    assert sent == ([device.scores_.shape] if estimator != "kliep" else [])
    monkeypatch.undo()
    plain = make(NU, DE, **options)
    np.testing.assert_allclose(device.scores_, plain.scores_, rtol=1e-9)
    np.testing.assert_allclose(back(device(there(DE))), plain(DE), rtol=1e-6, atol=1e-9)


def test_a_million_denominators_fit_in_a_gigabyte():
    data = np.random.default_rng(0)
    nu = data.normal(size=(500, 5)).astype(np.float32)
    de = data.normal(size=(1_000_000, 5)).astype(np.float32)
    tracemalloc.start()
    tracemalloc.reset_peak()
    ratio = ULSIF(nu, de, n_centers=100, widths=[1.0, 2.0], lams=[0.1, 1.0])
    ratio(de)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak + nu.nbytes + de.nbytes < 2**30


# --- KLIEP -----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
def test_kliep_reaches_the_constrained_optimum():
    ratio = KLIEP(NU, DE, centers=CENTERS, widths=1.0, tolerance=1e-6, max_iterations=100000)
    phi_nu, phi_de = features(1.0)
    means = phi_de.mean(axis=0)
    assert ratio.coefficients_ @ means == pytest.approx(1.0)
    assert (ratio.coefficients_ >= 0).all()

    def mixture(theta):  # SLSQP may try points a little outside its bounds
        return np.maximum(phi_nu @ theta, 1e-9)

    best = minimize(
        lambda theta: -np.log(mixture(theta)).mean(),
        np.full(8, 1 / means.sum()),
        jac=lambda theta: -(phi_nu / mixture(theta)[:, None]).mean(axis=0),
        bounds=[(0.0, None)] * 8,
        constraints={"type": "eq", "fun": lambda theta: means @ theta - 1, "jac": lambda _: means},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    ours = -np.log(phi_nu @ ratio.coefficients_).mean()
    assert ours == pytest.approx(best.fun, abs=1e-5)


def test_kliep_selection_is_held_out_likelihood():
    options = {"centers": CENTERS, "tolerance": 1e-7, "max_iterations": 200000}
    ratio = KLIEP(NU, DE, widths=WIDTHS, n_folds=3, **options)
    folds = assign_folds("numerator", 30, 3, child(0, 2, 0))
    for w, width in enumerate(WIDTHS):
        by_fold = [
            np.log(KLIEP(NU[folds != k], DE, widths=width, **options)(NU[folds == k])).mean()
            for k in range(3)
        ]
        assert ratio.scores_[w, 0] == pytest.approx(-np.mean(by_fold), abs=1e-3)
    assert ratio.width_ == WIDTHS[int(ratio.scores_.argmin())]
    assert np.isnan(ratio.lam_)


def test_kliep_of_samples_that_hardly_overlap_is_finite_in_float32():
    nu, de = np.array([[0.0], [0.1]], np.float32), np.array([[13.4], [30.0]], np.float32)
    ratio = KLIEP(nu, de, widths=1.0)
    assert np.abs(ratio.coefficients_).max() > float(np.finfo(np.float32).max)
    assert np.isfinite(ratio(nu)).all()
    # What KLIEP is held to: the mean over the denominator's rows is 1.
    assert ratio(de).mean() == pytest.approx(1.0, rel=1e-4)


# --- bad input -------------------------------------------------------------------


@pytest.mark.parametrize("make", [ULSIF, KLIEP])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"numerator": NU * np.nan}, "numerator must not contain NaN or infinity"),
        ({"numerator": NU[:1]}, "numerator must have at least 2 row"),
        ({"denominator": DE[:, :1]}, "denominator must have 2 columns"),
        ({"denominator": DE.astype(np.float32)}, "denominator must have the dtype of numerator"),
        ({"numerator": np.ones((9, 2)), "denominator": np.ones((9, 2))}, "median distance"),
        ({"widths": [1.0, -1.0]}, "widths must be finite numbers > 0, got -1.0"),
        ({"centers": "middle"}, "centers must be one of"),
        ({"centers": np.zeros((3, 5))}, "centers must have 2 columns"),
        ({"n_centers": 0}, "n_centers must be an integer >= 1"),
        ({"n_folds": 1}, "n_folds must be an integer >= 2"),
        ({"n_folds": 31}, "numerator must have at least n_folds = 31 rows, got 30"),
        ({"random_state": -1}, "random_state must be an integer >= 0"),
    ],
)
def test_bad_input(make, change, message):
    arguments = {"numerator": NU, "denominator": DE, **change}
    with pytest.raises(ValueError, match=rf"\A{message}[^\n]*\Z"):
        make(arguments.pop("numerator"), arguments.pop("denominator"), **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lams": [-0.1]}, "lams must be finite numbers >= 0, got -0.1"),
        ({"basis": "poly"}, "basis must be one of 'gaussian', 'linear', got 'poly'"),
        ({"selection": "aic"}, "selection must be one of 'kfold', 'loo', got 'aic'"),
    ],
)
def test_bad_input_of_ulsif(change, message):
    with pytest.raises(ValueError, match=rf"\A{message}\Z"):
        ULSIF(NU, DE, **change)


@pytest.mark.parametrize(("kind", "lams"), [("gaussian", 0.1), ("linear", 0.3)])
def test_held_out_ratios_are_those_of_refits_without_the_fold(kind, lams):
    rng = np.random.default_rng(4)
    samples = rng.normal(1.0, 1.0, (31, 2)), rng.normal(0.0, 1.5, (47, 2))
    options = {"basis": kind, "lams": lams}
    if kind == "gaussian":
        options |= {"centers": samples[0][:7], "widths": 1.3}
    ratio = ULSIF(*samples, **options)
    found = ratio.held_out(*samples, 3, child(5))
    names = ("numerator", "denominator")
    folds = [
        assign_folds(n, len(X), 3, child(5, k)) for k, (n, X) in enumerate(zip(names, samples))
    ]
    for fold in range(3):
        refit = ULSIF(*(X[part != fold] for X, part in zip(samples, folds)), **options)
        for X, part, values in zip(samples, folds, found):
            np.testing.assert_allclose(values[part == fold], refit(X[part == fold]), rtol=1e-9)
