"""The ranking service: shows lists, takes clicks durably, learns online, and can prove what it learned.

rankpolicy serve                                        # http://127.0.0.1:8080, data in ./rankpolicy.db

    client = rp.Client("http://127.0.0.1:8080")
    shown = client.rank(query="red shoes", items=["a", "b", "c"], cutoff=10)
    client.click(shown, "a")

Everything is written in one place (log/journal.py): a list, an event, the check for duplicates and the end of a window are one transaction
of the store, and nobody gets an answer before it is on disk. The state of a policy is the fold of the lessons in the log
(learning/live.py), a snapshot only spares time, and ``rankpolicy service replay`` computes everything again (log/replay.py).
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.service.client import Client
    from rankpolicy.service.config import ServiceConfig, read_config
    from rankpolicy.service.errors import ConflictError, DamagedStoreError, ServiceError, UnavailableError
    from rankpolicy.service.log.sqlite import SqliteStore
    from rankpolicy.service.log.store import Store
    from rankpolicy.service.policies import SERVED
    from rankpolicy.service.ranking_service import RankingService
    from rankpolicy.service.server import serve

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "SERVED",
    "Client",
    "ConflictError",
    "DamagedStoreError",
    "RankingService",
    "ServiceConfig",
    "ServiceError",
    "SqliteStore",
    "Store",
    "UnavailableError",
    "read_config",
    "serve",
]
