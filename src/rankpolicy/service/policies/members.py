"""All kinds of policies that can be served, once: this table feeds the configuration, the error texts and the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members

if TYPE_CHECKING:
    from rankpolicy.service.policies.served_policy import ServedPolicy

_POLICIES = "rankpolicy.service.policies"

SERVED: Members[type[ServedPolicy]] = Members(
    "kind of policy",
    {
        "bandit": f"{_POLICIES}.query_bandit:BanditPolicy",
        "given": f"{_POLICIES}.stateless:GivenOrder",
        "uniform": f"{_POLICIES}.stateless:UniformLists",
        "ranker": f"{_POLICIES}.ranker:RankerPolicy",
        "safe-gradient": f"{_POLICIES}.safe_gradient:SafeGradient",
        "contextual": f"{_POLICIES}.contextual_bandit:ContextualBandit",
        "personalizer": f"{_POLICIES}.personalizer:Personalizer",
        "swaps": f"{_POLICIES}.swaps:RandomSwap",
        "apprentice": f"{_POLICIES}.apprentice:Apprentice",
        "interleaved": f"{_POLICIES}.interleaved:Interleaved",
        "split": f"{_POLICIES}.stateless:TrafficSplit",
    },
)
