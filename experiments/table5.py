"""Table 5 of the paper: π = 0.3 → π′ = 0.7, given 0.7, 0.5, 0.3 (appendix).

Usage: python experiments/table5.py --gpu 0        (--help lists the options)
"""

import sys

from pu_shift.paper.scripts import table_main

if __name__ == "__main__":
    sys.exit(table_main(5))
