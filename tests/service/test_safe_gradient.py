"""A safe gradient served: promoted by the clicks of simulated users, with exact propensities, and found again by replay."""

import math

import numpy as np
import pytest

from rankpolicy.service.domain.messages import Item, RankRequest
from rankpolicy.service.domain.routing import generator_of
from rankpolicy.service.log.replay import replay, replay_choices
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.policies import SERVED
from rankpolicy.service.policies.policy_settings import policy_of_version
from rankpolicy.types import RankPolicyError
from tests.service.logs import written_log
from tests.service.parts import live_policies

GIVEN = {"kind": "safe-gradient", "features": ["good", "noise"], "settings": {"cutoff": 2, "random_state": 1}}


def policy():
    return SERVED.named("safe-gradient")(**{name: value for name, value in GIVEN.items() if name != "kind"})


def test_a_policy_is_promoted_while_it_serves_and_replay_finds_the_same(tmp_path):
    rng = np.random.default_rng(0)
    visits = []
    for number in range(1600):
        items = [
            {"id": f"{number}-{index}", "features": {"good": float(index == 0), "noise": float(rng.random())}}
            for index in range(4)
        ]
        visits.append(("learns", {"query": "q", "items": items, "cutoff": 2}))
    path = written_log(
        tmp_path / "service.db",
        {"learns": GIVEN},
        visits,
        lambda number, shown: [f"{number}-0"] if f"{number}-0" in shown else [],
    )
    store = SqliteStore(path)
    (found,) = replay(store, lambda version: policy_of_version(version, store.model))
    assert found.is_equal
    assert replay_choices(store).is_equal
    live = live_policies(store, {"learns": GIVEN}).named("learns")
    assert live.policy.report()["promotions"] >= 1
    firsts = [logged.shown.items[0].endswith("-0") for logged in store.logged()]
    assert np.mean(firsts[-200:]) > np.mean(firsts[:200]) + 4 * math.sqrt(0.25 / 200 * 2)
    store.close()


def test_lists_come_as_often_as_propensities_say():
    served = policy()
    served._learner.weights = np.array([2.0, 0.0])  # another policy than the logger
    request = RankRequest(
        query="q",
        cutoff=2,
        items=[Item(id=name, features={"good": good, "noise": 0.0}) for name, good in (("a", 1), ("b", 0), ("c", 0.5))],
    )
    counts, chances = {}, {}
    for number in range(3000):
        ordered = served.order(request, generator=generator_of(b"s", str(number)))
        key = tuple(ordered.items)
        counts[key] = counts.get(key, 0) + 1
        chances[key] = math.prod(ordered.propensities)
    [steps] = served.step_probabilities([request], [list(key)])
    assert math.prod(steps) == pytest.approx(chances[key])
    assert sum(chances.values()) == pytest.approx(1)
    for key, count in counts.items():
        assert abs(count / 3000 - chances[key]) < 4 * math.sqrt(chances[key] / 3000)


def test_lists_that_are_cut_short_are_refused():
    request = RankRequest(
        query="q", cutoff=1, items=[Item(id=name, features={"good": 1, "noise": 0}) for name in "abc"]
    )
    with pytest.raises(RankPolicyError, match="ask for a cutoff of 2 or more"):
        policy().order(request, generator=generator_of(b"s", "r"))
