"""Cost-weighted error for α = 0.1 … 0.9, and how α and the equivalent π′ agree in practice.

Usage: python experiments/asymmetric.py --trials 10        (--help lists the options)
"""

import sys

from studies import study_main

if __name__ == "__main__":
    sys.exit(study_main("asymmetric"))
