"""Table 3 of the paper: no shift, π = 0.3, 0.4, 0.5, 0.7.

Usage: python experiments/table3.py --gpu 0        (--help lists the options)
"""

import sys

from pu_shift.paper.scripts import table_main

if __name__ == "__main__":
    sys.exit(table_main(3))
