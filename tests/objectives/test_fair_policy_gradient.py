from dataclasses import replace

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.evaluation.policy_value import policy_value
from rankpolicy.fairness import GroupExposure, parity_offsets
from rankpolicy.objectives import FairPolicyGradient
from rankpolicy.policies import PlackettLuce
from tests.contracts.test_fairness_aims import BATCH, SCORES, enumerated
from tests.enumeration import all_rankings
from tests.objectives.test_objectives import batch_of

MASK = torch.ones(1, 3, dtype=torch.bool)


def test_entropy_pushes_scores_together():
    """Without labels and groups of merit only entropy is left: its gradient raises low scores and lowers high ones."""
    scores = torch.tensor([[2.0, 0.0, -2.0]], requires_grad=True)
    batch = replace(batch_of(torch.zeros(1, 3), MASK), groups=torch.tensor([[0, 1, 1]]))
    value = FairPolicyGradient(reward="ndcg", strength=1.0, entropy=0.5)(scores, batch)
    choice = scores.detach().softmax(-1)
    entropy = float(-(choice * choice.log()).sum())
    assert float(value.report) == pytest.approx(0.5 * entropy)
    value.loss.backward()
    # dH/ds_i = -p_i (log p_i + H); the loss has -0.5 H.
    torch.testing.assert_close(scores.grad, 0.5 * choice * (choice.log() + entropy))
    assert scores.grad[0, 0] > 0 > scores.grad[0, 2]


def gradient_of(objective, generator=None):
    scores = SCORES.clone().requires_grad_()
    objective(scores, BATCH, generator=generator).loss.backward()
    return scores.grad


@pytest.mark.parametrize("fairness", ["group", "individual", GroupExposure(rank_weights=(1.0, 0.3), impact=True)])
def test_under_a_bound_sampled_gradients_are_on_average_the_exact_ones(fairness):
    """The multiplier follows exact exposures, so that the noise of samples does not raise the price."""
    settings = {"reward": "ndcg", "fairness": fairness, "num_groups": 2}
    bound = {"strength": 0.5, "max_disparity": 0.01, "penalty": 20.0}
    exact = FairPolicyGradient(**settings, **bound)
    sampled = FairPolicyGradient(**settings, **bound, estimator="reinforce", num_samples=400)
    generator = torch.Generator().manual_seed(0)
    gradients = torch.stack([gradient_of(sampled, generator) for _ in range(30)])
    error = gradients.std(0) / 30**0.5
    assert ((gradients.mean(0) - gradient_of(exact)).abs() <= 4 * error + 1e-3).all()
    assert float(sampled(SCORES, BATCH, generator=generator).report) == pytest.approx(
        float(exact(SCORES, BATCH).report), abs=0.05
    )


@pytest.mark.parametrize("reward", ["ap", "rr", "err", "mean(ap, ndcg@2)"])
@pytest.mark.parametrize("fairness", ["group", "individual", GroupExposure(parity=0.5)])
def test_gumbel_gradients_of_any_cascade_are_those_of_enumeration(reward, fairness):
    """The gradient of mean E[reward] - strength * disparity over all rankings, by central differences; the disparity is exact."""
    measure, strength, step = rp.metrics.parse_metric(reward), 2.0, 1e-4
    objective = FairPolicyGradient(
        reward=reward, fairness=fairness, strength=strength, num_groups=2, estimator="gumbel", num_samples=400
    )

    def worth(scores):
        aim = rp.fairness.as_aim(fairness)
        if getattr(aim, "parity", 0):
            bias = aim.position_bias(4, dtype=torch.float64)
            offsets = parity_offsets(scores, BATCH.mask, BATCH.groups, num_groups=2, rank_weights=bias).values
            scores = scores + aim.parity * offsets
        return enumerated(scores, aim, strength, measure)

    steps = step * torch.eye(8, dtype=torch.float64).view(8, 2, 4)
    expected = torch.tensor([(worth(SCORES + each) - worth(SCORES - each)) / (2 * step) for each in steps]).view(2, 4)
    generator = torch.Generator().manual_seed(0)
    gradients = torch.stack([-gradient_of(objective, generator) for _ in range(30)])
    error = gradients.std(0) / 30**0.5
    assert ((gradients.mean(0) - expected).abs() <= 4 * error + 1e-3).all()
    value = objective(SCORES, BATCH, generator=generator)
    assert float(value.report) == pytest.approx(worth(SCORES), abs=0.02)


def test_the_augmented_lagrangian_is_that_of_enumeration():
    """U - (max(0, λ + c (D - δ))² - λ²) / 2c, D the mean disparity over the queries that have one."""
    aim = GroupExposure()
    utility = enumerated(SCORES, aim, 0.0)
    disparity = 2 * (utility - enumerated(SCORES, aim, 1.0)) / 2  # both queries have a disparity
    multiplier = max(0.0, 0.5 + 20.0 * (disparity - 0.01))
    value = FairPolicyGradient(reward="ndcg", strength=0.5, max_disparity=0.01, penalty=20.0, num_groups=2)(
        SCORES, BATCH
    )
    assert float(value.report) == pytest.approx(utility - (multiplier**2 - 0.5**2) / 40, abs=1e-4)


