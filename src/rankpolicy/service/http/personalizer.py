"""The API of Azure's Personalizer, as its clients call it: actions chosen for a context, rewards for them, and slots."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rankpolicy.service.domain.clock import time_ordered_id
from rankpolicy.service.domain.messages import ACTIVATION, LONGEST, REWARD, NewEvent, RankRequest
from rankpolicy.service.domain.records import ShownList
from rankpolicy.service.http.access import Access
from rankpolicy.service.http.bodies import RefusedError, decoded, json_response, read_body, refusal_of
from rankpolicy.service.http.personalizer_messages import (
    FilledSlot,
    PersonalizerAnswer,
    PersonalizerRank,
    PersonalizerReward,
    PersonalizerSlotRewards,
    PersonalizerSlotsAnswer,
    PersonalizerSlotsRank,
    RankedAction,
)
from rankpolicy.service.ranking_service import RankingService
from rankpolicy.types import RankPolicyError

_DEEPEST = 8  # levels of nested features
_KIND = "personalizer"
_CODES = {400: "BadRequest", 404: "ResourceNotFound"}


_RANK, _SLOTS = msgspec.json.Decoder(PersonalizerRank), msgspec.json.Decoder(PersonalizerSlotsRank)
_REWARD, _REWARDS = msgspec.json.Decoder(PersonalizerReward), msgspec.json.Decoder(PersonalizerSlotRewards)


def personalizer_routes(service: RankingService, access: Access) -> list[Route]:
    """Routes with the version in the path (v1.0, v1.1-preview) and without, where clients send it as api-version.

    Parameters
    ----------
    service
        The service; its first policy of the kind personalizer chooses.
    access
        Who may ask.
    """
    pages = _Pages(service, access)
    endpoints = {
        "/multislot/rank": pages.rank_slots,
        "/multislot/events/{event_id}/reward": pages.reward_slots,
        "/multislot/events/{event_id}/activate": pages.activate,
        "/rank": pages.rank,
        "/events/{event_id}/reward": pages.reward,
        "/events/{event_id}/activate": pages.activate,
    }
    return [
        Route(start + path, _with_errors(endpoint), methods=["POST"])
        for start in ("/personalizer", "/personalizer/{version}")  # in this order: multislot is no version
        for path, endpoint in endpoints.items()
    ]


class _Pages:
    """What is answered."""

    def __init__(self, service: RankingService, access: Access) -> None:
        self._service, self._access = service, access

    async def rank(self, request: Request) -> Response:
        """An action."""
        return json_response(_answer(*await self._chosen(request, _RANK)), 201)

    async def rank_slots(self, request: Request) -> Response:
        """An action for each slot."""
        message, shown = await self._chosen(request, _SLOTS)
        filled = [
            FilledSlot(id=slot.id, reward_action_id=item) for slot, item in zip(message.slots, shown.items, strict=True)
        ]
        return json_response(PersonalizerSlotsAnswer(event_id=shown.ranking_id, slots=filled), 201)

    async def reward(self, request: Request) -> Response:
        """The reward of the chosen action."""
        shown = await self._logged(request)
        message = decoded(_REWARD, await read_body(request.scope, request.receive))
        return await self._took([_event(shown, 0, REWARD, message.value)])

    async def reward_slots(self, request: Request) -> Response:
        """Rewards of the actions in slots."""
        shown = await self._logged(request)
        message = decoded(_REWARDS, await read_body(request.scope, request.receive))
        slots = (shown.memo or {}).get("slots", [])
        for unknown in (slot.slot_id for slot in message.reward if slot.slot_id not in slots):
            raise RankPolicyError(f"slotId must be one of {', '.join(slots)}; got {unknown!r:.80}.")
        rewards = [_event(shown, slots.index(slot.slot_id), REWARD, slot.value) for slot in message.reward]
        return await self._took(rewards)

    async def activate(self, request: Request) -> Response:
        """A deferred event was shown."""
        return await self._took([_event(await self._logged(request), 0, ACTIVATION)])

    async def _chosen(self, request: Request, decoder: msgspec.json.Decoder[Any]) -> tuple[Any, ShownList]:
        self._access.check(request.scope, "rank")
        self._service.check_load()
        message = decoded(decoder, await read_body(request.scope, request.receive))
        return message, await self._service.show(_rank_request(message, _policy(self._service)))

    async def _logged(self, request: Request) -> ShownList:
        self._access.check(request.scope, "events")
        event_id = request.path_params["event_id"]
        is_id = len(event_id) <= LONGEST and "\0" not in event_id
        stored = await self._service.read(lambda store: store.ranking(event_id)) if is_id else None
        if stored is None or stored.shown.rewards is None:
            reason = f"there is no event {event_id!r:.80}: rank is asked first, and answers with its id."
            raise RefusedError(404, "not_found", reason)
        return stored.shown

    async def _took(self, events: list[NewEvent]) -> Response:
        await self._service.take(events)
        return Response(status_code=204)


def _with_errors(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Refusals in the form that Personalizer's clients read."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            status = 400 if refusal.status == 422 else refusal.status
            response = json_response(
                {"error": {"code": _CODES.get(status, refusal.error), "message": refusal.message}}, status
            )
            response.headers.update({name.decode(): value.decode() for name, value in refusal.headers})
            return response

    return answered


def _policy(service: RankingService) -> str:
    for name, live in service.policies.by_name.items():
        if live.version.kind == _KIND:
            return name
    raise RankPolicyError(f'the service must have a policy of the kind {_KIND}: [policies.NAME] with kind = "{_KIND}".')


def _event(shown: ShownList, index: int, kind: str, value: float | None = None) -> NewEvent:
    return NewEvent(
        event_id=time_ordered_id(), ranking_id=shown.ranking_id, item=shown.items[index], type=kind, value=value
    )


def _rank_request(message: PersonalizerRank, policy: str) -> RankRequest:
    slots = message.slots if isinstance(message, PersonalizerSlotsRank) else []
    excluded = set(message.excluded_actions or ())
    known = {action.id: action for action in message.actions}
    baselines = [slot.baseline_action for slot in slots]
    for name in [*excluded, *baselines, *(name for slot in slots for name in slot.excluded_actions or ())]:
        if name not in known:
            raise RankPolicyError(
                f"actions must have every excluded and baseline action; {name!r:.80} is none of them."
            )
    if len(set(baselines)) < len(baselines) or len({slot.id for slot in slots}) < len(slots):
        raise RankPolicyError("slots must have ids and baseline actions that differ from each other.")
    # The caller's own order, which policies of the kind given show: the baseline of each slot first.
    actions = [known[name] for name in baselines] + [
        action for action in message.actions if action.id not in set(baselines)
    ]
    items = [{"id": action.id, "features": _flat(action.features)} for action in actions if action.id not in excluded]
    if len(items) < max(1, len(slots)):
        raise RankPolicyError(f"there must be an action for every slot that is not excluded; got {len(items)}.")
    document: dict[str, Any] = {
        "query": policy,
        "items": items,
        "cutoff": max(1, len(slots)),
        "policy": policy,
        "ranking_id": message.event_id,
        "context": _flat(message.context_features or ()) or None,
        "deferred": bool(message.defer_activation),
        "slots": [
            {"id": slot.id, "features": _flat(slot.features or ()), "excluded": slot.excluded_actions or []}
            for slot in slots
        ]
        or None,
    }
    try:
        request = msgspec.convert(document, RankRequest)
    except msgspec.ValidationError as error:
        raise RankPolicyError(f"{error}.") from None
    if len(known) < len(message.actions):
        raise RankPolicyError("actions must have different ids.")
    return request


def _flat(features: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Features by the path of their names; a text in a list is a feature of its own, true is 1.

    >>> _flat([{"user": {"age": 31, "likes": ["ski", "sea"], "vip": True}}, {"hour": 9}])
    {'user.age': 31.0, 'user.likes.ski': 1.0, 'user.likes.sea': 1.0, 'user.vip': 1.0, 'hour': 9.0}
    """
    flat: dict[str, Any] = {}
    for namespace in features:
        _add(flat, "", namespace, 0)
    return flat


