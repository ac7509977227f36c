"""Work on the log that takes seconds or more: it reads a database beside the running service."""

from __future__ import annotations

import json
from typing import Any

from rankpolicy.service.domain.messages import Evaluate
from rankpolicy.service.domain.records import PolicyVersion
from rankpolicy.service.domain.routing import by_number
from rankpolicy.service.learning.live import LivePolicy
from rankpolicy.service.learning.off_policy_evidence import (
    candidate_value,
    compared,
    document_of,
    evidence_of,
    own_rewards,
)
from rankpolicy.service.learning.promotion import checked_candidate, serving_version
from rankpolicy.service.log.store import Store
from rankpolicy.service.policies.served_policy import ServedPolicy
from rankpolicy.service.policies.stored_versions import policy_of_version
from rankpolicy.types import RankPolicyError


def evaluate(store: Store, wanted: Evaluate, *, content: bytes | None = None, now: int) -> dict[str, Any]:
    """The off-policy value of a candidate on the log, as JSON can hold it."""
    name, candidate = _candidate(store, wanted, content)
    since = round(wanted.since * 1e6)
    evidence = evidence_of(store.logged(since=since), now=now, event=wanted.event)
    estimate = candidate_value(evidence, candidate, estimator=wanted.estimator, level=wanted.level)
    comparison = None
    if wanted.against is not None:
        version = serving_version(store, wanted.against)
        other = restored(store, version)
        rewards: list[float] = []
        if other.step_probabilities([], []) is None:
            own = store.logged(since=since, version=version.key)
            rewards = own_rewards(own, now=now, event=wanted.event)
        comparison = compared(
            evidence, candidate, other, own_rewards=rewards, estimator=wanted.estimator, level=wanted.level
        )
    found = {"candidate": name, "event": wanted.event, "since": wanted.since}
    against = {"policy": wanted.against} if wanted.against is not None else {}
    document = document_of(evidence, estimate, comparison)
    if document["against"] is not None:
        document["against"] |= against
    return found | document


def note_evaluation(store: Store, found: dict[str, Any], *, who: str, now: int) -> None:
    """Keep the result of an evaluation in the audit log."""
    candidate = found["candidate"]
    policy = candidate.get("policy") or (found["against"] or {}).get("policy") or ""
    store.add_change(who, "evaluate", policy, version=candidate.get("version"), detail=json.dumps(found), now=now)


def restored(store: Store, version: PolicyVersion) -> ServedPolicy:
    """A version with everything that it has learned by now."""
    live = LivePolicy(version=version, policy=policy_of_version(version, store.model))
    if live.policy.learns:
        live.restore(store, lambda text: None)
    return live.policy


def _candidate(store: Store, wanted: Evaluate, content: bytes | None) -> tuple[dict[str, Any], ServedPolicy]:
    settings = {"order_by": wanted.order_by, "temperature": wanted.temperature}
    given = {key: value for key, value in settings.items() if value is not None}
    if content is None and wanted.model_sha256 is not None:
        content = store.model(wanted.model_sha256)
        if content is None:
            raise RankPolicyError("there is no model with this hash in the database.")
    if (content is None) == (wanted.policy is None):
        raise RankPolicyError("name one candidate: a model, or a policy and perhaps its version.")
    if content is not None:
        made: ServedPolicy = checked_candidate(content, given)
        return {"model_sha256": made.model_sha256} | given, made
    assert wanted.policy is not None
    version = serving_version(store, wanted.policy)
    if wanted.version is not None:
        known = by_number(store.versions())
        if (wanted.policy, wanted.version) not in known:
            raise RankPolicyError(f"the policy {wanted.policy!r:.80} has no version {wanted.version}.")
        version = known[wanted.policy, wanted.version]
    about = {"policy": version.policy, "version": version.number, "kind": version.kind}
    return about | {"settings": json.loads(version.settings)}, restored(store, version)
