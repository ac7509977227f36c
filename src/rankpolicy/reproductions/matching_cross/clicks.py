"""Which part of Matching Cross Network earns what: a simulated log of personal search, and networks with one part left out at a time."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rankpolicy.clicks import PositionBias, estimate_position_bias, weighted_by_propensity
from rankpolicy.clicks.from_dataset import click_log_of
from rankpolicy.data import read_wikiqa
from rankpolicy.data.click_table import from_click_table
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.splits import split_by_time
from rankpolicy.evaluation import evaluate
from rankpolicy.optional import require
from rankpolicy.rankers import MatchingCross
from rankpolicy.rankers.processes import each_in_a_process
from rankpolicy.reproductions.matching_cross.clicks_results import ARMS, AS_SHOWN, BEST_POSSIBLE, Arm, Measured, outcome
from rankpolicy.reproductions.matching_cross.search_store import Store, store_of
from rankpolicy.reproductions.matching_cross.simulated_search import SearchLog, simulate_search
from rankpolicy.reproductions.target import Outcome, Setup
from rankpolicy.types import Conventions

FOLDER, WORD_VECTORS = "wikiqa", "glove_6b_50d_subset"
SIDE = ("log_age", "kind", "log_opens", "hour", "device", "team", "log_user_clicks")
NUM_LOGS, NUM_SESSIONS = 6, 120_000
NUM_SMOKE_LOGS, NUM_SMOKE_SESSIONS = 2, 1500
# The same for every arm; of the learning rates each takes what gives its highest weighted MRR on the validation clicks of the log.
# "only words and letter n-grams that are frequent among many users"; the paper names no other setting.
SETTINGS: dict[str, Any] = {"min_users": 5, "ngrams": (3,), "epochs": 8, "patience": 2, "batch_queries": 256}
LEARNING_RATES, SMOKE_LEARNING_RATES = (2e-3, 4e-3), (4e-3,)
SMOKE_SETTINGS: dict[str, Any] = SETTINGS | {"epochs": 1, "embedding_size": 8, "hidden": (8,)}  # random word vectors
TRUTH = Conventions(gain="linear", relevant_from=1e-9)  # relevances are probabilities


class Study(NamedTuple):
    """What all fits share."""

    store: Store
    num_sessions: int
    learning_rates: tuple[float, ...]
    settings: dict[str, Any]


class Task(NamedTuple):
    """An arm on a log; the seed draws the log and where the network starts from."""

    seed: int
    arm: str


class Parts(NamedTuple):
    """A log as it is learned from."""

    train: RankingDataset
    valid: RankingDataset
    test: RankingDataset
    bias: PositionBias  # as the randomised sessions of the training part tell it
    truth: RankingDataset  # the test part with P(click | examined) as labels


def run(setup: Setup) -> Outcome:
    parts = [read_wikiqa(setup.folder(FOLDER) / f"WikiQA-{part}.tsv.gz") for part in ("train", "dev", "test")]
    [vectors] = setup.folder(WORD_VECTORS).glob("*.txt.gz")
    settings = SMOKE_SETTINGS if setup.is_smoke else SETTINGS | {"embeddings": str(vectors)}
    study = Study(
        store=store_of(parts),
        num_sessions=NUM_SMOKE_SESSIONS if setup.is_smoke else NUM_SESSIONS,
        learning_rates=SMOKE_LEARNING_RATES if setup.is_smoke else LEARNING_RATES,
        settings=settings | {"device": setup.device},
    )
    num_logs = NUM_SMOKE_LOGS if setup.is_smoke else NUM_LOGS
    # All arms of one log before the next: what a run that is cut short has measured can be compared.
    tasks = [Task(setup.seed + log, arm) for log in range(num_logs) for arm in ARMS]
    done: dict[Task, Measured] = {}
    for number, measured in each_in_a_process(measure, study, tasks, jobs=1 if setup.is_smoke else None):
        done[tasks[number]] = measured
        setup.report(
            f"log {tasks[number].seed}, {tasks[number].arm}: weighted MRR {measured.clicks.means['mrr']:.4f}, "
            f"true NDCG {measured.truth.means['ndcg']:.4f}, {measured.seconds:.0f} s"
        )
    return outcome({arm: [done[task] for task in tasks if task.arm == arm] for arm in ARMS})


def measure(study: Study, task: Task) -> Measured:
    """What an arm gives on the test part of a log."""
    parts = parts_of(simulate_search(study.store, num_sessions=study.num_sessions, random_state=task.seed))
    started = time.process_time()
    arm, valid_score, learning_rate = ARMS[task.arm], None, None
    if task.arm == AS_SHOWN:
        scores = -(np.arange(parts.test.num_items) - parts.test.offsets[parts.test.query_of_item]).astype(np.float64)
    elif task.arm == BEST_POSSIBLE:
        scores = parts.truth.labels.astype(np.float64)
    else:
        tried = [
            _fitted(parts, arm, study.settings | {"learning_rate": rate, "random_state": task.seed})
            for rate in study.learning_rates
        ]
        best = max(tried, key=lambda ranker: ranker.best_score_ or 0.0)
        valid_score, learning_rate = best.best_score_, best.learning_rate
        scores = best.predict(parts.test)
    return Measured(
        clicks=evaluate(scores, parts.test, ["mrr", "success@1"], propensities=parts.bias),
        truth=evaluate(scores, parts.truth, ["ndcg"], conventions=TRUTH),
        propensities=parts.bias.propensities,
        valid_score=valid_score,
        learning_rate=learning_rate,
        seconds=time.process_time() - started,
    )


def parts_of(log: SearchLog) -> Parts:
    """The log cut by time into 80, 10 and 10 percent, and the position bias of its first part."""
    frame = require("polars", "A simulated log").DataFrame(dict(log.columns))
    train, valid, test = split_by_time(from_click_table(frame.drop("is_randomised"), side=SIDE))
    is_randomised = log.columns["is_randomised"][train.source_rows[train.offsets[:-1]]]
    bias = estimate_position_bias(click_log_of(train[is_randomised]), method="randomised", num_resamples=0)
    truth = replace(test, labels=log.relevance[test.source_rows].astype(np.float32))
    return Parts(train, weighted_by_propensity(valid, bias)[0], test, bias, truth)


def _fitted(parts: Parts, arm: Arm, settings: dict[str, Any]) -> MatchingCross:
    """All arms stop by weighted MRR, also the one that learns from clicks as they are: only what it learns from differs."""
    ranker = MatchingCross().set_params(model=arm.model, **settings)
    bias = parts.bias.propensities if arm.is_corrected else np.ones_like(parts.bias.propensities)
    return ranker.fit(parts.train, valid=parts.valid, propensities=bias, progress=False)
