"""Files appear whole or not at all."""

import gzip
import os

import pytest

from rankpolicy.files import atomic_write, read_text_bytes
from rankpolicy.types import RankPolicyError


def test_what_stood_there_stays_whole_when_writing_fails(tmp_path):
    path = tmp_path / "result.txt"
    path.write_text("old")

    def fail_in_the_middle():
        with atomic_write(path) as stream:
            stream.write(b"half of the n")
            raise KeyError("in the middle")

    with pytest.raises(KeyError):
        fail_in_the_middle()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["result.txt"]


def test_two_writers_of_one_path_do_not_share_a_temporary_file(tmp_path):
    path = tmp_path / "result.txt"
    with atomic_write(path) as first:
        first.write(b"first")
        with atomic_write(path) as second:
            second.write(b"second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"


def test_a_link_is_followed_and_permissions_are_kept(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    with atomic_write(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_the_suffix_compresses_and_the_first_bytes_decompress(tmp_path):
    path = tmp_path / "text.gz"
    with atomic_write(path) as stream:
        stream.write(b"line")
    assert gzip.decompress(path.read_bytes()) == b"line"
    assert read_text_bytes(path).tobytes() == b"line\n"


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with (
        pytest.raises(RankPolicyError, match="must be in a directory that exists"),
        atomic_write(tmp_path / "no" / "a"),
    ):
        pass
