"""Scores of stacked relu networks and the gradient of their weights against autograd through the stacked layers."""

import pytest
import torch

from rankpolicy.kernels.triton import relu_network as module
from rankpolicy.models import MLP
from rankpolicy.models.average import DropoutDraws
from rankpolicy.models.stack import Stack


def networks(num_members, num_features, hidden, dropout, seed=0):
    generator = torch.Generator().manual_seed(seed)
    model = MLP(hidden=hidden, dropout=dropout)
    return [model.new_network_of(num_features, generator=generator) for _ in range(num_members)]


@pytest.mark.parametrize(
    ("hidden", "num_groups", "num_members", "num_features", "num_rows", "dropout"),
    [
        ((8,), 1, 1, 3, 5, 0.0),
        ((8, 6), 2, 4, 33, 40, 0.0),
        ((20, 6, 9), 1, 3, 70, 33, 0.3),
        ((8, 16), 3, 6, 5, 150, 0.5),
    ],
)
def test_scores_and_gradient_equal_the_stacked_layers(
    device, hidden, num_groups, num_members, num_features, num_rows, dropout
):
    generator = torch.Generator().manual_seed(1)
    stack = Stack(networks(num_members, num_features, hidden, dropout), num_groups=num_groups)
    features = torch.randn(200, num_features, generator=generator)
    rows = torch.randint(200, (num_groups, num_rows), generator=generator)
    slope = torch.randn(num_members, num_rows, generator=generator)
    thresholds = torch.stack(
        [torch.randint(1, 200, (num_members,), generator=generator).to(torch.uint8) for _ in hidden]
    )
    counts = [(num_rows * width + 7) // 8 * 8 for width in hidden]
    draws = torch.randint(256, (num_members, sum(counts)), generator=generator).to(torch.uint8)
    draws_of = torch.randperm(num_members, generator=generator)

    stack.dropout = [(values, True) for values in thresholds]
    of_layers = [
        own[:, : num_rows * width].contiguous() for own, width in zip(draws.split(counts, 1), hidden, strict=True)
    ]
    expected = stack.layers.scores(features[rows], draws=DropoutDraws(of_layers, draws_of) if dropout else None)
    gradients = torch.autograd.grad((expected * slope).sum(), stack.weights)

    flat = torch.cat([weight.detach().flatten() for weight in stack.weights]).to(device)
    layout = module.Layout(num_members, num_features, hidden)
    assert layout.size == len(flat)
    drops = module.Dropout(draws.to(device), draws_of.to(device), thresholds.int().to(device)) if dropout else None
    given = (flat, features.to(device), rows.to(device), layout)
    scores, activations = module.relu_scores(*given, dropout=drops)
    found = module.relu_gradient(slope.to(device), *given, activations=activations, dropout=drops)
    torch.testing.assert_close(scores.cpu(), expected.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.cpu(), torch.cat([own.flatten() for own in gradients]), rtol=1e-4, atol=1e-4)
    again = module.relu_gradient(slope.to(device), *given, activations=activations, dropout=drops)
    assert torch.equal(found, again)
