"""The dashboard of a service: pages rendered by the server, from statistics that are one more fold of the log."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.service.dashboard.site import Dashboard

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = ["Dashboard"]
