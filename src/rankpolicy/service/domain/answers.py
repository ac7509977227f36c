"""From requests to what is stored, and from what was stored to answers."""

from __future__ import annotations

import math
import time
from typing import Any

from rankpolicy.service.domain.messages import EventIn, EventsAnswer, RankAnswer, RankRequest, Refused, ShownItem
from rankpolicy.service.domain.records import Fate, NewEvent, ShownList
from rankpolicy.types import RankPolicyError

_REFUSED = {
    "conflict": (409, "this event_id was used before, with another content"),
    "unknown_item": (422, "this item is not in the list"),
}


def check_names(request: RankRequest) -> None:
    """Refuse a request that has an item twice, or names that cannot be stored.

    Parameters
    ----------
    request
        Query and items.
    """
    names = [item.id for item in request.items]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise RankPolicyError(
            f"items must have different ids; got one twice: {twice!r:.80}, for the query {request.query!r:.80}."
        )
    # numpy drops U+0000 at the end of a text, so two names would become one, and PostgreSQL has no such texts.
    given = (request.query, request.ranking_id or "", *names)
    if "\0" in " ".join(given):
        name = next(name for name in given if "\0" in name)
        raise RankPolicyError(f"queries and ids must not hold the character U+0000; got {name!r:.80}.")


def rank_answer(shown: ShownList, start: int, *, logged: bool) -> RankAnswer:
    """The answer to a request for a list.

    Parameters
    ----------
    shown
        The list.
    start
        When the request came, as ``time.perf_counter_ns`` has it.
    logged
        Whether the list is on disk.
    """
    size = len(shown.items)
    scores: list[Any] = shown.scores if shown.scores is not None else [None] * size
    propensities: list[Any] = shown.propensities if shown.propensities is not None else [None] * size
    log_propensity = None
    if shown.propensities is not None:
        is_possible = min(shown.propensities, default=1.0) > 0
        log_propensity = math.fsum(map(math.log, shown.propensities)) if is_possible else -math.inf
    return RankAnswer(
        ranking_id=shown.ranking_id,
        policy=shown.policy,
        policy_version=shown.policy_version,
        model_sha256=shown.model_sha256,
        items=[
            ShownItem(id=name, position=place + 1, score=scores[place], propensity=propensities[place])
            for place, name in enumerate(shown.items)
        ],
        list_log_propensity=log_propensity,
        no_propensities=shown.no_propensities,
        propensity_draws=shown.propensity_draws,
        mode=shown.mode,
        logged=logged,
        took_us=(time.perf_counter_ns() - start) // 1000,
    )


def new_events(events: list[EventIn]) -> list[NewEvent]:
    """The events of a request, to be stored.

    Parameters
    ----------
    events
        As they came.
    """
    for event in events:
        if "\0" in event.event_id or "\0" in event.ranking_id:
            raise RankPolicyError(f"ids must not hold the character U+0000; got {event.event_id!r:.80}.")
    return [
        NewEvent(
            event_id=event.event_id,
            ranking_id=event.ranking_id,
            item=event.item,
            type=event.type,
            value=event.value,
            timestamp=event.timestamp,
        )
        for event in events
    ]


def events_answer(events: list[EventIn], fates: list[Fate]) -> EventsAnswer:
    """The answer to a request with events.

    Parameters
    ----------
    events
        As they came.
    fates
        What became of each.
    """
    refused = [
        Refused(event_id=event.event_id, status=_REFUSED[fate][0], reason=_REFUSED[fate][1])
        for event, fate in zip(events, fates, strict=True)
        if fate in _REFUSED
    ]
    return EventsAnswer(
        accepted=fates.count("accepted"),
        duplicate=fates.count("duplicate"),
        orphan=fates.count("orphan"),
        late=fates.count("late"),
        rejected=refused,
    )
