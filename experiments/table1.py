"""Table 1 of the paper: π = 0.3 → π′ = 0.5, given 0.5, 0.4, 0.3.

Usage: python experiments/table1.py --gpu 0        (--help lists the options)
"""

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import sys

from pu_shift.paper.scripts import setting_main
from pu_shift.paper.settings import TableSetting

TABLE = TableSetting.shift(
    number=1,
    prior=0.3,  # π, of the unlabelled training data
    test_prior=0.5,  # π′, of the test data
    given_priors=[0.5, 0.4, 0.3],  # the π′ that the methods are told, a block of rows each
)
DATASETS = ("banana", "ijcnn1", "MNIST", "susy", "cod-rna", "magic")
METHODS = ("u/p uLSIF", "p/u uLSIF", "DH-Lin", "DH-Ker", "Sq-Lin", "Sq-Ker")
TRIALS = 10

if __name__ == "__main__":
    sys.exit(setting_main(TABLE, DATASETS, METHODS, TRIALS))
