"""What is said about a release in several places is the same, and the hooks are those of CI."""

import re
import shlex
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
