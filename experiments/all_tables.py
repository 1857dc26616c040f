"""All seven tables of the paper; training sets are shared between them.

Usage: python experiments/all_tables.py --gpu 0     (--help lists the options)
"""

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import sys

from pu_shift.paper.scripts import all_tables_main

if __name__ == "__main__":
    sys.exit(all_tables_main())
