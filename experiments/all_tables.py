"""All seven tables of the paper; training sets are shared between them.

Usage: python experiments/all_tables.py --gpu 0     (--help lists the options)
"""

import sys

from pu_shift.paper.scripts import all_tables_main

if __name__ == "__main__":
    sys.exit(all_tables_main())
