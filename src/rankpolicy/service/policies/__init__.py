"""Policies that can be served: what orders the items of a request, and what is learned from clicks on it.

To add a kind: a file with a dataclass of settings that has the face of ``ServedPolicy``, and a line in ``members.py``.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.service.domain.records import Ordered as Ordered
    from rankpolicy.service.policies.members import SERVED as SERVED
    from rankpolicy.service.policies.served_policy import ServedPolicy as ServedPolicy

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
