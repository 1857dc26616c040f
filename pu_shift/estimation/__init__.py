"""Estimates of the class priors, and tests of the assumption of class prior shift."""
