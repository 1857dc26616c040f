"""Rows are read block by block, and what is no table of numbers is refused."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pu_shift.data import DataError
from pu_shift.files import unpacking
from pu_shift.files.cells import CellError
from pu_shift.files.preparation import TablePreparation
from pu_shift.files.tables import column_names, read_csv
from pu_shift.files.tables import read_blocks as read_prepared
from tests.data import tiny

ROWS = np.random.default_rng(0).normal(size=(23, 3))
NAMES = ["a", "b", "c"]


def read_blocks(path, names, d, *arguments, **options):
    """Read features that must be numbers."""
    return read_prepared(path, names, TablePreparation.plain(d), *arguments, **options)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    frame = pd.DataFrame(ROWS, columns=NAMES)
    frame.insert(1, "name", "no number")
    for mark, name in ((",", "comma"), (";", "semicolon"), ("\t", "tab")):
        frame.to_csv(folder / f"{name}.csv", index=False, sep=mark)
    np.save(folder / "c.npy", ROWS)
    np.save(folder / "fortran.npy", np.asfortranarray(ROWS))
    return folder


@given(block_rows=st.integers(1, 30))
@pytest.mark.parametrize("name", ["comma.csv", "semicolon.csv", "tab.csv", "c.npy", "fortran.npy"])
def test_blocks_are_the_rows_in_order(files, name, block_rows):
    path = files / name
    blocks = list(read_blocks(str(path), NAMES, 3, block_rows))
    assert [len(block.rows) for block in blocks[:-1]] == [block_rows] * (len(blocks) - 1)
    np.testing.assert_array_equal(np.concatenate([block.rows for block in blocks]), ROWS)
    positions = [block.position for block in blocks]
    assert positions == sorted(positions)
    assert positions[-1] == blocks[-1].size == path.stat().st_size


def test_columns_come_in_the_order_asked_for(files):
    (block,) = read_blocks(str(files / "comma.csv"), ["c", "a"], 2)
    np.testing.assert_array_equal(block.rows, ROWS[:, [2, 0]])


def test_without_names_rows_are_a_matrix(files):
    (block,) = read_blocks(str(files / "c.npy"), None, 3)
    assert type(block.rows) is np.ndarray
    np.testing.assert_array_equal(block.rows, ROWS)
    with pytest.raises(DataError, match="must be a .npy file, the model's features have no names"):
        list(read_blocks(str(files / "comma.csv"), None, 3))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "a,b\n1,2\n3,x\n", "a finite number in row 2 of column 'b', found 'x'"),
        ("a.csv", "a,b\n1,2\n3,4\n5\n", "a finite number in row 3 of column 'b', found nan"),
        ("a.csv", "a,b\n1,2\n3,4\n5,6\n7,8,9\n", "expected 2 columns, found more in row 4"),
        ("a.csv", "a,b\n", "has no rows"),
        ("a.csv", "", "is empty"),
        ("a.csv", "1,2\n3,4\n", "must begin with a line of column names"),
        ("a.csv", ",a,b\n0,1,2\n", "has no name for column 1: if it numbers the rows"),
        ("a.csv", "a,b,a\n0,1,2\n", "has more than one column named 'a'"),
        ("a.csv", "a,b\n1,1e200\n", "has 1e\\+200 in row 1 of column 'b', whose square"),
        ("a.csv", b"\xff\xfe\x00", "is not text: 'utf-8' codec can't decode"),
        ("a.csv", "a;b\n1,5;2\n", "in row 1 of column 'a', found '1,5'"),
        ("a.csv", 'a,b\n1,2\n3,"4\n' + "x" * 200_000, "is not a table: .*EOF inside string"),
        ("a.csv", "a,b\n1," + "x" * 100_000 + "\n", "found 'x{70,90}…$"),
        ("a.csv", "a,b\n1," + "x" * 5_000_000, "has a line of more than 4,194,304 characters"),
        ("a.csv", ",".join(f"a{i}" for i in range(70_000)), "has 70,000 columns, more than 65,536"),
        ("a.npy", "a,b\n1,2\n", "is not a NumPy matrix"),
        ("a.npy", np.zeros((2, 3)), r"of \(rows, 2\) numbers, it has \(2, 3\) float64"),
        ("a.npy", np.array([[1, None]]), "is not a NumPy matrix: Array can't be memory-mapped"),
        ("a.npy", np.array([[0.0, 1.0], [1.0, np.nan]]), "in row 2 of column 'b', found"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    if isinstance(content, np.ndarray):
        np.save(path, content, allow_pickle=True)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=message) as caught:
        list(read_blocks(str(path), ["a", "b"], 2, 2))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_no_file():
    for read in (column_names, lambda path: list(read_blocks(path, ["a"], 1))):
        with pytest.raises(DataError, match="no such file: 'absent.csv'"):
            read("absent.csv")


@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_memory_does_not_grow_with_the_rows(tmp_path, kind):
    peaks = []
    for n in (60_000, 180_000):
        path = tmp_path / f"{n}.{kind}"
        if kind == "npy":
            np.save(path, np.zeros((n, 3)))
        else:
            path.write_text("a,b,c\n" + "1,2,3\n" * n, encoding="utf-8")
        tracemalloc.start()
        total = sum(len(block.rows) for block in read_blocks(str(path), NAMES, 3, 2_000))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert total == n
    assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize("block_rows", [1, 2, 3, 50])
def test_an_empty_line_of_a_single_column_is_a_missing_value(tmp_path, block_rows):
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n2\n\n4\n")
    with pytest.raises(DataError, match="a finite number in row 3 of column 'a', found nan"):
        list(read_blocks(str(path), ["a"], 1, block_rows))
    assert column_names(str(path)) == (["a"], ",")
    rows = read_csv(str(path), ["a"]).to_numpy()
    np.testing.assert_array_equal(rows, [[1.0], [2.0], [np.nan], [4.0]])
    # At the end of the file it is none.
    path.write_text("a\n1\n2\n\n\n\n")
    blocks = list(read_blocks(str(path), ["a"], 1, block_rows))
    assert np.concatenate([block.rows for block in blocks]).tolist() == [[1.0], [2.0]]
    assert all(len(block.rows) for block in blocks)
    assert read_csv(str(path), ["a"])["a"].tolist() == [1.0, 2.0]


def test_empty_lines_between_rows_are_no_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\na;b\n\n1;2\n\n3;4\n\n")
    (block,) = read_blocks(str(path), ["a", "b"], 2)
    assert block.rows.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("block_rows", [1, 2, 3, 50])
def test_quotes_words_and_gaps(tmp_path, block_rows):
    path = tmp_path / "a.csv"
    path.write_text('note, a ,b\n"two\n\nlines, and ""more""",1,TRUE\n5" pipe, 2,false\nx,"3",4\n')
    blocks = list(read_blocks(str(path), ["a", "b"], 2, block_rows))
    rows = np.concatenate([block.rows for block in blocks])
    assert rows.tolist() == [[1.0, 1.0], [2.0, 0.0], [3.0, 4.0]]


