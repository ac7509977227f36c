"""Simulated users for ``rankpolicy serve --playground``: known tastes, real requests."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.service.playground.traffic import Playground as Playground
    from rankpolicy.service.playground.world import World as World

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
