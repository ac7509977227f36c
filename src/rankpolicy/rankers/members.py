"""The table of all rankers; the command line, error messages and contract tests read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.declarations.members import Members

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

_NETWORKS, _TREES, _LINEAR = "rankpolicy.rankers.networks", "rankpolicy.rankers.trees", "rankpolicy.rankers.linear"

RANKERS: Members[type[Ranker]] = Members(
    "method",
    {
        "auto": "rankpolicy.rankers.blending.auto_ranker:AutoRanker",
        "pg-rank": f"{_NETWORKS}.pg_rank:PGRank",
        "fair-pg-rank": f"{_NETWORKS}.fair_pg_rank:FairPGRank",
        "fair-exposure": "rankpolicy.rankers.post_processing.fair_exposure:FairExposure",
        "fair-lp": "rankpolicy.rankers.post_processing.fair_lp:FairLP",
        "fa-ir": "rankpolicy.rankers.post_processing.fa_ir:FAStarIR",
        "equity-of-attention": "rankpolicy.rankers.post_processing.equity_of_attention:EquityOfAttention",
        "bandit-rank": f"{_NETWORKS}.bandit_rank:BanditRank",
        "matching-cross": f"{_NETWORKS}.matching_cross:MatchingCross",
        "deltr": f"{_NETWORKS}.list_net:DELTR",
        "boosted-policy": f"{_TREES}.boosted_policy:BoostedPolicy",
        "lambdamart": f"{_TREES}.lambdamart:LambdaMART",
        "boosted-regression": f"{_TREES}.boosted_regression:BoostedRegression",
        "listnet": f"{_NETWORKS}.list_net:ListNet",
        "adarank": f"{_LINEAR}.adarank:AdaRank",
        "coordinate-ascent": f"{_LINEAR}.coordinate_ascent:CoordinateAscent",
        "rank-svm": f"{_LINEAR}.rank_svm:RankSVM",
        "regression": f"{_NETWORKS}.regression:Regression",
    },
)


@checked_kinds
def ranker_class_named(name: str) -> type[Ranker]:
    """The class of a method, by the name that the command line uses.

    Parameters
    ----------
    name
        A name of ``RANKERS``, such as "pg-rank".

    >>> ranker_class_named("pg-rnk")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown method 'pg-rnk'. Did you mean 'pg-rank'? Known: ...
    """
    return RANKERS.named(name)
