"""Judging classifiers without negatives."""
