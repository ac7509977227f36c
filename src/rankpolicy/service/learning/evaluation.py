"""Work on the log that takes seconds or more: it reads a database while the service runs."""

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
from rankpolicy.service.policies.policy_settings import policy_of_version
from rankpolicy.service.policies.served_policy import ServedPolicy
from rankpolicy.types import RankPolicyError


def evaluate(store: Store, message: Evaluate, *, content: bytes | None = None, now: int) -> dict[str, Any]:
    """The off-policy value of a candidate on the log, as JSON can hold it."""
    name, candidate = _candidate(store, message, content)
    since = round(message.since * 1e6)
    evidence = evidence_of(store.logged(since=since), now=now, event=message.event)
    estimate = candidate_value(evidence, candidate, estimator=message.estimator, level=message.level)
    comparison = None
    if message.against is not None:
        version = serving_version(store, message.against)
        other = restored(store, version)
        rewards: list[float] = []
        if other.step_probabilities([], []) is None:
            own_lists = store.logged(since=since, version=version.key)
            rewards = own_rewards(own_lists, now=now, event=message.event)
        comparison = compared(
            evidence, candidate, other, own_rewards=rewards, estimator=message.estimator, level=message.level
        )
    facts = {"candidate": name, "event": message.event, "since": message.since}
    document = document_of(evidence, estimate, comparison)
    if comparison is not None:
        document["against"]["policy"] = message.against
    return facts | document


def note_evaluation(store: Store, document: dict[str, Any], *, author: str, now: int) -> None:
    """Keep the result of an evaluation in the audit log."""
    candidate = document["candidate"]
    policy = candidate.get("policy") or (document["against"] or {}).get("policy") or ""
    store.add_change(author, "evaluate", policy, version=candidate.get("version"), detail=json.dumps(document), now=now)


def restored(store: Store, version: PolicyVersion) -> ServedPolicy:
    """A version with everything that it has learned by now."""
    live = LivePolicy(version=version, policy=policy_of_version(version, store.model))
    if live.policy.learns:
        live.restore(store, lambda text: None)
    return live.policy


def _candidate(store: Store, message: Evaluate, content: bytes | None) -> tuple[dict[str, Any], ServedPolicy]:
    settings = {"order_by": message.order_by, "temperature": message.temperature}
    chosen_settings = {key: value for key, value in settings.items() if value is not None}
    if content is None and message.model_sha256 is not None:
        content = store.model(message.model_sha256)
        if content is None:
            raise RankPolicyError("there is no model with this hash in the database.")
    if (content is None) == (message.policy is None):
        raise RankPolicyError("name one candidate: a model, or a policy and perhaps its version.")
    if content is not None:
        candidate: ServedPolicy = checked_candidate(content, chosen_settings)
        return {"model_sha256": candidate.model_sha256} | chosen_settings, candidate
    assert message.policy is not None
    version = serving_version(store, message.policy)
    if message.version is not None:
        versions = by_number(store.versions())
        if (message.policy, message.version) not in versions:
            raise RankPolicyError(f"the policy {message.policy!r:.80} has no version {message.version}.")
        version = versions[message.policy, message.version]
    facts = {"policy": version.policy, "version": version.number, "kind": version.kind}
    return facts | {"settings": json.loads(version.settings)}, restored(store, version)
