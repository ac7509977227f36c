"""A bit that changes in the write-ahead log or in the database of a killed server: noticed, or nothing is different.

``python -m tests.service.faults.bit_flips 200`` flips two hundred bits, one at a time.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from rankpolicy.service.keys import SCOPES, new_key
from rankpolicy.service.replay import replay
from rankpolicy.service.sqlite import SqliteStore
from rankpolicy.types import RankPolicyError
from tests.service.parts import BANDIT, Parts, policy_of
from tests.service.test_replay import live_for_a_while

ENDINGS = ("", "-wal", ".mark")


def files_of_a_server(folder: Path) -> dict[str, dict[str, bytes]]:
    """The files that a server leaves when it is killed, half of its commits in the write-ahead log, and when it is stopped."""
    parts = Parts(folder / "service.db", {"default": BANDIT})
    live_for_a_while(parts, random.Random(0), 30)
    _, key = new_key(SCOPES)
    parts.store.add_key(key, now=1)
    parts.store._connection.wal_checkpoint()
    live_for_a_while(parts, random.Random(1), 30, start=30)
    parts.store.revoke_key(key.key_id, now=2)
    parts.end_windows()
    killed = {ending: Path(f"{parts.path}{ending}").read_bytes() for ending in ENDINGS}
    parts.store.close()
    return {
        "killed": killed,
        "stopped": {ending: Path(f"{parts.path}{ending}").read_bytes() for ending in ("", ".mark")},
    }


def flip_bits(folder: Path, *, times: int, seed: int) -> Counter[str]:
    """Flip a bit so many times, each in fresh files; how often it was noticed, changed nothing, or was not noticed, by file."""
    rng, files, outcomes = random.Random(seed), files_of_a_server(folder), Counter[str]()
    truth = contents_after(folder, files["stopped"])
    assert contents_after(folder, files["killed"]) == truth
    for turn in range(times):
        end, ending = (("killed", "-wal"), ("stopped", ""), ("killed", "-wal"), ("stopped", ""), ("killed", ".mark"))[
            turn % 5
        ]
        damaged = bytearray(files[end][ending])
        position = rng.randrange(len(damaged))
        damaged[position] ^= 1 << rng.randrange(8)
        try:
            is_same = contents_after(folder, files[end] | {ending: bytes(damaged)}) == truth
            outcome = "changed nothing" if is_same else f"not noticed at {position}"
        except RankPolicyError:
            outcome = "noticed"
        outcomes[f"{ending or 'database'}: {outcome}"] += 1
    return outcomes


def contents_after(folder: Path, files: dict[str, bytes]) -> dict[str, Any]:
    """All rows of all tables after a start with these files, the check of the rows that follows it, and a replay."""
    shutil.rmtree(folder / "started", ignore_errors=True)
    (folder / "started").mkdir()
    for ending, content in files.items():
        (folder / "started" / f"service.db{ending}").write_bytes(content)
    store = SqliteStore(folder / "started" / "service.db")
    try:
        for _ in store.checked_blocks():
            pass
        store.check()
        if not all(policy.is_equal for policy in replay(store, policy_of)):
            raise RankPolicyError("a snapshot is not what the log says")
        tables = [name for (name,) in store._rows("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {table: sorted(store._rows(f"SELECT * FROM {table}"), key=repr) for table in tables}
    finally:
        store.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for outcome, number in sorted(flip_bits(Path(made), times=int(sys.argv[1]), seed=0).items()):
            print(f"{number:5d} {outcome}")
