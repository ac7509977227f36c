"""Databases of older versions are converted, with a copy; those of newer ones are refused and left as they are."""

import random
from pathlib import Path

import apsw
import pytest

from rankpolicy.service.domain.keys import new_key
from rankpolicy.service.log.postgres import FORMAT as POSTGRES_FORMAT
from rankpolicy.service.log.replay import replay
from rankpolicy.service.log.sqlite import SqliteStore, schema
from rankpolicy.service.log.sqlite.schema import APPLICATION, FORMAT
from rankpolicy.types import RankPolicyError
from tests.service.parts import BANDIT, Parts, click, events, policy_of
from tests.service.test_replay import live_for_a_while


def said(other: int, own: int) -> str:
    if other < own:
        return f"has format {other}, of an older rankpolicy; this one reads format {own}. Nothing was changed"
    return f"has format {other}, of a newer rankpolicy; this one reads format {own}. Update rankpolicy"


@pytest.mark.parametrize("role", ["server", "keys", "reader"])
@pytest.mark.parametrize("other", [0, FORMAT + 1])
def test_another_format_is_refused_and_the_file_is_left_alone(tmp_path, other, role):
    parts = Parts(tmp_path / "service.db", {"default": BANDIT})
    parts.show("r1")
    parts.store._connection.pragma("user_version", other)
    parts.store.close()
    before = parts.path.read_bytes()
    with pytest.raises(RankPolicyError, match=said(other, FORMAT)):
        SqliteStore(parts.path, role=role)
    assert parts.path.read_bytes() == before


@pytest.mark.parametrize("other", [POSTGRES_FORMAT - 1, POSTGRES_FORMAT + 1])
def test_another_format_in_postgres_is_refused(cluster, other):
    url = cluster.new_database()
    parts = Parts(url, {"default": BANDIT})
    parts.store._connection.execute("UPDATE meta SET value = %s WHERE name = 'format'", (str(other).encode(),))
    parts.store.close()
    with pytest.raises(RankPolicyError, match=said(other, POSTGRES_FORMAT)):
        parts.open()


@pytest.fixture
def format_1(tmp_path):
    """A database as the first version left it, with lists, events and lessons, open windows, events that wait, and keys."""
    parts = Parts(tmp_path / "new.db", {"default": BANDIT})
    live_for_a_while(parts, random.Random(0), 20)
    parts.end_windows()
    parts.state_at_the_end = parts.state()
    parts.do(events(click("e1", parts.show("open").shown.ranking_id, "a"), click("e2", "later", "a")))
    parts.keys = [new_key(scopes)[1] for scopes in (["rank", "read"], ["events"])]
    for number, key in enumerate(parts.keys):
        parts.store.add_key(key, now=number)
    parts.store.revoke_key(parts.keys[1].key_id, now=3)
    parts.audit_lines = parts.store.audit_lines()
    parts.path, new = tmp_path / "service.db", parts.path
    parts.store.close()
    old = apsw.Connection(str(parts.path))
    old.pragma("journal_mode", "wal")
    old.execute(Path(__file__).with_name("format_1.sql").read_text())
    old.pragma("application_id", APPLICATION)
    old.pragma("user_version", 1)
    old.execute("ATTACH ? AS new", (str(new),))
    for (table,) in old.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall():
        columns = ", ".join(name for _, name, *_ in old.execute(f"PRAGMA main.table_info({table})"))
        old.execute(f"INSERT INTO {table} SELECT {columns} FROM new.{table}")
    old.close()
    return parts


def test_a_server_converts_format_1_and_keeps_a_copy(format_1):
    for role in ("keys", "reader"):
        with pytest.raises(RankPolicyError, match=r"has format 1, .* A server converts a file"):
            SqliteStore(format_1.path, role=role)
    format_1.open()
    assert format_1.state() == format_1.state_at_the_end
    assert format_1.store.check()["lessons"] == 20
    assert [change.action for change in format_1.store.changes()] == ["configure"]
    assert replay(format_1.store, policy_of)[0].is_equal
    assert sum(number for _, number in format_1.store.checked_blocks()) > 20
    assert format_1.store.valid_keys() == format_1.keys[:1]
    assert [len(row) for row in format_1.store._checked_rows("keys")] == [6, 6]
    assert format_1.store.audit_lines() == format_1.audit_lines
    attached = format_1.store.check()["attachments"]
    format_1.show("later")  # the event that waited for it is there
    assert format_1.store.check()["attachments"] == attached + 1
    format_1.end_windows()
    assert format_1.store.check()["lessons"] == 22
    format_1.store.close()
    copy = apsw.Connection(f"{format_1.path}.format-1", flags=apsw.SQLITE_OPEN_READONLY)
    assert copy.pragma("user_version") == 1
    assert copy.execute("SELECT count(*) FROM lessons").fetchone() == (20,)
    copy.close()
    # To return to the older version the copy is put in place; it can be converted again.
    for file in format_1.path.parent.glob("service.db[-.]?a*"):
        file.unlink()
    Path(f"{format_1.path}.format-1").replace(format_1.path)
    format_1.open()
    assert format_1.store.check()["lessons"] == 20
    format_1.store.close()


def test_a_conversion_that_fails_changes_nothing(format_1, monkeypatch):
    monkeypatch.setitem(schema.CONVERSIONS, 1, schema.CONVERSIONS[1] + "SELECT * FROM nothing;")
    with pytest.raises(RankPolicyError):
        SqliteStore(format_1.path)
    monkeypatch.undo()
    connection = apsw.Connection(str(format_1.path))
    assert connection.pragma("user_version") == 1
    assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'changes'").fetchone() == (0,)
    connection.close()
    format_1.open()
    format_1.store.close()
