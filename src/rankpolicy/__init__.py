"""rankpolicy: learn ranking policies, distributions over orderings of items for a query.

import rankpolicy as rp
train = rp.read_letor("Fold1/train.txt.gz")
ranker = rp.PGRank(reward="ndcg@10").fit(train, valid=rp.read_letor("Fold1/vali.txt.gz"))
print(rp.evaluate(ranker, rp.read_letor("Fold1/test.txt.gz"), metrics=["ndcg@10", "map"]))

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports
from rankpolicy.threads import prepare_threads
from rankpolicy.types import Conventions, MissingDependencyError as MissingDependencyError, RankPolicyError
from rankpolicy.version import __version__

if TYPE_CHECKING:
    from rankpolicy import (
        bandits,
        clicks,
        data,
        evaluation,
        executors as executors,
        experiments,
        fairness,
        gradients,
        metrics,
        models,
        off_policy,
        policies,
        simulation,
    )
    from rankpolicy.clicks import (
        dataset_from_clicks,
        estimate_position_bias,
        fit_click_model,
        read_click_log,
        weighted_by_propensity,
    )
    from rankpolicy.data import (
        QueryKFold,
        RankingDataset,
        from_arrays,
        from_frame,
        from_texts,
        make_web_search,
        read_click_table,
        read_letor,
        read_parquet,
        scan_letor,
        scan_parquet,
        split_by_time,
        split_queries,
    )
    from rankpolicy.evaluation import evaluate
    from rankpolicy.experiments import tune
    from rankpolicy.loading import load
    from rankpolicy.off_policy import estimate_policy_value
    from rankpolicy.online import SafePolicyGradient
    from rankpolicy.rankers import (
        DELTR,
        AdaRank,
        AutoRanker,
        BanditRank,
        BoostedPolicy,
        BoostedRegression,
        CoordinateAscent,
        FairExposure,
        FairLP,
        FairPGRank,
        LambdaMART,
        ListNet,
        MatchingCross,
        PGRank,
        RankSVM,
        Regression,
        distil,
    )
    from rankpolicy.service import Client

prepare_threads()

__getattr__, __dir__, _ = lazy_imports(__name__, __file__)

__all__ = [
    "DELTR",
    "AdaRank",
    "AutoRanker",
    "BanditRank",
    "BoostedPolicy",
    "BoostedRegression",
    "Client",
    "Conventions",
    "CoordinateAscent",
    "FairExposure",
    "FairLP",
    "FairPGRank",
    "LambdaMART",
    "ListNet",
    "MatchingCross",
    "PGRank",
    "QueryKFold",
    "RankPolicyError",
    "RankSVM",
    "RankingDataset",
    "Regression",
    "SafePolicyGradient",
    "__version__",
    "bandits",
    "clicks",
    "data",
    "dataset_from_clicks",
    "distil",
    "estimate_policy_value",
    "estimate_position_bias",
    "evaluate",
    "evaluation",
    "experiments",
    "fairness",
    "fit_click_model",
    "from_arrays",
    "from_frame",
    "from_texts",
    "gradients",
    "load",
    "make_web_search",
    "metrics",
    "models",
    "off_policy",
    "policies",
    "read_click_log",
    "read_click_table",
    "read_letor",
    "read_parquet",
    "scan_letor",
    "scan_parquet",
    "simulation",
    "split_by_time",
    "split_queries",
    "tune",
    "weighted_by_propensity",
]
