"""Rows of a log, made by hand."""

from __future__ import annotations

import json

from rankpolicy.service.dashboard.log_follower import EventRow, ListRow
from rankpolicy.service.domain.records import PolicyVersion, ShownList

VERSIONS = {
    key: PolicyVersion(key=key, policy=name, number=1, kind=kind, settings="{}")
    for key, (name, kind) in enumerate([("learning", "bandit"), ("any", "uniform")], 1)
}
SECOND = 1_000_000


def list_row(seq, items, *, query="q", version=1, stamp=0, candidates=None, groups=None, propensities=None):
    request = {"items": [{"id": name, "group": (groups or {}).get(name)} for name in candidates or items]}
    shown = ShownList(
        ranking_id=f"r{seq}",
        policy=VERSIONS[version].policy,
        policy_version=1,
        query=query,
        items=list(items),
        propensities=propensities,
        no_propensities=None if propensities else "why",
    )
    return ListRow(
        seq=seq, version=version, stamp=stamp, ranking_id=f"r{seq}", shown=shown, request=json.dumps(request).encode()
    )


def click(seq, ranking_seq, position, *, fate="accepted", kind="click"):
    return EventRow(seq=seq, stamp=0, fate=fate, type=kind, ranking_seq=ranking_seq, position=position)
