"""Judging classifiers without negatives."""

from pu_shift.evaluation.evaluator import Evaluation, EvaluationWarning, evaluate

__all__ = ["Evaluation", "EvaluationWarning", "evaluate"]
