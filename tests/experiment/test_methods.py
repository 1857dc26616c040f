import warnings

import numpy as np
import pytest

from pu_shift import stacking
from pu_shift._seeds import child
from pu_shift.experiment import methods
from pu_shift.experiment.methods import TrainingSet, basis_scales, feature_scales
from pu_shift.experiment.protocol import Protocol
from pu_shift.experiment.settings import EXTRA_METHODS, METHODS
from pu_shift.kernels import choose_centers
from pu_shift.links import LinearModel
from pu_shift.priors import Condition, alpha_unif
from pu_shift.selection import assign_folds
from pu_shift.training import train
from pu_shift.ulsif import ULSIF

# At π′ = ½ the bias's first gradient is 0 but for rounding, which AMSGrad blows up
# to a step of the learning rate: no prior to compare two orders of summation at.
PRIOR, GIVEN, SEED = 0.3, (0.3, 0.45, 0.7), 11
RATIO = ("u/p uLSIF", "p/u uLSIF", "p/u uLSIF-Lin")
RISK = ("DH-Lin", "DH-Ker", "Sq-Lin", "Sq-Ker")
LOSS = {
    "Sq": ("squared", lambda z: (1 - z) ** 2 / 4),
    "DH": ("double_hinge", lambda z: np.maximum(-z, np.maximum(0, (1 - z) / 2))),
}
# Few rows and steps; a rate at which they suffice to move off the start.
PROTOCOL = Protocol(
    n_folds=3,
    n_centers=20,
    ker_centers=20,
    width_factors=(0.5, 1.0),
    ker_width_factors=(0.5, 1.0),
    ratio_lams=(1e-2, 1e-1, 1.0),
    learning_rate=2e-2,
    n_batches=2,
    n_steps=30,
    ker_steps=30,
    lin_lams=(0.0, 0.3),
    ker_lams=(0.0, 0.3),
    ker_scaling="none",
    ker_width="risk",
)


def changed(**overrides):
    return Protocol(**{**PROTOCOL.as_dict(), **overrides})


def sample(n_p, n_u, rng=None):
    """Return P and U of two overlapping Gaussians, and 60 more rows like U."""
    rng = np.random.default_rng(5) if rng is None else rng
    positives = rng.normal([1.0, 0.5, 0.0], 1.0, (n_p, 3))
    signs = np.where(rng.random((n_u + 60, 1)) < PRIOR, 1.0, -1.0)
    rows = rng.normal(signs * [1.0, 0.5, 0.0], 1.0)
    return [part.astype(np.float32) for part in (positives, rows[:n_u], rows[n_u:])]


P, U, X = sample(40, 90)


def training_set(protocol=PROTOCOL, seed=SEED):
    return TrainingSet(P, U, PRIOR, protocol, seed)


def median():
    rows = np.concatenate([P, U]).astype(np.float64)
    distances = np.sqrt(((rows[:, None] - rows) ** 2).sum(axis=2))
    return np.median(distances[np.triu_indices(len(rows), 1)])


def centers():
    return choose_centers(P, U, 20, PROTOCOL.center_source, child(SEED, 0))


def gaussian(rows, width):
    distances = ((rows[:, None].astype(np.float64) - centers()) ** 2).sum(axis=2)
    return np.exp(-distances / (2 * width**2)).astype(np.float32)


