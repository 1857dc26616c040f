"""HTML pages of one file: a template, and data that cannot be taken for markup."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup


def fill_template(template: str, parts: Mapping[str, str]) -> str:
    """Put each part where the template says ``{{name}}``; the parts themselves stay as they are."""
    # One pass: nothing that was put in is looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def render_template(path: Path, **values: Any) -> str:
    """Return a page made from a Jinja2 template; every value is escaped but `embed_json`'s.

    ``asset(name)`` in a template is the content of a file beside it.
    """
    folder = path.parent
    options = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    pages = Environment(loader=FileSystemLoader(folder), undefined=StrictUndefined, **options)
    pages.globals["asset"] = lambda name: Markup((folder / name).read_text(encoding="utf-8"))
    return pages.get_template(path.name).render(values)


def embed_json(data: Any) -> Markup:
    """Return JSON that is safe inside a ``script`` element; NaN and infinities are refused."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text))
