"""A guard against slowness that does not look at the clock: it counts the work."""

import tracemalloc
import warnings

import array_api_compat.numpy as xp
import numpy as np
import pytest

from pu_shift import kernels, stacking, training, ulsif
from pu_shift.device import get_device
from pu_shift.experiment import methods
from pu_shift.experiment.protocol import Protocol
from pu_shift.links import LinearModel
from pu_shift.priors import Condition
from pu_shift.selection import assign_folds, training_weights
from pu_shift.stacking import cross_validate
from pu_shift.training import train
from pu_shift.ulsif import ULSIF

rng = np.random.default_rng(0)
X_P = rng.normal(0.5, 1.0, (60, 3)).astype(np.float32)
X_U = rng.normal(0.0, 1.0, (200, 3)).astype(np.float32)
WIDTHS = [0.5, 1.0, 2.0]

pytestmark = pytest.mark.filterwarnings("ignore::pu_shift.ulsif.GridEdgeWarning")


@pytest.fixture
def count(monkeypatch):
    """Replace a function by one that counts; the measure of a call is 1 by default."""

    def replace(owner, name, measure=lambda *arguments: 1):
        original, counts = getattr(owner, name), []

        def counted(*arguments, **options):
            counts.append(measure(*arguments))
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, counted)
        return counts

    return replace


@pytest.mark.parametrize("n_lams", [2, 9])
def test_k_fold_ulsif_decomposes_once_per_width_and_fold_whatever_the_lams(count, n_lams):
    matrices = count(ulsif, "_eigh", lambda H, copies: int(np.prod(H.shape[:-2])))
    rows = count(ulsif, "squared_distances", lambda X, centers: len(X))
    lams = np.logspace(-3, 1, n_lams)
    ULSIF(X_P, X_U, n_centers=20, widths=WIDTHS, lams=lams, n_folds=5)
    assert sum(matrices) == len(WIDTHS) * 5 + 1
    # Distances serve every width, λ and fold: each row is measured once.
    assert sum(rows) == len(X_P) + len(X_U)


@pytest.mark.parametrize("n_lams", [2, 9])
def test_k_fold_ulsif_forms_one_gram_matrix_per_width_and_fold(count, n_lams):
    products = count(xp, "matmul", lambda left, right: np.ndim(left) == 2)
    lams = np.logspace(-3, 1, n_lams)
    ULSIF(X_P, X_U, n_centers=20, widths=WIDTHS, lams=lams, n_folds=5)
    # Two GEMMs of distances, the Gram matrices, two of the final coefficients.
    assert sum(products) == 2 + len(WIDTHS) * 5 + 2


@pytest.mark.parametrize("n_lams", [2, 9])
@pytest.mark.parametrize("clip", [False, True])
def test_leave_one_out_decomposes_once_per_width(count, n_lams, clip):
    matrices = count(ulsif, "_eigh")
    products = count(xp, "matmul")
    ULSIF(
        X_P, X_U, n_centers=20, widths=WIDTHS, lams=np.logspace(-3, 1, n_lams),
        selection="loo", clip_coefficients=clip,
    )  # fmt: skip
    assert len(matrices) == len(WIDTHS)
    # Distances of the pairs and of the other denominators, the final coefficients, and
    # for each width the Gram matrices of both and the closed form.
    fixed = 2 + 2 + len(WIDTHS) * (2 + 8)
    if not clip:
        assert len(products) == fixed
    else:
        # The bounds on the coefficients, and what they leave undecided at each λ.
        assert fixed <= len(products) - 2 * len(WIDTHS) <= fixed + len(WIDTHS) * n_lams


@pytest.mark.parametrize("selection", ["kfold", "loo"])
def test_equal_centres_are_one_basis_function(count, selection):
    entries = count(kernels, "kernel_from_distances", lambda D, width: D.size)
    sizes = count(ulsif, "_eigh", lambda H, copies=None: H.shape[-1])
    options = {"widths": [0.5, 0.9], "selection": selection, "n_folds": 2}
    ULSIF(X_P, X_U, centers=X_U[[0, 1, 0, 2, 0]], **options)
    merged = sum(entries)
    assert set(sizes) == {3}
    ULSIF(X_P, X_U, centers=X_U[[0, 1, 2]], **options)
    assert sum(entries) == 2 * merged


@pytest.mark.parametrize(("chunk_rows", "passes"), [(10**6, 1), (7, 2)])
def test_leave_one_out_measures_pairs_of_one_chunk_once(count, chunk_rows, passes):
    entries = count(ulsif, "squared_distances", lambda X, centers: len(X) * len(centers))
    ULSIF(X_P, X_U, n_centers=20, widths=WIDTHS, selection="loo", chunk_rows=chunk_rows)
    n_pairs = 2 * min(len(X_P), len(X_U))
    assert sum(entries) == 20 * (len(X_P) + len(X_U) + (passes - 1) * n_pairs)


def test_clipping_computes_only_coefficients_whose_sign_is_in_doubt(count):
    X_p, X_u = rng.normal(0.5, 1.0, (200, 3)), rng.normal(0.0, 1.0, (400, 3))
    computed = count(ulsif, "_sum_products", lambda left, right: len(right))
    lams = np.logspace(-2, 2, 9)
    ULSIF(
        X_p, X_u, n_centers=40, widths=[0.5, 1.0], lams=lams,
        selection="loo", clip_coefficients=True,
    )  # fmt: skip
    assert sum(computed) < 0.5 * 40 * 2 * len(lams)


