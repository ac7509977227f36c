"""The store in a PostgreSQL database, which several servers share."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.service.log.postgres.store import PostgresStore as PostgresStore

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
