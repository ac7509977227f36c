"""Rankers with features that learn online: they show lists, and learn from the clicks on them.

    learner = SafePolicyGradient(num_features=46, logger=weights)
    shown = learner.rank(features, mask=mask)           # features (query, item, feature)
    learner.learn(features, shown, clicks, mask=mask)   # clicks (query, position)

Bandits (rankpolicy.bandits) learn about items that come again and again; these learn weights of features, for queries that were never
seen. ``SafePolicyGradient`` shows a new policy only when its clicks prove it better than the one that serves; ``PDGD`` and ``DBGD`` are
the usual competitors, which promise nothing.

How to add one: a dataclass that extends ``OnlineRanker`` with ``_rank`` and ``_learn``, an export below, a line in ``members.py``.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.online.dueling import DBGD as DBGD
    from rankpolicy.online.members import ONLINE_RANKERS as ONLINE_RANKERS
    from rankpolicy.online.online_ranker import OnlineRanker as OnlineRanker, ShownLists as ShownLists
    from rankpolicy.online.pairwise import PDGD as PDGD
    from rankpolicy.online.safe_policy_gradient import SafePolicyGradient as SafePolicyGradient

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
