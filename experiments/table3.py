"""Table 3 of the paper: no shift, π = 0.3, 0.4, 0.5, 0.7.

Usage: python experiments/table3.py --gpu 0        (--help lists the options)
"""

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import sys

from pu_shift.paper.scripts import setting_main
from pu_shift.paper.settings import TableSetting

TABLE = TableSetting.no_shift(
    number=3,
    priors=[0.3, 0.4, 0.5, 0.7],  # π, and at once π′ and the π′ that the methods are told
)
DATASETS = ("banana", "ijcnn1", "MNIST", "susy", "cod-rna", "magic")
METHODS = ("u/p uLSIF", "p/u uLSIF", "DH-Lin", "DH-Ker", "Sq-Lin", "Sq-Ker")
TRIALS = 10

if __name__ == "__main__":
    sys.exit(setting_main(TABLE, DATASETS, METHODS, TRIALS))
