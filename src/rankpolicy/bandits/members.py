"""All bandits and indices, once: these tables feed the command line, the error texts and the contract tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankpolicy.display import ShortRepr
from rankpolicy.members import Members
from rankpolicy.settings import setting_names

if TYPE_CHECKING:
    from rankpolicy.bandits.bandit import Bandit
    from rankpolicy.bandits.index import Index

_BANDITS, _INDEX_BANDITS = "rankpolicy.bandits", "rankpolicy.bandits.index_bandits"

BANDITS: Members[type[Bandit]] = Members(
    "bandit",
    {
        "dcm-kl-ucb": f"{_INDEX_BANDITS}:DcmKLUCB",
        "dcm-kl-ucb-log": f"{_INDEX_BANDITS}:DcmKLUCBLog",
        "dcm-ucb1": f"{_INDEX_BANDITS}:DcmUCB1",
        "dcm-ts": f"{_INDEX_BANDITS}:DcmTS",
        "cascade-kl-ucb": f"{_INDEX_BANDITS}:CascadeKLUCB",
        "cascade-ucb1": f"{_INDEX_BANDITS}:CascadeUCB1",
        "cascade-ts": f"{_INDEX_BANDITS}:CascadeTS",
        "mp-ts": f"{_INDEX_BANDITS}:MpTS",
        "dcm-lin-ucb": f"{_INDEX_BANDITS}:DcmLinUCB",
        "dcm-lin-ts": f"{_INDEX_BANDITS}:DcmLinTS",
        "cascade-lin-ucb": f"{_INDEX_BANDITS}:CascadeLinUCB",
        "cascade-lin-ts": f"{_INDEX_BANDITS}:CascadeLinTS",
        "first-click": f"{_INDEX_BANDITS}:FirstClick",
        "last-click": f"{_INDEX_BANDITS}:LastClick",
        "ranked-kl-ucb": f"{_BANDITS}.ranked:RankedKLUCB",
        "ranked-exp3": f"{_BANDITS}.ranked:RankedExp3",
        "pbm-ucb": f"{_BANDITS}.position:PbmUCB",
        "pbm-ts": f"{_BANDITS}.position:PbmTS",
        "pbm-pie": f"{_BANDITS}.position:PbmPIE",
        "ubm-ucb": f"{_BANDITS}.position:UbmUCB",
        "ubm-ts": f"{_BANDITS}.position:UbmTS",
        "ccm-ucb": f"{_BANDITS}.chain:CcmUCB",
        "ccm-ts": f"{_BANDITS}.chain:CcmTS",
        "dbn-ucb": f"{_BANDITS}.chain:DbnUCB",
        "dbn-ts": f"{_BANDITS}.chain:DbnTS",
        "top-rank": f"{_BANDITS}.pairs:TopRank",
        "bubble-rank": f"{_BANDITS}.pairs:BubbleRank",
        "epsilon-greedy": f"{_BANDITS}.uniform:EpsilonGreedy",
        "random": f"{_BANDITS}.uniform:RandomLists",
    },
)

INDICES: Members[type[Index]] = Members(
    "index",
    {
        "kl-ucb": f"{_BANDITS}.index:KLUCB",
        "ucb1": f"{_BANDITS}.index:UCB1",
        "ts": f"{_BANDITS}.index:ThompsonSampling",
        "lin-ucb": f"{_BANDITS}.linear:LinUCB",
        "lin-ts": f"{_BANDITS}.linear:LinTS",
    },
)

# Bandits that need more than items and a cutoff: made from Python and kept in files, not on the command line.
COMPOSED: Members[Any] = Members(
    "bandit",
    {"index": f"{_BANDITS}.index_bandits:IndexBandit", "query": f"{_BANDITS}.per_query.query_bandit:QueryBandit"},
)


class KnowsOtherSettings(ShortRepr):
    """Base of bandits and indices: the error about a setting that the class does not have names the classes that have it."""

    @classmethod
    def where_setting_belongs(cls, name: str) -> str | None:
        """Which bandits or indices have a setting; None if none has it.

        Parameters
        ----------
        name
            The name of the setting.
        """
        kind = str(getattr(cls, "name", cls.__name__))
        bandits = [owner for owner, member in BANDITS.items() if name in setting_names(member)]
        indices = [owner for owner, member in INDICES.items() if name in setting_names(member)]
        if indices and kind not in BANDITS and kind != "query":
            hint = (
                f". Give it to the index: index={INDICES[indices[0]].__name__}({name}=...)" if kind == "index" else ""
            )
            return f"it is a setting of the {'index' if len(indices) == 1 else 'indices'} {', '.join(indices)}{hint}"
        if bandits:
            hint = f". Give it in bandit_settings={{{name!r}: ...}}" if kind == "query" else ""
            return f"it is a setting of the {'bandit' if len(bandits) == 1 else 'bandits'} {', '.join(bandits)}{hint}"
        return None
