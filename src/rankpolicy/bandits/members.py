"""All bandits and indices, once: these tables feed the command line, the error texts and the contract tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankpolicy.declarations.members import Members
from rankpolicy.declarations.settings import setting_names
from rankpolicy.display import ShortRepr

if TYPE_CHECKING:
    from rankpolicy.bandits.bandit import Bandit
    from rankpolicy.bandits.index import Index

_BANDITS = "rankpolicy.bandits"  # which knows the module of every name it exports

BANDITS: Members[type[Bandit]] = Members(
    "bandit",
    {
        "dcm-kl-ucb": f"{_BANDITS}:DcmKLUCB",
        "dcm-kl-ucb-log": f"{_BANDITS}:DcmKLUCBLog",
        "dcm-ucb1": f"{_BANDITS}:DcmUCB1",
        "dcm-ts": f"{_BANDITS}:DcmTS",
        "dcm-full": f"{_BANDITS}:DcmFull",
        "dcm-full-ts": f"{_BANDITS}:DcmFullTS",
        "cascade-kl-ucb": f"{_BANDITS}:CascadeKLUCB",
        "cascade-ucb1": f"{_BANDITS}:CascadeUCB1",
        "cascade-ts": f"{_BANDITS}:CascadeTS",
        "mp-ts": f"{_BANDITS}:MpTS",
        "dcm-lin-ucb": f"{_BANDITS}:DcmLinUCB",
        "dcm-lin-ts": f"{_BANDITS}:DcmLinTS",
        "cascade-lin-ucb": f"{_BANDITS}:CascadeLinUCB",
        "cascade-lin-ts": f"{_BANDITS}:CascadeLinTS",
        "first-click": f"{_BANDITS}:FirstClick",
        "last-click": f"{_BANDITS}:LastClick",
        "ranked-kl-ucb": f"{_BANDITS}:RankedKLUCB",
        "ranked-exp3": f"{_BANDITS}:RankedExp3",
        "pbm-ucb": f"{_BANDITS}:PbmUCB",
        "pbm-ts": f"{_BANDITS}:PbmTS",
        "pbm-pie": f"{_BANDITS}:PbmPIE",
        "ubm-ucb": f"{_BANDITS}:UbmUCB",
        "ubm-ts": f"{_BANDITS}:UbmTS",
        "ccm-ucb": f"{_BANDITS}:CcmUCB",
        "ccm-ts": f"{_BANDITS}:CcmTS",
        "dbn-ucb": f"{_BANDITS}:DbnUCB",
        "dbn-ts": f"{_BANDITS}:DbnTS",
        "top-rank": f"{_BANDITS}:TopRank",
        "bubble-rank": f"{_BANDITS}:BubbleRank",
        "epsilon-greedy": f"{_BANDITS}:EpsilonGreedy",
        "random": f"{_BANDITS}:RandomLists",
    },
)

INDICES: Members[type[Index]] = Members(
    "index",
    {
        "kl-ucb": f"{_BANDITS}:KLUCB",
        "ucb1": f"{_BANDITS}:UCB1",
        "ts": f"{_BANDITS}:ThompsonSampling",
        "lin-ucb": f"{_BANDITS}:LinUCB",
        "lin-ts": f"{_BANDITS}:LinTS",
    },
)

# Bandits that need more than items and a cutoff: made from Python and kept in files, not on the command line.
COMPOSED: Members[Any] = Members(
    "bandit",
    {"index": f"{_BANDITS}:IndexBandit", "query": f"{_BANDITS}:QueryBandit"},
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
