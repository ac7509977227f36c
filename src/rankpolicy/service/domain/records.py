"""What the service stores and passes between its parts: shown lists, events, and the lessons that policies learn from."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rankpolicy.service.domain.messages import NewEvent


class PolicyVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A policy with fixed settings. Other settings under the same name are another version, which learns afresh.

    Parameters
    ----------
    key
        Number of the version in the database.
    policy
        Name of the policy.
    number
        1 for its first version, 2 for the next ...
    kind
        What kind of policy it is.
    settings
        Its settings as JSON with sorted keys; for a ranker they include the hash of its file.
    """

    key: int
    policy: str
    number: int
    kind: str
    settings: str


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
    """

    items: list[str]
    scores: list[float] | None = None
    propensities: list[float] | None = None
    no_propensities: str | None = None
    propensity_draws: int = 0
    mode: str = "served"
    memo: Any = None


class ShownList(Ordered, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A list that was shown, with what off-policy estimates need; the log holds it as JSON.

    ``asked`` is the policy that the request named, another one where that splits its traffic. ``change`` is the last change of what is
    served that was known then: replay finds the same version with it.
    """

    ranking_id: str
    policy: str
    policy_version: int
    query: str
    model_sha256: str | None = None
    asked: str | None = None
    change: int = 0


class NewRanking(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True, tag=True):
    """A list to be stored.

    Parameters
    ----------
    shown
        The list.
    version
        Key of the policy version that ranked it.
    request
        The request as it came, for training and audits.
    request_hash
        Hash of what the request says; the same id with another hash is a conflict.
    window
        Microseconds during which events on the list are learned.
    learns
        Whether the policy learns from the list when the window ends.
    has_fresh_id
        Whether the service has just made the id, at random, so that it cannot have been used before.
    """

    shown: ShownList
    version: int
    request: bytes
    request_hash: bytes
    window: int
    learns: bool
    has_fresh_id: bool = False


class NewEvents(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True, tag=True):
    """Events of one request; each is stored or refused on its own, all in one transaction.

    Parameters
    ----------
    events
        The events.
    window
        Microseconds for which an event without its list is kept waiting.
    """

    events: list[NewEvent]
    window: int


Fate = Literal["accepted", "duplicate", "orphan", "late", "conflict", "unknown_item"]


class StoredRanking(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A list as the database has it.

    Parameters
    ----------
    shown
        The list.
    seq
        Its place in the log.
    version
        Key of the policy version that ranked it.
    stamp
        When it was stored.
    deadline
        When its window ends.
    request_hash
        Hash of what the request said.
    """

    shown: ShownList
    seq: int
    version: int
    stamp: int
    deadline: int
    request_hash: bytes


class Lesson(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """A list whose window has ended, with its clicks: what a policy learns.

    Parameters
    ----------
    seq
        Its place in the log.
    version
        Key of the policy version that showed the list.
    query
        The query.
    items
        The items, best first.
    clicks
        One byte per item, 1 where it was clicked.
    memo
        What the policy noted when it showed the list.
    """

    seq: int
    version: int
    query: str
    items: list[str]
    clicks: bytes
    memo: Any = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a policy version after the lesson ``seq``.

    Parameters
    ----------
    version
        Key of the policy version.
    seq
        The last lesson in it.
    state
        What ``ServedPolicy.state`` returned.
    is_sound
        Whether its hash agrees with its content.
    """

    version: int
    seq: int
    state: bytes
    is_sound: bool = True


Outcome = NewRanking | StoredRanking | Exception | list[Fate]


class Committed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one transaction did.

    Parameters
    ----------
    outcomes
        For each piece of work, in order: the list as it is stored now or was before, a ConflictError, or the fate of each event.
    lessons
        Lists whose window has ended, to be learned now.
    next_deadline
        When the next window ends; None where none is open.
    sync_seconds
        How long the disk took to keep it.
    """

    outcomes: list[Outcome]
    lessons: list[Lesson]
    next_deadline: int | None
    sync_seconds: float = 0.0


class LoggedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event on a list.

    Parameters
    ----------
    event_id
        Its id.
    position
        The place of the item in the list, from 0.
    type
        click, purchase, view ...
    value
        A number, such as a price.
    stamp
        When it was stored, in microseconds since 1970.
    in_window
        Whether it came before the window of the list ended.
    """

    event_id: str
    position: int
    type: str
    value: float | None
    stamp: int
    in_window: bool


class LoggedList(msgspec.Struct, frozen=True, kw_only=True):
    """A list with everything that is known about it.

    Parameters
    ----------
    seq
        Its place in the log.
    version
        Key of the version that ranked it.
    stamp
        When it was stored, in microseconds since 1970.
    deadline
        When its window ends.
    shown
        The list.
    request
        The request, as JSON.
    events
        What users did with it.
    """

    seq: int
    version: int
    stamp: int
    deadline: int
    shown: ShownList
    request: bytes
    events: list[LoggedEvent]

    def clicks(self, event: str = "click") -> list[int]:
        """1 for each item with such an event within the window, 0 for the others.

        Parameters
        ----------
        event
            The type of event.
        """
        marks = [0] * len(self.shown.items)
        for one in self.events:
            if one.in_window and one.type == event:
                marks[one.position] = 1
        return marks
