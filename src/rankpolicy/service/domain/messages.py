"""The messages of the interface, with their limits. What is not declared here is refused."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.service.domain.records import Fate, ShownList

CLICK = "click"  # the type of event that policies learn from; other types are logged
REWARD, ACTIVATION = "reward", "activate"  # the types that policies of the kind personalizer learn from
MOST_BYTES = 1 << 20  # of a request
MOST_ITEMS = 2_000
MOST_FEATURES = 4_096
MOST_EVENTS = 5_000
LONGEST = 512  # characters of an id, a query, a name
LONGEST_TEXT = 4_096  # characters of the text of an item
MOST_SLOTS = 50
MOST_DRAWS = 1_000  # lists drawn to estimate propensities
_REFUSED = {
    "conflict": (409, "this event_id was used before, with another content"),
    "unknown_item": (422, "this item is not in the list"),
}

ENCODER = msgspec.json.Encoder()

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
FeatureValue = Text | float | None  # a category, a number, or missing
Features = (
    Annotated[dict[Name, FeatureValue], Meta(max_length=MOST_FEATURES)]
    | Annotated[list[FeatureValue], Meta(max_length=MOST_FEATURES)]
)
Side = Annotated[dict[Name, str | float | None], Meta(max_length=256)]
Context = Annotated[
    dict[Name, str | float | bool | None],
    Meta(max_length=256, description="Logged with the list; policies of the kind personalizer read it."),
]


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """An item that may be shown.

    Parameters
    ----------
    id
        Its name.
    features
        Values by name, or a list of them in the order of the model, for rankers of features: a number, the text of a category, or null
        where a value is missing. A name that is left out is missing too; a category that the model does not know counts as missing.
    text
        Its text, for rankers of texts.
    group
        Its protected group, for fair rankers.
    side
        Side columns by name, numbers or texts, for rankers of click tables.
    """

    id: Name
    features: Features | None = None
    text: Text | None = None
    group: Name | None = None
    side: Side | None = None


class Slot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A place on a page that gets one item.

    Parameters
    ----------
    id
        Its name.
    features
        Values by name.
    excluded
        Ids of items that may not be shown there.
    """

    id: Name
    features: Features | None = None
    excluded: Annotated[list[Name], Meta(max_length=MOST_ITEMS)] = []


class RankRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
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
    propensity_draws
        Where the policy has no propensities in closed form: how many lists to draw to estimate them from; 0 leaves them unknown.
    slots
        For policies of the kind personalizer: the places that get an item each, in the order in which they are filled.
    deferred
        For policies of the kind personalizer: whether the list is learned only after an event of the type activate.
    """

    query: Name
    items: Annotated[list[Item], Meta(max_length=MOST_ITEMS)]
    cutoff: Annotated[int, Meta(ge=1, le=MOST_ITEMS)] = 10
    policy: Name | None = None
    ranking_id: Name | None = None
    user: Name | None = None
    context: Context | None = None
    propensity_draws: Annotated[int, Meta(ge=0, le=MOST_DRAWS)] = 0
    slots: Annotated[list[Slot], Meta(min_length=1, max_length=MOST_SLOTS)] | None = None
    deferred: bool = False

    def check_names(self) -> None:
        """Refuse an item that comes twice, and names that cannot be stored."""
        names = [item.id for item in self.items]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise RankPolicyError(
                f"items must have different ids; got one twice: {twice!r:.80}, for the query {self.query!r:.80}."
            )
        # numpy drops U+0000 at the end of a text, so two names would become one, and PostgreSQL has no such texts.
        stored = (self.query, self.ranking_id or "", *names)
        if "\0" in " ".join(stored):
            name = next(name for name in stored if "\0" in name)
            raise RankPolicyError(f"queries and ids must not hold the character U+0000; got {name!r:.80}.")


REQUEST = msgspec.json.Decoder(RankRequest)


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


class RankAnswer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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
    propensity_draws
        Number of draws that the propensities are estimated from; 0: they are exact.
    mode
        "served"; "canary" for a version on trial; "apprentice" for the caller's own order, from which a policy learns; "interleaved"
        for a list of two policies; "fallback" for the caller's own order because the policy took too long.
    logged
        Whether the list is on disk. False while the database cannot be written or takes too long. Send events as always: where the list is
        stored after all they count, otherwise they are never learned.
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
    propensity_draws: int
    mode: str
    logged: bool
    took_us: int

    @classmethod
    def of(cls, shown: ShownList, start: int, *, logged: bool) -> RankAnswer:
        """The answer with a list, to a request that came at ``start`` by ``time.perf_counter_ns``."""
        size = len(shown.items)
        scores: Sequence[Any] = [None] * size if shown.scores is None else shown.scores
        propensities: Sequence[Any] = [None] * size if shown.propensities is None else shown.propensities
        log_propensity = None
        if shown.propensities is not None:
            is_possible = min(shown.propensities, default=1.0) > 0
            log_propensity = math.fsum(map(math.log, shown.propensities)) if is_possible else -math.inf
        return cls(
            ranking_id=shown.ranking_id,
            policy=shown.policy,
            policy_version=shown.policy_version,
            model_sha256=shown.model_sha256,
            items=[
                ShownItem(id=name, position=index + 1, score=scores[index], propensity=propensities[index])
                for index, name in enumerate(shown.items)
            ],
            list_log_propensity=log_propensity,
            no_propensities=shown.no_propensities,
            propensity_draws=shown.propensity_draws,
            mode=shown.mode,
            logged=logged,
            took_us=(time.perf_counter_ns() - start) // 1000,
        )


class NewEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Something a user did with a shown item.

    Parameters
    ----------
    event_id
        Made by the client; an event that comes twice is stored once.
    ranking_id
        The list on which it happened.
    item
        The item.
    type
        click, purchase, view ...; policies learn from clicks.
    value
        A number, such as a price.
    timestamp
        The client's time, in seconds since 1970; it is stored, and decides nothing.
    """

    event_id: Name
    ranking_id: Name
    item: Name
    type: Name = CLICK
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


