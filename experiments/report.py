"""A page and figures that set a folder of results beside the paper.

Usage: python experiments/report.py results/reference        (--help lists the options)
"""

import sys

from pu_shift.report.build import main

if __name__ == "__main__":
    sys.exit(main())
