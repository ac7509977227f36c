"""Bytes that nobody wrote are noticed; no state is ever computed from them.

The flips are spread over the whole file: ``RANKPOLICY_FLIPS=5000 pytest tests/service/test_damage.py`` flips one bit of each of five
thousand bytes at equal distances, and a number beyond the size of the file one bit of every byte. Of a snapshot every byte is flipped.
"""

import os
import random
import shutil

import pytest

from rankpolicy.service.domain.keys import new_key
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.learning.live import LivePolicy
from rankpolicy.service.log.replay import replay
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.types import RankPolicyError
from tests.service.parts import BANDIT, Parts, click, events, live_policies, policy_of
from tests.service.test_replay import live_for_a_while

FLIPS = int(os.environ.get("RANKPOLICY_FLIPS", "60"))
CHANGES = {
    "query": "UPDATE rankings SET shown = CAST(replace(CAST(shown AS TEXT), 'query', 'qvery') AS BLOB)",
    "clicks": "UPDATE lessons SET clicks = zeroblob(length(clicks)) WHERE clicks != zeroblob(length(clicks))",
    "event": "UPDATE events SET fate = 'late' WHERE fate = 'accepted'",
    "deadline": "UPDATE rankings SET deadline = deadline + 1",
    "row": "DELETE FROM events WHERE seq = (SELECT min(seq) FROM events)",
    "revoked key": "UPDATE keys SET revoked = NULL",
    "scopes": "UPDATE keys SET scopes = 'rank promote'",
    "audit": "UPDATE audit SET detail = replace(detail, 'rank', 'rand')",
    "secret": "UPDATE meta SET value = zeroblob(32)",
    "open window": "UPDATE pending SET clicks = x'010101'",
    "waiting event": "UPDATE parked SET ranking_id = 'another'",
    "lesson": "DELETE FROM lessons WHERE seq = (SELECT min(seq) FROM lessons)",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    parts = Parts(tmp_path_factory.mktemp("damage") / "service.db", {"default": BANDIT})
    live_for_a_while(parts, random.Random(0), 30)
    parts.end_windows()
    parts.state_at_the_end = parts.state()
    parts.show("open")
    parts.do(events(click("early", "later", "a")))
    key = new_key(["rank"])[1]
    parts.store.add_key(key, now=1)
    parts.store.revoke_key(key.key_id, now=2)
    parts.store.close()
    return parts


@pytest.mark.parametrize("change", CHANGES)
def test_a_row_that_was_changed_is_noticed(sound, tmp_path, change):
    shutil.copy(sound.path, tmp_path / "service.db")
    store = SqliteStore(tmp_path / "service.db")
    store._connection.execute(CHANGES[change])
    with pytest.raises(DamagedStoreError, match=r"damaged|missing"):
        store.check()
    with pytest.raises(DamagedStoreError, match=r"damaged|missing"):
        list(store.checked_blocks())
    store.close()


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ("revoked key", lambda parts: parts.store.valid_keys()),
        ("audit", lambda parts: parts.store.audit_lines()),
        ("secret", lambda parts: parts.store.secret()),
        ("open window", lambda parts: parts.store.clicks_of(parts.store.ranking("open"))),
        ("open window", lambda parts: parts.do(events(click("now", "open", "a")))),
        ("open window", lambda parts: parts.end_windows()),
        ("waiting event", lambda parts: parts.show("another")),
    ],
)
def test_a_changed_row_is_noticed_by_who_reads_it(sound, tmp_path, change, read):
    shutil.copy(sound.path, tmp_path / "service.db")
    parts = Parts(tmp_path / "service.db", {"default": BANDIT})
    parts.clock.time = sound.clock.time
    parts.store._connection.execute(CHANGES[change])
    with pytest.raises(DamagedStoreError, match="is damaged"):
        read(parts)
    parts.store.close()


def test_an_open_list_that_is_gone_stops_learning(tmp_path):
    parts = Parts(tmp_path / "service.db", {"default": BANDIT})
    parts.show("r1")
    parts.store._connection.execute("DELETE FROM rankings")
    parts.store._mark.path.unlink()  # it would notice that the log is shorter
    parts.store.reopen()  # until then the list is remembered
    parts.clock.time += 10**9
    with pytest.raises(DamagedStoreError, match="list 1 is missing"):
        parts.do()
    parts.store.close()


@pytest.mark.parametrize(
    ("old", "new"), [(b"stamp INTEGER NOT NULL, body", b"stbmp INTEGER NOT NULL, body"), (b"lessons_by", b"lessonz_by")]
)
def test_a_table_with_another_name_is_noticed(sound, tmp_path, old, new):
    path = tmp_path / "service.db"
    path.write_bytes(sound.path.read_bytes().replace(old, new))
    for role in ("server", "keys", "reader"):
        with pytest.raises(DamagedStoreError, match="is damaged"):
            SqliteStore(path, role=role, check="none")


def test_settings_that_were_changed_are_noticed(sound, tmp_path):
    shutil.copy(sound.path, tmp_path / "service.db")
    store = SqliteStore(tmp_path / "service.db")
    store._connection.execute("UPDATE policies SET settings = replace(settings, 'mp', 'dcm')")
    with pytest.raises(DamagedStoreError, match="row 1 of policies is damaged"):
        store.versions()
    store.close()


def test_a_flipped_byte_anywhere_is_noticed_or_changes_nothing(sound, tmp_path):
    content = sound.path.read_bytes()
    rng, noticed = random.Random(4), 0
    step = max(1, len(content) // FLIPS)
    for place in range(rng.randrange(step), len(content), step):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.randrange(8)
        path = tmp_path / "service.db"
        path.write_bytes(damaged)
        try:
            store = SqliteStore(path)
        except RankPolicyError:
            noticed += 1
            continue
        try:
            store.check()
            (found,) = replay(store, policy_of)
        except RankPolicyError:
            noticed += 1
        else:
            policy = policy_of(store.versions()[0])
            policy.learn(list(store.lessons(1)))
            assert policy.state() == sound.state_at_the_end, place
            assert found.lessons == 30
        finally:
            store.close()
            for rest in tmp_path.glob("service.db*"):
                rest.unlink()
    assert noticed >= 10


def test_any_flipped_bit_of_a_snapshot_is_noticed_and_the_log_is_read_instead(sound, tmp_path):
    path = tmp_path / "service.db"
    shutil.copy(sound.path, path)
    store = SqliteStore(path)
    live = live_policies(store, {"default": BANDIT})
    store.save_snapshot(live.named(None).snapshot(), now=10**12)
    (good,) = store.snapshots(1)
    assert good.is_sound
    rng = random.Random(5)
    for place in range(len(good.state)):
        damaged = bytearray(good.state)
        damaged[place] ^= 1 << rng.randrange(8)
        store._connection.execute("UPDATE snapshots SET state = ?", (bytes(damaged),))
        (found,) = store.snapshots(1)
        assert not found.is_sound
    said = []
    restored = LivePolicy(version=store.versions()[0], policy=policy_of(store.versions()[0]))
    restored.restore(store, said.append)
    assert "is damaged; an older state is taken" in said[0]
    assert restored.policy.state() == sound.state_at_the_end
    for column, value in (("seq", good.seq - 1), ("version", 2)):  # a sound state in the wrong place
        store._connection.execute("UPDATE snapshots SET state = ?", (good.state,))
        store._connection.execute(f"UPDATE snapshots SET {column} = ?", (value,))
        assert not store.snapshots(2 if column == "version" else 1)[0].is_sound
        store._connection.execute("UPDATE snapshots SET seq = ?, version = 1", (good.seq,))
    store.close()
