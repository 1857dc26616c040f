"""What each choice of the protocol changes: one field at a time, on Tables 1-3.

Usage: python experiments/protocol_search.py        (--help lists the options)
"""

import sys

from pu_shift.experiment.ablation import main

if __name__ == "__main__":
    sys.exit(main())
