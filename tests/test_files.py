"""Files appear whole or not at all."""

import bz2
import gzip
import os
import stat
import subprocess
import sys
import threading
import time

import pytest

import rankpolicy as rp
from rankpolicy.files import atomic_write, checked_file, read_text_bytes, text_blocks
from rankpolicy.types import RankPolicyError
from rankpolicy.writing import inputs_kept


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


def test_bzip2_is_written_and_read_like_gzip(tmp_path):
    path, cut = tmp_path / "text.bz2", tmp_path / "cut.bz2"
    with atomic_write(path) as stream:
        stream.write(b"0 qid:1 1:0.5\n1 qid:1 1:1.5\n")
    assert bz2.decompress(path.read_bytes()) == read_text_bytes(path).tobytes()
    assert b"".join(block.tobytes() for block in text_blocks(path)) == read_text_bytes(path).tobytes()
    assert rp.read_letor(path).labels.tolist() == [0, 1]
    cut.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(RankPolicyError, match="must be a whole bzip2 file"):
        read_text_bytes(cut)
    with pytest.raises(RankPolicyError, match="must be a whole bzip2 file"):
        list(text_blocks(cut))


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with (
        pytest.raises(RankPolicyError, match="must be in a directory that exists"),
        atomic_write(tmp_path / "no" / "a"),
    ):
        pass


def test_a_pipe_stays_a_pipe_and_gets_the_bytes(tmp_path):
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    with atomic_write(pipe) as stream:
        stream.write(b"all of it")
    reader.join()
    assert received == [b"all of it"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_stays_a_device_also_through_a_link(tmp_path):
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    with atomic_write(link) as stream:
        stream.write(b"gone")
    assert link.is_symlink()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_full_device_is_an_error_that_says_so(tmp_path):
    with (
        pytest.raises(RankPolicyError, match="cannot write /dev/full: No space left"),
        atomic_write("/dev/full") as stream,
    ):
        stream.write(b"x" * 100_000)


def test_a_disk_that_fills_up_leaves_the_old_file_and_an_error(tmp_path):
    path = tmp_path / "result.txt"
    path.write_text("old")
    program = (
        "import resource, signal, sys\n"
        "from rankpolicy.files import atomic_write\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "with atomic_write(sys.argv[1]) as file:\n"
        "    file.write(b'x' * 100_000)\n"
    )
    result = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert "RankPolicyError: cannot write" in result.stderr
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["result.txt"]


def test_stdout_may_be_named_and_what_stood_in_its_file_stays(tmp_path):
    path = tmp_path / "all.txt"
    path.write_text("before\n")
    program = "from rankpolicy.files import atomic_write\nwith atomic_write('/dev/stdout') as f: f.write(b'written\\n')"
    with path.open("a") as file:
        subprocess.run([sys.executable, "-c", program], stdout=file, check=True)
    assert path.read_text() == "before\nwritten\n"


@pytest.mark.parametrize("name", ["", "x" * 300, "a\0b"])
def test_names_that_no_file_can_have_are_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RankPolicyError, match=r"must not be empty|cannot write"), atomic_write(name):
        pass


def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(RankPolicyError, match="cannot write"), atomic_write(tmp_path / "a"):
        pass


def test_the_file_of_a_dangling_link_is_made(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with atomic_write(tmp_path / "link") as stream:
        stream.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_new_files_have_the_permissions_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "new") as stream:
            stream.write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_what_a_killed_writer_left_is_removed_but_not_what_a_living_one_writes(tmp_path):
    path = tmp_path / "result.txt"
    left = tmp_path / ".result.txt.0123.unfinished"
    left.write_text("half")
    hour_ago = time.time() - 3600
    os.utime(left, (hour_ago, hour_ago))
    with atomic_write(path) as living:
        (mine,) = tmp_path.glob(".result.txt.*.unfinished")
        os.utime(mine, (hour_ago, hour_ago))
        with atomic_write(path) as other:
            other.write(b"other")
        living.write(b"living")
    assert os.listdir(tmp_path) == ["result.txt"]
    assert path.read_text() == "living"


def test_a_file_that_was_read_is_not_written_where_inputs_are_kept(tmp_path):
    path, link = tmp_path / "data.txt", tmp_path / "link.txt"
    path.write_text("data")
    link.symlink_to(path)
    with inputs_kept():
        checked_file(path)
        with pytest.raises(RankPolicyError, match="output never replaces its own input"), atomic_write(link):
            pass
    with atomic_write(path) as stream:
        stream.write(b"new")
    assert path.read_text() == "new"


@pytest.mark.parametrize(
    "read",
    [
        rp.load,
        rp.read_click_log,
        rp.clicks.scan_click_log,
        rp.off_policy.scan_off_policy_log,
        rp.data.read_letor,
        rp.data.read_dataset,
        rp.scan_letor,
        rp.scan_parquet,
    ],
)
def test_a_path_that_is_too_long_is_no_file(read):
    with pytest.raises(rp.RankPolicyError, match="file"):
        read("x" * 5_000)
