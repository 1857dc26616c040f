"""A screening service whose share of positives and costs change every month.

The magic telescope data stand in for any screening task: gamma events are the
positives. Some past positives were confirmed, everything else is unlabelled.
In each month another share of the cases is positive, and the price of a false
alarm moves with the workload. One classifier is fitted once; each month only
names its condition.

Usage: python examples/screening_by_month.py --figure months.png
"""

import argparse

import numpy as np
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_shift import DensityRatioClassifier
from pu_shift.data import load
from pu_shift.data.sampling import draw

PRIOR = 0.4
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun")
TEST_PRIORS = (0.4, 0.3, 0.2, 0.1, 0.5, 0.7)
ALPHAS = (0.5, 0.5, 0.5, 0.8, 0.3, 0.2)


def main(argv=None):
    """Print and draw the cost per case of each month, with and without its condition."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="write the figure to this file")
    parser.add_argument("--trials", type=int, default=5, help="number of draws to average")
    options = parser.parse_args(argv)
    costs = np.mean([costs_of_one_draw(trial) for trial in range(options.trials)], axis=0)

    print(f"trained at π = {PRIOR}; cost per 100 cases, mean of {options.trials} draws")
    print("month  share  alpha  condition ignored  prior told  prior and cost told")
    for row in zip(MONTHS, TEST_PRIORS, ALPHAS, *costs):
        print("{:5}  {:5.0%}  {:5.1f}  {:17.2f}  {:10.2f}  {:19.2f}".format(*row))
    print("all    {:38.2f}  {:10.2f}  {:19.2f}".format(*costs.mean(axis=1)))
    if options.figure:
        plot(costs).savefig(options.figure, dpi=110)
    return costs


def costs_of_one_draw(trial):
    """Return (3, months) costs per 100 cases: ignored, prior told, prior and cost told."""
    sample = draw(load("magic"), PRIOR, TEST_PRIORS, n_test=1000, trial=trial)
    X = np.concatenate([sample.positives, sample.unlabeled])
    y = np.repeat([1, 0], [len(sample.positives), len(sample.unlabeled)])
    service = make_pipeline(StandardScaler(), DensityRatioClassifier(prior=PRIOR))
    service.fit(X, y)
    costs = np.empty((3, len(MONTHS)))
    for month, (test_prior, alpha) in enumerate(zip(TEST_PRIORS, ALPHAS)):
        rows, truth = sample.tests[test_prior]
        told = [{}, {"test_prior": test_prior}, {"test_prior": test_prior, "alpha": alpha}]
        # One evaluation of the kernel serves all three.
        predictions = service[-1].predict_many(service[:-1].transform(rows), told)
        false_alarms = (predictions == 1) & (truth == -1)
        misses = (predictions == 0) & (truth == 1)
        costs[:, month] = 100.0 * np.mean(alpha * false_alarms + (1 - alpha) * misses, axis=1)
    return costs


def plot(costs):
    """Draw the cost of each month."""
    figure = Figure(figsize=(7.2, 3.8))
    axes = figure.subplots()
    places = np.arange(len(MONTHS))
    labels = ("condition ignored", "prior told", "prior and cost told")
    for i, (values, label) in enumerate(zip(costs, labels)):
        colour = ("#777777", "#56B4E9", "#0072B2")[i]
        axes.bar(places + 0.27 * (i - 1), values, 0.25, color=colour, label=label)
    axes.set_xticks(places)
    axes.set_xticklabels(
        [f"{m}\nπ′ = {p}\nα = {a}" for m, p, a in zip(MONTHS, TEST_PRIORS, ALPHAS)]
    )
    axes.set(ylabel="cost per 100 cases", title="One classifier, six months, no refit")
    axes.legend(frameon=False)
    figure.subplots_adjust(left=0.09, right=0.98, bottom=0.2, top=0.9)
    return figure


if __name__ == "__main__":
    main()
