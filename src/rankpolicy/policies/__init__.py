"""Policies: distributions over the rankings of each query.

All have the face of ``rankpolicy.types.RankingPolicy``: ``sample``, ``log_prob``, ``mode`` and ``exposure``.
"""

from rankpolicy.policies.affinity import Affinity
from rankpolicy.policies.mixture import Mixture
from rankpolicy.policies.plackett_luce import PlackettLuce

__all__ = ["Affinity", "Mixture", "PlackettLuce"]
