"""Index policies against a plain numpy reading of the papers."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from rankpolicy.bandits import (
    KLUCB,
    UCB1,
    CascadeTS,
    CascadeUCB1,
    CountIndex,
    DcmKLUCB,
    DcmKLUCBLog,
    DcmTS,
    DcmUCB1,
    IndexBandit,
    LastClick,
    MpTS,
    RankedKLUCB,
    ThompsonSampling,
)
from rankpolicy.bandits.index import kl_ucb
from rankpolicy.types import RankPolicyError
from tests.bandits.test_kl_ucb import bisection

CLICK_RATES = np.array([0.1, 0.7, 0.3, 0.5, 0.2])


def feed(bandit, num_lists=50, *, random_state=0):
    """Random lists, so that every item is observed; clicks and observations down to the last click."""
    generator = np.random.default_rng(random_state)
    clicked, observed = np.zeros(5), np.zeros(5)
    for _ in range(num_lists):
        ranking = generator.permutation(5)[:3]
        clicks = (generator.random(3) < CLICK_RATES[ranking]).astype(int)
        bandit.learn(ranking, clicks)
        last = np.flatnonzero(clicks)[-1] if clicks.any() else 2
        clicked[ranking[: last + 1]] += clicks[: last + 1]
        observed[ranking[: last + 1]] += 1
    return clicked, observed


@pytest.mark.parametrize(("bandit_class", "weight"), [(DcmKLUCB, 3.0), (DcmKLUCBLog, 0.0)])
def test_kl_ucb_shows_the_largest_indices(bandit_class, weight):
    for seed in range(10):
        bandit = bandit_class(num_items=5, cutoff=3)
        clicked, observed = feed(bandit, random_state=seed)
        np.testing.assert_array_equal(bandit.memory.statistics[0], np.stack([clicked, observed], 1))
        threshold = math.log(51) + weight * math.log(math.log(51))
        indices = bisection(clicked / observed, threshold / observed)
        np.testing.assert_array_equal(bandit.rank(), np.argsort(-indices)[:3])


def test_ucb1_shows_the_largest_indices():
    bandit = DcmUCB1(num_items=5, cutoff=3)
    clicked, observed = feed(bandit)
    indices = clicked / observed + np.sqrt(1.5 * math.log(51) / observed)
    np.testing.assert_array_equal(bandit.rank(), np.argsort(-indices)[:3])
    last = DcmUCB1(num_items=5, cutoff=3, best_last=True)
    feed(last)
    np.testing.assert_array_equal(last.rank(), np.argsort(-indices)[:3][::-1])


def test_time_is_what_a_window_or_discount_keeps():
    """UCB1 with one observation each: index = mean + sqrt(1.5 log t), so t decides between mean 1 once and mean 0.9 on few."""
    bandit = CascadeUCB1(num_items=2, cutoff=1, window=4)
    bandit.learn_log([[0], [0], [0], [1], [0], [0], [0], [1]], [[1]] * 3 + [[0]] + [[1]] * 3 + [[0]])
    clicks, observations = bandit.memory.statistics[0].T
    np.testing.assert_array_equal(observations, [3, 1])
    np.testing.assert_array_equal(clicks, [3, 0])
    # t = 4: 1 + sqrt(1.5 log 4 / 3) = 1.83 against 0 + sqrt(1.5 log 4) = 1.44; t = 9 would give 2.05 against 1.82.
    assert bandit.rank().tolist() == [0]


def test_thompson_sampling_draws_from_the_posterior():
    """Two items: P(item 0 first) = P(Beta(4, 2) > Beta(2, 3)), by numpy's own draws."""
    bandit = DcmTS(num_items=2, cutoff=1)
    bandit.learn_log([[0]] * 4 + [[1]] * 3, [[1]] * 3 + [[0]] + [[1]] + [[0]] * 2)
    first = np.mean([bandit.rank()[0] == 0 for _ in range(4000)])
    generator = np.random.default_rng(5)
    expected = np.mean(generator.beta(4, 2, 400_000) > generator.beta(2, 3, 400_000))
    assert abs(first - expected) < 4 * math.sqrt(expected * (1 - expected) / 4000)


def test_equal_indices_come_in_any_order():
    bandit = DcmKLUCB(num_items=3, cutoff=3)
    orders, counts = np.unique([bandit.rank() for _ in range(6000)], axis=0, return_counts=True)
    assert len(orders) == 6
    assert (np.abs(counts - 1000) < 4 * math.sqrt(6000 * (1 / 6) * (5 / 6))).all()


def test_items_never_observed_come_first():
    bandit = DcmKLUCB(num_items=4, cutoff=2)
    bandit.learn_log([[0, 2]] * 5, [[1, 1]] * 5)
    assert sorted(bandit.rank().tolist()) == [1, 3]


