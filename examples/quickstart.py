"""Quick start: fit once on positive and unlabelled rows, decide under any test prior.

Usage: python examples/quickstart.py --figure quickstart.png
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import pu_shift
from pu_shift.data import load
from pu_shift.data.sampling import draw

PRIOR, TEST_PRIOR = 0.3, 0.7


def main(argv=None):
    """Fit a classifier to the banana data and move its decision boundary without a refit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", metavar="FILE", help="write the figure to this file")
    options = parser.parse_args(argv)
    sample = draw(load("banana"), PRIOR, TEST_PRIOR)
    X_test, y_test = sample.tests[TEST_PRIOR]

    classifier = pu_shift.DensityRatioClassifier(prior=PRIOR)
    classifier.fit_pu(sample.positives, sample.unlabeled)
    before = classifier.score(X_test, y_test)
    classifier.set_params(test_prior=TEST_PRIOR)
    after = classifier.score(X_test, y_test)

    print(f"test rows with π′ = {TEST_PRIOR}, trained at π = {PRIOR}")
    print(f"accuracy if the shift is ignored   {before:.1%}")
    print(f"accuracy after set_params          {after:.1%}  (no refit)")
    if options.figure:
        plot(classifier, sample).savefig(options.figure, dpi=110)
    return before, after


def plot(classifier, sample):
    """Draw P and U, and the boundary for several test priors."""
    figure = Figure(figsize=(7.2, 4.4))
    axes = figure.subplots()
    axes.plot(*sample.unlabeled.T, ".", color="0.75", markersize=3, label="unlabelled")
    axes.plot(*sample.positives.T, ".", color="#D55E00", markersize=3, label="labelled positive")
    grid = np.stack(np.meshgrid(np.linspace(-3.2, 3.2, 160), np.linspace(-2.6, 3.0, 160)), axis=-1)
    rows = grid.reshape(-1, 2).astype(np.float32)
    for test_prior, colour in ((0.1, "#56B4E9"), (PRIOR, "#0072B2"), (TEST_PRIOR, "#000000")):
        scores = classifier.set_params(test_prior=test_prior).decision_function(rows)
        axes.contour(*grid.transpose(2, 0, 1), scores.reshape(160, 160), [0.0], colors=[colour])
        axes.plot([], [], color=colour, label=f"boundary for π′ = {test_prior}")
    axes.set(title="One fit, three test priors", xlabel="first feature", ylabel="second feature")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.subplots_adjust(left=0.09, right=0.68, bottom=0.12, top=0.91)
    return figure


if __name__ == "__main__":
    main()
