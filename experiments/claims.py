"""Judge the claims of the paper's discussion from results folders.

Usage: python experiments/claims.py results/DIR [results/DIR ...]
"""

import sys

from pu_shift.paper.claims import main

if __name__ == "__main__":
    sys.exit(main())