@pytest.mark.parametrize(("dtype", "exponentials"), [("float64", 1), ("float32", 5)])
def test_widths_a_power_of_root_two_apart_need_one_exponential(count, dtype, exponentials):
    calls = count(kernels, "kernel_from_distances")
    widths = 3.0 * 2.0 ** np.array([0.5, -2.0, 0.0, 1.0, -1.5])
    assert len(list(kernels.kernels_from_distances(np.ones((2, 2), dtype), widths))) == 5
    assert len(calls) == exponentials


@pytest.mark.parametrize(
    ("loss", "scale", "n_scored"),
    # From zero, no score of small features is beyond a kink in 100 steps; large ones all are.
    [("squared", 1.0, 100), ("double_hinge", 1.0, 0), ("double_hinge", 1e4, 99)],
)
@pytest.mark.parametrize("n_candidates", [6, 60])
def test_a_training_step_is_two_gemms_at_most_whatever_the_number_of_candidates(
    count, loss, scale, n_scored, n_candidates
):
    products = count(np, "matmul")
    model = LinearModel(3, n_candidates)
    folds = [training_weights(assign_folds("rows", len(X), 5, 0), 5) for X in (X_P, X_U)]
    train(
        model, X_P * np.float32(scale), X_U * np.float32(scale), Condition(0.3, 0.5), loss=loss,
        n_steps=100, n_batches=4, weights_p=folds[0], weights_u=folds[1], record=(),
    )  # fmt: skip
    assert len(products) == 100 + n_scored


@pytest.mark.parametrize(("scale", "n_clips"), [(1.0, 0), (1e4, 99)])
def test_scores_that_cannot_go_far_are_not_clipped(count, scale, n_clips):
    clips, products = count(np, "clip"), count(np, "einsum")
    train(
        LinearModel(3), X_P * np.float32(scale), X_U * np.float32(scale), Condition(0.3, 0.5),
        loss="double_hinge", n_steps=100, n_batches=4, record=(),
    )  # fmt: skip
    assert len(clips) == n_clips
    # The longest row, and the weights at the start and once the bound has come to 1.
    assert len(products) == 1 + 2


def test_what_is_prepared_is_no_larger_than_the_scores_of_a_batch(count):
    entries = count(training, "_by_place", lambda patterns, factors: len(patterns) * factors.size)
    folds = [training_weights(assign_folds("rows", len(X), 5, 0), 5) for X in (X_P, X_U)]
    train(
        LinearModel(3, 6), X_P, X_U, Condition(0.3, 0.5), n_steps=8, n_batches=8,
        weights_p=folds[0], weights_u=folds[1], record=(),
    )  # fmt: skip
    # Two of the eight at a time.
    assert entries == 4 * [2 * 5 * 2 * 6]
    assert 1.5 * max(entries) <= (len(X_P) + len(X_U)) // 8 * 6


@pytest.mark.parametrize(("n_batches", "passes"), [(None, 1), (4, 5)])
def test_weights_are_prepared_once_an_epoch(count, n_batches, passes):
    tables = count(training, "_by_place")
    folds = [training_weights(assign_folds("rows", len(X), 5, 0), 5) for X in (X_P, X_U)]
    train(
        LinearModel(3, 6), X_P, X_U, Condition(0.3, 0.5), n_steps=20, n_batches=n_batches,
        weights_p=folds[0], weights_u=folds[1], record=(),
    )  # fmt: skip
    assert len(tables) == passes


def test_cross_validation_scores_each_row_once(count):
    rows = count(stacking, "evaluate_risk", lambda scores_p, scores_u, *_: (
        len(scores_p) + len(scores_u), scores_p.shape[1]
    ))  # fmt: skip
    trainings = count(stacking, "train")
    folds = [training_weights(assign_folds("rows", len(X), 5, 0), 5) for X in (X_P, X_U)]
    conditions = [Condition(0.3, given) for given in (0.3, 0.5, 0.7)]
    cross_validate((X_P, X_U), conditions, [0.0, 0.1], folds, get_device(), n_steps=2)
    assert len(trainings) == 1
    assert sum(n for n, _ in rows) == len(X_P) + len(X_U)
    assert {columns for _, columns in rows} == {3 * 2}


def test_training_memory_does_not_grow_with_the_steps():
    """The bound: the rows and two gathered copies, six parameter arrays, four of batch × K."""
    n, d, K, n_batches = 4000, 30, 120, 4
    data = np.random.default_rng(0)
    P, U = (data.normal(0, 1, (m, d)).astype(np.float32) for m in (n // 4, 3 * n // 4))
    folds = [training_weights(assign_folds("rows", len(X), 5, 0), 5) for X in (P, U)]
    peaks = []
    for n_steps in (8, 80):
        model = LinearModel(d, K)
        tracemalloc.start()
        train(
            model, P, U, Condition(0.3, 0.5), n_steps=n_steps, n_batches=n_batches,
            weights_p=folds[0], weights_u=folds[1], record=(),
        )  # fmt: skip
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    entries = 3 * n * (d + 1) + 6 * (d + 1) * K + 4 * (n // n_batches) * K
    assert max(peaks) < 4 * entries + 500_000
    assert abs(peaks[1] - peaks[0]) < 50_000


def test_methods_and_given_priors_share_ratios_and_distances(count):
    fits = count(methods, "ULSIF")
    rows = count(methods, "squared_distances", lambda X, centers: len(X))
    protocol = Protocol(n_steps=2)
    data = methods.TrainingSet(X_P, X_U, 0.3, protocol, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in ("u/p uLSIF", "p/u uLSIF", "DH-Ker", "Sq-Ker"):
            data.fit(method, [0.3, 0.5, 0.7])
    # One ratio each way and one that chooses the width of both Ker models.
    assert len(fits) == 3
    assert sum(rows) == len(X_P) + len(X_U)
