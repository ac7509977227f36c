"""Promotion, drift and late feedback of SafePolicyGradient, and learning from a log at once."""

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.off_policy import OffPolicyLog
from rankpolicy.online import SafePolicyGradient
from rankpolicy.types import RankPolicyError

CUTOFF = 3
DISCOUNT = 1 / np.log2(np.arange(2, 2 + CUTOFF))


def made(**settings):
    return SafePolicyGradient(num_features=2, cutoff=CUTOFF, **({"logger": [0.3, 0.0], "random_state": 3} | settings))


def queries(generator, size):
    return generator.random((size, 6, 2))


def click(features, rankings, generator, *, is_reversed=False):
    attraction = 1 - features[..., 0] if is_reversed else features[..., 0]
    return generator.random(rankings.shape) < 0.8 * np.take_along_axis(attraction**3, rankings, 1) / (
        1 + np.arange(rankings.shape[1])
    )


def serve(learner, num_batches, generator, *, size=50, is_reversed=False):
    for _ in range(num_batches):
        features = queries(generator, size)
        shown = learner.rank(features)
        learner.learn(features, shown, click(features, shown.rankings, generator, is_reversed=is_reversed))


def exact_value(weights, features, *, is_reversed=False):
    """E Σ θ_p click_p of position-based users."""
    attraction = 1 - features[..., 0] if is_reversed else features[..., 0]
    policy = rp.policies.PlackettLuce(features @ weights, np.ones(features.shape[:2], bool))
    exposure = policy.exposure(DISCOUNT / np.arange(1, CUTOFF + 1))
    return float((exposure * 0.8 * attraction**3).sum(1).mean())


def test_proven_contenders_serve_and_earn_more_than_the_logger():
    learner, generator = made(reward="clicks"), np.random.default_rng(0)
    serve(learner, 120, generator)
    features = queries(generator, 500)
    assert learner.num_promotions >= 1
    assert learner.num_demotions == 0
    assert exact_value(learner.weights, features) > exact_value(np.array([0.3, 0.0]), features)


def test_when_users_reverse_the_logger_serves_again_before_the_budget_is_lost():
    learner, generator = made(reward="clicks", logger=[0.0, 0.0], budget=1000.0), np.random.default_rng(1)
    serve(learner, 150, generator)
    assert learner.num_promotions >= 1
    assert learner.num_demotions == 0
    features, lost = queries(generator, 300), 0.0
    for _ in range(400):
        if learner.num_demotions:
            break
        of_policy, of_logger = (
            exact_value(weights, features, is_reversed=True) for weights in (learner.weights, np.zeros(2))
        )
        assert of_policy < of_logger
        lost += 50 * (1 - learner.logger_share) * (of_logger - of_policy)
        serve(learner, 1, generator, is_reversed=True)
    assert learner.num_demotions == 1
    assert learner.report()["logger_serves"]
    assert lost < 1000


def test_nothing_is_promoted_when_clicks_say_nothing():
    learner, generator = made(), np.random.default_rng(0)
    for _ in range(60):
        features = queries(generator, 50)
        shown = learner.rank(features)
        learner.learn(features, shown, generator.random(shown.rankings.shape) < 0.3)
    assert learner.num_promotions == 0
    np.testing.assert_array_equal(learner.weights, [0.3, 0.0])


def test_propensities_are_those_of_the_mixture_with_the_logger():
    learner = made()
    learner.weights = np.array([3.0, -1.0])
    features = np.tile(np.random.default_rng(0).random((1, 3, 2)), (6000, 1, 1))
    shown = learner.rank(features)
    lists, first, counts = np.unique(shown.rankings, axis=0, return_index=True, return_counts=True)
    chances = shown.propensities.prod(1)[first]
    assert len(lists) == 6
    assert chances.sum() == pytest.approx(1)
    np.testing.assert_allclose(counts / 6000, chances, atol=4 * np.sqrt(0.25 / 6000))


def test_late_lists_of_an_earlier_policy_are_booked_and_test_nothing():
    learner, generator = made(), np.random.default_rng(0)
    features = queries(generator, 200)
    late = learner.rank(features)
    serve(learner, 2, generator)
    learner._serve(np.array([3.0, 0.0]), is_promotion=True)
    serve(learner, 3, generator)
    tested = [trial.bound.state[0] for trial in learner._trials]
    assert tested
    learner.learn(features, late, np.zeros(late.rankings.shape))
    assert [trial.bound.state[0] for trial in learner._trials][: len(tested)] == tested


def test_learns_from_the_log_of_another_policy_at_once():
    generator = np.random.default_rng(2)
    features = queries(generator, 300)
    contexts = generator.integers(300, size=8000)
    logging = rp.policies.PlackettLuce(0.5 * features[..., 1], np.ones((300, 6), bool))
    rankings = logging.sample(8000 // 300 + 1, cutoff=CUTOFF, generator=generator)
    sample = np.arange(8000) % len(rankings)
    items = rankings[sample, contexts]
    steps = np.exp(np.stack([logging.log_prob(rankings, cutoff=p)[sample, contexts] for p in range(CUTOFF + 1)], 1))
    log = OffPolicyLog(
        items=items,
        rewards=click(features[contexts], items, generator).astype(float),
        contexts=contexts,
        propensities=steps[:, 1:] / steps[:, :-1],
    )
    learner = made(logger=[0.0, 0.5])
    assert learner.learn_log(features, log, shown_by=logging)
    assert exact_value(learner.weights, features) > exact_value(np.array([0.0, 0.5]), features)
    other = made(logger=[0.0, 0.5])
    silent = OffPolicyLog(items=items, rewards=np.zeros(items.shape), contexts=contexts, propensities=log.propensities)
    assert not other.learn_log(features, silent, shown_by=logging)
    np.testing.assert_array_equal(other.weights, [0.0, 0.5])
    dear = OffPolicyLog(items=items, rewards=2.0 * log.rewards, contexts=contexts, propensities=log.propensities)
    with pytest.raises(RankPolicyError, match="0 or 1"):
        other.learn_log(features, dear)
    with pytest.raises(RankPolicyError, match="log must have propensities"):
        other.learn_log(features[:10], log)
