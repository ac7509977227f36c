"""Old lists and events deleted: what policies learned from them stays, as anchors that states are computed from afterwards."""

from __future__ import annotations

import json
from itertools import islice

from rankpolicy.service.changes import Change
from rankpolicy.service.live import LESSONS_AT_ONCE, LivePolicy
from rankpolicy.service.policies.members import SERVED
from rankpolicy.service.policies.restoring import policy_of_version
from rankpolicy.service.records import Snapshot
from rankpolicy.service.served_store import ServedStore

ROWS_AT_ONCE = 50_000  # in one transaction, so that nobody waits for long


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
