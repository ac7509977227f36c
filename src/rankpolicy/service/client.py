"""The client of a service. Ids are made here, so that every request may be sent again without harm."""

from __future__ import annotations

import math
import numbers
import os
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote

import msgspec

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.files import checked_file
from rankpolicy.optional import require
from rankpolicy.service.domain.clock import time_ordered_id
from rankpolicy.service.domain.messages import Evaluate, NewEvent, Promote, RankRequest, Rollback
from rankpolicy.service.errors import ServiceError
from rankpolicy.types import RankPolicyError

_RETRIED = {502, 503, 504}
_FIRST_PAUSE = 0.05  # seconds before the second attempt; doubled for each further one


class Client:
    """Asks a service for lists and reports what users did with them.

    A request that fails on the way, or is answered with 502, 503 or 504, is sent again with the same ids: the service stores it once.

    Parameters
    ----------
    url
        Address of the service, such as ``"http://127.0.0.1:8080"``.
    key
        A key made by ``rankpolicy service key new``; None for a service without keys on this machine.
    timeout
        Seconds to wait for an answer, each time.
    attempts
        How often a request is sent at most.
    transport
        An ``httpx`` transport, for tests; None: the network.
    """

    @checked_kinds
    def __init__(
        self, url: str, *, key: str | None = None, timeout: float = 10.0, attempts: int = 5, transport: Any = None
    ) -> None:
        httpx = require("httpx", "The client")
        if not url.startswith(("http://", "https://")):
            raise RankPolicyError(f"url must be an address such as http://127.0.0.1:8080; got {url!r:.80}.")
        if key is not None and not (key.isascii() and key.isprintable()):
            raise RankPolicyError("key must be what 'rankpolicy service key new' printed; got other characters.")
        if not 0 < timeout < math.inf:
            raise RankPolicyError(f"timeout must be a number of seconds above 0; got {timeout!r:.80}.")
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        try:
            self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, transport=transport)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise RankPolicyError(
                f"url must be an address such as http://127.0.0.1:8080; got {url!r:.80} ({error})."
            ) from None
        self._failures = (httpx.TransportError,)
        self._attempts = max(1, attempts)

    def __repr__(self) -> str:
        return f"Client({str(self._http.base_url)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def rank(
        self,
        *,
        query: str | int,
        items: Sequence[str | int | Mapping[str, Any]],
        cutoff: int = 10,
        policy: str | None = None,
        user: str | None = None,
        context: Mapping[str, Any] | None = None,
        ranking_id: str | None = None,
        propensity_draws: int = 0,
    ) -> dict[str, Any]:
        """The list to show: a mapping with ``ranking_id`` and ``items``, best first, as the service answered.

        Parameters
        ----------
        query
            The query.
        items
            Items that may be shown: ids (texts or whole numbers), or mappings with ``id`` and, for rankers, ``features``: values by name,
            or a list of them. A value is a number, also one of numpy, the text of a category, or None or NaN where it is missing.
        cutoff
            How many to show at most.
        policy
            Name of the policy; None: the default of the service.
        user
            Who asks; logged.
        context
            Anything else to log.
        ranking_id
            An id of your own for the list; None makes one.
        propensity_draws
            Where the policy has no propensities in closed form: how many lists to draw to estimate them from; 0 leaves them unknown.
        """
        message = {
            "ranking_id": time_ordered_id() if ranking_id is None else ranking_id,
            "query": _id(query),
            "items": [_item(item) for item in _sequence("items", items)],
            "cutoff": cutoff,
            "policy": policy,
            "user": _id(user),
            "context": context,
            "propensity_draws": propensity_draws,
        }
        return self._send("POST", "/v1/rank", _message(message, RankRequest))

    def click(self, shown: Mapping[str, Any] | str, item: str | int) -> dict[str, Any]:
        """Report a click on an item of a list.

        Parameters
        ----------
        shown
            What ``rank`` returned, or its ``ranking_id``.
        item
            The item that was clicked.
        """
        return self.event(shown, item, type="click")

    def event(
        self, shown: Mapping[str, Any] | str, item: str | int, *, type: str, value: float | None = None
    ) -> dict[str, Any]:
        """Report what a user did with an item of a list.

        Parameters
        ----------
        shown
            What ``rank`` returned, or its ``ranking_id``.
        item
            The item.
        type
            click, purchase, view ...; policies learn from clicks, the others are logged.
        value
            A number, such as a price.
        """
        ranking_id = shown.get("ranking_id") if isinstance(shown, Mapping) else shown
        return self.events(
            [{"ranking_id": ranking_id, "item": _id(item), "type": type, "value": value, "timestamp": time.time()}]
        )

    def events(self, events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Report many events at once; returns how many were accepted, duplicate, orphan and late, and which were rejected.

        Parameters
        ----------
        events
            Mappings with ``ranking_id``, ``item``, ``type`` and, if you have them, ``event_id``, ``value`` and ``timestamp``. An event
            without ``event_id`` gets one; to send it again in another call, give it one yourself.
        """
        messages = [
            {"event_id": time_ordered_id(), **event, "item": _id(event.get("item"))}
            if isinstance(event, Mapping)
            else event
            for event in _sequence("events", events)
        ]
        return self._send("POST", "/v1/events", _message(messages, list[NewEvent]))

    def ranking(self, ranking_id: str) -> dict[str, Any]:
        """A list that was shown, with its clicks and whether they were learned.

        Parameters
        ----------
        ranking_id
            Its id.
        """
        if not isinstance(ranking_id, str):
            raise RankPolicyError(f"ranking_id must be a text; got {ranking_id!r:.80}.")
        return self._send("GET", f"/v1/rankings/{_in_path(ranking_id)}")

    def policies(self) -> list[dict[str, Any]]:
        """The policies of the service, their versions and the hashes of their states."""
        policies: list[dict[str, Any]] = self._send("GET", "/v1/policies")["policies"]
        return policies

    def promote(
        self,
        policy: str,
        model: str | os.PathLike[str] | None = None,
        *,
        version: int | None = None,
        share: float = 1.0,
        order_by: str | None = None,
        temperature: float | None = None,
        detail: str = "",
    ) -> dict[str, Any]:
        """Serve a saved ranker, or an earlier version, under the name of a policy; needs a key with the scope promote. Sent only once.

        Parameters
        ----------
        policy
            Name of the policy.
        model
            The file of the ranker.
        version
            Instead of a file: number of a version of the policy.
        share
            Share of the traffic that it gets; 1 is all.
        order_by, temperature
            How the ranker orders; None: as the version that serves now.
        detail
            Why, for the audit log.
        """
        message = {
            "version": version,
            "share": share,
            "order_by": order_by,
            "temperature": temperature,
            "detail": detail,
        }
        if model is not None:
            message["model_sha256"] = self.send_model(model)
        return self._send("POST", f"/v1/policies/{_in_path(policy)}/promote", _message(message, Promote), attempts=1)

    def send_model(self, model: str | os.PathLike[str]) -> str:
        """Copy the file of a ranker to the service, to be promoted or evaluated; returns its hash.

        Parameters
        ----------
        model
            The file.
        """
        content = checked_file(model).read_bytes()
        return str(self._send("POST", "/v1/models", content)["model_sha256"])

    def rollback(self, policy: str, *, detail: str = "") -> dict[str, Any]:
        """End the canary of a policy; where there is none, return to the version before. Sent only once: two would go back two versions.

        Parameters
        ----------
        policy
            Name of the policy.
        detail
            Why, for the audit log.
        """
        return self._send(
            "POST", f"/v1/policies/{_in_path(policy)}/rollback", _message({"detail": detail}, Rollback), attempts=1
        )

    def evaluate(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        policy: str | None = None,
        version: int | None = None,
        against: str | None = None,
        order_by: str = "sorted",
        temperature: float | None = None,
        since: float = 0.0,
        event: str = "click",
        estimator: str = "rips",
        level: float = 0.95,
    ) -> dict[str, Any]:
        """The off-policy value of a candidate on the log of the service, with an interval.

        Parameters
        ----------
        model
            The file of a ranker; or name a policy.
        policy, version
            A version of a policy; without a number the one that serves now.
        against
            A policy to compare with.
        order_by, temperature
            How the ranker orders.
        since
            Only lists stored at this time or later, in seconds since 1970.
        event
            The type of event that counts.
        estimator
            Name of the off-policy estimator.
        level
            Level of the interval.
        """
        message = {
            "policy": policy, "version": version, "against": against, "order_by": order_by, "temperature": temperature,
            "since": since, "event": event, "estimator": estimator, "level": level,
        }  # fmt: skip
        if model is not None:
            message["model_sha256"] = self.send_model(model)
        return self._send("POST", "/v1/evaluate", _message(message, Evaluate))

    def audit(self, *, limit: int = 100) -> list[dict[str, Any]]:
        """Who changed what, the last change first.

        Parameters
        ----------
        limit
            How many changes at most.
        """
        lines: list[dict[str, Any]] = self._send("GET", f"/v1/audit?limit={limit}")["audit"]
        return lines

    def _send(self, method: str, path: str, body: Any = None, *, attempts: int | None = None) -> dict[str, Any]:
        most = self._attempts if attempts is None else attempts
        pause = _FIRST_PAUSE
        content, headers = None, {}
        if isinstance(body, bytes):
            content, headers = body, {"content-type": "application/octet-stream"}
        elif body is not None:
            content, headers = msgspec.json.encode(body), {"content-type": "application/json"}
        for attempt in range(1, most + 1):
            failure: str
            try:
                answer = self._http.request(method, path, content=content, headers=headers)
            except self._failures as error:
                failure, status = f"{type(error).__name__}: {error}", 0
            else:
                if answer.status_code == 200:
                    document: dict[str, Any] = answer.json()
                    return document
                failure, status = _reason(answer), answer.status_code
                if status not in _RETRIED:
                    break
            if attempt < most:
                time.sleep(pause * random.uniform(0.5, 1.5))  # so that many clients do not come back at once
                pause *= 2
        raise ServiceError(f"{method} {path} failed: {failure}", status=status)


def _in_path(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise RankPolicyError(f"policy must be a name; got {name!r:.80}.")
    return quote(name, safe="", errors="replace")


def _id(value: Any) -> Any:
    """A whole number, also one of numpy, as the text that the service knows it by; anything else as it is."""
    is_number = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return str(value) if is_number or isinstance(value, str) else value


def _item(item: Any) -> Any:
    """An item as plain values."""
    if not isinstance(item, Mapping):
        return {"id": _id(item)}
    plain = dict(item) | {"id": _id(item.get("id"))}
    features = item.get("features")
    if isinstance(features, Mapping):
        plain["features"] = {name: _feature(value, name) for name, value in features.items()}
    elif features is not None:
        plain["features"] = [_feature(value, number) for number, value in enumerate(_sequence("features", features), 1)]
    return plain


def _feature(value: Any, name: object) -> Any:
    """A value of a feature as JSON has it: NaN becomes null. Infinity is refused, because JSON would make it null too."""
    if not isinstance(value, numbers.Real):
        return None if value is not None and type(value).__name__ in ("NAType", "NaTType", "MaskedConstant") else value
    number = float(value)
    if math.isinf(number):
        raise RankPolicyError(f"features must be finite, or None where a value is missing; {name!r:.80} is {number}.")
    return None if math.isnan(number) else number


def _sequence(name: str, values: Any) -> list[Any]:
    try:
        if isinstance(values, str | Mapping):
            raise TypeError
        return list(values)
    except TypeError:  # arrays without axes say only then that they are no list
        raise RankPolicyError(f"{name} must be a list; got {values!r:.80}.") from None


def _message(message: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(message, kind)
    # msgspec asks objects for their keys, and their answers may be anything.
    except (msgspec.ValidationError, TypeError, ValueError, AttributeError) as error:
        raise RankPolicyError(f"the request cannot be sent: {error}.") from None


def _reason(answer: Any) -> str:
    try:
        document = answer.json()
    except ValueError:
        return f"status {answer.status_code}"
    rejected = document.get("rejected") or [{}]
    reason = document.get("message") or rejected[0].get("reason") or ""
    return f"status {answer.status_code}, {reason}"
