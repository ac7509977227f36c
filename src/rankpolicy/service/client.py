"""The client of a service. Ids are made here, so that every request may be sent again without harm."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from rankpolicy.service.errors import ServiceError
from rankpolicy.service.ids import time_ordered_id
from rankpolicy.types import MissingDependencyError, RankPolicyError

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

    def __init__(
        self, url: str, *, key: str | None = None, timeout: float = 10.0, attempts: int = 5, transport: Any = None
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingDependencyError("The client needs httpx: pip install 'rankpolicy[serve]'") from None
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise RankPolicyError(f"url must be an address such as http://127.0.0.1:8080; got {url!r:.80}.")
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, transport=transport)
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
        query: str,
        items: Sequence[str | Mapping[str, Any]],
        cutoff: int = 10,
        policy: str | None = None,
        user: str | None = None,
        context: Mapping[str, Any] | None = None,
        ranking_id: str | None = None,
    ) -> dict[str, Any]:
        """The list to show: a mapping with ``ranking_id`` and ``items``, best first, as the service answered.

        Parameters
        ----------
        query
            The query.
        items
            Items that may be shown: names, or mappings with ``id`` and, for rankers, ``features``.
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
        """
        body: dict[str, Any] = {
            "ranking_id": ranking_id or time_ordered_id(),
            "query": query,
            "items": [{"id": item} if isinstance(item, str) else dict(item) for item in items],
            "cutoff": cutoff,
        }
        optional = {"policy": policy, "user": user, "context": None if context is None else dict(context)}
        body |= {name: value for name, value in optional.items() if value is not None}
        return self._send("POST", "/v1/rank", body)

    def click(self, shown: Mapping[str, Any] | str, item: str) -> dict[str, Any]:
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
        self, shown: Mapping[str, Any] | str, item: str, *, type: str, value: float | None = None
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
        ranking_id = shown if isinstance(shown, str) else shown["ranking_id"]
        made: dict[str, Any] = {"ranking_id": ranking_id, "item": item, "type": type, "timestamp": time.time()}
        if value is not None:
            made["value"] = value
        return self.events([made])

    def events(self, events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Report many events at once; returns how many were accepted, duplicate, orphan and late, and which were rejected.

        Parameters
        ----------
        events
            Mappings with ``ranking_id``, ``item``, ``type`` and, if you have them, ``event_id``, ``value`` and ``timestamp``. An event
            without ``event_id`` gets one; to send it again in another call, give it one yourself.
        """
        made = [{"event_id": time_ordered_id()} | dict(event) for event in events]
        return self._send("POST", "/v1/events", made)

    def ranking(self, ranking_id: str) -> dict[str, Any]:
        """A list that was shown, with its clicks and whether they were learned.

        Parameters
        ----------
        ranking_id
            Its id.
        """
        from urllib.parse import quote

        return self._send("GET", f"/v1/rankings/{quote(ranking_id, safe='')}")

    def policies(self) -> list[dict[str, Any]]:
        """The policies of the service, their versions and the hashes of their states."""
        found: list[dict[str, Any]] = self._send("GET", "/v1/policies")["policies"]
        return found

    def _send(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        pause = _FIRST_PAUSE
        for attempt in range(1, self._attempts + 1):
            failure: str
            try:
                answer = self._http.request(method, path, json=body)
            except self._failures as error:
                failure, status = f"{type(error).__name__}: {error}", 0
            else:
                if answer.status_code == 200:
                    found: dict[str, Any] = answer.json()
                    return found
                failure, status = _reason(answer), answer.status_code
                if status not in _RETRIED:
                    break
            if attempt < self._attempts:
                time.sleep(pause * random.uniform(0.5, 1.5))  # so that many clients do not come back at once
                pause *= 2
        raise ServiceError(f"{method} {path} failed: {failure}", status=status)


def _reason(answer: Any) -> str:
    try:
        document = answer.json()
    except ValueError:
        return f"status {answer.status_code}"
    rejected = document.get("rejected") or [{}]
    said = document.get("message") or rejected[0].get("reason") or ""
    return f"status {answer.status_code}, {said}"
