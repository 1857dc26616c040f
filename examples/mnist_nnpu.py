"""nnPU-shift with a multilayer perceptron on MNIST under class prior shift.

Three ways to train the same network on the same even-against-odd rows: nnPU
that ignores the shift, the unbiased PU-shift risk, and nnPU-shift. Both
directions of the shift are run, because they differ.

Usage: python examples/mnist_nnpu.py --trials 3        (--gpu 0 on a GPU)
"""

import argparse

import numpy as np

from pu_shift import MLP, RiskMinimizationClassifier
from pu_shift.data import load
from pu_shift.data.sampling import draw
from pu_shift.device import DeviceError, get_device

SHIFTS = ((0.7, 0.3), (0.3, 0.7))
METHODS = {"nnPU": (False, "ascent"), "PU-shift": (True, None), "nnPU-shift": (True, "ascent")}
# Draw 0 served to look at settings; what is reported comes from the draws after it.
FIRST_TRIAL = 1


def main(argv=None):
    """Print the test accuracy of the three, mean and standard error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=3, help="number of draws")
    parser.add_argument("--steps", type=int, default=300, help="AMSGrad steps")
    parser.add_argument("--units", type=int, default=100, help="units of a hidden layer")
    parser.add_argument("--hidden", type=int, default=2, help="hidden layers")
    parser.add_argument("--loss", default="logistic", help="training loss")
    parser.add_argument("--gpu", type=int, default=-1, help="CUDA device; -1 is the CPU")
    options = parser.parse_args(argv)
    try:
        get_device(options.gpu)
    except (ValueError, DeviceError) as error:
        parser.exit(2, f"error: {error}\n")
    results = {}
    for prior, test_prior in SHIFTS:
        print(f"MNIST, even against odd: π = {prior}, π′ = {test_prior}, {options.trials} draws")
        for name, setting in METHODS.items():
            values = [
                accuracy(prior, test_prior, *setting, FIRST_TRIAL + trial, options)
                for trial in range(options.trials)
            ]
            se = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
            print(f"  {name:11} {np.mean(values):5.1f} ({se:.1f}) %", flush=True)
            results[prior, test_prior, name] = values
    return results


def accuracy(prior, test_prior, told, correction, trial, options):
    """Train one network on one draw and return its test accuracy in percent."""
    sample = draw(load("MNIST"), prior, test_prior, trial=trial)
    classifier = RiskMinimizationClassifier(
        prior=prior,
        test_prior=test_prior if told else None,
        correction=correction,
        loss=options.loss,
        model=MLP(784, options.units, options.hidden, seed=trial),
        n_steps=options.steps,
        n_batches=5,
        learning_rate=1e-3,
        # Three ways are compared here, the bad ones too.
        safe=False,
        gpu=options.gpu,
    )
    classifier.fit_pu(sample.positives / 255.0, sample.unlabeled / 255.0)
    X, y = sample.tests[test_prior]
    return 100.0 * classifier.score(X / 255.0, y)


if __name__ == "__main__":
    main()
