"""Neither prior is known: estimate both, and see whether their uncertainty matters.

Usage: python examples/unknown_priors.py --figure sensitivity.png
"""

import argparse

import numpy as np

from pu_shift import DensityRatioClassifier, estimate_prior, estimate_test_prior

PRIOR, TEST_PRIOR = 0.3, 0.6


def rows(n, prior, rng):
    """Draw rows of two overlapping classes, and the truth."""
    positive = rng.random(n) < prior
    return rng.normal(np.where(positive, 1.2, -1.2)[:, None], 1.0, (n, 2)), positive


def main(argv=None):
    """Print what is found and what it changes; return the sensitivity."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", help="file for the figure")
    options = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    X_p, X_u, (X, truth) = (
        rows(500, 1.0, rng)[0],
        rows(2000, PRIOR, rng)[0],
        rows(1000, TEST_PRIOR, rng),
    )

    found = estimate_prior(X_p, X_u)
    print(f"π is {PRIOR}, found {found.prior:.2f} ({found.low:.2f} to {found.high:.2f})")
    classifier = DensityRatioClassifier(found.prior).fit_pu(X_p, X_u)
    shift = estimate_test_prior(classifier, X, prior=(found.low, found.high))
    print(f"π′ is {TEST_PRIOR}, found {shift.test_prior:.2f} ({shift.low:.2f} to {shift.high:.2f})")
    classifier.set_params(test_prior=shift.test_prior)
    accuracy = np.mean((classifier.predict(X) == 1) == truth)
    result = classifier.sensitivity(X, (found.low, found.high), (shift.low, shift.high))
    print(f"{accuracy:.1%} are right; {result.n_changed} of {result.n_rows} decisions may change")
    if options.figure:
        result.plot().figure.savefig(options.figure, dpi=150)
    return result


if __name__ == "__main__":
    main()
