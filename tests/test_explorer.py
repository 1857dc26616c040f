import csv
import json
import re

import numpy as np
import pytest
from matplotlib.image import imread
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift import Condition, DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.explorer import (
    MAX_CASES,
    classifier_of,
    explorer_page,
    ratio_classifier_of,
    training_posterior,
)
from pu_shift.priors import shift_posterior
from tests.browser import HOSTILE, LOW_CONTRAST, PHONE, WIDE, Browser, needs_browser
from tests.mixtures import pu_samples

PRIOR = 0.3
POSTERIOR = np.concatenate(
    [[0.0, 1.0, 3e-7], np.random.default_rng(0).beta(0.6, 1.4, size=700).round(6)]
)
NAMES = [HOSTILE, 'say "hi", twice', "=1+1", *(f"case {i}" for i in range(700))]
CONDITION = Condition(PRIOR, 0.2, 0.1)


@pytest.fixture(scope="module")
def samples():
    return pu_samples(80, 200, PRIOR, gap=3.0, d=2)


@pytest.fixture(scope="module", params=["p/u", "u/p"])
def ratio(request, samples):
    return DensityRatioClassifier(PRIOR, 0.6, 0.2, request.param).fit_pu(*samples)


def test_the_posterior_at_the_training_prior_decides_for_every_condition(ratio, samples):
    X = samples[1]
    posterior = training_posterior(ratio, X)
    conditions = [Condition(PRIOR, *pair) for pair in [(0.6, 0.2), (0.1, 0.5), (0.9, 0.9)]]
    for condition, labels in zip(conditions, ratio.predict_many(X, conditions)):
        np.testing.assert_array_equal(posterior > condition.alpha_unif, labels == 1)


def test_what_cannot_change_its_condition_is_refused():
    risk = RiskMinimizationClassifier(PRIOR)
    assert classifier_of(risk) is risk
    with pytest.raises(ValueError, match="estimator must be a density ratio, .* got RiskMin"):
        ratio_classifier_of(risk)
    with pytest.raises(ValueError, match="estimator must be a classifier of pu_shift or a pipe"):
        classifier_of(make_pipeline(StandardScaler(), LogisticRegression()))


@pytest.mark.parametrize(
    ("posterior", "options", "message"),
    [
        ([], {}, "posterior must hold 1 to 100,000 cases, got shape (0,)"),
        (np.zeros(MAX_CASES + 1), {}, "posterior must hold 1 to 100,000 cases"),
        ([[0.5]], {}, "posterior must hold 1 to 100,000 cases, got shape (1, 1)"),
        ([0.5, np.nan], {}, "posterior must lie within 0 and 1"),
        ([0.5, 1.1], {}, "posterior must lie within 0 and 1"),
        ([0.5], {"keep": {"id": ["a", "b"]}}, "keep: 'id' has 2 values for 1 cases"),
        ([0.5], {"miss": 3.0}, "false_alarm and miss must be given together"),
        ([0.5], {"miss": 3.0, "false_alarm": 0.0}, "false_alarm must be a finite number > 0"),
        ([0.5], {"miss": np.inf, "false_alarm": 1.0}, "miss must be a finite number > 0"),
        ([0.5], {"miss": ("a", [1, 2]), "false_alarm": 1.0}, "miss must have a finite number >= 0"),
        ([0.5], {"miss": ("a", [-1]), "false_alarm": 1.0}, "miss must have a finite number >= 0"),
        ([0.5], {"miss": ("a", [0]), "false_alarm": ("b", [0])}, "miss must not be 0 where false_"),
    ],
)
def test_bad_input_is_named(posterior, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        explorer_page(posterior, CONDITION, **options)


def test_the_page_holds_one_number_per_case_and_no_address():
    page = explorer_page(POSTERIOR / 3.0, CONDITION, model=HOSTILE, data=HOSTILE)
    content = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    np.testing.assert_allclose(content["posteriors"], POSTERIOR / 3.0, rtol=1e-5)
    assert max(len(str(value)) for value in content["posteriors"]) <= len("0.000123456")
    assert "<img" not in page
    assert page.count("</script>") == 2
    addresses = re.findall(r"\w+://[^\"' ]+", page)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href)=", explorer_page(POSTERIOR, CONDITION))


