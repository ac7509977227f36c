"""The interface: JSON over HTTP. ``/v1/rank`` and ``/v1/events`` are plain ASGI for speed, the rest is Starlette."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.service.http.application import Application as Application

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
