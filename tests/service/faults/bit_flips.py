"""A bit that changes in the write-ahead log, a row, an index or the mark of a service: noticed, or nothing is different.

``python -m tests.service.faults.bit_flips 200 1`` flips two hundred bits, one at a time, drawn with seed 1.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any

import apsw

from rankpolicy.service.domain.keys import SCOPES, new_key
from rankpolicy.service.log.replay import replay
from rankpolicy.service.log.retention import delete_before
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.types import RankPolicyError
from tests.service.parts import BANDIT, Parts, click, events, policy_of
from tests.service.test_replay import live_for_a_while

ENDINGS = ("", "-wal", ".mark")
FLIPPED = ("-wal", "", "", "-wal", "", "", "-wal", "", "", ".mark")
_UNREAD = {("snapshots", "stamp"), ("models", "stamp")}  # columns without a hash, which nothing reads
_TREES = """
    SELECT coalesce(s.tbl_name, d.name), d.pageno, d.pgoffset, d.pgsize FROM dbstat d LEFT JOIN sqlite_schema s ON s.name = d.name
"""


def files_of_a_server(folder: Path) -> dict[str, dict[str, bytes]]:
    """The files that a server leaves when it is killed, half of its commits in the write-ahead log, and when it is stopped."""
    parts = Parts(folder / "service.db", {"default": BANDIT})
    live_for_a_while(parts, random.Random(0), 30)
    keys = [new_key(SCOPES, rate=rate)[1] for rate in (None, 5.0)]
    for key in keys:
        parts.store.add_key(key, now=1)
    parts.store._connection.wal_checkpoint()
    live_for_a_while(parts, random.Random(1), 30, start=30)
    parts.store.revoke_key(keys[0].key_id, now=2)
    parts.end_windows()
    delete_before(parts.store, parts.store.ranking("r10").stamp, author="test", now=parts.clock.time)
    parts.store.save_snapshot(parts.live.named(None).snapshot(), now=parts.clock.time)
    parts.store.save_model(random.Random(2).randbytes(1_000), now=parts.clock.time)
    for number in range(5):  # windows that are open, and events that wait for their list
        item = parts.show(f"open{number}").shown.items[0]
        parts.do(events(click(f"click{number}", f"open{number}", item), click(f"early{number}", f"later{number}", "a")))
    killed = {ending: Path(f"{parts.path}{ending}").read_bytes() for ending in ENDINGS}
    parts.store._connection.execute("VACUUM")  # what is left of rows that were deleted is gone
    parts.store.close()
    return {
        "killed": killed,
        "stopped": {ending: Path(f"{parts.path}{ending}").read_bytes() for ending in ("", ".mark")},
    }


def used_bytes(database: Path) -> dict[str, list[int]]:
    """Where in the file the bytes of each table and its indexes are that are not zero."""
    content, positions = database.read_bytes(), dict[str, list[int]]()
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    for table, _, start, size in connection.execute(_TREES):
        positions.setdefault(table, []).extend(at for at in range(start, start + size) if content[at])
    empty = [table for table in positions if connection.execute(f"SELECT count(*) FROM {table}").get == 0]
    connection.close()
    assert not empty, empty
    return positions


def flip_bits(folder: Path, *, times: int, seed: int) -> Counter[str]:
    """Flip a bit so many times, each in fresh files; how often it was noticed, changed nothing, or was not noticed, by file or table."""
    rng, files, outcomes = random.Random(seed), files_of_a_server(folder), Counter[str]()
    positions = used_bytes(folder / "service.db")
    (folder / "started").mkdir()
    truth = contents_after(start(folder, files["stopped"]))
    assert contents_after(start(folder, files["killed"])) == truth
    tables = cycle(sorted(positions))
    for _, ending in zip(range(times), cycle(FLIPPED), strict=False):
        end = "killed" if ending else "stopped"
        damaged, table = bytearray(files[end][ending]), ending or next(tables)
        position = rng.randrange(len(damaged)) if ending else rng.choice(positions[table])
        damaged[position] ^= 1 << rng.randrange(8)
        step = "the start"
        try:
            store = start(folder, files[end] | {ending: bytes(damaged)})
            step = "later checks"
            is_same = contents_after(store) == truth
            outcome = "changed nothing" if is_same else f"not noticed at {position}"
        except RankPolicyError:
            outcome = f"noticed by {step}"
        outcomes[f"{table}: {outcome}"] += 1
    return outcomes


def start(folder: Path, files: dict[str, bytes]) -> SqliteStore:
    """A store of these files."""
    shutil.rmtree(folder / "started")
    (folder / "started").mkdir()
    for ending, content in files.items():
        (folder / "started" / f"service.db{ending}").write_bytes(content)
    return SqliteStore(folder / "started" / "service.db")


def contents_after(store: SqliteStore) -> dict[str, Any]:
    """All rows of all tables after the check that follows a start, and a replay."""
    try:
        for _ in store.checked_blocks():
            pass
        store.check()
        if not all(policy.is_equal for policy in replay(store, policy_of)):
            raise RankPolicyError("a snapshot is not what the log says")
        return {
            table: rows_of(store, table)
            for (table,) in store.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }
    finally:
        store.close()


def rows_of(store: SqliteStore, table: str) -> list[Any]:
    columns = [name for (name,) in store.rows("SELECT name FROM pragma_table_info(?)", table)]
    read = ", ".join(name for name in columns if (table, name) not in _UNREAD)
    return sorted(store.rows(f"SELECT {read} FROM {table}"), key=repr)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
        for outcome, number in sorted(flip_bits(Path(made), times=int(sys.argv[1]), seed=seed).items()):
            print(f"{number:5d} {outcome}")
