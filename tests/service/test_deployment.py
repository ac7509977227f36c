"""The commands of docs/service/deployment.md for backup and restore, run as they stand there against a running service."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rankpolicy.cli.main import run
from rankpolicy.service import Client
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.log.sqlite.backup import back_up
from rankpolicy.types import RankPolicyError
from tests.service.dashboard.browser import served
from tests.service.test_http import RANK, client_of, post

PAGE = Path(__file__).parents[2] / "docs" / "service/deployment.md"
POLICIES = {"learning": {"kind": "bandit", "bandit": "dcm-ts"}}


def shell(block, folder, said):
    """Run a block of the page with its folders below ``folder``; systemctl and chown are noted only."""
    (folder / "var/backups/rankpolicy").mkdir(parents=True, exist_ok=True)
    text = re.sub(r"/var/(lib|backups)/", lambda found: f"{folder}{found[0]}", block)
    command = f"{sys.executable} -c 'from rankpolicy.cli.main import main; main()' \"$@\""
    functions = f'rankpolicy() {{ {command}; }}; systemctl() {{ echo "$1" >> {said}; }}; chown() {{ :; }}'
    done = subprocess.run(["bash", "-euc", f"{functions}\n{text}"], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_only_the_owner_can_read_what_a_service_stores(tmp_path):
    path = tmp_path / "service.db"
    mask = os.umask(0o022)
    try:
        with client_of(path) as http:
            assert post(http, "/v1/rank", RANK).json()["logged"]
            assert run(["service", "export", "--db", str(path), "--out", str(tmp_path / "logs")]) == 0
            files = [*tmp_path.glob("service.db*"), *(tmp_path / "logs").iterdir()]
            assert len(files) >= 6  # database, write-ahead log, shared memory, mark, lock, exports
            assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
            assert (tmp_path / "logs").stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(mask)


def test_a_copy_made_while_the_service_runs_is_restored_with_all_that_was_acknowledged(tmp_path):
    backup, restore = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.S)
    db = tmp_path / "var/lib/rankpolicy/service.db"
    db.parent.mkdir(parents=True)
    said = tmp_path / "said"
    with served(db, policies=POLICIES, window_seconds=60) as (url, _), Client(url) as client:
        kept = [client.rank(query="q", items=["a", "b", "c"]) for _ in range(20)]
        for shown in kept:
            client.click(shown, "a")
        assert "20 rankings, 20 events" in shell(backup, tmp_path, said)
        later = client.rank(query="q", items=["a", "b", "c"])
    assert "every row is as it was written" in shell(restore, tmp_path, said)
    assert said.read_text().split() == ["stop", "start"]
    with served(db, policies=POLICIES) as (url, _), Client(url) as client:
        assert all(client.ranking(shown["ranking_id"])["clicked"] == ["a"] for shown in kept)
        with pytest.raises(ValueError, match="status 404"):
            client.ranking(later["ranking_id"])
        assert client.rank(query="q", items=["a", "b", "c"])["logged"]


def test_a_copy_never_replaces_a_file_and_a_damaged_database_is_not_copied(tmp_path):
    db = tmp_path / "a.db"
    SqliteStore(db).close()
    assert sum(back_up(db, tmp_path / "copy.db").values()) == 0
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    with pytest.raises(RankPolicyError, match="exists already"):
        back_up(db, tmp_path / "copy.db")
    with pytest.raises(RankPolicyError, match="no folder"):
        back_up(db, tmp_path / "missing" / "copy.db")
    (tmp_path / "text.db").write_text("not a database, but long enough to be taken for one" * 40)
    with pytest.raises(RankPolicyError, match="no database"):
        back_up(tmp_path / "text.db", tmp_path / "other.db")
    assert sorted(path.name for path in tmp_path.glob("*copy*")) == ["copy.db"]
    assert not list(tmp_path.glob(".*"))
