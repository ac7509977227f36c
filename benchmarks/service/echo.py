"""The bare ASGI echo that the service is compared with: it reads a body and sends it back."""

from __future__ import annotations

from typing import Any


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """The least that an ASGI application can do with a request."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