@pytest.mark.parametrize("suffix", tiny.COMPRESS)
@pytest.mark.parametrize("name", ["a.csv", "a.zip", "a.tar", "a.zst", "a.gz"])
def test_compression_is_told_by_the_content(tmp_path, suffix, name):
    path = tmp_path / name
    path.write_bytes(tiny.COMPRESS[suffix](b"a,b\n1,2\n3,4\n"))
    (block,) = read_blocks(str(path), ["b"], 1)
    assert block.rows.tolist() == [[2.0], [4.0]]
    assert block.position == block.size


def test_an_archive_in_the_place_of_a_matrix(tmp_path):
    with open(tmp_path / "a.npy", "wb") as file:
        np.savez(file, a=np.ones((3, 2)))
    with pytest.raises(DataError, match="is not a NumPy matrix: the magic string is not correct"):
        list(read_blocks(str(tmp_path / "a.npy"), None, 2))


def test_a_path_that_is_too_long():
    with pytest.raises(DataError, match="^data: no such file: 'xxx.*…$") as caught:
        list(read_blocks("x" * 5000, ["a"], 1))
    assert len(str(caught.value)) < 500


BOMBS = {
    "equal rows": b"a,b\n" + b"1,2\n" * (1 << 20),
    "one line": b"a,b\n" + b"1" * (32 << 20),
    "one cell": b'a,b\n1,"' + b"1\n" * (8 << 20),
}


