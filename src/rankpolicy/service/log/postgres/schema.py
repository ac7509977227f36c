"""The tables of a PostgreSQL database: those of SQLite's schema, and one row that says how far the log goes.

Whoever writes locks that row first, so the log is one sequence without gaps however many servers write it.
"""

from __future__ import annotations

FORMAT = 1

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BYTEA NOT NULL);

CREATE TABLE log_end (is_it BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (is_it), seq BIGINT NOT NULL, stamp BIGINT NOT NULL);
INSERT INTO log_end (seq, stamp) VALUES (0, 0);

CREATE TABLE policies (
    key BIGINT PRIMARY KEY,
    policy TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    settings TEXT NOT NULL,
    stamp BIGINT NOT NULL,
    row_hash BYTEA NOT NULL,
    UNIQUE (policy, number)
);

CREATE TABLE audit (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stamp BIGINT NOT NULL,
    what TEXT NOT NULL,
    detail TEXT NOT NULL
);

CREATE TABLE rankings (
    seq BIGINT PRIMARY KEY,
    ranking_id TEXT COLLATE "C" NOT NULL UNIQUE,
    version BIGINT NOT NULL,
    stamp BIGINT NOT NULL,
    deadline BIGINT NOT NULL,
    shown BYTEA NOT NULL,
    request BYTEA NOT NULL,
    request_hash BYTEA NOT NULL,
    row_hash BYTEA NOT NULL
);

CREATE TABLE events (
    seq BIGINT PRIMARY KEY,
    event_id TEXT COLLATE "C" NOT NULL UNIQUE,
    stamp BIGINT NOT NULL,
    fate TEXT NOT NULL,
    ranking_seq BIGINT,
    position BIGINT,
    body BYTEA NOT NULL,
    row_hash BYTEA NOT NULL
);

CREATE TABLE attachments (
    seq BIGINT PRIMARY KEY,
    event_seq BIGINT NOT NULL,
    ranking_seq BIGINT NOT NULL,
    position BIGINT NOT NULL,
    row_hash BYTEA NOT NULL
);

CREATE TABLE lessons (
    seq BIGINT PRIMARY KEY,
    ranking_seq BIGINT NOT NULL UNIQUE,
    version BIGINT NOT NULL,
    stamp BIGINT NOT NULL,
    clicks BYTEA NOT NULL,
    row_hash BYTEA NOT NULL
);
CREATE INDEX lessons_by_version ON lessons (version, seq);

CREATE TABLE pending (ranking_seq BIGINT PRIMARY KEY, deadline BIGINT NOT NULL, clicks BYTEA NOT NULL);
CREATE INDEX pending_by_deadline ON pending (deadline, ranking_seq);

CREATE TABLE parked (event_seq BIGINT PRIMARY KEY, ranking_id TEXT COLLATE "C" NOT NULL, deadline BIGINT NOT NULL);
CREATE INDEX parked_by_ranking ON parked (ranking_id);
CREATE INDEX parked_by_deadline ON parked (deadline);

CREATE TABLE snapshots (
    version BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    stamp BIGINT NOT NULL,
    sha256 BYTEA NOT NULL,
    state BYTEA NOT NULL,
    PRIMARY KEY (version, seq)
);

CREATE TABLE changes (number BIGINT PRIMARY KEY, stamp BIGINT NOT NULL, body BYTEA NOT NULL, row_hash BYTEA NOT NULL);
CREATE TABLE models (sha256 TEXT COLLATE "C" PRIMARY KEY, stamp BIGINT NOT NULL, content BYTEA NOT NULL);
CREATE TABLE anchors (version BIGINT PRIMARY KEY, seq BIGINT NOT NULL, state BYTEA NOT NULL, row_hash BYTEA NOT NULL);

CREATE TABLE keys (
    key_id TEXT COLLATE "C" PRIMARY KEY,
    digest BYTEA NOT NULL,
    scopes TEXT NOT NULL,
    stamp BIGINT NOT NULL,
    revoked BIGINT
);
"""
