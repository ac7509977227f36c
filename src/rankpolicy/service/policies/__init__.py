"""Policies that can be served: what orders the items of a request, and what is learned from clicks on it.

To add a kind: a file with a dataclass of settings that has the face of ``ServedPolicy``, and a line in ``members.py``.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.service.domain.records import Ordered
    from rankpolicy.service.policies.members import SERVED
    from rankpolicy.service.policies.served_policy import ServedPolicy

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = ["SERVED", "Ordered", "ServedPolicy"]
