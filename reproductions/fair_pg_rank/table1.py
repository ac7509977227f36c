"""Table 1: PG-Rank beside conventional learning to rank, here on MQ2007 (the paper's Yahoo set is not to be had)."""

from __future__ import annotations

from typing import Any

from rankpolicy.data import read_folds
from rankpolicy.data.folds import Fold
from rankpolicy.evaluation import MetricTable
from rankpolicy.experiments import compare_rankers
from rankpolicy.models import MLP
from rankpolicy.types import Conventions
from reproductions.paired import EQUIVALENT, better, t_interval
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

# "we use the highest probability ranking of the candidate set for each query to compute the average NDCG@10 and ERR"
METRICS = ("ndcg@10", "err")
CONVENTIONS = Conventions(max_label=2.0)  # MQ2007 is labelled 0, 1, 2

RANK_SVM, GBDT, LINEAR, NEURAL = "RankSVM, linear", "GBDT, regression", "PG-Rank, linear", "PG-Rank, 32 hidden units"

# "a linear RankSVM and a non-linear regression-based ranker that uses Gradient-boosted Decision Trees"; "a linear model and a neural
# network (one hidden layer with 32 hidden units and ReLU activation)". PG-Rank learns here by exact gradients, with early stopping; its
# features are scaled as RankSVM's, and its learning rate was chosen on the validation data of the first fold.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    RANK_SVM: ("rank-svm", {}),
    GBDT: ("boosted-regression", {}),
    LINEAR: ("pg-rank", {"model": "linear", "num_networks": 1, "scaling": "standardize", "learning_rate": 1e-2}),
    NEURAL: (
        "pg-rank",
        {"model": MLP(hidden=(32,)), "num_networks": 1, "scaling": "standardize", "learning_rate": 1e-2},
    ),
}
SMOKE_SETTINGS: dict[str, dict[str, Any]] = {
    RANK_SVM: {},
    GBDT: {"num_trees": 5},
    LINEAR: {"epochs": 2},
    NEURAL: {"epochs": 2},
}


def run(setup: Setup) -> Outcome:
    folds = read_folds(setup.folder("letor_mq2007"))
    if setup.is_smoke:
        folds = [_few_queries(folds[0])]
    pooled: dict[str, MetricTable] = {}
    rows: list[Row] = []
    for row, (method, settings) in METHODS.items():
        changes = SMOKE_SETTINGS[row] if setup.is_smoke else {}
        comparison = compare_rankers(
            folds,
            {row: (method, settings | changes)},
            METRICS,
            conventions=CONVENTIONS,
            tune=not setup.is_smoke,
            random_state=setup.seed,
            progress=False,
            executor=setup.executor,
        )
        pooled[row] = comparison.pooled[row]
        means = comparison.means[row]
        rows.append({"method": row, **means})
        setup.report(f"{row}: " + ", ".join(f"{metric} {value:.4f}" for metric, value in means.items()))
    return Outcome(rows=tuple(rows), claims=_claims(pooled))


def _claims(pooled: dict[str, MetricTable]) -> tuple[Claim, ...]:
    """The paper's statements, each by paired differences over the test queries of all folds."""

    def compared(ours: str, theirs: str, metric: str, paper: str) -> Claim:
        claim = f"{ours} above {theirs} ({metric})"
        return better(claim, pooled[ours][metric], pooled[theirs][metric], paper=paper, unit="queries")

    outperforms = "our method outperforms RankSVM in terms of both NDCG@10 and ERR"
    improves = "PG-Rank with the non-linear neural network model further improves on the linear model"
    competitive = "PG-Rank achieves competitive performance compared to the conventional LTR methods"
    return (
        *(compared(LINEAR, RANK_SVM, metric, outperforms) for metric in METRICS),
        *(compared(NEURAL, LINEAR, metric, improves) for metric in METRICS),
        *(_competitive(pooled, metric, competitive) for metric in METRICS),
    )


def _competitive(pooled: dict[str, MetricTable], metric: str, paper: str) -> Claim:
    """That the network is less than EQUIVALENT behind the trees."""
    found = t_interval(pooled[NEURAL][metric] - pooled[GBDT][metric])
    return Claim(
        claim=f"{NEURAL} is less than {EQUIVALENT} behind {GBDT} ({metric})",
        paper=paper,
        ours=f"difference {found} over {found.num_pairs} queries",
        low=found.low,
        high=found.high,
        above=-EQUIVALENT,
    )


def _few_queries(fold: Fold) -> Fold:
    return Fold(name=fold.name, train=fold.train[:20], valid=fold.valid[:20], test=fold.test[:20])
