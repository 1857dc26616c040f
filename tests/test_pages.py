"""The pages: their code runs and their links lead somewhere."""

import bz2
import contextlib
import doctest
import importlib.util
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

import pu_shift.data
from tests.mixtures import mixture, pu_samples

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "*/README.md")
    for path in ROOT.glob(pattern)
)
CODE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# [text](target), ![text](target "title") and [text]: target
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def prose(text):
    """Blank out code, in which a bracket is no link."""
    return re.sub(r"`[^`\n]*`", "", CODE.sub("", text))


def anchors(text):
    """Return the anchors that GitHub gives to a page's headings."""
    seen: dict[str, int] = {}
    for title in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", CODE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        yield f"{slug}-{count}" if count else slug


def broken(page, text):
    """Return the links of a page that lead nowhere."""
    wrong = []
    for target in (first or second for first, second in LINK.findall(prose(text))):
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            # There is no network here: an address must at least be one.
            if not re.fullmatch(r"https://[\w.-]+\.\w+(/.*|#.*)?|mailto:.+@.+", target):
                wrong.append(target)
            continue
        path = (ROOT / page).parent / unquote(parts.path) if parts.path else ROOT / page
        if not path.exists() or not path.resolve().is_relative_to(ROOT):
            wrong.append(target)
        elif parts.fragment and path.suffix == ".md":
            there = text if not parts.path else path.read_text(encoding="utf-8")
            if unquote(parts.fragment) not in anchors(there):
                wrong.append(target)
    return wrong


def test_the_api_page_names_whatever_can_be_imported():
    listed = re.findall(r"^   pu_shift\.(\S+)$", text_of("docs/api.md"), re.MULTILINE)
    assert len(listed) == len(set(listed))
    shown = {name.rpartition(".")[2] for name in listed}
    ready_made = {"zero_one_scorer", "surrogate_scorer"}  # objects, told of in words
    assert set(pu_shift.__all__) - {"__version__"} - ready_made <= shown
    assert set(pu_shift.data.__all__) - {"NAMES"} <= shown
    assert all(f"`{name}`" in text_of("docs/api.md") for name in ready_made)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    assert broken(page, text_of(page)) == []


@pytest.fixture
def namespace(tmp_path, monkeypatch):
    """What the pages take for granted: samples, and files of one's own."""
    monkeypatch.chdir(tmp_path)
    X_p, X_u = pu_samples(40, 120, 0.3, gap=4.0, d=2)
    X_new, _ = mixture(100, 0.7, np.random.default_rng(2), gap=4.0, d=2)
    Path("cells.csv").write_text("size,diagnosis\n1,malignant\n2,benign\n", encoding="utf-8")
    Path("digits.csv").write_text("4,0.5\n3,0.25\n", encoding="utf-8")
    Path("mine.csv").write_text("0.5,1\n0.25,0\n", encoding="utf-8")
    Path("mine.txt.bz2").write_bytes(bz2.compress(b"+1 1:0.5\n-1 1:2\n"))
    return {
        "X_positive": X_p,
        "X_unlabelled": X_u,
        "X_new": X_new,
        "X": np.concatenate([X_p, X_u]),
        "y": np.repeat([1, 0], [len(X_p), len(X_u)]),
        "__name__": "page",
    }


def run(page, text, namespace):
    """Run the Python of a page, top to bottom; sessions must show what they print."""
    for language, code in CODE.findall(text):
        if language == "python":
            exec(compile(code, page, "exec"), namespace)
        elif language in ("pycon", "doctest"):
            flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            test = doctest.DocTestParser().get_doctest(code, namespace, page, page, 0)
            test.globs = namespace  # later blocks go on from here
            report = io.StringIO()
            runner = doctest.DocTestRunner(optionflags=flags)
            runner.run(test, out=report.write, clear_globs=False)
            assert runner.summarize(verbose=False).failed == 0, report.getvalue()


@pytest.mark.parametrize("page", [page for page in PAGES if re.search(r"```py", text_of(page))])
def test_code_runs(page, namespace):
    with contextlib.redirect_stdout(io.StringIO()):
        run(page, text_of(page), namespace)


def test_python_is_marked_as_such():
    """A block without a language would not be run."""
    for page in PAGES:
        for language, code in CODE.findall(text_of(page)):
            is_python = re.search(r"^(from pu_shift|import |>>> )", code, re.MULTILINE)
            assert not is_python or language in ("python", "pycon"), (page, code)


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUN_BLOCKS = tool("run_blocks")


@pytest.fixture
def files(tmp_path):
    """A folder with the files that the pages take for granted, and nothing else."""
    X_p, X_u = pu_samples(60, 150, 0.3, gap=4.0, d=2)
    new, _ = mixture(80, 0.7, np.random.default_rng(2), gap=4.0, d=2)

    def write(name, header, rows):
        lines = [",".join(map(str, row)) for row in rows]
        (tmp_path / name).write_text("\n".join([header, *lines, ""]), encoding="utf-8")

    write("data.csv", "a,b,labelled", [*((*x, 1) for x in X_p), *((*x, 0) for x in X_u)])
    write("new.csv", "a,b", new)
    write("cases.csv", "id,a,b", [(f"case {i}", *x) for i, x in enumerate(new)])
    return tmp_path


@pytest.mark.parametrize("page", RUN_BLOCKS.PAGES)
def test_shell_blocks_run_as_they_stand(page, files, monkeypatch):
    """Those that install something are run by `make wheel`."""
    if page == "docs/command_line.md":  # its Python makes the table that its commands read
        monkeypatch.chdir(files)
        run(page, text_of(page), {})
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    in_tree, in_folder = [], []
    for block in RUN_BLOCKS.others(text_of(page)):
        (in_tree if re.match("make ", block) else in_folder).append(block)
    # A target of make is looked up and not made: it would run for minutes, or this test again.
    sessions = [(in_tree, ROOT, {"MAKEFLAGS": "n"}), (in_folder, files, {})]
    for blocks, cwd, more in sessions:
        done = subprocess.run(
            ["bash", "-c", "\n".join(["set -eo pipefail", *blocks])],
            cwd=cwd,
            env={**os.environ, "PATH": path, "PYTHONPATH": python_path, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_every_shell_block_is_run_here_or_by_make_wheel():
    here, there = [], []
    for page in RUN_BLOCKS.PAGES:
        here += RUN_BLOCKS.others(text_of(page))
        there += RUN_BLOCKS.installing(text_of(page))
    assert "make table1" in here[0]
    scripts = "\n".join(script for _, script in RUN_BLOCKS.sessions())
    assert {"make install", "pip install .", "uv pip install -e '.[chainer]'"} <= {
        line for block in there for line in block.splitlines()
    }
    assert all(block in scripts for block in there)
    assert re.search(r"^make wheel$", text_of(".ci/run"), re.MULTILINE)
