"""Certified disparity over 1,000 draws of held-out queries: how often the bound holds, and the utility it costs.

A model is fitted once. Its policies are measured on a pool of queries, which is the population: held-out queries are drawn from it with
replacement, so that the mean disparity of new queries is known. ``ratio`` of coverage is its share of 0.95, whose floor is two standard
errors below 1; that of utility is 0.005 over the loss against the lowest strength whose true disparity keeps the bound. German Credit
takes RANKPOLICY_DATA and is left out without it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.timing import use_two_threads
from rankpolicy.data import RankingDataset, make_fair_synthetic, read_german_credit
from rankpolicy.fairness import position_bias
from rankpolicy.rankers import FairExposure
from rankpolicy.rankers.post_processing.certificate import (
    HeldOut,
    Terms,
    disparities,
    highest_disparity,
    lowest_certified,
    with_wrong_groups,
)
from rankpolicy.rankers.post_processing.fair_ranker import ndcg_values

NUM_DRAWS, POOL, LEVEL = 1000, 4000, 0.95


class Case(NamedTuple):
    """A bound to certify."""

    wrong_groups: float
    max_disparity: float
    num_held_out: int


SYNTHETIC = (Case(0.0, 0.003, 2000), Case(0.0, 0.005, 500), Case(0.1, 0.01, 2000))
GERMAN = (Case(0.0, 0.02, 2000), Case(0.0, 0.01, 5000), Case(0.1, 0.03, 2000))


class Population(NamedTuple):
    """Policies of one model on a pool of queries, for each rate of wrong groups."""

    strengths: tuple[float, ...]
    utilities: dict[float, np.ndarray]  # mean by strength
    values: dict[float, np.ndarray]  # disparities (strength, query), NaN where a query has none
    highest: float


def population(train: RankingDataset, pool: RankingDataset, settings: dict[str, Any]) -> Population:
    """A model fitted on the training data, measured on the pool."""
    ranker = FairExposure(relevance=("regression",), **settings).fit(train, progress=False)
    strengths = tuple(row["strength"] for row in ranker.report_["curve"])[::2]  # 0 to infinity, half of them
    generator, padding = np.random.default_rng(0), pool.padding().to("cpu")
    labels = padding.pad(torch.from_numpy(pool.labels_by_query.astype(np.float64)))
    item_values, bias = (
        ndcg_values(labels, padding.mask, ranker.gain),
        position_bias(labels.shape[1], dtype=torch.float64),
    )
    utilities, values = {}, {}
    for rate in (0.0, 0.05, 0.1):
        policies = ranker.policies(with_wrong_groups(pool, rate, generator)[0], strengths=strengths)
        measured, is_counted = disparities(policies, pool, merit=ranker.merit)
        values[rate] = np.where(is_counted, measured, np.nan)
        utilities[rate] = np.array([float((item_values * p.exposure(bias)).sum(-1).mean()) for p in policies])
    return Population(strengths, utilities, values, highest_disparity(train, merit=ranker.merit))


def measure(name: str, people: Population, case: Case) -> Iterator[dict[str, Any]]:
    """Coverage and loss of utility of a case."""
    terms = Terms(
        level=LEVEL, max_disparity=case.max_disparity, wrong_groups=case.wrong_groups, held_out_groups="right"
    )
    rates = (0.0, case.wrong_groups / 2, case.wrong_groups) if case.wrong_groups else (0.0,)
    true_means = np.nanmean(people.values[case.wrong_groups], axis=1)
    keeps = true_means <= case.max_disparity
    lowest = len(keeps) - int(np.argmin(keeps[::-1])) if not keeps.all() else 0
    generator, chosen = np.random.default_rng(1), []
    for _ in range(NUM_DRAWS):
        rows = generator.integers(0, people.values[0.0].shape[1], case.num_held_out)
        rows = rows[~np.isnan(people.values[0.0][0, rows])]
        held_out = [HeldOut(values=people.values[rate][:, rows], weights=np.ones(len(rows))) for rate in rates]
        chosen.append(lowest_certified(held_out, people.strengths, terms, people.highest))
    certified = np.array([index for index in chosen if index is not None], dtype=int)
    kept = keeps[certified].sum() + chosen.count(None)
    utility = people.utilities[case.wrong_groups]
    loss = float(utility[lowest] - utility[certified].mean())
    shared = {"data": name, **case._asdict(), "draws": NUM_DRAWS, "not_certified": chosen.count(None)}
    coverage, error = kept / NUM_DRAWS, math.sqrt(LEVEL * (1 - LEVEL) / NUM_DRAWS)
    yield {
        "name": f"certified-coverage-{name}-{case.max_disparity}-{case.num_held_out}-{case.wrong_groups}",
        "ratio": round(coverage / LEVEL, 4),
        "floor": round(1 - 2 * error / LEVEL, 4),
        "what": "share of draws with a true disparity within the bound / 0.95",
        "mean_disparity": round(float(true_means[certified].mean()), 5),
        **shared,
    }
    yield {
        "name": f"certified-utility-{name}-{case.max_disparity}-{case.num_held_out}-{case.wrong_groups}",
        "ratio": round(0.005 / max(loss, 1e-6), 2),
        "floor": 1,
        "what": "0.005 / NDCG lost against the lowest strength whose true disparity keeps the bound",
        "loss": round(loss, 5),
        **shared,
    }


def main() -> None:
    synthetic = population(
        make_fair_synthetic(100, random_state=0), make_fair_synthetic(POOL, random_state=1), {"gain": "linear"}
    )
    cases = [("synthetic", synthetic, case) for case in SYNTHETIC]
    if folder := os.environ.get("RANKPOLICY_DATA"):
        path = Path(folder) / "german_credit" / "german.data"
        train, pool = read_german_credit(path, draw="weights", num_train=500, num_test=POOL, random_state=0)
        german = population(train, pool, {"relevance_settings": {"regression": {"weight_decay": 0.3}}})
        cases += [("german", german, case) for case in GERMAN]
    for case in cases:
        for line in measure(*case):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    use_two_threads()
    main()
