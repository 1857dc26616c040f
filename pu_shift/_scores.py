"""Scores of P and U and their row weights: what they must be, for any array module."""

from __future__ import annotations

from typing import Any

from pu_shift._checks import shown
from pu_shift.device import array_module, beside


def as_columns(scores: Any) -> Any:
    """Return (n,) scores as (n, 1), and others as they are."""
    return scores[:, None] if scores.ndim == 1 else scores


def _check_scores(scores_p: Any, scores_u: Any) -> None:
    for name, scores in (("scores_p", scores_p), ("scores_u", scores_u)):
        if not hasattr(scores, "dtype") or not hasattr(scores, "ndim"):
            raise ValueError(f"{name} must be an array, got {shown(scores)}")
        if scores.ndim not in (1, 2) or scores.dtype.kind != "f":
            raise ValueError(
                f"{name} must be a floating (n,) or (n, K) array, "
                f"got shape {scores.shape} and dtype {scores.dtype}"
            )
        if scores.shape[0] == 0:
            raise ValueError(f"{name} must have at least one row, got shape {scores.shape}")
    if scores_p.shape[1:] != scores_u.shape[1:] or scores_p.dtype != scores_u.dtype:
        raise ValueError(
            "scores_u must have the columns and dtype of scores_p, got "
            f"{scores_u.shape} {scores_u.dtype} for {scores_p.shape} {scores_p.dtype}"
        )


def joined_weights(scores: tuple[Any, Any], weights: tuple[Any, Any]) -> Any:
    """Check scores of P and U and their row weights; return those as one array, or None."""
    _check_scores(*scores)
    if weights[0] is None and weights[1] is None:
        return None
    given = zip(("weights_p", "weights_u"), weights, scores)
    return array_module(scores[0]).concatenate(
        [row_weights(name, part, g, as_columns(g).shape) for name, part, g in given]
    )


def row_weights(name: str, weights: Any, array: Any, shape: tuple[int, int]) -> Any:
    """Return row weights ≥ 0, (n,) or (n, K) or ``None`` for ones, as (n, K) beside an array."""
    xp = array_module(array)
    if weights is None:
        return xp.ones(shape, dtype=array.dtype)
    try:
        weights = beside(weights, array, array.dtype)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {shown(weights)}") from None
    if weights.shape not in (shape[:1], shape):
        raise ValueError(f"{name} must have shape {shape[:1]} or {shape}, got {weights.shape}")
    total = weights.sum(axis=0)
    if not bool(((total > 0) & xp.isfinite(total)).all()) or bool((weights < 0).any()):
        raise ValueError(f"{name} must be non-negative and finite, with a positive sum per model")
    return xp.broadcast_to(as_columns(weights), shape)
