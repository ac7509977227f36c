-- The tables of format 1 as its first version made them, before there were changes.

CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;

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

CREATE TABLE audit (number INTEGER PRIMARY KEY, stamp INTEGER NOT NULL, what TEXT NOT NULL, detail TEXT NOT NULL) STRICT;

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

CREATE TABLE pending (ranking_seq INTEGER PRIMARY KEY, deadline INTEGER NOT NULL, clicks BLOB NOT NULL) STRICT;
CREATE INDEX pending_by_deadline ON pending (deadline, ranking_seq);

CREATE TABLE parked (event_seq INTEGER PRIMARY KEY, ranking_id TEXT NOT NULL, deadline INTEGER NOT NULL) STRICT;
CREATE INDEX parked_by_ranking ON parked (ranking_id);
CREATE INDEX parked_by_deadline ON parked (deadline);

CREATE TABLE snapshots (
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    state BLOB NOT NULL,
    PRIMARY KEY (version, seq)
) STRICT;

CREATE TABLE keys (
    key_id TEXT PRIMARY KEY,
    digest BLOB NOT NULL,
    scopes TEXT NOT NULL,
    stamp INTEGER NOT NULL,
    revoked INTEGER
) STRICT;