@pytest.mark.parametrize("method", RATIO)
def test_a_ratio_method_is_ulsif_cut_at_the_threshold_of_the_given_prior(method):
    linear, inverse = method.endswith("-Lin"), method.startswith("u/p")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ratio = ULSIF(
            *((U, P) if inverse else (P, U)),
            centers=centers(),
            widths=None if linear else np.array([0.5, 1.0]) * median(),
            lams=[1e-2, 1e-1, 1.0],
            basis="linear" if linear else "gaussian",
            n_folds=3,
            clip_coefficients=PROTOCOL.clip_coefficients,
            seed=child(SEED, 1),
        )
    fitted = training_set().fit(method, GIVEN)
    assert list(fitted) == list(GIVEN)
    decisions = []
    for given, model in fitted.items():
        # Positive when p(+1|x) = π p_p/p_u exceeds α.
        posterior = PRIOR / ratio(X) if inverse else PRIOR * ratio(X)
        expected = posterior > alpha_unif(PRIOR, given)
        if inverse:  # an estimate of p_u/p_p that is not positive says: surely positive
            expected |= ratio(X) <= 0
        decisions.append(model.decide(X) > 0)
        np.testing.assert_array_equal(decisions[-1], expected)
        np.testing.assert_allclose(model.hyper["width"], ratio.width, rtol=1e-5)
        assert model.hyper["lam"] == ratio.lam
        assert np.isnan(model.hyper["step"])
    # A larger prior makes more rows positive, and never fewer.
    assert all((low <= high).all() for low, high in zip(decisions, decisions[1:]))
    assert decisions[0].sum() < decisions[-1].sum()


@pytest.mark.parametrize("method", RATIO)
def test_the_ratio_is_fitted_once_for_all_given_priors(method, monkeypatch):
    fits = []

    def counted(*arguments, **options):
        fits.append(arguments)
        return ULSIF(*arguments, **options)

    monkeypatch.setattr(methods, "ULSIF", counted)
    training_set().fit(method, GIVEN)
    assert len(fits) == 1


@pytest.mark.parametrize("method", ["DH-Lin", "Sq-Ker"])
def test_risk_minimisation_trains_one_stack_per_width(method, monkeypatch):
    sizes = []

    def counted(model, *arguments, **options):
        sizes.append(model.W.shape[1])
        return train(model, *arguments, **options)

    monkeypatch.setattr(stacking, "train", counted)
    training_set().fit(method, GIVEN)
    stack = len(GIVEN) * 2 * (PROTOCOL.n_folds + 1)
    assert sizes == [stack] * (2 if method.endswith("Ker") else 1)


def one_at_a_time(
    method, given, criterion="surrogate", scaled=False, n_steps=30, random=False, **options
):
    """Train each candidate and fold alone, then refit the best: no stack anywhere."""
    loss, loss_value = LOSS[method[:2]]
    chosen_by = loss_value if criterion == "surrogate" else lambda z: (z <= 0).astype(float)
    kernel = method.endswith("Ker")
    widths = [0.5 * median(), 1.0 * median()] if kernel else [np.nan]
    folds = [
        assign_folds(name, len(rows), 3, child(SEED, 2, i))
        for i, (name, rows) in enumerate((("P", P), ("U", U)))
    ]

    def fit(width, lam, held_out):
        features = [gaussian(rows, width) if kernel else rows for rows in (P, U, X)]
        if scaled:
            scales = np.sqrt((np.concatenate(features[:2]) ** 2).mean(axis=0))
            features = [bases / scales for bases in features]
        d = features[0].shape[1]
        start = np.random.default_rng(child(SEED, 4)).normal(0, d**-0.5, (d, 1)) if random else 0.0
        model = LinearModel(d, initial_w=start)
        train(
            model,
            *features[:2],
            Condition(PRIOR, given),
            loss=loss,
            kind="pu-shift",
            lam=lam,
            n_steps=n_steps,
            n_batches=2,
            learning_rate=2e-2,
            weights_p=(folds[0] != held_out).astype(np.float32),
            weights_u=(folds[1] != held_out).astype(np.float32),
            seed=child(SEED, 3),
            **options,
        )
        return [model.W.array[:, 0] @ rows.T + model.b.array[0] for rows in features]

    def held_out_risk(width, lam):
        risks = []
        for fold in range(3):
            scores = fit(width, lam, fold)
            p, u = (scores[i][folds[i] == fold].astype(np.float64) for i in range(2))
            negative = chosen_by(-u).mean() - PRIOR * chosen_by(-p).mean()
            risks.append(given * chosen_by(p).mean() + (1 - given) / (1 - PRIOR) * negative)
        return np.mean(risks)

    candidates = [(width, lam) for width in widths for lam in (0.0, 0.3)]
    risks = [held_out_risk(*candidate) for candidate in candidates]
    best = candidates[int(np.argmin(risks))]
    return best, fit(*best, held_out=None)[2], np.sort(risks)