@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.8])
def test_costs_begin_in_the_proportion_of_alpha(alpha):
    page = explorer_page([0.5], Condition(PRIOR, alpha=alpha))
    content = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    costs = content["falseAlarm"], content["miss"]
    assert min(costs) == 1.0
    assert costs[0] / sum(costs) == pytest.approx(alpha, rel=1e-12)


class Explorer(Browser):
    """What the tests do with the page."""

    def __init__(self, driver, path):
        super().__init__(driver, path.as_uri())
        self.path = path
        text = explorer_page(POSTERIOR, CONDITION, keep={"who": NAMES}, unit="€", data=HOSTILE)
        path.write_text(text, encoding="utf-8")

    def write(self, name, value):
        box = self.one(f"#{name}-box")
        box.clear()
        box.send_keys(str(value))

    def press(self, name):
        """Click a download button; return the rows of the file."""
        for path in self.driver.folder.iterdir():
            path.unlink()
        self.run("arguments[0].scrollIntoView({block: 'center'})", self.one(f"#{name}"))
        self.one(f"#{name}").click()
        WebDriverWait(self.driver, 20, poll_frequency=0.05).until(
            lambda _: [path for path in self.driver.folder.iterdir() if path.suffix == ".csv"]
        )
        (path,) = self.driver.folder.iterdir()
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.reader(file))


@pytest.fixture
def page(driver, tmp_path):
    explorer = Explorer(driver, tmp_path / "explorer.html").load()
    yield explorer
    assert driver.get_log("browser") == []


def expected(test_prior, false_alarm, miss):
    """Flags and posteriors by pu_shift.priors, and what follows from them."""
    condition = Condition(PRIOR, test_prior, false_alarm / (false_alarm + miss))
    flagged = condition.alpha_unif < POSTERIOR
    probability = shift_posterior(POSTERIOR, PRIOR, test_prior)
    false_alarms, misses = (1.0 - probability)[flagged].sum(), probability[~flagged].sum()
    return flagged, probability, false_alarms, misses, false_alarm * false_alarms + miss * misses


@needs_browser
@pytest.mark.parametrize(
    ("test_prior", "false_alarm", "miss"), [(0.2, 1, 9), (0.999, 3, 0.5), (0.0005, 0.01, 7000)]
)
def test_the_page_computes_what_python_does(page, test_prior, false_alarm, miss):
    page.load(PHONE)
    page.write("test-prior", 100 * test_prior)
    page.write("false-alarm", false_alarm)
    page.write("miss", miss)
    flagged, probability, false_alarms, misses, cost = expected(test_prior, false_alarm, miss)
    assert page.reading("flagged") == flagged.sum()
    assert page.reading("rule") == pytest.approx(false_alarm / (false_alarm + miss), rel=1e-12)
    assert page.reading("doubt") == pytest.approx(probability.mean(), rel=1e-6)
    for name, value in (("false-alarms", false_alarms), ("misses", misses), ("cost", cost)):
        assert page.reading(name) == pytest.approx(value, rel=1e-5, abs=1e-9)
        per_1000 = 1000 * value / len(POSTERIOR)
        assert page.reading(f"{name}-note") == pytest.approx(per_1000, rel=1e-5, abs=1e-9)
    assert page.one("#flagged").text == str(flagged.sum())
    assert page.one("#cost").text.endswith(" €")
    bars = page.all("#histogram .bar.flagged"), page.all("#histogram .bar")
    counts = [sum(int(bar.get_attribute("data-count")) for bar in group) for group in bars]
    assert counts == [flagged.sum(), len(POSTERIOR)]
    assert len(page.all("#list tbody tr")) == min(10, flagged.sum())


def band(total, rate, variance, among):
    """Where a count of errors likely lies: points of a gamma distribution, by Wilson-Hilferty."""

    def quantile(mean, z):
        shape = mean**2 / (mean + among**2 * variance)
        return mean * max(1.0 - 1.0 / (9.0 * shape) + z / (3.0 * shape**0.5), 0.0) ** 3

    ends = sorted([total, among * rate])
    return [np.floor(quantile(ends[0], -1.96)), np.ceil(quantile(ends[1], 1.96))]


