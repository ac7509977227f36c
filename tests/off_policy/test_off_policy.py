import itertools
import math

import numpy as np
import pytest
import torch

from rankpolicy.off_policy import targets as off_policy_target
from rankpolicy.off_policy.estimates import estimate_policy_value
from rankpolicy.off_policy.intervals import INTERVALS
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.off_policy.members import OFF_POLICY_ESTIMATORS
from rankpolicy.off_policy.targets import TargetProbabilities, target_of
from rankpolicy.policies import Mixture, PlackettLuce
from rankpolicy.types import RankPolicyError
from tests.off_policy.off_policy_reference import (
    cascade,
    marginal_probability,
    plackett_luce_lists,
    position_based,
    prefix_probability,
    slow_estimate,
    true_value,
)

THETA = np.array([1.0, 0.5])
NEW, OLD = [[3.0, 2.0, 1.0], [1.0, 1.0, 4.0]], [[1.0, 1.0, 1.0], [2.0, 1.0, 2.0]]  # Plackett-Luce weights by context
TARGET = [plackett_luce_lists(weights, 2) for weights in NEW]
BEHAVIOR = [plackett_luce_lists(weights, 2) for weights in OLD]


def plackett_luce(weights):
    scores = torch.tensor(weights, dtype=torch.float64).log()
    return PlackettLuce(scores, torch.ones_like(scores, dtype=torch.bool))


def log_of(rounds, behavior=BEHAVIOR):
    """The log of (context, items, rewards) rounds, with propensities from the enumeration of all lists."""
    steps = [
        [
            prefix_probability(behavior[c], items[: p + 1]) / prefix_probability(behavior[c], items[:p])
            for p in range(len(items))
        ]
        for c, items, _ in rounds
    ]
    return OffPolicyLog(
        items=[items for _, items, _ in rounds],
        rewards=[rewards for _, _, rewards in rounds],
        contexts=[c for c, _, _ in rounds],
        propensities=steps,
        marginal_propensities=[
            [marginal_probability(behavior[c], item, p) for p, item in enumerate(items)] for c, items, _ in rounds
        ],
    )


def random_rounds(num_rounds, *, user=cascade, seed=0):
    generator = np.random.default_rng(seed)
    rounds = []
    for _ in range(num_rounds):
        context = int(generator.integers(2))
        lists = list(BEHAVIOR[context])
        items = lists[generator.choice(len(lists), p=list(BEHAVIOR[context].values()))]
        rounds.append((context, items, (generator.random(2) < user(context, items)).astype(float).tolist()))
    return rounds


def all_rounds(user):
    """Every context and list with its mean reward, as often as needed to be as frequent as the log's policy makes it: with OLD, 30ths."""
    rounds = []
    for context, lists in enumerate(BEHAVIOR):
        for items, probability in lists.items():
            assert 30 * probability == pytest.approx(round(30 * probability))
            rounds += [(context, items, user(context, items))] * round(30 * probability)
    return rounds


@pytest.mark.parametrize("name", ["ips", "snips", "iips", "sniips", "rips", "snrips", "cascade-dr", "direct"])
def test_equals_the_definition(name):
    rounds = random_rounds(200)
    tails = np.random.default_rng(1).random((2, 2, 3))
    estimate = estimate_policy_value(
        log_of(rounds), plackett_luce(NEW), estimator=name, position_weights=THETA, tail_values=tails
    )
    value, error = slow_estimate(name, rounds, TARGET, BEHAVIOR, THETA, tails)
    assert estimate.value == pytest.approx(value, abs=1e-10)
    assert estimate.standard_error == pytest.approx(error, abs=1e-10)
    low, high = estimate.interval
    assert (high - low) / 2 == pytest.approx(1.959963984540054 * error, abs=1e-9)


def test_every_estimator_is_compared_with_its_definition():
    compared = test_equals_the_definition.pytestmark[0].args[1]
    assert compared == list(OFF_POLICY_ESTIMATORS)


