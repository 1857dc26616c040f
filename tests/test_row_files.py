"""Rows are read block by block, and what is no table of numbers is refused."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pu_shift.data import DataError
from pu_shift.row_files import read_blocks, read_csv

ROWS = np.random.default_rng(0).normal(size=(23, 3))
NAMES = ["a", "b", "c"]


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
    together = pd.concat([block.rows for block in blocks])
    assert together.columns.tolist() == NAMES
    np.testing.assert_allclose(together, ROWS, rtol=1e-12)
    positions = [block.position for block in blocks]
    assert positions == sorted(positions)
    assert positions[-1] == blocks[-1].size == path.stat().st_size


def test_columns_come_in_the_order_asked_for(files):
    (block,) = read_blocks(str(files / "comma.csv"), ["c", "a"], 2)
    np.testing.assert_allclose(block.rows, ROWS[:, [2, 0]], rtol=1e-12)


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
        ("a.csv", "a,b\n1,2\n3,4\n5,inf\n", "a finite number in row 3 of column 'b', found inf"),
        ("a.csv", "a,b\n1,2\n3,4\n5\n", "a finite number in row 3 of column 'b', found nan"),
        ("a.csv", "a,b\n1,2\n3,4\n5,6\n7,8,9\n", "is not a CSV file: Error tokenizing data"),
        ("a.csv", "a,b\n", "has no rows"),
        ("a.csv", "", "is not a CSV file: No columns to parse"),
        ("a.csv", "1,2\n3,4\n", "must begin with a line of column names"),
        ("a.csv", "a,c\n1,2\n", "has no column 'b'"),
        ("a.csv", "a,b\n1,2,3\n4,5,6\n", "is not a CSV file.*Expected 2 fields in line 2, saw 3"),
        ("a.csv", ",a,b\n0,1,2\n", "has no name for column 1: if it numbers the rows"),
        ("a.csv", "a,b,a\n0,1,2\n", "has two columns 'a'"),
        ("a.csv", "0.5,0.5\n3,4\n", "must begin with a line of column names"),
        ("a.csv", "a,b\n1,1e200\n", "in row 1 of column 'b', found 1e\\+200, above 1e\\+150"),
        ("a.csv", b"\xff\xfe\x00", "is not a CSV file: 'utf-8' codec can't decode"),
        ("a.npy", "a,b\n1,2\n", "is not a NumPy matrix"),
        ("a.npy", b"", "is not a NumPy matrix"),
        ("a.npy", np.zeros((2, 3)), r"must hold \(rows, 2\) numbers, has \(2, 3\) float64"),
        ("a.npy", np.zeros(4), r"must hold \(rows, 2\) numbers, has \(4,\) float64"),
        ("a.npy", np.array([["x", "y"]]), r"must hold \(rows, 2\) numbers, has \(1, 2\) <U1"),
        ("a.npy", np.array([[1, None]]), "is not a NumPy matrix: Array can't be memory-mapped"),
        ("a.npy", np.array([[0.0, 1.0], [1.0, np.nan]]), "in row 2 of column 'b', found"),
        ("a.npy", np.zeros((0, 2)), "has no rows"),
    ],
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


def test_a_cell_of_a_nameless_matrix(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[0.0, np.inf]]))
    with pytest.raises(DataError, match="row 1 of column 1, found"):
        list(read_blocks(str(tmp_path / "a.npy"), None, 2))


def test_a_truncated_matrix_is_refused(tmp_path, files):
    content = (files / "c.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content[:-8])
    with pytest.raises(DataError, match="is not a NumPy matrix: mmap length is greater"):
        list(read_blocks(str(tmp_path / "a.npy"), None, 3))


def test_no_file():
    for read in (read_csv, lambda path: list(read_blocks(path, ["a"], 1))):
        with pytest.raises(DataError, match="data must be a file, got 'absent.csv'"):
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
    assert read_csv(str(path))["a"].isna().tolist() == [False, False, True, False]
    # At the end of the file it is none.
    path.write_text("a\n1\n2\n\n\n\n")
    blocks = list(read_blocks(str(path), ["a"], 1, block_rows))
    assert np.concatenate([block.rows["a"] for block in blocks]).tolist() == [1.0, 2.0]
    assert all(len(block.rows) for block in blocks)
    assert read_csv(str(path))["a"].tolist() == [1.0, 2.0]


def test_empty_lines_between_rows_are_no_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\na;b\n\n1;2\n\n3;4\n\n")
    (block,) = read_blocks(str(path), ["a", "b"], 2)
    assert block.rows.to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
