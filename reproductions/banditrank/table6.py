"""Table 6: BanditRank beside four listwise methods on MQ2007, ten random splits, every share γ of the reward."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.folds import Fold
from rankpolicy.evaluation import MetricTable, compare_tables, evaluate
from rankpolicy.experiments.selection import fit_best, settings_to_try
from rankpolicy.models import MLP
from rankpolicy.rankers import LambdaMART
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.members import ranker_class_named
from reproductions.banditrank.comparing import above, above_in_all, once_per_query, run_means
from reproductions.banditrank.web_search import (
    PAPER_BETAS,
    PAPER_SETTINGS,
    PLAIN_SAME_WEIGHTS,
    random_splits,
)
from reproductions.paired import t_interval
from reproductions.statements import Claim
from reproductions.target import Outcome, Setup

NUM_SPLITS = 10
NUM_MEMBERS = 4
METRICS = ("p@1", "p@3", "p@10", "map", "ndcg@1", "ndcg@3", "ndcg@10", "mrr")
CLAIMED = ("map", "p@1")
LIST_NET, ADA_RANK, ASCENT, LAMBDA_MART = "ListNet", "AdaRank", "Coordinate Ascent", "LambdaMART"
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
OURS = {gamma: f"BanditRank γ = {gamma:g}" for gamma in SHARES}
PAPERS = {gamma: f"BanditRank γ = {gamma:g}, paper's settings" for gamma in (0.5, 1.0)}
HYBRID, REWARD_ONLY, PAPER_HYBRID = OURS[0.5], OURS[1.0], PAPERS[0.5]
PAPER_PLAIN = "BanditRank γ = 0.5, paper's settings, plain network"

# Chosen on the validation data of the first two of the five splits of an earlier run (README), for γ = 0.5; the same for every γ.
OUR_SETTINGS: dict[str, Any] = {
    "reward": "2*ap + 2*ndcg@10",
    "control": "leave_one_out",
    "model": MLP(hidden=(64, 64), dropout=0.3),
    "num_networks": NUM_MEMBERS,
    "scaling": "quantile",
    "learning_rate": 1e-3,
    "epochs": 60,
    "patience": 10,
}
OF_SAMPLED_LISTS = ("num_samples", "max_positions", "epsilon", "control")


def with_share(settings: Mapping[str, Any], gamma: float) -> dict[str, Any]:
    """These settings with a share of the reward; without a reward no lists are drawn, and nothing would read how."""
    unread = OF_SAMPLED_LISTS if gamma == 0 else ()
    return {name: value for name, value in settings.items() if name not in unread} | {"gamma": gamma}


# Long fits first, so that no core waits for one at the end.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    **{row: ("bandit-rank", with_share(PAPER_SETTINGS, gamma)) for gamma, row in PAPERS.items()},
    PAPER_PLAIN: ("bandit-rank", with_share(PAPER_SETTINGS, 0.5) | {"model": PLAIN_SAME_WEIGHTS}),
    LAMBDA_MART: ("lambdamart", {}),
    LIST_NET: ("listnet", {"num_networks": NUM_MEMBERS}),
    **{OURS[gamma]: ("bandit-rank", with_share(OUR_SETTINGS, gamma)) for gamma in SHARES},
    ASCENT: ("coordinate-ascent", {}),
    ADA_RANK: ("adarank", {}),
}
SHOWN = (LIST_NET, ADA_RANK, ASCENT, LAMBDA_MART, *PAPERS.values(), PAPER_PLAIN, *OURS.values())
WITH_PAPER_BETAS = (*PAPERS.values(), PAPER_PLAIN)
SMOKE_SETTINGS: dict[str, dict[str, Any]] = {
    "listnet": {"epochs": 2},
    "adarank": {"rounds": 5},
    "coordinate-ascent": {"restarts": 1, "max_passes": 1},
    "lambdamart": {"num_trees": 5},
    "bandit-rank": {"epochs": 2},
}
# The published table; nDCG and MRR of BanditRank are not legible in the copy at hand.
PAPER: dict[str, dict[str, float]] = {
    LIST_NET: {"map": 0.452, "p@1": 0.446},
    ADA_RANK: {"map": 0.471, "p@1": 0.474},
    ASCENT: {"map": 0.474, "p@1": 0.474},
    LAMBDA_MART: {"map": 0.477, "p@1": 0.477},
    REWARD_ONLY: {"map": 0.468, "p@1": 0.460},
    HYBRID: {"map": 0.483, "p@1": 0.498},
}
# "Statistically significant differences compared to best model according to paired t-test is denoted as * and wilcoxon signed rank test is
# denoted as + (p-value < 0.05)."
STARS = {"t-test": "*", "wilcoxon": "+"}
LEVEL = 0.05
# "except for the measures P@10, nDCG@3, and nDCG@10, BanditRank achieved minimum of 1% improvement in all other measures. Except for the
# measure nDCG@10, the improvement shown by BanditRank on all other measures is statistically significant"
ONE_PERCENT = ("p@1", "p@3", "map", "ndcg@1", "mrr")
SIGNIFICANT = tuple(metric for metric in METRICS if metric != "ndcg@10")
FEW_EPOCHS = 30
TUNED = "γ tuned over [0.25, 0.5, 0.75, 1]; the best results were obtained with γ = 0.5"
NO_ROW = "no row for γ = 0: what the reward adds to the supervised loss"

Tables = Mapping[str, Sequence[MetricTable]]  # of each method, one table per split
Means = Mapping[str, Mapping[str, float]]  # by method and metric
PValues = Mapping[tuple[frozenset[str], str, str], float]  # of two methods, a metric and a test


class Study(NamedTuple):
    """What all fits share."""

    splits: list[Fold]
    seed: int
    is_smoke: bool


class Fitted(NamedTuple):
    """What one method gave on one split."""

    test: MetricTable
    best_epoch: int  # of networks; trees and linear rankers have no epochs: 0
    seconds: float


def run(setup: Setup) -> Outcome:
    splits = random_splits(setup, num_splits=NUM_SPLITS)
    study = Study(splits, setup.seed, setup.is_smoke)
    tasks = [(split, method) for method in METHODS for split in range(len(splits))]
    fitted: dict[tuple[int, str], Fitted] = {}
    for number, found in setup.as_finished(partial(_fit, study), tasks):
        split, method = tasks[number]
        fitted[split, method] = found
        setup.report(
            f"{splits[split].name}, {method}: test MAP {found.test.means['map']:.4f}, {found.seconds:.0f} s of its process"
        )
    of_method = {method: [fitted[split, method] for split in range(len(splits))] for method in SHOWN}
    tables = {method: [one.test for one in found] for method, found in of_method.items()}
    means, p_values = _means(tables), _p_values(tables)
    rows = [
        {
            "method": method,
            **means[method],
            "differs": _stars(method, means, p_values),
            "lowest map": min(run_means(tables[method], "map")),
            "highest map": max(run_means(tables[method], "map")),
            "best epochs": " ".join(str(one.best_epoch) for one in found if one.best_epoch),
            "seconds": sum(one.seconds for one in found),
        }
        for method, found in of_method.items()
    ]
    best_epochs = [one.best_epoch for one in of_method[HYBRID]]
    return Outcome(rows=tuple(rows), claims=_claims(tables, best_epochs))


def _fit(study: Study, task: tuple[int, str]) -> Fitted:
    """One method on one split, chosen on the validation part by MAP: its metrics on the test part, and the seconds it took."""
    split, (name, settings) = study.splits[task[0]], METHODS[task[1]]
    started = time.perf_counter()
    few = SMOKE_SETTINGS[name] if study.is_smoke else {}
    # BanditRank's settings are given; the others choose theirs.
    max_candidates = 1 if name == "bandit-rank" or study.is_smoke else None
    betas = {"betas": PAPER_BETAS} if task[1] in WITH_PAPER_BETAS else {}
    given = {"valid_metric": "map", "random_state": study.seed + task[0], **settings, **betas, **few}
    if name == "lambdamart":
        ranker: Ranker | AveragedTrees = best_average(split, given, max_candidates=max_candidates)
        best_epoch = 0
    else:
        ranker = fit_best(
            ranker_class_named(name),
            given,
            split.train,
            split.valid,
            max_candidates=max_candidates,
            progress=False,
        ).ranker
        best_epoch = int(ranker.best_iteration_) if name in ("bandit-rank", "listnet") else 0
    return Fitted(evaluate(ranker, split.test, METRICS), best_epoch, time.perf_counter() - started)


class AveragedTrees:
    """The mean of the scores of several LambdaMARTs that differ in their seed."""

    def __init__(self, members: Sequence[LambdaMART]) -> None:
        self.members = members

    def predict(self, dataset: RankingDataset) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = np.mean([member.predict(dataset) for member in self.members], axis=0)
        return scores


def best_average(split: Fold, settings: Mapping[str, Any], *, max_candidates: int | None) -> AveragedTrees:
    """As many LambdaMARTs as BanditRank has networks, averaged; of the settings to try, those whose average has the best validation MAP."""
    seeds = [1000 * settings["random_state"] + member for member in range(NUM_MEMBERS)]
    best: tuple[float, AveragedTrees] | None = None
    for candidate in settings_to_try(LambdaMART, settings)[:max_candidates]:
        average = AveragedTrees(
            [
                LambdaMART(**candidate | {"random_state": seed}).fit(split.train, valid=split.valid, progress=False)
                for seed in seeds
            ]
        )
        score = evaluate(average, split.valid, ["map"]).means["map"]
        if best is None or score > best[0]:
            best = score, average
    assert best is not None, "there is at least one candidate"
    return best[1]


def _means(tables: Tables) -> Means:
    """Means over splits of the means over their queries."""
    return {
        method: {metric: float(np.mean([table.means[metric] for table in of_splits])) for metric in METRICS}
        for method, of_splits in tables.items()
    }


def _p_values(tables: Tables) -> PValues:
    comparisons = compare_tables({m: once_per_query(of_splits) for m, of_splits in tables.items()}, tests=list(STARS))
    return {(frozenset((test.a, test.b)), test.metric, test.test): test.p for test in comparisons}


def _stars(method: str, means: Means, p_values: PValues) -> str:
    """The metrics in which a method differs from the best one, each with the signs of the tests that say so."""
    marked = []
    for metric in METRICS:
        best = max(means, key=lambda other: means[other][metric])
        if best != method:
            signs = [sign for test, sign in STARS.items() if p_values[frozenset((best, method)), metric, test] < LEVEL]
            marked += [metric + "".join(signs)] if signs else []
    return " ".join(marked)


def _claims(tables: Tables, best_epochs: Sequence[int]) -> tuple[Claim, ...]:
    return (
        *_claims_of_competitors(tables),
        *_claims_of_lambdamart(tables),
        *_claims_of_shares(tables),
        *_claims_of_the_papers_settings(tables),
        Claim(
            claim=f"{HYBRID}: the best epoch on validation data is below {FEW_EPOCHS} on every split",
            paper="all the best results of BanditRank were achieved in less than 30 epochs of training",
            ours=f"{sum(epoch < FEW_EPOCHS for epoch in best_epochs)} of {len(best_epochs)} splits, the latest {max(best_epochs)} of "
            f"at most {OUR_SETTINGS['epochs']}",
            low=max(best_epochs),
            high=max(best_epochs),
            at_most=FEW_EPOCHS - 1,
        ),
    )


def _above(
    tables: Tables, ours: str, theirs: str, metric: str, paper: str = "", rows: tuple[str, str] | None = None
) -> Claim:
    """``rows`` are those of the paper's table whose numbers stand beside ours."""
    published = None
    if rows is not None:
        high, low = (PAPER[row][metric] for row in rows)
        paper, published = f"{high:.3f} against {low:.3f}", round(high - low, 6)
    return above(
        f"{ours} above {theirs} ({metric})",
        tables[ours],
        tables[theirs],
        metric=metric,
        paper=paper,
        run="splits",
        published=published,
    )


