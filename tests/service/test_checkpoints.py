"""The write-ahead log moves into the database beside the thread that commits, and nothing is lost."""

import random

import apsw
import pytest

from rankpolicy.service.log.replay import replay
from rankpolicy.service.log.sqlite import checkpoints, database_file
from rankpolicy.types import MissingDependencyError
from tests.service.parts import BANDIT, Parts, policy_of
from tests.service.test_replay import live_for_a_while


@pytest.mark.parametrize("beside", [True, False])
def test_the_log_is_moved_and_stays_short(tmp_path, monkeypatch, beside):
    monkeypatch.setattr(checkpoints, "PAGES_PER_CHECKPOINT", 40)
    path = tmp_path / "service.db"
    parts = Parts(path, {"default": BANDIT})
    if beside:
        parts.store.begin_to_serve()
    longest = 0
    for turn in range(12):
        live_for_a_while(parts, random.Random(turn), 20, start=20 * turn)
        longest = max(longest, path.with_name("service.db-wal").stat().st_size)
    parts.end_windows()
    assert (parts.store._checkpoints.num_copied > 3) == beside
    # 10 MB where nothing is moved; on a busy machine the thread that copies gets its turn late.
    assert longest < 2**20
    assert parts.store.check()["lessons"] == 240
    (found,) = replay(parts.store, policy_of)
    assert found.is_equal
    state = parts.state()
    parts.store.close()
    parts.open()
    assert parts.state() == state
    parts.store.close()


def test_a_checkpoint_that_fails_fails_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "PAGES_PER_CHECKPOINT", 10)

    def broken(path):
        raise apsw.IOError("no")

    monkeypatch.setattr(checkpoints, "connect", broken)
    parts = Parts(tmp_path / "service.db", {"default": BANDIT})
    parts.store.begin_to_serve()
    live_for_a_while(parts, random.Random(0), 30)
    parts.store.check()
    assert parts.store._checkpoints.num_copied == 0
    parts.store.close()


def test_a_library_with_the_fault_of_resets_is_refused(monkeypatch):
    database_file.import_apsw.cache_clear()
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(
        MissingDependencyError, match=r"SQLite 3\.51\.3 or later; apsw has 3\.51\.2: pip install -U apsw"
    ):
        database_file.import_apsw()


def test_a_log_that_began_again_during_a_checkpoint_is_copied_by_the_thread_the_next_time(tmp_path, monkeypatch):
    """Otherwise who writes would copy all of the next log, while users wait."""
    found = checkpoints.Checkpoints(tmp_path / "service.db")

    class Connection:
        def wal_checkpoint(self, mode):
            found._committed(None, "main", 3)  # all was copied, and a commit begins the log again meanwhile
            found._ending = True
            found._wanted.set()
            return 60_000, 60_000

        def close(self, force):
            pass

    monkeypatch.setattr(checkpoints, "connect", lambda path: Connection())
    found._thread = object()  # as if it ran
    found._committed(None, "main", 60_000)
    found._run()
    assert not found._is_copied
    assert not found._is_copying
