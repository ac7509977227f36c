"""Files that are empty, cut, deleted or replaced: said, and never served as a new service."""

import random
import shutil
from pathlib import Path

import pytest

from rankpolicy.cli.main import run
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.log.sqlite import SqliteStore
from tests.service.faults.bit_flips import flip_bits
from tests.service.parts import BANDIT, Parts
from tests.service.test_http import RANK, client_of, post
from tests.service.test_replay import live_for_a_while
from tests.waits import wait_until


@pytest.fixture
def killed(tmp_path):
    """The database of a killed server, with its write-ahead log and its mark."""
    parts = Parts(tmp_path / "alive.db", {"default": BANDIT})
    live_for_a_while(parts, random.Random(0), 10)
    for ending in ("", "-wal", ".mark"):
        if Path(f"{parts.path}{ending}").exists():
            shutil.copy(f"{parts.path}{ending}", tmp_path / f"service.db{ending}")
    parts.store.close()
    return tmp_path / "service.db"


@pytest.mark.parametrize("size", [0, 16, 4096, 100_000])
def test_a_file_of_zeros_is_damaged_and_not_new(tmp_path, size):
    path = tmp_path / "service.db"
    path.write_bytes(bytes(size))
    for role in ("server", "keys", "reader"):
        with pytest.raises(DamagedStoreError, match="Restore it from a backup"):
            SqliteStore(path, role=role)
    assert path.read_bytes() == bytes(size)
    assert run(["service", "replay", "--db", str(path)]) != 0


@pytest.mark.parametrize("role", ["server", "keys", "reader"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95, None])
def test_a_write_ahead_log_that_is_cut_or_gone_is_noticed(killed, role, share):
    log = Path(f"{killed}-wal")
    if share is None:
        log.unlink()
    else:
        log.write_bytes(log.read_bytes()[: round(share * log.stat().st_size)])
    with pytest.raises(DamagedStoreError, match="were acknowledged"):
        SqliteStore(killed, role=role)


def test_a_database_that_is_gone_is_not_made_anew(killed):
    killed.unlink()
    with pytest.raises(DamagedStoreError, match="was deleted or renamed"):
        SqliteStore(killed)
    for ending in ("-wal", ".mark"):
        Path(f"{killed}{ending}").unlink()
    SqliteStore(killed).close()


def test_damage_before_the_last_commits_is_noticed_without_a_mark(killed):
    Path(f"{killed}.mark").unlink()
    content = bytearray(Path(f"{killed}-wal").read_bytes())
    content[len(content) // 2] ^= 1
    Path(f"{killed}-wal").write_bytes(content)
    with pytest.raises(DamagedStoreError, match="acknowledged lists and events would be lost"):
        SqliteStore(killed)


def test_no_flipped_bit_of_log_rows_or_mark_goes_unnoticed(tmp_path):
    outcomes = flip_bits(tmp_path, times=30, seed=1)
    assert sum(outcomes.values()) == 30
    assert not [outcome for outcome in outcomes if "not noticed" in outcome]
    assert outcomes["-wal: noticed by the start"] == 9


@pytest.mark.parametrize("ending", ["", "-wal"])
def test_a_file_that_is_deleted_under_the_server_is_noticed(tmp_path, ending):
    path = tmp_path / "service.db"
    with client_of(path) as http:
        assert post(http, "/v1/rank", RANK).json()["logged"]
        file = Path(f"{path}{ending}")
        file.rename(tmp_path / "moved")
        assert not post(http, "/v1/rank", RANK).json()["logged"]
        assert http.get("/readyz").status_code == 503
        if not ending:
            assert not path.exists()
            shutil.copy(tmp_path / "moved", path)  # another file in its place
            assert not post(http, "/v1/rank", RANK).json()["logged"]
            path.unlink()
        (tmp_path / "moved").rename(file)
        wait_until(lambda: post(http, "/v1/rank", RANK).json()["logged"])
        wait_until(lambda: http.get("/readyz").status_code == 200)


def test_a_damaged_row_is_noticed_after_the_start(tmp_path):
    parts = Parts(tmp_path / "service.db", {"default": BANDIT})
    live_for_a_while(parts, random.Random(0), 10)
    parts.end_windows()
    parts.store.save_snapshot(parts.live.named(None).snapshot(), now=parts.clock.time)
    parts.store._connection.execute("UPDATE events SET stamp = stamp + 1")
    parts.store.close()
    with client_of(parts.path, policies={"default": BANDIT}) as http:
        wait_until(lambda: http.get("/readyz").status_code == 503)
