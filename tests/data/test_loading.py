import gzip
import logging
import os
from pathlib import Path

import numpy as np
import pytest

from pu_shift.data import DataError, copies, load, loading, parsers, registry, search_path
from pu_shift.data.registry import Layout
from pu_shift.data.sources import Remote, Source
from tests.data import tiny


def put(content, name="tiny.txt", folder=None):
    path = (folder or loading.raw_folder()) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def use(monkeypatch, *sources, **changes):
    monkeypatch.setattr(registry, "_SPECS", (tiny.spec(*sources, **changes),))


def check(source, data=None):
    data = load("tiny") if data is None else data
    np.testing.assert_array_equal(data.X, tiny.X)
    np.testing.assert_array_equal(data.y, tiny.Y)
    assert (data.X.dtype, data.y.dtype) == (np.float32, np.int8)
    assert not data.X.flags.writeable
    assert data.source == str(source)


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "cache")


def test_folders_are_searched_in_order(home, tmp_path, monkeypatch, caplog):
    check(put(tiny.libsvm()))
    one, two = tmp_path / "one", tmp_path / "two"
    monkeypatch.setenv("PU_SHIFT_DATA", os.pathsep.join(map(str, [one, two])))
    check(put(tiny.libsvm(), folder=two))
    assert f"PU_SHIFT_DATA names {one}, which is not a folder" in caplog.text
    check(put(tiny.libsvm(), folder=one))
    assert search_path() == [one, two, home / "datasets" / "raw"]
    assert [copy.paths[0].parent for copy in copies("tiny")] == search_path()
    monkeypatch.setenv("PU_SHIFT_CACHE", str(tmp_path / "other"))
    assert search_path() == [one, two, tmp_path / "other"]


def test_an_installed_package_uses_the_user_s_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(loading, "CHECKOUT", None)
    for name in ("PU_SHIFT_DATA", "PU_SHIFT_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert search_path() == [tmp_path / "pu-shift"]
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert loading.raw_folder() == Path.home() / ".cache" / "pu-shift"


@pytest.mark.parametrize("archive", ["tiny.zip", "tiny.txt.zip"])
def test_files_in_archives_are_found(home, archive):
    inside = {"../../readme": b"", "deep/tiny.txt.gz": gzip.compress(tiny.libsvm())}
    check(put(tiny.zipped(inside), archive))
    assert names(loading.raw_folder()) == [archive]
    assert names(home) == ["datasets"]


def test_images_and_digits_are_joined(home, monkeypatch):
    digits = np.arange(40) % 10
    images = np.random.default_rng(0).integers(0, 256, (40, 2, 2))
    layout = Layout(("a", "b", "c", "d"), "idx", (0, 2, 4, 6, 8), (1, 3, 5, 7, 9))
    use(monkeypatch, shape=(40, 4), positives=20, span=(0, 255), layouts=(layout,))
    parts = {"a": images[:30], "b": digits[:30], "c": images[30:], "d": digits[30:]}
    for name, array in parts.items():
        assert copies("tiny") == []
        put(gzip.compress(tiny.idx(array)), f"{name}.gz")
    data = load("tiny")
    np.testing.assert_array_equal(data.X, images.reshape(40, 4))
    np.testing.assert_array_equal(data.y, np.where(digits % 2, -1, 1))


def test_a_huge_table_is_sampled(home, monkeypatch):
    monkeypatch.setattr("pu_shift.data.parsers.SAMPLE_ROWS", 40)
    layout = Layout(("tiny.csv",), "table", negative=(0,), sample=True)
    known = {"shape": (40, 1), "positives": 20, "span": (0, 5000), "layouts": (layout,)}
    use(monkeypatch, **known, spread=16)
    put(b"".join(b"%d,%d\n" % (i, i % 2) for i in range(5000)), "tiny.csv")
    data = load("tiny")
    assert data.X.shape == (40, 1)
    assert data.positives == (data.X % 2 == 1).sum()
    use(monkeypatch, **known, spread=0)
    put(b"".join(b"%d,1\n" % i for i in range(5000)), "tiny.csv")
    with pytest.raises(DataError, match="expected 20 positives, found 40"):
        load("tiny", offline=True)


FEWER = tiny.libsvm(tiny.X[:-1], tiny.Y[:-1])
OUTSIDE = np.where(np.arange(3) == 1, 99, tiny.X)
CHANGED = tiny.X[::-1].copy()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (FEWER, "expected 40 rows × 3 features, found 39 × 3"),
        (tiny.libsvm(y=-tiny.Y), "expected 15 positives, found 25"),
        (tiny.libsvm(y=tiny.Y + 1), "expected the labels 1, -1, found 0.0, 2.0"),
        (tiny.libsvm(OUTSIDE), "expected values from -12.5 to 12.5, found"),
        (tiny.libsvm(CHANGED), "expected values with SHA-256"),
        (tiny.COMPRESS[".gz"](tiny.libsvm())[:-20], "truncated or corrupt"),
        (b"<!DOCTYPE html><title>404</title>", "found an HTML page"),
        (b"", "found nothing"),
    ],
)
def test_a_bad_file_is_kept_aside_and_never_used(home, caplog, content, message):
    path = put(content)
    with pytest.raises(DataError) as caught:
        load("tiny", offline=True)
    first, rejected, *by_hand = str(caught.value).splitlines()
    assert first == "tiny is not here"
    assert "rejected " in rejected
    assert "tiny.txt" in rejected
    assert message in rejected
    assert str(loading.raw_folder()) in by_hand[-1]
    assert "rejected" in caplog.text
    assert names(loading.raw_folder()) == ["tiny.txt.bad"]
    assert path.with_name("tiny.txt.bad").read_bytes() == content