def test_golden_values():
    """Two rounds of uniform lists of two items; the policy has weights 3 and 1."""
    log = OffPolicyLog(
        items=[[0, 1], [1, 0]],
        rewards=[[1, 1], [0, 1]],
        contexts=[0, 0],
        propensities=[[0.5, 1]] * 2,
        marginal_propensities=[[0.5] * 2] * 2,
    )
    policy = plackett_luce([[3.0, 1.0]])
    for name in ("ips", "rips", "iips"):
        estimate = estimate_policy_value(log, policy, estimator=name)
        assert estimate.value == pytest.approx((1.5 * 2 + 0.5 * 1) / 2)
        assert estimate.standard_error == pytest.approx(1.25)  # values 3 and 0.5: sd 2.5 / sqrt(2), over sqrt(2)
        assert estimate.effective_sample_size == pytest.approx(4 / 2.5)
    assert estimate_policy_value(log, policy, estimator="snips").value == pytest.approx((1.5 * 2 + 0.5) / 2)
    weighted = estimate_policy_value(log, policy, estimator="rips", position_weights=[1, 0.5])
    assert weighted.value == pytest.approx((1.5 * 1.5 + 0.5 * 0.5) / 2)


def test_marginal_propensities_of_nothing_are_not_looked_at():
    log = OffPolicyLog(items=[[1, -1]], rewards=[[1, 0]], contexts=[0], marginal_propensities=[[0.5, 0.0]])
    only_the_second = PlackettLuce(torch.zeros(1, 2), torch.tensor([[False, True]]))
    assert estimate_policy_value(log, only_the_second, estimator="iips").value == pytest.approx(2.0)


def test_clipping_is_asked_for_and_reported():
    log = log_of(random_rounds(100))
    plain = estimate_policy_value(log, plackett_luce(NEW))
    assert (plain.clip, plain.num_clipped) == (None, 0)
    clipped = estimate_policy_value(log, plackett_luce(NEW), clip=1.2)
    weights = target_of(plackett_luce(NEW), log).prefix_products(log, log.propensities)
    assert clipped.num_clipped == (weights > 1.2).sum() > 0
    assert clipped.value == pytest.approx((np.minimum(weights, 1.2) * log.rewards).sum(1).mean())
    assert f"{clipped.num_clipped} weights clipped to 1.2" in str(clipped)
    with pytest.raises(RankPolicyError, match="clip must be above 0"):
        estimate_policy_value(log, plackett_luce(NEW), clip=0)


