"""Complete methods with one face: settings in, fit, predict, rank, sample, save."""

from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.bundle import load
from rankpolicy.rankers.comparison import Comparison, compare_rankers
from rankpolicy.rankers.lambdamart import LambdaMART
from rankpolicy.rankers.list_net import ListNet
from rankpolicy.rankers.pg_rank import PGRank
from rankpolicy.rankers.regression import Regression
from rankpolicy.rankers.selection import Selection, fit_best, ranker_class_named

RANKERS: dict[str, type[Ranker]] = {ranker.name: ranker for ranker in (PGRank, LambdaMART, ListNet, Regression)}

__all__ = [
    "RANKERS",
    "Comparison",
    "LambdaMART",
    "ListNet",
    "PGRank",
    "Ranker",
    "Regression",
    "Selection",
    "compare_rankers",
    "fit_best",
    "load",
    "ranker_class_named",
]
