import gzip
import io
import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pu_shift.data import parsers
from pu_shift.data.dataset import DataError
from tests.data import tiny

matrices = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 6), st.integers(1, 5)),
    elements=st.floats(-1e6, 1e6, width=32),
)


def one_line(action, *args, **kwargs):
    """Return the message of the DataError that must come, which is one line."""
    with pytest.raises(DataError) as caught:
        action(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@settings(deadline=None)
@given(matrices)
def test_what_is_written_as_libsvm_text_is_read_back(X):
    y = np.where(np.arange(len(X)) % 2, 1, -1)
    read, labels = parsers.parse_libsvm(tiny.libsvm(X, y), X.shape[1])
    np.testing.assert_array_equal(read, X)
    np.testing.assert_array_equal(labels, y)
    assert read.dtype == np.float32


@settings(deadline=None)
@given(matrices, st.sampled_from(",;\t"), st.booleans())
def test_what_is_written_as_a_table_is_read_back(X, separator, header):
    names = separator.join([*(f"x{j}" for j in range(X.shape[1])), "kind"]) + "\n"
    labels = np.where(np.arange(len(X)) % 2, "well", "sick")
    content = tiny.table(X, labels, names if header else "", separator)
    read, found = parsers.parse_table(content, "kind" if header else -1)
    np.testing.assert_allclose(read, X, rtol=1e-7)
    assert found.tolist() == labels.tolist()


@settings(deadline=None)
@given(hnp.arrays(np.uint8, hnp.array_shapes(max_dims=3, max_side=5)))
def test_what_is_written_as_idx_is_read_back(array):
    read = parsers.parse_idx(tiny.idx(array))
    assert read.shape == array.shape
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize("suffix", tiny.COMPRESS)
def test_compression_is_told_by_the_content_and_damage_is_reported(tmp_path, suffix):
    path = tmp_path / "data.bin"
    packed = tiny.COMPRESS[suffix](tiny.libsvm())
    path.write_bytes(packed)
    assert parsers.read_content(path) == tiny.libsvm()
    if suffix:
        path.write_bytes(packed[: len(packed) // 2])
        assert "data.bin is truncated or corrupt" in one_line(parsers.read_content, path)


def test_a_zip_member_is_read_by_name_and_its_damage_is_reported(tmp_path):
    path = tmp_path / "data.zip"
    inner = gzip.compress(tiny.libsvm())
    path.write_bytes(tiny.zipped({"b.txt": b"other", "a.txt.gz": inner}))
    assert parsers.members(path) == ["b.txt", "a.txt.gz"]
    assert parsers.read_content(path, "a.txt.gz") == tiny.libsvm()
    damaged = bytearray(path.read_bytes())
    at = damaged.index(inner[10:40]) if inner[10:40] in damaged else 120
    damaged[at : at + 8] = b"\xff" * 8
    path.write_bytes(damaged)
    assert "truncated or corrupt" in one_line(parsers.read_content, path, "a.txt.gz")
    path.write_bytes(damaged[:100])
    assert parsers.members(path) == []
    assert "expected a zip archive" in one_line(parsers.read_content, path)


@pytest.mark.parametrize("pack", [*tiny.COMPRESS.values(), lambda c: tiny.zipped({"a": c})])
def test_a_bomb_is_not_unpacked(tmp_path, pack):
    path = tmp_path / "bomb"
    content = bytes(100 << 20)
    path.write_bytes(pack(content))
    members = [None, "a"] if parsers.members(path) else [None]
    if path.stat().st_size == len(content):
        assert parsers.read_content(path) == content
        return
    for member in members:
        tracemalloc.start()
        message = one_line(parsers.read_content, path, member)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert "unpacks to more than 250 times its size: if that is right, unpack it" in message
        assert peak < 64 << 20


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found nothing"),
        (b"+1 1:0.5\n-1 two:1\n", "is not LIBSVM text"),
        (b"+1 1:0.5\n-1 1\n", "is not LIBSVM text"),
        (b"+1 0:0.5\n", "is not LIBSVM text"),
        (b"+1 9:0.5\n", "is not LIBSVM text"),
        (b"1.5,2.5,+1\n", "is not LIBSVM text"),
    ],
)
def test_bad_libsvm_text_is_rejected(content, message):
    assert message in one_line(parsers.parse_libsvm, content, 3)


@pytest.mark.parametrize("index", [b"2000000000", b"10000000"])
def test_libsvm_text_with_a_huge_index_is_rejected(index):
    content = b"+1 %s:1\n-1 1:1\n" % index
    assert "too large as a dense array" in one_line(parsers.parse_libsvm, content)


@pytest.mark.parametrize(
    ("content", "label", "message"),
    [
        (b"", -1, "found nothing"),
        (b"\xff\xfe\x00", -1, "is not text"),
        (b"a,b\n", -1, "no rows"),
        (b"1,2,g\n1,2,3,g\n", -1, "expected 3 columns, found more in row 2"),
        (b"a,kind\n1,2,g\n", "kind", "expected 2 columns, found more in row 1"),
        (b"0\tK\n3a", -1, "in row 2 of column 1, found '3a'"),
        (b",a,kind\n0,2,g\n", "kind", "has no name for column 1: if it numbers the rows"),
        (b"1,2,g\n1,oops,h\n", -1, "in row 2 of column 2, found 'oops'"),
        (b"a,b,kind\n1,2,g\n1,oops,h\n", "kind", "in row 2 of column 'b', found 'oops'"),
        (b"1,2,g\n1,2,\n", -1, "expected a label in every row, found none in row 2"),
        (b"a,b\n1,2\n", "kind", "label must name a column, got 'kind'; there are a, b"),
        (b"1,2\n", 5, "label 5"),
        (b"1,2\n", 1.5, "label must be a column's position or name, got 1.5"),
        (b"1,?,g\n1,2,h\n", -1, "in row 1 of column 2, found '?'"),
        (b"@relation x\n@data\n?,g\n1,h\n", -1, "in row 1 of column 1, found '?'"),
        (b"1\n2\n", -1, "has 1 column"),
        (b"@relation x\n@attribute a real\n", -1, "no @data line"),
    ],
)
def test_bad_tables_are_rejected(content, label, message):
    assert message in one_line(parsers.parse_table, content, label)


@pytest.mark.parametrize(
    "preamble",
    [
        "@relation tiny\n@attribute a real [0, 1]\n@inputs a\n@outputs class\n@data\n",
        "% a comment\n@RELATION tiny\n\n@ATTRIBUTE a REAL\n@DATA\n",
        "@RELATION tiny\n@DATA\n% a comment\n\n  % another, with a comma\n",
    ],
)
def test_keel_and_arff_files_are_tables(preamble):
    X, labels = parsers.parse_table(tiny.table(header=preamble).replace(b",", b", "))
    np.testing.assert_array_equal(X, tiny.X)
    np.testing.assert_array_equal(labels, tiny.Y)


def test_labels_may_be_words_or_truth_values():
    assert parsers.parse_table(b"1, g \n2,h\n")[1].tolist() == ["g", "h"]
    labels = parsers.parse_table(b"1,True\n2,False\n")[1]
    assert labels.tolist() == [1.0, 0.0]
    for name in ("True", "1", 1):
        assert parsers.to_signs(labels, (name,)).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected an idx file"),
        (b"\x1f\x8b\x08\x00", "expected an idx file"),
        (b"\0\0\x08\x03\0\0", "expected 16 bytes, found 6"),
        (tiny.idx(np.zeros((4, 2)))[:-1], "expected 20 bytes, found 19"),
        (tiny.idx(np.zeros((4, 2))) + b"x", "expected 20 bytes, found 21"),
    ],
)
def test_bad_idx_files_are_rejected(content, message):
    assert message in one_line(parsers.parse_idx, content)