class TestPolicies:
    def test_mixture_equals_enumeration(self):
        rounds = random_rounds(150)
        rankings = torch.tensor(list(itertools.permutations(range(3))))[:, None].expand(6, 2, 3)
        weights = torch.from_numpy(np.random.default_rng(3).dirichlet(np.ones(6), 2).T.copy())
        lists = [
            {tuple(ranking[c, :2].tolist()): float(weights[r, c]) for r, ranking in enumerate(rankings)}
            for c in range(2)
        ]
        policy = Mixture(rankings, weights, torch.ones(2, 3, dtype=torch.bool))
        tails = np.random.default_rng(1).random((2, 2, 3))
        for name in OFF_POLICY_ESTIMATORS:
            estimate = estimate_policy_value(log_of(rounds), policy, estimator=name, tail_values=tails)
            wanted, _ = slow_estimate(name, rounds, lists, BEHAVIOR, np.ones(2), tails)
            assert estimate.value == pytest.approx(wanted, abs=1e-10)

    def test_one_ranking_is_a_deterministic_policy(self):
        """Only rounds that showed it count: replay."""
        rounds = random_rounds(200)
        policy = Mixture(torch.tensor([[[0, 1, 2], [0, 1, 2]]]), torch.ones(1, 2), torch.ones(2, 3, dtype=torch.bool))
        estimate = estimate_policy_value(log_of(rounds), policy, estimator="ips")
        matching = [sum(rewards) / BEHAVIOR[c][(0, 1)] for c, items, rewards in rounds if items == (0, 1)]
        assert estimate.value == pytest.approx(sum(matching) / 200, abs=1e-12)

    def test_arrays_of_probabilities(self):
        log = log_of(random_rounds(50))
        target = target_of(plackett_luce(NEW), log)
        arrays = TargetProbabilities(
            steps=off_policy_target.plackett_luce_steps(target.policy, log),
            marginals=target.marginal_probabilities(log),
        )
        for name in ("ips", "snips", "rips", "snrips", "iips", "sniips"):
            got = estimate_policy_value(log, arrays, estimator=name)
            wanted = estimate_policy_value(log, plackett_luce(NEW), estimator=name)
            assert (got.value, *got.interval) == pytest.approx((wanted.value, *wanted.interval), abs=1e-12)
        for name in ("cascade-dr", "direct"):
            with pytest.raises(RankPolicyError, match="probability of every item"):
                estimate_policy_value(log, arrays, estimator=name)
        with pytest.raises(RankPolicyError, match=r"needs TargetProbabilities\(steps="):
            estimate_policy_value(log, TargetProbabilities(marginals=arrays.marginals))

    def test_whole_list_propensities_are_enough_for_ips(self):
        log = log_of(random_rounds(50))
        other = OffPolicyLog(
            items=log.items,
            rewards=log.rewards,
            contexts=log.contexts,
            list_propensities=log.whole_list_propensities(),
        )
        wanted = estimate_policy_value(log, plackett_luce(NEW), estimator="ips")
        assert estimate_policy_value(other, plackett_luce(NEW), estimator="ips").value == pytest.approx(wanted.value)
        with pytest.raises(RankPolicyError, match="need the log's propensities"):
            estimate_policy_value(other, plackett_luce(NEW), estimator="rips")
        with pytest.raises(RankPolicyError, match="marginal_propensities"):
            estimate_policy_value(other, plackett_luce(NEW), estimator="iips")


class TestIntervals:
    def test_bootstrap_agrees_with_normal(self):
        log = log_of(random_rounds(2000))
        for name in ("rips", "snrips"):
            normal = estimate_policy_value(log, plackett_luce(NEW), estimator=name)
            drawn = estimate_policy_value(log, plackett_luce(NEW), estimator=name, interval="bootstrap")
            np.testing.assert_allclose(drawn.interval, normal.interval, atol=0.25 * normal.standard_error)
            assert drawn == estimate_policy_value(log, plackett_luce(NEW), estimator=name, interval="bootstrap")

    def test_t_is_wider_for_few_rounds(self):
        """4.3027 is the quantile of 2 degrees of freedom."""
        log = log_of(random_rounds(3, seed=5))
        estimate = estimate_policy_value(log, plackett_luce(NEW), interval="t")
        low, high = estimate.interval
        assert (high - low) / 2 == pytest.approx(4.302653 * estimate.standard_error, rel=1e-6)
        assert estimate.standard_error > 0

    def test_one_round_has_a_value_and_no_error(self):
        for interval in INTERVALS:
            estimate = estimate_policy_value(log_of(random_rounds(1)), plackett_luce(NEW), interval=interval)
            assert math.isfinite(estimate.value)
            assert math.isnan(estimate.standard_error)


