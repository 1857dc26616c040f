"""The density ratio p_nu/p_de as a network, trained by Chainer."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from pu_shift._chainer import require_chainer
from pu_shift._checks import one_of
from pu_shift._seeds import Seed, child
from pu_shift.device import Device, to_numpy
from pu_shift.models import (
    MLP,
    SoftplusLink,
    check_one_score,
    link_from_state,
    link_to_state,
    score_rows,
    sizes_of,
)
from pu_shift.ratios.base import DensityRatio, State
from pu_shift.risks import RatioRisk
from pu_shift.training import train

OUTPUTS = ("softplus", None)
# Part of π that c is by default. At c = π, the bound, the corrected part estimates
# (1 − π)E_n[½w²], which is nearly 0 where the classes lie apart: its noise then halts the training
# every other step. No part of π was best at every π.
SHARE_OF_PRIOR = 0.75


class DeepRatio(DensityRatio, BaseEstimator):
    r"""A density ratio as a network, by least squares with a non-negative correction.

    .. math:: \min_w\ \tfrac12\,\mathbb E_\mathrm{de}[w^2] - \mathbb E_\mathrm{nu}[w],
              \qquad w(x) = \log(1 + e^{g(x)}) \ge 0

    That is DRPU (Nakajima & Sugiyama, *Machine Learning*, 2023, arXiv:2107.05045), with the
    correction of Kato & Teshima (ICML 2021, arXiv:2006.06979): see
    :class:`pu_shift.risks.RatioRisk`. Training knows no test prior and no cost, so that one
    network serves all of them.

    Parameters
    ----------
    model
        A Chainer link that maps rows to one score g each, such as :class:`pu_shift.MLP`. A copy of
        it is trained, on features as they are.
    share
        c of the correction, the multiple of p_nu that p_de is known to exceed. The paper's bound
        is one over the largest ratio: 0 ≤ c ≤ π, since p_p/p_u ≤ 1/π. In the code of DRPU's
        authors c is 0 unless it is set, and within 0.025 of π in their settings for images.
        ``None`` is ¾π, with π as a classifier is told or estimates it, and 0 without a
        classifier. It is a compromise, seen on one draw of MNIST with 500 positives: c = 0
        over-fitted at π = 0.3, and c = π ranked rows worse than c = ½π at π = 0.7. Give
        ``share=prior`` for the bound itself.
    output
        ``'softplus'`` as above; ``None`` takes w = g of a link whose scores are never negative.
    lam, n_steps, n_batches, learning_rate
        As for :func:`pu_shift.training.train`.
    random_state
        Seed of the mini-batches; ``None`` takes the classifier's, and 0 without one.
    device
        The device where it is trained and evaluated; ``None`` takes the classifier's, and the CPU
        without one.

    Examples
    --------
    >>> from pu_shift import MLP
    >>> rng = np.random.default_rng(0)
    >>> X_p, X_u = rng.normal(1.0, 1.0, (200, 1)), rng.normal(0.0, 1.5, (800, 1))
    >>> ratio = DeepRatio(MLP(1, n_units=20, n_hidden=1), share=0.3).fit(X_p, X_u)
    >>> bool(ratio([[1.0]])[0] > 1.0 > ratio([[-2.0]])[0])
    True
    """

    model_: Any

    def __init__(
        self,
        model: Any = None,
        *,
        share: float | None = None,
        output: str | None = "softplus",
        lam: float = 0.0,
        n_steps: int = 500,
        n_batches: int | None = 5,
        learning_rate: float = 1e-3,
        random_state: Seed | None = None,
        device: Any = None,
    ) -> None:
        self.model = model
        self.share = share
        self.output = output
        self.lam = lam
        self.n_steps = n_steps
        self.n_batches = n_batches
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.device = device

    def for_classifier(self, prior: float, seed: Seed, device: Any) -> DeepRatio:
        """See :meth:`DensityRatio.for_classifier`."""
        known = {"share": SHARE_OF_PRIOR * prior, "random_state": seed, "device": device}
        missing = {name: value for name, value in known.items() if getattr(self, name) is None}
        return clone(self).set_params(**missing)

    def fit(self, numerator: Any, denominator: Any) -> DeepRatio:
        """Fit to a sample of each density; see :meth:`DensityRatio.fit`."""
        require_chainer(type(self).__name__)
        one_of("output", self.output, OUTPUTS)
        risk, model = RatioRisk(0.0 if self.share is None else self.share), self.model
        if not is_link(model):
            raise ValueError(f"model must be a Chainer link, got {type(model).__name__}")
        model = copy.deepcopy(model)
        self.model_ = SoftplusLink(model) if self.output == "softplus" else model
        self.model_.to_device(self._device.name)
        rows = self._sent(numerator), self._sent(denominator)
        with self._device.use():
            check_one_score(model, rows[0])
            train(
                self.model_,
                *rows,
                risk,
                lam=self.lam,
                n_steps=self.n_steps,
                n_batches=self.n_batches,
                learning_rate=self.learning_rate,
                record=(),
                random_state=child(0 if self.random_state is None else self.random_state),
            )
            least = min(float(score_rows(self.model_, X).min()) for X in rows)
        if least < 0.0:
            raise ValueError(
                f"model must give no negative ratio, got {least:.3g} for a training row: use "
                "output='softplus'"
            )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return w(x) for each row, in NumPy; see :meth:`DensityRatio.predict`."""
        with self._device.use():
            return to_numpy(score_rows(self.model_, self._sent(X))).astype(np.float64)

    @property
    def _device(self) -> Device:
        return Device() if self.device is None else self.device

    def _sent(self, X: Any) -> Any:
        return self._device.send(np.asarray(X, dtype=np.float32))

    def _state(self) -> State:
        own = self.model_.link if self.output == "softplus" else self.model_
        if type(own) is not MLP:
            raise ValueError(
                f"model must be a pu_shift.MLP to be saved without code, got {type(own).__name__}: "
                "chainer.serializers.save_npz keeps its arrays, your code the rest"
            )
        return {"output": self.output, "model": link_to_state(own)}

    @classmethod
    def _restore(cls, state: Mapping[str, Any]) -> DeepRatio:
        model = link_from_state(state["model"])
        ratio = cls(model, output=one_of("output", state["output"], OUTPUTS))
        ratio.model_ = SoftplusLink(model) if ratio.output == "softplus" else model
        return ratio


def is_link(item: Any) -> bool:
    """Whether this is a link of Chainer, which is not imported to find out."""
    chainer = sys.modules.get("chainer")
    return chainer is not None and isinstance(item, chainer.Link)


def candidate_to_state(item: Any) -> Any:
    """Return a candidate as plain values, if it is a network or an estimator with one."""
    if is_link(item):
        return {"model": sizes_of(item)}
    if isinstance(item, DeepRatio):
        params = {name: value for name, value in item.get_params(False).items() if name != "device"}
        return {**params, "model": sizes_of(item.model), "deep": True}
    return item


def candidate_from_state(item: Any) -> Any:
    """Return the candidate of plain values; a network has the weights of a new one."""
    if not isinstance(item, Mapping):
        return item
    params = {**item, "model": MLP(**item["model"])}
    return DeepRatio(**params) if params.pop("deep", False) else params["model"]
