"""Which version of a policy is served to whom: the fold of a log of changes, which is also the audit log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from rankpolicy.types import RankPolicyError

Action = Literal["configure", "promote", "rollback", "retrain", "evaluate", "delete"]


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"author": "who"}):
    """A row of the log of changes. Only configure, promote and rollback change what is served; the others are kept for audits."""

    number: int
    stamp: int
    author: str
    action: Action
    policy: str
    version: int | None = None
    share: float = 1.0
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The versions of a policy that are served."""

    stable: tuple[int, ...]
    canary: int | None = None
    share: float = 0.0
    since: int = 0

    @property
    def versions(self) -> tuple[int, ...]:
        """All versions that are served or may be returned to."""
        return tuple(dict.fromkeys((*self.stable, *(() if self.canary is None else (self.canary,)))))

    def shares(self) -> dict[int, float]:
        """The share of the traffic of each version that has one."""
        if self.canary is None:
            return {self.stable[-1]: 1.0}
        return {self.stable[-1]: 1.0 - self.share, self.canary: self.share}

    def promoted(self, version: int, share: float) -> Deployment:
        """After a version was given a share of the traffic; 1 is all."""
        if not 0 < share <= 1:
            raise RankPolicyError(f"share must be above 0 and at most 1 (100%); got {share:g}.")
        if version == self.stable[-1]:
            raise RankPolicyError(f"version {version} serves already all that no canary gets; nothing was changed.")
        if share == 1:
            return replace(self, stable=(*self.stable, version), canary=None, share=0.0)
        return replace(self, canary=version, share=share)

    def rolled_back(self) -> Deployment:
        """Without the canary; where there is none, with the version before the last."""
        if self.canary is not None:
            return replace(self, canary=None, share=0.0)
        if len(self.stable) == 1:
            raise RankPolicyError("there is nothing to roll back: the version of the configuration serves everything.")
        return replace(self, stable=self.stable[:-1])


def after_change(deployed: dict[str, Deployment], change: Change) -> dict[str, Deployment]:
    """What is served after a change."""
    if change.action not in ("configure", "promote", "rollback"):
        return deployed
    before = deployed.get(change.policy)
    if change.action == "configure":
        assert change.version is not None
        after = Deployment(stable=(change.version,))
    elif before is None:
        raise RankPolicyError(f"the policy {change.policy!r:.80} was never served. Start the service with it first.")
    elif change.action == "promote":
        assert change.version is not None
        after = before.promoted(change.version, change.share)
    else:
        after = before.rolled_back()
    return deployed | {change.policy: replace(after, since=change.stamp)}


def deployments(changes: Iterable[Change]) -> dict[str, Deployment]:
    """What is served after all these changes, by policy.

    >>> made = dict(stamp=0, author="a", policy="p")
    >>> first = Change(number=1, action="configure", version=1, **made)
    >>> second = Change(number=2, action="promote", version=2, share=0.1, **made)
    >>> deployments([first, second])["p"].shares()
    {1: 0.9, 2: 0.1}
    """
    deployed: dict[str, Deployment] = {}
    for change in changes:
        deployed = after_change(deployed, change)
    return deployed
