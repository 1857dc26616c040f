"""``python -m pu_shift``: the ``pu-shift`` command."""

import sys

from pu_shift.cli import main

if __name__ == "__main__":
    sys.exit(main())
