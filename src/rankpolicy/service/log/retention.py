"""Old lists and events deleted: what policies learned from them stays, as anchors that states are computed from afterwards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice

from rankpolicy.service.domain.deployments import Change
from rankpolicy.service.domain.records import Snapshot
from rankpolicy.service.learning.live import LESSONS_AT_ONCE, LivePolicy
from rankpolicy.service.log.store import Store
from rankpolicy.service.log.transaction import LOG
from rankpolicy.service.policies.members import SERVED
from rankpolicy.service.policies.policy_settings import policy_of_version
from rankpolicy.types import RankPolicyError

_LONGEST_SILENCE = """
    SELECT max(silence) FROM (SELECT stamp - lag(stamp) OVER (ORDER BY seq) AS silence FROM rankings WHERE seq <= ?) AS silences
"""
_OF_LOG = " UNION ALL ".join(f"SELECT {{0}}(seq) AS place FROM {table}" for table in LOG)
_FIRST, _NEWEST = (f"SELECT {which}(place) FROM ({_OF_LOG.format(which)}) AS places" for which in ("min", "max"))
# The first place up to a given one that something after it, or an open window, needs; the place is asked for six times.
_NEEDED = """
    SELECT min(place) FROM (
        SELECT min(ranking_seq) AS place FROM pending WHERE ranking_seq <= ?
        UNION ALL SELECT min(event_seq) FROM parked WHERE event_seq <= ?
        UNION ALL SELECT min(ranking_seq) FROM lessons WHERE seq > ? AND ranking_seq <= ?
        UNION ALL SELECT min(event_seq) FROM attachments WHERE seq > ? AND event_seq <= ?
    ) AS places
"""

ROWS_AT_ONCE = 50_000  # in one transaction, so that no commit waits for long
LONGEST_SILENCE_DAYS = 30  # without a list, in a service that deletes by itself; more looks like a clock that jumped


def delete_before(store: Store, before: int, *, author: str, now: int) -> int:
    """Delete lists shown before a time, with their events and lessons; the number of rows. ``rankpolicy service export`` keeps a copy.

    Lists whose window is open stay, and everything after them. The state of every version after the last deleted lesson is kept as an
    anchor, computed from the log before it is deleted; every deletion is in the audit log.
    """
    deleted = 0
    while (change := _deleted_some(store, before, author, now)) is not None:
        deleted += int(json.loads(change.detail)["rows"])
    return deleted


def delete_older_than(store: Store, days: float, *, now: int) -> int:
    """Delete what is older by the clock; the number of rows. After a jump of the clock nothing is deleted, and an error says so."""
    before = now - round(days * 86_400e6)
    silence = _longest_silence(store, before, now=now) / 86_400e6
    if silence > LONGEST_SILENCE_DAYS:
        raise RankPolicyError(
            f"the log has no list for {silence:.0f} days, more than {LONGEST_SILENCE_DAYS}: the clock seems to have jumped ahead, so "
            "nothing is deleted because of its age. Correct the clock; if it is right, run rankpolicy service delete --before DATE."
        )
    return delete_before(store, before, author="retention", now=now)


def _deleted_some(store: Store, before: int, author: str, now: int) -> Change | None:
    through = _deletable_through(store, before)
    if through is None:
        return None
    anchors = []
    for version in store.versions():
        if SERVED.named(version.kind).learns:
            live = LivePolicy(version=version, policy=policy_of_version(version, store.model))
            live.begin(store)
            lessons = store.lessons(version.key, after=live.applied, until=through)
            while block := list(islice(lessons, LESSONS_AT_ONCE)):
                live.learn(block)
            anchors.append(Snapshot(version=version.key, seq=through, state=live.policy.state()))
    return _delete_through(store, through, anchors, author=author, now=now)


def _longest_silence(store: Store, before: int, *, now: int) -> int:
    """Microseconds of the longest time between two lists of those shown before a time and the first one after them; 0 for no list."""
    ((last,),) = store.rows("SELECT max(seq) FROM rankings WHERE stamp < ?", before)
    if last is None:
        return 0
    ((longest,),) = store.rows(_LONGEST_SILENCE, last)
    ((newest,),) = store.rows("SELECT stamp FROM rankings WHERE seq = ?", last)
    following = store.rows("SELECT stamp FROM rankings WHERE seq > ? ORDER BY seq LIMIT 1", last)
    return max(int(longest or 0), int(following[0][0] if following else now) - int(newest))


def _deletable_through(store: Store, before: int) -> int | None:
    """The last row of the log up to which everything may be deleted now; None where there is nothing to delete.

    A list stays while its window is open or its lesson stays, and an event while it waits for its list or is needed by one that stays.
    """
    ((first,),) = store.rows(_FIRST)
    ((last,),) = store.rows("SELECT max(seq) FROM rankings WHERE stamp < ?", before)
    if first is None or last is None:
        return None
    ((newest,),) = store.rows(_NEWEST)
    through = min(last, first + ROWS_AT_ONCE - 1, newest - 1)  # one row stays, so that numbers go on
    while True:
        ((needed,),) = store.rows(_NEEDED, *[through] * 6)
        if needed is None:
            return int(through) if through >= first else None
        through = needed - 1


def _delete_through(store: Store, seq: int, anchors: Sequence[Snapshot], *, author: str, now: int) -> Change:
    """Delete the log up to a row, keep the states after the last deleted lesson, and note it in the log of changes, in one transaction."""
    with store.transaction() as connection:
        num_rows = 0
        for table in LOG:
            num_rows += store.rows(f"SELECT count(*) FROM {table} WHERE seq <= ?", seq)[0][0]
            connection.execute(f"DELETE FROM {table} WHERE seq <= ?", (seq,))
        for anchor in anchors:
            connection.execute("DELETE FROM anchors WHERE version = ?", (anchor.version,))
            store.insert(connection, "anchors", (anchor.version, anchor.seq, anchor.state))
            connection.execute("DELETE FROM snapshots WHERE version = ? AND seq < ?", (anchor.version, anchor.seq))
        detail = json.dumps({"through": seq, "rows": num_rows}, separators=(",", ":"))
        return store.add_change(author, "delete", "", detail=detail, now=now, connection=connection)
