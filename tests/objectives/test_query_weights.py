"""What all objectives share: a query of weight 2 is that query twice, one of weight 0 is none, and weights 1 change nothing."""

from dataclasses import replace

import pytest
import torch

from rankpolicy import objectives
from rankpolicy.fairness import GroupExposure
from rankpolicy.metrics import parse_metric
from rankpolicy.objectives import (
    CrossEntropyLoss,
    DELTRLoss,
    FairPolicyGradient,
    Hybrid,
    ListNetCrossEntropy,
    PolicyGradient,
    SigmoidCrossEntropy,
    SoftmaxCrossEntropy,
    SquaredError,
)
from tests.objectives.test_objectives import batch_of

SCORES = torch.tensor([[0.5, -1.0, 0.0, 0.3], [2.0, 1.0, -0.5, 9.0], [0.2, 0.1, 0.0, -0.7]], dtype=torch.float64)
LABELS = torch.tensor([[0.0, 1.0, 2.0, 1.0], [1.0, 0.0, 3.0, 9.0], [0.0, 0.0, 1.0, 2.0]], dtype=torch.float64)
MASK = torch.tensor([[True, True, True, True], [True, True, True, False], [True, True, True, True]])
GROUPS = torch.tensor([[0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 1, 0]])
NDCG = parse_metric("ndcg@2")

EXACT = {
    "list-net": ListNetCrossEntropy(),
    "softmax": SoftmaxCrossEntropy(),
    "sigmoid": SigmoidCrossEntropy(),
    "squared": SquaredError(),
    "deltr": DELTRLoss(protected=1, strength=3.0),
    "policy-gradient": PolicyGradient(reward=NDCG, estimator="exact", entropy=0.1),
    "fair, group": FairPolicyGradient(reward=NDCG, strength=0.7, entropy=0.1),
    "fair, individual": FairPolicyGradient(reward=NDCG, fairness="individual", strength=0.7),
    "fair, bounded": FairPolicyGradient(reward=NDCG, strength=0.2, max_disparity=0.01, penalty=5.0),
    "fair, parity": FairPolicyGradient(reward=NDCG, strength=0.7, fairness=GroupExposure(parity=0.5)),
}
SAMPLED = {
    "policy-gradient, reinforce": PolicyGradient(reward=parse_metric("ap"), estimator="reinforce", num_samples=8),
    "hybrid": Hybrid(reward=NDCG, gamma=0.3, num_samples=8, loss=CrossEntropyLoss(empty_penalty=2.0)),
    "hybrid, labels as targets": Hybrid(reward=NDCG, gamma=0.3, num_samples=8, targets="labels"),
    "fair, reinforce": FairPolicyGradient(reward=NDCG, estimator="reinforce", strength=0.7),
}


def batch_with(rows, weights=None):
    batch = replace(batch_of(LABELS[rows], MASK[rows]), groups=GROUPS[rows])
    return replace(batch, query_weights=None if weights is None else torch.tensor(weights, dtype=torch.float64))


def value_of(objective, rows, weights=None):
    """Loss, report and gradient by query of SCORES, all times the number of queries."""
    scores = SCORES.clone().requires_grad_()
    torch.manual_seed(0)
    value = objective(scores[rows], batch_with(rows, weights))
    value.loss.backward()
    return value, scores.grad


def test_no_objective_is_forgotten():
    tested = {type(objective).__name__ for objective in (*EXACT.values(), *SAMPLED.values())}
    callables = {name for name in objectives.__all__ if hasattr(getattr(objectives, name), "report_name")}
    assert tested == callables - {"Objective", "ScheduledObjective"}


