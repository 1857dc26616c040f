"""The whole pipeline with π estimated instead of given.

Usage: python experiments/estimated_prior.py --trials 10        (--help lists the options)
"""

import sys

from studies import study_main

if __name__ == "__main__":
    sys.exit(study_main("estimated_prior"))
