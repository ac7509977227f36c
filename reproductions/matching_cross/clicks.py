"""Which part of Matching Cross Network earns what: a simulated log of personal search, and networks with one part left out at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks import (
    PositionBias,
    click_log_of,
    estimate_position_bias,
    one_click_each,
    weighted_by_propensity,
)
from rankpolicy.data import read_glove, read_wikiqa
from rankpolicy.data.click_table.table import from_click_table
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.splits import split_by_time
from rankpolicy.evaluation import evaluate
from rankpolicy.experiments.parallel import run_in_processes
from rankpolicy.optional import require
from rankpolicy.rankers import MatchingCross
from rankpolicy.types import Conventions, RankPolicyError
from reproductions.matching_cross.clicks_results import ARMS, BEST_POSSIBLE, Arm, Measured, outcome
from reproductions.matching_cross.search_store import Store, store_of
from reproductions.matching_cross.simulated_search import SearchLog, simulate_search
from reproductions.target import Outcome, Setup

FOLDER, WORD_VECTORS = "wikiqa", "glove_6b_50d_subset"
SIDE = ("log_age", "kind", "log_opens", "hour", "device", "team", "log_user_clicks")
NUM_LOGS, NUM_SESSIONS = 5, 500_000
NUM_SMOKE_LOGS, NUM_SMOKE_SESSIONS = 2, 1500
# The same for every arm; of the learning rates each takes what gives its highest weighted MRR on the validation clicks of the first log.
# "only words and letter n-grams that are frequent among many users"; the paper names no other setting.
SETTINGS: dict[str, Any] = {
    "model__min_users": 5,
    "model__ngrams": (3,),
    "epochs": 6,
    "patience": 2,
    "batch_queries": 256,
}
LEARNING_RATES, SMOKE_LEARNING_RATES = (2e-3, 4e-3), (4e-3,)
SMOKE_SETTINGS: dict[str, Any] = SETTINGS | {
    "epochs": 1,
    "model__embedding_size": 8,  # random word vectors
    "model__hidden": (8,),
}
TRUTH = Conventions(gain="linear", relevant_from=1e-9)  # relevances are probabilities


class Study(NamedTuple):
    """What all fits share."""

    store: Store
    num_sessions: int
    settings: dict[str, Any]


class Task(NamedTuple):
    """An arm on a log; the seed draws the log and where the network starts from."""

    seed: int
    arm: str
    learning_rate: float | None  # None where nothing is learned


class Parts(NamedTuple):
    """A log as it is learned from."""

    train: RankingDataset
    valid: RankingDataset  # a query for every click, weighted
    test: RankingDataset  # a query for every click
    bias: PositionBias  # as the randomised sessions of the training part tell it
    relevance: NDArray[np.float64]  # P(click | examined) of every row of the log
    truth: RankingDataset  # the sessions of the test part with P(click | examined) as labels


def run(setup: Setup) -> Outcome:
    parts = [read_wikiqa(setup.folder(FOLDER) / f"WikiQA-{part}.tsv.gz") for part in ("train", "dev", "test")]
    [vectors] = setup.folder(WORD_VECTORS).glob("*.txt.gz")
    settings = SMOKE_SETTINGS if setup.is_smoke else SETTINGS | {"model__embeddings": str(vectors)}
    study = Study(
        store=store_of(parts, read_glove(vectors)),
        num_sessions=NUM_SMOKE_SESSIONS if setup.is_smoke else NUM_SESSIONS,
        settings=settings | {"device": setup.device},
    )
    num_logs = NUM_SMOKE_LOGS if setup.is_smoke else NUM_LOGS
    rates = SMOKE_LEARNING_RATES if setup.is_smoke else LEARNING_RATES
    tried = [Task(setup.seed, arm, rate) for arm in ARMS for rate in (rates if ARMS[arm].model else (None,))]
    on_first = _measured(setup, study, tried)
    chosen = {
        arm: max((task for task in tried if task.arm == arm), key=lambda task: on_first[task].score) for arm in ARMS
    }
    # Those that take longest first, so that no core waits for another at the end.
    longest = sorted(ARMS, key=lambda arm: -on_first[chosen[arm]].seconds)
    others = [Task(setup.seed + log, arm, chosen[arm].learning_rate) for arm in longest for log in range(1, num_logs)]
    on_others = _measured(setup, study, others)
    return outcome(
        {arm: [on_first[chosen[arm]], *(on_others[task] for task in others if task.arm == arm)] for arm in ARMS}
    )


def _measured(setup: Setup, study: Study, tasks: Sequence[Task]) -> dict[Task, Measured]:
    """What each task gave."""
    done: dict[Task, Measured] = {}
    for number, measured in run_in_processes(measure, study, tasks, jobs=1 if setup.is_smoke else None):
        done[tasks[number]] = measured
        rate = "" if tasks[number].learning_rate is None else f", learning rate {tasks[number].learning_rate:g}"
        setup.report(
            f"log {tasks[number].seed}, {tasks[number].arm}{rate}: weighted MRR {measured.clicks.means['mrr']:.4f}, "
            f"true NDCG {measured.truth.means['ndcg']:.4f}, {measured.seconds:.0f} s"
        )
    return done


def measure(study: Study, task: Task) -> Measured:
    """What an arm gives on the test part of a log."""
    parts = parts_of(simulate_search(study.store, num_sessions=study.num_sessions, random_state=task.seed))
    started = time.process_time()
    settings = study.settings | {"learning_rate": task.learning_rate, "random_state": task.seed}
    ranker = None if task.learning_rate is None else _fitted(parts, ARMS[task.arm], settings)

    def scores_of(part: RankingDataset) -> Any:
        if ranker is not None:
            return ranker.predict(part)
        return part.in_source_order(parts.relevance[part.source_rows] if task.arm == BEST_POSSIBLE else -_ranks(part))

    return Measured(
        clicks=evaluate(scores_of(parts.test), parts.test, ["mrr", "success@1"]),
        truth=evaluate(scores_of(parts.truth), parts.truth, ["ndcg"], conventions=TRUTH),
        propensities=parts.bias.propensities,
        valid_score=None if ranker is None else ranker.best_score_,
        learning_rate=task.learning_rate,
        seconds=time.process_time() - started,
    )


def parts_of(log: SearchLog) -> Parts:
    """The log cut by time into 80, 10 and 10 percent, and the position bias of its first part."""
    frame = require("polars", "A simulated log").DataFrame(dict(log.columns))
    train, valid, test = split_by_time(from_click_table(frame.drop("is_randomised"), side=SIDE))
    is_randomised = log.columns["is_randomised"][train.source_rows[train.offsets[:-1]]]
    bias = estimate_position_bias(click_log_of(train[is_randomised]), method="randomised", num_resamples=0)
    return Parts(
        train=train,
        valid=weighted_by_propensity(one_click_each(valid), bias),
        test=weighted_by_propensity(one_click_each(test), bias),
        bias=bias,
        relevance=log.relevance,
        truth=replace(test, labels=log.relevance[test.source_rows].astype(np.float32), label_kind="grades"),
    )


def _ranks(part: RankingDataset) -> NDArray[np.int64]:
    if part.shown is None or part.shown.ranks is None:
        raise RankPolicyError("the log must tell the positions of items.")
    return part.shown.ranks


def _fitted(parts: Parts, arm: Arm, settings: dict[str, Any]) -> MatchingCross:
    """All arms stop by weighted MRR, also the one that learns from clicks as they are: only what it learns from differs."""
    ranker = MatchingCross().set_params(model=arm.model, **settings)
    bias = parts.bias.propensities if arm.is_corrected else np.ones_like(parts.bias.propensities)
    return ranker.fit(weighted_by_propensity(parts.train, bias), valid=parts.valid, progress=False)
