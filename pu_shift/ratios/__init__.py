"""Density ratios p_p/p_u and p_u/p_p, and their estimators."""