def test_ranked_positions_learn_for_themselves():
    bandit = RankedKLUCB(num_items=3, cutoff=2)
    bandit.learn_log([[0, 1], [0, 1], [2, 1]], [[0, 1], [1, 0], [0, 0]])
    np.testing.assert_array_equal(bandit.memory.statistics[0], [[1, 2], [0, 0], [0, 1]])
    np.testing.assert_array_equal(bandit.memory.statistics[1], [[0, 0], [1, 2], [0, 0]])
    # The first position has never shown item 1; the second then chooses between items 0 and 2, both unknown there.
    assert bandit.rank()[0] == 1
    bandit.learn_log([[1, 0], [1, 2]], [[1, 1], [1, 1]])
    threshold = math.log(6) + 3 * math.log(math.log(6))
    first = kl_ucb(np.array([1, 2, 0]) / [2, 2, 1], threshold / np.array([2, 2, 1]))
    assert bandit.rank()[0] == first.argmax()


@pytest.mark.parametrize(
    ("preset", "index", "feedback"),
    [
        (CascadeUCB1, UCB1(radius=0.5), "first-click"),
        (LastClick, KLUCB(log_log_weight=0.5), "last-click"),
        (DcmTS, "ts", "all-clicks"),
        (MpTS, "ts", "whole-list"),
    ],
)
def test_a_preset_decides_as_its_index_and_feedback(preset, index, feedback):
    settings = {"radius": 0.5} if preset is CascadeUCB1 else {"log_log_weight": 0.5} if preset is LastClick else {}
    named = preset(num_items=5, cutoff=3, **settings)
    composed = IndexBandit(num_items=5, cutoff=3, index=index, feedback=feedback)
    generator = np.random.default_rng(0)
    for _ in range(40):
        ranking = named.rank()
        np.testing.assert_array_equal(composed.rank(), ranking)
        clicks = generator.random(3) < CLICK_RATES[ranking]
        named.learn(ranking, clicks)
        composed.learn(ranking, clicks)
    np.testing.assert_array_equal(named.memory.statistics, composed.memory.statistics)


def test_multiple_plays_count_every_item_shown():
    bandit = MpTS(num_items=4, cutoff=3)
    bandit.learn_log([[3, 1, 0], [2, 3, 1]], [[0, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(bandit.memory.statistics[0], [[0, 1], [1, 2], [0, 1], [0, 2]])


def test_multiple_plays_come_close_to_the_optimal_regret():
    """Regret / log n tends to the sum of gap / kl(w, w_K) over the items left out (Komiyama et al. 2015, Theorem 1)."""
    pytest.importorskip("numba")
    from rankpolicy.simulation import pbm_user, simulate, stationary
    from rankpolicy.simulation.theory import bernoulli_kl

    attraction = np.array([0.7, 0.6, 0.5, 0.4, 0.3, 0.2])
    problem = stationary(pbm_user(attraction, [1.0, 1.0]), 2)
    found = simulate(["mp-ts", "random"], problem, num_steps=20_000, num_runs=20, executor="serial")
    slope = sum((0.6 - w) / bernoulli_kl(w, 0.6) for w in attraction[2:])
    middle = int(np.searchsorted(found.steps, 2_000))
    grown = (found.mean("mp-ts")[-1] - found.mean("mp-ts")[middle]) / np.log(found.steps[-1] / found.steps[middle])
    assert 0.5 * slope < grown < 1.5 * slope
    assert found.mean("mp-ts")[-1] < 0.05 * found.mean("random")[-1]


@dataclass(kw_only=True, eq=False)
class MostClicks(CountIndex):
    """The number of clicks, minus a cost of each observation."""

    name: ClassVar[str] = "most-clicks"
    cost: float = 0.25

    def numbers(self):
        return (self.cost,)

    @staticmethod
    def value(clicks, observations, threshold, settings, generator):
        return clicks - settings[0] * observations


def test_an_index_of_ones_own():
    bandit = IndexBandit(num_items=5, cutoff=3, index=MostClicks(cost=0.4))
    clicked, observed = feed(bandit)
    np.testing.assert_array_equal(bandit.rank(), np.argsort(-(clicked - 0.4 * observed))[:3])
    with pytest.raises(RankPolicyError, match="files hold no code; got MostClicks"):
        bandit.to_dict()


def test_settings_are_checked():
    with pytest.raises(RankPolicyError, match="log_log_weight"):
        DcmKLUCB(num_items=2, cutoff=1, log_log_weight=-1.0)
    with pytest.raises(RankPolicyError, match="radius"):
        DcmUCB1(num_items=2, cutoff=1, radius=-1.0)
    with pytest.raises(RankPolicyError, match="prior_clicks"):
        CascadeTS(num_items=2, cutoff=1, prior_clicks=0.0)


@pytest.mark.parametrize("factory", ["rank_items_by", "rank_positions_by"])
def test_compiled_steps_of_two_indices_have_different_symbols(factory):
    """Numba numbers functions from 1 in every process, so equal names could be the same symbol when loaded from the file cache."""
    pytest.importorskip("numba")
    from rankpolicy.kernels.bandits import counts, ranked

    make = getattr(ranked if factory == "rank_positions_by" else counts, factory)
    steps = [make(kind.threshold, kind.value) for kind in (KLUCB, UCB1, ThompsonSampling)]
    symbols = [compiled.fndesc.unique_name.rpartition("$")[0] for step in steps for compiled in step.overloads.values()]
    assert len(set(symbols)) == len(symbols) == 3
