"""Policies: distributions over the rankings of each query.

All have the face of ``rankpolicy.types.RankingPolicy``: ``sample``, ``log_prob``, ``mode`` and ``exposure``. TopShuffle and RandomSwaps
make randomised traffic, from which position bias is measured: ``show`` draws lists with their propensities and the columns of their log.
"""

from rankpolicy.policies.affinity import Affinity
from rankpolicy.policies.mixture import Mixture
from rankpolicy.policies.plackett_luce import PlackettLuce
from rankpolicy.policies.random_swaps import RandomSwaps
from rankpolicy.policies.top_shuffle import TopShuffle

__all__ = ["Affinity", "Mixture", "PlackettLuce", "RandomSwaps", "TopShuffle"]
