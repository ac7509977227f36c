"""Complete ranking methods with a common interface: fit, predict, rank, sample, save."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker as Ranker
    from rankpolicy.rankers.blending.auto_ranker import AutoRanker as AutoRanker
    from rankpolicy.rankers.distillation import distil as distil
    from rankpolicy.rankers.linear.adarank import AdaRank as AdaRank
    from rankpolicy.rankers.linear.coordinate_ascent import CoordinateAscent as CoordinateAscent
    from rankpolicy.rankers.linear.rank_svm import RankSVM as RankSVM
    from rankpolicy.rankers.members import RANKERS as RANKERS, ranker_class_named as ranker_class_named
    from rankpolicy.rankers.networks.bandit_rank import BanditRank as BanditRank
    from rankpolicy.rankers.networks.fair_pg_rank import FairPGRank as FairPGRank
    from rankpolicy.rankers.networks.list_net import DELTR as DELTR, ListNet as ListNet
    from rankpolicy.rankers.networks.matching_cross import MatchingCross as MatchingCross
    from rankpolicy.rankers.networks.pg_rank import PGRank as PGRank
    from rankpolicy.rankers.networks.regression import Regression as Regression
    from rankpolicy.rankers.on_workers import fit_on_workers as fit_on_workers
    from rankpolicy.rankers.post_processing.equity_of_attention import EquityOfAttention as EquityOfAttention
    from rankpolicy.rankers.post_processing.fa_ir import FAStarIR as FAStarIR
    from rankpolicy.rankers.post_processing.fair_exposure import FairExposure as FairExposure
    from rankpolicy.rankers.post_processing.fair_lp import FairLP as FairLP
    from rankpolicy.rankers.trees.boosted_policy import BoostedPolicy as BoostedPolicy
    from rankpolicy.rankers.trees.boosted_regression import BoostedRegression as BoostedRegression
    from rankpolicy.rankers.trees.lambdamart import LambdaMART as LambdaMART

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
