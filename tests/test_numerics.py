"""Data that strain the arithmetic, against float64 references with stated tolerances.

A reference is the textbook formula in float64: distances by differences, a
linear system solved as it stands, risks as sums over rows.
"""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from pu_shift import (
    KLIEP,
    MLP,
    ULSIF,
    Condition,
    DensityRatioClassifier,
    GaussianKernelModel,
    LinearModel,
    Risk,
    RiskMinimizationClassifier,
    estimate_prior,
    train,
)
from pu_shift.priors import alpha_from_test_prior, shift_posterior, test_prior_from_alpha
from pu_shift.ratios.base import GridEdgeWarning
from pu_shift.ratios.kernels import ScaleWarning, gaussian_kernel, median_distance
from tests.mixtures import pu_samples

DTYPES = (np.float32, np.float64)
# Relative to the largest value compared.
KERNEL_TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}
RATIO_TOLERANCE = {np.float32: 2e-4, np.float64: 1e-8}
EXTREME_PRIORS = (0.001, 0.999)


def samples(d=3, n_p=60, n_u=180, prior=0.4, seed=0, dtype=np.float64):
    """Return P and U whose classes lie two standard deviations apart."""
    return tuple(X.astype(dtype) for X in pu_samples(n_p, n_u, prior, seed, d=d))


def hard_data(name):
    """Return P and U of one of the kinds of data that strain the arithmetic."""
    X_p, X_u = samples()
    if name == "duplicated rows":
        return np.repeat(X_p[:20], 3, axis=0), np.repeat(X_u[:60], 3, axis=0)
    if name == "collinear features":
        mixing = np.array([[1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 1.0, -1.0], [0.0, 0.0, 0.0, 0.0]])
        return X_p @ mixing, X_u @ mixing
    if name == "constant features":
        return tuple(np.c_[X, np.full((len(X), 2), [7.0, -1e3])] for X in (X_p, X_u))
    if name == "one feature":
        return X_p[:, :1], X_u[:, :1]
    if name == "d >> n":
        return samples(d=3000, n_p=20, n_u=50)
    if name == "far from zero":
        return X_p + 1e3, X_u + 1e3
    return X_p * float(name), X_u * float(name)


HARD = [
    "duplicated rows",
    "collinear features",
    "constant features",
    "one feature",
    "d >> n",
    "far from zero",
    "1e6",
    "1e-6",
]


def reference_ulsif(numerator, denominator, centers, width, lam, X):
    """Return uLSIF's ratio at X by its definition."""

    def kernel(rows):
        return np.exp(-0.5 * cdist(rows, centers, "sqeuclidean") / width**2)

    features = kernel(denominator)
    H = features.T @ features / len(denominator)
    theta = np.linalg.solve(H + lam * np.eye(len(centers)), kernel(numerator).mean(axis=0))
    return kernel(X) @ theta


def close(found, reference, tolerance):
    """Check values against a reference, relative to its largest."""
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, reference, rtol=0, atol=tolerance * np.abs(reference).max())


class TestKernels:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("name", HARD)
    def test_the_kernel_is_that_of_the_definition(self, name, dtype):
        X_p, X_u = (X.astype(dtype) for X in hard_data(name))
        width = median_distance(np.concatenate([X_p, X_u]))
        exact = cdist(X_u.astype(np.float64), X_p.astype(np.float64))
        close(
            gaussian_kernel(X_u, X_p, width),
            np.exp(-0.5 * (exact / width) ** 2),
            # A thousand standard deviations from zero cost single precision two digits.
            KERNEL_TOLERANCE[dtype] * (50 if name == "far from zero" else 1),
        )
        pairs = cdist(*[np.concatenate([X_p, X_u]).astype(np.float64)] * 2)
        upper = pairs[np.triu_indices(len(pairs), 1)]
        assert width == pytest.approx(np.median(upper), rel=1e-4 if dtype == np.float32 else 1e-9)