@pytest.mark.parametrize(
    ("suffix", "kind"), [*zip([".bz2", ".xz", ".zip"], BOMBS), (".gz", "equal rows")]
)
def test_a_bomb_takes_little_memory(tmp_path, monkeypatch, suffix, kind):
    monkeypatch.setattr(unpacking, "UNPACKED_FLOOR", 1 << 20)
    pack = tiny.COMPRESS.get(suffix, lambda content: tiny.zipped({"a.csv": content}))
    path = tmp_path / "a.csv"
    path.write_bytes(pack(BOMBS[kind]))
    tracemalloc.start()
    with pytest.raises(DataError, match="unpacks to more than|has a line of more"):
        sum(len(block.rows) for block in read_blocks(str(path), ["a", "b"], 2, 5_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20


TEXTS = ["007", "Ann", "", 'O"Neil, Bob', "two\nlines", "=1+1"] * 4


@given(block_rows=st.integers(1, 30))
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "quoted"])
def test_kept_columns_are_texts_beside_their_rows(tmp_path_factory, plain, block_rows):
    texts = [text for text in TEXTS if plain is not any(mark in text for mark in '",\n')]
    frame = pd.DataFrame({"id": texts, "a": range(len(texts)), "b": 0.5, "note": texts[::-1]})
    path = tmp_path_factory.mktemp("kept") / "a.csv"
    frame.to_csv(path, index=False)
    blocks = list(read_blocks(str(path), ["b", "a"], 2, block_rows, keep=["note", "id", "a"]))
    rows = np.concatenate([block.rows for block in blocks])
    np.testing.assert_array_equal(rows, frame[["b", "a"]])
    note, ids, a = ([text for block in blocks for text in block.kept[i]] for i in range(3))
    assert note == texts[::-1]
    assert ids == texts
    assert a == [str(i) for i in range(len(texts))]


def test_what_is_kept_does_not_add_up(tmp_path):
    path = tmp_path / "a.csv"
    peaks = []
    for n in (30_000, 90_000):
        path.write_text("id,a\n" + "".join(f"case {i},1\n" for i in range(n)), encoding="utf-8")
        tracemalloc.start()
        blocks = read_blocks(str(path), ["a"], 1, 2_000, keep=["id"])
        assert sum(len(block.kept[0]) for block in blocks) == n
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_a_column_with_texts_is_read_as_it_stands(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n1,red,2\n,007,na\n4, blue ,5\n")
    frame = read_csv(str(path), ["b", "a"])
    assert frame["b"].tolist() == ["red", "007", "blue"]
    np.testing.assert_array_equal(frame["a"], [1.0, np.nan, 4.0])
    assert read_csv(str(path), ["a"], texts=True)["a"].tolist() == ["1", "", "4"]
    with pytest.raises(CellError, match="row 1 of column 'b', found 'red'"):
        list(read_blocks(str(path), ["b"], 1))
    with pytest.raises(CellError, match="row 2 of column 'c', found nan"):
        list(read_blocks(str(path), ["c"], 1))


def test_blocks_are_prepared_like_the_table_of_the_fit(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b;c\n1,5;red;2024-01-02\n2;blue;2024-01-03\n;red;2024-01-04\n")
    preparation = TablePreparation()
    expected = preparation.fit_transform(read_csv(str(path), ["a", "b", "c"]))
    for block_rows in (1, 2, 5):
        blocks = list(read_prepared(str(path), ["a", "b", "c"], preparation, block_rows))
        np.testing.assert_array_equal(np.concatenate([b.rows for b in blocks]), expected)
        assert sum(block.unseen for block in blocks).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_in_another_encoding(tmp_path, encoding, suffix):
    path = tmp_path / "a.csv"
    content = ("größe,stadt\n" + "1,Zürich\n2,Köln\n" * 20_000).encode(encoding)
    path.write_bytes(tiny.COMPRESS[suffix](content) if suffix else content)
    assert column_names(str(path), encoding)[0] == ["größe", "stadt"]
    frame = read_csv(str(path), ["stadt", "größe"], encoding)
    assert frame["stadt"].tolist() == ["Zürich", "Köln"] * 20_000
    assert frame["größe"].tolist() == [1.0, 2.0] * 20_000
    with pytest.raises(DataError, match="is not text: .*--encoding tells another, say latin-1"):
        read_csv(str(path), ["größe"])


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("a,b", "has no column 'z', its columns are \\['a', 'b'\\]$"),
        ("a|b", "its only one is 'a|b': columns must be separated by commas, .* not by '|'$"),
        ("a b", "not by ' '$"),
        ("a", "has no column 'z', its columns are \\['a'\\]$"),
    ],
)
def test_a_column_that_is_missing_may_hide_behind_a_separator(tmp_path, head, message):
    path = tmp_path / "a.csv"
    path.write_text(f"{head}\n1\n")
    for options in ({}, {"keep": ["z"]}):
        with pytest.raises(DataError, match=message.replace("|", "\\|")):
            list(read_blocks(str(path), [] if options else ["z"], 1, **options))
