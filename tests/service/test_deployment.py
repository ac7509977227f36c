"""The commands of docs/service/deployment.md for backup and restore, run as they stand there against a running service."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rankpolicy.service import Client
from rankpolicy.service.sqlite import SqliteStore
from rankpolicy.service.sqlite.backup import back_up
from rankpolicy.types import RankPolicyError
from tests.service.dashboard.browser import served

PAGE = Path(__file__).parents[2] / "docs" / "service/deployment.md"
POLICIES = {"learning": {"kind": "bandit", "bandit": "dcm-ts"}}


def shell(block, folder, said):
    """Run a block of the page with its folders below ``folder``; systemctl and chown are noted only."""
    (folder / "var/backups/rankpolicy").mkdir(parents=True, exist_ok=True)
    text = re.sub(r"/var/(lib|backups)/", lambda found: f"{folder}{found[0]}", block)
    run = f"{sys.executable} -c 'from rankpolicy.cli.main import main; main()' \"$@\""
    functions = f'rankpolicy() {{ {run}; }}; systemctl() {{ echo "$1" >> {said}; }}; chown() {{ :; }}'
    done = subprocess.run(["bash", "-euc", f"{functions}\n{text}"], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


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
