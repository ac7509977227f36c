import math

import pytest
import torch

from rankpolicy import Conventions
from rankpolicy.gradients import affinity_reinforce
from rankpolicy.metrics import parse_metric
from rankpolicy.objectives import EXPLORATIONS, Hybrid, ScheduledObjective
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
    assert value.parts["L_sl"] == pytest.approx(each[MASK].mean().item())
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
    assert value.report == pytest.approx(estimate.reward.mean().item())
    assert value.parts["L_rl"] == -value.report
    assert value.report == pytest.approx((value.parts["ap"] + value.parts["ndcg@2"]) / 2)


def test_the_mix_is_the_mix_of_its_parts():
    gradients = {gamma: value_and_gradient(gamma=gamma)[1] for gamma in (0.0, 0.25, 1.0)}
    torch.testing.assert_close(gradients[0.25], 0.25 * gradients[1.0] + 0.75 * gradients[0.0])


def test_affinities_above_a_half_cost_where_no_item_is_relevant():
    without, _ = value_and_gradient()
    value, _ = value_and_gradient(empty_penalty=10.0)
    excess = (torch.sigmoid(torch.tensor(2.0)) + torch.sigmoid(torch.tensor(1.0)) - 1).item() / 2 / 2
    assert value.parts["excess"] == pytest.approx(excess)
    assert value.loss.item() - without.loss.item() == pytest.approx(10 * excess, abs=1e-5)


def test_queries_left_out_of_means_leave_numbers():
    reward = parse_metric("ap", Conventions(empty="skip"))
    value, gradient = value_and_gradient(reward=reward, gamma=1.0)
    assert math.isfinite(value.report)
    assert (gradient[1] == 0).all()


def test_exploration_over_epochs_and_by_entropy():
    objective = Hybrid(reward=REWARD, epsilon=0.2, exploration="decaying")
    assert isinstance(objective, ScheduledObjective)
    assert objective.at_epoch(3).epoch == 3
    assert EXPLORATIONS["constant"](0.2, 3, SCORES, MASK) == 0.2
    assert EXPLORATIONS["decaying"](0.2, 3, SCORES, MASK) == pytest.approx(0.2 * 0.9**3)
    # Affinities 3/4 and 1/4 of two items: the entropy of the choice is 0.811 bits of 1.
    scores = torch.tensor([[3.0, 1 / 3, 1.0], [1.0, 1.0, 1.0]]).log()
    mask = torch.tensor([[True, True, False], [True, False, False]])
    by_entropy = EXPLORATIONS["entropy"](0.2, 0, scores, mask)
    assert by_entropy[0].item() == pytest.approx(0.2**0.811278, rel=1e-5)
    assert torch.isfinite(by_entropy).all()


@pytest.mark.parametrize("exploration", EXPLORATIONS)
def test_every_exploration_trains(exploration):
    value, gradient = value_and_gradient(exploration=exploration)
    assert torch.isfinite(value.loss)
    assert torch.isfinite(gradient).all()
    assert gradient[1, 2] == 0
