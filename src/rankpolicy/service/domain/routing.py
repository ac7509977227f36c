"""From the policy that a request names to the version that answers it: the same in the service and when the log is replayed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

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


class GeneratorOfLists:
    """The generators of all lists, one after the other: setting the state of one takes a tenth of the time that making one takes."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._generator = np.random.Generator(np.random.PCG64(0))

    def at(self, ranking_id: str) -> np.random.Generator:
        """What ``generator_of`` returns for a list, until this is called again.

        >>> lists = GeneratorOfLists(b"s")
        >>> [lists.at(name).random() == generator_of(b"s", name).random() for name in "aba"]
        [True, True, True]
        """
        digest = blake2b(ranking_id.encode("utf-8", "surrogatepass"), digest_size=32, key=self._secret).digest()
        state, increment = int.from_bytes(digest[:16], "little"), int.from_bytes(digest[16:], "little") | 1
        self._generator.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": increment},  # the increment must be odd
            "has_uint32": 0,
            "uinteger": 0,
        }
        return self._generator


def generator_of(secret: bytes, ranking_id: str) -> np.random.Generator:
    """The generator of a list.

    >>> generator_of(b"s", "a").random() == generator_of(b"s", "a").random()
    True
    """
    return GeneratorOfLists(secret).at(ranking_id)
