"""The report's page in a real browser, opened from a file."""

import base64

import numpy as np
import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from pu_shift.paper.settings import METHODS
from pu_shift.priors import Condition
from pu_shift.report.ideas import LEVELS
from pu_shift.report.page import page_data, render
from pu_shift.report.results import read_results
from tests.browser import HOSTILE, LOW_CONTRAST, WIDE, Browser, needs_browser
from tests.paper.simulate import results_folder, robustness_folder, small_surfaces, trials

pytestmark = needs_browser
DATASETS = ["banana", "susy", HOSTILE]
CONDITION = Condition(0.3, 0.5)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")

    def accuracy(cell):
        # Some cells far from the printed ones, some close, on every dataset.
        return 55.0 + 30.0 * cell.given_prior + 2.0 * METHODS.index(cell.method)

    rows = {f"table{n}": trials(accuracy, number=n, datasets=DATASETS) for n in (1, 3, 4)}
    results_folder(folder, rows)
    robustness_folder(folder)
    return read_results(folder)


@pytest.fixture(scope="module")
def address(results, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(results, CONDITION, small_surfaces()), encoding="utf-8")
    return path.as_uri()


class Report(Browser):
    """What the tests do with the report."""

    def load(self, size=WIDE, scheme="light"):
        super().load(size, scheme)
        self.run("localStorage.clear()")
        return super().load(size, scheme)

    def visible(self, selector):
        return [node for node in self.all(selector) if node.is_displayed()]

    def move(self, slider, value):
        self.run(
            "const input = document.getElementById(arguments[0]);"
            "input.value = arguments[1]; input.dispatchEvent(new Event('input'));",
            slider,
            str(value),
        )

    def show(self, node):
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", node)

    def detail_is_open(self):
        return self.one("#detail").is_displayed()


@pytest.fixture
def page(driver, address):
    browser = Report(driver, address).load()
    yield browser
    problems = driver.get_log("browser")
    assert problems == []


def test_the_page_loads_nothing_and_complains_of_nothing(page):
    assert page.run("return performance.getEntriesByType('resource').length") == 0
    assert page.one("h1").text.startswith("pu-shift")


@pytest.mark.parametrize(
    ("prior", "test_prior", "alpha"),
    [
        (0.3, 0.5, 0.5),
        (0.45, 0.82, 0.13),
        (0.8, 0.99, 0.01),
    ],
)
def test_the_explorer_agrees_with_the_theory(page, prior, test_prior, alpha):
    for slider, value in (("prior", prior), ("test-prior", test_prior), ("alpha", alpha)):
        page.move(slider, value)
    condition = Condition(prior, test_prior, alpha)
    assert page.reading("prior-unif") == condition.prior_unif
    assert page.reading("alpha-unif") == condition.alpha_unif
    assert page.reading("threshold") == condition.ratio_threshold("p/u")
    assert page.reading("threshold-up") == condition.ratio_threshold("u/p")
    assert page.reading("convex") is condition.is_convex
    assert page.one("#alpha-unif").text == f"{condition.alpha_unif:.3f}"
    assert f"α_unif = {condition.alpha_unif:.3f}" in page.one("#cost-where").text
    assert f"π_unif = {condition.prior_unif:.3f}" in page.one("#shift-where").text

    surfaces = small_surfaces()
    share = float(page.one("#banana svg").get_attribute("data-share"))
    # The page has the surface in steps of 2 / 32767: a value on the threshold may fall either way.
    expected = (surfaces.posteriors[prior] > condition.alpha_unif).mean()
    assert share == pytest.approx(expected, abs=2 / surfaces.posteriors[prior].size)
    for name, level in (("moved", condition.alpha_unif), ("ordinary", 0.5)):
        found, false = (np.interp(level, LEVELS, rate) for rate in surfaces.rates[prior])
        cost = 2 * (alpha * (1 - test_prior) * false + (1 - alpha) * test_prior * (1 - found))
        assert page.reading(f"cost-{name}") == pytest.approx(cost, abs=1e-4)


def test_the_boundary_lies_where_the_surface_crosses_the_threshold(page):
    surfaces = small_surfaces()
    rows, columns = surfaces.posteriors[0.3].shape
    line = page.one("#banana-boundary").get_attribute("d")
    points = np.array([part.split() for part in line.replace("L", "M").split("M")[1:]], float)
    # Back from the drawing's coordinates, one unit of frame around 478 × 428, to the grid's.
    across = (points[:, 0] - 1) / 478 * (columns - 1)
    up = (429 - points[:, 1]) / 428 * (rows - 1)
    i, j = (np.clip(np.floor(v).astype(int), 0, rows - 2) for v in (up, across))
    s, t = up - i, across - j
    grid = surfaces.posteriors[0.3]
    heights = (
        grid[i, j] * (1 - s) * (1 - t)
        + grid[i + 1, j] * s * (1 - t)
        + grid[i, j + 1] * (1 - s) * t
        + grid[i + 1, j + 1] * s * t
    )
    assert len(points) > 10
    np.testing.assert_allclose(heights, Condition(0.3, 0.5).alpha_unif, atol=0.01)


