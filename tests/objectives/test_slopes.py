"""Slopes in the scores that an objective gives itself are those of autograd through its loss."""

import pytest
import torch

from rankpolicy.data.batches import Batch
from rankpolicy.data.padding import Padding
from rankpolicy.objectives import FairPolicyGradient, ListNetCrossEntropy, PolicyGradient
from rankpolicy.objectives.value import value_and_slope


def batch(num_policies, has_weights):
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(4, (6, 5), generator=generator).double()
    mask = torch.ones(6, 5, dtype=torch.bool)
    mask[0, 3:] = False
    return Batch(
        features=None,
        labels=labels.masked_fill(~mask, 0.0),
        mask=mask,
        padding=Padding(mask, torch.arange(30)[mask.view(-1)]),
        groups=torch.randint(2, (6, 5), generator=generator),
        query_weights=torch.rand(6, generator=generator).double() if has_weights else None,
        num_policies=num_policies,
    )


@pytest.mark.parametrize(
    "objective",
    [
        PolicyGradient(estimator="exact"),
        PolicyGradient(estimator="exact", entropy=0.4),
        PolicyGradient(estimator="reinforce", reward="ap", num_samples=4),
        FairPolicyGradient(strength=3.0, num_groups=2),
        ListNetCrossEntropy(),
    ],
    ids=["exact", "entropy", "reinforce", "fair", "list_net"],
)
@pytest.mark.parametrize("num_policies", [1, 2])
@pytest.mark.parametrize("has_weights", [False, True])
def test_slopes_are_those_of_autograd(objective, num_policies, has_weights):
    queries = batch(num_policies, has_weights)
    scores = torch.randn(6, 5, generator=torch.Generator().manual_seed(1)).double()
    leaf = scores.clone().requires_grad_()
    value = objective(leaf, queries, generator=torch.Generator().manual_seed(2))
    (expected,) = torch.autograd.grad(value.loss.sum(), leaf)
    found, slope = value_and_slope(objective, scores, queries, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(slope.masked_fill(~queries.mask, 0.0), expected.masked_fill(~queries.mask, 0.0))
    torch.testing.assert_close(found.report.detach(), value.report.detach())
