"""All bandits and indices, once: these tables feed the command line, the error texts and the contract tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankpolicy.members import Members

if TYPE_CHECKING:
    from rankpolicy.bandits.base import Bandit
    from rankpolicy.bandits.indices import Index

_BANDITS, _PRESETS = "rankpolicy.bandits", "rankpolicy.bandits.presets"

BANDITS: Members[type[Bandit]] = Members(
    "bandit",
    {
        "dcm-kl-ucb": f"{_PRESETS}:DcmKLUCB",
        "dcm-kl-ucb-log": f"{_PRESETS}:DcmKLUCBLog",
        "dcm-ucb1": f"{_PRESETS}:DcmUCB1",
        "dcm-ts": f"{_PRESETS}:DcmTS",
        "cascade-kl-ucb": f"{_PRESETS}:CascadeKLUCB",
        "cascade-ucb1": f"{_PRESETS}:CascadeUCB1",
        "cascade-ts": f"{_PRESETS}:CascadeTS",
        "mp-ts": f"{_PRESETS}:MpTS",
        "dcm-lin-ucb": f"{_PRESETS}:DcmLinUCB",
        "dcm-lin-ts": f"{_PRESETS}:DcmLinTS",
        "cascade-lin-ucb": f"{_PRESETS}:CascadeLinUCB",
        "cascade-lin-ts": f"{_PRESETS}:CascadeLinTS",
        "first-click": f"{_PRESETS}:FirstClick",
        "last-click": f"{_PRESETS}:LastClick",
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
        "kl-ucb": f"{_BANDITS}.indices:KLUCB",
        "ucb1": f"{_BANDITS}.indices:UCB1",
        "ts": f"{_BANDITS}.indices:ThompsonSampling",
        "lin-ucb": f"{_BANDITS}.linear:LinUCB",
        "lin-ts": f"{_BANDITS}.linear:LinTS",
    },
)

# Bandits that need more than items and a cutoff: made from Python and kept in files, not on the command line.
COMPOSED: Members[Any] = Members(
    "bandit",
    {"index": f"{_BANDITS}.index_bandit:IndexBandit", "query": f"{_BANDITS}.per_query.query_bandit:QueryBandit"},
)
