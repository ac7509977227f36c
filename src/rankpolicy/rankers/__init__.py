"""Complete ranking methods with a common interface: fit, predict, rank, sample, save."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker
    from rankpolicy.rankers.blending.auto_ranker import AutoRanker
    from rankpolicy.rankers.linear.adarank import AdaRank
    from rankpolicy.rankers.linear.coordinate_ascent import CoordinateAscent
    from rankpolicy.rankers.linear.rank_svm import RankSVM
    from rankpolicy.rankers.members import RANKERS, ranker_class_named
    from rankpolicy.rankers.networks.bandit_rank import BanditRank
    from rankpolicy.rankers.networks.deltr import DELTR
    from rankpolicy.rankers.networks.fair_pg_rank import FairPGRank
    from rankpolicy.rankers.networks.list_net import ListNet
    from rankpolicy.rankers.networks.matching_cross import MatchingCross
    from rankpolicy.rankers.networks.pg_rank import PGRank
    from rankpolicy.rankers.networks.regression import Regression
    from rankpolicy.rankers.on_workers import fit_on_workers
    from rankpolicy.rankers.post_processing.fair_exposure import FairExposure
    from rankpolicy.rankers.post_processing.fair_lp import FairLP
    from rankpolicy.rankers.trees.boosted_policy import BoostedPolicy
    from rankpolicy.rankers.trees.boosted_regression import BoostedRegression
    from rankpolicy.rankers.trees.lambdamart import LambdaMART

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "DELTR",
    "RANKERS",
    "AdaRank",
    "AutoRanker",
    "BanditRank",
    "BoostedPolicy",
    "BoostedRegression",
    "CoordinateAscent",
    "FairExposure",
    "FairLP",
    "FairPGRank",
    "LambdaMART",
    "ListNet",
    "MatchingCross",
    "PGRank",
    "RankSVM",
    "Ranker",
    "Regression",
    "fit_on_workers",
    "ranker_class_named",
]