def test_labels_become_signs():
    digits = np.arange(10)
    signs = parsers.to_signs(digits, (0, 2, 4, 6, 8), (1, 3, 5, 7, 9))
    assert signs.tolist() == [1, -1] * 5
    words = np.array(["g", "h", "g"], dtype=object)
    assert parsers.to_signs(words, ["g"]).tolist() == [1, -1, 1]
    message = one_line(parsers.to_signs, words, ["g"], ["b"])
    assert message == "expected the labels g, b, found h"
    # A word among numbers matches none of them.
    assert parsers.to_signs(digits, ["g"]).tolist() == [-1] * 10


def test_the_sample_is_fixed_bounded_and_stops_reading(monkeypatch):
    monkeypatch.setattr(parsers, "SAMPLE_ROWS", 50)
    stream = io.BytesIO(b"".join(b"%d\n" % i for i in range(100_000)))
    kept = [int(line) for line in parsers.sample_lines(stream)]
    generator = random.Random(279)
    expected = [i for i in range(100_000) if generator.random() < 0.03][:50]
    assert kept == expected
    assert stream.tell() < 50_000
    assert max(map(len, parsers.sample_lines(io.BytesIO(b"x" * 10_000_000)))) <= 1 << 16


@pytest.mark.parametrize("line", ["@data", "  @DATA % rows", "@data\r"])
@pytest.mark.parametrize("before", ["", "% @data comes later\n"])
def test_comments_around_the_data_of_arff(line, before):
    head = f"{before}@relation r\n@attribute a numeric\n@attribute c {{0,1}}\n"
    content = f"{head}{line}\n% a comment\n1,0\n%another\n\n2,1\n"
    X, labels = parsers.parse_table(content.encode())
    assert (X.tolist(), labels.tolist()) == ([[1.0], [2.0]], [0.0, 1.0])
