"""The ranking service: shows lists, takes clicks durably, learns online, and can prove what it learned.

rankpolicy serve                                        # http://127.0.0.1:8080, data in ./rankpolicy.db

    client = rp.Client("http://127.0.0.1:8080")
    shown = client.rank(query="red shoes", items=["a", "b", "c"], cutoff=10)
    client.click(shown, "a")

Everything is written in one place (log/journal.py): a list, an event, the check for duplicates and the end of a window are one transaction
of the store, and nothing is answered before it is on disk. The state of a policy is the fold of the lessons in the log
(learning/live.py), a snapshot only spares time, and ``rankpolicy service replay`` computes everything again (log/replay.py).
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.service.client import Client as Client
    from rankpolicy.service.config import ServiceConfig as ServiceConfig, read_config as read_config
    from rankpolicy.service.errors import (
        ConflictError as ConflictError,
        DamagedStoreError as DamagedStoreError,
        ServiceError as ServiceError,
        UnavailableError as UnavailableError,
    )
    from rankpolicy.service.log.sqlite import SqliteStore as SqliteStore
    from rankpolicy.service.log.store import Store as Store
    from rankpolicy.service.policies import SERVED as SERVED
    from rankpolicy.service.ranking_service import RankingService as RankingService
    from rankpolicy.service.server import serve as serve

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
