"""Table 6 of the paper: π = 0.4 → π′ = 0.8, given 0.8, 0.6, 0.4 (appendix).

Usage: python experiments/table6.py --gpu 0        (--help lists the options)
"""

import sys

from pu_shift.paper.scripts import table_main

if __name__ == "__main__":
    sys.exit(table_main(6))
