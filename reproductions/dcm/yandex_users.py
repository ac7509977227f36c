"""The users of Figures 2c and 3c: one dependent click model per query of a Yandex log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks import ClickLog, fit_click_model, read_click_log
from rankpolicy.clicks.models.click_model import ClickModel
from rankpolicy.simulation import Problem, expected_reward, stationary
from reproductions.target import Setup

DATASET, FILE = "yandex_relpred_sample", "train.yandexlog.tsv.gz"
CUTOFF, NUM_QUERIES = 10, 20
OUT_OF_ORDER = "the assumption v(1) >= ... >= v(K) is not fulfilled"


def queries_by_frequency(setup: Setup, num_queries: int) -> dict[str, ClickLog]:
    """The pages of the most frequent queries, the most frequent first."""
    log = read_click_log(setup.folder(DATASET) / FILE)
    pages = np.bincount(log.queries, minlength=len(log.query_names))
    names = [log.query_names[query] for query in np.argsort(-pages, kind="stable")[:num_queries]]
    return {name: log.of_query(name) for name in names}


def fitted(pages: ClickLog) -> ClickModel:
    """The dependent click model by EM, with the prior (1, 1) of every parameter."""
    return fit_click_model("dcm", pages.collapsed())


def problem_of(query: str, pages: ClickLog, *, last_termination: float | None = None) -> Problem:
    """All items that were shown for a query, and lists of ten.

    Parameters
    ----------
    query
        Name of the query.
    pages
        Its pages.
    last_termination
        v(10); None: as estimated. Nothing after the last position leaves a trace, so the estimate is the prior mean, 1/2.
    """
    items = [pages.item_names[item] for item in np.unique(pages.items[pages.items >= 0])]
    user = fitted(pages).user_of(query, items)
    if last_termination is not None:
        stop = user.parameters["stop"].copy()
        stop[CUTOFF - 1 :] = last_termination
        user = replace(user, parameters={**user.parameters, "stop": stop})
    return stationary(user, CUTOFF, name=f"query {query}, {len(items)} items")


def termination(problem: Problem) -> NDArray[np.float64]:
    """v(1), ..., v(10)."""
    return np.asarray(problem.phases[0].user.parameters["stop"][:CUTOFF], np.float64)


def cost_of_sorting(problem: Problem) -> float:
    """Regret per step of the most attractive items in order: no bandit that puts the best item first gets below it if v is out of order."""
    user = problem.phases[0].user
    by_attraction = np.argsort(-user.attraction, kind="stable")[: problem.cutoff]
    return float(problem.best_rewards()[0] - expected_reward(user, by_attraction))


def resampled(pages: ClickLog, generator: np.random.Generator) -> ClickLog:
    """As many pages drawn with replacement."""
    drawn: NDArray[Any] = generator.integers(len(pages), size=len(pages))
    return replace(
        pages,
        queries=pages.queries[drawn],
        items=pages.items[drawn],
        clicks=pages.clicks[drawn],
        counts=pages.counts[drawn],
    )
