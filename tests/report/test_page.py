import base64
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from pu_shift.paper.protocol import Protocol
from pu_shift.paper.settings import METHODS
from pu_shift.priors import Condition
from pu_shift.report.page import page_data, render
from pu_shift.report.results import headlines, read_results
from tests.paper.simulate import results_folder, small_surfaces, trial, trials

CONDITION = Condition(0.3, 0.5)
HOSTILE = "</script><img src=x onerror=alert(1)>&\"'"


class Page(HTMLParser):
    """Collects elements with their attributes, and checks that they nest."""

    VOID = frozenset({"meta", "link", "input", "img", "br"})

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts = [], [], {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for tag, attributes in self.open[-1:]:
            key = attributes.get("id", tag)
            self.texts[key] = self.texts.get(key, "") + data

    def of(self, tag, **wanted):
        return [a for t, a in self.elements if t == tag and wanted.items() <= a.items()]


def folder_of(tmp_path, **options):
    numbers = options.pop("numbers", (1, 4))
    options.setdefault("datasets", ["banana", "susy"])
    return results_folder(
        tmp_path, {f"table{n}": trials(lambda c: 70.0, number=n, **options) for n in numbers}
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return read_results(folder_of(tmp_path_factory.mktemp("results")))


def test_the_page_is_whole_and_needs_nothing_else(results):
    text = render(results, CONDITION, small_surfaces())
    page = Page(text)
    assert not re.search(r"\{\{|\}\}(?!\))", text.split('<script type="application/json"')[0])
    # Nothing is loaded: the only addresses are places in the page itself.
    addresses = [
        a.get("href") or a.get("src") for _, a in page.elements if "href" in a or "src" in a
    ]
    assert all(address.startswith("#") or address == "data:," for address in addresses)
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    for attributes in page.of("a"):
        assert attributes["href"][1:] in ids
    for name in ("aria-labelledby", "for"):
        for _, attributes in page.elements:
            assert set(attributes.get(name, "").split()) <= ids
    assert "url(" not in text.split("</style>")[0]


def test_every_cell_is_in_its_table_and_in_the_data(results):
    page = Page(render(results, CONDITION))
    data = json.loads(page.texts["data"])
    assert data == json.loads(json.dumps(page_data(results, CONDITION)))
    assert len(data["cells"]) == len(results.comparison) == 72
    numbers = [int(a["data-cell"]) for a in page.of("td") if "data-cell" in a]
    printed = [i for i, cell in enumerate(data["cells"]) if cell["paper_mean"] is not None]
    assert sorted(numbers) == sorted([*range(72), *printed])
    for cell, row in zip(data["cells"], results.comparison.itertuples()):
        assert cell["mean"] == pytest.approx(row.mean, abs=1e-4)
        assert np.mean(cell["accuracies"]) == pytest.approx(row.mean, abs=1e-3)
        assert (cell["delta"] is None) == np.isnan(row.delta)
        assert cell["chosen"] == {"λ": "0.01", "steps": "500"}


def test_names_from_the_results_cannot_become_markup(tmp_path):
    folder = folder_of(tmp_path, numbers=(1,), datasets=[HOSTILE, "susy"], methods=METHODS[:2])
    results = read_results(results_folder(folder, {}, run={}))
    results.runs[0]["command"] = HOSTILE
    text = render(results, CONDITION)
    page = Page(text)
    assert not page.of("img")
    assert text.count("</script>") == 2
    assert json.loads(page.texts["data"])["datasets"][1]["name"] == HOSTILE
    assert HOSTILE in [a.get("value") for a in page.of("input")]


def test_missing_cells_are_left_empty(tmp_path):
    rows = trials(lambda c: 70.0, datasets=["banana", "susy"], methods=METHODS[:3])
    gone = (rows["dataset"] == "susy") & (rows["method"] == METHODS[1])
    results = read_results(results_folder(tmp_path, {"table1": rows[~gone]}))
    page = Page(render(results, CONDITION))
    assert len(page.of("td", **{"data-col": METHODS[1]})) == 6
    filled = [a for a in page.of("td", **{"data-col": METHODS[1]}) if "data-cell" in a]
    assert len(filled) == 3


def test_the_noise_ceiling_stands_beside_every_share(results):
    text = render(results, CONDITION)
    glance = text.split('id="headline-title"')[1].split("</section>")[0]
    figures = headlines(results.comparison)
    # Out of sample comes first.
    assert re.findall("<h3>(.*?)</h3>", glance) == [
        "Table 4, out of sample",
        "Table 1, which guided the protocol",
        "Tables 1, 4",
    ]
    ceilings = [f"{100 * part.ceiling:.1f} %" for part in figures.values()]
    assert re.findall("<dt>noise ceiling</dt><dd><strong>(.*?)</strong>", glance) == ceilings
    ceiling = ceilings[-1]
    agreement = text.split('id="agreement"')[1].split("</table>")[0]
    shares = re.findall(r"<b>\S+ %</b> .*?</td>", agreement)
    # The methods, all of them, and the two tables; each on both datasets, and on both together.
    assert len(shares) == (len(METHODS) + 1 + 2) * 3
    assert all(re.search(r"<span>ceiling \d+\.\d %</span>", share) for share in shares)
    assert f"<span>ceiling {ceiling}</span>" in shares[3 * len(METHODS) + 2]


def test_the_protocol_tells_stated_from_fitted_changed_and_unknown(tmp_path):
    protocol = Protocol(n_centers=77)
    folder = results_folder(tmp_path, {"table1": pd.DataFrame([trial()])}, protocol)
    path = folder / "table1" / "run.json"
    run = json.loads(path.read_text())
    run["protocol"]["of_old"] = [1]
    path.write_text(json.dumps(run))
    text = render(read_results(folder), CONDITION)

    def row(name):
        return re.search(rf"<code>{name}</code>.*?</tr>", text)[0]

    assert "stated in the paper" in row("n_p")
    assert "> fitted to Tables 1–3<" in row("counts")
    assert "> changed<" in row("n_centers")
    assert "77" in row("n_centers")
    assert "not known to this version" in row("of_old")


def test_surfaces_come_back_from_the_page_with_their_signs(results):
    surfaces = small_surfaces()
    banana = page_data(results, CONDITION, surfaces)["banana"]

    def unpack(packed):
        dtype = {8: "i1", 16: "<i2"}[packed["bits"]]
        integers = np.frombuffer(base64.b64decode(packed["base64"]), dtype)
        return packed["unit"] * integers.reshape(25, 25)

    for method, by_prior in surfaces.scores.items():
        for prior, score in by_prior.items():
            found = unpack(banana["scores"][method][f"{prior:g}"])
            np.testing.assert_array_equal(np.sign(found), np.sign(score))
    for prior, posterior in surfaces.posteriors.items():
        found = unpack(banana["posteriors"][f"{prior:g}"])
        np.testing.assert_allclose(found, posterior.clip(-2, 2), atol=1e-4)
