"""The methods in a setting of your own, on a known dataset or on your file.

Usage: python experiments/custom.py --prior 0.2 --test-prior 0.6 --given-prior 0.6 \
           --dataset path.csv --label kind --positive sick
"""

import sys

from pu_shift.paper.scripts import custom_main

if __name__ == "__main__":
    sys.exit(custom_main())
