import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sklearn_metrics

from pu_shift.evaluation import metrics
from pu_shift.evaluation.metrics import METRICS, ScoredRows


def scored(rng, n, shift, threshold=0.3):
    """Rows whose score is normal, with the posterior of equal shares."""
    score = rng.normal(shift, 1.0, n)
    return score, score > threshold, 1.0 / (1.0 + np.exp(-score))


def values(samples, prior, test_prior=0.5, alpha=0.5):
    rates = ScoredRows.of(*samples).rates(prior, test_prior, alpha)
    return {name: metric.formula(rates)[0] for name, metric in METRICS.items()}


def joined(*parts):
    return tuple(np.concatenate(own) for own in zip(*parts))


@given(st.integers(0, 2**20), st.integers(1, 3), st.sampled_from([0.1, 0.5, 0.9]))
def test_unlabelled_rows_of_known_content_say_what_negatives_say(seed, copies, test_prior):
    """If U is made of the very rows of P and N, its π corrects every metric exactly."""
    rng = np.random.default_rng(seed)
    P, N = scored(rng, 20, 0.7), scored(rng, 30, -0.7)
    U = joined(*[P] * copies, *[N] * 2)
    prior = 20 * copies / (20 * copies + 60)
    direct, corrected = (
        values((P, rows), pi, test_prior, 0.2) for rows, pi in ((N, 0.0), (U, prior))
    )
    for name, value in direct.items():
        assert corrected[name] == pytest.approx(value, abs=1e-9), name


def test_of_labelled_rows_they_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    P, N = scored(rng, 300, 0.7), scored(rng, 700, -0.7)
    score, flagged, probability = joined(P, N)
    y = np.repeat([1, 0], [300, 700])
    found = values((P, N), 0.0, test_prior=0.3)
    of = sklearn_metrics
    expected = {
        "recall": of.recall_score(y, flagged),
        "precision": of.precision_score(y, flagged),
        "f1": of.f1_score(y, flagged),
        "error_rate": of.zero_one_loss(y, flagged),
        "false_positive_rate": flagged[300:].mean(),
        "share_flagged": flagged.mean(),
        "expected_cost": 0.5 * of.zero_one_loss(y, flagged),
        "auc": of.roc_auc_score(y, score),
        "average_precision": of.average_precision_score(y, score),
        "brier": of.brier_score_loss(y, probability),
        "log_loss": of.log_loss(y, probability),
        "calibration": probability.mean() - 0.3,
    }
    assert found == pytest.approx(expected)


def test_ties_count_half_and_scores_keep_their_order_where_neighbours_are_joined(monkeypatch):
    rng = np.random.default_rng(0)
    samples = scored(rng, 2000, 0.7), scored(rng, 3000, -0.7)
    exact = values(samples, 0.2)
    monkeypatch.setattr(metrics, "MAX_GROUPS", 500)
    rows = ScoredRows.of(*samples)
    assert 400 < len(rows.counts_p) <= 502
    assert rows.counts_p.sum() == 2000
    assert rows.counts_u.sum() == 3000
    assert values(samples, 0.2) == pytest.approx(exact, abs=1e-3)
    same = np.zeros(5), np.zeros(5, dtype=bool), None
    assert METRICS["auc"].formula(ScoredRows.of(same, same).rates(0.0, 0.5, 0.5)) == [0.5]


def test_a_resampled_share_has_the_posterior_of_jeffreys_prior():
    rng = np.random.default_rng(0)
    rows = ScoredRows.of(scored(rng, 40, 1.5), scored(rng, 50, -0.7))
    same = np.full(4000, 0.3)
    drawn = rows.resampled(rng, same, same, 0.5)
    hits = int(rows.counts_p @ rows.flagged)
    posterior = stats.beta(hits + 0.5, 40 - hits + 0.5)
    assert stats.kstest(drawn.recall, posterior.cdf).pvalue > 1e-3
    np.testing.assert_allclose(drawn.p.sum(axis=1), 1.0)


def test_resampled_folds_show_how_much_their_classifiers_differ():
    rng = np.random.default_rng(0)
    samples = []
    for n in (400, 1200):
        score, fold = rng.normal(size=n), np.arange(n) % 4
        samples.append((score, fold > 0, None, fold))  # one of four classifiers flags nothing
    same = np.full(2000, 0.3)
    rows = ScoredRows.of(*samples)
    together = ScoredRows.of(*(part[:3] for part in samples))
    apart, joint = (one.resampled(rng, same, same, 0.5).recall.std() for one in (rows, together))
    # Of Dirichlet(1, 1, 1, 1) one share has the variance 3/80.
    assert apart == pytest.approx((3 / 80) ** 0.5, rel=0.1)
    assert joint < 0.03
    assert [one.rates(0.3, 0.3, 0.5).recall[0] for one in (rows, together)] == pytest.approx(
        [0.75, 0.75]
    )


def test_where_nothing_is_flagged_there_is_no_precision():
    none = np.zeros(3), np.zeros(3, dtype=bool), None
    rates = ScoredRows.of(none, none).rates(0.2, 0.5, 0.5)
    assert np.isnan(METRICS["precision"].formula(rates)[0])
    assert METRICS["f1"].formula(rates)[0] == 0.0
    with pytest.raises(ValueError, match="^classifier must have predict_proba"):
        METRICS["brier"].formula(rates)