def _add(flat: dict[str, Any], name: str, value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        raise RankPolicyError(f"features must be nested at most {_DEEPEST} deep; {name!r:.80} is deeper.")
    prefix = f"{name}." if name else ""
    if isinstance(value, Mapping):
        for key, member in value.items():
            _add(flat, prefix + key, member, depth + 1)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            if isinstance(member, str):
                flat[prefix + member] = 1.0
            else:
                _add(flat, name if isinstance(member, Mapping) else f"{prefix}{index}", member, depth + 1)
    elif value is not None:
        try:
            flat[name] = value if isinstance(value, str) else float(value)
        except OverflowError:
            raise RankPolicyError(f"the feature {name!r:.80} must be a number that a double holds.") from None


def _answer(message: PersonalizerRank, shown: ShownList) -> PersonalizerAnswer:
    """The chosen action first, the others by probability; excluded ones where they were."""
    excluded = set(message.excluded_actions or ())
    names = [action.id for action in message.actions if action.id not in excluded]
    # A list that came too late for the budget of the service has no probabilities: the first action was certain.
    chances = (shown.memo or {}).get("probabilities") or [float(name == shown.items[0]) for name in names]
    chance_of = dict(zip(names, chances, strict=True))
    ranked = iter(sorted(names, key=lambda name: (name != shown.items[0], -chance_of[name])))
    order = [action.id if action.id in excluded else next(ranked) for action in message.actions]
    return PersonalizerAnswer(
        ranking=[RankedAction(id=name, probability=chance_of.get(name, 0.0)) for name in order],
        event_id=shown.ranking_id,
        reward_action_id=shown.items[0],
    )