def share_above(posterior, threshold):
    n, above = len(posterior), (posterior > threshold).sum()
    share = (above + 0.5) / (n + 1)
    return share, share * (1.0 - share) / (n + 1)


def test_the_band_holds_what_happens_as_often_as_it_says():
    """Misses of 300 cases by a rate that 60 held-out positives show; chance adds to both."""
    rng, held = np.random.default_rng(0), []
    for rate in (0.02, 0.1, 0.4):
        for _ in range(400):
            seen = np.where(rng.random(60) < rate, 0.0, 1.0)
            share, variance = share_above(seen, 0.5)
            low, high = band(90 * (1.0 - share), 1.0 - share, variance, 90)
            held.append(low <= rng.binomial(300, 0.3 * rate) <= high)
    assert 0.92 < np.mean(held) < 0.995


@needs_browser
def test_the_page_says_where_the_errors_likely_lie_and_sets_the_estimated_share(page):
    rng = np.random.default_rng(3)
    P, U = rng.beta(2.0, 1.0, 400).round(6), rng.beta(0.6, 1.4, 900).round(6)
    options = {"held_out": (P, U), "estimate": (0.12, 0.08, 0.17)}
    text = explorer_page(POSTERIOR, CONDITION, **options)
    page.path.write_text(text, encoding="utf-8")
    page.load()
    page.one("#estimated").click()
    assert float(page.one("#test-prior-box").get_attribute("value")) == pytest.approx(12.0)
    _, _, false_alarms, misses, cost = expected(0.12, 1, 9)
    threshold = Condition(PRIOR, 0.12, 0.1).alpha_unif
    (t, var_t), (f, var_f) = (share_above(part, threshold) for part in (P, U))
    n, rest = len(POSTERIOR), 1.0 - PRIOR
    rate = np.clip((f - PRIOR * t) / rest, 0.0, 1.0)
    spread = (var_f + PRIOR**2 * var_t) / rest**2
    assert page.reading("misses-band") == band(misses, 1.0 - t, var_t, 0.12 * n)
    assert page.reading("false-alarms-band") == band(false_alarms, rate, spread, 0.88 * n)
    low, high = page.reading("cost-band")
    assert low < cost < high
    assert "likely" in page.one("#misses-band").text


def each_case():
    """Costs of misses of each case, some of them nothing."""
    rng = np.random.default_rng(5)
    return rng.gamma(1.0, 50.0, len(POSTERIOR)).round(2) * (rng.random(len(POSTERIOR)) < 0.9)


@needs_browser
def test_costs_of_each_case_give_it_a_threshold_of_its_own(page):
    amounts = each_case()
    options = {"keep": {"who": NAMES}, "held_out": (POSTERIOR, POSTERIOR), "data": "cases.csv"}
    text = explorer_page(
        POSTERIOR, CONDITION, false_alarm=25.0, miss=("the amount", amounts), unit="€", **options
    )
    page.path.write_text(text, encoding="utf-8")
    page.load()
    assert not page.all("#miss, #miss-box")
    source = page.one("#miss-source").text
    assert "from the column the amount: 0 to " in source
    page.write("test-prior", 40)
    page.write("false-alarm", 10)
    probability = shift_posterior(POSTERIOR, PRIOR, 0.4)
    flagged = probability * amounts > (1.0 - probability) * 10.0
    assert 0 < flagged.sum() < len(flagged)
    assert page.reading("flagged") == flagged.sum()
    costs = np.where(flagged, 10.0 * (1.0 - probability), amounts * probability)
    assert page.reading("cost") == pytest.approx(costs.sum(), rel=1e-5)
    assert page.reading("misses") == pytest.approx(probability[~flagged].sum(), rel=1e-5)
    assert page.one("#misses-band").text == ""  # they would depend on the costs of held-out rows
    assert not page.all("#histogram .threshold")
    assert "--false-alarm 10 --miss 'the amount' --out" in page.one("#command").text
    _, *lines = page.press("download")
    most_likely = np.argsort(-POSTERIOR, kind="stable")
    assert [int(line[0]) - 1 for line in lines] == most_likely[flagged[most_likely]].tolist()
    assert {line[3] for line in lines} == {"1"}


