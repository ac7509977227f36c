"""The tables of a PostgreSQL database: those of SQLite's schema, and one row that says how far the log goes.

Whoever writes locks that row first, so the log is one sequence without gaps however many servers write it.
"""

from __future__ import annotations

import re

from rankpolicy.service.log.sqlite import schema as sqlite_schema

FORMAT = 1

# PostgreSQL has checksums of pages; rows of these tables, which are no part of the log, carry no hash.
_WITHOUT_HASH = re.compile(r"(CREATE TABLE (?:meta|audit|keys|pending|parked) [^;]*?),\s*row_hash BLOB NOT NULL")
_TYPES = {"INTEGER": "BIGINT", "BLOB": "BYTEA", "TEXT": 'TEXT COLLATE "C"', " STRICT, WITHOUT ROWID": "", " STRICT": ""}
_LOG_END = """
CREATE TABLE log_end (is_it BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (is_it), seq BIGINT NOT NULL, stamp BIGINT NOT NULL);
INSERT INTO log_end (seq, stamp) VALUES (0, 0);
"""


def _translated(schema: str) -> str:
    schema = _WITHOUT_HASH.sub(r"\1", schema)
    for sqlite_word, word in _TYPES.items():
        schema = schema.replace(sqlite_word, word)
    return re.sub(r"(CREATE TABLE audit \(\s*number BIGINT)", r"\1 GENERATED ALWAYS AS IDENTITY", schema)


SCHEMA = _LOG_END + _translated(sqlite_schema.SCHEMA)