def test_weights_of_queries_count_in_the_average_of_an_amortized_disparity():
    """A query of weight 2 counts as if it were there twice."""
    aim = GroupExposure(amortized=True)
    twice = replace(batch_of(BATCH.labels[[0, 0, 1]], BATCH.mask[[0, 0, 1]]), groups=BATCH.groups[[0, 0, 1]])
    weighted = replace(BATCH, query_weights=torch.tensor([2.0, 1.0], dtype=torch.float64))
    objective = FairPolicyGradient(reward="ndcg", fairness=aim, strength=3.0, num_groups=2)
    assert float(objective(SCORES, weighted).report) * 2 == pytest.approx(
        float(objective(SCORES[[0, 0, 1]], twice).report) * 3
    )


def test_a_linear_ranker_meets_a_bound_with_sampled_gradients():
    train = rp.data.make_fair_synthetic(40, random_state=0)
    settings = {"scaling": "none", "estimator": "reinforce", "learning_rate": 0.05, "batch_queries": 10, "epochs": 60}
    ranker = rp.FairPGRank(**settings, max_disparity=0.008).fit(train)
    assert ranker.report_["disparity"] == pytest.approx(0.008, rel=0.05)


def test_training_with_a_measured_position_bias_lowers_that_disparity():
    train, test = (rp.data.make_fair_synthetic(40, random_state=seed) for seed in (0, 1))
    clicks = np.array([1.0, 0.5, 0.2, 0.1, 0.05, np.nan, np.nan])
    aim = GroupExposure(rank_weights=clicks)
    assert aim.rank_weights == (1.0, 0.5, 0.2, 0.1, 0.05)
    free, fair = (rp.FairPGRank(fairness=aim, scaling="none", strength=s, epochs=60).fit(train) for s in (0.0, 30.0))
    assert policy_value(fair, test, fairness=aim).disparity < policy_value(free, test, fairness=aim).disparity / 2
    assert fair.report_["disparity"] == pytest.approx(policy_value(fair, train, fairness=aim).disparity, rel=1e-3)


def test_parity_equalises_exposure_with_the_measured_weights_of_ranks():
    """Enumerated: with all rankings of each query, both groups have the same mean exposure; the gradient goes through the offsets."""
    aim = GroupExposure(rank_weights=(1.0, 0.3, 0.1), parity=1.0)
    offsets = parity_offsets(SCORES, BATCH.mask, BATCH.groups, rank_weights=aim.position_bias(4, dtype=torch.float64))
    exposure = torch.zeros_like(SCORES)
    for query, n in enumerate((4, 3)):
        moved = (SCORES + offsets.values)[query : query + 1, :n]
        rankings = all_rankings(n)
        chance = PlackettLuce(moved, torch.ones(1, n, dtype=torch.bool)).log_prob(rankings).exp()[:, 0]
        for ranking, weight in zip(rankings[:, 0], chance, strict=True):
            exposure[query, ranking] += weight * aim.position_bias(4, dtype=torch.float64)[:n]
        first, second = (exposure[query, :n][BATCH.groups[query, :n] == group].mean().item() for group in (0, 1))
        assert first == pytest.approx(second, abs=1e-4)
    objective = FairPolicyGradient(reward="ndcg", fairness=aim, strength=2.0, num_groups=2)
    assert objective.evaluate(SCORES, BATCH).disparity.mean == pytest.approx(0.0, abs=1e-6)
    scores = SCORES.clone().requires_grad_()
    objective(scores, BATCH).loss.backward()
    for query, item in BATCH.mask.nonzero().tolist():
        shift = torch.zeros_like(SCORES)
        shift[query, item] = 1e-4
        ends = [float(objective(SCORES + sign * shift, BATCH).report) for sign in (1, -1)]
        assert -scores.grad[query, item].item() == pytest.approx((ends[0] - ends[1]) / 2e-4, abs=2e-3)


def test_a_ranker_with_parity_and_measured_weights_has_no_such_disparity_on_queries_never_seen():
    train, test = (rp.data.make_fair_synthetic(30, random_state=seed) for seed in (0, 1))
    aim = GroupExposure(rank_weights=(1.0, 0.5, 0.2, 0.1), parity=1.0)
    ranker = rp.FairPGRank(fairness=aim, strength=0.0, weight_decay=1e-3, scaling="none", epochs=30).fit(train)
    assert policy_value(ranker, test, fairness=aim).disparity == pytest.approx(0.0, abs=1e-6)
    assert policy_value(ranker, test).disparity > 1e-5
