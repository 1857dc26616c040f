"""What is said about a release in several places is the same, and the hooks are those of CI."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from pu_shift import __version__
from pu_shift._chainer import INSTALL

ROOT = Path(__file__).resolve().parents[1]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_changelog_and_citation_name_the_same_release():
    version, date = re.search(r"^## (\S+) \((.+)\)$", text_of("CHANGELOG.md"), re.M).groups()
    citation = yaml.safe_load(text_of("CITATION.cff"))
    zenodo = json.loads(text_of(".zenodo.json"))
    assert version == citation["version"] == zenodo["version"] == __version__
    assert citation["title"] == zenodo["title"]
    paper = citation["preferred-citation"]["doi"]
    assert paper in [one["identifier"] for one in zenodo["related_identifiers"]]
    assert date == str(citation["date-released"])
    assert f"version = {{{version}}}" in text_of("README.md")


def test_the_paper_is_cited_alike():
    paper = yaml.safe_load(text_of("CITATION.cff"))["preferred-citation"]
    readme = " ".join(text_of("README.md").split())
    assert readme.count(paper["title"]) == 2  # in the text and in BibTeX
    assert readme.count(paper["doi"]) == 3
    assert f"pp. {paper['start']}–{paper['end']}" in readme
    assert f"{{{paper['start']}--{paper['end']}}}" in readme
    (number,) = [one["value"] for one in paper["identifiers"] if one["type"] == "other"]
    assert number in readme


def test_the_readme_is_short():
    assert len(text_of("README.md").split()) <= 1100


def make_calls(lines):
    """Return the targets of calls of make, each with its ARGS."""
    for line in lines:
        _, *targets = shlex.split(line)
        arguments = [word for word in targets if "=" in word]
        yield from ((word, *arguments) for word in targets if "=" not in word)


def test_the_hooks_of_pre_commit_run_what_continuous_integration_runs():
    (local,) = yaml.safe_load(text_of(".pre-commit-config.yaml"))["repos"]
    assert local["repo"] == "local"
    ci = set(make_calls(re.findall(r"^make .+$", text_of(".ci/run"), re.M))) - {("install",)}
    hooks = set(make_calls(hook["entry"] for hook in local["hooks"]))
    # `make test` checks the style first; before a commit that is a hook of its own.
    assert re.search(r"^test: lint ", text_of("Makefile"), re.M)
    assert hooks - {("lint",)} == ci


LOCKED = dict(re.findall(r"^(\S+)==(\S+) ", text_of("requirements/reference.txt"), re.M))
RUNS = sorted((ROOT / "results" / "reference").glob("**/run.json"))


def test_the_lock_has_a_hash_for_every_package_and_names_no_index():
    text = text_of("requirements/reference.txt")
    entries = re.split(r"^(?=\S+==)", text, flags=re.M)[1:]
    assert len(entries) == len(LOCKED) > 20
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)
def test_the_lock_has_the_versions_of_the_reference_run(path):
    versions = json.loads(path.read_text(encoding="utf-8"))["versions"]
    del versions["pu_shift"]
    assert versions.pop("python").startswith("3.11.")
    assert versions == {name: LOCKED[name] for name in versions}


def test_everyone_builds_the_same_chainer_by_the_same_setuptools():
    (line,) = [
        line
        for line in text_of("requirements/build-constraints.txt").splitlines()
        if not line.startswith("#")
    ]
    (chainer,) = re.findall(r'^CHAINER = "(.+)"$', text_of("setup.py"), re.M)
    assert f'[tool.uv.extra-build-dependencies]\nchainer = ["{line}"]' in text_of("pyproject.toml")
    assert f'pip install "{line}" wheel && pip install --no-build-isolation "{chainer}"' == INSTALL
    for page in ("README.md", "docs/install.md"):
        assert f"\n$ {INSTALL}\n" in text_of(page)
