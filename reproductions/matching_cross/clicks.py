"""Ways to join query, item and side information, learned from the same clicks: a simulated log of product search with human grades."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rankpolicy.clicks import (
    PositionBias,
    click_log_of,
    estimate_position_bias,
    one_click_each,
    weighted_by_propensity,
)
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.evaluation import evaluate
from rankpolicy.rankers import MatchingCross
from rankpolicy.types import Conventions
from reproductions.matching_cross.clicks_results import ARMS, BEST_POSSIBLE, Arm, Cost, Measured, outcome
from reproductions.matching_cross.product_search import SearchLog, simulate_search
from reproductions.matching_cross.product_store import Store, read_store
from reproductions.target import Outcome, Setup

FOLDER, WORD_VECTORS = "home_depot_train", "glove_6b_50d_subset"
NUM_LOGS, NUM_SESSIONS = 5, 100_000
NUM_SMOKE_LOGS, NUM_SMOKE_SESSIONS, NUM_SMOKE_QUERIES = 2, 600, 60
BATCH_QUERIES, VECTOR_SIZE = 256, 50
NUM_TIMED_SESSIONS, NUM_ROUNDS, NUM_SMOKE_ROUNDS = 4000, 40, 2  # of the measurement of time and memory
# The same for every arm; of the learning rates each takes what gives its highest weighted MRR on the validation clicks of the first log.
# "only words and letter n-grams that are frequent among many users"; the paper names no other setting.
SETTINGS: dict[str, Any] = {
    "model__min_users": 5,
    "model__ngrams": (3,),
    "model__hidden": (64, 32),
    "epochs": 6,
    "patience": 2,
    "batch_queries": BATCH_QUERIES,
}
LEARNING_RATES, SMOKE_LEARNING_RATES = (1e-3, 3e-3, 1e-2, 3e-2), (3e-3,)
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
    test: RankingDataset  # a query for every click, weighted
    truth: RankingDataset  # the sessions of the test part with P(click | examined) as labels
    is_new: NDArray[np.bool_]  # (sessions of the test part,) whether the text is not asked in training
    relevance: NDArray[np.float64]  # P(click | examined) of every row of the log
    bias: PositionBias  # as the randomised sessions of the training part tell it


def run(setup: Setup) -> Outcome:
    [vectors] = setup.folder(WORD_VECTORS).glob("*.txt.gz")
    settings = SMOKE_SETTINGS if setup.is_smoke else SETTINGS | {"model__embeddings": str(vectors)}
    store = read_store(setup.folder(FOLDER))
    study = Study(
        store=store.first(NUM_SMOKE_QUERIES) if setup.is_smoke else store,
        num_sessions=NUM_SMOKE_SESSIONS if setup.is_smoke else NUM_SESSIONS,
        settings=settings | {"device": setup.device},
    )
    num_logs = NUM_SMOKE_LOGS if setup.is_smoke else NUM_LOGS
    rates = SMOKE_LEARNING_RATES if setup.is_smoke else LEARNING_RATES
    # Those that take longest first, so that no core waits for another at the end: here the last arms, then as measured.
    tried = [Task(setup.seed, arm, rate) for arm in reversed(ARMS) for rate in (rates if ARMS[arm].model else (None,))]
    on_first = _measured(setup, study, tried)
    chosen = {
        arm: max((task for task in tried if task.arm == arm), key=lambda task: on_first[task].score) for arm in ARMS
    }
    longest = sorted(ARMS, key=lambda arm: -on_first[chosen[arm]].seconds)
    others = [Task(setup.seed + log, arm, chosen[arm].learning_rate) for arm in longest for log in range(1, num_logs)]
    on_others = _measured(setup, study, others)
    measured = {arm: [on_first[chosen[arm]], *(on_others[task] for task in others if task.arm == arm)] for arm in ARMS}
    return outcome(measured, costs(study, setup))


def _measured(setup: Setup, study: Study, tasks: Sequence[Task]) -> dict[Task, Measured]:
    """What each task gave."""
    done: dict[Task, Measured] = {}
    for number, measured in setup.as_finished(partial(measure, study), tasks):
        done[tasks[number]] = measured
        rate = "" if tasks[number].learning_rate is None else f", learning rate {tasks[number].learning_rate:g}"
        setup.report(
            f"log {tasks[number].seed}, {tasks[number].arm}{rate}: weighted MRR of validation {measured.score:.4f}, "
            f"{measured.seconds:.0f} s"
        )
    return done


def measure(study: Study, task: Task) -> Measured:
    """What an arm gives on the test part of a log."""
    parts = parts_of(simulate_search(study.store, num_sessions=study.num_sessions, random_state=task.seed))
    started = time.process_time()
    settings = study.settings | {"learning_rate": task.learning_rate, "random_state": task.seed}
    ranker = None if task.learning_rate is None else fitted(parts, ARMS[task.arm], settings)

    def scores_of(part: RankingDataset) -> Any:
        if ranker is not None:
            return ranker.predict(part)
        return part.in_row_order(
            parts.relevance[part.source_rows_by_query] if task.arm == BEST_POSSIBLE else -_ranks(part)
        )

    return Measured(
        clicks=evaluate(scores_of(parts.test), parts.test, ["mrr", "success@1"]),
        clicked_texts=text_numbers(parts.test),
        truth=evaluate(scores_of(parts.truth), parts.truth, ["ndcg"], conventions=TRUTH),
        texts=text_numbers(parts.truth),
        is_new=parts.is_new,
        propensities=parts.bias.propensities,
        valid_score=None if ranker is None else ranker.best_score_,
        learning_rate=task.learning_rate,
        epochs=None if ranker is None else ranker.best_iteration_,
        seconds=time.process_time() - started,
    )


def parts_of(log: SearchLog) -> Parts:
    """The log cut by time, and the position bias of its training part."""
    train, valid, test = (log.clicks[log.part(number)] for number in range(3))
    is_randomised = log.is_randomised[log.part(0)]
    bias = estimate_position_bias(click_log_of(train[is_randomised]), method="randomised", num_resamples=0)
    return Parts(
        train=train,
        valid=weighted_by_propensity(one_click_each(valid), bias),
        test=weighted_by_propensity(one_click_each(test), bias),
        truth=replace(
            test, labels_by_query=log.relevance[test.source_rows_by_query].astype(np.float32), label_kind="grades"
        ),
        relevance=log.relevance,
        is_new=log.is_new[log.part(2)],
        bias=bias,
    )


def text_numbers(part: RankingDataset) -> NDArray[np.int64]:
    """The number of the query text of each query (queries,): queries of one text have one number."""
    assert part.texts_by_query is not None, "the log has texts"
    return np.unique(part.texts_by_query.queries, return_inverse=True)[1]


def fitted(parts: Parts, arm: Arm, settings: dict[str, Any]) -> MatchingCross:
    """All arms stop by weighted MRR, also the one that learns from clicks as they are: only what it learns from differs."""
    ranker = MatchingCross().set_params(
        model=arm.model, **settings | {f"model__{name}": value for name, value in arm.settings}
    )
    bias = parts.bias.propensities if arm.is_corrected else np.ones_like(parts.bias.propensities)
    return ranker.fit(weighted_by_propensity(parts.train, bias), valid=parts.valid, progress=False)


def _ranks(part: RankingDataset) -> NDArray[np.int64]:
    ranks = None if part.shown_by_query is None else part.shown_by_query.ranks
    assert ranks is not None, "the log tells the ranks of products"
    return ranks


def costs(study: Study, setup: Setup) -> dict[str, Cost]:
    """Time and memory of each network, all on the same batch of sessions: one thread, rounds in which each network has its turn."""
    log = simulate_search(
        study.store, num_sessions=min(study.num_sessions, NUM_TIMED_SESSIONS), random_state=setup.seed
    )
    parts = parts_of(log)
    # Random word vectors of the size of GloVe's: what they hold does not change the time.
    random_vectors = {"model__embedding_size": VECTOR_SIZE} if "model__embeddings" in study.settings else {}
    settings = study.settings | random_vectors | {"model__embeddings": None, "epochs": 1, "device": "cpu"}
    batch = parts.truth[np.arange(min(BATCH_QUERIES, len(parts.truth)))]
    timed = {}
    for arm, declared in ARMS.items():
        if declared.model:
            ranker = fitted(parts, declared, settings)
            timed[arm] = Timed(ranker._network, ranker._inputs.read(batch))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for _ in range(NUM_SMOKE_ROUNDS if setup.is_smoke else NUM_ROUNDS):
            for one in timed.values():
                one.step()
    finally:
        torch.set_num_threads(threads)
    return {arm: one.cost() for arm, one in timed.items()}


class Timed:
    """A network and a batch, and how long steps took so far."""

    def __init__(self, network: nn.Module, pairs: Any) -> None:
        self.network, self.pairs = network, pairs
        self.training: list[float] = []
        self.scoring: list[float] = []

    def step(self) -> None:
        """One pass forward and back, as in training, and one forward, as in scoring."""
        started = time.process_time()
        self.network.train()
        self.network(self.pairs).sum().backward()
        self.training.append(time.process_time() - started)
        started = time.process_time()
        self.network.eval()
        with torch.no_grad():
            self.network(self.pairs)
        self.scoring.append(time.process_time() - started)

    def cost(self) -> Cost:
        kept: dict[int, int] = {}

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        weights = list(self.network.parameters())
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            scores = self.network.train()(self.pairs)
        own = {weight.untyped_storage().data_ptr() for weight in weights}
        del scores
        return Cost(
            training=float(np.median(self.training)),
            scoring=float(np.median(self.scoring)),
            weights=sum(weight.numel() * weight.element_size() for weight in weights),
            activations=sum(size for place, size in kept.items() if place not in own),
        )
