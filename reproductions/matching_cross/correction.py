"""Learning to rank MQ2007 from biased clicks: as they are, weighted by inverse propensities, doubly robust; beside learning from labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks import ClickLog, dataset_from_clicks, estimate_position_bias
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.folds import Fold
from rankpolicy.evaluation import evaluate
from rankpolicy.metrics import parse_metric
from rankpolicy.models import MLP
from rankpolicy.rankers import PGRank, Regression
from rankpolicy.rankers.base import Ranker
from rankpolicy.types import Conventions
from reproductions.matching_cross.correction_results import (
    ARMS,
    ESTIMATED,
    KNOWN,
    LOGGING,
    METRIC,
    NAIVE,
    ROBUST,
    TRUE,
    WRONG,
    Cell,
    Measured,
    Traffic,
    outcome,
)
from reproductions.matching_cross.web_search_clicks import (
    draw_clicks,
    folds,
    logging_rankers,
    propensities,
)
from reproductions.target import Outcome, Setup

NUM_LOGS, NUM_SMOKE_LOGS = 3, 2  # a fold, each with logging rankers of its own
CLICKS = {1.0: (10_000, 100_000, 1_000_000), 0.0: (100_000, 1_000_000)}  # by eta
SMOKE_CLICKS = {1.0: (10_000, 20_000), 0.0: (20_000,)}
SETTINGS: dict[str, Any] = {"num_networks": 1, "epochs": 60, "patience": 10}
SMOKE_SETTINGS: dict[str, Any] = {"num_networks": 1, "epochs": 2, "model": MLP(hidden=(8,))}
# Relevances from clicks are estimates of P(click | examined), which rises linearly with the gain 2^label - 1 of the metric.
REWARD = parse_metric(METRIC, Conventions(gain="linear"))
# Doubly robust: items that users examined less often than this, in the mean over queries, lean on their prediction.
LEAST_EXAMINATIONS = 5


class Task(NamedTuple):
    """What one process does at a time: all arms of one log, or, without traffic, what needs no clicks."""

    fold: int
    log: int
    traffic: Traffic | None


class Study(NamedTuple):
    """What all fits share."""

    folds: list[Fold]
    seed: int
    settings: dict[str, Any]


def run(setup: Setup) -> Outcome:
    study = Study(folds(setup), setup.seed, SMOKE_SETTINGS if setup.is_smoke else SETTINGS)
    by_eta = SMOKE_CLICKS if setup.is_smoke else CLICKS
    traffics = [None, *(Traffic(eta, number) for eta, numbers in by_eta.items() for number in numbers)]
    num_logs = NUM_SMOKE_LOGS if setup.is_smoke else NUM_LOGS
    # All cells of one log before the next: what a run that is cut short has measured can be compared.
    tasks = [
        Task(fold, log, traffic) for log in range(num_logs) for fold in range(len(study.folds)) for traffic in traffics
    ]
    done: dict[Task, dict[str, Measured]] = {}
    for number, measured in setup.as_finished(partial(measure, study), tasks):
        done[tasks[number]] = measured
        setup.report(_progress(tasks[number], measured))
    by_cell: dict[Cell, list[Measured]] = {}
    for task in tasks:
        for arm, one in done[task].items():
            by_cell.setdefault(Cell(task.traffic, arm), []).append(one)
    return outcome(by_cell)


def measure(study: Study, task: Task) -> dict[str, Measured]:
    """NDCG of each arm on the labelled test queries."""
    fold, traffic = study.folds[task.fold], task.traffic
    # The logging rankers, and where the networks start from, are the same for all arms and all traffic of a log.
    of_rankers, of_networks = _seeds(study.seed, task.fold, task.log, count=2)
    rankers = logging_rankers(fold.train, seed=of_rankers)
    settings = study.settings | {"random_state": of_networks}
    if traffic is None:
        ranker = PGRank(reward=METRIC, valid_metric=METRIC, **settings).fit(
            fold.train, valid=fold.valid, progress=False
        )
        return {TRUE: Measured(_ndcg(ranker, fold)), LOGGING: Measured(_ndcg(rankers[0], fold))}
    seeds = _seeds(of_rankers, int(traffic.eta), traffic.num_clicks, count=2)
    logs = [
        draw_clicks(
            part,
            rankers,
            num_clicks=traffic.num_clicks * part.num_queries / fold.train.num_queries,
            eta=traffic.eta,
            seed=seed,
        )
        for part, seed in zip((fold.train, fold.valid), seeds, strict=True)
    ]
    estimated = estimate_position_bias(logs[0], method="all-pairs", num_resamples=0).propensities
    tables = {NAIVE: propensities(0.0), KNOWN: propensities(traffic.eta), WRONG: propensities(1.0)}
    tables |= {ESTIMATED: estimated, ROBUST: estimated}
    measured = {}
    for arm in ARMS[traffic.eta]:
        train, valid, sample_size = learned_from(fold, logs, tables[arm], is_robust=arm == ROBUST)
        # An arm stops by its own relevances of the validation queries: whoever learns from clicks has no labels.
        ranker = PGRank(reward=REWARD, valid_metric=REWARD, **settings).fit(train, valid=valid, progress=False)
        measured[arm] = Measured(_ndcg(ranker, fold), sample_size)
    return measured


def learned_from(
    fold: Fold, logs: Sequence[ClickLog], table: NDArray[np.float64], *, is_robust: bool
) -> tuple[RankingDataset, RankingDataset, float]:
    """Training and validation queries with relevances from their logs, and the effective number of clicks of the first.

    Doubly robust relevances start from the prediction of a linear regression of the inverse propensity weighted ones on features.
    """
    parts = tuple(zip((fold.train, fold.valid), logs, strict=True))
    weighted = [dataset_from_clicks(part, log, table) for part, log in parts]
    if is_robust:
        regression = Regression(model="linear", weight_decay=1e-2).fit(weighted[0], progress=False)
        clip = max(1.0, logs[0].num_sessions / fold.train.num_queries / LEAST_EXAMINATIONS)
        weighted = [
            dataset_from_clicks(part, log, table, predicted=np.clip(regression.predict(part), 0, 1), clip=clip)
            for part, log in parts
        ]
    train, valid = weighted
    assert train.click_evidence is not None, "made from clicks"
    return train, valid, train.click_evidence.effective_sample_size


def _ndcg(ranker: Ranker, fold: Fold) -> float:
    return evaluate(ranker, fold.test, [METRIC]).means[METRIC]


def _seeds(*entropy: int, count: int) -> list[int]:
    return [int(state) >> 1 for state in np.random.SeedSequence(entropy).generate_state(count)]  # 31 bits, for torch


def _progress(task: Task, measured: Mapping[str, Measured]) -> str:
    traffic = "" if task.traffic is None else f", eta {task.traffic.eta:g}, {task.traffic.num_clicks:,} clicks"
    values = ", ".join(f"{arm} {one.ndcg:.4f}" for arm, one in measured.items())
    return f"fold {task.fold + 1}, log {task.log + 1}{traffic}: {values}"
