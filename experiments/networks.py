"""One network, trained in three ways: by nnPU, by nnPU-shift, and as a density ratio.

Risks are minimised again for each condition; the ratio is fitted once, told no prior, and serves
all of them. Beside them p/u uLSIF. The priors are given, told wrongly (π and π′ by 0.1, in
opposite directions that change from trial to trial), or estimated. Five times the rows:
``--protocol experiments/networks_large.json``.

Usage: python experiments/networks.py --datasets MNIST --trials 10        (--gpu 0 on a GPU)
"""

from __future__ import annotations

from pu_shift_start import answer_interrupts

answer_interrupts(__name__)  # before the imports, which take a second

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from studies import Rows, Study, StudyOptions, study_main

from pu_shift import MLP, DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.estimation.test_prior import estimate_test_prior
from pu_shift.paper.settings import TABLES
from pu_shift.paper.store import text
from pu_shift.ratios.deep import DeepRatio

# The π′ of the paper's tables for each π.
PAIRS: dict[float, list[float]] = {}
for block in (block for table in TABLES.values() for block in table.blocks):
    if block.test_prior not in PAIRS.setdefault(block.prior, []):
        PAIRS[block.prior].append(block.test_prior)
RISKS = ("nnPU", "nnPU-shift")
RATIOS = ("deep ratio", "p/u uLSIF")
TOLD = ("", "wrong: ", "estimated: ")
SECONDS = ("seconds: nnPU-shift", "seconds: deep ratio")
UNITS, HIDDEN, BATCH_ROWS = 100, 2, 500
# Of up to 2,500 rows, and of more.
STEPS = (300, 600)
# Draw 0 served to look at settings; what is reported comes from the draws after it.
FIRST_TRIAL = 1


def shift_name(prior: float, test_prior: float) -> str:
    """Name a pair of priors."""
    return f"{prior:g} → {test_prior:g}"


def points(options: StudyOptions) -> Iterator[tuple[str, str]]:
    """Yield the pairs of priors and what is measured at each."""
    for prior, test_priors in PAIRS.items():
        for test_prior in test_priors:
            for told in TOLD:
                for name in (*RISKS, *RATIOS):
                    yield shift_name(prior, test_prior), told + name
            for name in SECONDS:
                yield shift_name(prior, test_prior), name


def network_options(sample: Any, trial: int) -> tuple[MLP, dict[str, Any]]:
    """Return a network, and how it is trained by every method."""
    n = len(sample.positives) + len(sample.unlabeled)
    steps = {"n_steps": STEPS[n > 2500], "n_batches": max(1, n // BATCH_ROWS)}
    network = MLP(sample.positives.shape[1], UNITS, HIDDEN, random_state=trial)
    return network, {**steps, "learning_rate": 1e-3}


@dataclass
class Minimisers:
    """Networks trained by nnPU and nnPU-shift with given priors, each once."""

    samples: tuple[Any, Any]
    options: dict[str, Any]
    seconds: float = 0.0
    known: dict[tuple[float, float | None], Any] = field(default_factory=dict)

    def fitted(self, prior: float, test_prior: float | None) -> Any:
        """Return the network trained by nnPU, or by nnPU-shift if a test prior is given."""
        if (prior, test_prior) not in self.known:
            # The comparison is with networks as they are: no fit becomes a constant.
            fixed = {"correction": "ascent", "loss": "logistic", "safe": False}
            classifier = RiskMinimizationClassifier(prior, test_prior, **fixed, **self.options)
            start = time.process_time()
            self.known[prior, test_prior] = classifier.fit_pu(*self.samples)
            self.seconds = time.process_time() - start
        return self.known[prior, test_prior]


def run(dataset: str, trial: int, options: StudyOptions) -> Rows:
    """Return test accuracies in percent, and the seconds of a fit, at every pair of priors."""
    trial += FIRST_TRIAL
    wrong = 0.1 if trial % 2 else -0.1
    rows = []
    for prior, test_priors in PAIRS.items():
        sample = options.draw(dataset, trial, prior, *test_priors)
        largest = max(np.abs(part).max() for part in (sample.positives, sample.unlabeled))
        scaled = sample.positives / largest, sample.unlabeled / largest
        network, training = network_options(sample, trial)
        start = time.process_time()
        deep = DensityRatioClassifier(estimator=DeepRatio(network, **training), gpu=options.gpu)
        deep.fit_pu(*scaled)
        seconds = {"deep ratio": time.process_time() - start}
        minimisers = Minimisers(scaled, {"model": network, **training, "gpu": options.gpu})
        ulsif = options.fit("p/u uLSIF", sample, prior, [prior])[prior]

        for test_prior in test_priors:
            X, y = sample.tests[test_prior]
            point = {"shift": shift_name(prior, test_prior)}
            estimates = [
                estimate_test_prior(ratio.set_params(prior=deep.prior_), rows_of).test_prior
                for ratio, rows_of in ((deep, X / largest), (ulsif, X))
            ]
            for told, pi, (of_deep, given) in (
                ("", prior, (test_prior, test_prior)),
                ("wrong: ", round(prior + wrong, 6), [round(test_prior - wrong, 6)] * 2),
                ("estimated: ", deep.prior_, estimates),
            ):
                values = {
                    "nnPU": minimisers.fitted(pi, None).score(X / largest, y),
                    "nnPU-shift": minimisers.fitted(pi, given).score(X / largest, y),
                    "deep ratio": deep.set_params(prior=pi, test_prior=of_deep).score(
                        X / largest, y
                    ),
                    "p/u uLSIF": ulsif.set_params(prior=pi, test_prior=given).score(X, y),
                }
                rows += [
                    {**point, "method": told + name, "value": 100.0 * value}
                    for name, value in values.items()
                ]
            seconds["nnPU-shift"] = minimisers.seconds
            rows += [
                {**point, "method": f"seconds: {name}", "value": value}
                for name, value in seconds.items()
            ]
    return rows


STUDY = Study(
    name="networks",
    title="A network trained in three ways, and p/u uLSIF",
    run=run,
    points=points,
    axis="shift",
    axis_label="π → π′",
    axis_check=text,
    value_label="accuracy (%)",
    methods=(),
)

if __name__ == "__main__":
    sys.exit(study_main(STUDY))
