"""Table 7 of the paper: π = 0.8 → π′ = 0.4, given 0.4, 0.6, 0.8 (appendix).

Usage: python experiments/table7.py --gpu 0        (--help lists the options)
"""

import sys

from pu_shift.paper.scripts import table_main

if __name__ == "__main__":
    sys.exit(table_main(7))