@pytest.mark.parametrize("given", ["0.1", "0.9"])
def test_the_regions_of_all_methods_follow_the_given_prior(page, given):
    page.move("given", given)
    panels = page.all("#region-panels svg")
    assert len(panels) == len(METHODS)
    for panel, method in zip(panels, METHODS):
        assert panel.get_attribute("aria-label").startswith(f"{method} with given prior {given}")
        score = small_surfaces().scores[method][float(given)]
        assert float(panel.get_attribute("data-share")) == pytest.approx((score > 0).mean())


def test_filters_hide_tables_rows_and_columns(page, results):
    def untick(value):
        box = page.one(f'#filters input[value="{value}"]')
        page.show(box)
        box.click()

    untick("3")
    assert not page.one("#table3").is_displayed()
    untick("susy")
    untick("DH-Lin")
    left = results.comparison.query("table != 3 and dataset != 'susy' and method != 'DH-Lin'")
    assert page.one("#shown").text == f"{len(left)} of {len(results.comparison)} cells shown"
    assert len(page.visible(".table .cell")) == len(left)
    assert "DH-Lin" not in page.one("#table1 thead").text
    assert "susy" not in page.one("#table1").text
    printed = left["paper_mean"].notna().sum()
    assert len(page.visible(".heat .cell")) == len(page.all("#scatter .point")) == printed
    page.show(page.one("#reset"))
    page.one("#reset").click()
    assert len(page.visible(".table .cell")) == len(results.comparison)


def test_arrow_keys_walk_through_a_table_and_show_each_cell(page, results):
    for table in page.all("table.cells"):
        assert len(table.find_elements(By.CSS_SELECTOR, ".cell[tabindex='0']")) == 1
    first = page.one("#table1 .cell")
    page.show(first)
    page.one("#table1 .scroll").send_keys(Keys.TAB)
    assert page.driver.switch_to.active_element == first
    ActionChains(page.driver).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN).perform()
    here = page.driver.switch_to.active_element
    row = results.comparison.query("table == 1 and dataset == 'susy'").iloc[1]
    number = int(here.find_element(By.XPATH, "..").get_attribute("data-cell"))
    cell = page_data(results, CONDITION)["cells"][number]
    assert (cell["method"], cell["given_prior"]) == (row["method"], row["given_prior"])
    text = page.one("#detail").text
    for part in (
        f"{row['method']} on susy",
        f"{row['mean']:.2f} ± {row['se']:.2f}",
        f"{row['paper_mean']:.2f} ± {row['paper_se']:.2f}",
        f"{abs(row['delta']):.2f} points",
        "consistent",
        "λ\n0.01",
    ):
        assert part in text
    assert len(page.all("#detail .trial")) == row["n"]
    assert here.get_attribute("aria-describedby") == "detail-body"
    label = here.get_attribute("aria-label")
    assert f"ours {row['mean']:.2f} ± {row['se']:.2f}" in label
    ActionChains(page.driver).send_keys(Keys.END).perform()
    assert page.driver.switch_to.active_element.text == page.all("#table1 .cell")[11].text
    ActionChains(page.driver).send_keys(Keys.ESCAPE).perform()
    assert not page.detail_is_open()


def test_names_from_the_results_stay_text(page):
    assert not page.all("img")
    row = next(node for node in page.all("#table1 tbody th[scope='row']") if "<img" in node.text)
    assert row.text == HOSTILE
    cell = row.find_element(By.XPATH, "..").find_element(By.CSS_SELECTOR, ".cell")
    page.show(cell)
    cell.click()
    assert HOSTILE in page.one("#detail h3").text
    assert not page.all("#detail img")


def background(page):
    return page.run("return getComputedStyle(document.body).backgroundColor")


def test_colours_follow_the_system_and_the_button(page):
    light = background(page)
    page.load(scheme="dark")
    dark = background(page)
    assert dark != light
    button = page.one("#theme")
    shown = []
    for _ in range(3):
        button.click()
        shown.append((button.text, background(page)))
    assert shown == [
        ("colours: light", light),
        ("colours: dark", dark),
        ("colours: automatic", dark),
    ]
    button.click()
    page.driver.get(page.address)
    assert background(page) == light


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast(page, scheme):
    page.load(scheme=scheme)
    page.run("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    cell = page.one("#table1 .cell")
    page.show(cell)
    cell.click()
    assert page.run(LOW_CONTRAST) == []


@pytest.mark.parametrize("width", [320, 768])
def test_the_body_never_scrolls_sideways(page, width):
    page.load(size=(width, 800))
    page.run("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    inner, outer = page.run(
        "const root = document.documentElement; return [root.scrollWidth, root.clientWidth]"
    )
    assert inner <= outer == width


def test_print_shows_all_evidence_on_white(page):
    page.load(scheme="dark")
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.run("return document.querySelectorAll('details:not([open])').length") == 0
    page.run("window.dispatchEvent(new Event('afterprint'))")
    assert page.run("return document.querySelectorAll('.claims details[open]').length") == 0
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert background(page) == "rgb(255, 255, 255)"
    assert not page.visible("nav, .filters, #theme")
    content = page.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert base64.b64decode(content)[:4] == b"%PDF"


def test_without_the_banana_data_the_page_says_so(page, results, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(render(results, CONDITION), encoding="utf-8")
    page.address = path.as_uri()
    page.load()
    assert not page.visible("#banana, #cost, #given")
    assert "were not at hand" in page.one("#regions").text
    page.move("alpha", 0.2)
    assert page.reading("alpha-unif") == Condition(0.3, 0.5, 0.2).alpha_unif
