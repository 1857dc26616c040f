"""Which of two labels is that of the positives, and what counts as missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pu_shift._checks import shown

MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none")
POSITIVE = ("1", "true", "positive", "pos", "p", "labelled", "labeled", "yes")
UNLABELLED = ("0", "-1", "false", "unlabelled", "unlabeled", "u", "unknown", "no")


def is_missing(value: Any) -> bool:
    """Tell whether a value is None, NaN or a word for them."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or value != value or str(value) in ("<NA>", "NaT")


def positive_label(values: Sequence[Any], missing: bool) -> Any:
    """Return the label of the positives among different labels, where words or 1 tell it.

    A single label beside missing ones is that of the positives. ``None`` if nothing tells.
    """
    words = {_word(value): value for value in values}
    if missing and len(values) == 1:
        return None if next(iter(words)) in UNLABELLED else values[0]
    positive = [value for word, value in words.items() if word in POSITIVE]
    others = words.keys() - set(POSITIVE)
    known = others <= set(UNLABELLED) and not missing
    return positive[0] if len(positive) == 1 and others and known else None


def label_problem(values: Sequence[Any], missing: bool, cure: str) -> str:
    """Say why the positives cannot be told from labels, and what can be done."""
    found = ", ".join(
        f"{value:g}" if isinstance(value, float) else shown(value) for value in values[:5]
    )
    found += ", …" if len(values) > 5 else ""
    found = ", ".join(filter(None, [found, "missing ones" if missing else ""]))
    return (
        "must be 1 for labelled positives and 0, -1 or missing for unlabelled rows, found "
        f"{found or 'nothing'}; {cure}"
    )


def without_missing(y: Any, pos_label: Any) -> tuple[Any, Any]:
    """Return labels and that of the positives; one label beside missing ones becomes 1 and 0."""
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "fOU":
        return y, pos_label
    if labels.dtype.kind == "f":
        missing = np.isnan(labels)
    else:
        missing = np.array([is_missing(value) for value in labels.tolist()], dtype=bool)
    if not missing.any():
        return y, pos_label
    present = list(dict.fromkeys(labels[~missing].tolist()))
    found = positive_label(present, True) if pos_label is None else pos_label
    if found is None or present != [found]:
        raise ValueError(f"y {label_problem(present, True, 'pos_label is that of the positives')}")
    return np.where(missing, 0, 1), 1


def _word(value: Any) -> str:
    if isinstance(value, str):
        value = value.strip().lower()
        try:
            value = float(value)
        except ValueError:
            return value
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return str(value).lower()
