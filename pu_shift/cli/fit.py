"""``pu-shift fit``."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

import numpy as np

from pu_shift._chainer import require_chainer
from pu_shift._sklearn import restore_scaler
from pu_shift.cli.common import CommandError, add_seed, check_out, cluster_of, share, stage
from pu_shift.cli.samples import FILES, add_files, estimated_prior, read_samples
from pu_shift.losses import surrogates
from pu_shift.priors import Condition

TEXTS = {
    "help": "learn a classifier from a CSV file or Parquet",
    "description": "Learn a classifier from positive and unlabelled rows and save it.",
    "epilog": f"{FILES}\nexamples:\n  pu-shift fit data.csv --label labelled --prior 0.3 "
    "--out model.npz\n  pu-shift fit data.csv.gz --label labelled --drop id,name --out model.npz",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_files(parser)
    parser.add_argument(
        "--out", required=True, metavar="MODEL", help="the model file to write, .npz"
    )
    parser.add_argument(
        "--method",
        choices=("ratio", "risk"),
        default="ratio",
        help="ratio: density ratio, takes new priors and costs without a new fit (default); "
        "risk: risk minimisation, for one condition",
    )
    parser.add_argument("--prior", type=share, help="share of positives (default: estimated)")
    parser.add_argument("--test-prior", type=share, help="share at test (default: prior)")
    parser.add_argument("--alpha", type=share, default=0.5, help="false-alarm cost (default: 0.5)")
    parser.add_argument(
        "--basis",
        choices=("gaussian", "linear"),
        help="--method ratio: uLSIF with this basis (default: an average of several ratios); "
        "--method risk: that of the model (default: gaussian)",
    )
    parser.add_argument(
        "--loss", choices=surrogates(), help="of --method risk only (default: squared)"
    )
    parser.add_argument(
        "--non-negative", action="store_true", help="of --method risk only: non-negative correction"
    )
    parser.add_argument(
        "--no-scale",
        action="store_true",
        help="do not scale the features to unit variance (an average of ratios scales by itself)",
    )
    parser.add_argument("--gpu", type=int, default=-1, help="CUDA device; -1 is the CPU (default)")
    add_seed(parser)


def run(options: argparse.Namespace) -> int:
    """Fit a classifier and save it."""
    if options.method == "ratio" and (options.loss is not None or options.non_negative):
        name = "loss" if options.loss is not None else "non-negative"
        raise CommandError(f"--{name} needs --method risk, the method is ratio")
    if options.method == "risk":
        require_chainer("--method risk")
    check_out(options.out, options.data)
    # A bad test prior or alpha fails before the work.
    Condition(options.prior or 0.5, options.test_prior, options.alpha)
    from sklearn.pipeline import Pipeline

    from pu_shift.files.models import save_model

    with cluster_of(options):
        names, X_p, X_u, preparation = read_samples(options)
        prior, how, interval, estimate = options.prior, "given", None, None
        if prior is None:
            estimate = estimated_prior(X_p, X_u, options.seed)
            prior, how = estimate.prior, f"estimated by {estimate.method}"
            interval = estimate.low, estimate.high
        classifier = _new_classifier(options, prior)
        scaler = None if options.no_scale else _fitted_scaler(X_p, X_u)
        with stage("fitting"):
            classifier.fit_pu(*(_scaled(scaler, X) for X in (X_p, X_u)))
        classifier.prior_interval_ = interval
    steps = {
        "prepare": preparation if options.prepare else None,
        "scale": scaler,
        "classify": classifier,
    }
    used = [(name, step) for name, step in steps.items() if step is not None]
    # As scikit-learn does for a data frame.
    used[0][1].feature_names_in_ = names
    save_model(options.out, classifier if len(used) == 1 else Pipeline(used))
    condition = classifier.condition
    print(
        f"{options.out}: fitted to {X_p.shape[0]} positive and {X_u.shape[0]} unlabelled rows "
        f"of {len(names)} features; prior {condition.prior:.3f} ({how}), test prior "
        f"{condition.test_prior:.3f}, alpha {condition.alpha:.3g}"
    )
    if estimate is not None and estimate.is_rough:
        from pu_shift.estimation.class_prior import ROUGH

        print(f"note: {ROUGH}")
    _print_summary(f"pu-shift evaluate {shlex.quote(options.out)}", options, classifier)
    return 0


def _print_summary(command: str, options: argparse.Namespace, classifier: Any) -> None:
    """Say in four lines how good the model is on rows that its parts have not seen."""
    if options.method == "risk":
        print(f"rows that it has not seen say how good it is: '{command} held_out.csv --label y'")
        return
    from pu_shift.evaluation.evaluator import cross_fitted, evaluation_of

    rows, source = cross_fitted(classifier, classifier.condition)
    found = evaluation_of(classifier, rows, source, seed=np.random.SeedSequence(options.seed))
    print(f"how good it is there, with 95% intervals (more: '{command}'):")
    for name in ("recall", "false_positive_rate", "precision"):
        print(f"  {found.in_words(name)}")
    for note in found.notes:
        print(f"note: {note}")


def _new_classifier(options: argparse.Namespace, prior: float) -> Any:
    from pu_shift.estimators import DensityRatioClassifier, RiskMinimizationClassifier

    shared = {
        "prior": prior,
        "test_prior": options.test_prior,
        "alpha": options.alpha,
        "gpu": options.gpu,
        "random_state": options.seed,
    }
    if options.method == "ratio":
        ratio = "ulsif" if options.basis else "auto"
        return DensityRatioClassifier(**shared, estimator=ratio, basis=options.basis or "gaussian")
    return RiskMinimizationClassifier(
        **shared,
        loss=options.loss or "squared",
        basis=options.basis or "gaussian",
        correction="ascent" if options.non_negative else "auto",
        scaling=None,  # the command's own, or none
    )


def _fitted_scaler(X_p: Any, X_u: Any) -> Any:
    """Return a scaler that was fitted to both samples."""
    from pu_shift.ratios.standardized import mean_and_scale

    mean, scale = mean_and_scale(X_p, X_u)
    return restore_scaler(mean, scale, len(X_p) + len(X_u))


def _scaled(scaler: Any, X: Any) -> Any:
    return X if scaler is None else scaler.transform(X)
