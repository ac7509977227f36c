"""rankpolicy: learn ranking policies, distributions over orderings of items for a query.

import rankpolicy as rp
train = rp.read_letor("Fold1/train.txt.gz")
ranker = rp.PGRank(reward="ndcg@10").fit(train, valid=rp.read_letor("Fold1/vali.txt.gz"))
print(rp.evaluate(ranker, rp.read_letor("Fold1/test.txt.gz"), metrics=["ndcg@10", "map"]))

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports
from rankpolicy.types import Conventions, MissingDependencyError, RankPolicyError
from rankpolicy.version import __version__

if TYPE_CHECKING:
    from rankpolicy import (
        bandits,
        clicks,
        data,
        evaluation,
        experiments,
        fairness,
        gradients,
        metrics,
        models,
        objectives,
        off_policy,
        policies,
        rankers,
        simulation,
    )
    from rankpolicy.clicks import (
        click_log_of,
        dataset_from_clicks,
        estimate_position_bias,
        fit_click_model,
        one_click_each,
        read_click_log,
        read_position_bias,
        weighted_by_propensity,
    )
    from rankpolicy.data import (
        QueryKFold,
        RankingDataset,
        TextFeatures,
        concatenate,
        from_arrays,
        from_click_table,
        from_frame,
        from_texts,
        k_fold,
        make_fair_synthetic,
        make_web_search,
        read_click_table,
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
        split_by_time,
        split_queries,
        to_frame,
        write_letor,
        write_parquet,
        write_qrels,
        write_run,
    )
    from rankpolicy.evaluation import MetricTable, compare_tables, evaluate
    from rankpolicy.loading import load
    from rankpolicy.metrics import parse_metric
    from rankpolicy.off_policy import estimate_policy_value
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
        MatchingCross,
        PGRank,
        RankSVM,
        Regression,
    )

__getattr__, __dir__ = lazy_imports(__name__, __file__)

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
    "MatchingCross",
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
    "click_log_of",
    "clicks",
    "compare_tables",
    "concatenate",
    "data",
    "dataset_from_clicks",
    "estimate_policy_value",
    "estimate_position_bias",
    "evaluate",
    "evaluation",
    "experiments",
    "fairness",
    "fit_click_model",
    "from_arrays",
    "from_click_table",
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
    "off_policy",
    "one_click_each",
    "parse_metric",
    "policies",
    "rankers",
    "read_click_log",
    "read_click_table",
    "read_folds",
    "read_german_credit",
    "read_glove",
    "read_insuranceqa",
    "read_letor",
    "read_parquet",
    "read_position_bias",
    "read_qrels",
    "read_question_answering",
    "read_run",
    "read_wikiqa",
    "simulation",
    "split_by_time",
    "split_queries",
    "to_frame",
    "weighted_by_propensity",
    "write_letor",
    "write_parquet",
    "write_qrels",
    "write_run",
]
