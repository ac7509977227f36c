"""From the policy that a request names to the version that answers it: the same in the service and when the log is replayed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from rankpolicy.service.domain.deployments import Deployment
from rankpolicy.service.domain.records import PolicyVersion

SPLIT = "split"  # the kind of policy that passes requests on to others
_RANGE = 1 << 64


def fraction_of(secret: bytes, *values: str | int) -> float:
    """A number from 0 to 1 that looks random, and is the same for the same parts.

    >>> fraction_of(b"s", "a", 1) == fraction_of(b"s", "a", 1) != fraction_of(b"s", "a", 2)
    True
    """
    text = json.dumps(values).encode()
    return int.from_bytes(blake2b(text, digest_size=8, key=secret).digest(), "little") / _RANGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """What is served at one moment."""

    deployed: Mapping[str, Deployment]
    versions: Mapping[tuple[str, int], PolicyVersion]
    secret: bytes

    def version(self, requested: str, unit: str) -> PolicyVersion:
        """The version that answers."""
        chosen = self._of_policy(requested, unit)
        if chosen.kind == SPLIT:
            shares: dict[str, float] = json.loads(chosen.settings)["shares"]
            chosen = self._of_policy(_member(shares, fraction_of(self.secret, requested, SPLIT, unit)), unit)
        return chosen

    def _of_policy(self, policy: str, unit: str) -> PolicyVersion:
        deployment = self.deployed[policy]
        number = deployment.stable[-1]
        if (
            deployment.canary is not None
            and fraction_of(self.secret, policy, deployment.canary, unit) < deployment.share
        ):
            number = deployment.canary
        return self.versions[policy, number]


def by_number(versions: Iterable[PolicyVersion]) -> dict[tuple[str, int], PolicyVersion]:
    """Versions by policy and number."""
    return {(version.policy, version.number): version for version in versions}


def _member(shares: Mapping[str, float], fraction: float) -> str:
    total, last = 0.0, ""
    for name in sorted(shares):
        total, last = total + shares[name], name
        if fraction < total:
            return name
    return last  # shares may add up to a little less than 1
