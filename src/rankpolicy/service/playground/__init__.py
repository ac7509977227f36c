"""Simulated users for ``rankpolicy serve --playground``: known tastes, real requests."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.service.playground.traffic import Playground
    from rankpolicy.service.playground.world import World

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = ["Playground", "World"]
