"""Estimates of the class prior by every estimator at π = 0.3, 0.5, 0.7.

Usage: python experiments/class_prior.py --trials 10        (--help lists the options)
"""

import sys

from studies import study_main

if __name__ == "__main__":
    sys.exit(study_main("class_prior"))
