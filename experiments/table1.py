"""Table 1 of the paper: π = 0.3 → π′ = 0.5, given 0.5, 0.4, 0.3.

Usage: python experiments/table1.py --gpu 0        (--help lists the options)
"""

import sys

from pu_shift.paper.scripts import table_main

if __name__ == "__main__":
    sys.exit(table_main(1))
