"""A network as a density ratio: uLSIF's closed form, the correction, files, bad input."""

import numpy as np
import pytest
import scipy.sparse as sp

from pu_shift import MLP, ULSIF, DensityRatioClassifier, load_model, save_model
from pu_shift._chainer import chainer
from pu_shift.device import DeviceError
from pu_shift.files.models import ModelFileError
from pu_shift.models import LinearModel, score_rows, sizes_of
from pu_shift.ratios.deep import DeepRatio
from pu_shift.ratios.kernels import gaussian_kernel
from pu_shift.risks import RatioRisk
from pu_shift.training import train
from tests.mixtures import posterior, pu_samples

X_P, X_U = pu_samples(150, 400, 0.4, d=2)
SMALL = {"n_steps": 60, "n_batches": 2}


def network(**options):
    return DeepRatio(MLP(2, 16, 1), **{**SMALL, **options})


class WeightsAlone(chainer.Link):
    """Σ_l θ_l φ_l, without a bias."""

    def __init__(self, n):
        super().__init__()
        with self.init_scope():
            self.theta = chainer.Parameter(np.zeros((n, 1)))

    def forward(self, x):
        return chainer.functions.matmul(x, self.theta)


def test_a_trained_linear_link_has_the_coefficients_of_ulsif():
    model = LinearModel(2, dtype=np.float64)
    train(model, X_P, X_U, RatioRisk(), n_steps=2500, learning_rate=0.02)
    ratio = ULSIF(X_P, X_U, basis="linear", lams=0.0)
    found = np.append(model.W.array[:, 0], model.b.array)
    np.testing.assert_allclose(found, ratio.coefficients_, atol=1e-6)


def test_a_trained_sum_of_kernels_has_the_coefficients_of_ulsif():
    ratio = ULSIF(X_P, X_U, n_centers=5, widths=1.5, lams=0.1)
    phi_p, phi_u = (gaussian_kernel(X, ratio.centers_, 1.5) for X in (X_P, X_U))
    model = WeightsAlone(5)
    train(model, phi_p, phi_u, RatioRisk(), lam=0.1, n_steps=1500, learning_rate=0.02)
    np.testing.assert_allclose(model.theta.array[:, 0], ratio.coefficients_, atol=1e-6)


def test_one_fit_finds_the_posterior_under_every_condition():
    X_p, X_u = pu_samples(1000, 2000, 0.4)
    deep = DeepRatio(MLP(1, 20, 1), n_steps=200)
    classifier = DensityRatioClassifier(0.4, estimator=deep, n_folds=3).fit_pu(X_p, X_u)
    grid = np.linspace(-3, 3, 50)[:, None]
    for prior in (0.4, 0.8):
        shown = classifier.predict_proba(grid, test_prior=prior)[:, 1]
        assert np.abs(shown - posterior(grid, prior)).mean() < 0.06


def test_the_correction_bounds_what_a_network_makes_of_the_rows_of_p():
    """Without it the largest ratios of training rows leave (0, 1/π] by far."""
    X_p, X_u = pu_samples(40, 100, 0.4, d=8)
    options = {"n_steps": 300, "n_batches": None, "learning_rate": 1e-2}
    largest = [
        DeepRatio(MLP(8, 50, 1), share=share, **options).fit(X_p, X_u)(X_p).max()
        for share in (0.0, 0.4)
    ]
    assert largest[0] > 4.0 * largest[1]


def test_a_link_is_a_candidate_like_any_other():
    names = [MLP(2, 5, 1), network(), "linear"]
    classifier = DensityRatioClassifier(0.4, estimator=names, n_folds=2)
    classifier.fit_pu(X_P[:20], X_U[:40])
    assert list(classifier.candidates_) == ["MLP", "DeepRatio", "linear"]
    assert sum(part["weight"] for part in classifier.candidates_.values()) == pytest.approx(1.0)


def test_what_is_left_open_is_the_classifiers():
    ratio = network().for_classifier(0.4, 7, None)
    assert (ratio.share, ratio.random_state) == (pytest.approx(0.3), 7)
    ratio = network(share=0.1, random_state=3).for_classifier(0.4, 7, None)
    assert (ratio.share, ratio.random_state) == (0.1, 3)
    model = MLP(2, 16, 1)
    before = score_rows(model, X_U.astype("f"))
    fits = [DeepRatio(model, **SMALL, random_state=seed).fit(X_P, X_U)(X_U) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])
    np.testing.assert_array_equal(score_rows(model, X_U.astype("f")), before)