class TestRatios:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("name", HARD)
    def test_ulsif_is_the_solution_of_its_equations(self, name, dtype):
        X_p, X_u = (X.astype(dtype) for X in hard_data(name))
        width = median_distance(np.concatenate([X_p, X_u]))
        ratio = ULSIF(X_p, X_u, centers=X_p[:15], widths=width, lams=0.01)
        found = ratio(X_u)
        assert found.dtype == dtype
        wide = [X.astype(np.float64) for X in (X_p, X_u)]
        expected = reference_ulsif(*wide, wide[0][:15], width, 0.01, wide[1])
        slack = 50 if name == "far from zero" else 1
        close(found, expected, RATIO_TOLERANCE[dtype] * slack)

    @pytest.mark.parametrize("estimator", [ULSIF, KLIEP])
    @pytest.mark.parametrize("factor", [1e-6, 1e6])
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_a_ratio_has_no_unit(self, estimator, factor, dtype):
        """Features in other units, with the default grid: the same choice and the same ratio."""
        X_p, X_u = samples(dtype=dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GridEdgeWarning)
            plain = estimator(X_p, X_u, n_centers=30)
            scaled = estimator(dtype(factor) * X_p, dtype(factor) * X_u, n_centers=30)
        assert scaled.width_ == pytest.approx(factor * plain.width_, rel=1e-5)
        if estimator is ULSIF:
            assert scaled.lam_ == plain.lam_
        tolerance = 2e-3 if dtype == np.float32 else 1e-6
        close(scaled(dtype(factor) * X_u), plain(X_u), tolerance)

    @pytest.mark.parametrize("estimator", [ULSIF, KLIEP])
    def test_every_row_twice_is_the_same_sample(self, estimator):
        X_p, X_u = samples()
        options = {"centers": X_p[:20], "widths": 1.5}
        if estimator is ULSIF:
            options["lams"] = 0.01
        once = estimator(X_p, X_u, **options)
        twice = estimator(np.repeat(X_p, 2, axis=0), np.repeat(X_u, 2, axis=0), **options)
        close(twice(X_u), once(X_u), 1e-9)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("lam", [0.0, 1e-6, 1e-2])
    def test_a_feature_twice_changes_no_linear_ratio(self, lam, dtype):
        X_p, X_u = samples(dtype=dtype)
        twice_p, twice_u = (np.c_[X, X] for X in (X_p, X_u))
        once = ULSIF(X_p, X_u, basis="linear", lams=lam)
        # Two columns that share a weight are penalised half as much.
        twice = ULSIF(twice_p, twice_u, basis="linear", lams=lam)
        tolerance = {np.float32: 1e-3, np.float64: 1e-9}[dtype] + 4 * lam
        close(twice(twice_u), once(X_u), tolerance)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_without_a_penalty_coinciding_centres_do_no_harm(self, dtype):
        X_p, X_u = samples(dtype=dtype)
        width = 3.0
        ratio = ULSIF(X_p, X_u, centers=np.repeat(X_p[:4], 3, axis=0), widths=width, lams=0.0)
        wide = [X.astype(np.float64) for X in (X_p, X_u)]
        expected = reference_ulsif(*wide, wide[0][:4], width, 0.0, wide[1])
        close(ratio(X_u), expected, 1e-2 if dtype == np.float32 else 1e-6)

    @pytest.mark.parametrize("width", [1.0, 3.0, 10.0])
    @pytest.mark.parametrize("lam", [0.0, 1e-6, 1e-5, 1e-3])
    def test_rounding_is_not_taken_for_signal(self, width, lam):
        """Of 100 overlapping kernels, float32 sums tell a few directions only."""
        X_p, X_u = samples(n_p=200, n_u=600)
        single = [X.astype(np.float32) for X in (X_p, X_u)]
        double = ULSIF(X_p, X_u, widths=width, lams=lam)(X_u)
        found = ULSIF(*single, widths=width, lams=lam)(single[1])
        # Noise of 1e-7 is harmless beside λ, and stays bounded without one.
        tolerance = {1e-3: 1e-4, 1e-5: 1e-2}.get(lam, 1.0)
        close(found, double, tolerance)

    @pytest.mark.parametrize("estimator", [ULSIF, KLIEP])
    @pytest.mark.parametrize(
        ("dtype", "factor"),
        [(np.float32, 1e-20), (np.float32, 1e20), (np.float64, 1e-160), (np.float64, 1e170)],
    )
    @pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
    def test_what_a_precision_cannot_hold_is_said(self, estimator, dtype, factor):
        X_p, X_u = ((X * factor).astype(dtype) for X in samples())
        with pytest.raises(ValueError, match=f"X must be scaled: .* range of {dtype.__name__}"):
            estimator(X_p, X_u)
        narrow = 1e-30 if dtype == np.float32 else 1e-170
        if factor > 1.0:  # then widths of one's own do not help
            with pytest.raises(ValueError, match=f"X must be scaled: .* range of {dtype.__name__}"):
                estimator(X_p, X_u, widths=factor)
            return
        with pytest.raises(ValueError, match=f"width must be larger for {dtype.__name__}, got 1e"):
            estimator(X_p, X_u, widths=narrow)


