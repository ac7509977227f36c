"""The tables of a database.

The log is four tables that share one sequence of numbers without gaps: ``rankings`` (lists that were shown), ``events`` (what users did),
``attachments`` (events that came before their list and found it) and ``lessons`` (lists whose window has ended, with their clicks). Rows of
the log are never changed. Two small tables are working memory: ``pending`` (lists whose window is open) and ``parked`` (events that wait
for their list). They change in the transaction that writes the log. Every row of every table carries a hash of its content.
"""

from __future__ import annotations

FORMAT = 2  # PRAGMA user_version
APPLICATION = 0x52414E4B  # PRAGMA application_id: "RANK"

# Tables that have row hashes since format 2.
_META = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL, row_hash BLOB NOT NULL) STRICT, WITHOUT ROWID;
"""
_AUDIT = """
CREATE TABLE audit (
    number INTEGER PRIMARY KEY,
    stamp INTEGER NOT NULL,
    what TEXT NOT NULL,
    detail TEXT NOT NULL,
    row_hash BLOB NOT NULL
) STRICT;
"""
_PENDING = """
CREATE TABLE pending (
    ranking_seq INTEGER PRIMARY KEY, deadline INTEGER NOT NULL, clicks BLOB NOT NULL, row_hash BLOB NOT NULL
) STRICT;
CREATE INDEX pending_by_deadline ON pending (deadline, ranking_seq);
"""
_PARKED = """
CREATE TABLE parked (
    event_seq INTEGER PRIMARY KEY, ranking_id TEXT NOT NULL, deadline INTEGER NOT NULL, row_hash BLOB NOT NULL
) STRICT;
CREATE INDEX parked_by_ranking ON parked (ranking_id);
CREATE INDEX parked_by_deadline ON parked (deadline);
"""
_KEYS = """
CREATE TABLE keys (
    key_id TEXT PRIMARY KEY,
    digest BLOB NOT NULL,
    scopes TEXT NOT NULL,
    stamp INTEGER NOT NULL,
    revoked INTEGER,
    row_hash BLOB NOT NULL
) STRICT;
"""

SCHEMA = f"""
{_META}
CREATE TABLE policies (
    key INTEGER PRIMARY KEY,
    policy TEXT NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    settings TEXT NOT NULL,
    stamp INTEGER NOT NULL,
    row_hash BLOB NOT NULL,
    UNIQUE (policy, number)
) STRICT;

{_AUDIT}
CREATE TABLE rankings (
    seq INTEGER PRIMARY KEY,
    ranking_id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    shown BLOB NOT NULL,
    request BLOB NOT NULL,
    request_hash BLOB NOT NULL,
    row_hash BLOB NOT NULL
) STRICT;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL UNIQUE,
    stamp INTEGER NOT NULL,
    fate TEXT NOT NULL,
    ranking_seq INTEGER,
    position INTEGER,
    body BLOB NOT NULL,
    row_hash BLOB NOT NULL
) STRICT;

CREATE TABLE attachments (
    seq INTEGER PRIMARY KEY,
    event_seq INTEGER NOT NULL,
    ranking_seq INTEGER NOT NULL,
    position INTEGER NOT NULL,
    row_hash BLOB NOT NULL
) STRICT;

CREATE TABLE lessons (
    seq INTEGER PRIMARY KEY,
    ranking_seq INTEGER NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    clicks BLOB NOT NULL,
    row_hash BLOB NOT NULL
) STRICT;
CREATE INDEX lessons_by_version ON lessons (version, seq);
{_PENDING}{_PARKED}
CREATE TABLE snapshots (
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    state BLOB NOT NULL,
    PRIMARY KEY (version, seq)
) STRICT;

{_KEYS}
CREATE TABLE changes (
    number INTEGER PRIMARY KEY, stamp INTEGER NOT NULL, body BLOB NOT NULL, row_hash BLOB NOT NULL
) STRICT;
CREATE TABLE models (sha256 TEXT PRIMARY KEY, stamp INTEGER NOT NULL, content BLOB NOT NULL) STRICT;
CREATE TABLE anchors (
    version INTEGER PRIMARY KEY, seq INTEGER NOT NULL, state BLOB NOT NULL, row_hash BLOB NOT NULL
) STRICT;
"""


def _with_hashes(table: str, columns: str, new_table: str) -> str:
    """Statements that give a table its row hashes; ``row_hash`` is a function of the connection."""
    return f"""
CREATE TEMP TABLE older AS SELECT {columns} FROM {table};
DROP TABLE {table};
{new_table}
INSERT INTO {table} SELECT {columns}, row_hash({columns}) FROM older;
DROP TABLE older;
"""


# What leads from each older format to the next. Format 1 got the tables of changes, models and anchors during its life.
CONVERSIONS = {
    1: """
CREATE TABLE IF NOT EXISTS changes (
    number INTEGER PRIMARY KEY, stamp INTEGER NOT NULL, body BLOB NOT NULL, row_hash BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS models (sha256 TEXT PRIMARY KEY, stamp INTEGER NOT NULL, content BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS anchors (
    version INTEGER PRIMARY KEY, seq INTEGER NOT NULL, state BLOB NOT NULL, row_hash BLOB NOT NULL
) STRICT;
"""
    + _with_hashes("meta", "name, value", _META)
    + _with_hashes("audit", "number, stamp, what, detail", _AUDIT)
    + _with_hashes("pending", "ranking_seq, deadline, clicks", _PENDING)
    + _with_hashes("parked", "event_seq, ranking_id, deadline", _PARKED)
    + _with_hashes("keys", "key_id, digest, scopes, stamp, revoked", _KEYS)
}