def test_a_bad_file_of_the_user_s_is_left_alone_and_the_next_one_used(home, tmp_path, monkeypatch):
    monkeypatch.setenv("PU_SHIFT_DATA", str(tmp_path / "mine"))
    bad = put(FEWER, folder=tmp_path / "mine")
    check(put(tiny.libsvm()))
    assert bad.read_bytes() == FEWER


def test_arrays_are_kept_and_mapped_until_the_file_changes(home, monkeypatch):
    path = put(tiny.libsvm())
    load("tiny")

    def fail(*args):
        raise AssertionError("parsed again")

    with monkeypatch.context() as patch:
        patch.setattr(parsers, "read_content", fail)
        data = load("tiny")
        assert isinstance(data.X, np.memmap)
        check(path, data)
    put(FEWER)
    with pytest.raises(DataError, match="rejected"):
        load("tiny")
    assert names(loading.raw_folder()) == ["tiny.txt.bad"]


@pytest.mark.parametrize("end", ["X.npy", "y.npy", "sha256"])
def test_no_byte_of_what_is_kept_changes_a_value(home, caplog, end):
    path = put(tiny.libsvm())
    load("tiny")
    (kept,) = (loading.raw_folder() / "cache").glob(f"*.{end}")
    content = kept.read_bytes()
    rng = np.random.default_rng(0)
    for place in range(len(content) - tiny.ROWS, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= int(rng.integers(1, 256))
        kept.write_bytes(damaged)
        caplog.clear()
        check(path)
        assert "tiny: the cached arrays were damaged: the file is parsed again" in caplog.text
        assert kept.read_bytes() == content


def test_values_other_than_the_known_ones_are_always_reported(home, caplog):
    put(tiny.table(CHANGED), "tiny.dat")
    for _ in range(2):  # when it is parsed, and when it comes from the cache
        caplog.clear()
        np.testing.assert_array_equal(load("tiny").X, CHANGED)
        assert caplog.text.count("tiny.dat: its values are not those of the reference") == 1


def test_without_a_place_to_write_the_data_is_still_read(home, monkeypatch, tmp_path):
    path = put(tiny.libsvm(), folder=tmp_path / "mine")
    monkeypatch.setenv("PU_SHIFT_DATA", str(tmp_path / "mine"))
    (home / "datasets" / "raw").rmdir()
    (home / "datasets" / "raw").write_text("a file where the folder should be")
    data = load("tiny")
    check(path, data)
    assert not isinstance(data.X, np.memmap)
    use(monkeypatch, Source((Remote("https://example.org/tiny.txt"),)))
    monkeypatch.delenv("PU_SHIFT_DATA")
    with pytest.raises(DataError, match="cannot write to"):
        load("tiny")


def web(server, action="serve", save_as="tiny.txt", **options):
    return Source((Remote(f"{server.url}/{action}/{save_as}", **options),))


def test_sources_are_tried_in_turn(home, server, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    use(monkeypatch, web(server, "404"), web(server, "cut"), web(server), web(server, "503"))
    check(loading.raw_folder() / "tiny.txt")
    assert len(server.requests) == 3
    assert "404" in caplog.text
    assert names(loading.raw_folder()) == ["tiny.txt"]
    assert (loading.raw_folder() / "tiny.txt").stat().st_mode & 0o777 == 0o644
    check(loading.raw_folder() / "tiny.txt", load("tiny", offline=True))
    assert len(server.requests) == 3


def sparse_arff(X, y):
    """Write a sparse ARFF file as OpenML does, the label in front."""
    names = "".join(f"@ATTRIBUTE X{j} NUMERIC\n" for j in range(1, X.shape[1] + 1))
    rows = (
        ", ".join(
            ["0 1"] * int(label == 1) + [f"{j} {float(v)!r}" for j, v in enumerate(row, 1) if v]
        )
        for row, label in zip(X, y)
    )
    lines = "".join(f"{{{row}}}\n" for row in rows)
    return f"% joined\n@RELATION t\n@ATTRIBUTE Y {{-1, 1}}\n{names}@DATA\n{lines}".encode()


def test_the_published_rows_are_found_among_others_or_nothing_is(home, server, monkeypatch):
    layout = Layout(("tiny.arff",), "table", part=True, exact=True)
    use(monkeypatch, web(server, save_as="tiny.arff"), layouts=(layout,))
    around = np.concatenate([tiny.X[5:9], tiny.X, tiny.X[:3]])
    labels = np.concatenate([tiny.Y[5:9], tiny.Y, tiny.Y[:3]])
    changed = around.copy()
    changed[20, 1] += 0.125
    server.body = sparse_arff(changed, labels)
    with pytest.raises(DataError, match="expected the 40 published rows among 47, found other"):
        load("tiny")
    server.body = sparse_arff(around, labels)
    check(loading.raw_folder() / "tiny.arff")
    # A table with a column per feature serves as well.
    (loading.raw_folder() / "tiny.arff").write_bytes(
        b"@relation t\n@data\n" + tiny.table(around, labels)
    )
    check(loading.raw_folder() / "tiny.arff")


def test_a_mirror_of_one_s_own_is_asked_first(home, server, monkeypatch):
    use(monkeypatch, web(server, "404"))
    monkeypatch.setenv("PU_SHIFT_MIRROR", f"{server.url}/serve")
    check(loading.raw_folder() / "tiny.txt")
    assert server.requests == ["/serve/tiny.txt"]


def test_fetching_can_be_switched_off(home, server, monkeypatch):
    use(monkeypatch, web(server))
    monkeypatch.setenv("PU_SHIFT_FETCH", "off")
    with pytest.raises(DataError, match="tiny is not here\n"):
        load("tiny")
    assert server.requests == []


@pytest.mark.parametrize(
    ("body", "save_as", "message"),
    [
        (b"<html>moved</html>", "tiny.txt", "tiny.txt: expected data, found an HTML page"),
        (FEWER, "tiny.txt", "expected 40 rows × 3 features, found 39 × 3"),
        (tiny.zipped({"other.txt": b""}), "tiny.zip", "expected the files of a known layout"),
    ],
)
def test_a_bad_download_is_kept_aside(home, server, monkeypatch, body, save_as, message):
    server.body = body
    use(monkeypatch, web(server, save_as=save_as))
    with pytest.raises(DataError) as caught:
        load("tiny")
    first, tried, download, place = str(caught.value).splitlines()
    assert first == "tiny is not here and could not be fetched"
    assert tried.strip().startswith(f"tried {server.url}/serve/{save_as}: ")
    assert message in tried
    assert ".part" not in tried
    assert names(loading.raw_folder()) == [f"{save_as}.bad"]
    assert "download" in download
    assert str(loading.raw_folder()) in place


def test_help_by_hand_names_sites_and_wheels(home, monkeypatch):
    files = (Remote("https://a.org/a"), Remote("https://a.org/b"))
    use(monkeypatch, Source(files), Source((Remote("t/tiny.txt"),), "tinydata==1.0"))
    first, second, _ = loading.by_hand("tiny")
    assert first == "download https://a.org/a and https://a.org/b"
    assert second.startswith("or run pip download tinydata==1.0 --no-deps and unzip")
    assert second.endswith("t/tiny.txt")
