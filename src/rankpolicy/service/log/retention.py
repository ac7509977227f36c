"""Old lists and events deleted: what policies learned from them stays, as anchors that states are computed from afterwards."""

from __future__ import annotations

import json
from itertools import islice

from rankpolicy.service.domain.deployments import Change
from rankpolicy.service.domain.records import Snapshot
from rankpolicy.service.learning.live import LESSONS_AT_ONCE, LivePolicy
from rankpolicy.service.log.served_store import ServedStore
from rankpolicy.service.policies.members import SERVED
from rankpolicy.service.policies.stored_versions import policy_of_version
from rankpolicy.types import RankPolicyError

ROWS_AT_ONCE = 50_000  # in one transaction, so that nobody waits for long
LONGEST_SILENCE_DAYS = 30  # without a list, in a service that deletes by itself; more looks like a clock that jumped


def delete_before(store: ServedStore, before: int, *, who: str, now: int) -> int:
    """Delete lists shown before a time, with their events and lessons; the number of rows. ``rankpolicy service export`` keeps a copy.

    Lists whose window is open stay, and everything after them. The state of every version after the last deleted lesson is kept as an
    anchor, computed from the log before it is deleted; every deletion is in the audit log.

    Parameters
    ----------
    store
        The database.
    before
        Microseconds since 1970.
    who
        Who does it, for the audit log.
    now
        The time of the service.
    """
    deleted = 0
    while (change := _deleted_some(store, before, who, now)) is not None:
        deleted += int(json.loads(change.detail)["rows"])
    return deleted


def delete_older_than(store: ServedStore, days: float, *, now: int) -> int:
    """Delete what is older by the clock; the number of rows. After a jump of the clock nothing is deleted, and an error says so.

    Parameters
    ----------
    store
        The database.
    days
        How long lists are kept.
    now
        The time of the service.
    """
    before = now - round(days * 86_400e6)
    silence = store.longest_silence(before, now=now) / 86_400e6
    if silence > LONGEST_SILENCE_DAYS:
        raise RankPolicyError(
            f"the log has no list for {silence:.0f} days, more than {LONGEST_SILENCE_DAYS}: the clock seems to have jumped ahead, so "
            "nothing is deleted because of its age. Correct the clock; if it is right, run rankpolicy service delete --before DATE."
        )
    return delete_before(store, before, who="retention", now=now)


def _deleted_some(store: ServedStore, before: int, who: str, now: int) -> Change | None:
    through = store.deletable_through(before, most=ROWS_AT_ONCE)
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
    return store.delete_through(through, anchors, who=who, now=now)
