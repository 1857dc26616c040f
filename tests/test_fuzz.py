"""Whatever comes in, what comes out is a result or an error that was promised.

Of the public functions: ``ValueError`` in one line (or a documented subclass,
or `DeviceError`), or Python's ``TypeError`` for an object of another kind
than asked for. Of the file parsers: ``ValueError`` in one line, nothing else.
"""

import inspect
import io
import json
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pu_shift
from pu_shift import data, priors, risks
from pu_shift.cli import main as command_line
from pu_shift.data import parsers
from pu_shift.device import DeviceError
from pu_shift.files import models
from pu_shift.files.tables import read_blocks
from pu_shift.paper.protocol import load_protocol
from pu_shift.paper.store import TrialStore, read_trials
from tests import junk
from tests.data import tiny
from tests.paper.simulate import trial

# How long a call takes is the caller's choice, with these.
WORK = {"n_steps", "n_hidden", "n_units", "max_iterations"}
# scikit-learn's own messages about X have several lines.
CHECKED_BY_SKLEARN = {"DensityRatioClassifier", "RiskMinimizationClassifier", "fit", "score"}
CHECKED_BY_SKLEARN |= {"predict_many", "sensitivity", "estimate_test_prior", "PURiskScorer"}
CHECKED_BY_SKLEARN |= {"evaluate", "pu_scorer"}
MOST_MEMORY = 64 << 20


def names_to_cover():
    """Return the public names of the package, of its theory and of its data."""
    names = {*pu_shift.__all__, *data.__all__}
    for module in (priors, risks, models):
        members = inspect.getmembers(module, inspect.isfunction)
        names |= {name for name, member in members if member.__module__ == module.__name__}
    return {name for name in names if not name.startswith("_")}


def test_every_public_function_is_called():
    # Constants, exceptions, plain records, and the two scorers that are instances.
    no_call = {"NAMES", "DataError", "surrogate_scorer", "zero_one_scorer", "search_path"}
    known = {name.split(".")[0] for name in junk.CALLS}
    assert names_to_cover() - known <= no_call


@pytest.mark.parametrize("name", junk.CALLS)
@settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(choice=st.data())
def test_no_argument_breaks_a_function(name, choice, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, arguments = junk.CALLS[name]
    wrong = choice.draw(st.sets(st.sampled_from(sorted(arguments)), min_size=1, max_size=2))
    for argument in sorted(wrong):
        value = choice.draw(junk.junk, label=argument)
        if not (argument in WORK and isinstance(value, int) and value > 50):
            arguments = {**arguments, argument: value}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            function(**arguments)
        except (TypeError, DeviceError):
            pass
        except OSError:
            assert name == "save_model"
        except ValueError as error:
            paths = [value for value in arguments.values() if isinstance(value, str)]
            own_fault = name not in CHECKED_BY_SKLEARN and not any("\n" in path for path in paths)
            assert "\n" not in str(error) or not own_fault  # noqa: PT017


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
    models.save_model(path, junk.FITTED)
    return path.read_bytes()


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    """Content of a trials.csv."""
    folder = tmp_path_factory.mktemp("trials")
    with TrialStore(folder, {"protocol": {}, "seed": 0}) as store:
        store.append([trial(trial=index) for index in range(3)])
    return (folder / "trials.csv").read_bytes()


def read_whole(path):
    """Read a file of one's own, whatever its format."""
    return data.load_file(path)


def read_rows(path):
    """Read the rows to predict."""
    return list(read_blocks(str(path), ["a", "b"], 2))


def read_matrix(path):
    """Read the rows of a matrix."""
    return list(read_blocks(str(path), None, 2))


def matrix():
    """Return the content of a .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, np.ones((3, 2)))
    return buffer.getvalue()


def read_protocol(path):
    """Read a protocol."""
    return load_protocol(path)


def read_folder(path):
    """Read the trials of the file's folder."""
    return read_trials(path.parent)


TEXT = b"a,b,kind\n1.5,2,1\n2.5,3,0\n-1e3,0.25,1\n"
KEEL = b"@relation x\n@attribute a real\n@data\n1.0, 2.0, 1\n3.0, 4.0, 0\n"
# Parser of a file, its name, and sound contents.
FILES = {
    "csv": (read_whole, "a.csv", [TEXT, TEXT.replace(b",", b";"), KEEL]),
    "libsvm": (read_whole, "a.txt", [tiny.libsvm()[:200], b"+1 1:2 3:4\n-1 2:1\n"]),
    "gz": (read_whole, "a.gz", [tiny.COMPRESS[".gz"](TEXT)]),
    "bz2": (read_whole, "a.bz2", [tiny.COMPRESS[".bz2"](TEXT)]),
    "xz": (read_whole, "a.xz", [tiny.COMPRESS[".xz"](TEXT)]),
    "zip": (read_whole, "a.zip", [archive(a=TEXT), archive(a=TEXT, b=TEXT)]),
    "rows": (read_rows, "a.csv", [TEXT, tiny.COMPRESS[".gz"](TEXT), b'a,b\n"1","2"\n,x\n']),
    "matrix": (read_matrix, "a.npy", [matrix()]),
    "protocol": (read_protocol, "a.json", [b'{"n_steps": 3, "risk_lams": [0.0, 1.0]}', b"{}"]),
}


def harmless(read, path, content):
    """Check that reading a content gives a result or one line, in little memory."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MOST_MEMORY


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(choice=st.data())
def test_no_file_breaks_its_parser(name, choice, tmp_path):
    read, file, contents = FILES[name]
    content = choice.draw(st.sampled_from(contents).flatmap(mutations) | st.binary(max_size=99))
    harmless(read, tmp_path / file, content)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(choice=st.data())
def test_no_model_file_breaks_the_loader(model, choice, tmp_path):
    harmless(models.load_model, tmp_path / "model.npz", choice.draw(mutations(model)))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(choice=st.data())
def test_no_trials_break_the_reader(trials, choice, tmp_path):
    harmless(read_folder, tmp_path / "trials.csv", choice.draw(mutations(trials)))


@settings(max_examples=150)
@given(
    st.binary(max_size=60)
    | mutations(tiny.idx(np.arange(12).reshape(3, 4)))
    | mutations(b"+1 1:2 3:4\n-1 2:1\n")
    | mutations(TEXT),
    st.sampled_from([parsers.parse_idx, parsers.parse_libsvm, parsers.parse_table]),
)
def test_no_content_breaks_a_parser(content, parse):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            parse(content)
        except data.DataError as error:
            assert "\n" not in str(error)  # noqa: PT017


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    assert printed.err.count("\n") == (status == 2)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
