import math

import torch

from rankpolicy.data.batches import Batch
from rankpolicy.data.padding import Padding
from rankpolicy.gradients import reinforce
from rankpolicy.metrics import parse_metric
from rankpolicy.objectives import FairPolicyGradient, ListNetCrossEntropy, PolicyGradient, SquaredError

MASK = torch.tensor([[True, True, False]])


def batch_of(labels, mask):
    padding = Padding.of_sizes(mask.sum(-1).numpy()).to("cpu")
    return Batch(features=torch.zeros(int(mask.sum()), 1), labels=labels, mask=mask, padding=padding)


def test_list_net_of_two_items_by_hand():
    scores = torch.tensor([[0.0, 0.0, 50.0]], requires_grad=True)
    labels = torch.tensor([[math.log(3.0), 0.0, 9.0]])
    value = ListNetCrossEntropy()(scores, batch_of(labels, MASK))
    value.loss.backward()
    # target (3/4, 1/4), choice (1/2, 1/2): cross entropy log 2, gradient choice - target
    assert math.isclose(value.report, math.log(2.0), rel_tol=1e-6)
    torch.testing.assert_close(scores.grad, torch.tensor([[-0.25, 0.25, 0.0]]))


def test_squared_error_ignores_padding():
    value = SquaredError()(torch.tensor([[1.0, 2.0, 99.0]]), batch_of(torch.tensor([[0.0, 4.0, 0.0]]), MASK))
    assert value.report == (1 + 4) / 2


def test_policy_gradient_descends_against_the_estimate():
    scores = torch.tensor([[0.5, -1.0, 0.0], [0.1, 0.2, 0.3]], requires_grad=True)
    labels = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0]])
    mask = torch.ones(2, 3, dtype=torch.bool)
    reward = parse_metric("ndcg@2")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        value = PolicyGradient(reward=reward, estimator="reinforce", num_samples=16)(scores, batch_of(labels, mask))
        torch.manual_seed(0)
        estimate = reinforce(scores, labels, mask, reward=reward, num_samples=16)
    value.loss.backward()
    torch.testing.assert_close(scores.grad, -estimate.gradient / 2)
    assert math.isclose(value.report, estimate.reward.mean().item(), rel_tol=1e-6)


def test_entropy_pushes_scores_together():
    scores = torch.tensor([[2.0, 0.0, 7.0]], requires_grad=True)
    no_labels = torch.zeros(1, 3)
    PolicyGradient(reward=parse_metric("ndcg"), entropy=1.0)(scores, batch_of(no_labels, MASK)).loss.backward()
    assert scores.grad[0, 0] > 0 > scores.grad[0, 1]
    assert scores.grad[0, 2] == 0


def test_entropy_of_the_fair_objective_pushes_scores_together_and_is_reported_as_gain():
    """softmax(log 3, 0) = (3/4, 1/4); without labels nothing else is in the objective: loss -H, dH/dscore_i = -p_i (log p_i + H)."""
    scores = torch.tensor([[math.log(3.0), 0.0, 7.0]], requires_grad=True)
    objective = FairPolicyGradient(reward="ndcg", fairness="individual", strength=0.0, entropy=2.0)
    value = objective(scores, batch_of(torch.zeros(1, 3), MASK))
    value.loss.backward()
    entropy = -0.75 * math.log(0.75) - 0.25 * math.log(0.25)
    slope = 2 * 0.75 * (math.log(0.75) + entropy)  # of the loss, -2 H, at the larger score: descent lowers it
    assert slope > 0
    torch.testing.assert_close(scores.grad, torch.tensor([[slope, -slope, 0.0]]))
    assert math.isclose(value.report, 2 * entropy, rel_tol=1e-6)
