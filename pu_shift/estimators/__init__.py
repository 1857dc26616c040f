"""Scikit-learn estimators for positive and unlabelled data."""
