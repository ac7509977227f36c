"""rankpolicy: learn ranking policies, distributions over orderings of items for a query.

import rankpolicy as rp
train = rp.read_letor("Fold1/train.txt.gz")
ranker = rp.PGRank(reward="ndcg@10").fit(train, valid=rp.read_letor("Fold1/vali.txt.gz"))
print(rp.evaluate(ranker, rp.read_letor("Fold1/test.txt.gz"), metrics=["ndcg@10", "map"]))
"""

from rankpolicy import data, evaluation, fairness, gradients, metrics, models, objectives, policies, rankers
from rankpolicy.data import (
    QueryKFold,
    RankingDataset,
    concatenate,
    from_arrays,
    from_frame,
    k_fold,
    make_fair_synthetic,
    make_web_search,
    read_folds,
    read_german_credit,
    read_letor,
    read_parquet,
    read_qrels,
    read_run,
    split_queries,
    to_frame,
    write_letor,
    write_parquet,
    write_qrels,
    write_run,
)
from rankpolicy.evaluation import MetricTable, compare_tables, evaluate
from rankpolicy.metrics import parse_metric
from rankpolicy.policies import PlackettLuce
from rankpolicy.rankers import (
    DELTR,
    BoostedPolicy,
    FairPGRank,
    LambdaMART,
    ListNet,
    PGRank,
    RankSVM,
    Regression,
    load,
)
from rankpolicy.types import Conventions, MissingDependencyError, RankPolicyError
from rankpolicy.version import __version__

__all__ = [
    "DELTR",
    "BoostedPolicy",
    "Conventions",
    "FairPGRank",
    "LambdaMART",
    "ListNet",
    "MetricTable",
    "MissingDependencyError",
    "PGRank",
    "PlackettLuce",
    "QueryKFold",
    "RankPolicyError",
    "RankSVM",
    "RankingDataset",
    "Regression",
    "__version__",
    "compare_tables",
    "concatenate",
    "data",
    "evaluate",
    "evaluation",
    "fairness",
    "from_arrays",
    "from_frame",
    "gradients",
    "k_fold",
    "load",
    "make_fair_synthetic",
    "make_web_search",
    "metrics",
    "models",
    "objectives",
    "parse_metric",
    "policies",
    "rankers",
    "read_folds",
    "read_german_credit",
    "read_letor",
    "read_parquet",
    "read_qrels",
    "read_run",
    "split_queries",
    "to_frame",
    "write_letor",
    "write_parquet",
    "write_qrels",
    "write_run",
]
