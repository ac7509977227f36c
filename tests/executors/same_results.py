"""The same work on any executor: what tests compare, bit for bit."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np

import rankpolicy as rp
from rankpolicy.clicks import fit_click_model
from rankpolicy.clicks.log.synthetic import make_click_log, make_click_model
from rankpolicy.clicks.models import shards
from rankpolicy.clicks.position_bias import estimate
from rankpolicy.executors import Executor

DATA = rp.make_web_search(40, items_per_query=(3, 8), num_features=8, random_state=0)
FOLD = rp.data.Fold(name="Fold1", train=DATA[:20], valid=DATA[20:30], test=DATA[30:])
LOG = make_click_log(make_click_model("ubm", num_queries=12, random_state=0), 800, random_state=1)
FAIR = rp.data.make_fair_synthetic(12, random_state=1)


def click_models(executor: Executor | None) -> dict[str, Any]:
    """Parameters of UBM and DBN from a log in several shards."""
    found = {}
    for name in ("ubm", "dbn"):
        with mock.patch.object(shards, "SESSIONS_OF_A_SHARD", 100):
            model = fit_click_model(name, LOG, iterations=3, executor=executor)
        found |= {f"{name} {key}": values.tobytes().hex() for key, values in model.parameters.items()}
        found[f"{name} objectives"] = model.objectives
    return found


def comparison(executor: Executor | None) -> dict[str, Any]:
    """Tables of a network and of trees."""
    methods = {
        "pg-rank": {"epochs": 2, "num_networks": 1},
        "lambdamart": {"num_trees": 5, "min_items_in_leaf": 2},
    }
    found = rp.experiments.compare_rankers([FOLD], methods, tune=False, executor=executor)
    return {
        "document": found.to_dict(),
        "values": [table.values.tobytes().hex() for of_folds in found.tables.values() for table in of_folds],
    }


def regret(executor: Executor | None) -> dict[str, Any]:
    """Regret curves of two bandits."""
    user = rp.simulation.cascade_user(np.linspace(0.5, 0.1, 6))
    problem = rp.simulation.stationary(user, 3, name="six items")
    found = rp.simulation.simulate(
        ["dcm-ts", "dcm-kl-ucb"], problem, num_steps=500, num_runs=5, random_state=4, executor=executor
    )
    return {name: curves.tobytes().hex() for name, curves in found.regrets.items()}


def tradeoff(executor: Executor | None) -> dict[str, Any]:
    """A trade-off curve."""
    methods = {"fair-pg-rank": {"epochs": 2}}
    given = "serial" if executor is None else executor
    return rp.experiments.sweep_tradeoff(
        FAIR[:6], FAIR[6:], methods, strengths=[0, 1, 10], seeds=[0, 1], executor=given
    ).to_dict()


def position_bias(executor: Executor | None) -> dict[str, Any]:
    """Intervals of the bootstrap, whose resamples come in several blocks."""
    with mock.patch.object(estimate, "NUMBERS_OF_A_BLOCK", 5_000):
        found = rp.clicks.estimate_position_bias(LOG, method="all-pairs", num_resamples=20, executor=executor)
    return {"intervals": found.intervals.tobytes().hex(), "propensities": found.propensities.tobytes().hex()}


WORK = {
    "click models": click_models,
    "position bias": position_bias,
    "comparison": comparison,
    "regret": regret,
    "tradeoff": tradeoff,
}