@pytest.mark.parametrize("method", RISK)
def test_the_stack_equals_training_each_candidate_and_fold_alone(method):
    fitted = training_set().fit(method, GIVEN)
    for given in GIVEN:
        (width, lam), scores, risks = one_at_a_time(method, given)
        assert risks[1] - risks[0] > 1e-5, "too close a choice to compare"
        np.testing.assert_allclose(fitted[given].hyper["width"], width, rtol=1e-5)
        assert fitted[given].hyper["lam"] == lam
        assert fitted[given].hyper["step"] == 30
        np.testing.assert_allclose(fitted[given].decide(X), scores, rtol=1e-3, atol=1e-3)
        assert np.std(scores) > 0.01


LONG = {"n_steps": 300, "ker_steps": 300}


@pytest.mark.parametrize("method", RISK)
@pytest.mark.parametrize(
    ("field", "options"),
    [
        ({"initial_weights": "lecun"}, {"random": True}),
        # Steps enough for the estimated risk of the negatives to become negative.
        ({"correction": "max", **LONG}, {"correction": "max", "n_steps": 300}),
        ({"correction": "ascent", **LONG}, {"correction": "ascent", "n_steps": 300}),
        ({"ker_bias": False}, {"train_bias": False}),
    ],
)
def test_each_choice_of_the_training_is_made(method, field, options):
    if "ker_bias" in field and method.endswith("Lin"):
        options = {}
    fitted = training_set(changed(**field)).fit(method, GIVEN)
    plain = {name: value for name, value in field.items() if name in LONG}
    as_ever = training_set(changed(**plain)).fit(method, GIVEN)
    for given in GIVEN:
        (width, lam), scores, risks = one_at_a_time(method, given, **options)
        assert risks[1] - risks[0] > 1e-5, "too close a choice to compare"
        np.testing.assert_allclose(fitted[given].hyper["width"], width, rtol=1e-5)
        assert fitted[given].hyper["lam"] == lam
        np.testing.assert_allclose(fitted[given].decide(X), scores, rtol=1e-3, atol=1e-3)
    same = [np.array_equal(fitted[given].decide(X), as_ever[given].decide(X)) for given in GIVEN]
    assert all(same) if not options else not all(same)


SCALINGS = {
    "standard": lambda rows: (rows.mean(axis=0), rows.std(axis=0)),
    "minmax": lambda rows: (rows.min(axis=0), np.ptp(rows, axis=0)),
    "max": lambda rows: (0.0, np.abs(rows).max()),
}


