"""The messages of the interface, with their limits. What is not declared here is refused."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

MOST_BYTES = 1 << 20  # of a request
MOST_ITEMS = 2_000
MOST_FEATURES = 4_096
MOST_EVENTS = 5_000
LONGEST = 512  # characters of an id, a query, a name
LONGEST_TEXT = 4_096  # characters of the text of an item

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Features = (
    Annotated[dict[Name, float], Meta(max_length=MOST_FEATURES)]
    | Annotated[list[float], Meta(max_length=MOST_FEATURES)]
)
Context = Annotated[
    dict[Name, str | float | bool | None], Meta(max_length=256, description="Logged with the list; nothing reads it.")
]


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """An item that may be shown.

    Parameters
    ----------
    id
        Its name.
    features
        Numbers by name, or a list of numbers, for rankers of features.
    text
        Its text; logged.
    group
        Its protected group; logged.
    """

    id: Name
    features: Features | None = None
    text: Text | None = None
    group: Name | None = None


class RankRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which items to order, for which query.

    Parameters
    ----------
    query
        The query: a text, or the id of one. Bandits learn for each query on its own.
    items
        Items that may be shown, in the caller's own order.
    cutoff
        How many of them to show at most.
    policy
        Name of the policy; None: the first of the service.
    ranking_id
        Made by the caller, so that a request sent twice is answered twice with the same list; None: made by the service.
    user
        Who asks; logged.
    context
        Anything else to log.
    """

    query: Name
    items: Annotated[list[Item], Meta(max_length=MOST_ITEMS)]
    cutoff: Annotated[int, Meta(ge=1, le=MOST_ITEMS)] = 10
    policy: Name | None = None
    ranking_id: Name | None = None
    user: Name | None = None
    context: Context | None = None


class ShownItem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An item of an answer.

    Parameters
    ----------
    id
        Its name.
    position
        1 for the first.
    score
        By which it was sorted or drawn; None where the policy has no scores.
    propensity
        Its probability at this position given the items above it; None where no closed form is known.
    """

    id: str
    position: int
    score: float | None
    propensity: float | None


class RankAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A list to show.

    Parameters
    ----------
    ranking_id
        The id by which events refer to it.
    policy, policy_version, model_sha256
        What ranked it.
    items
        The items, best first.
    list_log_propensity
        Logarithm of the probability of the whole list; None where no closed form is known.
    no_propensities
        Why there are none.
    logged
        Whether the list is on disk. False only while the database cannot be written: events on such a list are never learned.
    took_us
        Microseconds that the service took.
    """

    ranking_id: str
    policy: str
    policy_version: int
    model_sha256: str | None
    items: list[ShownItem]
    list_log_propensity: float | None
    no_propensities: str | None
    logged: bool
    took_us: int


class EventIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Something a user did with a shown item.

    Parameters
    ----------
    event_id
        Made by the caller; an event that is sent twice is stored once. The same id with another content is refused (409).
    ranking_id
        The list on which it happened.
    item
        The item.
    type
        click, purchase, view ...; policies learn from clicks, the others are logged.
    value
        A number, such as a price.
    timestamp
        The caller's time in seconds since 1970; logged.
    """

    event_id: Name
    ranking_id: Name
    item: Name
    type: Name = "click"
    value: float | None = None
    timestamp: float | None = None


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """An event that was not stored.

    Parameters
    ----------
    event_id
        Its id.
    status
        409: the id was used before, with another content. 422: the item was not in the list.
    reason
        The same in words.
    """

    event_id: str
    status: int
    reason: str


class EventsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the events of a request; all that are not refused are on disk.

    Parameters
    ----------
    accepted
        Events that count.
    duplicate
        Events that were stored before.
    orphan
        Events whose list is not known yet; they count if it comes before the window ends.
    late
        Events after the end of the window of their list: stored, not learned.
    rejected
        Events that were refused.
    """

    accepted: int
    duplicate: int
    orphan: int
    late: int
    rejected: list[Refused]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was refused.

    Parameters
    ----------
    error
        A short name of the reason.
    message
        What must hold, what came, and what to do.
    """

    error: str
    message: str
