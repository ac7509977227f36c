"""Queries and events in the form of User Behavior Insights (UBI) 1.3, as search engines and their scripts send them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rankpolicy.service.domain.messages import LONGEST, MOST_EVENTS, MOST_ITEMS, Item, NewEvent, RankRequest
from rankpolicy.service.http.access import Access
from rankpolicy.service.http.bodies import decoded, json_response, read_body, refusal_of
from rankpolicy.service.ranking_service import RankingService
from rankpolicy.types import RankPolicyError

CLICKS = ("click", "click_through")  # actions that policies learn from
SHOWS_THE_CALLERS_ORDER = ("given", "apprentice")
_MOST_QUERIES = 500
Short = Annotated[str, Meta(max_length=LONGEST)]


class UbiQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query and the hits that a search engine showed for it; other fields are not read.

    Parameters
    ----------
    user_query
        What the user typed.
    query_id
        The id by which events refer to it; None: made here.
    client_id
        Who asked.
    query_response_hit_ids
        Ids of the hits, in the order in which they were shown.
    """

    user_query: str
    query_id: Short | None = None
    client_id: Short | None = None
    query_response_hit_ids: list[Short] = msgspec.field(default_factory=list)


class UbiObject(msgspec.Struct, frozen=True, kw_only=True):
    """What a user did something with.

    Parameters
    ----------
    object_id
        Its id.
    """

    object_id: Short | int


class UbiAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """Details of an event; others are not read.

    Parameters
    ----------
    object
        What the user did something with.
    """

    object: UbiObject | None = None


class UbiEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something a user did; other fields are not read, but all count for the question whether an event came before.

    Parameters
    ----------
    action_name
        click, add_to_cart, purchase ...
    timestamp
        When it happened, as ISO 8601 has it.
    query_id
        The query that led to it.
    event_attributes
        Details.
    """

    action_name: Annotated[str, Meta(min_length=1, max_length=LONGEST)]
    timestamp: Short
    query_id: Short | None = None
    event_attributes: UbiAttributes | None = None


_QUERIES: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    UbiQuery | Annotated[list[UbiQuery], Meta(max_length=_MOST_QUERIES)]
)
_RAW: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    dict[str, Any] | Annotated[list[dict[str, Any]], Meta(max_length=MOST_EVENTS)]
)


def ubi_routes(service: RankingService, access: Access) -> list[Route]:
    """Routes for queries and events.

    Parameters
    ----------
    service
        The service.
    access
        Who may send them.
    """

    async def queries(request: Request) -> Response:
        access.check(request.scope, "rank")
        policy = _policy_for_queries(service)
        message = decoded(_QUERIES, await read_body(request.scope, request.receive))
        queries_sent = message if isinstance(message, list) else [message]
        outcomes = await asyncio.gather(
            *(service.rank(_request(query, policy)) for query in queries_sent), return_exceptions=True
        )
        rejected: list[dict[str, Any]] = []
        for query, outcome in zip(queries_sent, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                refusal = refusal_of(outcome) if isinstance(outcome, Exception) else None
                if refusal is None or refusal.status == 503:
                    raise outcome
                rejected.append({"query_id": query.query_id, "status": refusal.status, "reason": refusal.message})
        status = rejected[0]["status"] if rejected and len(rejected) == len(queries_sent) else 200
        return json_response(
            {"accepted": len(queries_sent) - len(rejected), "policy": policy, "rejected": rejected}, status
        )

    async def events(request: Request) -> Response:
        access.check(request.scope, "events")
        message = decoded(_RAW, await read_body(request.scope, request.receive))
        events_sent = [_event(event_sent) for event_sent in (message if isinstance(message, list) else [message])]
        known_events = [event for event in events_sent if event is not None]
        answer = msgspec.to_builtins(await service.take(known_events))
        answer["ignored"] = len(events_sent) - len(known_events)
        all_refused = bool(known_events) and len(answer["rejected"]) == len(known_events)
        return json_response(answer, answer["rejected"][0]["status"] if all_refused else 200)

    return [Route("/v1/ubi/queries", queries, methods=["POST"]), Route("/v1/ubi/events", events, methods=["POST"])]


def _policy_for_queries(service: RankingService) -> str:
    """The policy under whose name the hits of a search engine are logged: they are in the caller's own order."""
    for name, live in service.policies.by_name.items():
        if live.version.kind in SHOWS_THE_CALLERS_ORDER:
            return name
    raise RankPolicyError(
        "hits of a search engine are in the caller's own order: the service must have a policy of the kind given or apprentice."
    )


def _request(query: UbiQuery, policy: str) -> RankRequest:
    hits = list(dict.fromkeys(hit for hit in query.query_response_hit_ids if hit))[:MOST_ITEMS]
    text = query.user_query or "(empty)"
    if len(text) > LONGEST:  # different queries stay different
        text = f"{text[: LONGEST - 20]} #{blake2b(text.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
    return RankRequest(
        query=text,
        items=[Item(id=hit) for hit in hits],
        cutoff=max(1, len(hits)),
        policy=policy,
        ranking_id=query.query_id or None,
        user=query.client_id or None,
    )


def _event(fields: Mapping[str, Any]) -> NewEvent | None:
    """The event as the service knows it; None for one that has no query or no object, such as a login."""
    try:
        event = msgspec.convert(fields, UbiEvent)
    except msgspec.ValidationError as error:
        raise RankPolicyError(f"an event must have the form of UBI 1.3: {error}.") from None
    thing = None if event.event_attributes is None else event.event_attributes.object
    if not event.query_id or thing is None or str(thing.object_id) == "":
        return None
    # UBI has no ids of events: the same content twice is the same event, so that it may be sent again.
    digest = blake2b(msgspec.json.encode(fields, order="deterministic"), digest_size=16).hexdigest()
    return NewEvent(
        event_id=f"ubi-{digest}",
        ranking_id=event.query_id,
        item=str(thing.object_id),
        type="click" if event.action_name in CLICKS else event.action_name,
        timestamp=_seconds(event.timestamp),
    )


def _seconds(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RankPolicyError(f"timestamp must be a time as ISO 8601 has it; got {text!r:.40}.") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
