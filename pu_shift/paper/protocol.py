"""The choices that a number in a table depends on, in one frozen dataclass.

The paper states few of them; each field says whether it does and, where it
does not, why the value was chosen. ``docs/PROTOCOL.md`` is made from this file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pu_shift._checks import one_of, positive, positive_int
from pu_shift.candidates import check_grid
from pu_shift.classifiers import DensityRatioClassifier, RiskMinimizationClassifier
from pu_shift.paper.settings import EXTRA_METHODS, METHODS
from pu_shift.risks import CORRECTIONS

SCALINGS = ("none", "standard", "minmax")
STATED, CHOSEN = "stated in the paper", "chosen"


def _stated(default: Any, where: str) -> Any:
    return field(default=default, metadata={"origin": STATED, "why": where})


def _chosen(default: Any, why: str) -> Any:
    return field(default=default, metadata={"origin": CHOSEN, "why": why})


@dataclass(frozen=True)
class Protocol:
    """The experimental protocol. Each field's reason is in its metadata.

    Examples
    --------
    >>> Protocol().n_p, Protocol(n_folds=3).n_folds
    (500, 3)
    >>> Protocol(n_folds=1)
    Traceback (most recent call last):
    ...
    ValueError: n_folds must be an integer >= 2, got 1
    """

    n_p: int = _stated(500, "“500 positive patterns” (Datasets)")
    n_u: int = _stated(2000, "“2,000 unlabeled patterns” (Datasets)")
    n_test: int = _stated(500, "“500 patterns” (Datasets)")
    counts: str = _chosen(
        "exact",
        "class counts of U and of the test sets are π·n and π′·n exactly: cells printed with "
        "standard error 0.0 sit exactly on π′ or 1 − π′, which binomial counts cannot give",
    )
    feature_scaling: str = _chosen(
        "none",
        "features are raw ('none'), MNIST's pixels 0 to 255 included; or 'standard' or 'minmax' "
        "(each feature in [0, 1]), fitted on P ∪ U: with either Sq-Lin on MNIST is 11 to 14 "
        "points too good, and DH-Lin on cod-rna 17 to 29 too low",
    )
    n_folds: int = _chosen(5, "5-fold cross-validation, the habit of the field")
    n_centers: int = _chosen(
        125,
        "Gaussian centres of uLSIF, drawn from P ∪ U: with 100 p/u is too low on MNIST, with 150 "
        "u/p is too high on ijcnn1 and magic",
    )
    ker_centers: int = _chosen(
        125,
        "Gaussian centres of the Ker models, the same as uLSIF's: with more of them banana is too "
        "high, with fewer MNIST too low",
    )
    width_factors: tuple[float, ...] = _chosen(
        (1 / 8, 1 / 4, 1 / 2, 1.0, 3 / 2, 2.0),
        "Gaussian widths of uLSIF, times the median distance within P ∪ U; absolute widths cannot "
        "serve raw features that differ in scale by 10³",
    )
    ker_width_factors: tuple[float, ...] = _chosen(
        (0.525, 1.375),
        "widths of the Ker models, in the same units: banana and MNIST are printed as the "
        "narrow one has them, ijcnn1 and susy as the wide one",
    )
    ker_scaling: str | None = _chosen(
        "rms",
        "each Gaussian basis of the Ker models is divided by its root mean square over P ∪ U "
        "('rms'), or not (null): without it MNIST, whose patterns are far from every centre, is "
        "trained several times more slowly than the others",
    )
    ratio_lams: tuple[float, ...] = _chosen(
        (1e-2, 1e-1), "λ of uLSIF; with λ = 10⁻³ ijcnn1 comes out 9 to 12 points too good"
    )
    clip_coefficients: bool = _chosen(
        False, "uLSIF's coefficients are not clipped at 0: clipping costs up to 33 points"
    )
    correction: str | None = _chosen(
        None,
        "risk minimisation uses the unbiased risk (null), or the non-negative one with its "
        "negative part cut at 0 ('max') or ascended ('ascent')",
    )
    learning_rate: float = _chosen(1e-3, "AMSGrad's default in Chainer")
    n_batches: int = _chosen(
        5, "mini-batches per epoch: 500 rows each, from one shuffled pool of P and U"
    )
    n_steps: int = _chosen(
        500,
        "AMSGrad steps of the Lin models, 100 epochs: the published models are early-stopped, "
        "with ten times as many single cells of ijcnn1 are up to 35 points better",
    )
    ker_steps: int = _chosen(
        250, "AMSGrad steps of the Ker models, 50 epochs: with more of them banana is too high"
    )
    lin_lams: tuple[float, ...] = _chosen(
        (0.0, *(10.0**k for k in range(-11, 0))),
        "λ of the Lin models: as many candidates as widths × λ of the kernel methods",
    )
    ker_lams: tuple[float, ...] = _chosen(
        (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2),
        "λ of the Ker models, and of the choice of their width",
    )
    ker_width: str = _chosen(
        "ratio",
        "the Ker models take that of their widths with which p/u uLSIF has the best score in "
        "cross-validation ('ratio'), or choose it by their own risk ('risk'), which prefers narrow "
        "widths everywhere",
    )
    criterion: str = _chosen(
        "surrogate",
        "risk minimisation selects by the held-out PU-shift risk at the given prior with the "
        "training loss ('surrogate') or the zero-one loss ('zero_one')",
    )

    def __post_init__(self) -> None:
        sizes = ("n_p", "n_u", "n_test", "n_centers", "ker_centers")
        for name in (*sizes, "n_batches", "n_steps", "ker_steps"):
            positive_int(name, getattr(self, name))
        positive_int("n_folds", self.n_folds, least=2)
        object.__setattr__(self, "learning_rate", positive("learning_rate", self.learning_rate))
        one_of("counts", self.counts, ("exact", "binomial"))
        one_of("feature_scaling", self.feature_scaling, SCALINGS)
        one_of("correction", self.correction, CORRECTIONS)
        one_of("ker_scaling", self.ker_scaling, (None, "rms"))
        one_of("ker_width", self.ker_width, ("ratio", "risk"))
        one_of("criterion", self.criterion, ("surrogate", "zero_one"))
        one_of("clip_coefficients", self.clip_coefficients, (True, False))
        grids = [item.name for item in fields(self) if isinstance(item.default, tuple)]
        for name in grids:
            grid = check_grid(name, getattr(self, name), allow_zero=name.endswith("lams"))
            object.__setattr__(self, name, tuple(float(value) for value in grid))

    def estimator(
        self,
        method: str,
        prior: float,
        test_prior: float | None = None,
        *,
        gpu: int = -1,
        random_state: Any = 0,
    ) -> DensityRatioClassifier | RiskMinimizationClassifier:
        """Return a method of the paper: the estimator that the tables fit.

        Parameters
        ----------
        method
            One of the six names in the tables, or ``'p/u uLSIF-Lin'``.
        prior, test_prior
            π, and the π′ that the method is given; by default no shift.
        gpu
            The CUDA device, or −1 for the CPU.
        random_state
            Seed of everything random in fitting. The tables give each training set its own.

        Returns
        -------
        DensityRatioClassifier or RiskMinimizationClassifier
            Not yet fitted: call ``fit_pu(X_p, X_u)``.

        Examples
        --------
        >>> Protocol().estimator("DH-Lin", prior=0.3, test_prior=0.5).loss
        'double_hinge'
        """
        one_of("method", method, (*METHODS, *EXTRA_METHODS))
        common: dict[str, Any] = {
            "prior": prior,
            "test_prior": test_prior,
            "n_folds": self.n_folds,
            "gpu": gpu,
            "random_state": random_state,
        }
        if "uLSIF" in method:
            return DensityRatioClassifier(
                direction=method[:3],
                estimator="ulsif",
                basis="linear" if method.endswith("-Lin") else "gaussian",
                n_centers=self.n_centers,
                width_factors=self.width_factors,
                lams=self.ratio_lams,
                clip_coefficients=self.clip_coefficients,
                **common,
            )
        kernel = method.endswith("-Ker")
        return RiskMinimizationClassifier(
            loss="double_hinge" if method.startswith("DH") else "squared",
            basis="gaussian" if kernel else "linear",
            correction=self.correction,
            n_centers=self.ker_centers,
            width_factors=self.ker_width_factors,
            width_selection=self.ker_width,
            basis_scaling=self.ker_scaling,
            scaling=None,
            safe=False,
            lams=self.ker_lams if kernel else self.lin_lams,
            criterion=self.criterion,
            n_steps=self.ker_steps if kernel else self.n_steps,
            n_batches=self.n_batches,
            learning_rate=self.learning_rate,
            **common,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON.

        Returns
        -------
        dict
            Name to value; tuples become lists.

        Examples
        --------
        >>> Protocol().as_dict()["n_p"]
        500
        """
        return json.loads(json.dumps(asdict(self)))