@pytest.mark.parametrize("method", [*METHODS, *EXTRA_METHODS])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_scaled_features_are_those_of_scaled_data(method, scaling):
    shift, scale = SCALINGS[scaling](np.concatenate([P, U]).astype(np.float64))
    parts = [((rows - shift) / scale).astype(np.float32) for rows in (P, U, X)]
    by_hand = TrainingSet(*parts[:2], PRIOR, PROTOCOL, SEED).fit(method, GIVEN)
    fitted = training_set(changed(feature_scaling=scaling)).fit(method, GIVEN)
    for given in GIVEN:
        expected = by_hand[given].decide(parts[2])
        np.testing.assert_allclose(fitted[given].decide(X), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_constant_feature_survives_scaling(scaling):
    rows = np.array([[1.0, 5.0], [3.0, 5.0]], np.float32)
    shift, scale = feature_scales([rows[:1], rows[1:]], scaling)
    assert np.isfinite((rows - shift) / scale).all()
    assert shift.dtype == scale.dtype == np.float32
    assert feature_scales([rows, rows], "none") is None


@pytest.mark.parametrize("method", ["p/u uLSIF", "u/p uLSIF", "DH-Ker", "Sq-Ker"])
def test_absolute_widths_are_the_factors_themselves(method):
    widths = [0.5 * median(), 1.0 * median()]
    protocol = changed(width_unit="absolute", width_factors=widths, ker_width_factors=widths)
    absolute, in_medians = (
        data.fit(method, GIVEN) for data in (training_set(protocol), training_set())
    )
    for given in GIVEN:
        assert absolute[given].hyper["width"] in widths
        np.testing.assert_allclose(
            absolute[given].decide(X), in_medians[given].decide(X), rtol=1e-2, atol=1e-3
        )


@pytest.mark.parametrize("method", ["DH-Ker", "Sq-Ker"])
def test_scaled_bases_and_steps_of_their_own_are_those_of_the_kernel_models(method):
    fitted = training_set(changed(ker_scaling="rms", ker_steps=20)).fit(method, GIVEN)
    for given in GIVEN:
        (width, lam), scores, risks = one_at_a_time(method, given, scaled=True, n_steps=20)
        assert risks[1] - risks[0] > 1e-5, "too close a choice to compare"
        np.testing.assert_allclose(fitted[given].hyper["width"], width, rtol=1e-5)
        assert fitted[given].hyper["lam"] == lam
        assert fitted[given].hyper["step"] == 20
        np.testing.assert_allclose(fitted[given].decide(X), scores, rtol=1e-3, atol=1e-3)


def test_scaled_bases_have_mean_square_one_over_all_rows():
    bases = gaussian(P, 0.3 * median()), gaussian(U, 0.3 * median())
    scales = basis_scales(bases, "rms")
    assert np.ptp(scales) > 0.01
    scaled = np.concatenate([part / scales for part in bases])
    np.testing.assert_allclose((scaled**2).mean(axis=0), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(basis_scales(bases, "none"), 1.0)
    assert basis_scales(bases, "none").dtype == scales.dtype == np.float32


def test_a_basis_that_is_zero_on_every_row_stays_zero():
    bases = np.zeros((3, 2), np.float32), np.array([[0.0, 2.0]], np.float32)
    np.testing.assert_array_equal(basis_scales(bases, "rms"), [1.0, 1.0])


def test_the_zero_one_criterion_selects_by_the_held_out_error():
    protocol = changed(criterion="zero_one")
    fitted = training_set(protocol).fit("Sq-Ker", GIVEN)
    for given in GIVEN:
        (width, lam), scores, risks = one_at_a_time("Sq-Ker", given, "zero_one")
        assert risks[1] - risks[0] > 1e-5, "too close a choice to compare"
        np.testing.assert_allclose(fitted[given].hyper["width"], width, rtol=1e-5)
        assert fitted[given].hyper["lam"] == lam
        np.testing.assert_allclose(fitted[given].decide(X), scores, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("method", ["DH-Ker", "Sq-Ker"])
def test_the_ratio_chooses_the_width_of_the_kernel_models_with_their_widths_and_lams(method):
    protocol = {"ker_width_factors": (0.4, 0.8, 1.6), "ker_lams": (0.02, 0.2)}
    data = training_set(changed(ker_width="ratio", ker_centers=15, **protocol))
    # The same uLSIF as a method of its own, in single precision.
    twin = changed(width_factors=protocol["ker_width_factors"], ratio_lams=protocol["ker_lams"])
    width = training_set(twin).fit("p/u uLSIF", GIVEN)[0.3].hyper["width"]
    (factor,) = (f for f in protocol["ker_width_factors"] if np.isclose(width, f * median()))
    only = changed(**{**protocol, "ker_width_factors": (factor,)}, ker_centers=15)
    only = training_set(only).fit(method, GIVEN)
    for given, model in data.fit(method, GIVEN).items():
        assert model.hyper["width"] == width
        assert model.hyper["lam"] == only[given].hyper["lam"]
        np.testing.assert_array_equal(model.decide(X), only[given].decide(X))


def test_both_kernel_models_share_one_choice_of_the_width(monkeypatch):
    fits = []

    def counted(*arguments, **options):
        fits.append(arguments)
        return ULSIF(*arguments, **options)

    monkeypatch.setattr(methods, "ULSIF", counted)
    data = training_set(changed(ker_width="ratio"))
    for method in ("DH-Ker", "Sq-Ker"):
        data.fit(method, GIVEN)
    assert len(fits) == 1
    # Of its small λ single precision would leave rounding, other on every machine.
    assert {rows.dtype for rows in fits[0]} == {np.dtype(np.float64)}


@pytest.mark.parametrize("method", [*METHODS, *EXTRA_METHODS])
def test_given_priors_together_equal_one_at_a_time(method):
    together = training_set().fit(method, GIVEN)
    for given in GIVEN:
        alone = training_set().fit(method, [given])
        assert list(alone) == [given]
        np.testing.assert_equal(alone[given].hyper, together[given].hyper)
        np.testing.assert_allclose(
            alone[given].decide(X), together[given].decide(X), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("method", [*METHODS, *EXTRA_METHODS])
def test_a_method_does_not_depend_on_what_else_was_fitted(method):
    shared = training_set()
    for other in (*METHODS, *EXTRA_METHODS):
        shared.fit(other, [0.5])
    fitted, alone = (data.fit(method, GIVEN) for data in (shared, training_set()))
    for given in GIVEN:
        np.testing.assert_equal(fitted[given].hyper, alone[given].hyper)
        np.testing.assert_array_equal(fitted[given].decide(X), alone[given].decide(X))


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides_what_is_random(method):
    first, again, other = (
        training_set(seed=seed).fit(method, [0.5])[0.5].decide(X) for seed in (SEED, SEED, 12)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_centres_are_drawn_once_per_training_set_for_each_framework(monkeypatch):
    drawn = []

    def counted(*arguments):
        drawn.append(arguments[2])
        return choose_centers(*arguments)

    monkeypatch.setattr(methods, "choose_centers", counted)
    data = training_set(changed(n_centers=15, ker_centers=25))
    for method in METHODS:
        data.fit(method, [0.5])
    assert sorted(drawn) == [15, 25]


@pytest.mark.parametrize("method", ["uLSIF", "p/u", "DH-Quadratic", "Sq", "", None])
def test_an_unknown_method_is_refused(method):
    with pytest.raises(ValueError, match="method must be one of 'u/p uLSIF', "):
        training_set().fit(method, [0.5])


def test_a_bad_given_prior_is_refused():
    for method in ("p/u uLSIF", "Sq-Lin"):
        with pytest.raises(ValueError, match="test_prior must lie strictly between 0 and 1"):
            training_set().fit(method, [0.5, 1.0])


def test_more_batches_than_rows_are_refused():
    protocol = changed(n_batches=41)
    with pytest.raises(ValueError, match="n_batches must not exceed the rows of P and U, 40"):
        training_set(protocol).fit("Sq-Lin", [0.5])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_comes_near_the_bayes_classifier_of_two_gaussians(method):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2500) < 0.4, 1, -1)
    rows = rng.normal(1.2 * y[:, None], 1.0, (2500, 2)).astype(np.float32)
    positives = rng.normal(1.2, 1.0, (500, 2)).astype(np.float32)
    protocol = changed(n_centers=100, ker_centers=100)
    model = TrainingSet(positives, rows[:1500], 0.4, protocol, 0).fit(method, [0.4])[0.4]
    test_rows, truth = rows[1500:], y[1500:] > 0
    # log p(+1|x)/p(−1|x) is linear: 2μᵀx + log(π/(1 − π)).
    best = np.mean((2 * 1.2 * test_rows.sum(axis=1) + np.log(0.4 / 0.6) > 0) == truth)
    assert np.mean((model.decide(test_rows) > 0) == truth) > best - 0.15
