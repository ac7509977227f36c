"""The state is the fold of the log: live, after a restart, from a snapshot, and computed again from the beginning."""

import random

import pytest

from rankpolicy.bandits import BANDITS
from rankpolicy.bandits.per_query.query_bandit import _serves
from rankpolicy.service.domain.records import Snapshot
from rankpolicy.service.log.replay import replay
from tests.service.parts import Parts, click, events, policy_of

SERVED_BANDITS = [name for name in BANDITS if _serves(name)]


def live_for_a_while(parts, rng, num_lists, start=0):
    """Lists and clicks at random moments, some doubled, some late, some before their list."""
    for number in range(start, start + num_lists):
        query, ranking_id = f"q{rng.randrange(4)}", f"r{number}"
        if rng.random() < 0.1:
            parts.do(events(click(f"{ranking_id}-early", ranking_id, "a")))
        shown = parts.show(ranking_id, query=query, items="abcdef").shown.items
        for item in shown:
            if rng.random() < 0.4:
                event = click(f"{ranking_id}-{item}", ranking_id, item)
                parts.clock.time += rng.choice([0, 10, 400_000, 1_200_000])
                parts.do(events(event, event) if rng.random() < 0.3 else events(event))
    parts.do()


@pytest.mark.parametrize("bandit", SERVED_BANDITS)
def test_replay_equals_the_live_state_bit_for_bit(tmp_path, bandit):
    parts = Parts(tmp_path / "service.db", {"default": {"kind": "bandit", "bandit": bandit}})
    rng = random.Random(1)
    live_for_a_while(parts, rng, 40)
    parts.store.save_snapshot(parts.live.named(None).snapshot(), now=parts.clock.time)
    live_for_a_while(parts, rng, 40, start=40)
    parts.end_windows()
    live, applied = parts.state(), parts.live.named(None).applied
    (found,) = replay(parts.store, policy_of)
    assert found.is_equal
    assert len(found.snapshots) == 1
    assert (found.lessons, found.last_lesson) == (80, applied)
    assert parts.live.named(None).state_hash() == (applied, found.state_sha256)
    parts.store.check()
    parts.store.close()
    parts.open()  # from the snapshot and the lessons after it
    assert parts.state() == live
    parts.store.close()


def test_a_damaged_snapshot_is_noticed_and_not_used(tmp_path):
    parts = Parts(tmp_path / "service.db", {"default": {"kind": "bandit", "bandit": "dcm-ts"}})
    live_for_a_while(parts, random.Random(2), 10)
    parts.end_windows()
    good = parts.live.named(None).snapshot()
    parts.store.save_snapshot(good, now=parts.clock.time)
    state = bytearray(good.state)
    for place in (0, 20, len(state) - 1):
        state[place] ^= 4
        parts.store._connection.execute("UPDATE snapshots SET state = ?", (bytes(state),))
        assert not parts.store.snapshots(good.version)[0].is_sound
        assert not replay(parts.store, policy_of)[0].is_equal
        parts.store.close()
        parts.open()
        assert parts.state() == good.state
        state[place] ^= 4
    parts.store.close()


def test_a_snapshot_that_agrees_with_its_hash_and_not_with_the_log_is_found_by_replay(tmp_path):
    parts = Parts(tmp_path / "service.db", {"default": {"kind": "bandit", "bandit": "dcm-ts"}})
    live_for_a_while(parts, random.Random(3), 10)
    parts.end_windows()
    good = parts.live.named(None).snapshot()
    wrong = Snapshot(version=good.version, seq=good.seq, state=good.state[:-1] + b"\x07")
    parts.store.save_snapshot(wrong, now=parts.clock.time)
    assert not replay(parts.store, policy_of)[0].is_equal
    parts.store.close()
