"""HTML pages of one file: a template, and data that cannot be taken for markup."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def fill_template(template: str, parts: Mapping[str, str]) -> str:
    """Put each part where the template says ``{{name}}``; the parts themselves stay as they are."""
    # One pass: nothing that was put in is looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def embed_json(data: Any) -> str:
    """Return JSON that is safe inside a ``script`` element; NaN and infinities are refused."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)
