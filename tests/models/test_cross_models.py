"""What all networks over a query's vector, an item's and side information share, and each one's formula by hand."""

from functools import partial

import pytest
import torch

from rankpolicy.models.cross_models import (
    ConcatenationCrossNetwork,
    ConcatenationNetwork,
    DeepCrossNetwork,
    DeepMatchingCrossNetwork,
    LatentCrossNetwork,
    MatchingCrossNetwork,
    MatchNetwork,
)

CROSS_MODELS = {
    "concatenation": ConcatenationNetwork,
    "latent-cross": LatentCrossNetwork,
    "match": MatchNetwork,
    "matching-cross": MatchingCrossNetwork,
    "cross-network": DeepCrossNetwork,
    "concatenation-cross": ConcatenationCrossNetwork,
    "deep-matching-cross": partial(DeepMatchingCrossNetwork, match="product"),
    "matching-cross, bilinear": partial(MatchingCrossNetwork, match="bilinear"),
    "matching-cross, cosine": partial(MatchingCrossNetwork, match="product-cosine"),
}

QUERY, ITEM, SIDE = torch.tensor([[2.0, 1.0]]), torch.tensor([[3.0, -1.0]]), torch.tensor([[10.0]])


@pytest.fixture(autouse=True)
def _seed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def set_weights(layer, weight, bias=None):
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
        if bias is not None:
            layer.bias.copy_(torch.tensor(bias))


@pytest.mark.parametrize("hidden", [(), (8,), (8, 6, 4)])
@pytest.mark.parametrize("side_size", [0, 3])
@pytest.mark.parametrize("name", CROSS_MODELS)
def test_every_network_gives_one_score_a_row_from_that_row_alone(name, side_size, hidden):
    network = CROSS_MODELS[name](5, side_size, hidden=hidden, dropout=0.5).eval()
    rows = torch.randn(7, 5), torch.randn(7, 5), torch.randn(7, side_size)
    scores = network(*rows)
    assert scores.shape == (7,)
    torch.testing.assert_close(network(*(values[2:3] for values in rows)), scores[2:3])


@pytest.mark.parametrize("side_size", [0, 3])
@pytest.mark.parametrize("name", CROSS_MODELS)
def test_every_weight_and_every_input_gets_a_gradient(name, side_size):
    network = CROSS_MODELS[name](5, side_size, hidden=(16, 16))
    rows = [torch.randn(40, size, requires_grad=True) for size in (5, 5, side_size)]
    network(*rows).square().sum().backward()
    for weight in (*network.parameters(), *rows[: 3 if side_size else 2]):
        assert weight.grad.isfinite().all()
        assert weight.grad.abs().sum() > 0


