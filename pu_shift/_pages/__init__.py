"""HTML pages of one file: a Jinja2 template with its styles, scripts and data inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

SHARED = Path(__file__).resolve().parent


def render_page(template: Path, **parts: Any) -> str:
    """Fill in a template: texts are escaped, and ``tojson`` embeds data.

    In it ``asset(name)`` puts in a file of the template's folder, or of the shared ones, as it is.
    """
    folders = [template.parent, SHARED]
    environment = Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # JSON knows no NaN, and the order of a page's data is that of the code.
    environment.policies["json.dumps_kwargs"] = {
        "allow_nan": False,
        "ensure_ascii": False,
        "separators": (",", ":"),
    }

    def asset(name: str) -> Markup:
        path = next(folder / name for folder in folders if (folder / name).is_file())
        return Markup(path.read_text(encoding="utf-8"))

    return environment.get_template(template.name).render(asset=asset, **parts)