class EventsAnswer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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

    @classmethod
    def of(cls, events: Sequence[NewEvent], fates: Sequence[Fate]) -> EventsAnswer:
        """The answer that says what became of each event."""
        rejected = [
            Refused(event_id=event.event_id, status=_REFUSED[fate][0], reason=_REFUSED[fate][1])
            for event, fate in zip(events, fates, strict=True)
            if fate in _REFUSED
        ]
        counts = {fate: fates.count(fate) for fate in ("accepted", "duplicate", "orphan", "late")}
        return cls(**counts, rejected=rejected)


class Promote(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which version to put in front of users.

    Parameters
    ----------
    version
        Number of a version of the policy; or give ``model_sha256``.
    model_sha256
        Hash of a ranker that was sent to /v1/models.
    share
        Share of the traffic that it gets: above 0, 1 is all. The users or, where a list has no user, the lists are chosen by a hash.
    order_by, temperature
        How the ranker orders, as the settings of a policy of the kind ranker; left out: as the version that serves now.
    detail
        Why, for the audit log.
    """

    version: Annotated[int, Meta(ge=1)] | None = None
    model_sha256: Name | None = None
    share: Annotated[float, Meta(gt=0, le=1)] = 1.0
    order_by: Literal["sorted", "sampled"] | None = None
    temperature: Annotated[float, Meta(ge=1e-3, le=1e6)] | None = None
    detail: Text = ""


class Rollback(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """End the canary of a policy; where there is none, return to the version before the last.

    Parameters
    ----------
    detail
        Why, for the audit log.
    """

    detail: Text = ""


class Evaluate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which candidate to judge by the log.

    Parameters
    ----------
    model_sha256
        Hash of a ranker that was sent to /v1/models; or give ``policy`` and ``version``.
    policy, version
        A version of a policy; without a number the one that serves now.
    order_by, temperature
        How the ranker orders.
    against
        A policy to compare with, on the same lists; None: with the lists as they were shown.
    since
        Only lists stored at this time or later, in seconds since 1970.
    event
        The type of event that counts.
    estimator
        Name of the off-policy estimator.
    level
        Level of the interval.
    """

    model_sha256: Name | None = None
    policy: Name | None = None
    version: Annotated[int, Meta(ge=1)] | None = None
    order_by: Literal["sorted", "sampled"] = "sorted"
    temperature: Annotated[float, Meta(ge=1e-3, le=1e6)] | None = None
    against: Name | None = None
    since: Annotated[float, Meta(ge=0, le=1e11)] = 0.0
    event: Name = "click"
    estimator: Name = "rips"
    level: Annotated[float, Meta(gt=0, lt=1)] = 0.95


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """Who changed what.

    Parameters
    ----------
    at
        When, as ISO 8601 has it.
    key
        The id of the key, or what made the change: "command line", "configuration", "this machine", "retraining".
    action
        configure, promote, rollback, retrain, evaluate; new key, key revoked.
    policy, version, share
        To which policy; the version that is served from then on, and its share of the traffic.
    detail
        More about it.
    """

    at: str
    key: str
    action: str
    policy: str | None
    version: int | None
    share: float | None
    detail: str


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
