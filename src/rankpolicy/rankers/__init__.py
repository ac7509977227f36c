"""Complete methods with one face: settings in, fit, predict, rank, sample, save."""

from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.boosted_policy import BoostedPolicy
from rankpolicy.rankers.bundle import load
from rankpolicy.rankers.comparison import Comparison, compare_rankers
from rankpolicy.rankers.deltr import DELTR
from rankpolicy.rankers.fair_pg_rank import FairPGRank
from rankpolicy.rankers.lambdamart import LambdaMART
from rankpolicy.rankers.list_net import ListNet
from rankpolicy.rankers.pg_rank import PGRank
from rankpolicy.rankers.rank_svm import RankSVM
from rankpolicy.rankers.regression import Regression
from rankpolicy.rankers.selection import Selection, fit_best, ranker_class_named

RANKERS: dict[str, type[Ranker]] = {
    ranker.name: ranker
    for ranker in (PGRank, FairPGRank, DELTR, LambdaMART, BoostedPolicy, ListNet, RankSVM, Regression)
}

__all__ = [
    "DELTR",
    "RANKERS",
    "BoostedPolicy",
    "Comparison",
    "FairPGRank",
    "LambdaMART",
    "ListNet",
    "PGRank",
    "RankSVM",
    "Ranker",
    "Regression",
    "Selection",
    "compare_rankers",
    "fit_best",
    "load",
    "ranker_class_named",
]
