"""A headless Chromium for the tests of pages."""

import json
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="needs Chromium and its driver (Debian: apt install chromium chromium-driver)",
)

# No sandbox: it cannot be had by root, nor in most containers. No network: none is needed.
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-dev-shm-usage "
    "--disable-background-networking --disable-component-update --disable-sync --hide-scrollbars"
)
HOSTILE = "<img src=x onerror=alert(1)></script>"
WIDE, PHONE = (1280, 900), (390, 844)

# The contrast of each visible text with what lies behind it (WCAG 2.1), where it is too low.
LOW_CONTRAST = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const behind = (node) => {
  const [r, g, b, a] = rgba(getComputedStyle(node).backgroundColor);
  if (a === 1) return [r, g, b];
  const base = node.parentElement ? behind(node.parentElement) : [255, 255, 255];
  return base.map((channel, i) => a * [r, g, b][i] + (1 - a) * channel);
};
const luminance = (colour) => colour
  .map((channel) => channel / 255)
  .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const low = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  const text = walker.currentNode.textContent.trim();
  if (!text || node.closest("script, style, noscript, option")) continue;
  if (!node.checkVisibility({visibilityProperty: true})) continue;
  const style = getComputedStyle(node);
  const colour = rgba(node instanceof SVGElement ? style.fill : style.color).slice(0, 3);
  const [light, dark] = [luminance(colour), luminance(behind(node))].sort((a, b) => b - a);
  const ratio = (light + 0.05) / (dark + 0.05);
  if (ratio < 4.5) low.push([text, node.tagName, ratio]);
}
return low;
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """The browser, which saves what it downloads to its attribute ``folder``."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    folder = tmp_path_factory.mktemp("downloads")
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    browser.folder = folder
    yield browser
    browser.quit()


class Browser:
    """What the tests do with a page."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def load(self, size=WIDE, scheme="light"):
        """Open the page in a window of this size, and wait for its scripts."""
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get(self.address)
        self.until(lambda: self.run("return document.documentElement.dataset.ready") == "true")
        return self

    def until(self, condition):
        WebDriverWait(self.driver, 60, poll_frequency=0.05).until(lambda _: condition())

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def reading(self, name):
        return json.loads(self.one(f"#{name}").get_attribute("data-value"))
