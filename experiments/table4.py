"""Table 4 of the paper: π = 0.5 → π′ = 0.3, given 0.3, 0.4, 0.5 (appendix).

Usage: python experiments/table4.py --gpu 0        (--help lists the options)
"""

import sys

from pu_shift.paper.scripts import table_main

if __name__ == "__main__":
    sys.exit(table_main(4))