def load_protocol(overrides: str | Path | Mapping[str, Any] | None = None) -> Protocol:
    """Return the protocol, with some fields changed for a study.

    Parameters
    ----------
    overrides
        A JSON file or a mapping from field to value.

    Returns
    -------
    Protocol
        The protocol.

    Raises
    ------
    ValueError
        When the file cannot be read, or a field or its value is unknown.

    Examples
    --------
    >>> load_protocol({"n_centers": 50}).n_centers
    50
    >>> load_protocol({"centres": 50})
    Traceback (most recent call last):
    ...
    ValueError: protocol has no field 'centres'
    """
    if overrides is None:
        return Protocol()
    if not isinstance(overrides, Mapping):
        try:
            overrides = json.loads(Path(overrides).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or f"not JSON ({error})"
            raise ValueError(f"protocol {overrides}: {reason}") from None
        if not isinstance(overrides, dict):
            raise ValueError("protocol must be a JSON object of fields and values")
    known = {item.name for item in fields(Protocol)}
    for name in overrides:
        if name not in known:
            raise ValueError(f"protocol has no field {name!r}")
    return replace(Protocol(), **overrides)


def protocol_markdown() -> str:
    """Return the text of ``docs/PROTOCOL.md``.

    Returns
    -------
    str
        One row per field: value, whether the paper states it, and why.

    Examples
    --------
    >>> protocol_markdown().splitlines()[0]
    '# The protocol'
    """
    lines = [
        "# The protocol",
        "",
        "The choices that a number in a table depends on. One protocol serves all datasets,",
        "methods and tables. This page is made from `pu_shift/paper/protocol.py` by",
        "`make docs`, and a test keeps the two equal.",
        "",
        "Besides: ten trials, and the standard error over them (stated in the paper); rows are",
        "drawn without replacement, and no row is in two of P, U and a test set (chosen).",
        "[datasets/README.md](../datasets/README.md) says which part and which class of each",
        "dataset is used, [REPRODUCTION.md](REPRODUCTION.md) how means are compared with the",
        "printed ones and set in boldface.",
        "",
        "| field | value | origin | reason |",
        "|---|---|---|---|",
    ]
    for item in fields(Protocol):
        value = json.dumps(getattr(Protocol(), item.name))
        lines.append(
            f"| `{item.name}` | `{value}` | {item.metadata['origin']} | {item.metadata['why']} |"
        )
    return "\n".join(lines) + "\n"