@needs_browser
def test_without_held_out_rows_there_is_no_band(page):
    page.path.write_text(explorer_page(POSTERIOR, CONDITION), encoding="utf-8")
    page.load()
    assert page.one("#misses-band").text == ""
    assert not page.one("#about-band").is_displayed()
    assert not page.one("#estimated").is_displayed()


@needs_browser
def test_the_lists_have_the_labels_and_probabilities_of_predict(page):
    page.write("test-prior", 40)
    page.write("false-alarm", 2)
    page.write("miss", 3)
    flagged, probability, *_ = expected(0.4, 2, 3)
    for button, rows in (
        ("download", np.argsort(-POSTERIOR, kind="stable")[: flagged.sum()]),
        ("download-all", range(len(POSTERIOR))),
    ):
        header, *lines = page.press(button)
        assert header == ["row", "who", "probability", "label"]
        assert [int(line[0]) - 1 for line in lines] == list(rows)
        assert [line[1] for line in lines] == [NAMES[row] for row in rows]
        found = [float(line[2]) for line in lines]
        np.testing.assert_allclose(found, probability[rows], rtol=1e-5, atol=1e-12)
        np.testing.assert_array_equal([line[3] == "1" for line in lines], flagged[rows])


@needs_browser
def test_the_keyboard_moves_every_slider(page):
    for name, value in (("test-prior", 0.21), ("false-alarm", 1.1), ("miss", 10)):
        slider = page.one(f"#{name}")
        assert page.run("return arguments[0].labels.length", slider) == 1
        assert page.run("return arguments[0].tabIndex", slider) == 0
        before = page.reading("cost")
        slider.send_keys(Keys.ARROW_RIGHT * 10 if name == "test-prior" else Keys.ARROW_RIGHT)
        shown = float(page.one(f"#{name}-box").get_attribute("value"))
        assert shown == pytest.approx(100 * value if name == "test-prior" else value)
        assert page.reading("cost") != before
    *_, cost = expected(0.21, 1.1, 10)
    assert page.reading("cost") == pytest.approx(cost, rel=1e-5)
    assert page.one("#miss").get_attribute("aria-valuetext") == "10\u00a0€"
    page.one("#reset").send_keys(Keys.ENTER)
    assert page.reading("cost") == pytest.approx(expected(0.2, 1, 9)[-1], rel=1e-5)


@needs_browser
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("test-prior", "100", "The share of positives must lie between 0 and 100 %."),
        ("miss", "0", "The cost of a miss must be above 0. The page still shows 9 €."),
        ("false-alarm", "-1", "The cost of a false alarm must be above 0."),
        ("false-alarm", "e", "The cost of a false alarm must be above 0."),
    ],
)
def test_a_number_that_cannot_be_is_said(page, name, value, message):
    page.write(name, value)
    assert message in page.one("#wrong").text
    assert page.one(f"#{name}-box").get_attribute("aria-invalid") == "true"
    page.write(name, "7")
    assert page.one("#wrong").text == ""


@needs_browser
def test_words_from_files_stay_text(page):
    page.write("test-prior", 99)
    assert not page.all("img")
    assert HOSTILE in page.one("header").text
    rows = [row.text for row in page.all("#list tbody td:nth-child(2)")]
    assert rows[0] == NAMES[1]
    assert page.run("return performance.getEntriesByType('resource').length") == 0
    command = f"pu-shift predict model.npz '{HOSTILE}' --keep who --test-prior 0.99"
    assert command in page.one("#command").text


@needs_browser
@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", PHONE)])
def test_it_can_be_read_in_any_light_and_width(page, size, scheme, tmp_path):
    page.load(size, scheme)
    page.write("test-prior", 90)  # what is said of the doubt counts too
    assert page.run(LOW_CONTRAST) == []
    inner = page.run("return document.documentElement.scrollWidth")
    assert inner <= size[0]
    page.driver.save_screenshot(str(tmp_path / "page.png"))
    image = imread(tmp_path / "page.png")
    assert (image[5, 5, :3].mean() > 0.5) == (scheme == "light")
