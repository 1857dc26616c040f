"""Models as Chainer links: linear-in-parameter ones, alone or in a stack, and a network."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from pu_shift._chainer import chainer
from pu_shift._checks import one_line, one_of, positive, positive_int, shown
from pu_shift._seeds import Seed, child, renamed_seed
from pu_shift.device import on_device, to_numpy
from pu_shift.ratios.kernels import as_rows, gaussian_kernel, row_chunks


class LinearModel(chainer.Link):
    r"""g(x) = wᵀx + b on the input features (Lin of the paper).

    With ``n_candidates = K`` the link holds K models as the columns of ``W`` (features × K) and
    scores all of them by one GEMM.

    Parameters
    ----------
    n_features
        Number of input features.
    n_candidates
        Number of models K, or ``None`` for a single one with (n,) scores.
    initial_w, initial_b
        Chainer initialisers of ``W`` and ``b``, or numbers.
    dtype
        float32 or float64.

    Attributes
    ----------
    W : chainer.Parameter
        (features, K) weights, K = 1 for a single model.
    b : chainer.Parameter
        (K,) biases.

    Examples
    --------
    >>> model = LinearModel(2, initial_w=1.0)
    >>> model(np.array([[1.0, 2.0]], dtype=np.float32)).array.tolist()
    [3.0]
    """

    def __init__(
        self,
        n_features: int,
        n_candidates: int | None = None,
        initial_w: Any = 0.0,
        initial_b: Any = 0.0,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        n_features = positive_int("n_features", n_features)
        columns = 1 if n_candidates is None else positive_int("n_candidates", n_candidates)
        with suppress(TypeError):
            dtype = np.dtype(dtype)
        if not isinstance(dtype, np.dtype) or dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {shown(dtype)}")
        self.n_candidates, self._n_inputs = n_candidates, n_features
        with chainer.using_config("dtype", dtype), self.init_scope():
            self.W = chainer.Parameter(initial_w, (n_features, columns))
            self.b = chainer.Parameter(initial_b, (columns,))

    def features(self, x: Any) -> Any:
        """Return the (n, features) matrix that the weights multiply: here ``x`` itself."""
        x = on_device("x", x, self.device)
        if x.ndim != 2 or x.shape[1] != self._n_inputs:
            raise ValueError(f"x must be rows of {self._n_inputs} columns, got shape {x.shape}")
        return x.astype(self.W.dtype, copy=False)

    def forward(self, x: Any) -> chainer.Variable:
        """Score rows: (n,) for a single model, (n, K) for a stack."""
        scores = chainer.functions.matmul(self.features(chainer.as_array(x)), self.W) + self.b
        return scores[:, 0] if self.n_candidates is None else scores


class GaussianKernelModel(LinearModel):
    r"""g(x) = Σ_l w_l exp(−‖x − c_l‖²/2σ²) + b (Ker of the paper).

    Centres and width are persistent values: they are saved and moved between devices with the
    parameters. All candidates of a stack share them.

    Parameters
    ----------
    centers
        (m, d) array of kernel centres.
    width
        σ > 0.
    n_candidates, initial_w, initial_b, dtype
        As for :class:`LinearModel`.

    Examples
    --------
    >>> model = GaussianKernelModel([[0.0], [1.0]], 1.0, initial_w=1.0, dtype=np.float64)
    >>> model(np.array([[0.0]])).array.round(4).tolist()
    [1.6065]
    """

    def __init__(
        self,
        centers: Any,
        width: float,
        n_candidates: int | None = None,
        initial_w: Any = 0.0,
        initial_b: Any = 0.0,
        dtype: Any = np.float32,
    ) -> None:
        centers = as_rows("centers", centers)
        super().__init__(centers.shape[0], n_candidates, initial_w, initial_b, dtype)
        self.add_persistent("centers", centers.astype(self.W.dtype))
        self.add_persistent("width", positive("width", width))
        self._n_inputs = centers.shape[1]

    def features(self, x: Any) -> Any:
        """Return the (n, m) kernel values that the weights multiply."""
        return gaussian_kernel(super().features(x), self.centers, float(self.width))


class MLP(chainer.Chain):
    """Multilayer perceptron with ReLU and batch normalisation (Kiryo et al., 2017).

    The default is their network for MNIST: four hidden layers of 300 units.

    Parameters
    ----------
    n_features
        Number of input features.
    n_units
        Units of each hidden layer.
    n_hidden
        Number of hidden layers.
    random_state
        Seed of the initial weights, drawn with variance 2/(inputs of the layer).

    Examples
    --------
    >>> model = MLP(2, n_units=8, n_hidden=1)
    >>> model(np.zeros((3, 2), dtype=np.float32)).shape
    (3,)
    """

    @renamed_seed
    def __init__(
        self, n_features: int, n_units: int = 300, n_hidden: int = 4, random_state: Seed = 0
    ) -> None:
        super().__init__()
        self.n_features = positive_int("n_features", n_features)
        self.n_units = positive_int("n_units", n_units)
        self.n_hidden = positive_int("n_hidden", n_hidden)
        rng = np.random.default_rng(child(random_state))
        sizes = [n_features, *[n_units] * n_hidden, 1]
        with chainer.using_config("dtype", np.dtype(np.float32)), self.init_scope():
            for layer, (n_in, n_out) in enumerate(zip(sizes, sizes[1:])):
                scale = (2.0 / n_in) ** 0.5
                weights = rng.normal(0.0, scale, (n_out, n_in)).astype(np.float32)
                # Batch normalisation has a bias of its own.
                last = layer == n_hidden
                linear = chainer.links.Linear(n_in, n_out, nobias=not last, initialW=weights)
                setattr(self, f"linear{layer}", linear)
                if not last:
                    setattr(self, f"norm{layer}", chainer.links.BatchNormalization(n_out))

    def forward(self, x: Any) -> chainer.Variable:
        """Score rows: (n,)."""
        for layer in range(self.n_hidden):
            x = getattr(self, f"norm{layer}")(getattr(self, f"linear{layer}")(x))
            x = chainer.functions.relu(x)
        return getattr(self, f"linear{self.n_hidden}")(x)[:, 0]


class SoftplusLink(chainer.Chain):
    """log(1 + exp(g(x))) > 0 of the scores g of another link."""

    def __init__(self, link: chainer.Link) -> None:
        super().__init__()
        with self.init_scope():
            self.link = link

    def forward(self, x: Any) -> chainer.Variable:
        """Return the values of rows: (n,)."""
        return chainer.functions.softplus(scores_of(self.link, x))


def check_one_score(model: chainer.Link, rows: Any) -> None:
    """Refuse a link that cannot score the rows, or gives more than one score for each."""
    try:
        shape = score_rows(model, rows[:1]).shape
    except Exception as error:  # a link is the user's code
        raise ValueError(
            f"model cannot score a row of {rows.shape[1]} columns: {one_line(error)}"
        ) from error
    if shape != (1,):
        raise ValueError(f"model must give one score per row, got shape {shape} for one row")


def score_rows(model: chainer.Link, X: Any) -> Any:
    """Score rows with a trained link, in chunks and without a graph: (n,), or (n, K) of a stack."""
    with (
        chainer.using_device(model.device),
        chainer.using_config("train", False),
        chainer.no_backprop_mode(),
    ):
        return model.xp.concatenate(
            [scores_of(model, chunk).array for chunk in row_chunks(X, 8192)]
        )


def scores_of(model: chainer.Link, rows: Any) -> chainer.Variable:
    """Apply a link to rows: (n,) scores, also of a link that gives (n, 1), or (n, K)."""
    scores = model(rows)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.ndim not in (1, 2) or len(scores) != len(rows):
        raise ValueError(
            f"model must give scores for each row, got shape {scores.shape} for {len(rows)} rows"
        )
    return scores


def sizes_of(model: Any) -> dict[str, int]:
    """Return the arguments that make a network like this one."""
    if type(model) is not MLP:
        raise ValueError(
            f"model must be a pu_shift.MLP to be saved without code, got {type(model).__name__}"
        )
    return {name: getattr(model, name) for name in ("n_features", "n_units", "n_hidden")}


def link_to_state(model: chainer.Link) -> dict[str, Any]:
    """Return the kind of a link, and its parameters and persistent values on the host."""
    serializer = chainer.serializers.DictionarySerializer()
    serializer.save(model)
    values = {name: np.asarray(to_numpy(value)) for name, value in serializer.target.items()}
    sizes = None if type(model) in (LinearModel, GaussianKernelModel) else sizes_of(model)
    return {"kind": type(model).__name__, "sizes": sizes, "values": values}


def link_from_state(state: Mapping[str, Any]) -> Any:
    """Return the link of a state, if its values have the shapes that they should have."""
    kind = one_of("kind", state["kind"], ("LinearModel", "GaussianKernelModel", "MLP"))
    values = state["values"]
    model: Any
    if kind == "MLP":
        model = _network(state["sizes"], values)
    elif kind == "LinearModel":
        model = LinearModel(len(values["W"]), dtype=values["W"].dtype)
    else:
        width = positive("width", values["width"])
        model = GaussianKernelModel(values["centers"], width, dtype=values["W"].dtype)
    expected = link_to_state(model)["values"]
    if {name: np.shape(value) for name, value in values.items()} != {
        name: np.shape(value) for name, value in expected.items()
    }:
        raise ValueError(f"values must be those of a {kind}")
    chainer.serializers.NpzDeserializer(values).load(model)
    return model


def _network(sizes: Mapping[str, int], values: Mapping[str, Any]) -> MLP:
    """Make a network, if its weights are there: any size can be asked for."""
    n_features, n_units, n_hidden = (
        positive_int(name, sizes[name]) for name in ("n_features", "n_units", "n_hidden")
    )
    needed = n_units * (n_features + n_units * (n_hidden - 1))
    if needed > sum(np.size(value) for value in values.values()) or n_hidden > len(values):
        raise ValueError("the network is larger than its arrays")
    return MLP(n_features, n_units, n_hidden)