@pytest.mark.parametrize("name", CROSS_MODELS)
def test_a_network_learns_an_order_that_what_the_items_share_decides(name):
    # The first item is the better one where the side information of the query is 1, the second where it is -1.
    network = CROSS_MODELS[name](2, 1, hidden=(16, 16))
    query = torch.ones(4, 2)
    item = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(2, 1)
    side = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]])
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(100):
        choices = network(query, item, side).view(2, 2)
        loss = torch.nn.functional.cross_entropy(choices, torch.tensor([0, 1]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    at_one, at_minus_one = network(query, item, side).view(2, 2)
    assert at_one[0] > at_one[1]
    assert at_minus_one[0] < at_minus_one[1]


def test_concatenation_by_hand():
    network = ConcatenationNetwork(2, 1, hidden=())
    set_weights(network.net.output, [[1.0, 2.0, 3.0, 4.0, 5.0]], [0.5])
    # 2 + 2*1 + 3*3 - 4*1 + 5*10 + 0.5
    assert network(QUERY, ITEM, SIDE).tolist() == [59.5]


def test_latent_cross_by_hand():
    network = LatentCrossNetwork(2, 1, hidden=(2,))
    set_weights(network.net.hidden[0], [[1.0, 0.0, 0.1], [0.0, -2.0, 0.0]], [0.0, 1.0])
    set_weights(network.scaled.weights, [[0.5, 0.0], [0.0, -3.0]])
    set_weights(network.net.output, [[1.0, 10.0]], [0.25])
    # h = relu(3 + 1), relu(2 + 1); scaled by 1 + 0.5*2 and 1 - 3*1: 8 and -6
    assert network(QUERY, ITEM, SIDE).tolist() == [8.0 - 60.0 + 0.25]


def test_match_by_hand():
    network = MatchNetwork(2, 1, hidden=())
    set_weights(network.net.output, [[1.0, 2.0, 3.0]], [0.5])
    # m = (6, -1): 6 - 2 + 30 + 0.5
    assert network(QUERY, ITEM, SIDE).tolist() == [34.5]


def test_matching_cross_by_hand():
    network = MatchingCrossNetwork(2, 1, hidden=())
    set_weights(network.net.output, [[1.0, 2.0, 3.0]], [0.5])
    set_weights(network.scaled.weights, [[0.5], [-0.2]])
    # m = (6, -1) scaled by 1 + 5 and 1 - 2: (36, 1), so 36 + 2 + 30 + 0.5
    assert network(QUERY, ITEM, SIDE).tolist() == [68.5]


def test_cross_network_by_hand():
    network = DeepCrossNetwork(1, 1, hidden=(), num_crosses=2)
    # x_0 = (2, 3, 1). W_0 swaps the first two: x_1 = (2*3, 3*2, 1*1) + x_0 = (8, 9, 2).
    set_weights(network.crosses[0], [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [0.0, 0.0, 0.0])
    # W_1 = 0, b_1 = (1, 0, -1): x_2 = (2, 0, -1) + x_1 = (10, 9, 1).
    set_weights(network.crosses[1], [[0.0] * 3] * 3, [1.0, 0.0, -1.0])
    set_weights(network.net.output, [[1.0, 10.0, 100.0]], [0.0])
    assert network(torch.tensor([[2.0]]), torch.tensor([[3.0]]), torch.tensor([[1.0]])).tolist() == [200.0]


def test_concatenation_cross_by_hand():
    network = ConcatenationCrossNetwork(2, 1, hidden=(2,))
    set_weights(network.net.hidden[0], [[1.0, 0.0, 0.0, 0.0, 0.1], [0.0, 0.0, 0.0, -2.0, 0.0]], [0.0, 1.0])
    set_weights(network.scaled.weights, [[0.5], [-0.2]])
    set_weights(network.net.output, [[1.0, 10.0]], [0.25])
    # h = relu(2 + 1), relu(2 + 1); scaled by 1 + 5 and 1 - 2: 18 and -3
    assert network(QUERY, ITEM, SIDE).tolist() == [18.0 - 30.0 + 0.25]


def test_deep_matching_cross_by_hand():
    network = DeepMatchingCrossNetwork(1, 1, hidden=(), num_crosses=1, match="product")
    # x_0 = (query, item, match, side) = (2, 3, 6, 10). W sends side to the place of the match: x_1 = (2, 3, 6 * 10 + 6, 10).
    set_weights(network.crosses[0], [[0.0] * 4, [0.0] * 4, [0.0, 0.0, 0.0, 1.0], [0.0] * 4], [0.0] * 4)
    set_weights(network.net.output, [[1.0, 10.0, 100.0, 1000.0]], [0.0])
    assert network(QUERY[:, :1], ITEM[:, :1], SIDE).tolist() == [2 + 30 + 6600 + 10000]


def test_side_information_of_the_query_scales_the_match_and_turns_the_order():
    network = MatchingCrossNetwork(2, 1, hidden=())
    set_weights(network.net.output, [[1.0, 1.0, 7.0]], [0.0])
    set_weights(network.scaled.weights, [[0.5], [-0.5]])
    query, items = torch.ones(2, 2), torch.eye(2)
    side = torch.tensor([[1.0]], requires_grad=True)
    first, second = network(query, items, side.expand(2, 1))
    assert (first.item(), second.item()) == (8.5, 7.5)
    assert network(query, items, -torch.ones(2, 1)).tolist() == [-6.5, -5.5]
    # The difference of the two scores is side itself: 1 + 0.5 side - (1 - 0.5 side).
    (first - second).backward()
    assert side.grad.item() == 1.0


@pytest.mark.parametrize("side_size", [0, 4])
def test_a_new_matching_cross_network_is_nearly_its_match(side_size):
    cross, match = MatchingCrossNetwork(6, side_size, hidden=(8, 8)), MatchNetwork(6, side_size, hidden=(8, 8))
    match.net.load_state_dict(cross.net.state_dict())
    rows = torch.randn(50, 6), torch.randn(50, 6), torch.randn(50, side_size)
    difference = (cross(*rows) - match(*rows)).abs().max()
    assert difference == 0 if side_size == 0 else 0 < difference < 0.05
