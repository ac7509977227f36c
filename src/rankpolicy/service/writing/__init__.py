"""A process of its own that commits to the log, so that the event loop waits for no disk and no database.

``Writer`` is what the server has, ``process.py`` what the other process runs, and ``messages.py`` what they send each other.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.service.writing.writer import Writer

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = ["Writer"]