class TestPriors:
    @pytest.mark.parametrize("prior", EXTREME_PRIORS)
    @pytest.mark.parametrize("test_prior", EXTREME_PRIORS)
    def test_the_conversions_are_exact_and_come_back(self, prior, test_prior):
        p, t = Fraction(prior), Fraction(test_prior)
        alpha = alpha_from_test_prior(prior, test_prior)
        exact = p * (1 - t) / (p * (1 - t) + (1 - p) * t)
        assert alpha == pytest.approx(float(exact), rel=1e-12)
        assert test_prior_from_alpha(prior, alpha) == pytest.approx(test_prior, rel=1e-9)
        q = np.array([1e-6, 0.3, 1.0 - 1e-6])
        there = shift_posterior(q, prior, test_prior)
        np.testing.assert_allclose(shift_posterior(there, test_prior, prior), q, rtol=1e-6)

    @pytest.mark.parametrize("prior", EXTREME_PRIORS)
    @pytest.mark.filterwarnings("ignore::pu_shift.estimation.class_prior.PriorWarning")
    @pytest.mark.parametrize("basis", ["linear", "gaussian"])
    def test_training_at_extreme_priors_gives_numbers(self, prior, basis):
        X_p, X_u = samples()
        for estimator in (
            DensityRatioClassifier(prior, 0.5, basis=basis),
            RiskMinimizationClassifier(
                prior, 0.5, basis=basis, n_steps=100, n_centers=20, safe=False
            ),
        ):
            estimator.fit_pu(X_p, X_u)
            assert np.isfinite(estimator.decision_function(X_u)).all()
            rows = estimator.predict_proba(X_u)
            np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)
            assert ((rows >= 0) & (rows <= 1)).all()


class TestTraining:
    @pytest.mark.parametrize("kernel", [False, True])
    @pytest.mark.parametrize("loss", ["squared", "double_hinge", "logistic"])
    def test_single_precision_agrees_with_double(self, loss, kernel):
        X_p, X_u = samples()
        found = {}
        for dtype in DTYPES:
            model = LinearModel(3, dtype=dtype)
            if kernel:
                model = GaussianKernelModel(X_p[:20], 2.0, dtype=dtype)
            rows = [X.astype(dtype) for X in (X_p, X_u)]
            result = train(model, *rows, Risk(Condition(0.4, 0.6), loss), lam=1e-3, n_steps=300)
            assert result.snapshots[0]["/W"].dtype == result.risks.dtype == dtype
            found[dtype] = model(X_u.astype(dtype)).array, float(result.risks[0])
        # AMSGrad's quotient of small numbers carries rounding on: three digits.
        close(found[np.float32][0], found[np.float64][0], 2e-3)
        assert found[np.float32][1] == pytest.approx(found[np.float64][1], abs=1e-4)

    @pytest.mark.parametrize(
        ("model", "factor", "rate"), [(None, 1e15, 1e-2), (MLP(3, 8, 1), 1.0, 1e30)]
    )
    @pytest.mark.filterwarnings("ignore::pu_shift.ratios.kernels.ScaleWarning")
    def test_a_training_that_diverges_is_said(self, model, factor, rate):
        X_p, X_u = (factor * X for X in samples(dtype=np.float32))
        classifier = RiskMinimizationClassifier(
            0.4, 0.6, model=model, scaling=None, solver="amsgrad", n_steps=50, learning_rate=rate
        )
        with pytest.raises(ValueError, match="must be scaled, or learning_rate lowered"):
            classifier.fit_pu(X_p, X_u)


class TestClassifiers:
    @pytest.mark.parametrize("name", HARD)
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("make", [DensityRatioClassifier, RiskMinimizationClassifier])
    def test_hard_data_give_finite_scores_of_the_same_precision(self, name, dtype, make):
        X_p, X_u = (X.astype(dtype) for X in hard_data(name))
        options = {"n_centers": 20, "basis": "gaussian"}
        if make is RiskMinimizationClassifier:
            options.update(n_steps=60, safe=False)
        classifier = make(0.4, 0.6, **options).fit_pu(X_p, X_u)
        scores = classifier.decision_function(X_u)
        assert scores.dtype == dtype
        assert np.isfinite(scores).all()
        # P and U differ along the first feature, whatever the rest is like.
        if name != "d >> n":
            assert classifier.decision_function(X_p).mean() > scores.mean()

    @pytest.mark.parametrize("make", [DensityRatioClassifier, RiskMinimizationClassifier])
    def test_single_precision_decides_like_double(self, make):
        X_p, X_u = samples(n_p=200, n_u=600)
        options = {"basis": "gaussian", "n_steps": 200}
        if make is DensityRatioClassifier:
            options = {"estimator": "ulsif"}
        probabilities = [
            make(0.4, 0.6, **options).fit_pu(X_p.astype(t), X_u.astype(t)).predict_proba(X_u)
            for t in DTYPES
        ]
        np.testing.assert_allclose(*probabilities, atol=5e-3)


