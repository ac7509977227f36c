"""Databases of older and newer versions: said clearly, and left as they are."""

import pytest

from rankpolicy.service.sqlite import SqliteStore
from rankpolicy.service.sqlite.schema import FORMAT
from rankpolicy.types import RankPolicyError
from tests.service.parts import BANDIT, Parts

SAID = {
    FORMAT - 1: "of an older rankpolicy; this one reads format 1 and cannot convert it. Nothing was changed",
    FORMAT + 1: "of a newer rankpolicy; this one reads format 1. Update rankpolicy",
}


@pytest.mark.parametrize("role", ["server", "keys", "reader"])
@pytest.mark.parametrize("other", SAID)
def test_another_format_is_refused_and_the_file_is_left_alone(tmp_path, other, role):
    parts = Parts(tmp_path / "service.db", {"default": BANDIT})
    parts.show("r1")
    parts.store._connection.pragma("user_version", other)
    parts.store.close()
    before = parts.path.read_bytes()
    with pytest.raises(RankPolicyError, match=f"has format {other}, {SAID[other]}"):
        SqliteStore(parts.path, role=role)
    assert parts.path.read_bytes() == before


@pytest.mark.parametrize("other", SAID)
def test_another_format_in_postgres_is_refused(cluster, other):
    url = cluster.new_database()
    parts = Parts(url, {"default": BANDIT})
    parts.store._connection.execute("UPDATE meta SET value = %s WHERE name = 'format'", (str(other).encode(),))
    parts.store.close()
    with pytest.raises(RankPolicyError, match=f"has format {other}, {SAID[other]}"):
        parts.open()


def test_a_database_from_before_changes_were_logged_gets_their_tables(tmp_path):
    parts = Parts(tmp_path / "service.db", {"default": BANDIT})
    parts.show("r1")
    for table in ("changes", "models", "anchors"):
        parts.store._connection.execute(f"DROP TABLE {table}")
    parts.store.close()
    reader = SqliteStore(parts.path, role="reader")
    assert reader.changes() == []
    reader.close()
    parts.open()
    parts.end_windows()
    assert [change.action for change in parts.store.changes()] == ["configure"]
    assert parts.store.check()["lessons"] == 1
    parts.store.close()
