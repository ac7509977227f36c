"""Putting a version in front of users, and taking it back: what the command line, the interface and retraining do alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rankpolicy.service.domain.deployments import Change, Deployment, deployments
from rankpolicy.service.domain.records import PolicyVersion
from rankpolicy.service.domain.routing import by_number
from rankpolicy.service.log.store import Store
from rankpolicy.service.policies.members import SERVED
from rankpolicy.service.policies.policy_settings import policy_of_content
from rankpolicy.types import RankPolicyError, check_name

MOST_MODEL_BYTES = 64 << 20


def promote_model(
    store: Store,
    policy: str,
    content: bytes,
    *,
    share: float = 1.0,
    settings: Mapping[str, Any] | None = None,
    author: str,
    detail: str = "",
    now: int,
) -> Change:
    """Serve a saved ranker under the name of a policy."""
    serving = serving_version(store, policy)
    if settings is None:
        serving_settings = json.loads(serving.settings) if serving.kind == "ranker" else {}
        settings = {name: value for name, value in serving_settings.items() if name != "model"}
    if len(content) > MOST_MODEL_BYTES:
        raise RankPolicyError(f"a model must have at most {MOST_MODEL_BYTES >> 20} MiB; this one has more.")
    candidate = checked_candidate(content, settings)
    stored = json.dumps({**settings, "model": candidate.model_sha256}, sort_keys=True)
    _deployment(store, policy).promoted(0, share)  # refuses a share before anything is stored
    store.save_model(content, now=now)
    version = store.version_of(policy, "ranker", stored, now=now)
    return store.add_change(author, "promote", policy, version=version.number, share=share, detail=detail, now=now)


def promote_version(
    store: Store, policy: str, number: int, *, share: float = 1.0, author: str, detail: str = "", now: int
) -> Change:
    """Serve a version that the database knows."""
    deployment = _deployment(store, policy)
    version = by_number(store.versions()).get((policy, number))
    if version is None:
        raise RankPolicyError(f"the policy {policy!r:.80} has no version {number}. GET /v1/policies lists them.")
    if SERVED.named(version.kind).learns and number not in deployment.versions:
        raise RankPolicyError(
            f"version {number} learns online and was not served last: put its settings into the configuration instead."
        )
    return store.add_change(author, "promote", policy, version=number, share=share, detail=detail, now=now)


def rollback(store: Store, policy: str, *, author: str, detail: str = "", now: int) -> Change:
    """End the canary of a policy; where there is none, return to the version before the last."""
    _deployment(store, policy)
    return store.add_change(author, "rollback", policy, detail=detail, now=now)


def serving_version(store: Store, policy: str) -> PolicyVersion:
    """The version that serves all traffic that no canary gets."""
    return by_number(store.versions())[policy, _deployment(store, policy).stable[-1]]


def checked_candidate(content: bytes, settings: Mapping[str, Any]) -> Any:
    """A ranker from the bytes of its file, as a policy; anything else is refused with a reason that names no file of the server."""
    for name in settings:
        check_name("setting of a ranker:", name, ("order_by", "temperature"))
    try:
        return policy_of_content(content, settings)
    except RankPolicyError as error:
        words = [word for word in str(error).split(" ") if "rankpolicy-" not in word]
        raise RankPolicyError(f"the model cannot be served: {' '.join(words)}") from None


def _deployment(store: Store, policy: str) -> Deployment:
    deployed = deployments(store.changes())
    if not deployed:
        raise RankPolicyError("no policy was served from this database yet. Start 'rankpolicy serve' with it first.")
    check_name("policy", policy, deployed)
    return deployed[policy]