def _claims_of_competitors(tables: Tables) -> list[Claim]:
    claims = []
    for other in (LIST_NET, ADA_RANK, ASCENT):
        claims += [_above(tables, HYBRID, other, metric, rows=(HYBRID, other)) for metric in CLAIMED]
        claims.append(
            above_in_all(
                f"{HYBRID} above {other} in all eight measures (t-test)",
                tables[HYBRID],
                tables[other],
                metrics=METRICS,
                paper="BanditRank clearly outperformed AdaRank, ListNet, and Coordinate Ascent",
            )
        )
    return claims


def _claims_of_lambdamart(tables: Tables) -> list[Claim]:
    means = {metric: float(np.mean(run_means(tables[LAMBDA_MART], metric))) for metric in ONE_PERCENT}
    gains = {metric: np.mean(run_means(tables[HYBRID], metric)) / mean - 1 for metric, mean in means.items()}
    differences = {
        metric: t_interval(once_per_query(tables[HYBRID])[metric] - once_per_query(tables[LAMBDA_MART])[metric])
        for metric in ONE_PERCENT
    }
    return [
        *(_above(tables, HYBRID, LAMBDA_MART, metric, rows=(HYBRID, LAMBDA_MART)) for metric in CLAIMED),
        above_in_all(
            f"{HYBRID} above {LAMBDA_MART} in all measures but nDCG@10 (t-test and Wilcoxon's test)",
            tables[HYBRID],
            tables[LAMBDA_MART],
            metrics=SIGNIFICANT,
            paper="except for the measure nDCG@10, the improvement ... is statistically significant",
            tests=tuple(STARS),
        ),
        Claim(
            claim=f"{HYBRID} at least 1 % above {LAMBDA_MART} in {', '.join(ONE_PERCENT)}",
            paper="except for the measures P@10, nDCG@3, and nDCG@10, ... minimum of 1% improvement in all other measures",
            ours=", ".join(f"{metric} {gain:+.1%}" for metric, gain in gains.items()),
            low=min(found.low / means[metric] for metric, found in differences.items()),
            high=min(found.high / means[metric] for metric, found in differences.items()),
            at_least=0.01,
        ),
    ]


def _claims_of_shares(tables: Tables) -> list[Claim]:
    return [
        *(_above(tables, HYBRID, REWARD_ONLY, metric, rows=(HYBRID, REWARD_ONLY)) for metric in CLAIMED),
        *(_above(tables, HYBRID, OURS[gamma], "map", TUNED) for gamma in (0.25, 0.75)),
        *(_above(tables, HYBRID, OURS[0.0], metric, NO_ROW) for metric in CLAIMED),
    ]


def _claims_of_the_papers_settings(tables: Tables) -> list[Claim]:
    """The same statements for the row that has the paper's settings, and its highway network beside a plain one of the same size."""
    return [
        *(
            _above(tables, PAPER_HYBRID, other, "map", rows=(HYBRID, published))
            for other, published in (
                (LIST_NET, LIST_NET),
                (ADA_RANK, ADA_RANK),
                (ASCENT, ASCENT),
                (LAMBDA_MART, LAMBDA_MART),
                (PAPERS[1.0], REWARD_ONLY),
            )
        ),
        _above(
            tables,
            PAPER_HYBRID,
            PAPER_PLAIN,
            "map",
            "said of InsuranceQA: simple neural networks in place of highway layers, the best results with highway layers",
        ),
    ]
