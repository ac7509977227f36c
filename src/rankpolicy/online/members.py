"""The table of all rankers that learn online; error texts, files and contract tests read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members

if TYPE_CHECKING:
    from rankpolicy.online.online_ranker import OnlineRanker

_ONLINE = "rankpolicy.online"

ONLINE_RANKERS: Members[type[OnlineRanker]] = Members(
    "online ranker",
    {
        "safe-policy-gradient": f"{_ONLINE}.safe_policy_gradient:SafePolicyGradient",
        "pdgd": f"{_ONLINE}.pairwise:PDGD",
        "dbgd": f"{_ONLINE}.dueling:DBGD",
    },
)
