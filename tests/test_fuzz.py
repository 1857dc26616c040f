"""Whatever a file holds, what comes out is a result or a ``ValueError`` in one line.

The memory stays small. ``make fuzz`` tries more contents than the tests do.
"""

import io
import json
import os
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pu_shift import DensityRatioClassifier, data
from pu_shift.cli import main as command_line
from pu_shift.data import parsers
from pu_shift.files import models
from pu_shift.files.preparation import TablePreparation
from pu_shift.files.tables import read_blocks
from pu_shift.paper.protocol import load_protocol
from pu_shift.paper.store import TrialStore, read_trials
from tests.data import tiny
from tests.mixtures import pu_samples
from tests.paper.simulate import trial

MOST_MEMORY = 64 << 20
fuzzed = settings(
    max_examples=int(os.environ.get("PU_SHIFT_FUZZ", "30")),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def mutations(content):
    """Return contents that differ from a sound one in a few places."""
    places = st.integers(0, max(0, len(content) - 1))

    def changed(edits):
        damaged = bytearray(content)
        for place, length, new in edits:
            damaged[place : place + length] = new
        return bytes(damaged)

    edit = st.tuples(places, st.integers(0, 20), st.binary(max_size=20))
    return st.lists(edit, min_size=1, max_size=4).map(changed)


def archive(**members):
    """Return a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Content of a model file."""
    path = tmp_path_factory.mktemp("model") / "model.npz"
    classifier = DensityRatioClassifier(0.4, widths=1.0, lams=0.1, n_centers=3)
    models.save_model(path, classifier.fit_pu(*pu_samples(9, 20, 0.4, d=2)))
    return path.read_bytes()


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    """Content of a trials.csv."""
    folder = tmp_path_factory.mktemp("trials")
    with TrialStore(folder, {"protocol": {}, "seed": 0}) as store:
        store.append([trial(trial=index) for index in range(3)])
    return (folder / "trials.csv").read_bytes()


def of_bytes(parse):
    """Return a reader of a file by a parser of its content."""
    return lambda path: parse(path.read_bytes())


def rows_of(names):
    """Return a reader of the rows to predict."""
    return lambda path: list(read_blocks(str(path), names, TablePreparation.plain(2)))


def matrix():
    """Return the content of a .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, np.ones((3, 2)))
    return buffer.getvalue()


TEXT = b"a,b,kind\n1.5,2,1\n2.5,3,0\n-1e3,0.25,1\n"
KEEL = b"@relation x\n@attribute a real\n@data\n1.0, 2.0, 1\n3.0, 4.0, 0\n"
TABLES = [TEXT, TEXT.replace(b",", b";"), KEEL]
LIBSVM = [tiny.libsvm()[:200], b"+1 1:2 3:4\n-1 2:1\n"]
# Reader of a file, its name, and sound contents; of a name, the fixture that makes one.
FILES = {
    "table": (of_bytes(parsers.parse_table), "a", TABLES),
    "libsvm": (of_bytes(parsers.parse_libsvm), "a", LIBSVM),
    "idx": (of_bytes(parsers.parse_idx), "a", [tiny.idx(np.arange(12).reshape(3, 4))]),
    "file": (data.load_file, "a", [*TABLES, *LIBSVM]),
    "packed": (data.load_file, "a", [pack(TEXT) for pack in tiny.COMPRESS.values()]),
    "zip": (data.load_file, "a.zip", [archive(a=TEXT), archive(a=TEXT, b=TEXT)]),
    "rows": (
        rows_of(["a", "b"]),
        "a.csv",
        [TEXT, tiny.COMPRESS[".gz"](TEXT), b'a,b\n"1","2"\n,x\n'],
    ),
    "matrix": (rows_of(None), "a.npy", [matrix()]),
    "protocol": (load_protocol, "a.json", [b'{"n_steps": 3, "risk_lams": [0.0, 1.0]}', b"{}"]),
    "model": (models.load_model, "model.npz", "model"),
    "trials": (lambda path: read_trials(path.parent), "trials.csv", "trials"),
}


def harmless(read, path, content):
    """Check that reading a content gives a result or one line, in little memory."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            read(path)
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MOST_MEMORY


@pytest.mark.parametrize("name", FILES)
@fuzzed
@given(choice=st.data())
def test_no_file_breaks_its_reader(name, choice, tmp_path, request):
    read, file, contents = FILES[name]
    if isinstance(contents, str):
        contents = [request.getfixturevalue(contents)]
    content = choice.draw(st.sampled_from(contents).flatmap(mutations) | st.binary(max_size=99))
    harmless(read, tmp_path / file, content)


@fuzzed
@given(choice=st.data())
def test_no_csv_file_breaks_the_command(choice, tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_bytes(choice.draw(mutations(TEXT.replace(b"kind", b"labelled"))))
    arguments = ["fit", str(path), "--label", "labelled", "--prior", "0.3", "--out"]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        status = command_line([*arguments, str(tmp_path / "model.npz")])
    printed = capsys.readouterr()
    assert status in (0, 2)
    # An error has a line, or one for each column; what columns became is told too.
    assert ("error: " in printed.err) == (status == 2)
    assert "Traceback" not in printed.err


@fuzzed
@given(
    header=st.recursive(
        st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=8,
    ),
    field=st.sampled_from(
        ["kind", "params", "classes", "prior", "n_features", "direction", "ratio", "ratio_sums"]
    ),
)
def test_no_header_breaks_the_loader(model, header, field, tmp_path):
    """A file that is whole but forged: its header says anything."""
    with np.load(io.BytesIO(model)) as content:
        arrays = dict(content)
    fields = json.loads(arrays.pop("header").tobytes())
    fields["state"]["steps"][-1][field] = header
    fields["digest"] = models._digest(fields, arrays)
    arrays["header"] = np.frombuffer(json.dumps(fields).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    harmless(models.load_model, tmp_path / "model.npz", buffer.getvalue())
