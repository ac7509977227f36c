"""rankpolicy: learn ranking policies, distributions over orderings of items for a query.

import rankpolicy as rp
train = rp.read_letor("Fold1/train.txt.gz")
ranker = rp.PGRank(reward="ndcg@10").fit(train, valid=rp.read_letor("Fold1/vali.txt.gz"))
print(rp.evaluate(ranker, rp.read_letor("Fold1/test.txt.gz"), metrics=["ndcg@10", "map"]))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankpolicy import data, evaluation, fairness, gradients, metrics, models, objectives, policies, rankers
from rankpolicy.data import (
    QueryKFold,
    RankingDataset,
    TextFeatures,
    concatenate,
    from_arrays,
    from_frame,
    from_texts,
    k_fold,
    make_fair_synthetic,
    make_web_search,
    read_folds,
    read_german_credit,
    read_glove,
    read_insuranceqa,
    read_letor,
    read_parquet,
    read_qrels,
    read_question_answering,
    read_run,
    read_wikiqa,
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
    AdaRank,
    BanditRank,
    BoostedPolicy,
    BoostedRegression,
    CoordinateAscent,
    FairLP,
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

if TYPE_CHECKING:
    from rankpolicy import bandits, clicks, simulation
    from rankpolicy.clicks import estimate_policy_value, estimate_position_bias, fit_click_model, read_click_log

# Loaded when first asked for: whoever learns from labels need not wait for what learns from clicks.
_LATER = {
    "bandits": "rankpolicy.bandits",
    "clicks": "rankpolicy.clicks",
    "simulation": "rankpolicy.simulation",
    "estimate_policy_value": "rankpolicy.clicks",
    "estimate_position_bias": "rankpolicy.clicks",
    "fit_click_model": "rankpolicy.clicks",
    "read_click_log": "rankpolicy.clicks",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'rankpolicy' has no attribute {name!r}")
    module = import_module(_LATER[name])
    return module if module.__name__.endswith(f".{name}") else getattr(module, name)


__all__ = [
    "DELTR",
    "AdaRank",
    "BanditRank",
    "BoostedPolicy",
    "BoostedRegression",
    "Conventions",
    "CoordinateAscent",
    "FairLP",
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
    "TextFeatures",
    "__version__",
    "bandits",
    "clicks",
    "compare_tables",
    "concatenate",
    "data",
    "estimate_policy_value",
    "estimate_position_bias",
    "evaluate",
    "evaluation",
    "fairness",
    "fit_click_model",
    "from_arrays",
    "from_frame",
    "from_texts",
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
    "read_click_log",
    "read_folds",
    "read_german_credit",
    "read_glove",
    "read_insuranceqa",
    "read_letor",
    "read_parquet",
    "read_qrels",
    "read_question_answering",
    "read_run",
    "read_wikiqa",
    "simulation",
    "split_queries",
    "to_frame",
    "write_letor",
    "write_parquet",
    "write_qrels",
    "write_run",
]
