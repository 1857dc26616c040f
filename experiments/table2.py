"""Table 2 of the paper: π = 0.7 → π′ = 0.3, given 0.3, 0.5, 0.7.

Usage: python experiments/table2.py --gpu 0        (--help lists the options)
"""

import sys

from pu_shift.paper.scripts import table_main

if __name__ == "__main__":
    sys.exit(table_main(2))
