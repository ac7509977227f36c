"""Two experiments that the paper proposes: adaptive exploration in place of a constant ε, and a penalty on queries without relevant items.

"We could use adaptive exploration strategies instead of simple ε-greedy strategy, for exploring the action space." "We can penalize the
model if any of the document affinity scores for such queries is greater than 0.5."
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.folds import Fold
from rankpolicy.evaluation import MetricTable, evaluate
from rankpolicy.objectives import CrossEntropyLoss, DecayingExploration, EntropyExploration
from rankpolicy.rankers import BanditRank
from reproductions.banditrank.comparing import above, once_per_query, over_runs, run_means
from reproductions.banditrank.table6 import OUR_SETTINGS
from reproductions.banditrank.web_search import random_splits
from reproductions.paired import better, t_interval
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

NUM_SPLITS = 10
METRICS = ("map", "ndcg@10")
THRESHOLD = 0.5  # of affinities, the paper's
# A loss of MAP that is still called none: the interval of the difference lies above minus this.
MARGIN = 0.005

# The reward alone: without a supervised loss, what is learned comes from the lists that exploration finds.
EXPLORING = OUR_SETTINGS | {"gamma": 1.0}
NONE, CONSTANT, DECAYING, ENTROPY = "ε = 0", "ε = 0.1", "ε = 0.3, decaying by 0.9 per epoch", "ε from 0.1 by entropy"
EXPLORATIONS: dict[str, dict[str, Any]] = {
    NONE: EXPLORING | {"epsilon": 0.0},
    CONSTANT: EXPLORING | {"epsilon": 0.1},
    DECAYING: EXPLORING | {"epsilon": DecayingExploration(share=0.3, decay=0.9)},
    ENTROPY: EXPLORING | {"epsilon": EntropyExploration(share=0.1)},
}
# Training data hold all queries; without a penalty those without relevant items are left out of training.
LEFT_OUT, PENALISED = "empty queries left out", "empty queries penalised"
PENALTIES: dict[str, dict[str, Any]] = {
    f"γ = {gamma:g}, {words}": OUR_SETTINGS
    | {"gamma": gamma}
    | ({"loss": CrossEntropyLoss(empty_penalty=1.0)} if words == PENALISED else {})
    for gamma in (1.0, 0.5)
    for words in (LEFT_OUT, PENALISED)
}
# With the reward alone and empty queries left out, this is the constant ε: fitted once.
SAME = {f"γ = 1, {LEFT_OUT}": CONSTANT}
METHODS = {name: settings for name, settings in (EXPLORATIONS | PENALTIES).items() if name not in SAME}
PROPOSED = "proposed for future work, without numbers"


class Study(NamedTuple):
    """What all fits share."""

    splits: list[Fold]  # all queries, also those without relevant items
    seed: int
    is_smoke: bool


class Fitted(NamedTuple):
    """What one method gave on one split."""

    test: MetricTable  # of the queries with relevant items
    highest: dict[bool, MetricTable]  # the highest affinity of each test query; False: of those without relevant items
    seconds: float


Fits = Mapping[str, Sequence[Fitted]]  # of each method, one per split


def run(setup: Setup) -> Outcome:
    splits = random_splits(setup, num_splits=NUM_SPLITS, with_empty_queries=True)
    study = Study(splits, setup.seed, setup.is_smoke)
    tasks = [(split, method) for method in METHODS for split in range(len(splits))]
    done: dict[tuple[int, str], Fitted] = {}
    for number, found in setup.as_finished(partial(_fit, study), tasks):
        split, method = tasks[number]
        done[split, method] = found
        setup.report(f"{splits[split].name}, {method}: test MAP {found.test.means['map']:.4f}, {found.seconds:.0f} s")
    fits = {
        method: [done[split, SAME.get(method, method)] for split in range(len(splits))]
        for method in EXPLORATIONS | PENALTIES
    }
    return Outcome(rows=tuple(_row(method, of_splits) for method, of_splits in fits.items()), claims=_claims(fits))


def _fit(study: Study, task: tuple[int, str]) -> Fitted:
    split, settings = study.splits[task[0]], METHODS[task[1]]
    started = time.perf_counter()
    few = {"epochs": 2} if study.is_smoke else {}
    ranker = BanditRank().set_params(**settings | {"valid_metric": "map", "random_state": study.seed + task[0]} | few)
    valid, _ = split.valid.drop_queries_without_relevant_items()
    ranker.fit(split.train, valid=valid, progress=False)
    test, _ = split.test.drop_queries_without_relevant_items()
    affinities = 1 / (1 + np.exp(-split.test.in_query_order(ranker.predict(split.test))))
    highest = np.maximum.reduceat(affinities, split.test.query_offsets[:-1])
    has_relevant = split.test.has_relevant_items()
    tables = {
        kind: MetricTable(
            query_ids=split.test.query_ids[has_relevant == kind],
            names=("highest affinity",),
            values=highest[has_relevant == kind][:, None],
        )
        for kind in (True, False)
    }
    return Fitted(evaluate(ranker, test, METRICS), tables, time.perf_counter() - started)


def _is_flagged(fits: Sequence[Fitted], kind: bool) -> list[MetricTable]:
    """For each split, whether a query has an affinity above the threshold: 1 or 0."""
    return [
        MetricTable(
            query_ids=one.highest[kind].query_ids,
            names=("flagged",),
            values=(one.highest[kind].values > THRESHOLD).astype(float),
        )
        for one in fits
    ]


def separation(fit: Fitted) -> float:
    """The probability that a query with relevant items has a higher highest affinity than one without (area under the ROC curve)."""
    with_items, without = (fit.highest[kind]["highest affinity"] for kind in (True, False))
    return float(((with_items[:, None] > without).mean() + (with_items[:, None] >= without).mean()) / 2)


def _row(method: str, fits: Sequence[Fitted]) -> Row:
    tables = [one.test for one in fits]
    return {
        "method": method,
        **{metric: float(np.mean(run_means(tables, metric))) for metric in METRICS},
        "queries with an affinity above 0.5": _share(fits, True),
        "empty queries with an affinity above 0.5": _share(fits, False),
        "separation of empty queries": float(np.mean([separation(one) for one in fits])),
        "seconds": sum(one.seconds for one in fits),
    }


def _share(fits: Sequence[Fitted], kind: bool) -> float:
    return float(np.mean(run_means(_is_flagged(fits, kind), "flagged")))


def _claims(fits: Fits) -> tuple[Claim, ...]:
    tables = {method: [one.test for one in of_splits] for method, of_splits in fits.items()}
    claims = [
        above(
            f"{ours} above {theirs} ({metric})",
            tables[ours],
            tables[theirs],
            metric=metric,
            paper=PROPOSED
            if theirs == CONSTANT
            else "a small probability ε of sampling uniformly is included for exploring",
            run="splits",
        )
        for ours, theirs in ((CONSTANT, NONE), (DECAYING, CONSTANT), (ENTROPY, CONSTANT))
        for metric in METRICS
    ]
    for gamma in ("γ = 1", "γ = 0.5"):
        claims += _claims_of_the_penalty(gamma, fits[f"{gamma}, {LEFT_OUT}"], fits[f"{gamma}, {PENALISED}"])
    return tuple(claims)


def _claims_of_the_penalty(gamma: str, left_out: Sequence[Fitted], penalised: Sequence[Fitted]) -> list[Claim]:
    flagged = [_is_flagged(fits, False) for fits in (left_out, penalised)]
    maps = [[one.test for one in fits] for fits in (penalised, left_out)]
    differences: NDArray[np.float64] = once_per_query(maps[0])["map"] - once_per_query(maps[1])["map"]
    found = t_interval(differences)
    return [
        better(
            f"{gamma}: the penalty lowers the share of empty queries with an affinity above {THRESHOLD}",
            *(once_per_query(tables)["flagged"] for tables in flagged),
            paper=PROPOSED,
            unit="empty queries",
        ),
        over_runs(
            Claim(
                claim=f"{gamma}: the penalty costs less than {MARGIN} of MAP",
                paper=PROPOSED,
                ours=f"difference {found} over {found.num_pairs} queries",
                low=found.low,
                high=found.high,
                above=-MARGIN,
            ),
            *maps,
            metric="map",
            run="splits",
        ),
        better(
            f"{gamma}: with the penalty the highest affinity separates queries with and without relevant items better (area under the "
            "ROC curve)",
            *([separation(one) for one in fits] for fits in (penalised, left_out)),
            paper=PROPOSED,
            unit="splits",
        ),
    ]