LINEAR = {
    "ULSIF": lambda *rows: ULSIF(*rows, basis="linear"),
    "ratio": lambda *rows: DensityRatioClassifier(0.4, basis="linear").fit_pu(*rows),
    "risk": lambda *rows: RiskMinimizationClassifier(
        0.4, basis="linear", scaling=None, n_steps=20, safe=False
    ).fit_pu(*rows),
}


@pytest.mark.parametrize("fit", LINEAR.values(), ids=LINEAR)
@pytest.mark.filterwarnings("ignore::pu_shift.ratios.base.GridEdgeWarning")
class TestScale:
    """A linear basis that would give a constant without a word says so, with the cure."""

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda X: 1e-30 * X, "no feature of X has a range of more than"),
            (lambda X: X + 1e8, "feature 1 of X is near 1e\\+08 with a range of only|no feature"),
            (
                lambda X: X + np.array([0, 0, 1e4]),
                "feature 3 of X is near 1000[0-9.]* with a range of only",
            ),
            (lambda X: 1e9 * X, "values of X up to .* leave no digits of"),
        ],
    )
    def test_features_that_a_linear_basis_cannot_use_are_reported(
        self, fit, change, message, dtype
    ):
        rows = [change(X).astype(dtype) for X in samples()]
        with pytest.warns(ScaleWarning, match=rf"\A({message})[^\n]*StandardScaler [^\n]*\Z"):
            fit(*rows)

    @pytest.mark.parametrize(("dtype", "factor"), [(np.float32, 1e20), (np.float64, 1e160)])
    def test_squares_that_overflow_are_refused(self, fit, dtype, factor):
        rows = [(factor * X).astype(dtype) for X in samples()]
        cure = r"\AX must be scaled: column \d has values up to .*: divide it by a power of ten\Z"
        with pytest.raises(ValueError, match=cure):
            fit(*rows)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("factor", [0.1, 1.0, 1e3])
    def test_ordinary_features_need_no_word(self, fit, factor, dtype):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ScaleWarning)
            fit(*[np.c_[factor * X, np.full(len(X), 7.0)].astype(dtype) for X in samples()])


@pytest.mark.parametrize("make", [DensityRatioClassifier, RiskMinimizationClassifier])
def test_the_gaussian_basis_bears_any_scale_that_its_precision_holds(make):
    X_p, X_u = samples()
    options = {"n_steps": 60, "scaling": None, "safe": False}
    if make is DensityRatioClassifier:
        options = {"estimator": "ulsif"}
    plain, tiny, far = (
        make(0.4, basis="gaussian", **options).fit_pu(*rows).decision_function(rows[1])
        for rows in ((X_p, X_u), (1e-30 * X_p, 1e-30 * X_u), (X_p + 1e8, X_u + 1e8))
    )
    close(tiny, plain, 1e-5)
    close(far, plain, 1e-3)
    for change in (lambda X: 1e-30 * X, lambda X: X + 1e8):
        with pytest.raises(ValueError, match=r"\A[^\n]*[Ss]cale (the|such) features[^\n]*\Z"):
            make(0.4, basis="gaussian", **options).fit_pu(
                *(change(X).astype(np.float32) for X in (X_p, X_u))
            )


class TestClassPrior:
    def test_what_overflows_is_refused(self):
        with pytest.raises(ValueError, match="X: column 1 has values up to .*: divide it"):
            estimate_prior(*(1e160 * X for X in samples()))

    @pytest.mark.filterwarnings("ignore::pu_shift.estimation.class_prior.PriorWarning")
    @pytest.mark.parametrize("name", HARD)
    def test_hard_data_give_a_share(self, name):
        estimate = estimate_prior(*hard_data(name))
        assert 0.0 < estimate.low <= estimate.prior <= estimate.high < 1.0
        assert estimate.low <= estimate.bound <= 1.0
