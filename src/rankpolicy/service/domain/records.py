"""What the service stores and passes between its parts: shown lists, events, and the lessons that policies learn from."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rankpolicy.service.domain.marks import fresh_marks, mark, rewards_in
from rankpolicy.service.domain.messages import REWARD, NewEvent


class PolicyVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A policy with fixed settings. Other settings under the same name are another version, which learns afresh."""

    key: int
    policy: str
    number: int
    kind: str
    settings: str


class RewardRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How rewards of a list are learned.

    Parameters
    ----------
    default
        The reward of an item for which none came.
    several
        Which of several rewards of an item counts: the first, or their sum.
    deferred
        Whether the list is learned only after an event of the type activate.
    """

    default: float = 0.0
    several: Literal["first", "sum"] = "first"
    deferred: bool = False


class Ordered(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A list as a policy orders it.

    Parameters
    ----------
    items
        The items, best first.
    scores
        Their scores, where the policy has scores.
    propensities
        The probability of each item at its position given the items above it; None where no closed form is known.
    no_propensities
        Why there are none.
    propensity_draws
        Number of draws that the propensities are estimated from; 0: they are exact.
    mode
        How it came about: "served", "canary", "apprentice", "interleaved" or "fallback".
    memo
        What the policy needs to learn from the list besides its items and clicks; plain values.
    rewards
        How rewards are learned; None where clicks are.
    """

    items: list[str]
    scores: list[float] | None = None
    propensities: list[float] | None = None
    no_propensities: str | None = None
    propensity_draws: int = 0
    mode: str = "served"
    memo: Any = None
    rewards: RewardRule | None = None


class ShownList(Ordered, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename={"requested": "asked"}):
    """A list that was shown, with what off-policy estimates need; the log holds it as JSON.

    ``requested`` is the policy that the request named, another one where that splits its traffic. ``change`` is the last change of what is
    served that was known then: replay finds the same version with it.
    """

    ranking_id: str
    policy: str
    policy_version: int
    query: str
    model_sha256: str | None = None
    requested: str | None = None
    change: int = 0


class NewRanking(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True, tag=True):
    """A list to be stored."""

    shown: ShownList
    version: int
    request: bytes
    request_hash: bytes
    window: int
    learns: bool
    has_fresh_id: bool = False


class NewEvents(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True, tag=True):
    """Events of one request; each is stored or refused on its own, all in one transaction."""

    events: list[NewEvent]
    window: int


Fate = Literal["accepted", "duplicate", "orphan", "late", "conflict", "unknown_item"]


class StoredRanking(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A list as the database has it."""

    shown: ShownList
    seq: int
    version: int
    stamp: int
    deadline: int
    request_hash: bytes


class Lesson(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """A list whose window has ended, with its clicks or rewards (``domain/marks.py``): what a policy learns."""

    seq: int
    version: int
    query: str
    items: list[str]
    clicks: bytes
    memo: Any = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a policy version after the lesson ``seq``."""

    version: int
    seq: int
    state: bytes
    is_sound: bool = True


Outcome = NewRanking | StoredRanking | Exception | list[Fate]


class Committed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one transaction did."""

    outcomes: list[Outcome]
    lessons: list[Lesson]
    next_deadline: int | None
    sync_seconds: float = 0.0


class LoggedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event on a list."""

    event_id: str
    position: int
    type: str
    value: float | None
    stamp: int
    in_window: bool


class LoggedList(msgspec.Struct, frozen=True, kw_only=True):
    """A list with everything that is known about it."""

    seq: int
    version: int
    stamp: int
    deadline: int
    shown: ShownList
    request: bytes
    events: list[LoggedEvent]

    def clicks(self, event: str = "click") -> list[int]:
        """1 for each item with such an event within the window, 0 for the others."""
        marks = [0] * len(self.shown.items)
        for logged in self.events:
            if logged.in_window and logged.type == event:
                marks[logged.position] = 1
        return marks

    def values(self, event: str = "click") -> list[float] | None:
        """What off-policy estimates add up: clicks, or rewards where a list has a rule for them; None where it was never activated."""
        rule = self.shown.rewards
        if event != REWARD or rule is None:
            return [float(click) for click in self.clicks(event)]
        marks = fresh_marks(self.shown)
        for logged in self.events:
            if logged.in_window:
                mark(marks, self.shown, logged, logged.position)
        return rewards_in(bytes(marks), default=rule.default)
