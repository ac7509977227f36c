import math

import pytest
import torch

from rankpolicy import Conventions, RankPolicyError
from rankpolicy.gradients import affinity_reinforce
from rankpolicy.metrics import RewardExpression, parse_metric
from rankpolicy.objectives import (
    EXPLORATIONS,
    SUPERVISED_LOSSES,
    CrossEntropyLoss,
    DecayingExploration,
    Hybrid,
    ScheduledObjective,
)
from rankpolicy.objectives.hybrid import trained_weights
from tests.objectives.test_objectives import batch_of

SCORES = torch.tensor([[0.5, -1.0, 0.0], [2.0, 1.0, 50.0]])
LABELS = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 9.0]])
MASK = torch.tensor([[True, True, True], [True, True, False]])
REWARD = parse_metric("mean(ap, ndcg@2)")


def value_and_gradient(**settings):
    scores = SCORES.clone().requires_grad_()
    torch.manual_seed(0)
    value = Hybrid(**{"reward": REWARD} | settings)(scores, batch_of(LABELS, MASK))
    value.loss.backward()
    return value, scores.grad


def test_supervised_part_by_hand():
    """-log a of relevant items, -log(1 - a) of the others, over the five real items; its gradient is (a - relevant) / 5."""
    value, gradient = value_and_gradient(gamma=0.0)
    affinities = torch.sigmoid(SCORES)
    relevant = torch.tensor([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    each = -torch.where(relevant == 1, affinities, 1 - affinities).log()
    assert float(value.parts["L_sl"]) == pytest.approx(each[MASK].mean().item())
    assert value.loss.item() == pytest.approx(each[MASK].mean().item())
    torch.testing.assert_close(gradient, torch.where(MASK, (affinities - relevant) / 5, 0.0))


def test_labels_as_targets_by_hand():
    """-[r log a + (1 - r) log(1 - a)] with r the label, also above 1: its gradient is (a - r) / 5."""
    value, gradient = value_and_gradient(gamma=0.0, targets="labels")
    affinities = torch.sigmoid(SCORES)
    each = -(LABELS * affinities.log() + (1 - LABELS) * (1 - affinities).log())
    assert value.loss.item() == pytest.approx(each[MASK].mean().item())
    torch.testing.assert_close(gradient, torch.where(MASK, (affinities - LABELS) / 5, 0.0))


def test_policy_part_descends_against_the_estimate():
    value, gradient = value_and_gradient(gamma=1.0, num_samples=9, max_positions=2, epsilon=0.3)
    torch.manual_seed(0)
    estimate = affinity_reinforce(
        SCORES, LABELS, MASK, reward=REWARD, num_samples=9, max_positions=2, epsilon=0.3, control="greedy"
    )
    torch.testing.assert_close(gradient, -estimate.gradient / 2)
    assert float(value.report) == pytest.approx(estimate.reward.mean().item())
    assert float(value.parts["L_rl"]) == -float(value.report)
    assert float(value.report) == pytest.approx((float(value.parts["ap"]) + float(value.parts["ndcg@2"])) / 2)


def test_the_mix_is_the_mix_of_its_parts():
    gradients = {gamma: value_and_gradient(gamma=gamma)[1] for gamma in (0.0, 0.25, 1.0)}
    torch.testing.assert_close(gradients[0.25], 0.25 * gradients[1.0] + 0.75 * gradients[0.0])


def test_affinities_above_a_half_cost_where_no_item_is_relevant():
    without, _ = value_and_gradient()
    value, _ = value_and_gradient(loss=CrossEntropyLoss(empty_penalty=10.0))
    excess = (torch.sigmoid(torch.tensor(2.0)) + torch.sigmoid(torch.tensor(1.0)) - 1).item() / 2 / 2
    assert float(value.parts["excess"]) == pytest.approx(excess)
    assert value.loss.item() - without.loss.item() == pytest.approx(10 * excess, abs=1e-5)


def test_queries_left_out_of_means_leave_numbers():
    reward = parse_metric("ap", Conventions(empty="skip"))
    value, gradient = value_and_gradient(reward=reward, gamma=1.0)
    assert math.isfinite(float(value.report))
    assert (gradient[1] == 0).all()


def test_exploration_over_epochs_and_by_entropy():
    objective = Hybrid(reward=REWARD, epsilon=DecayingExploration(share=0.2))
    assert isinstance(objective, ScheduledObjective)
    assert objective.at_epoch(3, {}).epoch == 3
    assert EXPLORATIONS["constant"](share=0.2).epsilon(3, SCORES, MASK) == 0.2
    assert EXPLORATIONS["decaying"](share=0.2).epsilon(3, SCORES, MASK) == pytest.approx(0.2 * 0.9**3)
    assert EXPLORATIONS["decaying"](share=0.2, decay=0.5).epsilon(3, SCORES, MASK) == pytest.approx(0.2 * 0.5**3)
    # Affinities 3/4 and 1/4 of two items: the entropy of the choice is 0.811 bits of 1.
    scores = torch.tensor([[3.0, 1 / 3, 1.0], [1.0, 1.0, 1.0]]).log()
    mask = torch.tensor([[True, True, False], [True, False, False]])
    by_entropy = EXPLORATIONS["entropy"](share=0.2).epsilon(0, scores, mask)
    assert by_entropy[0].item() == pytest.approx(0.2**0.811278, rel=1e-5)
    assert torch.isfinite(by_entropy).all()


@pytest.mark.parametrize("exploration", EXPLORATIONS)
def test_every_exploration_trains(exploration):
    value, gradient = value_and_gradient(epsilon=exploration)
    assert torch.isfinite(value.loss)
    assert torch.isfinite(gradient).all()
    assert gradient[1, 2] == 0


A = torch.sigmoid(SCORES)
RELEVANT = torch.tensor([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])


def by_hand(name, affinities):
    """Each loss as its formula says, query by query over real items; -x log x of the library's own is not used."""
    lists = [(affinities[0], RELEVANT[0], LABELS[0]), (affinities[1, :2], RELEVANT[1, :2], LABELS[1, :2])]
    choices = [a / a.sum() for a, _, _ in lists]
    if name == "softmax":
        return sum(-(r * p.log()).sum() for (_, r, _), p in zip(lists, choices, strict=True)) / 2
    if name == "list_net":
        return sum(-(y.softmax(-1) * p.log()).sum() for (_, _, y), p in zip(lists, choices, strict=True)) / 2
    a, r = (torch.cat([each[place] for each in lists]) for place in (0, 1))
    return (a - r).square().mean() if name == "squared" else -torch.where(r == 1, a, 1 - a).log().mean()


@pytest.mark.parametrize("name", SUPERVISED_LOSSES)
def test_supervised_losses_and_their_gradients_by_hand(name):
    value, gradient = value_and_gradient(gamma=0.0, loss=name)
    scores = SCORES.clone().requires_grad_()
    expected = by_hand(name, torch.sigmoid(scores))
    expected.backward()
    assert value.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert float(value.parts["L_sl"]) == pytest.approx(expected.item(), rel=1e-5)
    torch.testing.assert_close(gradient, scores.grad)


def test_trained_weights_are_the_minimum_of_what_they_are_trained_on():
    """sum_k w_k L_k - log w_k at L = 0.6, 0.3, 0.1: w = 1 / L, as 1 : 2 : 6."""
    shortfalls = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    assert trained_weights((1 - shortfalls).tolist()) == pytest.approx([1 / 9, 2 / 9, 6 / 9])
    log_weights = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([log_weights], lr=0.5)
    for _ in range(2000):
        optimizer.zero_grad()
        (log_weights.exp() * shortfalls - log_weights).sum().backward()
        optimizer.step()
    weights = log_weights.detach().exp()
    assert (weights / weights.sum()).tolist() == pytest.approx([1 / 9, 2 / 9, 6 / 9], abs=1e-6)


def test_the_weights_of_a_trained_mean_follow_the_last_epoch():
    objective = Hybrid(reward="trained_mean(ap, ndcg@2)", gamma=1.0)
    assert objective.at_epoch(0, {}).reward == objective.reward
    later = objective.at_epoch(2, {"ap": [0.1, 0.5], "ndcg@2": [0.2, 0.75], "L_rl": [0.0, 0.0]})
    assert isinstance(later.reward, RewardExpression)
    assert [term.weight for term in later.reward.terms] == pytest.approx([1 / 3, 2 / 3])
    torch.manual_seed(0)
    scores = SCORES.clone().requires_grad_()
    value = later(scores, batch_of(LABELS, MASK))
    value.loss.backward()
    assert value.parts["weight of ap"] == pytest.approx(1 / 3)
    assert float(value.report) == pytest.approx(float(value.parts["ap"]) / 3 + float(value.parts["ndcg@2"]) * 2 / 3)
    fixed, gradient = value_and_gradient(reward=parse_metric("0.3333333333*ap + 0.6666666667*ndcg@2"), gamma=1.0)
    torch.testing.assert_close(scores.grad, gradient)
    assert float(fixed.report) == pytest.approx(float(value.report))


@pytest.mark.parametrize(
    "text", ["trained_mean(ap)", "trained_mean(ap, dcg)", "trained_mean(ap * rr, ndcg)", "trained_mean(ap, -rr)"]
)
def test_a_trained_mean_needs_metrics_between_0_and_1(text):
    with pytest.raises(RankPolicyError, match="two or more different metrics between 0 and 1"):
        parse_metric(text)


def test_a_trained_mean_stands_alone():
    assert parse_metric("Trained_Mean( AP , ndcg@10 )").name == "trained_mean(ap, ndcg@10)"
    with pytest.raises(RankPolicyError, match="Unknown metric 'trained_mean'"):
        parse_metric("trained_mean(ap, rr) + mean(ap, rr)")