@pytest.mark.parametrize("estimator", [network(lam=1e-3), [network(share=0.2), "linear"]])
def test_a_network_of_ours_is_saved_without_code(estimator, tmp_path):
    classifier = DensityRatioClassifier(0.4, estimator=estimator, n_folds=2).fit_pu(X_P, X_U)
    save_model(tmp_path / "model.npz", classifier)
    loaded = load_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict_proba(X_U), classifier.predict_proba(X_U))
    assert str(loaded.estimator).partition(" at ")[0] == str(estimator).partition(" at ")[0]
    again = loaded.fit_pu(X_P, X_U)
    np.testing.assert_array_equal(again.predict_proba(X_U), classifier.predict_proba(X_U))


def test_a_link_is_saved_by_its_sizes(tmp_path):
    classifier = DensityRatioClassifier(0.4, estimator=MLP(2, 5, 1), n_folds=2)
    save_model(tmp_path / "model.npz", classifier.fit_pu(X_P[:20], X_U[:40]))
    loaded = load_model(tmp_path / "model.npz").estimator
    assert isinstance(loaded, MLP)
    assert sizes_of(loaded) == sizes_of(classifier.estimator)


def test_a_users_link_is_told_how_to_be_saved(tmp_path):
    chain = chainer.Sequential(chainer.links.Linear(2, 1))
    deep = DeepRatio(chain, **SMALL)
    classifier = DensityRatioClassifier(0.4, estimator=deep, n_folds=2).fit_pu(X_P, X_U)
    with pytest.raises(ModelFileError, match=r"got Sequential: chainer.serializers.save_npz .*"):
        save_model(tmp_path / "model.npz", classifier)


class TwoScores(chainer.Chain):
    def forward(self, x):
        return chainer.as_variable(x)


class Below(chainer.Chain):
    """A link whose last layer is no ratio."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.linear = chainer.links.Linear(2, 1)

    def forward(self, x):
        return self.linear(x) - 5.0


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (TwoScores(), r"model must give one score per row, got shape \(1, 2\) for one row"),
        (MLP(3), "model cannot score a row of 2 columns: .*Expect: x.shape"),
        (DeepRatio(Below(), output=None, n_steps=1), "model must give no negative ratio, got -"),
        (DeepRatio("MLP"), "model must be a Chainer link, got str"),
        (network(output="relu"), "output must be one of 'softplus', None, got 'relu'"),
        (network(share=1.0), r"share must lie in \[0, 1\), got 1.0"),
        (network(n_steps=-1), "n_steps must be an integer >= 0"),
        (MLP, "estimator must be one of .* a classifier or a Chainer link, got <class"),
    ],
)
def test_bad_input_is_said_in_one_line(estimator, message):
    with pytest.raises(ValueError, match=rf"\A{message}[^\n]*\Z"):
        DensityRatioClassifier(0.4, estimator=estimator).fit_pu(X_P, X_U)


def test_rows_and_devices_that_a_network_cannot_have():
    classifier = DensityRatioClassifier(0.4, estimator=network())
    with pytest.raises(ValueError, match=r"\AX is sparse, which estimator='DeepRatio' does not"):
        classifier.fit_pu(sp.csr_matrix(X_P), sp.csr_matrix(X_U))
    with pytest.raises(DeviceError, match=r"\Agpu 9 [^\n]*\Z"):
        classifier.set_params(gpu=9).fit_pu(X_P, X_U)
    with pytest.raises(ValueError, match="sample_weight is no parameter of fit"):
        DensityRatioClassifier(0.4, estimator=network()).fit(
            np.concatenate([X_P, X_U]), np.repeat([1, 0], [150, 400]), sample_weight=np.ones(550)
        )


def test_rows_in_chunks_are_sampled_for_the_fit_and_predicted_lazily():
    da = pytest.importorskip("dask.array")
    rows = [da.from_array(X, chunks=(100, 2)) for X in (X_P, X_U)]
    classifier = DensityRatioClassifier(0.4, estimator=network(), n_folds=2).fit_pu(*rows)
    np.testing.assert_array_equal(
        classifier.predict_proba(rows[1]).compute(), classifier.predict_proba(X_U)
    )
