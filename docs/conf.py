"""How Sphinx builds the site: `make site`.

The pages are Markdown that reads as well on a code host, so their links lead to files of the
tree. Here a link to an example becomes one to its page in the gallery, and a link to one of the
`MIRRORS` one to the page of the site that shows that file.
"""

from __future__ import annotations

import posixpath
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx_gallery.sorting import ExplicitOrder
from threadpoolctl import threadpool_limits

import pu_shift

ROOT = Path(__file__).resolve().parents[1]
# The examples are small: more threads would only wait for each other.
threadpool_limits(1)

project = "pu-shift"
author = "the authors of pu-shift"
version = release = pu_shift.__version__
html_title = f"pu-shift {version}"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery/*.ipynb"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["report.html"]  # so no page may be named report
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}

# MathJax as one file, of a package: no network when a page is read.
MATHJAX = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
html_static_path.append(str(MATHJAX / "tex-svg.js"))
mathjax_path = "tex-svg.js"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
maximum_signature_line_length = 80
numpydoc_show_class_members = False
add_module_names = False

# The examples in the order in which a reader wants them.
EXAMPLES = (
    "one_fit",
    "months",
    "costs",
    "probabilities",
    "any_classifier",
    "unknown_priors",
    "networks",
    "shift_is_cost",
    "bounded_ratio",
    "lost_convexity",
    "reading_a_table",
)
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder([f"{name}.py" for name in EXAMPLES]),
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("pu_shift",),
    "capture_repr": (),
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 3600,
    "nested_sections": False,
    "remove_config_comments": True,
}

# Pages of the site that are files of the tree which have their place elsewhere.
MIRRORS = {
    "developing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
    "datasets": "datasets/README.md",
    "protocol_search": "results/protocol_search/README.md",
}
# The report is shown where this link to it stands alone.
REPORT = "[Open the report](report.html)"
FRAME = '<iframe class="report" src="report.html" title="The report" loading="lazy"></iframe>'
# The longest cell of a table of numbers, in characters.
SHORT = 16
# [text](target) and [text](target#anchor), where the target has no scheme
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def on_the_site(link: re.Match[str], folder: str) -> str:
    """Return a link of a page in that folder of the tree as it has to be on the site."""
    text, target, anchor = link.groups(default="")
    path = posixpath.normpath(posixpath.join(folder, target))
    if path == "docs/report.html":  # a page as it is; a Markdown link would download it
        return f'<a class="reference" href="report.html">{text}</a>'
    pages = {file: f"{page}.md" for page, file in MIRRORS.items()}
    pages |= {f"examples/{name}.py": f"gallery/{name}.rst" for name in EXAMPLES}
    pages["examples"] = "gallery/index.rst"
    return f"[{text}]({pages.get(path, posixpath.relpath(path, 'docs'))}{anchor})"


def show_page(app: Any, page: str, source: list[str]) -> None:
    """Fill in a mirrored file, and make the links of a page those of the site."""
    if page.startswith(("gallery/", "generated/")):
        return
    file = MIRRORS.get(page, f"docs/{page}.md")
    text = (ROOT / file).read_text(encoding="utf-8") if page in MIRRORS else source[0]
    text = text.replace(f"\n{REPORT}\n", f"\n{REPORT} by itself, or read it here.\n\n{FRAME}\n")
    source[0] = LINK.sub(lambda link: on_the_site(link, posixpath.dirname(file)), text)


def link_alias(app: Any, env: Any, node: Any, shown: Any) -> Any:
    """Resolve a reference to the module of an object that is documented as the package's own."""
    target = node.get("reftarget", "")
    short = re.sub(r"^pu_shift\.\w+\.", "pu_shift.", target)
    if node.get("refdomain") != "py" or short == target:
        return None
    python = env.get_domain("py")
    return python.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], short, node, shown
    )


def mark_numbers(app: Any, doctree: Any) -> None:
    """Mark the tables that have nothing but short cells: their lines need not break."""
    for table in doctree.findall(nodes.table):
        rows = [row.children[1:] for body in table.findall(nodes.tbody) for row in body.children]
        if all(len(entry.astext()) <= SHORT for row in rows for entry in row):
            table["classes"].append("numbers")


def link_names(app: Any, doctree: Any, page: str) -> None:
    """Link each name in the text of a page that the API documents, where it comes first."""
    documented = app.env.get_domain("py").objects
    seen = {page.removeprefix("generated/")}
    for literal in list(doctree.findall(nodes.literal)):
        text = literal.astext().removesuffix("()")
        name = next((n for n in (text, f"pu_shift.{text}") if n in documented), None)
        if name in seen or isinstance(literal.parent, (nodes.reference, nodes.title)):
            continue
        seen.add(name)
        entry = documented.get(name)
        if entry is not None:
            address = app.builder.get_relative_uri(page, entry.docname)
            link = nodes.reference("", "", refuri=f"{address}#{entry.node_id}", internal=True)
            literal.replace_self(link)
            link += literal


def skip_member(app: Any, what: str, name: str, *rest: object) -> bool | None:
    """Leave out what scikit-learn adds to each estimator by itself."""
    return True if re.fullmatch(r"set_\w+_request|set_output|get_metadata_routing", name) else None


def setup(app: Any) -> None:
    """Connect the functions above to the build."""
    app.connect("source-read", show_page)
    app.connect("missing-reference", link_alias)
    app.connect("doctree-read", mark_numbers)
    app.connect("doctree-resolved", link_names)
    app.connect("autodoc-skip-member", skip_member)