@pytest.mark.parametrize("name", EXACT)
def test_a_weight_of_two_is_the_query_twice(name):
    # Per item where the loss is a mean over items: 4, 3 and 4 of them.
    is_by_item = name in ("sigmoid", "squared")
    counts = (11, 14) if is_by_item else (3, 4)
    weighted, gradient = value_of(EXACT[name], [0, 1, 2], [1.0, 2.0, 1.0])
    twice, gradient_twice = value_of(EXACT[name], [0, 1, 1, 2])
    if name == "fair, bounded":  # its price is one of means, which must have weights of mean 1
        weighted, gradient = value_of(EXACT[name], [0, 1, 2], [0.75, 1.5, 0.75])
        counts = (1, 1)
    torch.testing.assert_close(gradient * counts[0], gradient_twice * counts[1])
    assert float(weighted.report) * counts[0] == pytest.approx(float(twice.report) * counts[1])


@pytest.mark.parametrize("name", EXACT)
def test_a_weight_of_none_is_no_query(name):
    is_by_item = name in ("sigmoid", "squared")
    weighted, gradient = value_of(EXACT[name], [0, 1, 2], [1.5, 0.0, 1.5])
    without, gradient_without = value_of(EXACT[name], [0, 2])
    factor = 1.5 * 8 / 11 if is_by_item else 1.0
    torch.testing.assert_close(gradient, gradient_without * factor)
    assert float(weighted.report) == pytest.approx(float(without.report) * factor)


@pytest.mark.parametrize("name", SAMPLED)
def test_sampled_gradients_are_weighted_query_by_query(name):
    """The same seed draws the same rankings, whatever the weights."""
    objective = SAMPLED[name]
    weighted, gradient = value_of(objective, [0, 1, 2], [0.5, 2.5, 0.0])
    _, plain = value_of(objective, [0, 1, 2])
    torch.testing.assert_close(gradient, plain * torch.tensor([[0.5], [2.5], [0.0]], dtype=torch.float64))
    alone = [
        float(value_of(objective, [0, 1, 2], [3.0 * (row == query) for row in range(3)])[0].report)
        for query in range(3)
    ]
    assert float(weighted.report) == pytest.approx((0.5 * alone[0] + 2.5 * alone[1]) / 3)


@pytest.mark.parametrize("name", {**EXACT, **SAMPLED})
def test_weights_of_one_change_nothing(name):
    objective = {**EXACT, **SAMPLED}[name]
    weighted, gradient = value_of(objective, [0, 1, 2], [1.0, 1.0, 1.0])
    plain, gradient_plain = value_of(objective, [0, 1, 2])
    torch.testing.assert_close(gradient, gradient_plain)
    assert float(weighted.report) == pytest.approx(float(plain.report))
    parts = [{name: float(part) for name, part in value.parts.items()} for value in (weighted, plain)]
    assert parts[0] == pytest.approx(parts[1])


def test_softmax_cross_entropy_by_hand():
    scores = torch.tensor([[0.0, 0.0, 50.0], [0.0, torch.log(torch.tensor(3.0)), 0.0]], requires_grad=True)
    labels = torch.tensor([[1.0, 0.0, 7.0], [0.0, 2.0, 0.0]])
    mask = torch.tensor([[True, True, False], [True, True, False]])
    value = SoftmaxCrossEntropy()(scores, batch_of(labels, mask))
    value.loss.backward()
    # -log 1/2, and -2 log 3/4; the gradient is (sum of labels) softmax - labels, halved by the mean
    torch.testing.assert_close(value.loss, (torch.log(torch.tensor(2.0)) - 2 * torch.log(torch.tensor(0.75))) / 2)
    torch.testing.assert_close(scores.grad, torch.tensor([[-0.25, 0.25, 0.0], [0.25, -0.25, 0.0]]))


def test_sigmoid_cross_entropy_by_hand():
    """A target of 2.5: the loss is 2.5 (-log a) + (1 - 2.5)(-log(1 - a)), its gradient a - 2.5."""
    scores = torch.tensor([[0.0, 0.0, 50.0]], requires_grad=True)
    value = SigmoidCrossEntropy()(
        scores, batch_of(torch.tensor([[2.5, 0.0, 9.0]]), torch.tensor([[True, True, False]]))
    )
    value.loss.backward()
    torch.testing.assert_close(value.loss, torch.log(torch.tensor(2.0)))
    torch.testing.assert_close(scores.grad, torch.tensor([[-1.0, 0.25, 0.0]]))
