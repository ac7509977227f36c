"""Complete methods with one face: settings in, fit, predict, rank, sample, save."""

from typing import TYPE_CHECKING

from rankpolicy.optional import loaded_later
from rankpolicy.rankers.adarank import AdaRank
from rankpolicy.rankers.bandit_rank import BanditRank
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.boosted_policy import BoostedPolicy
from rankpolicy.rankers.boosted_regression import BoostedRegression
from rankpolicy.rankers.bundle import load
from rankpolicy.rankers.coordinate_ascent import CoordinateAscent
from rankpolicy.rankers.deltr import DELTR
from rankpolicy.rankers.fair_lp import FairLP
from rankpolicy.rankers.fair_pg_rank import FairPGRank
from rankpolicy.rankers.lambdamart import LambdaMART
from rankpolicy.rankers.list_net import ListNet
from rankpolicy.rankers.matching_cross import MatchingCross
from rankpolicy.rankers.pg_rank import PGRank
from rankpolicy.rankers.rank_svm import RankSVM
from rankpolicy.rankers.regression import Regression
from rankpolicy.rankers.selection import Selection, fit_best, ranker_class_named

if TYPE_CHECKING:
    from rankpolicy.rankers.comparison import Comparison, compare_rankers
    from rankpolicy.rankers.reward_mixing import fit_best_mix

__getattr__ = loaded_later(
    "rankpolicy.rankers",
    {
        "Comparison": "rankpolicy.rankers.comparison",
        "compare_rankers": "rankpolicy.rankers.comparison",
        "fit_best_mix": "rankpolicy.rankers.reward_mixing",
    },
)

RANKERS: dict[str, type[Ranker]] = {
    ranker.name: ranker
    for ranker in (
        PGRank,
        FairPGRank,
        FairLP,
        BanditRank,
        MatchingCross,
        DELTR,
        BoostedPolicy,
        LambdaMART,
        BoostedRegression,
        ListNet,
        AdaRank,
        CoordinateAscent,
        RankSVM,
        Regression,
    )
}

__all__ = [
    "DELTR",
    "RANKERS",
    "AdaRank",
    "BanditRank",
    "BoostedPolicy",
    "BoostedRegression",
    "Comparison",
    "CoordinateAscent",
    "FairLP",
    "FairPGRank",
    "LambdaMART",
    "ListNet",
    "MatchingCross",
    "PGRank",
    "RankSVM",
    "Ranker",
    "Regression",
    "Selection",
    "compare_rankers",
    "fit_best",
    "fit_best_mix",
    "load",
    "ranker_class_named",
]
