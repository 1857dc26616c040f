"""What is said about a release in several places is the same, and the hooks are those of CI."""

import re
from pathlib import Path

import yaml

from pu_shift import __version__

ROOT = Path(__file__).resolve().parents[1]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_changelog_and_citation_name_the_same_release():
    version, date = re.search(r"^## (\S+) \((.+)\)$", text_of("CHANGELOG.md"), re.M).groups()
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert version == citation["version"] == __version__
    assert date == str(citation["date-released"])


def test_the_hooks_of_pre_commit_are_checks_of_continuous_integration():
    (local,) = yaml.safe_load(text_of(".pre-commit-config.yaml"))["repos"]
    assert local["repo"] == "local"
    called = re.findall(r"^make (.+)$", text_of(".ci/run"), re.M)
    makefile = text_of("Makefile")
    targets = {target for line in called for target in line.split() if "=" not in target}
    # `make test` runs what it depends on first.
    for target in list(targets):
        needs = re.search(rf"^{target}:([^#\n]*)", makefile, re.M)
        targets.update(needs[1].split() if needs else ())
    hooks = {hook["entry"].removeprefix("make ") for hook in local["hooks"]}
    assert hooks == {"lint", "types"}
    assert hooks <= targets
