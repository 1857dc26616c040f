"""Accuracy of every method against the given test prior, 0.05 … 0.95.

Usage: python experiments/robustness.py --trials 10        (--help lists the options)
"""

import sys

from studies import study_main

if __name__ == "__main__":
    sys.exit(study_main("robustness"))