@pytest.mark.parametrize("name", ["ips", "snips", "iips", "sniips", "rips", "snrips", "cascade-dr"])
def test_intervals_cover_the_true_value(name):
    """600 logs of 500 rounds; the number of intervals that hold the truth lies within 3 binomial standard deviations of 95 %."""
    num_logs, num_rounds = 600, 500
    user = position_based if name.endswith("iips") else cascade
    truth = true_value(user, TARGET, np.ones(2))
    generator = np.random.default_rng(11)
    lists = np.array(list(BEHAVIOR[0]))
    probabilities = np.array([list(behavior.values()) for behavior in BEHAVIOR])
    means = np.array([[user(context, tuple(items)) for items in lists.tolist()] for context in range(2)])
    known = log_of([(c, tuple(items), [0, 0]) for c in range(2) for items in lists.tolist()])
    covered = 0
    for _ in range(num_logs):
        contexts = generator.integers(0, 2, num_rounds)
        chosen = (generator.random(num_rounds)[:, None] > probabilities.cumsum(1)[contexts]).sum(1).clip(max=5)
        row = contexts * len(lists) + chosen
        log = OffPolicyLog(
            items=lists[chosen],
            rewards=generator.random((num_rounds, 2)) < means[contexts, chosen],
            contexts=contexts,
            propensities=known.propensities[row],
            marginal_propensities=known.marginal_propensities[row],
        )
        low, high = estimate_policy_value(log, plackett_luce(NEW), estimator=name).interval
        covered += low <= truth <= high
    assert abs(covered / num_logs - 0.95) < 3 * math.sqrt(0.95 * 0.05 / num_logs)


class TestErrors:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"rewards": [[1.0]]}, r"items and rewards must both be \(round, position\)"),
            ({"items": [[0, 0]]}, "an item may be shown only once"),
            ({"items": [[-1, 0]], "rewards": [[0, 0]]}, "must be shown from the top"),
            ({"items": [[0, -1]]}, "0 where no item was shown"),
            ({"items": [[0.5, 1]]}, "whole numbers"),
            ({"propensities": [[0.0, 1.0]]}, "must be above 0 and at most 1"),
            ({"propensities": [0.5, 1.0]}, "must have the shape"),
            ({"contexts": [-1]}, "contexts must be one whole number"),
            ({"rewards": [[math.nan, 0]]}, "rewards must be finite"),
        ],
    )
    def test_logs(self, changes, message):
        good = {"items": [[0, 1]], "rewards": [[0.0, 1.0]], "contexts": [0], "propensities": [[0.5, 1.0]]}
        with pytest.raises(RankPolicyError, match=message):
            OffPolicyLog(**good | changes)

    def test_options(self):
        log = log_of(random_rounds(5))
        for options, message in (
            ({"estimator": "rip"}, "Unknown off-policy estimator 'rip'. Did you mean 'rips'"),
            ({"interval": "boot"}, "Unknown interval 'boot'"),
            ({"level": 95}, "level must lie between 0 and 1"),
            ({"position_weights": [1, 1, 1]}, "for each of the 2 positions"),
            ({"estimator": "direct", "num_folds": 1}, "num_folds must be from 2"),
            ({"estimator": "direct", "tail_values": np.zeros((2, 3, 2))}, "tail_values must be finite"),
        ):
            with pytest.raises(RankPolicyError, match=message):
                estimate_policy_value(log, plackett_luce(NEW), **options)

    def test_policies_that_do_not_fit_the_log(self):
        log = log_of(random_rounds(20))
        with pytest.raises(RankPolicyError, match="one row per context"):
            estimate_policy_value(log, plackett_luce(NEW[:1]))
        with pytest.raises(RankPolicyError, match="must be a PlackettLuce"):
            estimate_policy_value(log, "greedy")
        scores = torch.zeros(2, 3)
        with pytest.raises(RankPolicyError, match="one is masked"):
            estimate_policy_value(log, PlackettLuce(scores, torch.tensor([[True, True, False]] * 2)))
        short = OffPolicyLog(items=[[0, -1]], rewards=[[1, 0]], contexts=[0], propensities=[[0.5, 1]])
        with pytest.raises(RankPolicyError, match="round 0 shows 1 of 2"):
            estimate_policy_value(short, plackett_luce([[1.0, 1.0, 1.0]]))
