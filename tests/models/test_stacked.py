"""Networks that are stacked score, draw and learn as they do one after the other."""

import pytest
import torch
from torch import nn

from rankpolicy.models import MLP, Linear
from rankpolicy.models.average import Average, stacked_layers
from rankpolicy.models.layers import drawing_from

FEATURES = torch.randn(13, 5, generator=torch.Generator().manual_seed(1))


def average(model, count=4):
    generator = torch.Generator().manual_seed(0)
    return Average([model.new_network_of(5, generator=generator) for _ in range(count)])


MODELS = [
    Linear(),
    MLP(hidden=(8,)),
    MLP(hidden=(7, 3), dropout=0.0),
    MLP(hidden=(6, 6, 6), dropout=0.4),
    MLP(hidden=()),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("training", [True, False])
def test_scores_and_gradients_are_those_of_the_members_one_by_one(model, count, training):
    network = average(model, count).train(training)
    assert stacked_layers(list(network.members)) is not None
    results = []
    for scores_of in (
        network.member_scores,
        lambda features: torch.stack([member(features) for member in network.members]),
    ):
        generator = torch.Generator().manual_seed(3)
        network.zero_grad()
        with drawing_from(network, generator):
            scores = scores_of(FEATURES)
        (scores * torch.arange(13.0)).sum().backward()
        results.append(
            (scores.detach(), [weight.grad.clone() for weight in network.parameters()], generator.get_state())
        )
    torch.testing.assert_close(results[0][0], results[1][0])
    torch.testing.assert_close(results[0][1], results[1][1])
    assert torch.equal(results[0][2], results[1][2]), "the same random numbers are drawn"


def test_a_change_of_the_weights_is_seen_at_once():
    network = average(MLP()).eval()
    with torch.no_grad():
        before = network(FEATURES)
        network.members[1].output.bias += 4.0
        torch.testing.assert_close(network(FEATURES), before + 1.0)
        network.load_state_dict(average(MLP(), 4).state_dict())
        torch.testing.assert_close(network(FEATURES), before)


def test_steps_of_a_fused_optimizer_are_seen():
    network = average(MLP())
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1, fused=True)
    for _ in range(3):
        network.train()
        optimizer.zero_grad()
        (network.member_scores(FEATURES) * torch.arange(13.0)).sum().backward()
        optimizer.step()
        network.eval()
        with torch.no_grad():
            expected = torch.stack([member(FEATURES) for member in network.members]).mean(0)
            torch.testing.assert_close(network(FEATURES), expected)


def test_networks_that_cannot_be_stacked_run_one_after_the_other():
    class Doubled(nn.Module):
        def forward(self, features):
            return 2 * features.sum(-1)

    network = Average([Doubled(), Doubled()])
    torch.testing.assert_close(network(FEATURES), 2 * FEATURES.sum(-1))
    assert stacked_layers([MLP().new_network_of(5), MLP(hidden=(3,)).new_network_of(5)]) is None
