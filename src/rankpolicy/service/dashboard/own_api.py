"""The dashboard asks the interface of its own service, in the name of its visitor: pages show and do what the interface does."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request

from rankpolicy.service.domain.keys import StoredKey
from rankpolicy.service.http.access import SESSION_KEY


class OwnApi:
    """Calls the ASGI application without a socket.

    Parameters
    ----------
    application
        The application of the service.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    async def call(
        self, request: Request, method: str, path: str, *, key: StoredKey | None, body: Any = None
    ) -> tuple[int, Any]:
        """The status and the document of an answer; None for one that is not JSON.

        Parameters
        ----------
        request
            The request of the visitor: where it came from is checked again.
        method, path
            What to ask.
        key
            The key of the visitor.
        body
            To be sent as JSON; None for nothing.
        """
        content = b"" if body is None else msgspec.json.encode(body)
        headers = [(name, value) for name, value in request.scope["headers"] if name in _KEPT]
        if body is not None:
            headers += [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        scope = {
            **{name: request.scope.get(name) for name in ("asgi", "http_version", "scheme", "client", "server")},
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            SESSION_KEY: key,
        }
        answer = _Answer(content)
        await self._application(scope, answer.receive, answer.send)
        return answer.status, answer.document()


_KEPT = (b"host", b"x-forwarded-for", b"forwarded")


class _Answer:
    def __init__(self, content: bytes) -> None:
        self._content: bytes | None = content
        self.status = 500
        self._parts: list[bytes] = []

    async def receive(self) -> dict[str, Any]:
        if self._content is None:
            return {"type": "http.disconnect"}
        content, self._content = self._content, None
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self._parts.append(message.get("body", b""))

    def document(self) -> Any:
        try:
            return msgspec.json.decode(b"".join(self._parts))
        except msgspec.DecodeError:
            return None
