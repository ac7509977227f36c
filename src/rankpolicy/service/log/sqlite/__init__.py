"""The store in a SQLite file: write-ahead log, every commit on disk before it counts."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.service.log.sqlite.store import SqliteStore as SqliteStore

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
