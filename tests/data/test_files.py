import numpy as np
import pytest

from pu_shift.data import DataError, load_csv, load_file, load_libsvm
from pu_shift.data.sampling import draw
from tests.data import tiny

HEADER = "a,b,c,kind\n"
WORDS = np.where(tiny.Y == 1, "sick", "well")


def write(path, content):
    path.write_bytes(content)
    return path


def same(data, name):
    np.testing.assert_array_equal(data.X, tiny.X)
    np.testing.assert_array_equal(data.y, tiny.Y)
    assert (data.name, data.positives) == (name, tiny.POSITIVES)


@pytest.mark.parametrize("suffix", tiny.COMPRESS)
def test_every_format_can_be_loaded_and_drawn_from(tmp_path, suffix):
    pack = tiny.COMPRESS[suffix]
    text = write(tmp_path / f"own.txt{suffix}", pack(tiny.libsvm()))
    plain = write(tmp_path / f"plain.csv{suffix}", pack(tiny.table()))
    words = write(tmp_path / f"words.csv{suffix}", pack(tiny.table(y=WORDS, header=HEADER)))
    same(load_libsvm(text), "own")
    same(load_csv(plain), "plain")
    same(load_csv(words, label="kind", positive="sick"), "words")
    same(load_file(text), "own")
    same(load_file(plain), "plain")
    same(load_file(words, label="kind", positive="sick"), "words")
    one = draw(load_file(str(text)), 0.5, 0.5, n_p=3, n_u=6, n_test=4)
    assert one.unlabeled.shape == (6, 3)


def test_a_zip_of_one_file_is_a_file(tmp_path):
    same(load_file(write(tmp_path / "own.zip", tiny.zipped({"a.csv": tiny.table()}))), "own")
    two = write(tmp_path / "two.zip", tiny.zipped({"a.csv": tiny.table(), "b.csv": b""}))
    with pytest.raises(
        DataError, match=r"expected a zip archive of one file, found a\.csv, b\.csv"
    ):
        load_file(two)


def test_labels_of_several_classes_need_a_positive_one(tmp_path):
    path = write(tmp_path / "digits.csv", b"1,0\n2,1\n3,2\n4,3\n")
    with pytest.raises(DataError, match=r"digits.csv: positive must say .* 0.0, 1.0, 2.0, 3.0"):
        load_csv(path)
    assert load_csv(path, positive=3).y.tolist() == [-1, -1, -1, 1]
    data = load_csv(path, positive=[0, 2])
    assert data.y.tolist() == [1, -1, 1, -1]
    assert data.positive_class == "0, 2"


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (b"1,2,1\n3,,0\n", {}, "bad.csv: bad has a value that is missing.*row 2, feature 2"),
        (b"1,1\n3,1\n", {}, "bad.csv: positive must say which label"),
        (b"1,a\n3,b\n", {"positive": "c"}, "0 positive and 2 negative"),
        (b"1 1:2\n0 1:3\n", {"label": 0}, "label must not be given, got 0"),
        (b"<html>\n", {}, "found an HTML page"),
        (b"1,2\n", {"label": "kind"}, "bad.csv: label must name a column"),
    ],
)
def test_bad_files_are_rejected_in_one_line(tmp_path, content, arguments, message):
    path = write(tmp_path / "bad.csv", content)
    with pytest.raises(DataError, match=message) as caught:
        load_file(path, **arguments)
    assert "\n" not in str(caught.value)
