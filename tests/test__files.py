"""Results replace a file whole or not at all."""

import os
import stat

import pytest

from pu_shift._files import leftovers, replacing
from tests.paper.engine import killed_at


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old", encoding="utf-8")

    def write_half():
        with replacing(path) as file:
            file.write("half")
            file.flush()
            assert path.read_text(encoding="utf-8") == "old"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.csv"]
    with replacing(path) as file:
        file.write("new")
    assert path.read_text(encoding="utf-8") == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.csv"]


def test_a_link_stays_a_link_and_permissions_stay(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o640)
    link.symlink_to(target)
    with replacing(link, binary=True) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.listdir(target.parent) == ["target"]


def test_without_follow_a_link_is_replaced_and_its_target_left_alone(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    with replacing(link, follow=False) as file:
        file.write("new")
    assert (target.read_text(), link.read_text()) == ("old", "new")
    assert not link.is_symlink()


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "absent" / "out.csv"
    with pytest.raises(FileNotFoundError) as caught, replacing(path):
        pass
    assert caught.value.filename == str(path)


def test_a_kill_before_any_step_leaves_the_old_or_the_new_file(tmp_path):
    path, seen = tmp_path / "out", []

    def write():
        with replacing(path) as file:
            file.write("new")

    for step in range(1, 5):
        path.write_text("old", encoding="utf-8")
        killed = killed_at(step, write)
        for left in leftovers(tmp_path):
            left.unlink()
        assert os.listdir(tmp_path) == ["out"]
        seen.append((killed, path.read_text(encoding="utf-8")))
    # Before the content is safe, before the new name, and before the name is safe.
    assert seen == [(True, "old"), (True, "old"), (True, "new"), (False, "new")]
