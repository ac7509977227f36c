"""The dashboard of a service: pages rendered by the server, from statistics that are one more fold of the log."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.service.dashboard.site import Dashboard as Dashboard

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
